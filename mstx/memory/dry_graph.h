/* SPDX-License-Identifier: MIT
 *
 * dry_graph: the operators of one training step and the storages of their tensors, out of a dump.
 *
 * A dump of level L1 or mix with statistics has, in the order of the run, the shape and type of
 * every input and output, and four statistics of each. Tensors with equal statistics, type and
 * number of elements are one storage: what one operator returns and another takes. Outputs of views
 * share the storage of their input.
 */
#ifndef MSTX_MEMORY_DRY_GRAPH_H
#define MSTX_MEMORY_DRY_GRAPH_H

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum { DRY_INPUTS = 8, DRY_NONE = -1 };

struct dry_storage {
    uint64_t bytes;
    uint64_t first_dim, last_dim; /* of the tensor that made it */
    int32_t maker;                /* operator; DRY_NONE: parameter or input of the step */
    int32_t last_use;             /* last operator of the forward that reads it */
    bool is_float, is_parameter, needs_grad, is_found;
};
/* What an operator keeps for its backward. */
enum dry_keeps {
    DRY_KEEPS_INPUT = 1,  /* its first input */
    DRY_KEEPS_INPUTS = 2, /* all of them */
    DRY_KEEPS_OUTPUT = 4,
    DRY_KEEPS_MASK = 8,    /* one byte for each element of the output */
    DRY_KEEPS_HIDDEN = 16, /* a copy in the size of its first input, which no record shows */
    DRY_KEEPS_INDEX = 32,  /* eight bytes for each element of the output */
    DRY_IS_VIEW = 64,      /* output and gradient share the storage of the input */
    DRY_IS_SUM = 128,      /* the gradient of the output is that of each input */
    DRY_IN_PLACE = 256,
    DRY_IS_CONVOLUTION =
        1024,            /* on the CPU its backward copies input and gradient into other layouts */
    DRY_IS_DROPOUT = 512 /* on the CPU its mask has the type of its output */
};
struct dry_op {
    struct ms_str name; /* "linear" */
    uint32_t module;    /* text of the graph */
    int32_t in[DRY_INPUTS], out;
    uint32_t ins;
    uint32_t keeps; /* enum dry_keeps */
    uint64_t out_bytes, out_elements, hidden;
    int64_t layer; /* number in the path of its module; -1: none */
    bool is_attention, is_recomputed;
};
struct dry_parameter {
    struct ms_str module;
    uint64_t elements, bytes;
};
struct dry_graph {
    struct ms_arena *arena;
    struct ms_map modules; /* number 0 is "" */
    MS_VEC(struct dry_op) ops;
    MS_VEC(struct dry_storage) storages;
    MS_VEC(struct dry_parameter) parameters;
    uint64_t parameter_elements, parameter_bytes, largest_parameter;
    uint64_t batch;       /* first dimension of the first input of the step */
    uint64_t hidden_size; /* most frequent last dimension of what operators return */
    uint64_t layers;      /* length of the longest list of equal modules; 1: none */
    double flops_model, flops_machine;
    /* What the dump does not show, so that the plan is too small: names of operators without a rule,
     * and modules in which no operator was recorded. */
    struct ms_map unknown_ops, silent_modules;
};

/* Reads a dump.json and construct.json beside it. */
enum ms_rc mstx__dry_graph_read(struct dry_graph *g, const char *path,
                                struct ms_err *err) MS_MUST_USE;
void mstx__dry_graph_free(struct dry_graph *g);

#endif
