/* SPDX-License-Identifier: MIT
 *
 * dtype: the table of element types, their spellings, and plain conversion to double. These
 * conversions define the value of every type: the vector kernels of stats must agree with them bit
 * for bit.
 */
#include "probe/base/dtype.h"
#include "probe/base/num.h"

#include <math.h>
#include <pthread.h>

static const struct {
    uint8_t size, kind;
    const char *torch, *mindspore, *numpy;
} types[MS_DT_MAX] = {
#define MS_DTYPE_ROW(name, size, kind, torch, ms, np)                                              \
    [MS_DT_##name] = {size, MS_DTK_##kind, torch, ms, np},
    MS_DTYPE_MAP(MS_DTYPE_ROW)
#undef MS_DTYPE_ROW
};

static const char unknown[] = "unknown";

size_t ms_dtype_size(enum ms_dtype t)
{
    return (unsigned)t < MS_DT_MAX ? types[t].size : 0;
}

enum ms_dtype_kind ms_dtype_kind(enum ms_dtype t)
{
    return (unsigned)t < MS_DT_MAX ? (enum ms_dtype_kind)types[t].kind : MS_DTK_NONE;
}

const char *ms_dtype_torch(enum ms_dtype t)
{
    return ms_dtype_size(t) != 0 ? types[t].torch : unknown;
}

const char *ms_dtype_mindspore(enum ms_dtype t)
{
    return ms_dtype_size(t) != 0 && types[t].mindspore != NULL ? types[t].mindspore : unknown;
}

/* ---- names in ----------------------------------------------------------- */

/* Aliases in torch. They are accepted only behind "torch.", because a bare "int" or "float" is the
 * Python type of a scalar. */
static const struct {
    const char *name;
    enum ms_dtype t;
} torch_aliases[] = {
    {"half", MS_DT_F16},  {"float", MS_DT_F32},  {"double", MS_DT_F64},
    {"short", MS_DT_I16}, {"int", MS_DT_I32},    {"long", MS_DT_I64},
    {"chalf", MS_DT_C32}, {"cfloat", MS_DT_C64}, {"cdouble", MS_DT_C128},
};

static enum ms_dtype torch_alias(struct ms_str name)
{
    for (size_t i = 0; i < sizeof torch_aliases / sizeof *torch_aliases; i++) {
        if (ms_str_is(name, torch_aliases[i].name))
            return torch_aliases[i].t;
    }
    return MS_DT_NONE;
}

/* Compares a slice with a word. Most words differ in their first letter, which is compared without
 * a call. */
static bool is_word(struct ms_str s, const char *word)
{
    return word != NULL && s.n != 0 && *s.p == *word && ms_str_is(s, word);
}

/* Recognises the most frequent types without a search through all spellings. */
static enum ms_dtype usual_type(struct ms_str name)
{
    return ms_str_is(name, "float32")          ? MS_DT_F32
           : ms_str_is(name, "torch.float32")  ? MS_DT_F32
           : ms_str_is(name, "torch.bfloat16") ? MS_DT_BF16
           : ms_str_is(name, "torch.float16")  ? MS_DT_F16
           : ms_str_is(name, "torch.int64")    ? MS_DT_I64
           : ms_str_is(name, "Float32")        ? MS_DT_F32
           : ms_str_is(name, "BFloat16")       ? MS_DT_BF16
                                               : MS_DT_NONE;
}

enum ms_dtype ms_dtype_parse(struct ms_str name)
{
    const enum ms_dtype fast = usual_type(name);
    if (fast != MS_DT_NONE)
        return fast;
    const bool torch = ms_str_skip(&name, "torch.");
    if (!torch && !ms_str_skip(&name, "mindspore."))
        ms_str_skip(&name, "numpy.");
    for (int t = MS_DT_NONE + 1; t < MS_DT_MAX; t++) {
        if (is_word(name, types[t].torch) || is_word(name, types[t].mindspore))
            return (enum ms_dtype)t;
    }
    if (!torch && ms_str_is(name, "bool_"))
        return MS_DT_BOOL;
    return torch ? torch_alias(name) : MS_DT_NONE;
}

/* ---- numpy -------------------------------------------------------------- */

const char *ms_dtype_numpy(enum ms_dtype t)
{
    static const char *const descr[MS_DT_MAX] = {
        [MS_DT_BOOL] = "|b1", [MS_DT_U8] = "|u1",   [MS_DT_I8] = "|i1",  [MS_DT_U16] = "<u2",
        [MS_DT_I16] = "<i2",  [MS_DT_U32] = "<u4",  [MS_DT_I32] = "<i4", [MS_DT_U64] = "<u8",
        [MS_DT_I64] = "<i8",  [MS_DT_F16] = "<f2",  [MS_DT_F32] = "<f4", [MS_DT_F64] = "<f8",
        [MS_DT_C64] = "<c8",  [MS_DT_C128] = "<c16"};
    return (unsigned)t < MS_DT_MAX ? descr[t] : NULL;
}

enum ms_dtype ms_dtype_of_numpy(struct ms_str descr, bool *swap)
{
    *swap = false;
    if (descr.n < 3 || memchr("<>=|", descr.p[0], 4) == NULL)
        return MS_DT_NONE;
    const char order = descr.p[0];
    const struct ms_str code = ms_str_sub(descr, 1, descr.n);
    for (int t = MS_DT_NONE + 1; t < MS_DT_MAX; t++) {
        if (types[t].numpy == NULL || !ms_str_is(code, types[t].numpy))
            continue;
        /* '|' means "no byte order", which is valid for single bytes only. */
        if (order == '|' && types[t].size > 1)
            return MS_DT_NONE;
        *swap = order == '>' && types[t].size > 1;
        return (enum ms_dtype)t;
    }
    return MS_DT_NONE;
}

/* ---- values ------------------------------------------------------------- */

static float bits_f32(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint16_t load_u16(const char *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* 2^e of a normal double. */
static double pow2(int e)
{
    return ms_f64_of_bits((uint64_t)(e + 1023) << 52);
}

/* Converts a float16. Subnormals are made from their integer, not by scaling a subnormal float, so
 * that a process that runs with denormals switched off reads the same values. */
static float f16_value(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = (h >> 10) & 31, fraction = h & 0x3ff;
    if (exponent == 0) {
        const float v = (float)fraction * 0x1p-24f;
        return sign != 0 ? -v : v;
    }
    const uint32_t e = exponent == 31 ? 255 : exponent + 127 - 15;
    return bits_f32(sign | e << 23 | fraction << 13);
}

static float bf16_value(uint16_t h)
{
    return bits_f32((uint32_t)h << 16);
}

/* Converts a byte of a sign bit, an exponent and `fraction_bits` bits of fraction. The caller
 * handles special codes. */
static double f8_value(uint8_t b, int fraction_bits, int bias)
{
    const int magnitude = b & 0x7f;
    const int exponent = magnitude >> fraction_bits;
    const int fraction = magnitude & ((1 << fraction_bits) - 1);
    const int whole = exponent != 0 ? fraction | 1 << fraction_bits : fraction;
    const double v = whole * pow2((exponent != 0 ? exponent : 1) - bias - fraction_bits);
    return (b & 0x80) != 0 ? -v : v;
}

static double f8_decode(enum ms_dtype t, uint8_t b)
{
    switch (t) {
    case MS_DT_F8E5M2: /* the upper half of a float16 */
        return (double)f16_value((uint16_t)(b << 8));
    case MS_DT_F8E4M3: /* no infinity; all ones is NaN */
        return (b & 0x7f) == 0x7f ? (double)NAN : f8_value(b, 3, 7);
    case MS_DT_F8E5M2Z: /* unsigned zero: its sign bit alone is the only NaN */
        return b == 0x80 ? (double)NAN : f8_value(b, 2, 16);
    case MS_DT_F8E4M3Z:
        return b == 0x80 ? (double)NAN : f8_value(b, 3, 8);
    default: /* F8E8M0: a power of two, no sign */
        return b == 0xff ? (double)NAN : pow2(b - 127);
    }
}

enum { F8_FIRST = MS_DT_F8E5M2, F8_TYPES = MS_DT_F8E8M0 - MS_DT_F8E5M2 + 1 };
static double f8_values[F8_TYPES][256];
static pthread_once_t f8_once = PTHREAD_ONCE_INIT;

static void f8_fill(void)
{
    for (unsigned t = 0; t < F8_TYPES; t++) {
        for (unsigned b = 0; b < 256; b++)
            f8_values[t][b] = f8_decode((enum ms_dtype)(F8_FIRST + t), (uint8_t)b);
    }
}

static void f8_to_f64(enum ms_dtype t, const uint8_t *p, size_t n, double *out)
{
    pthread_once(&f8_once, f8_fill);
    const double *const value = f8_values[t - F8_FIRST];
    for (size_t i = 0; i < n; i++)
        out[i] = value[p[i]];
}

/* Returns the absolute value of a complex number. As in hypot, an infinite part makes it infinite
 * whatever the other part is. */
static double abs_of_f32_parts(float re, float im)
{
    if (isinf(re) || isinf(im))
        return (double)INFINITY;
    const double r = (double)re, i = (double)im;
    /* The squares are exact in double and cannot overflow, so only the sum and the root round. */
    const double rr = r * r, ii = i * i;
    return sqrt(rr + ii);
}

/* One loop per type. The loops differ only in the element type and in the expression that gives the
 * value of v. */
#define CONVERT(type, value)                                                                       \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, in + i * sizeof v, sizeof v);                                                   \
        out[i] = (double)(value);                                                                  \
    }                                                                                              \
    break

static void complex_to_f64(enum ms_dtype t, const char *in, size_t n, double *out)
{
    struct pair32 {
        float re, im;
    };
    struct pair64 {
        double re, im;
    };
    switch (t) {
    case MS_DT_C32:
        for (size_t i = 0; i < n; i++)
            out[i] = abs_of_f32_parts(f16_value(load_u16(in + i * 4)),
                                      f16_value(load_u16(in + i * 4 + 2)));
        break;
    case MS_DT_C64:
        CONVERT(struct pair32, abs_of_f32_parts(v.re, v.im));
    default:
        CONVERT(struct pair64, hypot(v.re, v.im));
    }
}

void ms_dtype_to_f64(enum ms_dtype t, const void *p, size_t n, double *out)
{
    const char *in = p;
    switch (t) {
    case MS_DT_BOOL:
        CONVERT(uint8_t, v != 0);
    case MS_DT_U8:
        CONVERT(uint8_t, v);
    case MS_DT_I8:
        CONVERT(int8_t, v);
    case MS_DT_U16:
        CONVERT(uint16_t, v);
    case MS_DT_I16:
        CONVERT(int16_t, v);
    case MS_DT_U32:
        CONVERT(uint32_t, v);
    case MS_DT_I32:
        CONVERT(int32_t, v);
    case MS_DT_U64:
        CONVERT(uint64_t, v);
    case MS_DT_I64:
        CONVERT(int64_t, v);
    case MS_DT_F16:
        CONVERT(uint16_t, f16_value(v));
    case MS_DT_BF16:
        CONVERT(uint16_t, bf16_value(v));
    case MS_DT_F32:
        CONVERT(float, v);
    case MS_DT_F64:
        CONVERT(double, v);
    case MS_DT_F8E5M2:
    case MS_DT_F8E4M3:
    case MS_DT_F8E5M2Z:
    case MS_DT_F8E4M3Z:
    case MS_DT_F8E8M0:
        f8_to_f64(t, p, n, out);
        break;
    case MS_DT_C32:
    case MS_DT_C64:
    case MS_DT_C128:
        complex_to_f64(t, in, n, out);
        break;
    case MS_DT_NONE:
    case MS_DT_MAX:
        break;
    }
}

enum ms_dtype ms_dtype_part(enum ms_dtype t)
{
    return t == MS_DT_C32    ? MS_DT_F16
           : t == MS_DT_C64  ? MS_DT_F32
           : t == MS_DT_C128 ? MS_DT_F64
                             : MS_DT_NONE;
}

double ms_dtype_unit(enum ms_dtype t)
{
    switch (t) {
    case MS_DT_F64:
        return 0x1p-53;
    case MS_DT_F32:
        return 0x1p-24;
    case MS_DT_F16:
        return 0x1p-11;
    case MS_DT_BF16:
        return 0x1p-8;
    case MS_DT_F8E4M3:
    case MS_DT_F8E4M3Z:
        return 0x1p-4;
    case MS_DT_F8E5M2:
    case MS_DT_F8E5M2Z:
        return 0x1p-3;
    default:
        return 0;
    }
}

double ms_dtype_round(enum ms_dtype t, double v)
{
    if (ms_dtype_part(t) != MS_DT_NONE)
        t = ms_dtype_part(t);
    int bits = t == MS_DT_F16 ? 10 : 7; /* of the mantissa */
    int least = t == MS_DT_F16 ? -14 : -126;
    double largest = t == MS_DT_F16 ? 65504.0 : 0x1.FEp127;
    int e;
    if (t == MS_DT_F32)
        return (double)(float)v;
    if ((t != MS_DT_F16 && t != MS_DT_BF16) || v == 0 || !isfinite(v))
        return v;
    frexp(v, &e);
    double step = ldexp(1.0, (e - 1 > least ? e - 1 : least) - bits);
    double r = nearbyint(v / step) * step;
    return fabs(r) <= largest ? r : copysign(INFINITY, v);
}
