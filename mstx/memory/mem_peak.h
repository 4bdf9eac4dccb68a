/* SPDX-License-Identifier: MIT
 *
 * mem_peak: the greatest use of one space, and who owns it.
 */
#ifndef MSTX_MEMORY_MEM_PEAK_H
#define MSTX_MEMORY_MEM_PEAK_H

#include "mstx/memory/mem_log.h"

struct mstx_mem_share {
    uint32_t text; /* of the log; 0: not known */
    uint32_t blocks;
    uint64_t bytes;
};
typedef MS_VEC(struct mstx_mem_share) mstx_mem_shares;

struct mstx_mem_peak {
    uint64_t bytes;
    uint32_t event; /* the peak is reached with this event */
    int64_t at_ns;  /* MSTX_MEM_NO_TIME: not known */
    int64_t step;   /* number of the step; -1: in none */
    uint64_t by_kind[MSTX_MEM_KIND_COUNT];
    mstx_mem_shares modules, ops, frames, stacks; /* the largest first */
    /* Memory that the allocator holds; 0 where the reader does not know. */
    uint64_t reserved_then; /* when the peak was reached */
    uint64_t reserved_most;
    uint64_t blocks;
};

enum ms_rc mstx__mem_peak_find(const struct mstx_mem_log *log, const struct mstx_mem_space *s,
                               struct mstx_mem_peak *peak, struct ms_err *err) MS_MUST_USE;
void mstx__mem_peak_free(struct mstx_mem_peak *peak);

#endif
