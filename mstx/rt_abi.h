/* SPDX-License-Identifier: MIT
 *
 * rt_abi: the recorder's mstx functions by slot, as a marking header's table wants them.
 */
#ifndef MSTX_RT_ABI_H
#define MSTX_RT_ABI_H

#include "mstx/rt.h"
#include "mstx/rt_entry.h"

extern const mstxFuncPointer rt_abi_core[MSTX_FUNC_CORE_SIZE];
extern const mstxFuncPointer rt_abi_domain[MSTX_FUNC_DOMAIN_SIZE];
extern const mstxFuncPointer rt_abi_mem[MSTX_FUNC_MEM_SIZE];

#endif
