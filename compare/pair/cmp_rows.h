/* SPDX-License-Identifier: MIT
 *
 * cmp_rows: both sides of a comparison and the pairs of their rows.
 */
#ifndef COMPARE_PAIR_CMP_ROWS_H
#define COMPARE_PAIR_CMP_ROWS_H

#include "compare/align/align.h"
#include "compare/pair/mapping.h"
#include "compare/pair/problems.h"
#include "compare/read/item.h"
#include "compare/read/setup.h"
#include "probe/dump/stack.h"
#include "probe/dump/tree.h"

struct cmp__pair {
    /* row numbers of target and golden; MS_MAP_NONE: the pair has no row on that side */
    uint32_t t, b;
};
struct cmp__fold { /* one more row of the folded side of a pair; sorted by pair */
    uint32_t pair, row;
};
struct cmp__group {
    uint32_t first; /* number of the first pair of the group */
};

/* The sides are opened by table/cmp_open or borrowed from two graphs. cmp__pair_rows fills the
 * other fields. */
struct cmp_rows {
    const struct cmp_setup *set; /* borrowed */
    struct cmp__side t, b;
    char *t_dir, *b_dir; /* directories of the tensor files */
    struct probe_stacks stacks;
    bool has_stack;
    struct cmp__pairs row_map;        /* the pairs of -dm, or those that -lm expands to */
    MS_VEC(struct cmp_pairing) named; /* forward operators that a rule of -lm names */
    struct cmp_align *al;             /* NULL: rows are joined by name */
    struct probe_tree tree[2];        /* golden, target; used by the alignment */
    bool has_tree[2];
    MS_VEC(struct cmp__pair) pairs;
    MS_VEC(struct cmp__fold) folds;   /* with --consistent_check */
    MS_VEC(struct cmp__group) groups; /* in table order, and a sentinel whose first is pairs.n */
    struct cmp_problems problems;
};

/* Fills pairs, folds and groups. The configuration selects the method: alignment, equal keys, fuzzy
 * keys, or training against inference. */
enum ms_rc cmp__pair_rows(struct cmp_rows *c, struct ms_pool *pool, struct ms_err *err);
void cmp__rows_free(struct cmp_rows *c);

#endif
