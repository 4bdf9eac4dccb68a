/* SPDX-License-Identifier: MIT
 *
 * timeline: captures become run.db, and viewers ask run.db.
 *
 *     RUN/.../r0001.0001.seg ─► mstx_import ──► RUN/run.db ──► mstx_tl_view, _step, _find
 *
 * A run is shown as tracks: one for each thread and domain, one for each
 * counter, one for each heap.  A track is a sequence of events in order of
 * their start, stored in chunks, and a pyramid of coarser levels above them:
 * on level L (its `shift`) what is shorter than 2^L ns and lies close together
 * has been joined into one event with a count.  So a screen of any width is
 * answered with a few thousand events however many there are below.
 *
 * Times are nanoseconds of the wall clock (Unix time); within one host they
 * follow its steady clock, so they never jump.
 */
#ifndef MSTX_TIMELINE_H
#define MSTX_TIMELINE_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- events ----------------------------------------------------------------- */

enum mstx_event_kind {
    MSTX_EV_MARK,
    MSTX_EV_RANGE,   /* start/end */
    MSTX_EV_PUSHPOP, /* nested on its thread */
    MSTX_EV_COUNTER, /* arg is the value */
    MSTX_EV_REGION,  /* memory: from arg, size bytes */
    MSTX_EV_KINDS
};

enum {
    MSTX_EVF_UNFINISHED = 1,   /* never ended: shown up to the end of the capture */
    MSTX_EVF_OTHER_THREAD = 2, /* ended by end_tid */
    MSTX_EVF_STREAM = 4,       /* arg is a stream key */
    MSTX_EVF_FLOAT = 8,        /* counter: arg holds the bits of a double, else of an int64 */
    MSTX_EVF_START_LOST = 16   /* start is known from the end's record alone */
};

/* One event; on a level above 0 with count > 1 several that are drawn as one: then name is that of
 * the longest, arg its duration and size the sum of all durations (counters: arg is the value
 * farthest from zero, size the last value). */
struct mstx_event {
    int64_t start_ns, dur_ns;
    uint64_t id; /* as the program knows it: range id, handle; 0 is none */
    uint64_t arg,
        size;       /* see the kinds; size of an event and of its device side are one number, not 0,
                           in one process */
    uint32_t name;  /* string */
    uint32_t args;  /* string: attributes and payload as a JSON object, 0 is none */
    uint32_t count; /* 1 or more */
    uint32_t end_tid;
    uint16_t depth; /* row within the track */
    uint8_t kind, flags;
};
typedef MS_VEC(struct mstx_event) mstx_events;

/* Value of a counter event. */
double mstx_event_value(const struct mstx_event *e);

/* ---- importing -------------------------------------------------------------- */

struct mstx_import_result {
    uint64_t files, records, events, unfinished, dropped, problems;
    uint32_t processes, ranks, tracks;
    int64_t start_ns, end_ns;
    uint64_t bytes; /* size of run.db */
};

struct ms_par;
struct mstx_import_how {
    bool summary; /* what ranks say together, without their timelines and single calls */
    /* Processes that share the work, all of which call; NULL: alone.  The first writes the database
     * and has the result. */
    struct ms_par *par;
    /* How much of the files has been read, up to 1; or NULL. */
    void (*progress)(void *ctx, double done);
    void *ctx;
};

/* Read what is in the run directory, or in one foreign file (a Chrome trace, an Ascend profiler
 * database), and write `db`.  What cannot be read is noted in the table `problems` and the rest goes
 * on; only a directory without any readable segment fails, with MS_E_NOTFOUND. */
