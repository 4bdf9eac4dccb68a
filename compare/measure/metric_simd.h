/* SPDX-License-Identifier: MIT
 *
 * metric_simd: the passes, written once with the compiler's vectors.
 *
 * A file for one instruction set includes this file after it has defined
 *
 *     TARGET                 the attribute that allows the instructions
 *     KERNEL                 the table to define
 *     BYTES                  bytes of a vector: 16, 32 or 64
 *     LOW(v), HIGH(v)        the halves of a vector of floats as doubles
 *     LOW_INT(v), HIGH_INT(v)    the same for a vector of 32-bit integers
 *     MAX_D(a, b)            the larger doubles; b where a is NaN
 *     MAX_BITS_F(a, b), MAX_BITS_D(a, b)  the larger 32-bit, 64-bit integers
 *     FUSED(a, b, c)         a * b + c in doubles, where a * b is exact
 *     FUSED_ANY(a, b, c)     the same, rounded once, where a * b may not be exact
 *     HALVES(p)              16-bit integers in memory as 32-bit ones
 *     FROM_I32(p) and so on, U32, I16, U16, I8, U8    whole numbers in memory as doubles
 *     FROM_C64(p), FROM_C128(p)  real parts of complex numbers in memory as doubles
 *     QUARTERS(p)            bytes in memory as 32-bit integers
 *     WORDS_I8(p), WORDS_U8(p)   bytes in memory as 16-bit integers
 *     MULTIPLY_ADD(a, b)     products of 16-bit integers, added two by two
 *     MAX_WORD(a, b), MIN_WORD(a, b)     the larger, the smaller 16-bit integers
 *     MAX_UNSIGNED(a, b)     the larger unsigned 16-bit integers
 *     UPPER_HALF(a, b)       the upper halves of products of unsigned 16-bit integers
 *     MASK_OF_SET(p)         a bit for each of 64 bytes in memory: whether it is not zero
 *     SAME_1024(p, q)        whether 1024 bits in memory are equal, with few operations,
 *                            because the vector units are the bottleneck for other elements
 *
 * and, where the instruction set has instructions for them,
 *
 *     FROM_F16(p), FROM_BF16(p)    small floats in memory as floats
 *     FROM_I64(p), FROM_U64(p)     whole numbers in memory as doubles
 *     RAISE_D(a, b)                the larger of |a| and b, which is not negative
 *     FROM_E5M2(p)                 8-bit floats that are the upper half of a float16
 *     COUNT_LESS_F(n, v, limit)    n, plus one in every lane where the integers v < limit
 *     ADD_AT_ZERO_F(v, at, what)   v + what where `at` is zero, v elsewhere
 *     the same for doubles, with suffix _D
 *     WORDS_MASK, LESS_W(a, b), SAME_W(a, b), COUNT_W(n, m)
 *                                  masks of the lanes where unsigned 16-bit integers are
 *                                  less, where they are equal, and n, plus one in every lane
 *                                  of a mask
 *
 * Helpers take vectors by address, which costs nothing once they are inlined: the calling
 * convention for vectors by value depends on compiler flags.
 */

/* Forbids fused multiply-add, so that sums are the same on every machine. (gcc does not contract in
 * standard C.) */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define INLINE TARGET static inline __attribute__((always_inline))

enum {
    PARTS = CMP__LANES * 8 / BYTES, /* vectors that hold the lanes of one sum */
    FLOATS = BYTES / 4,
    DOUBLES = BYTES / 8,
};
typedef float vf __attribute__((vector_size(BYTES)));
typedef int32_t vi __attribute__((vector_size(BYTES)));
typedef double vd __attribute__((vector_size(BYTES)));
typedef int64_t vl __attribute__((vector_size(BYTES)));

#ifndef FROM_BF16
#define FROM_BF16(p) (vf)(HALVES(p) << 16)
#endif
#ifndef RAISE_D
#define RAISE_D(a, b) MAX_D((vd)((vl)(a)&INT64_MAX), b)
#endif
#ifndef COUNT_LESS_F
#define COUNT_LESS_F(n, v, limit)  ((n) - ((v) < (limit)))
#define COUNT_LESS_D(n, v, limit)  ((n) - ((vd)(v) < (vd)(limit)))
#define ADD_AT_ZERO_F(v, at, what) ((v) + (vf)(((at) == 0) & (vi)((vf){0} + (what))))
#define ADD_AT_ZERO_D(v, at, what) ((v) + (vd)(((at) == 0) & (vl)((vd){0} + (what))))
#endif

