/* SPDX-License-Identifier: MIT
 *
 * comm_calls: communication calls of a run: from records to packed calls and the table comm_groups of
 * run.db.
 */
#ifndef MSTX_IMPORT_COMM_CALLS_H
#define MSTX_IMPORT_COMM_CALLS_H

#include "mstx/format/comm.h"
#include "mstx/format/event.h"
#include "mstx/read/texts.h"

/* What a call says of itself; one for each event that is a communication call. */
struct mstx_comm_fact {
    const struct mstx_rec_comm *rec;
    const struct mstx_rec_comm_part *part; /* of the begin; NULL: none */
    const struct mstx_rec_comm_part *end;  /* of the end; NULL: none */
};

/* The rows of run.db; one writer for a whole import.  Failures stay in err. */
struct mstx_comm_writer;
struct mstx_writer;
/* Makes a writer; without a database it only remembers which communicators were met. */
enum ms_rc mstx__comm_writer_new(struct mstx_comm_writer **out, struct mstx_writer *to,
                                 struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__comm_writer_meet(struct mstx_comm_writer *w, const struct mstx_comm_known *g,
                                  bool *is_new, struct ms_err *err) MS_MUST_USE;
/* A part of a database: those met so far have their rows elsewhere, later ones numbers from
 * MSTX_COMM_LATER on until somebody who has all parts gives them theirs: mstx__comm_writer_adopt. */
enum { MSTX_COMM_LATER = 1 << 30 };
void mstx__comm_writer_mute(struct mstx_comm_writer *w); /* no rows of communicators */
void mstx__comm_writer_part(struct mstx_comm_writer *w);
enum ms_rc mstx__comm_writer_adopt(struct mstx_comm_writer *w, uint64_t uid, struct ms_str name,
                                   int64_t size, struct ms_str ranks, int64_t *id,
                                   struct ms_err *err) MS_MUST_USE;
void mstx__comm_writer_free(struct mstx_comm_writer *w);
/* Forget the numbers of the process before; they are introduced anew.  calls: number before that
 * of its first call. */
void mstx__comm_writer_process(struct mstx_comm_writer *w, uint32_t process, int32_t rank,
                               uint64_t calls);
enum ms_rc mstx__comm_writer_group(struct mstx_comm_writer *w, uint32_t number,
                                   const struct mstx_comm_known *g, struct ms_err *err) MS_MUST_USE;
/* Returns the id in comm_groups of the number that the process has for a communicator; 0: unknown. */
uint32_t mstx__comm_writer_id(const struct mstx_comm_writer *w, uint32_t number);
/* tid: of the thread that made the call, whose event is named after its function. */
enum ms_rc mstx__comm_writer_call(struct mstx_comm_writer *w, const struct mstx_comm_fact *f,
                                  const struct mstx_event *ev, uint32_t tid,
                                  struct ms_err *err) MS_MUST_USE;
/* After the last call of a process. */
enum ms_rc mstx__comm_writer_flush(struct mstx_comm_writer *w, struct ms_err *err) MS_MUST_USE;
/* A call that a framework marked itself: its name tells what it is. Those of a process come in order
 * of their start, so that each gets its number on the communicator. Another text is passed over. */
enum ms_rc mstx__comm_writer_said(struct mstx_comm_writer *w, struct ms_str text,
                                  const struct mstx_event *ev, uint32_t tid,
                                  struct ms_err *err) MS_MUST_USE;

#endif
