/* SPDX-License-Identifier: MIT
 *
 * stats_avx2: the operations that stats_simd.h needs, on 256-bit registers.
 */
#include "probe/tensor/stats_int.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>

#define TARGET  __attribute__((target("avx2,f16c,fma,popcnt")))
#define SIMD    TARGET static inline __attribute__((always_inline))
#define ENTRY   TARGET
#define KERNELS ms__stats_avx2

SIMD uint64_t popcount(uint32_t mask)
{
    return (uint64_t)__builtin_popcount(mask);
}

/* ---- 16 doubles ----------------------------------------------------------- */

struct doubles {
    __m256d a, b, c, d;
};

SIMD __m256i load256(const char *p)
{
    return _mm256_loadu_si256((const void *)p);
}
SIMD __m128i load128(const char *p)
{
    return _mm_loadu_si128((const void *)p);
}

/* Converts 64-bit integers, for which AVX2 has no instruction. With 2^52 in the exponent, a 32-bit
 * half is a double. Both halves and the scaling are exact, so only the final addition rounds. For
 * signed values the sign bit is flipped and subtracted again as 2^31. */
SIMD __m256d d_of_64(__m256i x, bool is_signed)
{
    const __m256i exponent = _mm256_set1_epi64x(0x4330000000000000);
    const __m256i turn = _mm256_set1_epi64x(is_signed ? 0x80000000 : 0);
    const __m256d bias = _mm256_set1_pd(is_signed ? 0x1p52 + 0x1p31 : 0x1p52);
    const __m256i upper = _mm256_xor_si256(_mm256_srli_epi64(x, 32), turn);
    const __m256i lower = _mm256_and_si256(x, _mm256_set1_epi64x(UINT32_MAX));
    const __m256d high = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(upper, exponent)), bias);
    const __m256d low = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(lower, exponent)),
                                      _mm256_set1_pd(0x1p52));
    return _mm256_add_pd(_mm256_mul_pd(high, _mm256_set1_pd(0x1p32)), low);
}
SIMD __m256d d_of_u32(__m128i x)
{
    const __m256i bits =
        _mm256_or_si256(_mm256_cvtepu32_epi64(x), _mm256_set1_epi64x(0x4330000000000000));
    return _mm256_sub_pd(_mm256_castsi256_pd(bits), _mm256_set1_pd(0x1p52));
}

