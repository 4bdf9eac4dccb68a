/* SPDX-License-Identifier: MIT
 *
 * kernel_name: the grammar of names in MindSpore's dump of a compiled graph.
 *
 *     MatMul.Default_up-Dense_MatMul-op0.0.0.17956.input.0.DefaultFormat.Float32.npy    a file
 *     Gradients/Default/network-WithLossCell/_backbone-Net/up-Dense/Grad_MatMul/MatMul-op1
 *
 * The second name is a kernel's full name: `attribute-Class` for each enclosing cell, the operator
 * whose gradient it computes, and its own operator. In the name of a file the slashes are
 * underscores.
 */
#ifndef PROBE_DUMP_KERNEL_NAME_H
#define PROBE_DUMP_KERNEL_NAME_H

#include "probe/base/str.h"

struct probe__kernel_file {
    struct ms_str op;    /* "MatMul", or "Parameter" */
    struct ms_str scope; /* the full name with underscores, or the parameter's name */
    bool is_input;
    uint64_t slot;
    uint64_t time; /* when it was written; 0: not known */
};

/* Parses the name of a file; false for a file of another kind. */
bool probe__kernel_file_parse(struct ms_str name, struct probe__kernel_file *file);

enum probe__phase {
    PROBE__PHASE_FORWARD,
    PROBE__PHASE_BACKWARD,
    PROBE__PHASE_OPTIMIZER,
    PROBE__PHASE_EXPANDED /* made by the compiler from an operator; no cells in its name */
};

struct probe__kernel_scope {
    enum probe__phase phase;
    struct ms_str cells;   /* "up-Dense/act-ReLU": cells below the model */
    struct ms_str forward; /* of a gradient: its forward operator; else empty */
    struct ms_str op;      /* without its number */
};

/* Parses a full name. has_optimizer: the graph has an optimizer, so the cell `network` is the
 * model's wrapper. */
void probe__kernel_scope_parse(struct ms_str full, bool has_optimizer,
                               struct probe__kernel_scope *scope);
/* Splits one cell of `cells` into attribute and class. */
void probe__cell_split(struct ms_str cell, struct ms_str *attribute, struct ms_str *class_name);

#endif
