/* SPDX-License-Identifier: MIT
 *
 * stats_neon: the operations that stats_simd.h needs, on the 128-bit registers of aarch64.
 *
 * NEON has no instruction that makes a mask of comparisons. Masks are only counted here, so a
 * "mask" is the number of its bits.
 */
#include "probe/tensor/stats_int.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <math.h>

#define SIMD static inline __attribute__((always_inline))
#define ENTRY
#define KERNELS ms__stats_neon

SIMD uint64_t popcount(uint32_t count)
{
    return count;
}

SIMD uint8x16_t load16(const char *p)
{
    return vld1q_u8((const uint8_t *)p);
}
SIMD uint8x8_t load8(const char *p)
{
    return vld1_u8((const uint8_t *)p);
}

/* ---- 16 doubles ----------------------------------------------------------- */

struct doubles {
    float64x2_t a, b, c, d, e, f, g, h;
};
#define EACH_D(op)                                                                                 \
    (struct doubles)                                                                               \
    {                                                                                              \
        op(a), op(b), op(c), op(d), op(e), op(f), op(g), op(h)                                     \
    }

SIMD struct doubles d_all(double v)
{
    const float64x2_t x = vdupq_n_f64(v);
    return (struct doubles){x, x, x, x, x, x, x, x};
}
/* Loads two elements at p. */
SIMD float64x2_t d_load2(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_I32:
        return vcvtq_f64_s64(vmovl_s32(vreinterpret_s32_u8(load8(p))));
    case MS_DT_U32:
        return vcvtq_f64_u64(vmovl_u32(vreinterpret_u32_u8(load8(p))));
    case MS_DT_I64:
        return vcvtq_f64_s64(vreinterpretq_s64_u8(load16(p)));
    case MS_DT_U64:
        return vcvtq_f64_u64(vreinterpretq_u64_u8(load16(p)));
    default:
        return vreinterpretq_f64_u8(load16(p));
    }
}
SIMD struct doubles d_load(enum ms_dtype t, const char *p)
{
    const size_t step = t == MS_DT_I32 || t == MS_DT_U32 ? 8 : 16;
    return (struct doubles){d_load2(t, p),
                            d_load2(t, p + step),
                            d_load2(t, p + 2 * step),
                            d_load2(t, p + 3 * step),
                            d_load2(t, p + 4 * step),
                            d_load2(t, p + 5 * step),
                            d_load2(t, p + 6 * step),
                            d_load2(t, p + 7 * step)};
}
SIMD void d_store(double *to, struct doubles x)
{
    vst1q_f64(to, x.a);
    vst1q_f64(to + 2, x.b);
    vst1q_f64(to + 4, x.c);
    vst1q_f64(to + 6, x.d);
    vst1q_f64(to + 8, x.e);
    vst1q_f64(to + 10, x.f);
    vst1q_f64(to + 12, x.g);
    vst1q_f64(to + 14, x.h);
}
SIMD struct doubles d_add(struct doubles x, struct doubles y)
{
#define ADD(k) vaddq_f64(x.k, y.k)
    return EACH_D(ADD);
}
SIMD struct doubles d_mul(struct doubles x, struct doubles y)
{
#define MUL(k) vmulq_f64(x.k, y.k)
    return EACH_D(MUL);
}
SIMD struct doubles d_fma(struct doubles x, struct doubles y, struct doubles z)
{
#define FMA(k) vfmaq_f64(z.k, x.k, y.k)
    return EACH_D(FMA);
}
/* Not the instructions for minimum and maximum: those yield a NaN for a signalling NaN. */
SIMD struct doubles d_min(struct doubles x, struct doubles y)
{
#define MIN(k) vbslq_f64(vcltq_f64(x.k, y.k), x.k, y.k)
    return EACH_D(MIN);
}
SIMD struct doubles d_max(struct doubles x, struct doubles y)
{
#define MAX(k) vbslq_f64(vcgtq_f64(x.k, y.k), x.k, y.k)
    return EACH_D(MAX);
}
SIMD uint32_t d_equal(struct doubles x, struct doubles y)
{
#define SAME(k) vceqq_f64(x.k, y.k)
    const uint64x2_t low = vaddq_u64(vaddq_u64(SAME(a), SAME(b)), vaddq_u64(SAME(c), SAME(d)));
    const uint64x2_t high = vaddq_u64(vaddq_u64(SAME(e), SAME(f)), vaddq_u64(SAME(g), SAME(h)));
    return (uint32_t)(0 - vaddvq_u64(vaddq_u64(low, high)));
#undef SAME
}
SIMD uint32_t d_nan(struct doubles x)
{
    return MS__LANES - d_equal(x, x);
}
SIMD struct doubles d_nan_to_zero(struct doubles x)
{
#define NUMBER(k) vreinterpretq_f64_u64(vandq_u64(vreinterpretq_u64_f64(x.k), vceqq_f64(x.k, x.k)))
    return EACH_D(NUMBER);
#undef NUMBER
}
SIMD double d_lowest(struct doubles x)
{
    double v[MS__LANES], lowest = (double)INFINITY;
    d_store(v, x);
    for (int i = 0; i < MS__LANES; i++)
        lowest = v[i] < lowest ? v[i] : lowest;
    return lowest;
}
SIMD double d_highest(struct doubles x)
{
    double v[MS__LANES], highest = (double)-INFINITY;
    d_store(v, x);
    for (int i = 0; i < MS__LANES; i++)
        highest = v[i] > highest ? v[i] : highest;
    return highest;
}

