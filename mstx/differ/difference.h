/* SPDX-License-Identifier: MIT
 *
 * difference: two runs place by place.
 *
 * A host that is busier makes all places of a run longer by about the same factor. What is judged
 * is the excess of a place over this factor, against how much the places scatter around it and
 * against how much the place changes within each run.
 *
 * What all ranks have in common is apart from what one rank has beyond that. Communication counts as
 * long as it takes the rank that waits least: what the others wait longer follows from the work of a
 * rank.
 */
#ifndef MSTX_DIFFER_DIFFERENCE_H
#define MSTX_DIFFER_DIFFERENCE_H

#include "mstx/differ/profile.h"

/* An excess of new over factor × old, ns a step. */
struct mstx_excess {
    double ns;
    double low, high; /* by the eighths of both runs, without the extreme ones */
    double noise;     /* by how much two equal runs may differ here: a standard deviation */
};

/* A place with all that lies in it, ns a step. */
struct mstx_change {
    double old_ns, new_ns;
    struct mstx_excess all, own; /* own: without what lies in it */
};

/* Ranks that are compared: numbers among the ranks of each run. */
struct mstx_rank_pair {
    uint32_t old_rank, new_rank;
    double own_ns;   /* excess of all work beyond what the ranks have in common */
    double slack_ns; /* how much longer it waited in the old run than the rank that waits least */
};

struct mstx_difference {
    const struct mstx_places *places;
    const struct mstx_profile *old, *new;
    MS_VEC(struct mstx_rank_pair) pair;
    struct mstx_change *change; /* by place: in common */
    double factor, scatter;     /* of places around the factor, as a share */
    size_t compared;            /* number of places from which these are known */
    double disturbed; /* how much longer work takes than undisturbed, as a logarithm: of the
                                   run in which it is more */
    double loaded;    /* the same of whole steps, with all waiting */
    double old_step_ns, new_step_ns;   /* mean over ranks, as recorded */
    double old_quiet_ns, new_quiet_ns; /* mean over ranks */
};

/* Compares two profiles, which must outlive d; `noise` are further ones of the old program.  Returns
 * false when out of memory. */
bool mstx__difference_find(struct mstx_difference *d, const struct mstx_places *places,
                           const struct mstx_profile *old, const struct mstx_profile *new,
                           const struct mstx_profile *noise, size_t noises);
/* Returns all changes of a pair, by place, on the heap, with communication as for all pairs; NULL when
 * out of memory. */
struct mstx_change *mstx__difference_of_rank(const struct mstx_difference *d, size_t pair);
void mstx__difference_free(struct mstx_difference *d);

#endif
