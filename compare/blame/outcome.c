/* SPDX-License-Identifier: MIT
 *
 * outcome: distances of elements from their exact values.
 */
#include "compare/blame/outcome.h"

#include <math.h>

/* Exponent of the smallest normal number and bits of the mantissa of a type. */
struct format {
    int least, bits;
    double largest;
};

static struct format format_of(enum ms_dtype type)
{
    switch (type) {
    case MS_DT_F16:
        return (struct format){-14, 10, 65504};
    case MS_DT_BF16:
        return (struct format){-126, 7, 0x1.FEp127};
    case MS_DT_F32:
        return (struct format){-126, 23, 0x1.FFFFFEp127};
    case MS_DT_F64:
        return (struct format){-1022, 52, INFINITY};
    case MS_DT_F8E4M3:
        return (struct format){-6, 3, 448};
    case MS_DT_F8E5M2:
        return (struct format){-14, 2, 57344};
    default:
        return (struct format){0, 0, INFINITY};
    }
}

double blame_largest(enum ms_dtype type)
{
    return format_of(type).largest;
}

double blame_ulp(enum ms_dtype type, double v)
{
    const struct format f = format_of(type);
    int e;
    if (f.bits == 0)
        return 1;
    if (!isfinite(v))
        return ldexp(1.0, f.least - f.bits);
    frexp(v, &e);
    return ldexp(1.0, (e - 1 > f.least && v != 0 ? e - 1 : f.least) - f.bits);
}

/* Distance in bounds of a pair of which one is not finite; -1: nothing can be said. */
static double judge_special(enum ms_dtype type, double recorded, double exact, double allowed)
{
    const double largest = blame_largest(type);
    if (isnan(exact))
        return isnan(recorded) ? 0 : -1;
    if (isnan(recorded))
        return INFINITY;
    if (recorded == exact)
        return 0;
    if (isinf(recorded)) /* overflow is right where the exact value may round to infinity */
        return isfinite(exact) && signbit(recorded) == signbit(exact) &&
                       fabs(exact) + allowed > largest
                   ? 0
                   : INFINITY;
    return INFINITY;
}

/* Error that an element may have. */
static double allowed_of(enum ms_dtype type, double exact, double error)
{
    const struct format f = format_of(type);
    const double ulp = blame_ulp(type, exact);
    if (f.bits == 0)
        return error;
    if (error == 0)
        return 0.5 * ulp * (1 + 0x1p-20);
    /* Numbers below the smallest normal one may be flushed to zero. */
    return BLAME_SAFETY * error + ulp + ldexp(1.0, f.least);
}

static double ratio_of(enum ms_dtype type, double recorded, double exact, double allowed)
{
    const double largest = blame_largest(type), d = fabs(recorded - exact);
    if (!isfinite(recorded) || !isfinite(exact))
        return judge_special(type, recorded, exact, allowed);
    /* The exact value overflows, so the recorded one has to be infinite. */
    if (fabs(exact) - allowed >= largest + 0.5 * blame_ulp(type, largest))
        return INFINITY;
    if (d == 0)
        return 0;
    return allowed > 0 ? d / allowed : INFINITY;
}

struct sums {
    double ulps, squares, exact_squares, ratios;
    size_t finite;
};

static void add_distance(struct blame_outcome *o, struct sums *s, enum ms_dtype type,
                         double recorded, double exact)
{
    if (!isfinite(recorded) || !isfinite(exact))
        return;
    const double d = fabs(recorded - exact), ulps = d / blame_ulp(type, exact);
    s->finite++;
    s->ulps += ulps;
    s->squares += d * d;
    s->exact_squares += exact * exact;
    o->max_ulp = fmax(o->max_ulp, ulps);
    if (d != 0)
        o->max_rel = fmax(o->max_rel, exact != 0 ? d / fabs(exact) : INFINITY);
}

void blame_measure(struct blame_outcome *o, enum ms_dtype type, const double *recorded,
                   const double *exact, const double *errors, size_t n)
{
    struct sums s = {0};
    *o = (struct blame_outcome){.n = n};
    for (size_t i = 0; i < n; i++) {
        const double allowed = allowed_of(type, exact[i], errors != NULL ? errors[i] : 0);
        const double ratio = ratio_of(type, recorded[i], exact[i], allowed);
        add_distance(o, &s, type, recorded[i], exact[i]);
        o->unclear += ratio < 0;
        o->beyond += ratio > 1;
        s.ratios += isfinite(ratio) && ratio > 0 ? ratio * ratio : 0;
        if (ratio > o->worst || i == 0) {
            o->worst = fmax(ratio, 0);
            o->worst_at = i;
            o->recorded = recorded[i];
            o->exact = exact[i];
            o->allowed = allowed;
        }
    }
    o->mean_ulp = s.finite != 0 ? s.ulps / (double)s.finite : 0;
    o->rel_l2 = s.exact_squares > 0 ? sqrt(s.squares / s.exact_squares)
                : s.squares > 0     ? INFINITY
                                    : 0;
    o->typical = s.finite != 0 ? sqrt(s.ratios / (double)s.finite) : 0;
}
