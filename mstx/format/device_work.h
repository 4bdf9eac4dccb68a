/* SPDX-License-Identifier: MIT
 *
 * device_work: what a device does, told by the name of a kernel or copy.
 */
#ifndef MSTX_FORMAT_DEVICE_WORK_H
#define MSTX_FORMAT_DEVICE_WORK_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

enum mstx_work { MSTX_WORK_COMPUTE, MSTX_WORK_COMM, MSTX_WORK_MEMORY, MSTX_WORKS };

enum mstx_work mstx__work_of(struct ms_str name);
/* As mstx__work_of for a name that has a number, looking at each name once.  Zero the memory to start,
 * and free `of` at the end.  Returns false when out of memory. */
struct mstx_work_memory {
    MS_VEC(uint8_t) of; /* by number: 1 + enum mstx_work; 0: not looked at */
};
bool mstx__work_recall(struct mstx_work_memory *m, uint32_t number, struct ms_str name,
                       enum mstx_work *work);
const char *mstx__work_text(enum mstx_work work);

#endif
