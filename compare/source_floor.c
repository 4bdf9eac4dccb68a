/* SPDX-License-Identifier: MIT
 *
 * source_floor: a sorted window; adding to it moves at most 200 numbers.
 */
#include "compare/source_floor.h"

#include <stdlib.h>
#include <string.h>

static const double share = 0.95;

/* The first place whose number is not below e. */
static size_t place_of(const struct source__floor *f, float e)
{
    size_t lo = 0, hi = f->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (f->sorted[mid] < e)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void forget(struct source__floor *f, float e)
{
    size_t at = place_of(f, e);
    f->n--;
    memmove(&f->sorted[at], &f->sorted[at + 1], (f->n - at) * sizeof *f->sorted);
}

void source__floor_add(struct source__floor *f, float e)
{
    if (f->n == SOURCE_FLOOR_WINDOW)
        forget(f, f->ring[f->next]);
    size_t at = place_of(f, e);
    memmove(&f->sorted[at + 1], &f->sorted[at], (f->n - at) * sizeof *f->sorted);
    f->sorted[at] = e;
    f->n++;
    f->seen++;
    f->ring[f->next] = e;
    f->next = (f->next + 1) % SOURCE_FLOOR_WINDOW;
}

static float between(const float *sorted, size_t n, double q)
{
    if (n == 0)
        return 0;
    double at = q * (double)(n - 1);
    size_t lo = (size_t)at, hi = lo + 1 < n ? lo + 1 : lo;
    return sorted[lo] + (float)(at - (double)lo) * (sorted[hi] - sorted[lo]);
}

float source__floor_now(const struct source__floor *f)
{
    return between(f->sorted, f->n, share);
}

static int by_size(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

float source__quantile(float *x, size_t n, double q)
{
    if (n != 0)
        qsort(x, n, sizeof *x, by_size);
    return between(x, n, q);
}
