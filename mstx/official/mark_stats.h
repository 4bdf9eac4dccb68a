/* SPDX-License-Identifier: MIT
 *
 * mark_stats: the named durations of all ranks in memory, and the tables made of them.
 */
#ifndef MSTX_OFFICIAL_MARK_STATS_H
#define MSTX_OFFICIAL_MARK_STATS_H

#include "probe/base/store.h"

/* A range or a pair of marks of one rank. */
struct mstx__timed {
    struct ms_str name;
    int64_t start;
    double framework, cann, device; /* durations; device is NAN where there is none */
};
struct mstx__mark_step {
    int64_t id, start, end;
};

struct mstx__mark_stats;
enum ms_rc mstx__mark_stats_new(struct mstx__mark_stats **out, struct ms_err *err) MS_MUST_USE;
void mstx__mark_stats_free(struct mstx__mark_stats *m);
/* Adds the durations of a rank, in the order of which those of one name in one step are numbered.
 * Ranks come in order; steps are in order of their start. */
enum ms_rc mstx__mark_stats_add(struct mstx__mark_stats *m, int64_t rank,
                                const struct mstx__timed *row, size_t n,
                                const struct mstx__mark_step *step, size_t steps,
                                struct ms_err *err) MS_MUST_USE;
/* Writes MSTXMarkStats, the longest share of a rank first, and the summaries of framework, CANN and
 * device. */
enum ms_rc mstx__mark_stats_write(struct mstx__mark_stats *m, struct ms_store *s,
                                  struct ms_err *err) MS_MUST_USE;

#endif