/* ---- memory ------------------------------------------------------------------- */

/* Returns the size of an element in bytes. */
INLINE size_t size_of(const enum cmp__source from)
{
    if (from == CMP__C128)
        return 16;
    if (from == CMP__F64 || from == CMP__C64 || from == CMP__I64 || from == CMP__U64)
        return 8;
    if (from == CMP__F32 || from == CMP__I32 || from == CMP__U32)
        return 4;
    return from <= CMP__BF16 || from == CMP__U16 || from == CMP__I16 ? 2 : 1;
}

/* Prefetches the bytes that follow, because the hardware prefetcher stops at the end of a page. */
INLINE void read_ahead(const char *n, const char *b, size_t at, const size_t bytes)
{
    enum { LINE = 64, AHEAD = 2048 };
    for (size_t i = 0; i < bytes; i += LINE) {
        __builtin_prefetch(n + at + i + AHEAD);
        __builtin_prefetch(b + at + i + AHEAD);
    }
}

/* ---- the sums, in double ---------------------------------------------------- */

struct sums {
    vd nn[PARTS], bb[PARTS], nb[PARTS], dd[PARTS], max_abs[PARTS];
    vd d[PARTS], abs_d[PARTS], ulp[PARTS], max_ulp[PARTS];
    vd same[PARTS]; /* squares of elements that are equal on both sides */
};

/* Adds a product. Products of doubles are rounded before they are added, because emulating a fused
 * operation is slow. Products of floats are exact in a double. Products of integers are rarely
 * large enough to be rounded. */
INLINE void add_product(vd *sum, const vd *x, const vd *y, const enum cmp__source from)
{
    if (from == CMP__F64 || from == CMP__C128)
        *sum += *x * *y;
    else if (from <= CMP__C64)
        *sum = FUSED(*x, *y, *sum);
    else
        *sum = FUSED_ANY(*x, *y, *sum);
}

INLINE void add_products(struct sums *s, const unsigned part, const vd *x, const vd *y,
                         const enum cmp__source from)
{
    add_product(&s->nn[part], x, x, from);
    add_product(&s->bb[part], y, y, from);
    add_product(&s->nb[part], x, y, from);
}

INLINE void add_differences(struct sums *s, const unsigned part, const vd *x, const vd *y,
                            const enum cmp__source from, const bool ext)
{
    vd d = *x - *y;
    if (from == CMP__F64 || from == CMP__C128)
        s->dd[part] += d * d;
    else
        s->dd[part] = FUSED_ANY(d, d, s->dd[part]);
    s->max_abs[part] = RAISE_D(d, s->max_abs[part]);
    if (ext) {
        s->d[part] += d;
        s->abs_d[part] += (vd)((vl)d & INT64_MAX);
    }
}

/* Adds distances in units of the last place; x and y are positions on the number line, with
 * negative positions for negative numbers. */
INLINE void add_ulps(struct sums *s, const unsigned part, const vd *x, const vd *y)
{
    vd ulp = *x - *y;
    s->ulp[part] += (vd)((vl)ulp & INT64_MAX);
    s->max_ulp[part] = RAISE_D(ulp, s->max_ulp[part]);
}

/* Copies the vectors, so that the sums themselves can stay in registers. */
INLINE void lanes_of(double lanes[CMP__LANES], const vd *parts)
{
    const vd p[] = {parts[0],         parts[1 % PARTS], parts[2 % PARTS], parts[3 % PARTS],
                    parts[4 % PARTS], parts[5 % PARTS], parts[6 % PARTS], parts[7 % PARTS]};
    memcpy(lanes, p, CMP__LANES * sizeof *lanes);
}

