/* SPDX-License-Identifier: MIT
 *
 * align: which node of one run is which node of another, without a mapping.
 *
 * Two runs of one model by different frameworks call the same thing by other
 * names, nest it otherwise and cut it into other operators.  The alignment uses
 * what they share: the order of execution, operator families, shapes, parameters
 * and, where the runs have the same values, the values themselves.
 *
 *     struct cmp_align *al;
 *     cmp_align_new(&al, &target, &golden, NULL, 0, pool, err);
 *     for each node: n = cmp_align_of(al, node, &pairs);       best pair first
 *     cmp_align_write_rows(al, &buf, err);
 *     cmp_align_free(al);
 *
 * A fused operator has one main pair, with the last of those that run in its
 * place; cmp_align_members tells the others.  The dumps must live as long as the
 * alignment.
 */
#ifndef COMPARE_ALIGN_H
#define COMPARE_ALIGN_H

#include "probe/dump.h"
#include "probe/tree.h"

struct cmp_align_input {
    const struct probe_dump *dump;
    const struct probe_tree *tree; /* NULL: the modules are not known */
};

/* What the user says goes together: names of nodes.  golden empty: the target has no partner. */
struct cmp_align_pin {
    struct ms_str target, golden;
};

/* Why two nodes are a pair. */
enum cmp_align_how {
    CMP_ALIGN_PINNED,    /* the user said so */
    CMP_ALIGN_VALUE,     /* outputs or parameters agree */
    CMP_ALIGN_STRUCTURE, /* operator, shape and place agree */
    CMP_ALIGN_WEAK,      /* the best there is */
    CMP_ALIGN_PART,      /* several small modules against one large */
    CMP_ALIGN_ENTRY,     /* backward of the ops that read the same value */
    CMP_ALIGN_REPEAT,    /* recomputation of a pair */
    CMP_ALIGN_MODULE,    /* modules around the same pairs */
    CMP_ALIGN_HOWS
};
/* "pinned", "value", ... */
extern const char *const cmp_align_how_names[CMP_ALIGN_HOWS];

struct cmp_align_pair {
    uint32_t target, golden; /* nodes of the dumps */
    float confidence;        /* 0 to 1 */
    uint8_t how;
    bool more; /* not the first pair of this target node */
};

#define CMP_ALIGN_NONE UINT32_MAX

/* A row of the target and the row of the golden dump it is to be compared with; CMP_ALIGN_NONE: the
 * other has none. */
struct cmp_align_row {
    uint32_t target, golden;
};

struct cmp_align_stats {
    bool by_value;         /* false: the runs have no values in common; structure alone counts */
    double noise;          /* usual distance of values that should be equal */
    size_t ops[2];         /* forward operators: golden, target */
    size_t pairs, anchors; /* anchors: pairs known from values or parameters alone */
    uint64_t cells;        /* comparisons of two operators or modules */
    size_t unknown_names;  /* names of operators in no table */
};

struct cmp_align;

/* Align.  Pins that name no node are refused.  The result does not depend on the threads of the
 * pool, which may be NULL. */
enum ms_rc cmp_align_new(struct cmp_align **al, const struct cmp_align_input *target,
                         const struct cmp_align_input *golden, const struct cmp_align_pin *pins,
                         size_t npins, struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void cmp_align_free(struct cmp_align *al);

/* All pairs: by target node, of one node the best first. */
const struct cmp_align_pair *cmp_align_pairs(const struct cmp_align *al, size_t *n);
/* Pairs of a target node; their number. */
size_t cmp_align_of(const struct cmp_align *al, uint32_t target,
                    const struct cmp_align_pair **pairs);
/* The best target node of a golden one, or CMP_ALIGN_NONE. */
uint32_t cmp_align_of_golden(const struct cmp_align *al, uint32_t golden);
/* Nodes that run in place of one side's forward node of a pair, without its partner itself:
 * golden says whose nodes are asked for.  The list is the alignment's. */
size_t cmp_align_members(const struct cmp_align *al, const struct cmp_align_pair *pair, bool golden,
                         const uint32_t **nodes);
struct cmp_align_stats cmp_align_stats(const struct cmp_align *al);

/* Which rows of a pair's nodes belong together, in the target's order, then what only the golden
 * node has.  out has room for the rows of both; returns how many there are. */
size_t cmp_align_rows(const struct cmp_align *al, const struct cmp_align_pair *pair,
                      struct cmp_align_row *out);

/* Why a node of either side is paired as it is and what came next, as sentences and a table. */
void cmp_align_explain(const struct cmp_align *al, bool golden, uint32_t node, struct ms_buf *out);

/* The alignment as an official data mapping: row: row. */
enum ms_rc cmp_align_write_rows(const struct cmp_align *al, struct ms_buf *out, struct ms_err *err);

/* Should two dumps be aligned rather than joined by name?  True when the frameworks differ or a
 * forward record of one has no namesake in the other: behind it call numbers shift. */
bool cmp_align_wanted(const struct probe_dump *target, const struct probe_dump *golden);

#endif
