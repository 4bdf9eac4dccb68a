/* SPDX-License-Identifier: MIT
 *
 * graph_ir: what MindSpore's text of a compiled graph says of its kernels.
 *
 *     %0(w) = Load(%para6_up.weight, UMonad[U]) ...
 *     %1(x) = PrimFunc_MatMul(%para7_inputs0, %0, Bool(0)) {instance name: matmul} ...
 *         cnode_primal_attrs: {unique_id: "9083"}
 *           : (<Tensor[Float32], (4, 6)>, <Tensor[Float32], (8, 6)>, ...) -> (<Tensor[Float32], (4, 8)>)
 *           # Fullname with scope: (Default/up-Dense/MatMul-op0)
 *
 * A gradient's kernel has the forward_unique_id of the kernel that it belongs to.
 */
#ifndef PROBE_DUMP_GRAPH_IR_H
#define PROBE_DUMP_GRAPH_IR_H

#include "probe/base/io.h"
#include "probe/base/map.h"

struct probe__ir_argument {
    enum { PROBE__IR_CONSTANT, PROBE__IR_KERNEL, PROBE__IR_PARAMETER } kind;
    struct ms_str parameter; /* its name, "up.weight"; of other kinds empty */
};

/* Texts are in the file; those that are not there are empty. */
struct probe__ir_kernel {
    struct ms_str instance; /* the attribute of the cell: "matmul" */
    struct ms_str id, forward_id;
    struct ms_str forward_op; /* "MatMul" */
    uint32_t first, n;        /* its arguments */
    struct ms_str in, out;    /* "<Tensor[Float32], (4, 6)>, <Bool, NoShape>": their types */
};

struct probe__ir {
    struct ms_file file;
    struct ms_map names; /* full name <-> kernel */
    MS_VEC(struct probe__ir_kernel) kernels;
    MS_VEC(struct probe__ir_argument) arguments;
    struct ms_map aliases; /* "%0" <-> place in `loaded` */
    MS_VEC(struct ms_str) loaded;
};

/* Without such a file nothing is known, which is no failure. */
enum ms_rc probe__ir_open(struct probe__ir *ir, const char *path, struct ms_err *err) MS_MUST_USE;
void probe__ir_close(struct probe__ir *ir);
/* NULL: the text does not have it. */
const struct probe__ir_kernel *probe__ir_find(const struct probe__ir *ir, struct ms_str full);
/* The shape of one of a kernel's tensors; false: the text does not say.  A kernel that only gives its
 * input another shape does not run, and its files have the shape of before. */
bool probe__ir_shape(struct ms_str types, uint64_t slot, uint64_t *shape, uint32_t *ndim,
                     uint32_t max);

#endif
