/* SPDX-License-Identifier: MIT
 *
 * rank_merge: merges the ranks of a run into the model whose parts they hold.
 *
 *     tensor parallel     figures of the same node on all ranks are merged
 *     pipeline parallel   layers of all ranks in a row, renumbered
 *     chunks (VPP)        layers of all chunks move to chunk 0
 *
 * The result is the text of the three files of a dump, which is read like the dump of a
 * single rank (graph__open_merged), or written to disk (graph__write_merged).
 */
#ifndef COMPARE_GRAPH_MERGE_RANK_MERGE_H
#define COMPARE_GRAPH_MERGE_RANK_MERGE_H

#include "compare/graph/build/graph_tree.h"
#include "compare/graph/merge/forest.h"

struct graph__merges {
    MS_VEC(struct graph__merged) list;
};

struct graph__dumps { /* the dumps of one step */
    const char *const *dirs;
    const int64_t *ranks; /* ascending */
    uint32_t n;
    const char *what; /* prefix of messages: "target" */
};

/* Reads the dumps and merges them. Returns MS_E_ARG when the dumps do not fit param. */
enum ms_rc graph__merge(const struct graph__dumps *dumps, const struct graph_param *param,
                        const struct graph_rules *rules, struct ms_pool *pool,
                        struct graph__merges *out, struct ms_err *err) MS_MUST_USE;
void graph__merges_free(struct graph__merges *m);

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

#endif
