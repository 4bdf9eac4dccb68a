/* SPDX-License-Identifier: MIT
 *
 * metric_avx2: the operations that metric_simd.h needs, on 256-bit registers.
 */
#include "compare/metric_int.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TARGET         __attribute__((target("avx2,f16c,fma")))
#define KERNEL         cmp__metric_avx2
#define BYTES          32
#define LOW(v)         (vd) _mm256_cvtps_pd(_mm256_castps256_ps128((__m256)(v)))
#define HIGH(v)        (vd) _mm256_cvtps_pd(_mm256_extractf128_ps((__m256)(v), 1))
#define LOW_INT(v)     (vd) _mm256_cvtepi32_pd(_mm256_castsi256_si128((__m256i)(v)))
#define HIGH_INT(v)    (vd) _mm256_cvtepi32_pd(_mm256_extracti128_si256((__m256i)(v), 1))
#define MAX_F(a, b)    (vf) _mm256_max_ps((__m256)(a), (__m256)(b))
#define MAX_D(a, b)    (vd) _mm256_max_pd((__m256d)(a), (__m256d)(b))
#define FUSED(a, b, c) (vd) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#define HALVES(p)      (vi) _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p)))
#define FROM_F16(p)    (vf) _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))

#include "compare/metric_simd.h"

#else
typedef int cmp__metric_avx2_is_for_x86;
#endif
