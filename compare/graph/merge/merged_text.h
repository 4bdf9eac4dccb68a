/* SPDX-License-Identifier: MIT
 *
 * merged_text: writes a merged tree as the three files of a dump.
 */
#ifndef COMPARE_GRAPH_MERGE_MERGED_TEXT_H
#define COMPARE_GRAPH_MERGE_MERGED_TEXT_H

#include "compare/graph/merge/forest.h"

/* Writes the merged tree of a rank as text. */
enum ms_rc graph__put_merged(struct graph__forest *f, uint32_t rank, struct graph__merged *m,
                             struct ms_err *err);
/* Writes the three files into dir, which is created. */
enum ms_rc graph__write_merged(const struct graph__merged *m, const char *dir, struct ms_err *err);

#endif
