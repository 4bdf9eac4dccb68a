/* SPDX-License-Identifier: MIT
 *
 * metric_plain: the operations of metric_simd.h on 128-bit vectors, which every machine has
 * or the compiler emulates.
 */
#include "compare/measure/metric_int.h"

#include <math.h>
#include <string.h>

#define TARGET
#define KERNEL cmp__metric_plain
#define BYTES  16

#define SMALL(type, name, bytes)                                                                   \
    typedef type name __attribute__((vector_size(bytes), aligned(1), may_alias))
SMALL(uint16_t, four_halves, 8);
SMALL(int32_t, two_i32, 8);
SMALL(uint32_t, two_u32, 8);
SMALL(int16_t, two_i16, 4);
SMALL(uint16_t, two_u16, 4);
SMALL(int8_t, two_i8, 2);
SMALL(uint8_t, two_u8, 2);
SMALL(int8_t, eight_i8, 8);
SMALL(uint8_t, eight_u8, 8);
SMALL(uint8_t, four_u8, 4);
SMALL(float, two_complex, 16);
SMALL(double, one_complex, 16);

static inline uint64_t mask_of_set(const char *p)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i++)
        mask |= (uint64_t)(p[i] != 0) << i;
    return mask;
}

/* Computes a * b + c with one rounding. Products of 26-bit numbers are exact, and most are such;
 * fma() of the library is slow and used only for the others. */
typedef double two_doubles __attribute__((vector_size(BYTES)));
static inline two_doubles multiply_add(two_doubles a, two_doubles b, two_doubles c)
{
    typedef int64_t two_longs __attribute__((vector_size(BYTES)));
    const two_longs low = ((two_longs)a | (two_longs)b) & 0x7ffffff;
    if ((low[0] | low[1]) == 0)
        return a * b + c;
    return (two_doubles){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])};
}

#define PART(v, a, b)           __builtin_convertvector(__builtin_shufflevector(v, v, a, b), vd)
#define LOW(v)                  PART(v, 0, 1)
#define HIGH(v)                 PART(v, 2, 3)
#define LOW_INT(v)              PART(v, 0, 1)
#define HIGH_INT(v)             PART(v, 2, 3)
#define CHOOSE(where, as, a, b) (((where) & (as)(a)) | (~(where) & (as)(b)))
#define MAX_BITS_F(a, b)        CHOOSE((a) > (b), vi, a, b)
#define MAX_BITS_D(a, b)        CHOOSE((a) > (b), vl, a, b)
#define MAX_D(a, b)             (vd) CHOOSE((a) > (b), vl, a, b)
#define FUSED(a, b, c)          ((a) * (b) + (c))
#define FUSED_ANY(a, b, c)      multiply_add(a, b, c)
#define HALVES(p)               __builtin_convertvector(*(const four_halves *)(p), vi)
#define DOUBLES_OF(type, p)     __builtin_convertvector(*(const type *)(p), vd)
#define QUARTERS(p)             __builtin_convertvector(*(const four_u8 *)(p), vi)
#define FROM_C64(p)             PART(*(const two_complex *)(p), 0, 2)
#define FROM_C128(p)                                                                               \
    (vd) __builtin_shufflevector(((const one_complex *)(p))[0], ((const one_complex *)(p))[1], 0, 2)
#define FROM_I32(p) DOUBLES_OF(two_i32, p)
#define FROM_U32(p) DOUBLES_OF(two_u32, p)
#define FROM_I16(p) DOUBLES_OF(two_i16, p)
#define FROM_U16(p) DOUBLES_OF(two_u16, p)
#define FROM_I8(p)  DOUBLES_OF(two_i8, p)
#define FROM_U8(p)  DOUBLES_OF(two_u8, p)
#define WORDS_I8(p) __builtin_convertvector(*(const eight_i8 *)(p), vw)
#define WORDS_U8(p) __builtin_convertvector(*(const eight_u8 *)(p), vw)
/* Sign-extended low and high 16-bit integers of each 32 bits, and their products. */
#define LOW_WORD(v)        ((vi)(v) << 16 >> 16)
#define HIGH_WORD(v)       ((vi)(v) >> 16)
#define LOW_PRODUCT(a, b)  (vui)(LOW_WORD(a) * LOW_WORD(b))
#define HIGH_PRODUCT(a, b) (vui)(HIGH_WORD(a) * HIGH_WORD(b))
#define MULTIPLY_ADD(a, b) (vi)(LOW_PRODUCT(a, b) + HIGH_PRODUCT(a, b))
#define MAX_WORD(a, b)     (vw) CHOOSE((vw)(a) > (vw)(b), vw, a, b)
#define MIN_WORD(a, b)     (vw) CHOOSE((vw)(a) < (vw)(b), vw, a, b)
#define SAME_1024(p, q)    (memcmp(p, q, 128) == 0)
#define MASK_OF_SET(p)     mask_of_set(p)
#define MAX_UNSIGNED(a, b) (vu) CHOOSE((vu)(a) > (vu)(b), vu, a, b)
#define UPPER_HALF(a, b)                                                                           \
    (vu)((((vui)(a)&0xffff) * ((vui)(b)&0xffff) >> 16) |                                           \
         (((vui)(a) >> 16) * ((vui)(b) >> 16) & 0xffff0000))

#include "compare/measure/metric_simd.h"
