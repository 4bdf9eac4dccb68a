/* SPDX-License-Identifier: MIT
 *
 * graph_words: explanations stored in the database for its readers.
 */
#ifndef COMPARE_GRAPH_BUILD_GRAPH_WORDS_H
#define COMPARE_GRAPH_BUILD_GRAPH_WORDS_H

#include "compare/graph/graph.h"
#include "compare/graph/graph_rules.h"

/* Appends explanations of the figures and of the colours of states, as JSON objects. */
void graph__put_tips(struct ms_buf *out, enum probe_mode mode, const struct graph_words *words);
void graph__put_colours(struct ms_buf *out, enum probe_mode mode, const struct graph_words *words);
/* Writes the differences from the official tool as a JSON list of sentences; `out` must be
 * empty. */
void graph__put_repairs(struct ms_buf *out, const struct graph_conf *c);

#endif
