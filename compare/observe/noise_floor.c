/* SPDX-License-Identifier: MIT
 *
 * noise_floor: a sliding percentile; each search starts at the bin of the last result.
 */
#include "compare/observe/noise_floor.h"
#include "probe/base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { SHIFT = 18 }; /* keeps sign, exponent and five bits of a float */
/* 0.5 finds 81 of 83 faults and flags 3 of 90 clean pairs; 0.95 finds 82 and flags none. */
static const double share = 0.95;

static uint16_t bin_of(float e)
{
    uint32_t bits;
    memcpy(&bits, &e, sizeof bits);
    return e > 0 ? (uint16_t)(bits >> SHIFT) : 0;
}

/* Returns the middle of a bin. */
static float value_of(size_t bin)
{
    uint32_t bits = (uint32_t)bin << SHIFT | 1U << (SHIFT - 1);
    float e;
    memcpy(&e, &bits, sizeof e);
    return bin != 0 ? e : 0;
}

static void count_value(struct observe__floor *f, uint16_t bin, int by)
{
    f->count[bin] = (uint16_t)(f->count[bin] + by);
    if (bin < f->bin)
        f->before = (size_t)((long)f->before + by);
}

void observe__floor_add(struct observe__floor *f, float e)
{
    uint16_t bin = bin_of(e);
    if (f->n == SOURCE_FLOOR_WINDOW)
        count_value(f, f->ring[f->next], -1);
    else
        f->n++;
    count_value(f, bin, 1);
    f->seen++;
    ms_assert(f->n <= SOURCE_FLOOR_WINDOW && f->before <= f->n);
    f->ring[f->next] = bin;
    f->next = (f->next + 1) % SOURCE_FLOOR_WINDOW;
}

float observe__floor_now(struct observe__floor *f)
{
    if (f->n == 0)
        return 0;
    size_t rank = (size_t)(share * (double)(f->n - 1) + 0.5);
    while (f->before > rank)
        f->before -= f->count[--f->bin];
    while (f->before + f->count[f->bin] <= rank)
        f->before += f->count[f->bin++];
    ms_assert(f->bin < SOURCE_FLOOR_BINS && f->before <= rank);
    return value_of(f->bin);
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

float observe__quantile(float *x, size_t n, double q)
{
    if (n == 0)
        return 0;
    ms_assert(q >= 0 && q <= 1);
    qsort(x, n, sizeof *x, by_size);
    double at = q * (double)(n - 1);
    size_t lo = (size_t)at, hi = lo + 1 < n ? lo + 1 : lo;
    return x[lo] + (float)(at - (double)lo) * (x[hi] - x[lo]);
}

float observe__lower(float *x, size_t n, double q)
{
    if (n == 0)
        return 0;
    ms_assert(q >= 0 && q <= 1);
    qsort(x, n, sizeof *x, by_size);
    return x[(size_t)(q * (double)(n - 1))];
}
