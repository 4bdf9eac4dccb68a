/* SPDX-License-Identifier: MIT
 *
 * metric_body: the inner loops of metric.c, included once for each instruction set.
 * The includer defines
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

#define ELEM          float
#define VEC           v8f
#define INT           v8i
#define UNSIGNED      v8u
#define BITS          32
#define MAGNITUDE     INT32_MAX
#define INFINITY_BITS 0x7f800000
#define EPS           0x1p-23f
#define TOTAL         total8
#define HAS_NEGATIVE  has_negative8
#define MOST          most8
#define SPREAD_SUMS(x, y)                                                                          \
    ADD(0, WIDEN(FIRST(x)), WIDEN(FIRST(y)))                                                       \
    ADD(1, WIDEN(LAST(x)), WIDEN(LAST(y)))
#define SPREAD_ULPS(xi, yi)                                                                        \
    {                                                                                              \
        INT xo = ON_LINE(xi), yo = ON_LINE(yi);                                                    \
        ULP(0, WIDEN(FIRST(xo)), WIDEN(FIRST(yo)))                                                 \
        ULP(1, WIDEN(LAST(xo)), WIDEN(LAST(yo)))                                                   \
    }
#define FULL 0
#define GATHER_FULL(f)
#define EXT 0
#define GATHER_EXT(f)
#define BODY NAME(single)
#define ADD_EXT(p, d, ad)
#define SPREAD SPREAD_SUMS
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#define FULL 0
#define GATHER_FULL(f)
#define EXT          1
#define GATHER_EXT   GATHER_MORE
#define BODY         NAME(single_ext)
#define ADD_EXT      ADD_MORE
#define SPREAD(x, y) SPREAD_SUMS(x, y) SPREAD_ULPS((INT)(x), (INT)(y))
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#define FULL        1
#define GATHER_FULL GATHER_SPECIAL
#define EXT         0
#define GATHER_EXT(f)
#define BODY NAME(single_full)
#define ADD_EXT(p, d, ad)
#define SPREAD SPREAD_SUMS
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#define FULL         1
#define GATHER_FULL  GATHER_SPECIAL
#define EXT          1
#define GATHER_EXT   GATHER_MORE
#define BODY         NAME(single_full_ext)
#define ADD_EXT      ADD_MORE
#define SPREAD(x, y) SPREAD_SUMS(x, y) SPREAD_ULPS((INT)(x), (INT)(y))
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#undef ELEM
#undef VEC
#undef INT
#undef UNSIGNED
#undef BITS
#undef MAGNITUDE
#undef INFINITY_BITS
#undef EPS
#undef TOTAL
#undef HAS_NEGATIVE
#undef MOST
#undef SPREAD_SUMS
#undef SPREAD_ULPS

/* ---- double ----------------------------------------------------------------- */

/* Four of them make a vector: the halves of eight go to their own lanes. */
#define ELEM          double
#define VEC           v4d
#define INT           v4l
#define UNSIGNED      v4u
#define BITS          64
#define MAGNITUDE     INT64_MAX
#define INFINITY_BITS 0x7ff0000000000000
#define EPS           0x1p-52
#define TOTAL         total4
#define HAS_NEGATIVE  has_negative4
#define MOST          largest_lane
#define SPREAD_SUMS(x, y)                                                                          \
    if (k == i)                                                                                    \
        ADD(0, x, y)                                                                               \
    else                                                                                           \
        ADD(1, x, y)
#define SPREAD_ULPS(xi, yi)                                                                        \
    {                                                                                              \
        INT xo = ON_LINE(xi), yo = ON_LINE(yi);                                                    \
        if (k == i)                                                                                \
            ULP(0, WIDEN(xo), WIDEN(yo))                                                           \
        else                                                                                       \
            ULP(1, WIDEN(xo), WIDEN(yo))                                                           \
    }
#define FULL 0
#define GATHER_FULL(f)
#define EXT 0
#define GATHER_EXT(f)
#define BODY NAME(whole)
#define ADD_EXT(p, d, ad)
#define SPREAD SPREAD_SUMS
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#define FULL 0
#define GATHER_FULL(f)
#define EXT          1
#define GATHER_EXT   GATHER_MORE
#define BODY         NAME(whole_ext)
#define ADD_EXT      ADD_MORE
#define SPREAD(x, y) SPREAD_SUMS(x, y) SPREAD_ULPS((INT)(x), (INT)(y))
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#define FULL        1
#define GATHER_FULL GATHER_SPECIAL
#define EXT         0
#define GATHER_EXT(f)
#define BODY NAME(whole_full)
#define ADD_EXT(p, d, ad)
#define SPREAD SPREAD_SUMS
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#define FULL         1
#define GATHER_FULL  GATHER_SPECIAL
#define EXT          1
#define GATHER_EXT   GATHER_MORE
#define BODY         NAME(whole_full_ext)
#define ADD_EXT      ADD_MORE
#define SPREAD(x, y) SPREAD_SUMS(x, y) SPREAD_ULPS((INT)(x), (INT)(y))
#include "compare/metric_loop.h"
#undef FULL
#undef GATHER_FULL
#undef GATHER_EXT
#undef EXT
#undef BODY
#undef ADD_EXT
#undef SPREAD
#undef ELEM
#undef VEC
#undef INT
#undef UNSIGNED
#undef BITS
#undef MAGNITUDE
#undef INFINITY_BITS
#undef EPS
#undef TOTAL
#undef HAS_NEGATIVE
#undef MOST
#undef SPREAD_SUMS
#undef SPREAD_ULPS
