/* SPDX-License-Identifier: MIT
 *
 * metric_avx512: the operations that metric_simd.h needs, on 512-bit registers.
 */
#include "compare/metric_int.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define TARGET         __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma")))
#define KERNEL         cmp__metric_avx512
#define BYTES          64
#define LOW(v)         (vd) _mm512_cvtps_pd(_mm512_castps512_ps256((__m512)(v)))
#define HIGH(v)        (vd) _mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)(v), 1))
#define LOW_INT(v)     (vd) _mm512_cvtepi32_pd(_mm512_castsi512_si256((__m512i)(v)))
#define HIGH_INT(v)    (vd) _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32((__m512i)(v), 1))
#define MAX_F(a, b)    (vf) _mm512_max_ps((__m512)(a), (__m512)(b))
#define MAX_D(a, b)    (vd) _mm512_max_pd((__m512d)(a), (__m512d)(b))
#define FUSED(a, b, c) (vd) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#define HALVES(p)      (vi) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(p)))
#define FROM_F16(p)    (vf) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))

#include "compare/metric_simd.h"

#else
typedef int cmp__metric_avx512_is_for_x86;
#endif
