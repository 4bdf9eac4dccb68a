/* SPDX-License-Identifier: MIT
 *
 * graph_args: the options of `msprobe graph_visualize`.
 */
#ifndef COMPARE_CMD_GRAPH_ARGS_H
#define COMPARE_CMD_GRAPH_ARGS_H

#include "compare/graph/graph.h"
#include "probe/base/opt.h"

struct graph_args {
    const char *target, *golden, *out, *layers;
    bool fuzzy, overflow, progress, md5_index, log_items;
    int compat, suspects, batch, file_type, format, align;
    struct ms_opt_list rank_size, tp, pp, vpp, order;
    struct graph_param merge[2]; /* target, golden side; filled by graph_args_check */
};

extern const struct ms_opt graph_opts[];
/* Fails when options contradict each other; note gets a line about options that are ignored. */
enum ms_rc graph_args_check(struct graph_args *a, void (*note)(void *ctx, const char *line),
                            struct ms_err *err);

#endif
