/* SPDX-License-Identifier: MIT
 *
 * align_value: how alike two tensors are by their statistics.
 */
#include "compare/align_int.h"

#include <math.h>

static float larger(float a, float b)
{
    return a > b ? a : b;
}

/* Whole numbers and truth values have no norm. */
static float range_distance(const struct align__value *a, const struct align__value *b, double peak)
{
    double d = fabs(a->stat[ALIGN__MAX] - b->stat[ALIGN__MAX]) +
               fabs(a->stat[ALIGN__MIN] - b->stat[ALIGN__MIN]);
    return peak > 0 ? (float)(d / peak) : 0;
}

static double peak_of(const struct align__value *v)
{
    return fmax(fabs(v->stat[ALIGN__MAX]), fabs(v->stat[ALIGN__MIN]));
}

float align__distance(const struct align__value *a, const struct align__value *b)
{
    enum { ONE_IS_ZERO = 9 };
    if (!a->known || !b->known || a->n != b->n || a->cls != b->cls)
        return -1;
    if (a->digest != 0 || b->digest != 0)
        return a->digest == b->digest ? 0 : -1;
    double peak = fmax(peak_of(a), peak_of(b));
    if (a->cls != ALIGN__FLOAT)
        return range_distance(a, b, peak);
    double na = a->stat[ALIGN__NORM];
    double nb = b->stat[ALIGN__NORM];
    if (na <= 0 || nb <= 0)
        return na <= 0 && nb <= 0 ? 0 : ONE_IS_ZERO;
    /* Means are near 0: their difference counts against the size of the values. */
    double rms = sqrt(na * nb / (double)a->n);
    float d = fabsf(a->ln_norm - b->ln_norm);
    d = larger(d, (float)(fabs(a->stat[ALIGN__MAX] - b->stat[ALIGN__MAX]) / peak));
    d = larger(d, (float)(fabs(a->stat[ALIGN__MIN] - b->stat[ALIGN__MIN]) / peak));
    return larger(d, (float)(fabs(a->stat[ALIGN__MEAN] - b->stat[ALIGN__MEAN]) / rms));
}

float align__likeness(float distance)
{
    /* Differences of 10 to 30 % behind a fault still say something; 1 / ln(1 + 1 / 0.02). */
    const float scale = 0.02F;
    const float norm = 0.25434F;
    if (!(distance < 1))
        return 0;
    return distance < 0 ? 0 : 1 - logf(1 + distance / scale) * norm;
}
