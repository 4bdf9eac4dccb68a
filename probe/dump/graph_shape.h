/* SPDX-License-Identifier: MIT
 *
 * graph_shape: what a compiled graph's kernels are in a dump: operators with their gradients, and the
 * cells around them.
 *
 * The compiler keeps where a kernel comes from in its name alone. Which of its tensors pass the border
 * of a cell is seen from the values: what no kernel of the cell makes goes in, what a kernel outside
 * takes comes out.
 */
#ifndef PROBE_DUMP_GRAPH_SHAPE_H
#define PROBE_DUMP_GRAPH_SHAPE_H

#include "probe/dump/graph_read.h"

struct probe__graph_cell {
    struct ms_str cells;            /* "fc-Dense/act-ReLU" */
    struct ms_str path, class_name; /* "fc.act", "ReLU" */
    uint32_t depth;
    uint32_t parent; /* MS_MAP_NONE: the model */
    uint32_t
        last[2]; /* kernel with which its forward or backward ends; MS_MAP_NONE: there is none */
};

struct probe__graph_op {
    struct ms_str name; /* "matmul.MatMul", or "MatMul" */
    uint32_t cell;      /* the innermost around it, or MS_MAP_NONE */
    uint32_t number;    /* of the call */
    bool is_backward, is_optimizer;
    uint32_t last; /* kernel with which it ends */
};

struct probe__graph_shape {
    struct probe__graph *g;
    struct ms_arena *arena;
    MS_VEC(struct probe__graph_cell) cells;
    struct ms_map cell_names;
    MS_VEC(struct probe__graph_op) ops;
    uint32_t *op_of;      /* of each kernel */
    uint32_t *forward_of; /* of each gradient's kernel: the kernel it belongs to, or MS_MAP_NONE */
    bool *is_backward;    /* each kernel: it computes a gradient */
    uint32_t *made_by;    /* each value: the first kernel that makes it, or MS_MAP_NONE */
    struct ms_map ids;    /* a kernel's number in the graph's text <-> place in `with_id` */
    MS_VEC(uint32_t) with_id;
    struct ms_map calls; /* operator <-> place in `counts` */
    MS_VEC(uint32_t) counts;
};

enum ms_rc probe__graph_shape_make(struct probe__graph_shape *s, struct probe__graph *g,
                                   struct ms_err *err) MS_MUST_USE;
void probe__graph_shape_free(struct probe__graph_shape *s);

/* Whether a kernel runs in a cell. */
bool probe__kernel_is_in(const struct probe__kernel *k, const struct probe__graph_cell *cell);
/* The cell that has a parameter, "net.fc.weight", and the name in it; MS_MAP_NONE: none has. */
uint32_t probe__parameter_cell(const struct probe__graph_shape *s, struct ms_str parameter,
                               struct ms_str *name);
/* Whether a gradient's kernel makes the value. */
bool probe__is_gradient(const struct probe__graph_shape *s, uint32_t value);

#endif
