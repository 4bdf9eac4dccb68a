/* SPDX-License-Identifier: MIT
 *
 * tensor_parts: merges the parts of tensors on several ranks into the whole tensor.
 */
#ifndef COMPARE_GRAPH_MERGE_TENSOR_PARTS_H
#define COMPARE_GRAPH_MERGE_TENSOR_PARTS_H

#include "compare/graph/merge/rank_merge.h"

/* Merges the ranks of a tensor group into the first. map: groups of all ranks, used to translate
 * ranks in names; NULL: names contain no ranks. */
void graph__merge_tensor(struct graph__forest *f, const uint32_t *ranks, uint32_t n,
                         const struct graph__groups *map);

#endif
