/* SPDX-License-Identifier: MIT
 *
 * run_query: queries of viewers, reports and exports to run.db.
 *
 * A run is shown as tracks: one for each thread and domain, one for each counter, one for each
 * heap, one for each stream of a device.  A track is a sequence of events in order of their start,
 * stored in chunks, with a pyramid of coarser levels above them: on the level of a `shift`, events
 * that are shorter than 2^shift ns and close together are joined into one event with a count.  So a
 * view needs a few thousand events for any time span, however many events the track has.
 */
#ifndef MSTX_RUNDB_RUN_QUERY_H
#define MSTX_RUNDB_RUN_QUERY_H

#include "mstx/format/event.h"
#include "mstx/format/span_kinds.h" /* of the table replay_spans */

#include "probe/base/err.h"
#include "probe/base/str.h"

/* ---- processes and tracks --------------------------------------------------- */

struct mstx_process {
    int32_t rank; /* -1: none */
    uint32_t pid;
    struct ms_str host, name;
    struct ms_str tool; /* that recorded it; run_schema.h names those that matter */
    int64_t start_ns, end_ns;
    uint64_t dropped;
};

struct mstx_track {
    uint32_t id;
    uint32_t process; /* index */
    enum mstx_track_kind kind;
    uint32_t tid;         /* of a stream: its number, else the low half of its key */
    uint32_t device;      /* of a stream */
    struct ms_str domain; /* "default" for the default one */
    struct ms_str name;   /* of the thread, counter, heap or stream */
    struct ms_str unit;   /* of a counter */
    uint64_t events;
    uint32_t rows; /* greatest depth + 1 */
    int64_t start_ns, end_ns;
};

struct mstx_tl;

/* Opens a run.db; conclude/run_ready.h makes one out of a capture.  One handle serves one thread at
 * a time. */
enum ms_rc mstx_tl_open(struct mstx_tl **tl, const char *db, struct ms_err *err) MS_MUST_USE;
void mstx_tl_close(struct mstx_tl *tl);

size_t mstx_tl_process_count(const struct mstx_tl *tl);
const struct mstx_process *mstx_tl_process(const struct mstx_tl *tl, size_t i);
size_t mstx_tl_track_count(const struct mstx_tl *tl);
const struct mstx_track *mstx_tl_track(const struct mstx_tl *tl, size_t i);
/* Returns the text of a string id, borrowed until close; "" for 0 and unknown ids. */
struct ms_str mstx_tl_text(struct mstx_tl *tl, uint32_t id);
/* Returns the store, for tables without a function here; it is closed with tl. */
struct ms_store;
struct ms_store *mstx_tl_store(struct mstx_tl *tl);
/* Returns the packed communication calls, to be read without SQL. */
struct mstx_packed_source;
struct mstx_packed_source *mstx__tl_packed(struct mstx_tl *tl);
/* Returns the time from the first event to the last. */
void mstx_tl_span(const struct mstx_tl *tl, int64_t *start_ns, int64_t *end_ns);

/* Finds the first stored level of a track whose shift is not below `from`. */
bool mstx__tl_level(const struct mstx_tl *tl, size_t track, unsigned from, unsigned *shift,
                    uint64_t *events);

/* Appends to out the events of a track (an index) that touch [t0, t1], from the coarsest level
 * whose joined events are not longer than res_ns (a pixel); res_ns 0 returns every single event. */
enum ms_rc mstx_tl_view(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                        mstx_events *out, struct ms_err *err) MS_MUST_USE;

/* Replaces out by the events that a picture of the view needs.  In each row, events shorter than
 * the least power of two not below res_ns that start in the same slot of this width are joined, so
 * that the number of pixels bounds the number of events. */
enum ms_rc mstx_tl_picture(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                           mstx_events *out, struct ms_err *err) MS_MUST_USE;

/* A set of names: all names that contain the text, ignoring ASCII case; every name when text is
 * NULL. */
struct mstx_names;
enum ms_rc mstx_tl_find(struct mstx_tl *tl, const char *text, struct mstx_names **names,
                        struct ms_err *err) MS_MUST_USE;
size_t mstx_names_count(const struct mstx_names *names);
bool mstx_names_has(const struct mstx_names *names, uint32_t name);
void mstx_names_free(struct mstx_names *names);

/* Find the first event of a track that starts after t (next), or the last that starts before t
 * (prev), with one of the names (NULL: any name).  *found tells whether there is one. */
enum ms_rc mstx_tl_next(struct mstx_tl *tl, size_t track, int64_t t, const struct mstx_names *names,
                        struct mstx_event *ev, bool *found, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_tl_prev(struct mstx_tl *tl, size_t track, int64_t t, const struct mstx_names *names,
                        struct mstx_event *ev, bool *found, struct ms_err *err) MS_MUST_USE;

/* Calls fn for every single event of a track with one of the names (NULL: any name), in order of
 * start.  Stops at the first result of fn other than MS_OK and returns it. */
typedef enum ms_rc (*mstx_event_fn)(void *ctx, const struct mstx_event *ev, struct ms_err *err);
enum ms_rc mstx_tl_walk(struct mstx_tl *tl, size_t track, const struct mstx_names *names,
                        mstx_event_fn fn, void *ctx, struct ms_err *err) MS_MUST_USE;

/* Fails when memory ran out while a text was fetched, so that results made of texts are wrong. */
enum ms_rc mstx__tl_check(const struct mstx_tl *tl, struct ms_err *err) MS_MUST_USE;

/* Calls fn after every part of events that is read, with the number of its events: for a line of progress. */
typedef void (*mstx_read_fn)(void *ctx, uint64_t events);
void mstx_tl_watch(struct mstx_tl *tl, mstx_read_fn fn, void *ctx);

/* Iterates over the events of one track in order of start. */
struct mstx_cursor;
enum ms_rc mstx__cursor_new(struct mstx_cursor **c, struct mstx_tl *tl, size_t track,
                            struct ms_err *err) MS_MUST_USE;
/* Returns the next event in *ev, borrowed until the next call; NULL at the end. */
enum ms_rc mstx__cursor_next(struct mstx_cursor *c, const struct mstx_event **ev,
                             struct ms_err *err) MS_MUST_USE;
void mstx__cursor_free(struct mstx_cursor *c);
/* Skips chunks in which all events end before t; called before the first mstx__cursor_next. */
void mstx__cursor_seek(struct mstx_cursor *c, int64_t t);

#endif
