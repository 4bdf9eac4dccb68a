/* SPDX-License-Identifier: MIT
 *
 * source_judge: what the two passes of judging share: source_weigh finds out what goes
 * in and out of each node and what noise explains, source_judge asks the rules.
 */
#ifndef COMPARE_SOURCE_JUDGE_H
#define COMPARE_SOURCE_JUDGE_H

#include "compare/source_floor.h"
#include "compare/source_int.h"

/* All constants of the rules.  Fixed on one set of runs, reported on another. */
struct source__rules {
    double exact;                 /* two quanta of statistics in float32 */
    double forward[2], gradients; /* a suspect's factor: statistics, tensor */
    double forward_low; /* more of it: where precision is low the largest element may be another */
    double backward[2], backward_low[2];
    double backward_calm[2]; /* of low precision and operators that hardly amplify */
    double turned_least;     /* smaller gradients of clean runs seem turned by chance */
    double norm_forward, norm_backward, norm_calm, norm_even, norm_least;
    double norm_units;     /* roundings of low precision that norms of gradients may move by */
    double norm_learned;   /* what was seen excuses so much less than what types explain */
    double norm_effect;    /* so many times that, and another argument has an effect */
    double start;          /* more of it while there is nothing to learn from */
    double backward_least; /* smaller differences of gradients are noise */
    double hidden;         /* differences of elements that equal statistics may hide */
    double resummed;       /* what another order of summation makes at most */
    double turned_most;    /* values of low precision that noise below them rounds otherwise ... */
    double turned_chance;  /* ... for one expected from how many were equal before */
    double inherited;      /* units of rounding that statistics of what was made of it may show */
    double parameter_norm;
    double unexplained_input;
    double systemic_share;
    double start_few;
};
extern const struct source__rules source__rule;

struct source__judge {
    struct cmp_source *s;
    struct source__part *p;
    uint32_t part;
    const struct source__comms *comms;
    bool explained;
    unsigned tensor; /* index of the constants */
    struct source__floor floor, floor_norm;
    bool low;                            /* some values are of low precision */
    bool mixed;                          /* one side computes in another precision */
    bool systemic[MS_DT_MAX][MS_DT_MAX]; /* golden type, target type */
    double backward_factor;
    float *class_gain;           /* by op: how much more comes out of its backward than goes in */
    struct source__context seen; /* everything so far */
    float dirtiest;              /* the largest difference of all nodes so far */
    bool all_exact, attr_seen, flag_seen;
    uint32_t first_inexact, inexact;  /* nodes that were inexact on their own; how many */
    double exact_nodes, exact_values; /* judged before any difference; values of low precision */
    struct ms_map exact, scalars;
    struct ms_arena *arena;
};

/* Pass 1: contexts, outputs and floors of all nodes, and what backward operators usually do. */
enum ms_rc source__weigh(struct source__judge *j, struct ms_err *err);
/* What types alone explain of a difference of these. */
double source__tiny(const struct source__judge *j, double unit, bool differ);
/* Its backward cannot make a difference larger: it hands on what it gets, and adds nothing up. */
bool source__is_even(const struct source__judge *j, const struct source__node *n);
/* Attributes that differ, without those that differ everywhere. */
uint8_t source__attrs(const struct source__judge *j, const struct source__leaf *l);

#endif
