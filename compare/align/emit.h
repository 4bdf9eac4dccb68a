/* SPDX-License-Identifier: MIT
 *
 * emit: turns paired operators and modules into the list of paired nodes.
 */
#ifndef COMPARE_ALIGN_EMIT_H
#define COMPARE_ALIGN_EMIT_H

#include "compare/align/search.h"

struct align__members { /* the operators that run in place of one operator of a pair */
    uint32_t first, n;  /* position and length in cmp_align.list */
};
struct cmp_align {
    struct align__ctx c;
    MS_VEC(struct cmp_align_pair) pairs;
    uint32_t *first_pair; /* by target node: index of its first pair; one entry more than nodes */
    uint32_t *of_golden;  /* by golden node: its best target node */
    struct align__members *members[2]; /* by operator */
    MS_VEC(uint32_t) list;             /* nodes of all members */
    uint32_t *op_of[2];                /* by node: its forward operator, or ALIGN__NONE */
    /* by node: the operator whose backward it is, or ALIGN__NONE */
    uint32_t *back_of[2];
    uint32_t *module_of[2]; /* by node: its forward module, or ALIGN__NONE */
    size_t anchors;
};

/* Moves the pair of a fused operator to the last of the operators that run in its place, even when
 * no value shows which operator is the last. */
void align__settle_tails(struct align__ctx *c);
/* Removes pairs whose evidence is too weak to be shown. */
void align__prune_pairs(struct align__ctx *c);
/* Pairs the remaining operators by name where that keeps the order of the pairs around them. For
 * runs of one framework only: names of different frameworks say nothing. */
enum ms_rc align__pair_same_names(struct cmp_align *al, struct ms_err *err);
/* Finds the members of every pair. */
enum ms_rc align__find_members(struct cmp_align *al, struct ms_err *err);
/* Writes the list of pairs: operators, modules, backward nodes and parameter gradients. */
enum ms_rc align__emit_pairs(struct cmp_align *al, const struct cmp_align_pin *pins, size_t npins,
                             struct ms_err *err);

#endif
