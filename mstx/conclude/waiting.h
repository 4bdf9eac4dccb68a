/* SPDX-License-Identifier: MIT
 *
 * waiting: findings about ranks that make the others wait, by the dependency graph of their calls.
 */
#ifndef MSTX_CONCLUDE_WAITING_H
#define MSTX_CONCLUDE_WAITING_H

#include "mstx/cluster/waiters.h"
#include "mstx/conclude/findings.h"
#include "mstx/conclude/replay_rows.h"
#include "mstx/conclude/steps.h"

/* The result of the graph, kept to check the conclusions of the import against it. */
struct mstx_waiting {
    struct mstx_waiters waiters;
    MS_VEC(int32_t) rank; /* by rank index */
    bool is_whole;        /* the graph covers the whole run; else it refutes no conclusion */
};

/* Judges the ranks of an open run and adds a finding for each one that is named, or that is missing from a
 * call in which others have waited for missing_ns.  Adds the critical path and the ideal timeline to spans. */
enum ms_rc mstx__find_waiting(struct mstx_tl *tl, const struct mstx_steps *steps,
                              int64_t missing_ns, struct mstx_waiting *w,
                              struct mstx_replay_rows *spans, mstx_findings *to,
                              struct ms_err *err) MS_MUST_USE;
/* Tells whether to keep a straggler that the import found from the times of single communicators:
 * the graph cannot judge the run, or knows no run delay and no other rank costs more than half as much in a
 * replay. */
bool mstx__waiting_confirms(const struct mstx_waiting *w, int32_t rank);
/* Adds the finding that no rank makes the others wait, when the whole run was judged and has no
 * straggler and no missing rank. */
enum ms_rc mstx__find_balance(const struct mstx_waiting *w, mstx_findings *to,
                              struct ms_err *err) MS_MUST_USE;
void mstx__waiting_free(struct mstx_waiting *w);

#endif
