/* SPDX-License-Identifier: MIT
 *
 * profile: the steps of one run, each rank's time by place.
 */
#ifndef MSTX_DIFFER_PROFILE_H
#define MSTX_DIFFER_PROFILE_H

#include "mstx/differ/figure.h"

/* How often a name occurs within the steps, and its durations with all that lies in them.  What a
 * device executes belongs to the step that launched it. */
struct mstx_profile_name {
    uint64_t count;
    int64_t ns;
};
typedef MS_VEC(struct mstx_profile_name)
    mstx_profile_names; /* by number among the names of places */

struct mstx_profile_rank {
    int32_t rank;     /* -1: a process without a rank */
    uint32_t process; /* index */
    uint32_t steps;
    double step_ns; /* mean, from the end of the step before */
};

struct mstx_profile {
    MS_VEC(struct mstx_profile_rank) rank; /* processes that have steps */
    mstx_figures figure;
    mstx_profile_names host, device;
};

/* Steps that are looked at: those with these numbers. */
struct mstx_step_range {
    int64_t first, last;
};

/* Reads a run's profile.  Fails with MS_E_NOTFOUND when there are no such steps. */
enum ms_rc mstx__profile_read(struct mstx_profile *p, struct mstx_tl *tl,
                              struct mstx_step_range range, struct mstx_places *places,
                              struct ms_err *err) MS_MUST_USE;
void mstx__profile_free(struct mstx_profile *p);

#endif
