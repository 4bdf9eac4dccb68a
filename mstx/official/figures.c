/* SPDX-License-Identifier: MIT
 *
 * figures: see the header.
 */
#include "mstx/official/figures.h"

#include "probe/base/assert.h"
#include "probe/base/num.h"

#include <math.h>
#include <string.h>

/* Interpolates between the two nearest of n sorted values. */
static double find_quantile(const double *x, size_t n, double q)
{
    ms_assert(n != 0 && q >= 0 && q <= 1);
    const double at = q * (double)(n - 1);
    const size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    return x[low] + (at - (double)low) * (x[high] - x[low]);
}

static double sum_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

double mstx__sum_of_squares(const double *x, size_t n)
{
    const double mean = sum_of(x, n) / (double)n;
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return squares;
}

/* ---- order ------------------------------------------------------------------------- */

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, FEW = 64 };

/* Returns a number whose order is that of the values. */
static uint64_t key_of(double v)
{
    const uint64_t bits = ms_bits_of_f64(v);
    return (bits >> 63) != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

static unsigned digit_of(double v, unsigned shift)
{
    return (unsigned)(key_of(v) >> shift) & (DIGITS - 1);
}

static void insert_values(double *x, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const double v = x[i];
        size_t at = i;
        for (; at != 0 && key_of(x[at - 1]) > key_of(v); at--)
            x[at] = x[at - 1];
        x[at] = v;
    }
}

/* Moves each value to the part of its digit; end[d] becomes the end of part d. */
static void part_values(double *x, size_t n, unsigned shift, size_t *end)
{
    size_t next[DIGITS], at = 0;
    memset(end, 0, DIGITS * sizeof *end);
    for (size_t i = 0; i < n; i++)
        end[digit_of(x[i], shift)]++;
    for (unsigned d = 0; d < DIGITS; d++) {
        next[d] = at;
        at += end[d];
        end[d] = at;
    }
    for (unsigned d = 0; d < DIGITS; d++) {
        while (next[d] < end[d]) {
            const unsigned to = digit_of(x[next[d]], shift);
            const double v = x[next[to]];
            x[next[to]++] = x[next[d]];
            if (to != d)
                x[next[d]] = v;
        }
    }
}

/* Sorts in place, digit by digit: qsort takes as much memory again as the values have, and of 4,096 ranks
 * there are 20 million of a type. */
static void sort_values(double *x, size_t n, unsigned shift)
{
    size_t end[DIGITS], from = 0;
    if (n <= FEW) {
        insert_values(x, n);
        return;
    }
    part_values(x, n, shift, end);
    for (unsigned d = 0; d < DIGITS && shift != 0; d++) {
        if (end[d] - from > 1)
            sort_values(x + from, end[d] - from, shift - DIGIT_BITS);
        from = end[d];
    }
}

static bool are_sorted(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (key_of(x[i - 1]) > key_of(x[i]))
            return false;
    }
    return true;
}

struct mstx__figures mstx__describe(double *x, size_t n)
{
    struct mstx__figures f = {.n = n};
    if (n == 0)
        return f;
    f.sum = sum_of(x, n);
    f.mean = f.sum / (double)n;
    f.deviation = n > 1 ? sqrt(mstx__sum_of_squares(x, n) / (double)(n - 1)) : 0;
    if (!are_sorted(x, n))
        sort_values(x, n, 64 - DIGIT_BITS);
    f.min = x[0];
    f.q1 = find_quantile(x, n, 0.25);
    f.median = find_quantile(x, n, 0.5);
    f.q3 = find_quantile(x, n, 0.75);
    f.max = x[n - 1];
    return f;
}

static void bind_number(struct ms_stmt *st, int at, double v, bool whole)
{
    if (whole)
        ms_stmt_i64(st, at, (int64_t)v);
    else
        ms_stmt_f64(st, at, v);
}

void mstx__bind_figures(struct ms_stmt *st, int first, const struct mstx__figures *f, bool whole)
{
    ms_stmt_i64(st, first, (int64_t)f->n);
    for (int i = 1; i < MSTX_FIGURES; i++)
        ms_stmt_null(st, first + i);
    if (f->n == 0)
        return;
    ms_stmt_f64(st, first + 1, f->mean);
    if (f->n > 1)
        ms_stmt_f64(st, first + 2, f->deviation);
    bind_number(st, first + 3, f->min, whole);
    ms_stmt_f64(st, first + 4, f->q1);
    ms_stmt_f64(st, first + 5, f->median);
    ms_stmt_f64(st, first + 6, f->q3);
    bind_number(st, first + 7, f->max, whole);
    bind_number(st, first + 8, f->sum, whole);
}
