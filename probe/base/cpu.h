/* SPDX-License-Identifier: MIT
 *
 * cpu: which instruction sets the kernels may use, detected once at run time.
 * MSPROBE_CPU=baseline|avx2|avx512 lowers the choice, so that tests can compare every version of a
 * kernel with every other on one machine.
 */
#ifndef PROBE_BASE_CPU_H
#define PROBE_BASE_CPU_H

#include <stdatomic.h>
#include <stdbool.h>

enum ms_cpu {
    MS_CPU_CLMUL = 1 << 0,  /* PCLMULQDQ and SSE4.1 */
    MS_CPU_AVX2 = 1 << 1,   /* with FMA and F16C */
    MS_CPU_AVX512 = 1 << 2, /* F, BW, DQ, VL */
    MS_CPU_VCLMUL = 1 << 3, /* VPCLMULQDQ on 512 bits */
    MS_CPU_NEON = 1 << 4,   /* aarch64 */
    MS_CPU_CRC = 1 << 5,    /* instructions of aarch64 for CRC-32 */
};

/* Bits that kernels may use, with MS__CPU_LOOKED once the processor has been examined. Statistics of
 * one small tensor ask eight times, so the answer takes one load. */
extern atomic_uint ms__cpu_allowed;
#define MS__CPU_LOOKED (1U << 31)
unsigned ms__cpu_look(void);

/* Bits of enum ms_cpu that kernels may use. */
static inline unsigned ms_cpu_features(void)
{
    unsigned f = atomic_load_explicit(&ms__cpu_allowed, memory_order_relaxed);
    return (f != 0 ? f : ms__cpu_look()) & ~MS__CPU_LOOKED;
}
static inline bool ms_cpu_has(unsigned bits)
{
    return (ms_cpu_features() & bits) == bits;
}
/* Restricts ms_cpu_features to these bits, for tests; ~0u removes the limit. */
void ms_cpu_limit(unsigned bits);
/* Writes the feature names, "clmul avx2 avx512", for `version -v`; "baseline" when there is none.
 * size is at least 1. */
const char *ms_cpu_text(char *buf, unsigned size);
/* Number of processors that this process may run on. */
unsigned ms_cpu_count(void);

#endif