enum ms_rc mstx_import(const char *path, const char *db, struct mstx_import_result *result,
                       struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_import_as(const char *path, const char *db, const struct mstx_import_how *how,
                          struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;
/* Where the database of a run directory or foreign file lies, on the heap; NULL when out of memory. */
char *mstx_db_path(const char *path);
/* Has anything changed in what the database was made from, or is there none? */
bool mstx_db_is_stale(const char *path, const char *db);
/* The database of a run directory or foreign file, imported first when it is missing or stale: beside
 * the source, or under $TMPDIR when that cannot be written.  *db is on the heap. */
enum ms_rc mstx_db_prepare(const char *path, char **db, struct ms_err *err) MS_MUST_USE;

/* ---- asking ----------------------------------------------------------------- */

enum mstx_track_kind {
    MSTX_TRACK_THREAD,
    MSTX_TRACK_COUNTER,
    MSTX_TRACK_MEMORY,
    MSTX_TRACK_STREAM, /* of a device: when marks and ranges with a stream were reached there */
    MSTX_TRACK_KINDS
};

struct mstx_process {
    int32_t rank; /* -1: none */
    uint32_t pid;
    struct ms_str host, name;
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

/* Open a run.db, or what mstx_db_prepare takes.  One handle serves one thread at a time. */
enum ms_rc mstx_tl_open(struct mstx_tl **tl, const char *path, struct ms_err *err) MS_MUST_USE;
void mstx_tl_close(struct mstx_tl *tl);

size_t mstx_tl_process_count(const struct mstx_tl *tl);
const struct mstx_process *mstx_tl_process(const struct mstx_tl *tl, size_t i);
size_t mstx_tl_track_count(const struct mstx_tl *tl);
const struct mstx_track *mstx_tl_track(const struct mstx_tl *tl, size_t i);
/* Text of a string id; "" for 0 and for what is not there.  Borrowed until close. */
struct ms_str mstx_tl_text(struct mstx_tl *tl, uint32_t id);
/* For the tables that have no call here; closed with tl. */
struct ms_store;
struct ms_store *mstx_tl_store(struct mstx_tl *tl);
/* From the first event to the last. */
void mstx_tl_span(const struct mstx_tl *tl, int64_t *start_ns, int64_t *end_ns);

/* Append to out the events of a track (an index) that touch [t0, t1], from the coarsest level whose
 * joined events are not longer than res_ns (a pixel); 0 asks for every single event. */
enum ms_rc mstx_tl_view(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                        mstx_events *out, struct ms_err *err) MS_MUST_USE;

/* What a picture needs of it: no row holds more than one small event in each slot as wide as the power
 * of two that is res_ns or a little more, so that pixels bound the answer and not events.  What is in
 * out before is thrown away. */
enum ms_rc mstx_tl_picture(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                           mstx_events *out, struct ms_err *err) MS_MUST_USE;

/* A set of names: all that contain the text, case ignored (ASCII); NULL text is every name. */
struct mstx_names;
enum ms_rc mstx_tl_find(struct mstx_tl *tl, const char *text, struct mstx_names **names,
                        struct ms_err *err) MS_MUST_USE;
size_t mstx_names_count(const struct mstx_names *names);
bool mstx_names_has(const struct mstx_names *names, uint32_t name);
void mstx_names_free(struct mstx_names *names);

/* The first event of a track that starts after t, or the last that starts before it, and has one of
 * the names (NULL: any).  *found tells whether there is one. */
enum ms_rc mstx_tl_next(struct mstx_tl *tl, size_t track, int64_t t, const struct mstx_names *names,
                        struct mstx_event *ev, bool *found, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_tl_prev(struct mstx_tl *tl, size_t track, int64_t t, const struct mstx_names *names,
                        struct mstx_event *ev, bool *found, struct ms_err *err) MS_MUST_USE;

/* Call fn for every single event of a track with one of the names (NULL: any) in order of start; what
 * fn returns other than MS_OK ends the walk and is returned. */
typedef enum ms_rc (*mstx_event_fn)(void *ctx, const struct mstx_event *ev, struct ms_err *err);
enum ms_rc mstx_tl_walk(struct mstx_tl *tl, size_t track, const struct mstx_names *names,
                        mstx_event_fn fn, void *ctx, struct ms_err *err) MS_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
