/* SPDX-License-Identifier: MIT
 *
 * tl_export: a run in the formats of other tools.  One function for each format
 * writes the whole run to an open output; cmd_export.c chooses.
 */
#ifndef MSTX_TL_EXPORT_H
#define MSTX_TL_EXPORT_H

#include "mstx/timeline.h"

#include "probe/base/io.h"

/* Chrome trace events in an object, times in microseconds from the start of the run, whose Unix time
 * stands in otherData. Ranges of a track that overlap without nesting become async events. */
enum ms_rc mstx_export_chrome(struct mstx_tl *tl, struct ms_out *out,
                              struct ms_err *err) MS_MUST_USE;
/* The dialect of Ascend's trace_view.json: a bare array, times as text of Unix microseconds. */
enum ms_rc mstx_export_trace_view(struct mstx_tl *tl, struct ms_out *out,
                                  struct ms_err *err) MS_MUST_USE;
/* Perfetto's protobuf: interned names and domains, what overlaps on tracks of its own. */
enum ms_rc mstx_export_perfetto(struct mstx_tl *tl, struct ms_out *out,
                                struct ms_err *err) MS_MUST_USE;
/* msprof_tx.csv, rows by start; after each million rows goes on in path_1.csv, path_2.csv, ... */
enum ms_rc mstx_export_csv(struct mstx_tl *tl, const char *path, struct ms_err *err) MS_MUST_USE;
/* Ascend profiler databases: STRING_IDS, MSTX_EVENTS and what readers ask for beside them.  A path that
 * ends in .db takes all; any other is a directory with one ascend_pytorch_profiler_RANK.db for each. */
enum ms_rc mstx_export_ascend_db(struct mstx_tl *tl, const char *path,
                                 struct ms_err *err) MS_MUST_USE;
/* "marker", "push/pop" or "start/end". */
const char *mstx__event_type_text(const struct mstx_event *ev);
/* How a process is called: "rank 3 python3 (host:4242)" as far as it is known; one of a foreign file has
 * the name that it has there. Cut to what fits. */
enum { MSTX_LABEL_MAX = 208 };
struct ms_str mstx__process_label(const struct mstx_process *p, char buf[MSTX_LABEL_MAX]);
/* Nanoseconds as microseconds with three decimals. */
void mstx__put_us(struct ms_out *o, int64_t ns);

/* ---- for the formats -------------------------------------------------------- */

/* Fails when a text that was asked for is missing because memory ran out: what was made of it is wrong. */
enum ms_rc mstx__tl_check(const struct mstx_tl *tl, struct ms_err *err) MS_MUST_USE;

/* mstx_tl_view without ids, arguments and threads of the end, which pictures do not show. */
enum ms_rc mstx__tl_drawn(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                          mstx_events *out, struct ms_err *err) MS_MUST_USE;

/* Events of one track in order of start, one after the other. */
struct mstx_cursor;
enum ms_rc mstx__cursor_new(struct mstx_cursor **c, struct mstx_tl *tl, size_t track,
                            struct ms_err *err) MS_MUST_USE;
/* *ev is NULL at the end; borrowed until the next call. */
enum ms_rc mstx__cursor_next(struct mstx_cursor *c, const struct mstx_event **ev,
                             struct ms_err *err) MS_MUST_USE;
void mstx__cursor_free(struct mstx_cursor *c);
/* Before the first event: pass over chunks in which everything ends before t. */
void mstx__cursor_seek(struct mstx_cursor *c, int64_t t);

/* Call fn for the events of the thread tracks of a rank, or of all, in order of start. */
#define MSTX_ALL_RANKS INT32_MIN
typedef enum ms_rc (*mstx_merged_fn)(void *ctx, size_t track, const struct mstx_event *ev,
                                     struct ms_err *err);
enum ms_rc mstx__merge(struct mstx_tl *tl, int32_t rank, mstx_merged_fn fn, void *ctx,
                       struct ms_err *err) MS_MUST_USE;

/* Slices of one track in order of start, the longer first, told apart into lanes within which they
 * nest.  Zero it to start. */
enum { MSTX_NEST_LANES = 64 };
struct mstx_nest {
    MS_VEC(int64_t) end[MSTX_NEST_LANES]; /* of the slices that are open, the innermost last */
};
/* End what has ended in every lane and tell of each with fn (may be NULL); find the first lane where the slice
 * nests and open it there. The last lane takes what fits nowhere, cut off at *end. false: no memory. */
typedef void (*mstx_nest_fn)(void *ctx, unsigned lane, int64_t end_ns);
bool mstx__nest(struct mstx_nest *n, int64_t start, int64_t *end, mstx_nest_fn fn, void *ctx,
                unsigned *lane);
/* End what is open, and free. */
void mstx__nest_finish(struct mstx_nest *n, mstx_nest_fn fn, void *ctx);

/* Texts as JSON strings with their quotes, made once for each id. */
struct mstx_quoted {
    struct mstx_tl *tl;
    struct ms_arena *arena;
    MS_VEC(struct ms_str) text;
    enum ms_rc bad;
};
enum ms_rc mstx__quoted_new(struct mstx_quoted *q, struct mstx_tl *tl,
                            struct ms_err *err) MS_MUST_USE;
struct ms_str mstx__quoted(struct mstx_quoted *q, uint32_t id);
/* The same for a text without an id. */
struct ms_str mstx__quote(struct mstx_quoted *q, struct ms_str text);
void mstx__quoted_free(struct mstx_quoted *q);

/* A field of CSV, quoted where it must be; what a spreadsheet would take for a formula gets an
 * apostrophe. */
void mstx__csv_text(struct ms_out *o, struct ms_str s);

#endif
