/* SPDX-License-Identifier: MIT
 *
 * cmp_rows: two sides, and which row of the one belongs to which of the other.
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
    uint32_t t, b; /* rows, MS_MAP_NONE: none */
};
struct cmp__fold { /* another row of the pair's side that has parts; in order of pairs */
    uint32_t pair, row;
};
struct cmp__group {
    uint32_t first; /* pair */
};

/* The sides are opened by table/comparison, or lent by two graphs; the other members are filled by
 * cmp__pair_rows. */
struct cmp_rows {
    const struct cmp_setup *set; /* borrowed */
    struct cmp__side t, b;
    char *t_dir, *b_dir; /* where the dumps lie */
    struct probe_stacks stacks;
    bool has_stack;
    struct cmp__pairs row_map;        /* -dm, or what -lm comes to */
    MS_VEC(struct cmp_pairing) named; /* operators that -lm itself names, forward */
    struct cmp_align *al;             /* NULL: rows are joined by name */
    struct probe_tree tree[2];        /* golden, target; of the alignment */
    bool has_tree[2];
    MS_VEC(struct cmp__pair) pairs;
    MS_VEC(struct cmp__fold) folds;   /* with --consistent_check */
    MS_VEC(struct cmp__group) groups; /* one more than there are */
    struct cmp_problems problems;
};

/* Fills pairs, folds and groups by the configuration: by the alignment, by keys, fuzzily, or as
 * training and inference. */
enum ms_rc cmp__pair_rows(struct cmp_rows *c, struct ms_pool *pool, struct ms_err *err);
void cmp__rows_free(struct cmp_rows *c);

#endif
