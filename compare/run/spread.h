/* SPDX-License-Identifier: MIT
 *
 * spread: a comparison over the processes that mpirun has started.
 *
 *     statistics, md5   a couple of dumps is compared by the one process that owns it
 *     tensors           all processes open each couple and measure a part of its tensors;
 *                       the owner, process 0, joins the parts and writes the table
 *
 * What comes out does not depend on how many processes there are.  All of them make
 * the same calls for the same couples in the same order, whatever fails on the way: a
 * failure travels in the message that would have brought the result.
 */
#ifndef COMPARE_RUN_SPREAD_H
#define COMPARE_RUN_SPREAD_H

#include "compare/run/report.h"
#include "probe/base/par.h"
#include "probe/base/pool.h"

struct cmp_spread {
    struct ms_par *par;
    size_t n;
    unsigned *owner; /* of each couple */
    bool *shared;    /* tensors: measured by all */
    bool quiet;      /* what went wrong at the beginning is for another process to say */
};

/* ok: has this process got as far as knowing its couples?  Fails in every process when one of them
 * has not, or has other couples than the first. */
enum ms_rc cmp_spread_init(struct cmp_spread *s, struct ms_par *par, bool ok,
                           const struct cmp_ranks *ranks, struct ms_err *err) MS_MUST_USE;
void cmp_spread_free(struct cmp_spread *s);

bool cmp_spread_owns(const struct cmp_spread *s, size_t couple);
/* Has this process something to do for the couple? */
bool cmp_spread_joins(const struct cmp_spread *s, size_t couple);

/* Measure the tensors of a couple that this process joins.  c is NULL when it could not be opened,
 * which `opened` tells; the owner gets that failure, or that of another process. */
enum ms_rc cmp_spread_measure(const struct cmp_spread *s, size_t couple, struct cmp *c,
                              const struct ms_err *opened, struct ms_pool *pool,
                              struct ms_err *err) MS_MUST_USE;
/* Bring the results of all couples to process 0. */
enum ms_rc cmp_spread_gather(const struct cmp_spread *s, struct cmp_report *report,
                             struct ms_err *err) MS_MUST_USE;

#endif