/* Joins the lanes in one order, whatever the vector width. */
INLINE double total_of(const vd *parts)
{
    enum { HALF = CMP__LANES / 2 };
    double l[CMP__LANES];
    lanes_of(l, parts);
    for (size_t i = 0; i < HALF; i++)
        l[i] += l[i + HALF];
    return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

INLINE double largest_of(double most, const vd *parts)
{
    double l[CMP__LANES];
    lanes_of(l, parts);
    for (int i = 0; i < CMP__LANES; i++)
        most = cmp__larger(most, l[i]);
    return most;
}

INLINE double same_of(const struct sums *s)
{
    return total_of(s->same);
}

/* Tells whether all elements were finite, since NaN and inf persist in sums of squares. Sums of
 * finite small floats never overflow; those of enormous doubles may, and then the careful pass runs
 * needlessly. */
INLINE bool all_finite(const struct sums *s)
{
    return isfinite(total_of(s->nn)) && isfinite(total_of(s->bb)) && isfinite(same_of(s));
}

INLINE void take_sums(struct cmp_facts *f, const struct sums *s)
{
    const double same = same_of(s);
    f->nn += total_of(s->nn) + same;
    f->bb += total_of(s->bb) + same;
    f->nb += total_of(s->nb) + same;
    f->dd += total_of(s->dd);
    f->max_abs = largest_of(f->max_abs, s->max_abs);
}

INLINE void take_ext(struct cmp_facts *f, const struct sums *s)
{
    f->sum_d += total_of(s->d);
    f->sum_abs_d += total_of(s->abs_d);
    f->sum_ulp += total_of(s->ulp);
    f->max_ulp = largest_of(f->max_ulp, s->max_ulp);
}

/* ---- float32, and types that widen to it --------------------------------------- */

/* Scaling by 2^112 also normalizes denormal numbers. */
INLINE void widen_f16(const vi *half, vf *out)
{
    vi magnitude = (*half & 0x7fff) << 13;
    vi special = magnitude >= 0x0f800000;
    vi value = (vi)((vf)magnitude * 0x1p112F);
    value |= (*half & 0x8000) << 16 | (special & 0x7f800000);
    value = (special & ((magnitude & 0x007fffff) | (value & ~0x007fffff))) | (~special & value);
    *out = (vf)value;
}

/* Widens a float with 4 exponent and 3 mantissa bits; the format has no infinity, and all ones is
 * NaN. */
INLINE void widen_e4m3(const vi *byte, vf *out)
{
    const vi magnitude = *byte & 0x7f;
    const vi value = (vi)((vf)(magnitude << 20) * 0x1p120F);
    *out = (vf)(value | (*byte & 0x80) << 24 | ((magnitude == 0x7f) & 0x7f800000));
}

INLINE void load_float8(vf *out, const char *p, const enum cmp__source from)
{
#ifdef FROM_E5M2
    if (from == CMP__E5M2) {
        *out = FROM_E5M2(p);
        return;
    }
#endif
    vi byte = QUARTERS(p);
    if (from == CMP__E4M3) {
        widen_e4m3(&byte, out);
        return;
    }
    byte <<= 8;
    widen_f16(&byte, out);
}

INLINE void load_floats(vf *out, const char *p, size_t at, const enum cmp__source from)
{
    if (from == CMP__F32) {
        memcpy(out, p + at * sizeof(float), sizeof *out);
        return;
    }
    if (from == CMP__E4M3 || from == CMP__E5M2) {
        load_float8(out, p + at, from);
        return;
    }
    p += at * sizeof(uint16_t);
    if (from == CMP__BF16) {
        *out = FROM_BF16(p);
        return;
    }
#ifdef FROM_F16
    *out = FROM_F16(p);
#else
    vi half = HALVES(p);
    widen_f16(&half, out);
#endif
}

INLINE vi same_floats(const vf *x, const vf *y, const char *n, const char *b, size_t at,
                      const enum cmp__source from)
{
    (void)n, (void)b, (void)at, (void)from;
    return (vi)*x == (vi)*y;
}

INLINE void spread_floats(struct sums *s, const unsigned nth, const vf *x, const vf *y,
                          const enum cmp__source from, const bool ext)
{
    const unsigned part = nth * 2 % PARTS;
    const vd x0 = LOW(*x), x1 = HIGH(*x), y0 = LOW(*y), y1 = HIGH(*y);
    add_products(s, part, &x0, &y0, from);
    add_differences(s, part, &x0, &y0, from, ext);
    add_products(s, (part + 1) % PARTS, &x1, &y1, from);
    add_differences(s, (part + 1) % PARTS, &x1, &y1, from, ext);
}

INLINE void spread_float_ulps(struct sums *s, const unsigned nth, const vi *x, const vi *y)
{
    const unsigned part = nth * 2 % PARTS;
    const vd x0 = LOW_INT(*x), x1 = HIGH_INT(*x), y0 = LOW_INT(*y), y1 = HIGH_INT(*y);
    add_ulps(s, part, &x0, &y0);
    add_ulps(s, (part + 1) % PARTS, &x1, &y1);
}

INLINE bool is_float8(const enum cmp__source from)
{
    return from == CMP__E4M3 || from == CMP__E5M2;
}

INLINE bool is_half(const enum cmp__source from)
{
    return from == CMP__F16 || from == CMP__BF16;
}

/* Returns the number of elements tested at once for equality. Values rounded to 16 bits or fewer
 * are often equal on both sides; wider floats are not tested. Adding float8 takes long per byte, so
 * that testing each group pays. */
INLINE size_t run_of_floats(const enum cmp__source from)
{
    return is_half(from) ? CMP__RUN : is_float8(from) ? CMP__GROUP : CMP_METRIC_BLOCK;
}

INLINE bool same_run(const char *n, const char *b, size_t at, const enum cmp__source from)
{
    if (is_half(from))
        return SAME_1024(n + at * sizeof(uint16_t), b + at * sizeof(uint16_t));
    return is_float8(from) && memcmp(n + at, b + at, CMP__GROUP) == 0;
}

INLINE void spread_same_floats(struct sums *s, const unsigned nth, const vf *x)
{
    const unsigned part = nth * 2 % PARTS;
    const vd low = LOW(*x), high = HIGH(*x);
    s->same[part] = FUSED(low, low, s->same[part]);
    s->same[part + 1] = FUSED(high, high, s->same[part + 1]);
}

#define ELEM          float
#define VEC           vf
#define INT           vi
#define BITS          32
#define MAGNITUDE     INT32_MAX
#define INFINITY_BITS 0x7f800000
#define EPS           0x1p-23F
#define MAX_BITS      MAX_BITS_F
#define MAX_NUMBERS   MAX_BITS_F
#define ADD_AT_ZERO   ADD_AT_ZERO_F
#define COUNT_LESS    COUNT_LESS_F
#define LOAD          load_floats
#define SAME          same_floats
#define SPREAD        spread_floats
#define SPREAD_ULPS   spread_float_ulps
#define RUN           run_of_floats
#define SAME_RUN      same_run
#define SPREAD_SAME   spread_same_floats
#define FOR_ELEM(x)   x##_single
#include "compare/measure/metric_loop.h"

/* ---- double, and types that are computed as double ------------------------------ */

#ifndef FROM_I64
/* Converts 64-bit integers. The upper and lower halves become doubles by placing them in the
 * mantissas of 2^84 and 2^52. Both and their difference are exact, so the sum is rounded only
 * once. */
INLINE void from_64_bits(vd *out, const char *p, const bool has_sign)
{
    vl v;
    memcpy(&v, p, sizeof v);
    vl high = ((v >> 32) & UINT32_MAX) ^ (has_sign ? (int64_t)1 << 31 : 0);
    vd upper = (vd)(high | 0x4530000000000000), lower = (vd)((v & UINT32_MAX) | 0x4330000000000000);
    *out = (upper - (has_sign ? 0x1p84 + 0x1p63 + 0x1p52 : 0x1p84 + 0x1p52)) + lower;
}
#endif

INLINE void load_64_bits(vd *out, const char *p, const enum cmp__source from)
{
#ifdef FROM_I64
    *out = from == CMP__I64 ? FROM_I64(p) : FROM_U64(p);
#else
    from_64_bits(out, p, from == CMP__I64);
#endif
}

INLINE void load_8_bits(vd *out, const char *p, const enum cmp__source from)
{
    *out = from == CMP__I8 ? FROM_I8(p) : FROM_U8(p);
    if (from == CMP__BOOL)
        *out = (vd)((vl)((vd){0} + 1) & (*out != 0));
}

INLINE void load_doubles(vd *out, const char *p, size_t at, const enum cmp__source from)
{
    if (from == CMP__F64)
        memcpy(out, p + at * sizeof(double), sizeof *out);
    else if (from == CMP__C64)
        *out = FROM_C64(p + at * 2 * sizeof(float));
    else if (from == CMP__C128)
        *out = FROM_C128(p + at * 2 * sizeof(double));
    else if (from == CMP__I64 || from == CMP__U64)
        load_64_bits(out, p + at * sizeof(int64_t), from);
    else if (from == CMP__I32 || from == CMP__U32)
        *out = from == CMP__I32 ? FROM_I32(p + at * sizeof(int32_t)) : FROM_U32(p + at * 4);
    else if (from == CMP__I16 || from == CMP__U16)
        *out = from == CMP__I16 ? FROM_I16(p + at * sizeof(int16_t)) : FROM_U16(p + at * 2);
    else
        load_8_bits(out, p + at, from);
}

/* Compares 64-bit integers in memory, because two large ones may become the same double. */
INLINE vl same_doubles(const vd *x, const vd *y, const char *n, const char *b, size_t at,
                       const enum cmp__source from)
{
    vl u = (vl)*x, v = (vl)*y;
    if (from == CMP__I64 || from == CMP__U64) {
        memcpy(&u, n + at * sizeof(int64_t), sizeof u);
        memcpy(&v, b + at * sizeof(int64_t), sizeof v);
    }
    return u == v;
}

INLINE void spread_doubles(struct sums *s, const unsigned nth, const vd *x, const vd *y,
                           const enum cmp__source from, const bool ext)
{
    add_products(s, nth % PARTS, x, y, from);
    add_differences(s, nth % PARTS, x, y, from, ext);
}

INLINE void spread_double_ulps(struct sums *s, const unsigned nth, const vl *x, const vl *y)
{
    const vd xd = __builtin_convertvector(*x, vd), yd = __builtin_convertvector(*y, vd);
    add_ulps(s, nth % PARTS, &xd, &yd);
}

#define ELEM              double
#define VEC               vd
#define INT               vl
#define BITS              64
#define MAGNITUDE         INT64_MAX
#define INFINITY_BITS     0x7ff0000000000000
#define EPS               0x1p-52
#define MAX_BITS          MAX_BITS_D
#define MAX_NUMBERS(a, b) (vl) MAX_D((vd)(a), (vd)(b))
#define ADD_AT_ZERO       ADD_AT_ZERO_D
#define COUNT_LESS        COUNT_LESS_D
#define LOAD              load_doubles
#define SAME              same_doubles
#define SPREAD            spread_doubles
#define SPREAD_ULPS       spread_double_ulps
#define RUN(...)          CMP_METRIC_BLOCK
#define SAME_RUN(...)     false
#define SPREAD_SAME(...)  (void)0
#define FOR_ELEM(x)       x##_whole
#include "compare/measure/metric_loop.h"

/* ---- the table -------------------------------------------------------------------- */

#include "compare/measure/metric_small.h"

#define PASS(name, elem, from, look, ext)                                                          \
    TARGET static bool name(struct cmp_facts *f, const void *n, const void *b, size_t count)       \
    {                                                                                              \
        return pass_##elem(f, n, b, count, from, look, ext);                                       \
    }
#define PASSES(name, elem, from)                                                                   \
    PASS(name, elem, from, CMP__LOOK_NONE, false)                                                  \
    PASS(name##_ext, elem, from, CMP__LOOK_NONE, true)                                             \
    PASS(name##_zeros, elem, from, CMP__LOOK_ZEROS, false)                                         \
    PASS(name##_zeros_ext, elem, from, CMP__LOOK_ZEROS, true)
/* Zeros are common among integers, so their passes always handle golden zeros. */
#define WHOLE_PASSES(name, from)                                                                   \
    PASS(name, whole, from, CMP__LOOK_ZEROS, false)                                                \
    PASS(name##_ext, whole, from, CMP__LOOK_ZEROS, true)
PASSES(f32, single, CMP__F32)
PASSES(f16, single, CMP__F16)
PASSES(bf16, single, CMP__BF16)
PASSES(e4m3, single, CMP__E4M3)
PASSES(e5m2, single, CMP__E5M2)
PASSES(f64, whole, CMP__F64)
PASSES(c64, whole, CMP__C64)
PASSES(c128, whole, CMP__C128)
WHOLE_PASSES(i64, CMP__I64)
WHOLE_PASSES(u64, CMP__U64)
WHOLE_PASSES(i32, CMP__I32)
WHOLE_PASSES(u32, CMP__U32)
WHOLE_PASSES(u16, CMP__U16)
WHOLE_PASSES(i16, CMP__I16)
WHOLE_PASSES(i8, CMP__I8)
WHOLE_PASSES(u8, CMP__U8)
WHOLE_PASSES(flag, CMP__BOOL)
PASS(f32_careful, single, CMP__F32, CMP__LOOK_SPECIAL, false)
PASS(f32_careful_ext, single, CMP__F32, CMP__LOOK_SPECIAL, true)
PASS(f64_careful, whole, CMP__F64, CMP__LOOK_SPECIAL, false)
PASS(f64_careful_ext, whole, CMP__F64, CMP__LOOK_SPECIAL, true)

#define SMALL_PASS(name, from)                                                                     \
    TARGET static bool name(struct cmp_facts *f, const void *n, const void *b,                     \
                            const struct cmp__ceiling *ceiling)                                    \
    {                                                                                              \
        return pass_small(f, n, b, ceiling, from);                                                 \
    }
SMALL_PASS(u16_block, CMP__U16)
SMALL_PASS(i16_block, CMP__I16)
SMALL_PASS(i8_block, CMP__I8)
SMALL_PASS(u8_block, CMP__U8)
SMALL_PASS(flag_block, CMP__BOOL)

TARGET static void to_single(enum cmp__source from, const void *p, float *out, size_t count)
{
    for (size_t i = 0; i < count; i += FLOATS) {
        vf value;
        if (from == CMP__F32) {
            load_floats(&value, p, i, CMP__F32);
        } else if (from == CMP__E4M3 || from == CMP__E5M2) {
            vi byte = QUARTERS((const char *)p + i), half = byte << 8;
            widen_e4m3(&byte, &value);
            if (from == CMP__E5M2)
                widen_f16(&half, &value);
        } else {
            vi bits = HALVES((const char *)p + i * sizeof(uint16_t));
            value = (vf)(bits << 16);
            if (from == CMP__F16)
                widen_f16(&bits, &value);
        }
        memcpy(out + i, &value, sizeof value);
    }
}

INLINE void floats_to_double(enum cmp__source from, const void *p, double *out, size_t count)
{
    const bool is_byte = from == CMP__E4M3 || from == CMP__E5M2;
    const size_t size = from == CMP__F32 ? sizeof(float) : is_byte ? 1 : sizeof(uint16_t);
    for (size_t i = 0; i < count; i += FLOATS) {
        float f[FLOATS];
        vf value;
        vd half[2];
        to_single(from, (const char *)p + i * size, f, FLOATS);
        memcpy(&value, f, sizeof value);
        half[0] = LOW(value);
        half[1] = HIGH(value);
        memcpy(out + i, half, sizeof half);
    }
}

TARGET static void to_double(enum cmp__source from, const void *p, double *out, size_t count)
{
    if (from < CMP__F64) {
        floats_to_double(from, p, out, count);
        return;
    }
    for (size_t i = 0; i < count; i += DOUBLES) {
        vd value;
        load_doubles(&value, p, i, from);
        memcpy(out + i, &value, sizeof value);
    }
}

#define ROW(name)                                                                                  \
    {                                                                                              \
        {name, name##_ext},                                                                        \
        {                                                                                          \
            name##_zeros, name##_zeros_ext                                                         \
        }                                                                                          \
    }
#define WHOLE_ROW(name)                                                                            \
    {                                                                                              \
        {name, name##_ext},                                                                        \
        {                                                                                          \
            name, name##_ext                                                                       \
        }                                                                                          \
    }
const struct cmp__kernel KERNEL = {
    .pass = {[CMP__F32] = ROW(f32),
             [CMP__F16] = ROW(f16),
             [CMP__BF16] = ROW(bf16),
             [CMP__E4M3] = ROW(e4m3),
             [CMP__E5M2] = ROW(e5m2),
             [CMP__F64] = ROW(f64),
             [CMP__C64] = ROW(c64),
             [CMP__C128] = ROW(c128),
             [CMP__I64] = WHOLE_ROW(i64),
             [CMP__U64] = WHOLE_ROW(u64),
             [CMP__I32] = WHOLE_ROW(i32),
             [CMP__U32] = WHOLE_ROW(u32),
             [CMP__U16] = WHOLE_ROW(u16),
             [CMP__I16] = WHOLE_ROW(i16),
             [CMP__I8] = WHOLE_ROW(i8),
             [CMP__U8] = WHOLE_ROW(u8),
             [CMP__BOOL] = WHOLE_ROW(flag)},
    .single_careful = {f32_careful, f32_careful_ext},
    .double_careful = {f64_careful, f64_careful_ext},
    .small = {u16_block, i16_block, i8_block, u8_block, flag_block},
    .to_single = to_single,
    .to_double = to_double,
};
