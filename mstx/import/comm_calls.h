/* SPDX-License-Identifier: MIT
 *
 * comm_calls: communication calls of a run: from records to packed calls and the table comm_groups
 * of run.db.
 */
#ifndef MSTX_IMPORT_COMM_CALLS_H
#define MSTX_IMPORT_COMM_CALLS_H

#include "mstx/format/comm.h"
#include "mstx/format/event.h"
#include "mstx/read/texts.h"

/* The records of a communication call. */
struct mstx_comm_fact {
    const struct mstx_rec_comm *rec;
    const struct mstx_rec_comm_part *part; /* of the begin; NULL: none */
    const struct mstx_rec_comm_part *end;  /* of the end; NULL: none */
};

/* Writes the calls and communicators of a whole import. */
struct mstx_comm_writer;
struct mstx_writer;
/* Makes a writer; with to NULL it only collects the communicators. */
enum ms_rc mstx__comm_writer_new(struct mstx_comm_writer **out, struct mstx_writer *to,
                                 struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__comm_writer_meet(struct mstx_comm_writer *w, const struct mstx_comm_known *g,
                                  bool *is_new, struct ms_err *err) MS_MUST_USE;
/* Ids of communicators first met while a part of a database is written: MSTX_COMM_LATER and above,
 * until process 0 merges the parts and replaces them (mstx__comm_writer_adopt).  The rows of
 * communicators met before mstx__comm_writer_part are written by process 0. */
enum { MSTX_COMM_LATER = 1 << 30 };
void mstx__comm_writer_mute(struct mstx_comm_writer *w); /* stops writing rows of communicators */
void mstx__comm_writer_part(struct mstx_comm_writer *w);
enum ms_rc mstx__comm_writer_adopt(struct mstx_comm_writer *w, uint64_t uid, struct ms_str name,
                                   int64_t size, struct ms_str ranks, int64_t *id,
                                   struct ms_err *err) MS_MUST_USE;
void mstx__comm_writer_free(struct mstx_comm_writer *w);
/* Begins a process, which has its own numbers of communicators.  calls: the number of calls of all
 * processes before it. */
void mstx__comm_writer_process(struct mstx_comm_writer *w, uint32_t process, int32_t rank,
                               uint64_t calls);
enum ms_rc mstx__comm_writer_group(struct mstx_comm_writer *w, uint32_t number,
                                   const struct mstx_comm_known *g, struct ms_err *err) MS_MUST_USE;
/* Returns the id in comm_groups of the number that the process has for a communicator; 0:
 * unknown. */
uint32_t mstx__comm_writer_id(const struct mstx_comm_writer *w, uint32_t number);
/* Adds a call made by thread tid; the name of its event is the name of the called function. */
enum ms_rc mstx__comm_writer_call(struct mstx_comm_writer *w, const struct mstx_comm_fact *f,
                                  const struct mstx_event *ev, uint32_t tid,
                                  struct ms_err *err) MS_MUST_USE;
/* Writes the packed calls; called after the last call of a process. */
enum ms_rc mstx__comm_writer_flush(struct mstx_comm_writer *w, struct ms_err *err) MS_MUST_USE;
/* Adds a call that a framework marked itself and described in the text of the mark; ignores other
 * texts.  Calls of a process must come in order of their start, which gives them their sequence
 * numbers. */
enum ms_rc mstx__comm_writer_add_marked(struct mstx_comm_writer *w, struct ms_str text,
                                        const struct mstx_event *ev, uint32_t tid,
                                        struct ms_err *err) MS_MUST_USE;

#endif
