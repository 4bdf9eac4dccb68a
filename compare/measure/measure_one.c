/* SPDX-License-Identifier: MIT
 *
 * measure_one: the difference of two single elements, computed as numpy 1 does.
 *
 * The type of a difference is the smallest that holds both types: two float16 give a
 * float16, a float32 and an int32 give a double, two uint8 give a uint8 that wraps around.
 */
#include "compare/measure/measure_one.h"

#include <math.h>
#include <stdlib.h>

/* Returns the width of the float that holds every value of the type; 0 when any float does. */
static unsigned float_bits(enum ms_dtype t)
{
    unsigned bits = (unsigned)ms_dtype_size(t) * 8;
    switch (ms_dtype_kind(t)) {
    case MS_DTK_BOOL:
        return 0;
    case MS_DTK_INT:
    case MS_DTK_UINT:
        return bits < 64 ? bits * 2 : 64;
    default:
        return t == MS_DT_F16 ? 16
               : bits <= 32   ? 32
                              : 64; /* other floats of 8 and 16 bits are read as float32 */
    }
}

static double to_half(double x)
{
    if (x == 0 || !isfinite(x))
        return x;
    int e = ilogb(x);
    double unit = ldexp(1, (e < -14 ? -14 : e) - 10);
    double rounded = rint(x / unit) * unit;
    return fabs(rounded) < 65536 ? rounded : copysign(HUGE_VAL, x);
}

/* Returns the width of the smallest integer type for both, negative when signed; 0 when only a
 * float fits. */
static int common_width(enum ms_dtype a, enum ms_dtype b)
{
    int wa = (int)ms_dtype_size(a) * 8, wb = (int)ms_dtype_size(b) * 8;
    bool sa = ms_dtype_kind(a) == MS_DTK_INT, sb = ms_dtype_kind(b) == MS_DTK_INT;
    if (ms_dtype_kind(b) == MS_DTK_BOOL)
        return sa ? -wa : wa;
    if (sa == sb)
        return (sa ? -1 : 1) * (wa > wb ? wa : wb);
    int is = sa ? wa : wb, un = sa ? wb : wa;
    return is > un ? -is : un < 64 ? -2 * un : 0;
}

/* Returns the magnitude of a difference that wrapped around in an integer of this width. The most
 * negative number has no positive counterpart and stays negative. */
static double wrap_difference(double d, int width)
{
    double span = ldexp(1, abs(width)), top = span / 2;
    if (width > 0)
        return d < 0 ? d + span : d;
    double far = fabs(d);
    return far < top ? far : far > top ? span - far : -top;
}

double cmp__numpy_apart(enum ms_dtype tn, double n, enum ms_dtype tb, double b)
{
    if (ms_dtype_kind(tn) == MS_DTK_BOOL) /* numpy makes both doubles in this case */
        return fabs(n - b);
    if (ms_dtype_is_whole(tn) && ms_dtype_is_whole(tb)) {
        int width = common_width(tn, tb);
        return width != 0 ? wrap_difference(n - b, width) : fabs(n - b);
    }
    unsigned x = float_bits(tn), y = float_bits(tb), bits = x > y ? x : y;
    if (bits == 16)
        return fabs(to_half(n - b));
    return bits == 32 ? (double)fabsf((float)n - (float)b) : fabs(n - b);
}

double cmp__numpy_relative(enum ms_dtype tn, double n, enum ms_dtype tb, double b)
{
    double step = b == 0 ? 0x1p-52 : 0; /* adding it to a float16 would have no effect */
    double above = tn == MS_DT_F16 ? n : n + step, below = tb == MS_DT_F16 ? b : b + step;
    if (tn == MS_DT_F16 && tb == MS_DT_F16)
        return fabs(to_half(to_half(above - below) / below));
    if (ms_dtype_is_whole(tn) || ms_dtype_is_whole(tb) || float_bits(tn) == 64 ||
        float_bits(tb) == 64)
        return fabs((above - below) / below);
    return (double)fabsf(((float)above - (float)below) / (float)below);
}
