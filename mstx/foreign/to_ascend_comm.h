/* SPDX-License-Identifier: MIT
 *
 * to_ascend_comm: writes communication calls to an Ascend database: the official text of calls that
 * hooks recorded, and a row of COMMUNICATION_OP for each collective and transfer, as the recipe
 * mstx2commop of msprof-analyze makes them from such texts.
 *
 *     comm_ops, by start ──► cursor ◄── events of the domain communication, by start
 */
#ifndef MSTX_FOREIGN_TO_ASCEND_COMM_H
#define MSTX_FOREIGN_TO_ASCEND_COMM_H

#include "mstx/foreign/ascend_calls.h"

#include "probe/base/store.h"

/* What a database tells of a run. */
struct mstx_ascend_how {
    int32_t rank;        /* or MSTX_ALL_RANKS */
    bool calls;          /* COMMUNICATION_OP */
    bool marks;          /* MSTX_EVENTS and TASK */
    bool tasks;          /* of a profiler's trace: tables of its device, runtime and framework */
    bool without_starts; /* leaves out calls that only start an operation, which return at once */
};

/* Writes the ranks of each group of a rank, or of MSTX_ALL_RANKS, as PyTorch's profiler does. */
enum ms_rc mstx__ascend_groups_write(struct mstx_tl *tl, int32_t rank, struct ms_store *to,
                                     struct ms_err *err) MS_MUST_USE;

/* Finds the id of a text in STRING_IDS, adding a new text. */
struct mstx_own_texts {
    enum ms_rc (*id)(void *ctx, struct ms_str text, int64_t *id, struct ms_err *err);
    void *ctx;
};

/* Makes the table COMMUNICATION_OP, unless there is one. */
enum ms_rc mstx__ascend_comm_table(struct ms_store *to, struct ms_err *err) MS_MUST_USE;
struct mstx_ascend_comm;
/* Creates the writer for the calls of a rank, or of MSTX_ALL_RANKS. *out stays NULL, and the table
 * is not made, when the run has no such calls. The groups must outlive the writer. */
enum ms_rc mstx__ascend_comm_new(struct mstx_ascend_comm **out, struct mstx_tl *tl,
                                 const struct mstx_ascend_groups *groups,
                                 const struct mstx_ascend_how *how, struct ms_store *to,
                                 const struct mstx_own_texts *texts,
                                 struct ms_err *err) MS_MUST_USE;
void mstx__ascend_comm_free(struct mstx_ascend_comm *c);

/* Handles the next event of the domain, in order of start: writes the row of a collective or
 * transfer.  Sets *message to the id of the official text when a hook recorded the call. */
enum ms_rc mstx__ascend_comm_event(struct mstx_ascend_comm *c, const struct mstx_track *t,
                                   const struct mstx_event *ev, int64_t connection,
                                   int64_t *message, struct ms_err *err) MS_MUST_USE;
/* Writes the rows of all calls, without their events. */
enum ms_rc mstx__ascend_comm_all(struct mstx_ascend_comm *c, int64_t connection,
                                 struct ms_err *err) MS_MUST_USE;
/* Gives calls with a device side the times of the device. Called when TASK is complete. */
enum ms_rc mstx__ascend_comm_finish(struct mstx_ascend_comm *c, struct ms_err *err) MS_MUST_USE;

#endif
