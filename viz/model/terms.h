/* SPDX-License-Identifier: MIT
 *
 * terms: what is typed into a search or filter line.
 *
 *     softmax state:EW rank:2 -class:Dropout shape:8,16 dtype:bf16 /layers\.[0-3]\./
 *
 * Words between spaces must all hold; "-" in front means must not; quotes keep
 * spaces together.  A bare word is part of a name, whatever the case of its
 * letters; between slashes stands a POSIX extended expression.
 */
#ifndef VIZ_MODEL_TERMS_H
#define VIZ_MODEL_TERMS_H

#include "compare/graph/view/graph_view.h"

struct viz_terms;

/* An empty text gives terms that everything meets.  Errors say which word is wrong and why. */
enum ms_rc viz_terms_new(struct viz_terms **t, struct ms_str text, struct ms_err *err) MS_MUST_USE;
void viz_terms_free(struct viz_terms *t);
bool viz_terms_empty(const struct viz_terms *t);

/* A search ends after so long (0: when it has looked at very many nodes), to be taken up again. */
void viz_terms_limit(struct viz_terms *t, int64_t ns);

/* Does a text alone (an event's name) meet the words and expressions? Other terms are passed over. */
bool viz_terms_meet_text(const struct viz_terms *t, struct ms_str text);

/* Is a name all that is needed to tell, and does it meet them? */
bool viz_terms_by_name(const struct viz_terms *t);
bool viz_terms_meet_name(const struct viz_terms *t, struct ms_str name);

/* Nodes that meet the terms, behind node_order `after`.  A page may be short or empty with `more` set
 * when a time limit of the reader ends the search: *reached is where to go on. */
enum ms_rc viz_terms_search(const struct viz_terms *t, struct graph_view *v, struct graph_spot at,
                            int64_t after, uint32_t limit, struct graph_page *page,
                            int64_t *reached, struct ms_err *err) MS_MUST_USE;

#endif
