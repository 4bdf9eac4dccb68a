/* SPDX-License-Identifier: MIT
 *
 * cpu: which instructions the kernels may use, found once at run time.
 * MSPROBE_CPU=baseline|avx2|avx512 lowers it, so that tests can hold every
 * version of a kernel against every other on one machine.
 */
#ifndef PROBE_BASE_CPU_H
#define PROBE_BASE_CPU_H

#include <stdbool.h>

enum ms_cpu {
    MS_CPU_CLMUL = 1 << 0,  /* PCLMULQDQ and SSE4.1 */
    MS_CPU_AVX2 = 1 << 1,   /* with FMA and F16C */
    MS_CPU_AVX512 = 1 << 2, /* F, BW, DQ, VL */
    MS_CPU_VCLMUL = 1 << 3, /* VPCLMULQDQ on 512 bits */
    MS_CPU_NEON = 1 << 4,
};

/* Bits of enum ms_cpu that may be used. */
unsigned ms_cpu_features(void);
static inline bool ms_cpu_has(unsigned bits)
{
    return (ms_cpu_features() & bits) == bits;
}
/* Use no more than these; for tests. ~0u takes the limit away. */
void ms_cpu_limit(unsigned bits);
/* "clmul avx2 avx512" for version -v; "baseline" when there is none.  size is at least 1. */
const char *ms_cpu_text(char *buf, unsigned size);
/* Processors this process may run on. */
unsigned ms_cpu_count(void);

#endif