/* ---- 16 floats ------------------------------------------------------------ */

struct floats {
    float32x4_t a, b, c, d;
};
#define EACH_F(op)                                                                                 \
    (struct floats)                                                                                \
    {                                                                                              \
        op(a), op(b), op(c), op(d)                                                                 \
    }

SIMD struct floats f_all(float v)
{
    const float32x4_t x = vdupq_n_f32(v);
    return (struct floats){x, x, x, x};
}
SIMD float32x4_t f_of_f16(const char *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(load8(p)));
}
SIMD float32x4_t f_of_bf16(const char *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(load8(p)), 16));
}
SIMD struct floats f_load(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_F16:
        return (struct floats){f_of_f16(p), f_of_f16(p + 8), f_of_f16(p + 16), f_of_f16(p + 24)};
    case MS_DT_BF16:
        return (struct floats){f_of_bf16(p), f_of_bf16(p + 8), f_of_bf16(p + 16),
                               f_of_bf16(p + 24)};
    default:
        return (struct floats){
            vreinterpretq_f32_u8(load16(p)), vreinterpretq_f32_u8(load16(p + 16)),
            vreinterpretq_f32_u8(load16(p + 32)), vreinterpretq_f32_u8(load16(p + 48))};
    }
}
SIMD struct doubles d_of_floats(struct floats x)
{
#define HALVES(k) vcvt_f64_f32(vget_low_f32(x.k)), vcvt_high_f64_f32(x.k)
    return (struct doubles){HALVES(a), HALVES(b), HALVES(c), HALVES(d)};
#undef HALVES
}
SIMD struct doubles d_of_floats_at(enum ms_dtype t, const char *p, struct floats x)
{
    (void)t, (void)p;
    return d_of_floats(x);
}
SIMD struct floats f_min(struct floats x, struct floats y)
{
#define MIN_F(k) vbslq_f32(vcltq_f32(x.k, y.k), x.k, y.k)
    return EACH_F(MIN_F);
}
SIMD struct floats f_max(struct floats x, struct floats y)
{
#define MAX_F(k) vbslq_f32(vcgtq_f32(x.k, y.k), x.k, y.k)
    return EACH_F(MAX_F);
}
SIMD uint32_t f_equal(struct floats x, struct floats y)
{
#define SAME(k) vceqq_f32(x.k, y.k)
    return 0 - vaddvq_u32(vaddq_u32(vaddq_u32(SAME(a), SAME(b)), vaddq_u32(SAME(c), SAME(d))));
#undef SAME
}
SIMD uint32_t f_nan(struct floats x)
{
    return MS__LANES - f_equal(x, x);
}
SIMD struct floats f_nan_to_zero(struct floats x)
{
#define NUMBER(k) vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x.k), vceqq_f32(x.k, x.k)))
    return EACH_F(NUMBER);
#undef NUMBER
}
/* Of values that are never NaN. */
SIMD float f_lowest(struct floats x)
{
    return vminvq_f32(vminq_f32(vminq_f32(x.a, x.b), vminq_f32(x.c, x.d)));
}
SIMD float f_highest(struct floats x)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d)));
}

