/* SPDX-License-Identifier: MIT
 *
 * replay_rows: the critical path and the ideal timeline of a run, as they are stored in run.db.
 */
#ifndef MSTX_CONCLUDE_REPLAY_ROWS_H
#define MSTX_CONCLUDE_REPLAY_ROWS_H

#include "mstx/cluster/replay_spans.h"
#include "mstx/cluster/waiters.h"
#include "mstx/cluster/whatif.h"
#include "mstx/conclude/call_rows.h"
#include "mstx/conclude/steps.h"
#include "mstx/rundb/side_file.h"

/* The place of a lane in the timeline. */
struct mstx_replay_lane {
    uint32_t process; /* index */
    int32_t rank;
    uint32_t tid;
};
/* Spans, packed as in the table packed_spans. */
struct mstx_replay_blob {
    uint64_t at; /* in the file */
    uint32_t n, rows;
};
/* The spans wait in a file beside the database until they can be saved: those of 2 million calls take 54 MB. */
struct mstx_replay_rows {
    const char *db;
    struct mstx_side_file file;           /* opened for the first spans */
    MS_VEC(struct mstx_replay_blob) blob; /* critical paths before ideal timelines */
    MS_VEC(struct mstx_replay_lane) lane;
    MS_VEC(int64_t) step; /* numbers of the steps */
};

/* Finds the spans of a capture from the graph of its calls, unless its steps are unknown. */
enum ms_rc mstx__replay_calls(struct mstx_replay_rows *to, const struct mstx_call_rows *rows,
                              const struct mstx_steps *steps, const struct mstx_call_graph *g,
                              const struct mstx_waiters *w, struct ms_err *err) MS_MUST_USE;
/* Finds the spans of a trace whose operations are recorded. */
enum ms_rc mstx__replay_ops(struct mstx_replay_rows *to, const struct mstx_tl *tl,
                            const struct mstx_whatif *w, struct ms_err *err) MS_MUST_USE;
void mstx__replay_free(struct mstx_replay_rows *r);
/* Writes the spans; the store is being edited. */
struct ms_store;
enum ms_rc mstx__replay_save(const struct mstx_replay_rows *r, struct ms_store *s,
                             struct ms_err *err) MS_MUST_USE;

#endif
