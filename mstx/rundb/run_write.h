/* SPDX-License-Identifier: MIT
 *
 * run_write: makes a run.db: strings, processes, tracks with their chunks and
 * levels, and problems.  The schema is in run_schema.h and msprobe-run.db(5).
 */
#ifndef MSTX_RUNDB_RUN_WRITE_H
#define MSTX_RUNDB_RUN_WRITE_H

#include "mstx/format/event.h"

#include "probe/base/store.h"

struct mstx_writer;

/* Makes a writer, which writes a temporary file until commit.  The writer keeps its first failure:
 * later calls do nothing and commit reports the failure, so most functions return nothing. */
enum ms_rc mstx__writer_new(struct mstx_writer **w, const char *path,
                            struct ms_err *err) MS_MUST_USE;
/* Returns the store, for tables without a function here. */
struct ms_store *mstx__writer_store(struct mstx_writer *w);
/* Tells whether a call has failed. */
bool mstx__writer_bad(const struct mstx_writer *w);
/* Keeps a failure of the caller, unless there is one already. */
void mstx__writer_fail(struct mstx_writer *w, const struct ms_err *err);
/* Frees w in any case. */
enum ms_rc mstx__writer_commit(struct mstx_writer *w, struct ms_err *err) MS_MUST_USE;
void mstx__writer_abort(struct mstx_writer *w);
/* Returns the failure that was kept, MS_OK when there is none. */
enum ms_rc mstx__writer_why(const struct mstx_writer *w, struct ms_err *err);

/* Commits a part of a database that one of several processes writes, with its texts after the first
 * `known`, which all parts have.  The process that merges the parts copies their chunks with
 * mstx__writer_blob. */
enum ms_rc mstx__writer_commit_part(struct mstx_writer *w, uint32_t known,
                                    struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__writer_blob(struct mstx_writer *w, int64_t chunk, struct ms_str blob,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__writer_name(struct mstx_writer *w, const int64_t column[9],
                             struct ms_err *err) MS_MUST_USE;
uint32_t mstx__writer_texts(const struct mstx_writer *w); /* number of texts */
void mstx__writer_forget_texts(struct mstx_writer *w);

/* Returns the id of a text, adding a copy when it is new; 0 for an empty text. */
uint32_t mstx__writer_text(struct mstx_writer *w, struct ms_str text);
/* Returns the id of the attributes of an event of a trace: texts of which most differ. */
uint32_t mstx__writer_args(struct mstx_writer *w, struct ms_str text);
struct ms_str mstx__writer_text_of(const struct mstx_writer *w, uint32_t id);

/* The form of attributes: what stands between their runs of digits. */
enum { MSTX_TEXT_FORMLESS = 0, MSTX_TEXT_RUN_DIGITS = 64 /* of a run, at most */ };
struct mstx_args_form {
    uint32_t
        number; /* from 1 on; MSTX_TEXT_FORMLESS: none, as of texts with very many or very long runs */
    uint32_t runs;
};
/* Digits of a text, and their value where that is written with the same digits; else UINT64_MAX. */
struct mstx_text_run {
    struct ms_str digits;
    uint64_t value;
};
struct mstx_args_form mstx__writer_args_form(struct mstx_writer *w, struct ms_str text);
/* As mstx__writer_args, of which the form is known, and where the runs are. */
uint32_t mstx__writer_args_runs(struct mstx_writer *w, uint32_t form,
                                const struct mstx_text_run *runs);

struct mstx_process_row {
    int32_t rank;
    uint32_t pid, ppid;
    struct ms_str host, name, dir, tool, state;
    int64_t start_ns, end_ns;
    uint64_t records, events, unfinished, dropped;
    int64_t cost_ns; /* recording time, estimated from the cost of a clock reading; 0: unknown */
};
/* Ids of processes and tracks count from 1. */
uint32_t mstx__writer_process_id(struct mstx_writer *w);
void mstx__writer_process(struct mstx_writer *w, uint32_t id, const struct mstx_process_row *p);

/* Tracks are written one at a time: begin, the events in order of their start, end.  The writer
 * gives each event a free row (unless has_rows is set), builds levels and collects statistics of
 * names.  A track without events is not stored. */
struct mstx_track_row {
    uint32_t process;
    enum mstx_track_kind kind;
    uint32_t tid;
    uint32_t device; /* of a stream */
    struct ms_str domain, name, unit;
    bool has_rows;
};
void mstx__writer_track_begin(struct mstx_writer *w, const struct mstx_track_row *t);
/* Returns the slot for the next event.  Fill all its fields and call mstx__writer_event, or fill it
 * again to drop the event. */
struct mstx_event *mstx__writer_slot(struct mstx_writer *w);
void mstx__writer_event(struct mstx_writer *w);
void mstx__writer_track_end(struct mstx_writer *w);
/* Sorts the events by start, longer events first, and writes them as a track. */
void mstx__writer_track(struct mstx_writer *w, const struct mstx_track_row *t, mstx_events *ev);

void mstx__writer_problem(struct mstx_writer *w, const char *file, const char *text);
/* Fails with the first problem as the reason, for a file of which nothing could be read. */
enum ms_rc mstx__writer_fail_of_problem(struct mstx_writer *w, struct ms_err *err);
void mstx__writer_meta(struct mstx_writer *w, const char *key, const char *value);
/* Remembers a file by its size and time, so that a change makes the database stale. */
void mstx__writer_source(struct mstx_writer *w, const char *path);
/* Number of rows written so far. */
struct mstx_writer_totals {
    uint32_t processes, tracks;
    uint64_t events, problems;
    int64_t start_ns, end_ns;
};
struct mstx_writer_totals mstx__writer_totals(const struct mstx_writer *w);

#endif
