/* SPDX-License-Identifier: MIT
 *
 * replay_spans: parts of replayed timelines, as viewers draw them: the critical path of each step, and the
 * timeline with ideal durations.
 *
 *     critical   rank 0  ━━━━━━┓             one span after the other, from the start of a step to its
 *                rank 1        ┗━━━━━        end: what had to be shorter for the step to be shorter
 *
 *     ideal      rank 0  ▆▆▆▆▆▆░░██          local work, waiting, communication
 *                rank 1  ▆▆▆▆▆▆▆▆██
 *
 * The spans of the critical path lie at recorded times.  In the ideal timeline each step begins at its recorded
 * start, so what a step would save is the gap behind it.
 */
#ifndef MSTX_CLUSTER_REPLAY_SPANS_H
#define MSTX_CLUSTER_REPLAY_SPANS_H

#include "mstx/cluster/deps.h"
#include "mstx/format/span_kinds.h"

#define MSTX_NO_STEP UINT32_MAX

struct mstx_span {
    int64_t start_ns, end_ns;
    uint32_t lane, step; /* step: MSTX_NO_STEP before the first one */
    uint8_t kind;        /* enum mstx_span_kind */
};
typedef MS_VEC(struct mstx_span) mstx_spans;

/* What is drawn of an operation. */
struct mstx_span_op {
    int64_t end_ns; /* as recorded */
    uint32_t lane;  /* below `lanes` */
    uint32_t step;  /* below `steps`, or MSTX_NO_STEP */
    bool is_comm;
};
struct mstx_replayed {
    const struct mstx_deps *deps;
    const double *recorded, *ideal; /* by operation, ns */
    size_t lanes, steps;
    bool
        is_chained; /* the operations of a lane follow each other without gaps, so a gap is waiting,
                     * and a replay of the recorded durations gives the recorded times */
    struct mstx_span_op (*op)(const void *ctx, uint32_t op);
    const void *ctx;
};

/* Appends the critical path of the recorded durations, in order of time.  Returns false when out of memory. */
bool mstx__critical_spans(const struct mstx_replayed *r, mstx_spans *to);
/* What all lanes of the timeline with ideal durations share. */
struct mstx_ideal_replay {
    const struct mstx_replayed *r;
    uint32_t *slot; /* by node: the place of its time in t */
    double *t;
    int64_t *real; /* by step: its recorded start */
    double *at;    /* by step: its start in the replay */
};
/* Replays the ideal durations; false: out of memory. */
bool mstx__ideal_begin(struct mstx_ideal_replay *w, const struct mstx_replayed *r);
void mstx__ideal_end(struct mstx_ideal_replay *w);
/* Appends the timeline of the lanes [first, end) with ideal durations, lane by lane.  A timeline of millions of
 * spans is drawn some lanes at a time, so that not all of it is in memory.  Returns false when out of memory. */
bool mstx__ideal_spans(struct mstx_ideal_replay *w, size_t first, size_t end, mstx_spans *to);

#endif
