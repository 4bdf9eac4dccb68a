/* SPDX-License-Identifier: MIT
 *
 * order: comparison functions of several keys, and sorting of vectors.
 */
#ifndef PROBE_BASE_ORDER_H
#define PROBE_BASE_ORDER_H

#include <stdint.h>
#include <stdlib.h>

/* Result of a comparison function: the order of a and b, or `rest` when they are equal, which is
 * the order of the next keys or 0. */
#define MS_ORDER(a, b, rest) ((a) < (b) ? -1 : (a) > (b) ? 1 : (rest))
/* Comparison function of qsort for numbers of type int64_t. */
static inline int ms_order_i64(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return MS_ORDER(a, b, 0);
}
static inline int ms_order_f64(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return MS_ORDER(*a, *b, 0);
}
static inline int64_t ms_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t ms_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
/* Sorts n items; n may be 0. Most lists were made in order: one pass finds that out, where
 * qsort would copy all of them several times. */
static inline void ms_sort(void *items, size_t n, size_t size,
                           int (*by)(const void *, const void *))
{
    const char *p = items;
    size_t i = 1;
    while (i < n && by(p + (i - 1) * size, p + i * size) <= 0)
        i++;
    if (i < n)
        qsort(items, n, size, by);
}
/* Sorts the items of a vector, which may be empty. */
#define ms_vec_sort(v, by) ms_sort((v)->p, (v)->n, sizeof *(v)->p, (by))

#endif
