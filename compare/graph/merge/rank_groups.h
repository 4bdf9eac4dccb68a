/* SPDX-License-Identifier: MIT
 *
 * rank_groups: which ranks hold parts of the same tensors, and which hold layers of one
 * pipeline.
 */
#ifndef COMPARE_GRAPH_MERGE_RANK_GROUPS_H
#define COMPARE_GRAPH_MERGE_RANK_GROUPS_H

#include "compare/graph/merge/forest.h"

/* Lists of ranks; a rank is its place in the forest. */
struct graph__groups {
    MS_VEC(uint32_t) members;
    MS_VEC(uint32_t) starts; /* one more than there are groups */
};
static inline uint32_t graph__group_count(const struct graph__groups *g)
{
    return g->starts.n > 0 ? (uint32_t)g->starts.n - 1 : 0;
}
static inline const uint32_t *graph__group(const struct graph__groups *g, uint32_t i, uint32_t *n)
{
    ms_assert(i < graph__group_count(g));
    *n = g->starts.p[i + 1] - g->starts.p[i];
    return &g->members.p[g->starts.p[i]];
}
void graph__groups_free(struct graph__groups *g);
/* As the communication of the ranks shows, else as Megatron would lay them out. */
enum ms_rc graph__tensor_groups(struct graph__forest *f, struct graph__groups *g,
                                struct ms_err *err);
enum ms_rc graph__pipeline_groups(struct graph__forest *f, struct graph__groups *g,
                                  struct ms_err *err);

#endif
