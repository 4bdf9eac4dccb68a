/* SPDX-License-Identifier: MIT
 *
 * metric_avx2: the operations of metric_simd.h on 256-bit registers.
 */
#include "compare/measure/metric_int.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define TARGET           __attribute__((target("avx2,f16c,fma,popcnt")))
#define KERNEL           cmp__metric_avx2
#define BYTES            32
#define LOW(v)           (vd) _mm256_cvtps_pd(_mm256_castps256_ps128((__m256)(v)))
#define HIGH(v)          (vd) _mm256_cvtps_pd(_mm256_extractf128_ps((__m256)(v), 1))
#define LOW_INT(v)       (vd) _mm256_cvtepi32_pd(_mm256_castsi256_si128((__m256i)(v)))
#define HIGH_INT(v)      (vd) _mm256_cvtepi32_pd(_mm256_extracti128_si256((__m256i)(v), 1))
#define MAX_BITS_F(a, b) (vi) _mm256_max_epi32((__m256i)(a), (__m256i)(b))
#define MAX_BITS_D(a, b)                                                                           \
    (vl) _mm256_blendv_pd((__m256d)(b), (__m256d)(a),                                              \
                          (__m256d)_mm256_cmpgt_epi64((__m256i)(a), (__m256i)(b)))
#define MAX_D(a, b)    (vd) _mm256_max_pd((__m256d)(a), (__m256d)(b))
#define FUSED(a, b, c) (vd) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#define FUSED_ANY      FUSED
#define QUARTERS(p)    (vi) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(p)))
#define FROM_E5M2(p)   (vf) _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(LOAD_64(p)), 8))
#define REAL_FLOATS(p)                                                                             \
    _mm_shuffle_ps(_mm_loadu_ps((const float *)(p)), _mm_loadu_ps((const float *)(p) + 4), 0x88)
#define FROM_C64(p) (vd) _mm256_cvtps_pd(REAL_FLOATS(p))
#define FROM_C128(p)                                                                               \
    (vd) _mm256_permute4x64_pd(_mm256_unpacklo_pd(_mm256_loadu_pd((const double *)(p)),            \
                                                  _mm256_loadu_pd((const double *)(p) + 4)),       \
                               0xd8)
#define HALVES(p)   (vi) _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p)))
#define FROM_F16(p) (vf) _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))
#define LOAD_128(p) _mm_loadu_si128((const void *)(p))
#define LOAD_64(p)  _mm_loadl_epi64((const void *)(p))
#define LOAD_32(p)  _mm_loadu_si32((const void *)(p))
#define FROM_I32(p) (vd) _mm256_cvtepi32_pd(LOAD_128(p))
#define FROM_I16(p) (vd) _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(LOAD_64(p)))
#define FROM_U16(p) (vd) _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(LOAD_64(p)))
#define FROM_I8(p)  (vd) _mm256_cvtepi32_pd(_mm_cvtepi8_epi32(LOAD_32(p)))
#define FROM_U8(p)  (vd) _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(LOAD_32(p)))
#define WORDS_I8(p) (vw) _mm256_cvtepi8_epi16(LOAD_128(p))
#define WORDS_U8(p) (vw) _mm256_cvtepu8_epi16(LOAD_128(p))
/* A 32-bit integer in the low bits of the double 2^52 is added to its value. */
#define FROM_U32(p)        ((vd)((vl)_mm256_cvtepu32_epi64(LOAD_128(p)) | 0x4330000000000000) - 0x1p52)
#define MULTIPLY_ADD(a, b) (vi) _mm256_madd_epi16((__m256i)(a), (__m256i)(b))
#define MAX_WORD(a, b)     (vw) _mm256_max_epi16((__m256i)(a), (__m256i)(b))
#define MIN_WORD(a, b)     (vw) _mm256_min_epi16((__m256i)(a), (__m256i)(b))
#define LOAD_256(p)        _mm256_loadu_si256((const void *)(p))
#define DIFFER_256(p, q, at)                                                                       \
    _mm256_xor_si256(LOAD_256((const char *)(p) + (at)), LOAD_256((const char *)(q) + (at)))
#define DIFFER_512(p, q, at) _mm256_or_si256(DIFFER_256(p, q, at), DIFFER_256(p, q, (at) + 32))
#define DIFFER_1024(p, q)    _mm256_or_si256(DIFFER_512(p, q, 0), DIFFER_512(p, q, 64))
#define SAME_1024(p, q)      _mm256_testz_si256(DIFFER_1024(p, q), DIFFER_1024(p, q))
#define MASK_OF_CLEAR(p)                                                                           \
    (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(LOAD_256(p), _mm256_setzero_si256()))
#define MASK_OF_SET(p)     ~(MASK_OF_CLEAR(p) | (uint64_t)MASK_OF_CLEAR((p) + 32) << 32)
#define MAX_UNSIGNED(a, b) (vu) _mm256_max_epu16((__m256i)(a), (__m256i)(b))
#define UPPER_HALF(a, b)   (vu) _mm256_mulhi_epu16((__m256i)(a), (__m256i)(b))

#include "compare/measure/metric_simd.h"

#else
typedef int cmp__metric_avx2_is_for_x86;
#endif
