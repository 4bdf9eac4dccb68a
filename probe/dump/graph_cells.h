/* SPDX-License-Identifier: MIT
 *
 * graph_cells: the cells of a compiled graph, and the cell in which each kernel runs.
 *
 * The compiler names a kernel without parameters after the first place in the program that runs the
 * same code, and its source lines are of that place, too. The name is therefore corrected by the
 * flow of values: what lies between two kernels of a cell runs in that cell.
 */
#ifndef PROBE_DUMP_GRAPH_CELLS_H
#define PROBE_DUMP_GRAPH_CELLS_H

#include "probe/dump/graph_shape.h"

/* Finds all cells and the cell of each kernel. */
enum ms_rc probe__cells_find(struct probe__graph_shape *s, struct ms_err *err);
/* Corrects the cells of forward kernels once all are in the order of the program, and finds those of
 * gradients. A call of a cell is in one piece: a kernel behind other cells is no longer in it. */
enum ms_rc probe__cells_settle(struct probe__graph_shape *s, struct ms_err *err);
/* Tells whether the kernel b is of the operator whose expansion into kernels has made a. */
bool probe__is_same_expansion(const struct probe__kernel *a, const struct probe__kernel *b);

#endif
