/* SPDX-License-Identifier: MIT
 *
 * metric_avx512: the operations of metric_simd.h on 512-bit registers.
 */
#include "compare/measure/metric_int.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

/* Immediate operand of vrangepd: select the larger magnitude and clear its sign. */
enum { ABSOLUTE_MAXIMUM = 0xb };
/* Shuffle that moves word i to word 2 i + 1; the even words are masked out. */
#define ODD_WORDS                                                                                  \
    _mm512_slli_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 16)
#define TARGET           __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,popcnt")))
#define KERNEL           cmp__metric_avx512
#define BYTES            64
#define LOW(v)           (vd) _mm512_cvtps_pd(_mm512_castps512_ps256((__m512)(v)))
#define HIGH(v)          (vd) _mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)(v), 1))
#define LOW_INT(v)       (vd) _mm512_cvtepi32_pd(_mm512_castsi512_si256((__m512i)(v)))
#define HIGH_INT(v)      (vd) _mm512_cvtepi32_pd(_mm512_extracti32x8_epi32((__m512i)(v), 1))
#define MAX_BITS_F(a, b) (vi) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define MAX_BITS_D(a, b) (vl) _mm512_max_epi64((__m512i)(a), (__m512i)(b))
#define MAX_D(a, b)      (vd) _mm512_max_pd((__m512d)(a), (__m512d)(b))
#define FUSED(a, b, c)   (vd) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#define FUSED_ANY        FUSED
#define QUARTERS(p)      (vi) _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p)))
#define FROM_E5M2(p)     (vf) _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(LOAD_128(p)), 8))
#define FROM_C64(p)      (vd) _mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_cvtepi64_epi32(LOAD_512(p))))
#define EVEN_DOUBLES     _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0)
#define FROM_C128(p)                                                                               \
    (vd) _mm512_permutex2var_pd(_mm512_loadu_pd(p), EVEN_DOUBLES,                                  \
                                _mm512_loadu_pd((const double *)(p) + 8))
#define HALVES(p)     (vi) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(p)))
#define RAISE_D(a, b) (vd) _mm512_range_pd((__m512d)(a), (__m512d)(b), ABSOLUTE_MAXIMUM)
#define FROM_F16(p)   (vf) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))

/* One shuffle moves each 16-bit half to the upper end of its float. */
#define FROM_BF16(p)                                                                               \
    (vf) _mm512_maskz_permutexvar_epi16(                                                           \
        0xaaaaaaaa, ODD_WORDS, _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(p))))
#define LOAD_512(p)        _mm512_loadu_si512((const void *)(p))
#define LOAD_256(p)        _mm256_loadu_si256((const void *)(p))
#define LOAD_128(p)        _mm_loadu_si128((const void *)(p))
#define LOAD_64(p)         _mm_loadl_epi64((const void *)(p))
#define FROM_I64(p)        (vd) _mm512_cvtepi64_pd(LOAD_512(p))
#define FROM_U64(p)        (vd) _mm512_cvtepu64_pd(LOAD_512(p))
#define FROM_I32(p)        (vd) _mm512_cvtepi32_pd(LOAD_256(p))
#define FROM_U32(p)        (vd) _mm512_cvtepu32_pd(LOAD_256(p))
#define FROM_I16(p)        (vd) _mm512_cvtepi32_pd(_mm256_cvtepi16_epi32(LOAD_128(p)))
#define FROM_U16(p)        (vd) _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(LOAD_128(p)))
#define FROM_I8(p)         (vd) _mm512_cvtepi32_pd(_mm256_cvtepi8_epi32(LOAD_64(p)))
#define FROM_U8(p)         (vd) _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(LOAD_64(p)))
#define WORDS_I8(p)        (vw) _mm512_cvtepi8_epi16(LOAD_256(p))
#define WORDS_U8(p)        (vw) _mm512_cvtepu8_epi16(LOAD_256(p))
#define MULTIPLY_ADD(a, b) (vi) _mm512_madd_epi16((__m512i)(a), (__m512i)(b))
#define MAX_WORD(a, b)     (vw) _mm512_max_epi16((__m512i)(a), (__m512i)(b))
#define MIN_WORD(a, b)     (vw) _mm512_min_epi16((__m512i)(a), (__m512i)(b))
#define DIFFER_512(p, q, at)                                                                       \
    _mm512_cmpneq_epi64_mask(LOAD_512((const char *)(p) + (at)), LOAD_512((const char *)(q) + (at)))
#define SAME_1024(p, q)    ((DIFFER_512(p, q, 0) | DIFFER_512(p, q, 64)) == 0)
#define MAX_UNSIGNED(a, b) (vu) _mm512_max_epu16((__m512i)(a), (__m512i)(b))
#define UPPER_HALF(a, b)   (vu) _mm512_mulhi_epu16((__m512i)(a), (__m512i)(b))
#define MASK_OF_SET(p)     _mm512_test_epi8_mask(LOAD_512(p), LOAD_512(p))
#define WORDS_MASK         __mmask32
#define LESS_W(a, b)       _mm512_cmplt_epu16_mask((__m512i)(a), (__m512i)(b))
#define SAME_W(a, b)       _mm512_cmpeq_epi16_mask((__m512i)(a), (__m512i)(b))
#define COUNT_W(n, m)                                                                              \
    (vu) _mm512_mask_sub_epi16((__m512i)(n), m, (__m512i)(n), _mm512_set1_epi16(-1))
#define LESS_F(v, limit) _mm512_cmplt_epi32_mask((__m512i)(v), (__m512i)(limit))
#define LESS_D(v, limit) _mm512_cmplt_epi64_mask((__m512i)(v), (__m512i)(limit))
#define ZERO_F(v)        _mm512_cmp_ps_mask((__m512)(v), _mm512_setzero_ps(), _CMP_EQ_OQ)
#define ZERO_D(v)        _mm512_cmp_pd_mask((__m512d)(v), _mm512_setzero_pd(), _CMP_EQ_OQ)
#define COUNT_LESS_F(n, v, limit)                                                                  \
    (vi) _mm512_mask_sub_epi32((__m512i)(n), LESS_F(v, limit), (__m512i)(n), _mm512_set1_epi32(-1))
#define COUNT_LESS_D(n, v, limit)                                                                  \
    (vl) _mm512_mask_sub_epi64((__m512i)(n), LESS_D(v, limit), (__m512i)(n), _mm512_set1_epi64(-1))
#define ADD_AT_ZERO_F(v, at, what)                                                                 \
    (vf) _mm512_mask_add_ps((__m512)(v), ZERO_F(at), (__m512)(v), _mm512_set1_ps(what))
#define ADD_AT_ZERO_D(v, at, what)                                                                 \
    (vd) _mm512_mask_add_pd((__m512d)(v), ZERO_D(at), (__m512d)(v), _mm512_set1_pd(what))

#include "compare/measure/metric_simd.h"

#else
typedef int cmp__metric_avx512_is_for_x86;
#endif
