/* SPDX-License-Identifier: MIT
 *
 * device_work: what a device does, told by the name of a kernel or copy.
 */
#ifndef MSTX_FORMAT_DEVICE_WORK_H
#define MSTX_FORMAT_DEVICE_WORK_H

#include "probe/base/str.h"

/* The domains of the tracks of a stream that come from a profiler's trace: what the device executed,
 * and what only stands beside it, such as ranges of the user and waits of the host. */
#define MSTX_KERNELS_DOMAIN "kernels"
#define MSTX_BESIDE_DOMAIN  "annotations"

enum mstx_work { MSTX_WORK_COMPUTE, MSTX_WORK_COMM, MSTX_WORK_MEMORY, MSTX_WORKS };

enum mstx_work mstx__work_of(struct ms_str name);
const char *mstx__work_text(enum mstx_work work);

#endif
