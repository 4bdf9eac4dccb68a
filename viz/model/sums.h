/* SPDX-License-Identifier: MIT
 *
 * sums: totals over a whole run, by name or by rank, computed in slices of time.
 *
 *     struct viz_sums s = {0};
 *     viz_sums_begin(&s, tl, VIZ_SUM_NAMES, &err)
 *     while (!s.done)
 *         viz_sums_work(&s, ms_clock_ns() + SLICE, &err)      then s.rows, the largest first
 *
 * A run may have millions of names or steps; the slices keep the viewer responsive.
 */
#ifndef VIZ_MODEL_SUMS_H
#define VIZ_MODEL_SUMS_H

#include "mstx/rundb/run_query.h"
#include "probe/base/map.h"

enum viz_sums_of {
    VIZ_SUM_NAMES,       /* ranges by their total time */
    VIZ_SUM_COLLECTIVES, /* of the ranges, those that communicate */
    VIZ_SUM_RANKS, /* steps of each process: the most blamed for waiting first, then the longest */
};
enum { VIZ_SUMS_MOST = 2000 }; /* rows kept at the end */

/* Use of a rank's step time, as far as communication was recorded: computing, whether or not
 * data is sent meanwhile; then communication that is neither hidden by computing nor waiting;
 * waiting; idle. */
enum viz_use { VIZ_COMPUTES, VIZ_SENDS, VIZ_WAITS, VIZ_IDLES, VIZ_USES };

struct viz_sum {
    uint32_t name;                 /* of a range: index of its text in the run */
    uint32_t process;              /* of a rank: index */
    struct ms_str domain;          /* of a range */
    int64_t count, total, longest; /* times in ns */
    int64_t measured, blame; /* of a rank: steps whose use is known; time others waited for it */
    int64_t use[VIZ_USES];
    struct ms_str op; /* of a collective: operation name as in the table joins */
    int64_t bytes;    /* bytes of its calls */
    bool is_of_calls; /* its times are those of its calls, which are in no domain of their own */
    int64_t joins, waited; /* collectives matched on all ranks; waiting time in them */
    int64_t last, times;   /* the rank that arrived last most often, and how often */
    struct viz_longest {   /* the longest call of a collective; length_ns 0: none is known */
        size_t process;    /* index */
        int64_t start_ns, length_ns;
    } call;
};

struct viz_sums {
    MS_VEC(struct viz_sum) rows; /* sorted once done */
    bool done;
    enum viz_sums_of of;
    uint64_t read;      /* entries added so far */
    struct ms_stmt *st; /* open statement of the next slice */
    struct mstx_tl *tl;
    size_t statement;         /* index of the current statement */
    struct ms_map keys;       /* name and domain -> row */
    struct ms_map latecomers; /* operation and rank -> index into times: count of last arrivals */
    MS_VEC(int64_t) times;
    struct ms_arena *arena;
};

enum ms_rc viz_sums_begin(struct viz_sums *s, struct mstx_tl *tl, enum viz_sums_of of,
                          struct ms_err *err) MS_MUST_USE;
/* Continues until done or until about end_ns of the clock. */
enum ms_rc viz_sums_work(struct viz_sums *s, int64_t end_ns, struct ms_err *err) MS_MUST_USE;
void viz_sums_free(struct viz_sums *s);
static inline int64_t viz_sum_mean(const struct viz_sum *s)
{
    return s->count != 0 ? s->total / s->count : 0;
}

/* Returns the row of a process, valid once done; NULL when its use of time is not known. */
const struct viz_sum *viz_sums_use(const struct viz_sums *s, size_t process);

#endif
