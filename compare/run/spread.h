/* SPDX-License-Identifier: MIT
 *
 * spread: a comparison over the processes that mpirun has started.
 *
 *     statistics, md5   a couple of dumps is compared by the one process that owns it
 *     tensors           all processes open each couple and measure a part of its tensors;
 *                       the owner, process 0, joins the parts and writes the table
 *
 * The result does not depend on the number of processes. All processes make the same calls
 * for the same couples in the same order, even after a failure: the failure is sent in the
 * message that would have contained the result.
 */
#ifndef COMPARE_RUN_SPREAD_H
#define COMPARE_RUN_SPREAD_H

#include "compare/run/report.h"
#include "probe/base/par.h"
#include "probe/base/pool.h"

struct cmp_spread {
    struct ms_par *par;
    size_t n;
    unsigned *owner; /* by couple */
    bool *shared;    /* by couple: tensors, measured by all processes */
    bool quiet;      /* another process reports the failure at the start */
};

/* Assigns the couples; ok: this process knows its couples. Fails in every process when one of them
 * does not know its couples or has couples other than those of process 0. */
enum ms_rc cmp_spread_init(struct cmp_spread *s, struct ms_par *par, bool ok,
                           const struct cmp_ranks *ranks, struct ms_err *err) MS_MUST_USE;
void cmp_spread_free(struct cmp_spread *s);

bool cmp_spread_owns(const struct cmp_spread *s, size_t couple);
/* Tells whether this process takes part in the couple. */
bool cmp_spread_joins(const struct cmp_spread *s, size_t couple);

/* Measures the tensors of a couple that this process takes part in. c is NULL when the couple could
 * not be opened; `opened` has the reason. The owner returns that failure, or that of another
 * process. */
enum ms_rc cmp_spread_measure(const struct cmp_spread *s, size_t couple, struct cmp *c,
                              const struct ms_err *opened, struct ms_pool *pool,
                              struct ms_err *err) MS_MUST_USE;
/* Brings the results of all couples to process 0. */
enum ms_rc cmp_spread_gather(const struct cmp_spread *s, struct cmp_report *report,
                             struct ms_err *err) MS_MUST_USE;

#endif
