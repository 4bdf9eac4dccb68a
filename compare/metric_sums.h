/* SPDX-License-Identifier: MIT
 *
 * metric_sums: the part of the pass that is done in double, four lanes at a time.
 * ADD(p, x, y) adds vectors of doubles x and y to lanes p (0: the first four, 1: the
 * others); ADD_EXT and ULP do so for the extended columns.
 */
#ifndef COMPARE_METRIC_SUMS_H
#define COMPARE_METRIC_SUMS_H

#define ABS4(v) ((v4d)((v4l)(v)&INT64_MAX))
#define RAISE(max, v)                                                                              \
    {                                                                                              \
        v4l larger = (v) > (max);                                                                  \
        (max) = (v4d)((larger & (v4l)(v)) | (~larger & (v4l)(max)));                               \
    }
#define ADD(p, x, y)                                                                               \
    {                                                                                              \
        v4d xd = (x), yd = (y), d = xd - yd, ad = ABS4(d);                                         \
        nn##p += xd * xd;                                                                          \
        bb##p += yd * yd;                                                                          \
        nb##p += xd * yd;                                                                          \
        dd##p += d * d;                                                                            \
        RAISE(max_abs##p, ad)                                                                      \
        ADD_EXT(p, d, ad)                                                                          \
    }
/* Distance on the number line, on which negative numbers count down. */
#define ULP(p, xi, yi)                                                                             \
    {                                                                                              \
        v4d ulp = ABS4((xi) - (yi));                                                               \
        sum_ulp##p += ulp;                                                                         \
        RAISE(max_ulp##p, ulp)                                                                     \
    }
#define ON_LINE(bits) ((bits) ^ (((bits) >> (BITS - 1)) & MAGNITUDE))

/* Lanes are joined in one order, whatever the vectors are made of. */
#define SUM(v)        (((v##0 + v##1)[0] + (v##0 + v##1)[2]) + ((v##0 + v##1)[1] + (v##0 + v##1)[3]))
#define LARGEST(m, v) larger_of(larger_of(m, largest_lane(&v##0)), largest_lane(&v##1))

#define GATHER(f)                                                                                  \
    f->nn += SUM(nn);                                                                              \
    f->bb += SUM(bb);                                                                              \
    f->nb += SUM(nb);                                                                              \
    f->dd += SUM(dd);                                                                              \
    f->max_abs = LARGEST(f->max_abs, max_abs);                                                     \
    f->max_rel = larger_of(f->max_rel, MOST(&max_rel));                                            \
    f->thousandth += TOTAL(&below1);                                                               \
    f->five += TOTAL(&below5);
#define GATHER_SPECIAL(f)                                                                          \
    f->special += TOTAL(&special);                                                                 \
    f->mask_diff += TOTAL(&mask_diff);                                                             \
    f->sign_diff += TOTAL(&sign_diff);
#define GATHER_MORE(f)                                                                             \
    f->sum_d += SUM(sum_d);                                                                        \
    f->sum_abs_d += SUM(sum_abs);                                                                  \
    f->sum_ulp += SUM(sum_ulp);                                                                    \
    f->max_ulp = LARGEST(f->max_ulp, max_ulp);                                                     \
    f->bit_equal += TOTAL(&equal);

#endif