SIMD struct doubles d_all(double v)
{
    const __m256d x = _mm256_set1_pd(v);
    return (struct doubles){x, x, x, x};
}
/* Loads four elements at p. */
SIMD __m256d d_load4(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_I32:
        return _mm256_cvtepi32_pd(load128(p));
    case MS_DT_U32:
        return d_of_u32(load128(p));
    case MS_DT_I64:
        return d_of_64(load256(p), true);
    case MS_DT_U64:
        return d_of_64(load256(p), false);
    default:
        return _mm256_loadu_pd((const void *)p);
    }
}
SIMD struct doubles d_load(enum ms_dtype t, const char *p)
{
    const size_t step = t == MS_DT_I32 || t == MS_DT_U32 ? 16 : 32;
    return (struct doubles){d_load4(t, p), d_load4(t, p + step), d_load4(t, p + 2 * step),
                            d_load4(t, p + 3 * step)};
}
SIMD void d_store(double *to, struct doubles x)
{
    _mm256_storeu_pd(to, x.a);
    _mm256_storeu_pd(to + 4, x.b);
    _mm256_storeu_pd(to + 8, x.c);
    _mm256_storeu_pd(to + 12, x.d);
}
SIMD struct doubles d_add(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm256_add_pd(x.a, y.a), _mm256_add_pd(x.b, y.b),
                            _mm256_add_pd(x.c, y.c), _mm256_add_pd(x.d, y.d)};
}
SIMD struct doubles d_mul(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm256_mul_pd(x.a, y.a), _mm256_mul_pd(x.b, y.b),
                            _mm256_mul_pd(x.c, y.c), _mm256_mul_pd(x.d, y.d)};
}
SIMD struct doubles d_fma(struct doubles x, struct doubles y, struct doubles z)
{
    return (struct doubles){_mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b),
                            _mm256_fmadd_pd(x.c, y.c, z.c), _mm256_fmadd_pd(x.d, y.d, z.d)};
}
SIMD struct doubles d_min(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm256_min_pd(x.a, y.a), _mm256_min_pd(x.b, y.b),
                            _mm256_min_pd(x.c, y.c), _mm256_min_pd(x.d, y.d)};
}
SIMD struct doubles d_max(struct doubles x, struct doubles y)
{
    return (struct doubles){_mm256_max_pd(x.a, y.a), _mm256_max_pd(x.b, y.b),
                            _mm256_max_pd(x.c, y.c), _mm256_max_pd(x.d, y.d)};
}
SIMD uint32_t d_equal(struct doubles x, struct doubles y)
{
    return (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.a, y.a, _CMP_EQ_OQ)) |
           (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.b, y.b, _CMP_EQ_OQ)) << 4 |
           (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.c, y.c, _CMP_EQ_OQ)) << 8 |
           (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.d, y.d, _CMP_EQ_OQ)) << 12;
}
SIMD uint32_t d_nan(struct doubles x)
{
    return (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.a, x.a, _CMP_UNORD_Q)) |
           (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.b, x.b, _CMP_UNORD_Q)) << 4 |
           (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.c, x.c, _CMP_UNORD_Q)) << 8 |
           (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(x.d, x.d, _CMP_UNORD_Q)) << 12;
}
SIMD __m256d d_nan_to_zero4(__m256d x)
{
    return _mm256_and_pd(x, _mm256_cmp_pd(x, x, _CMP_ORD_Q));
}
SIMD struct doubles d_nan_to_zero(struct doubles x)
{
    return (struct doubles){d_nan_to_zero4(x.a), d_nan_to_zero4(x.b), d_nan_to_zero4(x.c),
                            d_nan_to_zero4(x.d)};
}
SIMD double d_lowest(struct doubles x)
{
    double v[4];
    _mm256_storeu_pd(v, _mm256_min_pd(_mm256_min_pd(x.a, x.b), _mm256_min_pd(x.c, x.d)));
    return fmin(fmin(v[0], v[1]), fmin(v[2], v[3]));
}
SIMD double d_highest(struct doubles x)
{
    double v[4];
    _mm256_storeu_pd(v, _mm256_max_pd(_mm256_max_pd(x.a, x.b), _mm256_max_pd(x.c, x.d)));
    return fmax(fmax(v[0], v[1]), fmax(v[2], v[3]));
}

/* ---- 16 floats ------------------------------------------------------------ */

struct floats {
    __m256 a, b;
};

SIMD struct floats f_all(float v)
{
    return (struct floats){_mm256_set1_ps(v), _mm256_set1_ps(v)};
}
/* Converts float16. The asm hides the conversion from clang 14, which would otherwise compare the
 * half floats one by one. */
SIMD __m256 f_of_f16(__m128i x)
{
    __m256 v = _mm256_cvtph_ps(x);
    __asm__("" : "+x"(v));
    return v;
}
SIMD __m256 f_of_bf16(__m128i x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
SIMD struct floats f_load(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_F16:
        return (struct floats){f_of_f16(load128(p)), f_of_f16(load128(p + 16))};
    case MS_DT_BF16:
        return (struct floats){f_of_bf16(load128(p)), f_of_bf16(load128(p + 16))};
    default:
        return (struct floats){_mm256_loadu_ps((const void *)p),
                               _mm256_loadu_ps((const void *)(p + 32))};
    }
}
SIMD struct doubles d_of_floats(struct floats x)
{
    return (struct doubles){_mm256_cvtps_pd(_mm256_castps256_ps128(x.a)),
                            _mm256_cvtps_pd(_mm256_extractf128_ps(x.a, 1)),
                            _mm256_cvtps_pd(_mm256_castps256_ps128(x.b)),
                            _mm256_cvtps_pd(_mm256_extractf128_ps(x.b, 1))};
}
SIMD struct doubles d_of_floats_at(enum ms_dtype t, const char *p, struct floats x)
{
    (void)t, (void)p;
    return d_of_floats(x);
}
SIMD struct floats f_min(struct floats x, struct floats y)
{
    return (struct floats){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
SIMD struct floats f_max(struct floats x, struct floats y)
{
    return (struct floats){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
SIMD uint32_t f_equal(struct floats x, struct floats y)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ)) |
           (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ)) << 8;
}
SIMD uint32_t f_nan(struct floats x)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q)) |
           (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)) << 8;
}
SIMD struct floats f_nan_to_zero(struct floats x)
{
    return (struct floats){_mm256_and_ps(x.a, _mm256_cmp_ps(x.a, x.a, _CMP_ORD_Q)),
                           _mm256_and_ps(x.b, _mm256_cmp_ps(x.b, x.b, _CMP_ORD_Q))};
}
SIMD float f_lowest(struct floats x)
{
    float v[8], lowest = INFINITY;
    _mm256_storeu_ps(v, _mm256_min_ps(x.a, x.b));
    for (int i = 0; i < 8; i++)
        lowest = v[i] < lowest ? v[i] : lowest;
    return lowest;
}
SIMD float f_highest(struct floats x)
{
    float v[8], highest = -INFINITY;
    _mm256_storeu_ps(v, _mm256_max_ps(x.a, x.b));
    for (int i = 0; i < 8; i++)
        highest = v[i] > highest ? v[i] : highest;
    return highest;
}

