/* SPDX-License-Identifier: MIT
 *
 * kineto: what the categories of PyTorch's profiler mean.
 */
#ifndef MSTX_FOREIGN_KINETO_H
#define MSTX_FOREIGN_KINETO_H

#include "probe/base/str.h"

enum mstx_kineto_side {
    MSTX_SIDE_HOST,   /* a thread: operators, functions, annotations, calls of the runtime */
    MSTX_SIDE_DEVICE, /* a stream: kernels, copies, fills */
    MSTX_SIDE_BESIDE, /* shown on a stream, but nothing that the device executes */
    MSTX_SIDE_TOOL    /* of the profiler itself */
};
/* Tells on which side an event of the category lies; other categories lie on threads. */
enum mstx_kineto_side mstx__kineto_side(struct ms_str category);

#endif
