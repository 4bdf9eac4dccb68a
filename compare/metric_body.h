/* SPDX-License-Identifier: MIT
 *
 * metric_body: the inner loops of metric.c, included once for each instruction set.  The includer defines
 *
 *     NAME(x)  x with a suffix for the instruction set
 *     TARGET   the attribute that allows it
 *
 * The loops are written with the compiler's vectors of eight elements, which it
 * splits to whatever the instruction set has.
 */

/* ---- small floats to float32, n a multiple of eight ------------------------ */

TARGET static void NAME(widen_bf16)(const void *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        v8h half;
        memcpy(&half, (const char *)from + 2 * i, sizeof half);
        v8i bits = __builtin_convertvector(half, v8i) << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

TARGET static void NAME(widen_f16)(const void *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        v8h half;
        memcpy(&half, (const char *)from + 2 * i, sizeof half);
        v8i bits = __builtin_convertvector(half, v8i);
        v8i magnitude = (bits & 0x7fff) << 13;
        v8i special = magnitude >= 0x0f800000;
        /* the scale also brings denormal numbers into place */
        v8i value = (v8i)((v8f)magnitude * 0x1p112f);
        value |= (bits & 0x8000) << 16 | (special & 0x7f800000);
        value = (special & ((magnitude & 0x007fffff) | (value & ~0x007fffff))) | (~special & value);
        memcpy(to + i, &value, sizeof value);
    }
}

/* ---- float32 ---------------------------------------------------------------- */

#define BODY          NAME(single)
#define ELEM          float
#define VEC           v8f
#define INT           v8i
#define BITS          32
#define MAGNITUDE     INT32_MAX
#define INFINITY_BITS 0x7f800000
#define EPS           0x1p-23f
#include "compare/metric_loop.h"
#undef BODY
#undef ELEM
#undef VEC
#undef INT
#undef BITS
#undef MAGNITUDE
#undef INFINITY_BITS
#undef EPS

/* ---- double ----------------------------------------------------------------- */

#define BODY          NAME(whole)
#define ELEM          double
#define VEC           v8d
#define INT           v8l
#define BITS          64
#define MAGNITUDE     INT64_MAX
#define INFINITY_BITS 0x7ff0000000000000
#define EPS           0x1p-52
#include "compare/metric_loop.h"
#undef BODY
#undef ELEM
#undef VEC
#undef INT
#undef BITS
#undef MAGNITUDE
#undef INFINITY_BITS
#undef EPS
