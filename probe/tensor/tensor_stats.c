/* SPDX-License-Identifier: MIT
 *
 * tensor_stats: statistics over the elements of a tensor; elements that do not fill their memory
 * without gaps are gathered block by block.
 */
#include "probe/tensor/tensor.h"

/* Tells whether the elements fill their memory without gaps in any order, as those of a transposed
 * matrix do. Such memory is processed as it is, since the order does not matter. */
static bool is_dense(const struct probe_tensor *t)
{
    uint64_t dense = 1;
    for (uint32_t placed = 0; placed < t->ndim; placed++) {
        uint32_t d = 0;
        while (d < t->ndim && (t->shape[d] == 1 || t->stride[d] != dense))
            d++;
        if (d == t->ndim)
            break;
        dense *= t->shape[d];
    }
    return dense == t->count;
}

void probe_tensor_stats(const struct probe_tensor *t, struct ms_stats *s)
{
    ms_stats_init(s);
    if (t->contiguous || is_dense(t)) {
        ms_stats_add(s, t->dtype, t->data, t->count);
        return;
    }
    enum { LARGEST = 16 };
    char scratch[(size_t)MS_STATS_BLOCK * LARGEST];
    for (uint64_t at = 0; at < t->count; at += MS_STATS_BLOCK) {
        const uint64_t left = t->count - at, n = left < MS_STATS_BLOCK ? left : MS_STATS_BLOCK;
        ms_stats_add(s, t->dtype, probe_tensor_elements(t, at, n, scratch), n);
    }
}
