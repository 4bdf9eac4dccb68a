/* SPDX-License-Identifier: MIT
 *
 * stats_avx512: the operations that stats_simd.h needs, on 512-bit registers.
 */
#include "probe/tensor/stats_int.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>

#define TARGET  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,popcnt")))
#define SIMD    TARGET static inline __attribute__((always_inline))
#define ENTRY   TARGET
#define KERNELS ms__stats_avx512
#define PAIRED

SIMD uint64_t popcount(uint32_t mask)
{
    return (uint64_t)__builtin_popcount(mask);
}

/* ---- 16 doubles ----------------------------------------------------------- */

struct doubles {
    __m512d a, b;
};

SIMD struct doubles d_all(double v)
{
    return (struct doubles){_mm512_set1_pd(v), _mm512_set1_pd(v)};
}
SIMD struct doubles d_load(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_I32:
        return (struct doubles){_mm512_cvtepi32_pd(_mm256_loadu_si256((const void *)p)),
                                _mm512_cvtepi32_pd(_mm256_loadu_si256((const void *)(p + 32)))};
    case MS_DT_U32:
        return (struct doubles){_mm512_cvtepu32_pd(_mm256_loadu_si256((const void *)p)),
                                _mm512_cvtepu32_pd(_mm256_loadu_si256((const void *)(p + 32)))};
    case MS_DT_I64:
        return (struct doubles){_mm512_cvtepi64_pd(_mm512_loadu_si512(p)),
                                _mm512_cvtepi64_pd(_mm512_loadu_si512(p + 64))};
    case MS_DT_U64:
        return (struct doubles){_mm512_cvtepu64_pd(_mm512_loadu_si512(p)),
                                _mm512_cvtepu64_pd(_mm512_loadu_si512(p + 64))};
    default:
        return (struct doubles){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 64)};
    }
}
SIMD void d_store(double *to, struct doubles x)
{
    _mm512_storeu_pd(to, x.a);
    _mm512_storeu_pd(to + 8, x.b);
}
SIMD struct doubles d_add(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm512_add_pd(x.a, y.a), _mm512_add_pd(x.b, y.b)};
}
SIMD struct doubles d_mul(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm512_mul_pd(x.a, y.a), _mm512_mul_pd(x.b, y.b)};
}
SIMD struct doubles d_fma(struct doubles x, struct doubles y, struct doubles z)
{
    return (struct doubles){_mm512_fmadd_pd(x.a, y.a, z.a), _mm512_fmadd_pd(x.b, y.b, z.b)};
}
SIMD struct doubles d_min(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm512_min_pd(x.a, y.a), _mm512_min_pd(x.b, y.b)};
}
SIMD struct doubles d_max(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm512_max_pd(x.a, y.a), _mm512_max_pd(x.b, y.b)};
}
SIMD uint32_t d_equal(struct doubles x, struct doubles y)
{
    return (uint32_t)_mm512_cmp_pd_mask(x.a, y.a, _CMP_EQ_OQ) |
           (uint32_t)_mm512_cmp_pd_mask(x.b, y.b, _CMP_EQ_OQ) << 8;
}
SIMD uint32_t d_nan(struct doubles x)
{
    return (uint32_t)_mm512_cmp_pd_mask(x.a, x.a, _CMP_UNORD_Q) |
           (uint32_t)_mm512_cmp_pd_mask(x.b, x.b, _CMP_UNORD_Q) << 8;
}
SIMD struct doubles d_nan_to_zero(struct doubles x)
{
    return (struct doubles){_mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x.a, x.a, _CMP_ORD_Q), x.a),
                            _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x.b, x.b, _CMP_ORD_Q), x.b)};
}
SIMD double d_lowest(struct doubles x)
{
    return _mm512_reduce_min_pd(_mm512_min_pd(x.a, x.b));
}
SIMD double d_highest(struct doubles x)
{
    return _mm512_reduce_max_pd(_mm512_max_pd(x.a, x.b));
}

/* ---- 16 floats ------------------------------------------------------------ */

struct floats {
    __m512 a;
};

SIMD struct floats f_all(float v)
{
    return (struct floats){_mm512_set1_ps(v)};
}
/* Converts float16. The asm hides the conversion from clang 14, which would otherwise compare the
 * half floats one by one. */
SIMD __m512 f_of_f16(__m256i x)
{
    __m512 v = _mm512_cvtph_ps(x);
    __asm__("" : "+v"(v));
    return v;
}
SIMD struct floats f_load(enum ms_dtype t, const char *p)
{
    if (t == MS_DT_F32)
        return (struct floats){_mm512_loadu_ps(p)};
    const __m256i half = _mm256_loadu_si256((const void *)p);
    if (t == MS_DT_F16)
        return (struct floats){f_of_f16(half)};
    const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
    return (struct floats){_mm512_castsi512_ps(wide)};
}
SIMD struct doubles d_of_floats(struct floats x)
{
    return (struct doubles){_mm512_cvtps_pd(_mm512_castps512_ps256(x.a)),
                            _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.a, 1))};
}
/* Converts the floats x, which are also in memory at p: loading them again is faster than splitting
 * the register. */
