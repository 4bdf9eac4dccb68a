/* SPDX-License-Identifier: MIT
 *
 * op_shapes: shapes and types of an operator's inputs, as PyTorch's profiler gives them in args.
 */
#ifndef MSTX_FOREIGN_OP_SHAPES_H
#define MSTX_FOREIGN_OP_SHAPES_H

#include "probe/base/str.h"

/* Reads {"Input Dims": [[64, 128], []], "Input type": ["float", "Scalar"], ...} as "64,128;" and
 * "float;Scalar", the form of Ascend's profilers.  Both are empty where args lack them. */
void mstx__op_shapes(struct ms_str args, struct ms_buf *dims, struct ms_buf *types);

#endif
