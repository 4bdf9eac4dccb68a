/* SPDX-License-Identifier: MIT
 *
 * read_ahead: threads that read the lanes of the next captured processes while the rows of the current
 * one are written.
 *
 *     threads ─► files, texts, lanes of process i + 1, i + 2 ... ─► slots ─► taken in order of i
 *
 * A thread only looks up the texts that were known before the first thread began.  Other texts get ids
 * of the slot, and their ids in run.db when the slot is taken, in the order in
 * which a single thread would have met them.  So run.db is the same for any number of threads.
 */
#ifndef MSTX_IMPORT_READ_AHEAD_H
#define MSTX_IMPORT_READ_AHEAD_H

#include "mstx/read/lanes.h"
#include "mstx/read/processes.h"
#include "mstx/rundb/run_write.h"

/* A process that was read. */
struct mstx_read_proc {
    struct mstx_lanes lanes;
    struct mstx_texts texts;
    bool has_texts; /* texts are to be freed */
    enum ms_rc rc;
    struct ms_err err;
};

/* Opens a process and reads its texts and lanes, as far as its files can be read. */
void mstx__proc_read(struct mstx_read_proc *r, struct mstx_proc *p,
                     const struct mstx_text_sink *sink, const struct mstx_problems *to,
                     bool no_args);
/* Closes it; its lanes keep their memory for the next process. */
void mstx__proc_done(struct mstx_read_proc *r, struct mstx_proc *p);

struct mstx_ahead;
/* What is to be read: processes [from, to) of the list that are wanted. */
struct mstx_ahead_how {
    struct mstx_procs *procs;
    size_t from, to;
    bool (*is_wanted)(const void *ctx, size_t place);
    const void *ctx;
    bool no_args;
    unsigned threads;
};
/* Starts the threads, which use the texts that w has now. */
enum ms_rc mstx__ahead_new(struct mstx_ahead **out, const struct mstx_ahead_how *how,
                           const struct mstx_writer *w, struct ms_err *err) MS_MUST_USE;
void mstx__ahead_free(struct mstx_ahead *a);
/* Waits for the next process, which is valid until the call after it; its problems go to `to`, and its
 * new texts to w.  Places have to be asked for in order. */
struct mstx_read_proc *mstx__ahead_take(struct mstx_ahead *a, size_t place,
                                        const struct mstx_problems *to, struct mstx_writer *w);

#endif
