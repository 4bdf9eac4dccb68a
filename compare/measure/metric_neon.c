/* SPDX-License-Identifier: MIT
 *
 * metric_neon: the operations of metric_simd.h on the 128-bit registers of aarch64.
 */
#include "compare/measure/metric_int.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <math.h>
#include <string.h>

#define TARGET
#define KERNEL cmp__metric_neon
#define BYTES  16

#define SMALL(type, name, bytes)                                                                   \
    typedef type name __attribute__((vector_size(bytes), aligned(1), may_alias))
SMALL(int16_t, two_i16, 4);
SMALL(uint16_t, two_u16, 4);
SMALL(int8_t, two_i8, 2);
SMALL(uint8_t, two_u8, 2);
SMALL(uint8_t, four_u8, 4);

/* A bit for each of 64 bytes: bytes become their bit's weight, and neighbours are added three
 * times. */
static inline uint64_t mask_of_set(const char *p)
{
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t weight = vld1q_u8(weights);
    uint8x16_t v[4];
    for (int i = 0; i < 4; i++) {
        const uint8x16_t bytes = vld1q_u8((const uint8_t *)p + 16 * i);
        v[i] = vandq_u8(vtstq_u8(bytes, bytes), weight);
    }
    const uint8x16_t halves = vpaddq_u8(vpaddq_u8(v[0], v[1]), vpaddq_u8(v[2], v[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)), 0);
}
static inline bool is_same_1024(const char *p, const char *q)
{
    uint8x16_t differ = vdupq_n_u8(0);
    for (int i = 0; i < 128; i += 16)
        differ = vorrq_u8(
            differ, veorq_u8(vld1q_u8((const uint8_t *)p + i), vld1q_u8((const uint8_t *)q + i)));
    return vmaxvq_u8(differ) == 0;
}

#define LOAD_128(p)             vld1q_u8((const uint8_t *)(p))
#define LOAD_64(p)              vld1_u8((const uint8_t *)(p))
#define DOUBLES_OF(type, p)     __builtin_convertvector(*(const type *)(p), vd)
#define PAIR_OF_INTS(v)         (vd) vcvtq_f64_s64(vmovl_s32(v))
#define LOW(v)                  (vd) vcvt_f64_f32(vget_low_f32((float32x4_t)(v)))
#define HIGH(v)                 (vd) vcvt_high_f64_f32((float32x4_t)(v))
#define LOW_INT(v)              PAIR_OF_INTS(vget_low_s32((int32x4_t)(v)))
#define HIGH_INT(v)             PAIR_OF_INTS(vget_high_s32((int32x4_t)(v)))
#define CHOOSE(where, as, a, b) (((where) & (as)(a)) | (~(where) & (as)(b)))
#define MAX_BITS_F(a, b)        (vi) vmaxq_s32((int32x4_t)(a), (int32x4_t)(b))
#define MAX_BITS_D(a, b)        CHOOSE((a) > (b), vl, a, b)
#define MAX_D(a, b)             (vd) CHOOSE((a) > (b), vl, a, b)
#define FUSED(a, b, c)          (vd) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#define FUSED_ANY               FUSED
#define HALVES(p)               (vi) vmovl_u16(vreinterpret_u16_u8(LOAD_64(p)))
#define FROM_F16(p)             (vf) vcvt_f32_f16(vreinterpret_f16_u8(LOAD_64(p)))
#define QUARTERS(p)             __builtin_convertvector(*(const four_u8 *)(p), vi)
#define FROM_C64(p)                                                                                \
    (vd) vcvt_f64_f32(vget_low_f32(                                                                \
        vuzp1q_f32(vreinterpretq_f32_u8(LOAD_128(p)), vreinterpretq_f32_u8(LOAD_128(p)))))
#define FROM_C128(p)                                                                               \
    (vd) vzip1q_f64(vreinterpretq_f64_u8(LOAD_128(p)),                                             \
                    vreinterpretq_f64_u8(LOAD_128((const char *)(p) + 16)))
#define FROM_I32(p)     PAIR_OF_INTS(vreinterpret_s32_u8(LOAD_64(p)))
#define FROM_U32(p)     (vd) vcvtq_f64_u64(vmovl_u32(vreinterpret_u32_u8(LOAD_64(p))))
#define FROM_I64(p)     (vd) vcvtq_f64_s64(vreinterpretq_s64_u8(LOAD_128(p)))
#define FROM_U64(p)     (vd) vcvtq_f64_u64(vreinterpretq_u64_u8(LOAD_128(p)))
#define FROM_I16(p)     DOUBLES_OF(two_i16, p)
#define FROM_U16(p)     DOUBLES_OF(two_u16, p)
#define FROM_I8(p)      DOUBLES_OF(two_i8, p)
#define FROM_U8(p)      DOUBLES_OF(two_u8, p)
#define WORDS_I8(p)     (vw) vmovl_s8(vreinterpret_s8_u8(LOAD_64(p)))
#define WORDS_U8(p)     (vw) vmovl_u8(LOAD_64(p))
#define LOW_WORDS(v)    vget_low_s16((int16x8_t)(v))
#define LOW_UNSIGNED(v) vget_low_u16((uint16x8_t)(v))
#define MULTIPLY_ADD(a, b)                                                                         \
    (vi) vpaddq_s32(vmull_s16(LOW_WORDS(a), LOW_WORDS(b)),                                         \
                    vmull_high_s16((int16x8_t)(a), (int16x8_t)(b)))
#define MAX_WORD(a, b)     (vw) vmaxq_s16((int16x8_t)(a), (int16x8_t)(b))
#define MIN_WORD(a, b)     (vw) vminq_s16((int16x8_t)(a), (int16x8_t)(b))
#define MAX_UNSIGNED(a, b) (vu) vmaxq_u16((uint16x8_t)(a), (uint16x8_t)(b))
#define UPPER_HALF(a, b)                                                                           \
    (vu) vuzp2q_u16(vreinterpretq_u16_u32(vmull_u16(LOW_UNSIGNED(a), LOW_UNSIGNED(b))),            \
                    vreinterpretq_u16_u32(vmull_high_u16((uint16x8_t)(a), (uint16x8_t)(b))))
#define SAME_1024(p, q) is_same_1024((const char *)(p), (const char *)(q))
#define MASK_OF_SET(p)  mask_of_set(p)

#include "compare/measure/metric_simd.h"

#else
typedef int cmp__metric_neon_is_for_aarch64;
#endif
