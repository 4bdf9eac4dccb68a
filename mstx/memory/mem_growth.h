/* SPDX-License-Identifier: MIT
 *
 * mem_growth: memory that every step leaves behind.
 *
 * A leak leaves bytes behind in step after step; a cache that warms up does so in the first steps
 * alone, and buffers that are replaced each step in the last ones alone. So a site leaks when the
 * steps between the first and the last ones leave bytes that still live when the record ends, in
 * both halves of these steps alike.
 */
#ifndef MSTX_MEMORY_MEM_GROWTH_H
#define MSTX_MEMORY_MEM_GROWTH_H

#include "mstx/memory/mem_log.h"

struct mstx_mem_leak {
    uint32_t site;
    uint32_t steps; /* that left something behind, of those looked at */
    uint64_t bytes; /* left by the steps looked at */
    double bytes_per_step;
};
struct mstx_mem_growth {
    uint32_t steps;                     /* looked at; 0: the record has too few */
    MS_VEC(struct mstx_mem_leak) leaks; /* the largest first */
    double bytes_per_step;              /* of all leaks */
};

/* peak: bytes of the greatest use, against which growth is small or not. */
enum ms_rc mstx__mem_growth_find(const struct mstx_mem_log *log, const struct mstx_mem_space *s,
                                 uint64_t peak, struct mstx_mem_growth *growth,
                                 struct ms_err *err) MS_MUST_USE;
void mstx__mem_growth_free(struct mstx_mem_growth *growth);

#endif
