/* SPDX-License-Identifier: MIT
 *
 * sums: what adds up over a whole run, by name or by rank, a slice of time at a call.
 *
 *     struct viz_sums s = {0};
 *     viz_sums_begin(&s, tl, VIZ_SUM_NAMES, &err)
 *     while (!s.done)
 *         viz_sums_work(&s, ms_clock_ns() + SLICE, &err)      then s.rows, the largest first
 *
 * A run may have millions of names or steps: whoever looks at it goes on meanwhile.
 */
#ifndef VIZ_MODEL_SUMS_H
#define VIZ_MODEL_SUMS_H

#include "mstx/rundb/run_query.h"
#include "probe/base/map.h"

enum viz_sums_of {
    VIZ_SUM_NAMES,       /* ranges by their total time */
    VIZ_SUM_COLLECTIVES, /* of these what communicates */
    VIZ_SUM_RANKS,       /* steps of each process: who makes others wait first, then the longest */
};
enum { VIZ_SUMS_MOST = 2000 }; /* rows that are kept at the end */

/* How a rank spends its steps, as far as communication was recorded: computing whether or not
 * something is sent meanwhile, then what is neither hidden by it nor waiting for others. */
enum viz_use { VIZ_COMPUTES, VIZ_SENDS, VIZ_WAITS, VIZ_IDLES, VIZ_USES };

struct viz_sum {
    uint32_t name;                 /* of a range: its number among the texts of the run */
    uint32_t process;              /* of a rank: an index */
    struct ms_str domain;          /* of a range */
    int64_t count, total, longest; /* times in ns */
    int64_t measured, blame; /* of a rank: steps whose use is known; for which others waited */
    int64_t use[VIZ_USES];
    struct ms_str op;      /* of what communicates, as joins of ranks call it */
    int64_t bytes;         /* of its calls */
    int64_t joins, waited; /* collectives that were found on all ranks; waiting in them */
    int64_t last, times;   /* the rank that came last most often, and how often */
};

struct viz_sums {
    MS_VEC(struct viz_sum) rows; /* once done, in order */
    bool done;
    enum viz_sums_of of;
    uint64_t read;      /* entries that were added so far */
    struct ms_stmt *st; /* where reading goes on */
    struct mstx_tl *tl;
    size_t statement;         /* which of those that it takes */
    struct ms_map keys;       /* name and domain to the row */
    struct ms_map latecomers; /* operation and rank to how often it came last: */
    MS_VEC(int64_t) times;
    struct ms_arena *arena;
};

enum ms_rc viz_sums_begin(struct viz_sums *s, struct mstx_tl *tl, enum viz_sums_of of,
                          struct ms_err *err) MS_MUST_USE;
/* Go on until it is done, or about end_ns of the clock. */
enum ms_rc viz_sums_work(struct viz_sums *s, int64_t end_ns, struct ms_err *err) MS_MUST_USE;
void viz_sums_free(struct viz_sums *s);
static inline int64_t viz_sum_mean(const struct viz_sum *s)
{
    return s->count != 0 ? s->total / s->count : 0;
}

/* The row of a process once that is done; NULL when its use of time is not known. */
const struct viz_sum *viz_sums_use(const struct viz_sums *s, size_t process);

#endif
