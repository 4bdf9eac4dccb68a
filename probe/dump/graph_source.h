/* SPDX-License-Identifier: MIT
 *
 * graph_source: the source lines of a compiled graph's kernels.
 *
 *     # In file net.py:315~323, 4~27/    def construct(self, x):/
 *     # In file net.py:320, 12~23/        h = self.second(x)/
 *
 * Each line with one number is a call; its columns are those of what is called. The calls from the
 * outermost to the kernel's say in which cell the program runs the operator, and when.
 */
#ifndef PROBE_DUMP_GRAPH_SOURCE_H
#define PROBE_DUMP_GRAPH_SOURCE_H

#include "probe/dump/graph_shape.h"

enum { PROBE__CALLS_MAX = 64 };

struct probe__call {
    uint64_t place;          /* line and column */
    struct ms_str attribute; /* "second" for self.second; empty for other calls */
    bool enters_cell;        /* a construct method begins behind this call */
};

struct probe__calls {
    struct probe__call list[PROBE__CALLS_MAX];
    uint32_t n;
};

/* Parses the source lines of a kernel. */
void probe__calls_parse(struct ms_str source, struct probe__calls *calls);

/* Cells by their paths of attributes, "fc.act". */
struct probe__cell_paths {
    struct ms_map names;
    MS_VEC(uint32_t) cells;
};

enum ms_rc probe__cell_paths_make(struct probe__cell_paths *paths,
                                  const struct probe__graph_shape *s, struct ms_err *err);
void probe__cell_paths_free(struct probe__cell_paths *paths);
/* Follows the calls into cells. Returns false when they enter a cell that has no path, such as one
 * from a list. *cell: MS_MAP_NONE for the model; *n: number of calls up to the one of the cell. */
bool probe__calls_follow(const struct probe__calls *calls, const struct probe__graph_shape *s,
                         const struct probe__cell_paths *paths, uint32_t *cell, uint32_t *n);

/* Sorts forward kernels as the program calls their operators, and puts all others behind them. The
 * compiler runs independent kernels side by side, layer after layer, as no dump of functions has
 * them. */
enum ms_rc probe__sort_as_program(struct probe__graph_shape *s, struct ms_err *err);

#endif
