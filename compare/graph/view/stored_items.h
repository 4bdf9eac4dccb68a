/* SPDX-License-Identifier: MIT
 *
 * stored_items: nodes that are judged again by the items that a database holds.
 */
#ifndef COMPARE_GRAPH_VIEW_STORED_ITEMS_H
#define COMPARE_GRAPH_VIEW_STORED_ITEMS_H

#include "compare/graph/graph.h"
#include "compare/measure/measured.h"

/* input_data and output_data as a database holds them, and where their tensor files are. */
struct graph__stored {
    struct ms_str in, out;
    const char *dir;
};

struct graph__stored_judge {
    struct cmp_setup set; /* mode and rules */
    struct cmp_view view; /* rows of the nodes judged last, measured */
};
enum ms_rc graph__stored_init(struct graph__stored_judge *j, enum probe_mode mode,
                              struct ms_err *err);
void graph__stored_free(struct graph__stored_judge *j);
/* Reads the items of both sides, whose text is the caller's, as rows; measures them, tensors by their
 * files, and judges the node `name`. */
enum ms_rc graph__judge_stored(struct graph__stored_judge *j, struct ms_str name,
                               const struct graph__stored *target,
                               const struct graph__stored *golden, enum graph_state *state,
                               struct ms_err *err);
/* Writes the items of one column to out, with the figures of the view's rows from *row on in the place
 * of those they had; without figures when *row is -1.  MS_E_FORMAT when the text is no object. */
enum ms_rc graph__put_stored(struct ms_buf *out, struct graph__stored_judge *j, struct ms_str json,
                             int64_t *row, struct ms_err *err);

#endif
