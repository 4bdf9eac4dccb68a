/* SPDX-License-Identifier: MIT
 *
 * tensor_parts: the parts of tensors that ranks hold, as the whole tensor.
 */
#ifndef COMPARE_GRAPH_MERGE_TENSOR_PARTS_H
#define COMPARE_GRAPH_MERGE_TENSOR_PARTS_H

#include "compare/graph/merge/rank_groups.h"

/* Merges the ranks of a tensor group into the first.  map: groups of all ranks, by which the ranks in
 * names are translated; NULL: names hold none. */
void graph__merge_tensor(struct graph__forest *f, const uint32_t *ranks, uint32_t n,
                         const struct graph__groups *map);

#endif
