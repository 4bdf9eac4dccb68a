/* SPDX-License-Identifier: MIT
 *
 * tl_ascend_comm: communication calls in an Ascend database: the official text of calls that hooks
 * saw, and a row of COMMUNICATION_OP for each collective and transfer, as the recipe mstx2commop of
 * msprof-analyze makes them from such texts.
 *
 *     comm_ops, by start ──► cursor ◄── events of the domain communication, by start
 */
#ifndef MSTX_TL_ASCEND_COMM_H
#define MSTX_TL_ASCEND_COMM_H

#include "mstx/comm.h"
#include "mstx/timeline.h"

#include "probe/base/store.h"

/* The id of a text in STRING_IDS, which is added when it is new. */
struct mstx_own_texts {
    enum ms_rc (*id)(void *ctx, struct ms_str text, int64_t *id, struct ms_err *err);
    void *ctx;
};

struct mstx_ascend_comm;
/* *out stays NULL when the run has no such calls: then there is no table either. */
enum ms_rc mstx__ascend_comm_new(struct mstx_ascend_comm **out, struct mstx_tl *tl,
                                 struct ms_store *to, const struct mstx_own_texts *texts,
                                 struct ms_err *err) MS_MUST_USE;
void mstx__ascend_comm_free(struct mstx_ascend_comm *c);

/* An event of the domain, in order of start. When it is such a call its row is written, and when a
 * hook saw it *message becomes the id of its official text; else that is left as it is. */
enum ms_rc mstx__ascend_comm_event(struct mstx_ascend_comm *c, const struct mstx_track *t,
                                   const struct mstx_event *ev, int64_t connection,
                                   int64_t *message, struct ms_err *err) MS_MUST_USE;
/* After TASK is filled: calls with a device side take its times. */
enum ms_rc mstx__ascend_comm_finish(struct mstx_ascend_comm *c, struct ms_err *err) MS_MUST_USE;

#endif
