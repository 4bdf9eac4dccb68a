/* SPDX-License-Identifier: MIT
 *
 * order: comparison functions of several keys, and sorting of vectors.
 */
#ifndef PROBE_BASE_ORDER_H
#define PROBE_BASE_ORDER_H

#include <stdlib.h>

/* What a comparison function returns: the order of a and b, and where they are equal the rest, which is
 * the order of the next keys or 0. */
#define MS_ORDER(a, b, rest) ((a) < (b) ? -1 : (a) > (b) ? 1 : (rest))
/* Sorts the items of a vector, of which there may be none. */
#define ms_vec_sort(v, by) ((v)->n != 0 ? qsort((v)->p, (v)->n, sizeof *(v)->p, (by)) : (void)0)

#endif
