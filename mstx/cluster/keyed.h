/* SPDX-License-Identifier: MIT
 *
 * keyed: a stable radix sort of indices by 64-bit keys in linear time, and selection of the k-th
 * value.
 */
#ifndef MSTX_CLUSTER_KEYED_H
#define MSTX_CLUSTER_KEYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mstx_keyed {
    uint64_t key;
    uint32_t value;
};
/* Sorts by key; equal keys keep their order.  Returns false when out of memory. */
bool mstx__keyed_sort(struct mstx_keyed *v, size_t n);
/* Returns the k-th smallest value of v, counted from 0; reorders v. */
double mstx__select(double *v, size_t n, size_t k);

#endif