/* ---- 8 integers of 16 bits ------------------------------------------------- */

enum { SHORTS = 8 };

struct shorts {
    int16x8_t a;
};
struct ints {
    int32x4_t a;
};

SIMD struct shorts s_all(int16_t v)
{
    return (struct shorts){vdupq_n_s16(v)};
}
SIMD struct shorts s_load(enum ms_dtype t, const char *p)
{
    switch (t) {
    case MS_DT_I8:
        return (struct shorts){vmovl_s8(vreinterpret_s8_u8(load8(p)))};
    case MS_DT_U8:
        return (struct shorts){vreinterpretq_s16_u16(vmovl_u8(load8(p)))};
    case MS_DT_U16:
        return (struct shorts){veorq_s16(vreinterpretq_s16_u8(load16(p)), vdupq_n_s16(INT16_MIN))};
    default:
        return (struct shorts){vreinterpretq_s16_u8(load16(p))};
    }
}
SIMD struct shorts s_min(struct shorts x, struct shorts y)
{
    return (struct shorts){vminq_s16(x.a, y.a)};
}
SIMD struct shorts s_max(struct shorts x, struct shorts y)
{
    return (struct shorts){vmaxq_s16(x.a, y.a)};
}
SIMD uint32_t s_equal(struct shorts x, struct shorts y)
{
    return (uint32_t)-vaddvq_s16(vreinterpretq_s16_u16(vceqq_s16(x.a, y.a)));
}
/* Multiplies and adds neighbouring pairs into 32 bits. */
SIMD struct ints s_dot(struct shorts x, struct shorts y)
{
    return (struct ints){
        vpaddq_s32(vmull_s16(vget_low_s16(x.a), vget_low_s16(y.a)), vmull_high_s16(x.a, y.a))};
}
SIMD int s_lowest(struct shorts x)
{
    return vminvq_s16(x.a);
}
SIMD int s_highest(struct shorts x)
{
    return vmaxvq_s16(x.a);
}
SIMD struct ints i_zero(void)
{
    return (struct ints){vdupq_n_s32(0)};
}
SIMD struct ints i_add32(struct ints x, struct ints y)
{
    return (struct ints){vaddq_s32(x.a, y.a)};
}
/* Adds the unsigned 32-bit values y to the 64-bit sums x, two y per sum. */
SIMD struct ints i_add_wide(struct ints x, struct ints y)
{
    return (struct ints){
        vreinterpretq_s32_u64(vpadalq_u32(vreinterpretq_u64_s32(x.a), vreinterpretq_u32_s32(y.a)))};
}
SIMD int64_t i_total32(struct ints x)
{
    return vaddlvq_s32(x.a);
}
SIMD int64_t i_total64(struct ints x)
{
    return vaddvq_s64(vreinterpretq_s64_s32(x.a));
}

/* Returns as many bits as there are zeros among 64 bytes. */
SIMD uint64_t zero_bytes(const char *p)
{
    const uint8x16_t low = vaddq_u8(vceqzq_u8(load16(p)), vceqzq_u8(load16(p + 16)));
    const uint8x16_t high = vaddq_u8(vceqzq_u8(load16(p + 32)), vceqzq_u8(load16(p + 48)));
    const uint8_t count = (uint8_t)(0 - vaddvq_u8(vaddq_u8(low, high)));
    return count == 64 ? ~0ULL : (1ULL << count) - 1;
}

#include "probe/tensor/stats_simd.h"

#else
typedef int ms__stats_neon_is_for_aarch64;
#endif
