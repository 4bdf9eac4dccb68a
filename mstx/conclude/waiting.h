/* SPDX-License-Identifier: MIT
 *
 * waiting: findings about ranks that make the others wait, by the dependency graph of their calls.
 */
#ifndef MSTX_CONCLUDE_WAITING_H
#define MSTX_CONCLUDE_WAITING_H

#include "mstx/cluster/waiters.h"
#include "mstx/conclude/findings.h"
#include "mstx/conclude/steps.h"

/* The judgement of a run, kept while conclusions of the import are looked at. */
struct mstx_waiting {
    struct mstx_waiters waiters;
    MS_VEC(int32_t) rank; /* of each place */
    bool is_whole;        /* the graph judged all of the run; else it denies nothing */
};

/* Judges the ranks of an open run and adds a finding for each one that is named. */
enum ms_rc mstx__find_waiting(struct mstx_tl *tl, const struct mstx_steps *steps,
                              struct mstx_waiting *w, mstx_findings *to,
                              struct ms_err *err) MS_MUST_USE;
/* Whether a straggler that the import found, from the times of single communicators, stands: the graph
 * cannot judge the run, or a replay finds that no other rank costs the job half as much. */
bool mstx__waiting_confirms(const struct mstx_waiting *w, int32_t rank);
/* Adds that nobody makes the others wait, when the run was judged and no finding names a rank. */
enum ms_rc mstx__find_balance(const struct mstx_waiting *w, mstx_findings *to,
                              struct ms_err *err) MS_MUST_USE;
void mstx__waiting_free(struct mstx_waiting *w);

#endif
