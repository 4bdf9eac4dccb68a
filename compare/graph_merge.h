/* SPDX-License-Identifier: MIT
 *
 * graph_merge: the ranks of a run as the model that they are parts of.
 *
 *     tensor parallel     figures of the same node on all ranks are merged
 *     pipeline parallel   layers of all ranks stand in a row, numbered again
 *     chunks (VPP)        layers of all chunks stand in chunk 0
 *
 * What comes out is text of the three files of a dump, which is read like a dump
 * that was never cut into ranks, or written for those who want to.
 */
#ifndef COMPARE_GRAPH_MERGE_H
#define COMPARE_GRAPH_MERGE_H

#include "compare/graph.h"

struct graph__tree;

struct graph__note { /* of a node, in the order of construct */
    uint32_t micro;
    uint8_t kind, over;
    struct ms_str info;     /* JSON list, or empty */
    struct ms_str children; /* the same; strictly, when it is not what the tree says */
};

struct graph__merged {
    int64_t rank; /* of the main rank, the first */
    struct ms_buf construct, dump, stack;
    uint32_t micro_steps; /* of the main rank */
    int64_t said;         /* by construct.json about them, -1: nothing */
    MS_VEC(struct graph__note) notes;
    struct ms_arena *arena;
};

struct graph__merges {
    MS_VEC(struct graph__merged) list;
};

struct graph__dumps { /* of one step */
    const char *const *dirs;
    const int64_t *ranks; /* counting up */
    uint32_t n;
    const char *what; /* begins messages: "target" */
};

/* Read the dumps and merge them.  MS_E_ARG when they are not what param says. */
enum ms_rc graph__merge(const struct graph__dumps *dumps, const struct graph_param *param,
                        bool strict, struct ms_pool *pool, struct graph__merges *out,
                        struct ms_err *err);
void graph__merges_free(struct graph__merges *m);

/* The merged tree, instead of graph__open; m must live as long. */
enum ms_rc graph__open_merged(struct graph__tree *g, const struct graph__merged *m, bool strict,
                              struct ms_err *err);
/* Write the three files into dir, which is made. */
enum ms_rc graph__write_merged(const struct graph__merged *m, const char *dir, struct ms_err *err);

#endif
