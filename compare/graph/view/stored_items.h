/* SPDX-License-Identifier: MIT
 *
 * stored_items: judges nodes again from the items that a database holds.
 */
#ifndef COMPARE_GRAPH_VIEW_STORED_ITEMS_H
#define COMPARE_GRAPH_VIEW_STORED_ITEMS_H

#include "compare/graph/graph.h"
#include "compare/measure/measured.h"

/* input_data and output_data as stored, and the directory of the tensor files. */
struct graph__stored {
    struct ms_str in, out;
    const char *dir;
};

struct graph__stored_judge {
    struct cmp_setup set; /* mode and rules */
    struct cmp_view view; /* measured rows of the last judged nodes */
};
enum ms_rc graph__stored_init(struct graph__stored_judge *j, enum probe_mode mode,
                              struct ms_err *err);
void graph__stored_free(struct graph__stored_judge *j);
/* Judges the node `name` from the items of both sides: reads them as rows and measures these,
 * tensors from their files. The text of the items is borrowed. */
enum ms_rc graph__judge_stored(struct graph__stored_judge *j, struct ms_str name,
                               const struct graph__stored *target,
                               const struct graph__stored *golden, enum graph_state *state,
                               struct ms_err *err);
/* Writes the items of one column to `out`, with their figures replaced by those of the view's rows
 * from *row on, or without figures when *row is -1. MS_E_FORMAT: the text is not an object. */
enum ms_rc graph__put_stored(struct ms_buf *out, struct graph__stored_judge *j, struct ms_str json,
                             int64_t *row, struct ms_err *err);

#endif
