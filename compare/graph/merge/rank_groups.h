/* SPDX-License-Identifier: MIT
 *
 * rank_groups: finds which ranks hold parts of the same tensors, and which hold layers
 * of one pipeline.
 */
#ifndef COMPARE_GRAPH_MERGE_RANK_GROUPS_H
#define COMPARE_GRAPH_MERGE_RANK_GROUPS_H

#include "compare/graph/merge/forest.h"

/* Groups of ranks; a rank is an index into the forest. */
struct graph__groups {
    MS_VEC(uint32_t) members;
    MS_VEC(uint32_t) starts; /* start of each group, plus one end entry */
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
/* Finds the groups from communication, else from the layout of Megatron. */
enum ms_rc graph__tensor_groups(struct graph__forest *f, struct graph__groups *g,
                                struct ms_err *err);
enum ms_rc graph__pipeline_groups(struct graph__forest *f, struct graph__groups *g,
                                  struct ms_err *err);

#endif
