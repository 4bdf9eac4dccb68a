/* SPDX-License-Identifier: MIT
 *
 * graph_shape: the operators with their gradients, and the cells around them, that a compiled
 * graph's kernels belong to.
 *
 * The origin of a kernel is only in its name. The inputs and outputs of a cell are found from
 * values: a value that no kernel of the cell makes is an input, a value that a kernel outside takes
 * is an output.
 */
#ifndef PROBE_DUMP_GRAPH_SHAPE_H
#define PROBE_DUMP_GRAPH_SHAPE_H

#include "probe/dump/graph_read.h"

struct probe__graph_cell {
    struct ms_str cells;            /* "fc-Dense/act-ReLU" */
    struct ms_str path, class_name; /* "fc.act", "ReLU" */
    uint32_t depth;
    uint32_t parent;  /* MS_MAP_NONE: the model */
    uint32_t last[2]; /* last kernel of its forward and backward, or MS_MAP_NONE */
};

struct probe__graph_op {
    struct ms_str name; /* "matmul.MatMul", or "MatMul" */
    uint32_t cell;      /* innermost enclosing cell, or MS_MAP_NONE */
    uint32_t number;    /* number of the call */
    bool is_backward, is_optimizer;
    bool is_saved; /* prepares a forward value for gradients; has no record */
    uint32_t last; /* its last kernel */
};

struct probe__graph_shape {
    struct probe__graph *g;
    struct ms_arena *arena;
    MS_VEC(struct probe__graph_cell) cells;
    struct ms_map cell_names;
    MS_VEC(struct probe__graph_op) ops;
    uint32_t *op_of;      /* operator of each kernel */
    uint32_t *forward_of; /* of each gradient kernel: its forward kernel, or MS_MAP_NONE */
    bool *is_backward;    /* of each kernel: it computes a gradient */
    bool *is_saved;       /* of each kernel: it only prepares a forward value for gradients */
    uint32_t *made_by;    /* of each value: the first kernel that makes it, or MS_MAP_NONE */
    struct ms_map ids;    /* a kernel's unique_id <-> index in `with_id` */
    MS_VEC(uint32_t) with_id;
    struct ms_map calls; /* operator <-> index in `counts` */
    MS_VEC(uint32_t) counts;
};

enum ms_rc probe__graph_shape_make(struct probe__graph_shape *s, struct probe__graph *g,
                                   struct ms_err *err) MS_MUST_USE;
void probe__graph_shape_free(struct probe__graph_shape *s);

/* Tells whether a kernel runs in a cell. */
bool probe__kernel_is_in(const struct probe__kernel *k, const struct probe__graph_cell *cell);
/* Returns the cell that owns a parameter such as "net.fc.weight", and the parameter's name in the
 * cell; MS_MAP_NONE when no cell does. */
uint32_t probe__parameter_cell(const struct probe__graph_shape *s, struct ms_str parameter,
                               struct ms_str *name);
/* Tells whether a gradient kernel makes the value. */
bool probe__is_gradient(const struct probe__graph_shape *s, uint32_t value);

#endif