SIMD struct doubles d_of_floats_at(enum ms_dtype t, const char *p, struct floats x)
{
    if (t != MS_DT_F32)
        return d_of_floats(x);
    return (struct doubles){_mm512_cvtps_pd(_mm256_loadu_ps((const void *)p)),
                            _mm512_cvtps_pd(_mm256_loadu_ps((const void *)(p + 32)))};
}
SIMD struct floats f_min(struct floats x, struct floats y)
{
    return (struct floats){_mm512_min_ps(x.a, y.a)};
}
SIMD struct floats f_max(struct floats x, struct floats y)
{
    return (struct floats){_mm512_max_ps(x.a, y.a)};
}
SIMD uint32_t f_equal(struct floats x, struct floats y)
{
    return _mm512_cmp_ps_mask(x.a, y.a, _CMP_EQ_OQ);
}
SIMD uint32_t f_nan(struct floats x)
{
    return _mm512_cmp_ps_mask(x.a, x.a, _CMP_UNORD_Q);
}
SIMD struct floats f_nan_to_zero(struct floats x)
{
    return (struct floats){_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.a, x.a, _CMP_ORD_Q), x.a)};
}
SIMD float f_lowest(struct floats x)
{
    return _mm512_reduce_min_ps(x.a);
}
SIMD float f_highest(struct floats x)
{
    return _mm512_reduce_max_ps(x.a);
}

/* ---- 32 integers of 16 bits ----------------------------------------------- */

enum { SHORTS = 32 };

struct shorts {
    __m512i a;
};
struct ints {
    __m512i a;
};

SIMD struct shorts s_all(int16_t v)
{
    return (struct shorts){_mm512_set1_epi16(v)};
}
SIMD struct shorts s_load(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_I8:
        return (struct shorts){_mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)p))};
    case MS_DT_U8:
        return (struct shorts){_mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)p))};
    case MS_DT_U16:
        return (struct shorts){
            _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi16(INT16_MIN))};
    default:
        return (struct shorts){_mm512_loadu_si512(p)};
    }
}
SIMD struct shorts s_min(struct shorts x, struct shorts y)
{
    return (struct shorts){_mm512_min_epi16(x.a, y.a)};
}
SIMD struct shorts s_max(struct shorts x, struct shorts y)
{
    return (struct shorts){_mm512_max_epi16(x.a, y.a)};
}
SIMD uint32_t s_equal(struct shorts x, struct shorts y)
{
    return _mm512_cmpeq_epi16_mask(x.a, y.a);
}
/* Multiplies and adds neighbouring pairs into 32 bits. */
SIMD struct ints s_dot(struct shorts x, struct shorts y)
{
    return (struct ints){_mm512_madd_epi16(x.a, y.a)};
}
SIMD int s_lowest(struct shorts x)
{
    int16_t v[SHORTS], lowest = INT16_MAX;
    _mm512_storeu_si512(v, x.a);
    for (int i = 0; i < SHORTS; i++)
        lowest = v[i] < lowest ? v[i] : lowest;
    return lowest;
}
SIMD int s_highest(struct shorts x)
{
    int16_t v[SHORTS], highest = INT16_MIN;
    _mm512_storeu_si512(v, x.a);
    for (int i = 0; i < SHORTS; i++)
        highest = v[i] > highest ? v[i] : highest;
    return highest;
}
SIMD struct ints i_zero(void)
{
    return (struct ints){_mm512_setzero_si512()};
}
SIMD struct ints i_add32(struct ints x, struct ints y)
{
    return (struct ints){_mm512_add_epi32(x.a, y.a)};
}
/* Adds the unsigned 32-bit values y to the 64-bit sums x, two y per sum. */
SIMD struct ints i_add_wide(struct ints x, struct ints y)
{
    const __m512i even = _mm512_and_si512(y.a, _mm512_set1_epi64(UINT32_MAX));
    const __m512i odd = _mm512_srli_epi64(y.a, 32);
    return (struct ints){_mm512_add_epi64(x.a, _mm512_add_epi64(even, odd))};
}
SIMD int64_t i_total32(struct ints x)
{
    const __m512i low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(x.a));
    const __m512i high = _mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32(x.a, 1));
    return _mm512_reduce_add_epi64(_mm512_add_epi64(low, high));
}
SIMD int64_t i_total64(struct ints x)
{
    return _mm512_reduce_add_epi64(x.a);
}

/* Returns a bit for each of 64 bytes that is zero. */
SIMD uint64_t zero_bytes(const char *p)
{
    const __m512i x = _mm512_loadu_si512(p);
    return _mm512_testn_epi8_mask(x, x);
}

#include "probe/tensor/stats_simd.h"

#endif
