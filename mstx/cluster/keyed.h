/* SPDX-License-Identifier: MIT
 *
 * keyed: a stable sort of places by 64-bit keys, digit by digit: time that grows with their number alone.
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
/* Those with equal keys keep their order.  false: no memory. */
bool mstx__keyed_sort(struct mstx_keyed *v, size_t n);
/* The item that would stand at place k of v in ascending order; v gets another order. */
double mstx__select(double *v, size_t n, size_t k);

#endif
