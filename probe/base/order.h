/* SPDX-License-Identifier: MIT
 *
 * order: comparison functions of several keys, and sorting of vectors.
 */
#ifndef PROBE_BASE_ORDER_H
#define PROBE_BASE_ORDER_H

#include <stdlib.h>

/* Result of a comparison function: the order of a and b, or `rest` when they are equal, which is
 * the order of the next keys or 0. */
#define MS_ORDER(a, b, rest) ((a) < (b) ? -1 : (a) > (b) ? 1 : (rest))
/* Sorts the items of a vector, which may be empty. */
#define ms_vec_sort(v, by) ((v)->n != 0 ? qsort((v)->p, (v)->n, sizeof *(v)->p, (by)) : (void)0)

#endif
