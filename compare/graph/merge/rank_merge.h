/* SPDX-License-Identifier: MIT
 *
 * rank_merge: the ranks of a run as the model that they are parts of.
 *
 *     tensor parallel     figures of the same node on all ranks are merged
 *     pipeline parallel   layers of all ranks stand in a row, numbered again
 *     chunks (VPP)        layers of all chunks stand in chunk 0
 *
 * The result is text of the three files of a dump, which is read like a dump that was
 * never cut into ranks (graph__open_merged), or written to disk (graph__write_merged).
 */
#ifndef COMPARE_GRAPH_MERGE_RANK_MERGE_H
#define COMPARE_GRAPH_MERGE_RANK_MERGE_H

#include "compare/graph/build/graph_tree.h"

struct graph__merges {
    MS_VEC(struct graph__merged) list;
};

struct graph__dumps { /* of one step */
    const char *const *dirs;
    const int64_t *ranks; /* counting up */
    uint32_t n;
    const char *what; /* begins messages: "target" */
};

/* Reads the dumps and merges them.  MS_E_ARG when they are not what param says. */
enum ms_rc graph__merge(const struct graph__dumps *dumps, const struct graph_param *param,
                        const struct graph_rules *rules, struct ms_pool *pool,
                        struct graph__merges *out, struct ms_err *err) MS_MUST_USE;
void graph__merges_free(struct graph__merges *m);

#endif
