/* SPDX-License-Identifier: MIT
 *
 * align: finds the golden node that corresponds to each target node, without a mapping.
 *
 * Two frameworks that run one model name the same operations differently, nest them
 * in other modules and split them into other operators. The alignment uses what both
 * runs share: execution order, operator families, shapes, parameters and, where the
 * runs have values in common, the values.
 *
 *     struct cmp_align *al;
 *     cmp_align_new(&al, &target, &golden, NULL, 0, pool, err);
 *     for each node: n = cmp_align_of(al, node, &pairs);       best pair first
 *     cmp_align_write_rows(al, &buf, err);
 *     cmp_align_free(al);
 *
 * A fused operator has one main pair, with the last of the operators that run in its
 * place; cmp_align_members lists the others. The dumps must outlive the alignment.
 */
#ifndef COMPARE_ALIGN_ALIGN_H
#define COMPARE_ALIGN_ALIGN_H

#include "probe/dump/dump.h"
#include "probe/dump/tree.h"

struct cmp_align_input {
    const struct probe_dump *dump;
    const struct probe_tree *tree; /* NULL: the module tree is not known */
};

/* A pair that the user demands, as names of nodes. An empty golden name says that the target node
 * has no partner. */
struct cmp_align_pin {
    struct ms_str target, golden;
};

/* The reason why two nodes are a pair. */
enum cmp_align_how {
    CMP_ALIGN_PINNED,    /* the user demanded the pair */
    CMP_ALIGN_VALUE,     /* outputs or parameters agree */
    CMP_ALIGN_STRUCTURE, /* operator, shape and position agree */
    CMP_ALIGN_WEAK,      /* the best candidate, on weak evidence */
    CMP_ALIGN_PART,      /* several small modules are the parts of one large module */
    CMP_ALIGN_ENTRY,     /* backward nodes of the operators that read the same value */
    CMP_ALIGN_REPEAT,    /* the recomputation of a pair */
    CMP_ALIGN_MODULE,    /* the modules contain the same pairs of operators */
    CMP_ALIGN_HOWS
};
/* Names of the reasons: "pinned", "value", ... */
extern const char *const cmp_align_how_names[CMP_ALIGN_HOWS];

struct cmp_align_pair {
    uint32_t target, golden; /* nodes of the dumps */
    float confidence;        /* from 0 to 1 */
    uint8_t how;
    bool more; /* this target node has an earlier, better pair */
};

#define CMP_ALIGN_NONE UINT32_MAX

/* A row of the target and the golden row that is compared with it. CMP_ALIGN_NONE: no such row on
 * that side. */
struct cmp_align_row {
    uint32_t target, golden;
};

struct cmp_align_stats {
    /* false: the runs have no values in common and are aligned by structure */
    bool by_value;
    double noise;          /* typical distance of values that should be equal */
    size_t ops[2];         /* number of forward operators: golden, target */
    size_t pairs, anchors; /* anchors: pairs known from values or parameters alone */
    uint64_t cells;        /* number of comparisons of two operators or two modules */
    size_t unknown_names;  /* number of operator names that family_table.h lacks */
};

struct cmp_align;

/* Aligns two dumps. Fails on a pin that names no node. pool may be NULL; the result does not depend
 * on its number of threads. */
enum ms_rc cmp_align_new(struct cmp_align **al, const struct cmp_align_input *target,
                         const struct cmp_align_input *golden, const struct cmp_align_pin *pins,
                         size_t npins, struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void cmp_align_free(struct cmp_align *al);

/* Returns all pairs, sorted by target node; the best pair of a node comes first. */
const struct cmp_align_pair *cmp_align_pairs(const struct cmp_align *al, size_t *n);
/* Returns the number of pairs of a target node and sets *pairs to the first of them. */
size_t cmp_align_of(const struct cmp_align *al, uint32_t target,
                    const struct cmp_align_pair **pairs);
/* Returns the best target node of a golden node, or CMP_ALIGN_NONE. */
uint32_t cmp_align_of_golden(const struct cmp_align *al, uint32_t golden);
/* Returns the number of nodes that run in place of a pair's forward node, without the paired node
 * itself, and sets *nodes to them. `golden` selects the side. The alignment owns the list. */
size_t cmp_align_members(const struct cmp_align *al, const struct cmp_align_pair *pair, bool golden,
                         const uint32_t **nodes);
struct cmp_align_stats cmp_align_stats(const struct cmp_align *al);

/* Pairs the rows of a pair's nodes: in the target's order, then the rows that only the golden node
 * has. out must have room for the rows of both nodes. Returns the number of entries. */
size_t cmp_align_rows(const struct cmp_align *al, const struct cmp_align_pair *pair,
                      struct cmp_align_row *out);

/* Explains as sentences and a table why a node of either side is paired as it is, and which
 * candidate came second. */
void cmp_align_explain(const struct cmp_align *al, bool golden, uint32_t node, struct ms_buf *out);

/* Writes the alignment as an official data mapping, one "row: row" a line. */
enum ms_rc cmp_align_write_rows(const struct cmp_align *al, struct ms_buf *out, struct ms_err *err);

/* Tells whether two dumps have to be aligned rather than joined by name: their frameworks
 * differ, or a forward record of one has no namesake in the other. Behind such a record call
 * numbers shift. */
bool cmp_align_wanted(const struct probe_dump *target, const struct probe_dump *golden);

#endif