/* ---- 16 integers of 16 bits ----------------------------------------------- */

enum { SHORTS = 16 };

struct shorts {
    __m256i a;
};
struct ints {
    __m256i a;
};

SIMD struct shorts s_all(int16_t v)
{
    return (struct shorts){_mm256_set1_epi16(v)};
}
SIMD struct shorts s_load(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_I8:
        return (struct shorts){_mm256_cvtepi8_epi16(load128(p))};
    case MS_DT_U8:
        return (struct shorts){_mm256_cvtepu8_epi16(load128(p))};
    case MS_DT_U16:
        return (struct shorts){_mm256_xor_si256(load256(p), _mm256_set1_epi16(INT16_MIN))};
    default:
        return (struct shorts){load256(p)};
    }
}
SIMD struct shorts s_min(struct shorts x, struct shorts y)
{
    return (struct shorts){_mm256_min_epi16(x.a, y.a)};
}
SIMD struct shorts s_max(struct shorts x, struct shorts y)
{
    return (struct shorts){_mm256_max_epi16(x.a, y.a)};
}
SIMD uint32_t s_equal(struct shorts x, struct shorts y)
{
    /* Narrowed to one bit per element; the order of the bits does not matter. */
    const __m256i equal = _mm256_cmpeq_epi16(x.a, y.a);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(equal), _mm256_extracti128_si256(equal, 1));
    return (uint32_t)_mm_movemask_epi8(bytes);
}
/* Multiplies and adds neighbouring pairs into 32 bits. */
SIMD struct ints s_dot(struct shorts x, struct shorts y)
{
    return (struct ints){_mm256_madd_epi16(x.a, y.a)};
}
SIMD int s_lowest(struct shorts x)
{
    int16_t v[SHORTS], lowest = INT16_MAX;
    _mm256_storeu_si256((void *)v, x.a);
    for (int i = 0; i < SHORTS; i++)
        lowest = v[i] < lowest ? v[i] : lowest;
    return lowest;
}
SIMD int s_highest(struct shorts x)
{
    int16_t v[SHORTS], highest = INT16_MIN;
    _mm256_storeu_si256((void *)v, x.a);
    for (int i = 0; i < SHORTS; i++)
        highest = v[i] > highest ? v[i] : highest;
    return highest;
}
SIMD struct ints i_zero(void)
{
    return (struct ints){_mm256_setzero_si256()};
}
SIMD struct ints i_add32(struct ints x, struct ints y)
{
    return (struct ints){_mm256_add_epi32(x.a, y.a)};
}
/* Adds the unsigned 32-bit values y to the 64-bit sums x, two y per sum. */
SIMD struct ints i_add_wide(struct ints x, struct ints y)
{
    const __m256i even = _mm256_and_si256(y.a, _mm256_set1_epi64x(UINT32_MAX));
    const __m256i odd = _mm256_srli_epi64(y.a, 32);
    return (struct ints){_mm256_add_epi64(x.a, _mm256_add_epi64(even, odd))};
}
SIMD int64_t i_total32(struct ints x)
{
    int32_t v[8];
    int64_t total = 0;
    _mm256_storeu_si256((void *)v, x.a);
    for (int i = 0; i < 8; i++)
        total += v[i];
    return total;
}
SIMD int64_t i_total64(struct ints x)
{
    int64_t v[4];
    _mm256_storeu_si256((void *)v, x.a);
    return v[0] + v[1] + v[2] + v[3];
}

/* Returns a bit for each of 64 bytes that is zero. */
SIMD uint64_t zero_bytes(const char *p)
{
    const __m256i zero = _mm256_setzero_si256();
    const uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(load256(p), zero));
    const uint32_t high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(load256(p + 32), zero));
    return low | (uint64_t)high << 32;
}

#include "probe/tensor/stats_simd.h"

#endif
