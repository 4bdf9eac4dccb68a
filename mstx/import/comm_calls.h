/* SPDX-License-Identifier: MIT
 *
 * tl_comm: communication calls of a run: from records to packed calls and the table comm_groups of
 * run.db, and from there to reports and exports.
 */
#ifndef MSTX_TL_COMM_H
#define MSTX_TL_COMM_H

#include "mstx/comm.h"
#include "mstx/timeline.h"

#include "probe/base/jwrite.h"

/* ---- importing -------------------------------------------------------------- */

/* What a call says of itself; one for each event that is a communication call. */
struct mstx_comm_fact {
    const struct mstx_rec_comm *rec;
    const struct mstx_rec_comm_part *part; /* of the begin; NULL: none */
    const struct mstx_rec_comm_part *end;  /* of the end; NULL: none */
};

/* A communicator as one process knows it.  Text is what the GROUP entry holds. */
struct mstx_comm_known {
    uint64_t uid;
    int32_t size, rank;
    uint32_t listed;
    const char *world; /* listed int32_t, not aligned */
    struct ms_str name;
};
/* false: damaged. */
bool mstx__comm_group_parse(struct ms_str text, struct mstx_comm_known *g);

/* JSON members that describe a call to a viewer; group may be "". */
void mstx__comm_members(struct ms_jwrite *w, const struct mstx_rec_comm *c, struct ms_str group);
/* The records of a call among n continuations; type 0: there is none. */
void mstx__comm_take(const struct mstx_rec *cont, size_t n, struct mstx_rec_comm *rec,
                     struct mstx_rec_comm_part *part);

/* The rows of run.db; one writer for a whole import.  Failures stay in err. */
struct mstx_comm_writer;
struct mstx_writer;
/* Without a database it only tells which communicators were met before. */
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
/* Id in comm_groups of the communicator that the process calls so; 0: nobody introduced it. */
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

/* ---- asking ----------------------------------------------------------------- */

/* Calls of one operation on one communicator, all ranks together. */
struct mstx_comm_row {
    char *group, *op; /* on the heap */
    int64_t id;       /* of the communicator in comm_groups; 0: one that nobody introduced */
    int64_t size;     /* ranks of the communicator; -1: not known */
    int64_t calls, bytes, total_ns, mean_ns, max_ns;
    int64_t ranks; /* that made such calls */
};
typedef MS_VEC(struct mstx_comm_row) mstx_comm_rows;
/* By communicator, then by falling total; empty when the run has no such calls. */
enum ms_rc mstx_comm_measure(struct mstx_tl *tl, mstx_comm_rows *rows,
                             struct ms_err *err) MS_MUST_USE;
void mstx_comm_rows_free(mstx_comm_rows *rows);

/* How sure the times of different hosts are of each other: hosts whose clock was measured, and the
 * greatest uncertainty of a measure. hosts 0: nothing was measured. */
struct mstx_clock_summary {
    int64_t hosts, uncertainty_ns;
};
enum ms_rc mstx_clocks_measure(struct mstx_tl *tl, struct mstx_clock_summary *s,
                               struct ms_err *err) MS_MUST_USE;

#endif
