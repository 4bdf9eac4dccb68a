/* SPDX-License-Identifier: MIT
 *
 * graph_ir: what MindSpore's text of a compiled graph says about its kernels.
 *
 *     %0(w) = Load(%para6_up.weight, UMonad[U]) ...
 *     %1(x) = PrimFunc_MatMul(%para7_inputs0, %0, Bool(0)) {instance name: matmul} ...
 *         cnode_primal_attrs: {unique_id: "9083"}
 *           : (<Tensor[Float32], (4, 6)>, <Tensor[Float32], (8, 6)>, ...) -> (<Tensor[Float32], (4, 8)>)
 *           # Fullname with scope: (Default/up-Dense/MatMul-op0)
 *           # In file net.py:12, 8~22/        return self.up(x)/
 *
 * A gradient's kernel has in forward_unique_id the unique_id of its forward kernel.
 */
#ifndef PROBE_DUMP_GRAPH_IR_H
#define PROBE_DUMP_GRAPH_IR_H

#include "probe/base/io.h"
#include "probe/base/map.h"

struct probe__ir_argument {
    enum { PROBE__IR_CONSTANT, PROBE__IR_KERNEL, PROBE__IR_PARAMETER } kind;
    struct ms_str parameter; /* name, "up.weight"; empty for other kinds */
    uint32_t kernel; /* index of the kernel that makes it, or MS_MAP_NONE where that is not known */
};

/* A kernel. Texts are slices of the file; missing ones are empty. */
struct probe__ir_kernel {
    struct ms_str instance; /* attribute name in the cell: "matmul" */
    struct ms_str id, forward_id;
    struct ms_str forward_op; /* "MatMul" */
    uint32_t first, n;        /* its arguments */
    struct ms_str in, out;    /* their types: "<Tensor[Float32], (4, 6)>, <Bool, NoShape>" */
    struct ms_str source;     /* lines of the program that lead to it, the outermost first */
};

struct probe__ir {
    struct ms_file file;
    struct ms_map names; /* full name <-> kernel */
    MS_VEC(struct probe__ir_kernel) kernels;
    MS_VEC(struct probe__ir_argument) arguments;
    struct ms_map nodes;      /* "%3" <-> index in `made_by` */
    MS_VEC(uint32_t) made_by; /* kernel that makes the node's value */
    struct ms_map aliases;    /* "%0" <-> index in `loaded` */
    MS_VEC(struct ms_str) loaded;
};

/* Opens the text of a graph. A missing file is not a failure and gives an empty result. */
enum ms_rc probe__ir_open(struct probe__ir *ir, const char *path, struct ms_err *err) MS_MUST_USE;
void probe__ir_close(struct probe__ir *ir);
/* Finds a kernel by its full name; NULL when the text does not have the kernel. */
const struct probe__ir_kernel *probe__ir_find(const struct probe__ir *ir, struct ms_str full);
/* Gets the shape of one of a kernel's tensors from the type list; false when the text does not have
 * it. A kernel that only reshapes its input does not run, so the files have the shape from
 * before. */
bool probe__ir_shape(struct ms_str types, uint64_t slot, uint64_t *shape, uint32_t *ndim,
                     uint32_t max);

#endif
