/* SPDX-License-Identifier: MIT
 *
 * source_floor: a sliding percentile that remembers where it was.
 */
#include "compare/source_floor.h"

#include <stdlib.h>
#include <string.h>

enum { SHIFT = 18 }; /* of a float's bits: sign, exponent and five bits are left */
static const double share = 0.95;

static uint16_t bin_of(float e)
{
    uint32_t bits;
    memcpy(&bits, &e, sizeof bits);
    return e > 0 ? (uint16_t)(bits >> SHIFT) : 0;
}

/* The middle of a bin. */
static float value_of(size_t bin)
{
    uint32_t bits = (uint32_t)bin << SHIFT | 1U << (SHIFT - 1);
    float e;
    memcpy(&e, &bits, sizeof e);
    return bin != 0 ? e : 0;
}

static void count(struct source__floor *f, uint16_t bin, int by)
{
    f->count[bin] = (uint16_t)(f->count[bin] + by);
    if (bin < f->bin)
        f->before = (size_t)((long)f->before + by);
}

void source__floor_add(struct source__floor *f, float e)
{
    uint16_t bin = bin_of(e);
    if (f->n == SOURCE_FLOOR_WINDOW)
        count(f, f->ring[f->next], -1);
    else
        f->n++;
    count(f, bin, 1);
    f->seen++;
    f->ring[f->next] = bin;
    f->next = (f->next + 1) % SOURCE_FLOOR_WINDOW;
}

float source__floor_now(struct source__floor *f)
{
    if (f->n == 0)
        return 0;
    size_t rank = (size_t)(share * (double)(f->n - 1) + 0.5);
    while (f->before > rank)
        f->before -= f->count[--f->bin];
    while (f->before + f->count[f->bin] <= rank)
        f->before += f->count[f->bin++];
    return value_of(f->bin);
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

float source__quantile(float *x, size_t n, double q)
{
    if (n == 0)
        return 0;
    qsort(x, n, sizeof *x, by_size);
    double at = q * (double)(n - 1);
    size_t lo = (size_t)at, hi = lo + 1 < n ? lo + 1 : lo;
    return x[lo] + (float)(at - (double)lo) * (x[hi] - x[lo]);
}

float source__lower(float *x, size_t n, double q)
{
    if (n == 0)
        return 0;
    qsort(x, n, sizeof *x, by_size);
    return x[(size_t)(q * (double)(n - 1))];
}
