/* SPDX-License-Identifier: MIT
 *
 * steps: the steps of a training run, found in its marks and ranges.
 */
#ifndef MSTX_CONCLUDE_STEPS_H
#define MSTX_CONCLUDE_STEPS_H

#include "mstx/rundb/run_query.h"

#include "probe/base/vec.h"

struct mstx_step {
    uint32_t process; /* index */
    uint32_t number;  /* from its name, else counted from 0 */
    uint32_t name;
    int64_t start_ns, end_ns;
};
/* How steps were found. */
enum mstx_step_source { MSTX_STEPS_NONE, MSTX_STEPS_RANGES, MSTX_STEPS_MARKS, MSTX_STEPS_PERIOD };
struct mstx_steps {
    MS_VEC(struct mstx_step) list; /* by process, then start */
    enum mstx_step_source source;  /* of the process with the most */
};

/* Finds the steps of every process: ranges or marks named "step 7", "ProfilerStep#7", "iteration 7"
 * and the like; without these, the periodic name with the longest period. */
enum ms_rc mstx_steps_find(struct mstx_tl *tl, struct mstx_steps *steps,
                           struct ms_err *err) MS_MUST_USE;
void mstx_steps_free(struct mstx_steps *steps);
/* Computes the median duration of the steps, 0 when there are none. */
enum ms_rc mstx__steps_median(const struct mstx_steps *steps, int64_t *median_ns,
                              struct ms_err *err) MS_MUST_USE;

#endif
