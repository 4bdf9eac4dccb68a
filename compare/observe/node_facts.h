/* SPDX-License-Identifier: MIT
 *
 * node_facts: properties of a single node, independent of other nodes, and the constants
 * of the rules.
 */
#ifndef COMPARE_OBSERVE_NODE_FACTS_H
#define COMPARE_OBSERVE_NODE_FACTS_H

#include "compare/observe/part.h"

/* ---- from the operator's name -------------------------------------------- */

enum observe__op_flags {
    OBSERVE__SWITCH = 1 << 0,  /* its backward masks gradients by its input */
    OBSERVE__COMM = 1 << 1,    /* its output depends on other ranks */
    OBSERVE__RECEIVE = 1 << 2, /* its output is what another rank sent */
    OBSERVE__SEND = 1 << 3,
    OBSERVE__CAST = 1 << 4,    /* changes only the type */
    OBSERVE__WEIGHED = 1 << 5, /* arguments from the second on are parameters */
    OBSERVE__LOOKUP = 1 << 6,  /* the second argument is a parameter */
    OBSERVE__NORMS = 1 << 7,   /* a normalization, such as layer_norm, with an eps */
    OBSERVE__DROPS = 1 << 8,
    OBSERVE__MASKS = 1 << 9,
    OBSERVE__ADDS = 1 << 10,
    OBSERVE__WILD = 1 << 11, /* its backward may amplify differences strongly */
    /* moves values or rounds each once: bit-equal inputs give bit-equal outputs */
    OBSERVE__EXACT = 1 << 12,
    OBSERVE__EVEN = 1 << 13,    /* its backward passes gradients on unchanged */
    OBSERVE__POWER = 1 << 14,   /* multiplies a value by itself */
    OBSERVE__VIEW = 1 << 15,    /* its output has elements of its input, in any order */
    OBSERVE__SERIES = 1 << 16,  /* frameworks compute it by polynomials of other lengths */
    OBSERVE__CANCELS = 1 << 17, /* sums two values that may cancel */
    OBSERVE__SUMS = 1 << 18,    /* sums elements of one value, which may cancel */
    OBSERVE__MEANS = 1 << 19,   /* the same, divided by their number */
};
unsigned observe__op_flags(struct ms_str api);
/* Returns what is known of an operator by its name, which must live as long. */
struct observe__op observe__op_of(struct ms_str api);
/* Returns the name of a node's operator, such as Functional.linear. */
struct ms_str observe__op_name(const struct probe_dump *d, uint32_t node);
/* Returns the node of the same call in a direction, ".forward" or ".backward"; MS_MAP_NONE: none is recorded. */
uint32_t observe__same_call(const struct probe_dump *d, uint32_t node, const char *direction);
/* Tells whether the operator of a node has one of the names, which end with NULL. */
bool observe__is_named(const struct observe__part *p, const struct observe__node *n,
                       const char *const *names);
/* Tells whether operators of different names are partners, as in another implementation. Their
 * arguments then mean different things. */
bool observe__is_other_operator(const struct observe__part *p, const struct observe__node *n);
/* Tells whether an operator computes in place. Assignments such as zero_ and copy_ are no update. */
bool observe__is_in_place(struct ms_str op);
static inline bool observe__is_api(const struct probe_node *n, enum probe_dir dir)
{
    return n->kind == PROBE_NODE_API && n->dir == dir;
}

/* ---- from the types ------------------------------------------------------ */

/* Returns the coarser unit of rounding of a leaf's two types; *differ: the units differ. */
double observe__roundoff(const struct observe__leaf *l, bool *differ);
/* Returns the largest relative error of rounding to a type; 0 for types that are not low. */
double observe__unit(uint8_t dtype);

/* ---- from sizes and directions ------------------------------------------- */

/* Tells whether a node is the backward of an operator. */
bool observe__is_backward(const struct observe__node *n);
/* Computes the number of elements of the smallest tensor that a node writes and of the largest that
 * it reads. */
void observe__count_elements(const struct observe__part *p, const struct observe__node *n,
                             float *read, float *made);
/* Tells whether a node is a backward that cannot amplify a difference: it passes gradients on and
 * sums up nothing. */
bool observe__is_even(const struct observe__part *p, const struct observe__node *n);

/* ---- constants ----------------------------------------------------------- */

/* Constants of the rules. They were tuned on one set of runs; the reported figures come from
 * another. */
struct observe__rules {
    double exact;                 /* two quanta of float32 statistics */
    double exact_kernels;         /* the same between kernels of two frameworks */
    double exact_series;          /* the same, of functions that polynomials approximate */
    double forward[2], gradients; /* least factor of a suspect: in statistics, in tensor mode */
    /* multiple of the ratio that most calls of an operator stay below; its upper bound */
    double usual_times, usual_most;
    /* multiplies `forward`: at low precision another element may become the largest */
    double forward_low;
    double backward[2], backward_low[2];
    double backward_calm[2]; /* for low precision and operators that hardly amplify */
    double turned_least;     /* smaller gradients may change sign by chance */
    double norm_forward, norm_backward, norm_calm, norm_even, norm_least;
    double norm_units; /* units of rounding by which the norm of a gradient may change */
    /* divisor for the noise of norms learned from earlier nodes */
    double norm_learned;
    /* ratio of the norm's difference to the explained one above which a different argument has an
     * effect */
    double norm_effect;
    double start; /* multiplies limits until noise has been measured */
    /* multiplies `forward` where inputs differ: norms over few values, and masks at low precision,
     * which remove the largest values */
    double forward_few;
    double backward_noisy; /* backward_least where the inputs differ already */
    double backward_least; /* smaller differences of gradients are noise */
    double hidden;         /* differences of elements that equal statistics can hide */
    double shown;          /* no element of fp32 can differ by less, only their sums */
    double resummed;       /* largest difference caused by another order of summation */
    double turned_most;    /* the most low-precision values that hidden noise rounds differently, */
    double turned_chance;  /* of which one is expected per this many equal values before */
    double inherited;      /* units of rounding by which statistics of derived values may differ */
    double parameter_norm;
    double unexplained_input;
    double systemic_share;
    double start_few;
};
extern const struct observe__rules observe__rule;

/* Parameters that differ by more belong to another model, or to another training step. */
#define OBSERVE__UNLIKE 0.02

#endif
