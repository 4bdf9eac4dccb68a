/* SPDX-License-Identifier: MIT
 *
 * step_name: names that frameworks give to the steps of a training: "step 7", "ProfilerStep#7",
 * "iteration 7".
 */
#ifndef MSTX_FORMAT_STEP_NAME_H
#define MSTX_FORMAT_STEP_NAME_H

#include "probe/base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Tells whether a name is that of a step. *number is the number in the name, or -1. */
bool mstx_is_step_name(struct ms_str name, int64_t *number);

#endif
