/* SPDX-License-Identifier: MIT
 *
 * node_weigh: computes for each node the difference of inputs and outputs and what noise
 * explains.
 */
#ifndef COMPARE_SOURCE_NODE_WEIGH_H
#define COMPARE_SOURCE_NODE_WEIGH_H

#include "compare/observe/node_facts.h"
#include "compare/observe/noise_floor.h"
#include "compare/source/consequences.h"

struct source__judge {
    struct cmp_source *s;
    struct observe__part *p;
    uint32_t part;
    const struct source__comms *comms;
    bool explained;
    unsigned tensor; /* 1 in tensor mode: index into the constants */
    struct observe__floor floor, floor_norm;
    float series; /* the largest difference of approximated functions so far */
    bool low;     /* some values have low precision */
    bool mixed;   /* one side computes in another precision */
    bool systemic[MS_DT_MAX][MS_DT_MAX]; /* [golden type][target type] */
    bool unmeant[MS_DT_MAX][MS_DT_MAX];  /* likewise: normalizations alone differ by it */
    double backward_factor;
    float *class_gain; /* by operator: usual gain of its backward */
    /* by operator: ratio of the output difference to the explained one that most forward calls stay
     * below */
    float *usual;
    uint32_t after_backward; /* first forward node behind the last backward node */
    /* region whose results no node reads and that is not blamed yet; or OBSERVE__NONE */
    uint32_t loose;
    uint32_t judged;             /* the node that the rules look at; or OBSERVE__NONE */
    struct source__context seen; /* the worst of all leaves so far */
    float dirtiest;              /* the largest difference of all nodes so far */
    bool all_exact, attr_seen, flag_seen, update_seen;
    /* the largest difference up to the gradients of parameters; the norm of the largest of these */
    float gradient_off, gradient_norm;
    uint32_t first_inexact, inexact; /* first node that was inexact on its own; number of them */
    /* number of nodes, and of their low-precision values, before the first difference */
    double exact_nodes, exact_values;
    struct ms_map exact, scalars;
    struct ms_arena *arena;
};

/* Pass 1: computes contexts, outputs and floors of all nodes, and the usual gain of backward
 * operators. */
enum ms_rc source__weigh_part(struct source__judge *j, struct ms_err *err);
/* Tells whether a single node has a counterpart. A call with a micro batch has none, nor a record that a
 * later backward pass has replaced. */
bool source__is_comparable(const struct source__judge *j, uint32_t node);
/* Tells whether both sides agree on the outputs of a node, or one side alone has it. */
bool source__is_clean(const struct source__judge *j, uint32_t node);
/* Returns the difference that types of this unit of rounding explain. */
double source__tiny(const struct source__judge *j, double unit, bool differ);
/* Returns the attributes that differ, except those that differ systemically. */
uint8_t source__attrs(const struct source__judge *j, const struct observe__leaf *l);

#endif
