/* SPDX-License-Identifier: MIT
 *
 * run_write: writes run.db in one pass.
 *
 * Events pass through one buffer of a chunk's size.  The chunk is packed and
 * stored when it is full, while the levels of the track grow beside it; they are
 * stored when the track ends.  Chunks of one level have consecutive ids, so a
 * reader needs the first and their number.
 */
#include "mstx/rundb/run_write.h"

#include "mstx/rundb/levels.h"
#include "mstx/rundb/pack.h"
#include "mstx/rundb/packed_texts.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store_bulk.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { ROWS_MAX = 512 /* events that overlap more than this share the last row */ };
static const size_t TEXT_BYTES_MAX = (size_t)1 << 34;

struct name_stat {
    uint32_t name;
    uint64_t events, unfinished;
    int64_t total, min, max, first, last;
};

struct mstx_writer {
    struct ms_store *store;
    struct ms_err err; /* the first failure */
    struct ms_stmt *add_chunk, *add_blob, *add_level, *add_track, *add_text;
    struct ms_bulk *names;
    struct ms_arena *arena;
    struct ms_map text;       /* index + 1 is the id */
    MS_VEC(uint32_t) stat_of; /* by text: 1 + place in stat, for the track being written */
    MS_VEC(struct name_stat) stat;
    struct mstx_texts_out args;
    struct mstx_packer *packer;
    struct mstx_levels levels;
    MS_VEC(int64_t) row_end; /* when each row becomes free */
    struct mstx_track_row track;
    uint64_t track_events, level_events;
    uint32_t level_first_chunk;
    int64_t track_start, track_end;
    uint32_t rows;
    uint32_t processes, tracks, chunks;
    uint64_t events, problems;
    int64_t start, end;
    uint32_t n; /* events in the buffer */
    struct mstx_event buffer[MSTX_CHUNK_MAX];
};

/* ---- life ------------------------------------------------------------------- */

static enum ms_rc prepare(struct mstx_writer *w, struct ms_err *err)
{
    struct ms_store *s = w->store;
    MS_TRY(ms_store_exec(s, mstx_db_schema, err));
    /* Rows are only appended, so full pages are soon unused, and a small page cache fits into the
     * CPU caches.  With this cache and large pages an import of 2.5 million records has 6,200 page
     * faults instead of 18,200. */
    MS_TRY(ms_store_exec(s, "PRAGMA cache_size=-4096", err));
    MS_TRY(ms_store_prepare(s, &w->add_chunk, "INSERT INTO chunks VALUES(?,?,?,?)", err));
    MS_TRY(ms_store_prepare(s, &w->add_blob, "INSERT INTO blobs VALUES(?,?)", err));
    MS_TRY(ms_store_prepare(s, &w->add_level, "INSERT INTO levels VALUES(?,?,?,?,?)", err));
    MS_TRY(ms_store_prepare(s, &w->add_track, "INSERT INTO tracks VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
                            err));
    MS_TRY(ms_bulk_new(&w->names, s, "INSERT INTO names VALUES", "(?,?,?,?,?,?,?,?,?)", 9, err));
    MS_TRY(mstx__texts_out_new(&w->args, s, err));
    return ms_store_prepare(s, &w->add_text, "INSERT INTO strings VALUES(?,?)", err);
}

enum ms_rc mstx__writer_new(struct mstx_writer **out, const char *path, struct ms_err *err)
{
    *out = NULL;
    struct mstx_writer *w = ms_calloc(1, sizeof *w);
    if (w == NULL)
        return ms_no_memory(err);
    w->arena = ms_arena_new(TEXT_BYTES_MAX);
    w->packer = mstx_packer_new();
    enum ms_rc rc = MS_OK;
    if (w->arena == NULL || w->packer == NULL)
        rc = ms_no_memory(err);
    if (rc == MS_OK)
        rc = ms_store_create_interim(&w->store, path, err);
    if (rc == MS_OK)
        rc = prepare(w, err);
    if (rc == MS_OK)
        *out = w;
    else
        mstx__writer_abort(w);
    return rc;
}

static void free_statements(struct mstx_writer *w)
{
    struct ms_stmt **all[] = {&w->add_chunk, &w->add_blob, &w->add_level, &w->add_track,
                              &w->add_text};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ms_stmt_free(*all[i]);
        *all[i] = NULL;
    }
    ms_bulk_free(w->names);
    w->names = NULL;
    mstx__texts_out_free(&w->args);
}

void mstx__writer_abort(struct mstx_writer *w)
{
    if (w == NULL)
        return;
    free_statements(w);
    ms_store_close(w->store);
    mstx_packer_free(w->packer);
    mstx__levels_free(&w->levels);
    ms_vec_free(&w->row_end);
    ms_vec_free(&w->stat);
    ms_vec_free(&w->stat_of);
    ms_map_free(&w->text);
    ms_arena_free(w->arena);
    ms_free(w);
}

struct ms_store *mstx__writer_store(struct mstx_writer *w)
{
    return w->store;
}

bool mstx__writer_bad(const struct mstx_writer *w)
{
    return w->err.rc != MS_OK;
}

void mstx__writer_fail(struct mstx_writer *w, const struct ms_err *err)
{
    ms_assert(err->rc != MS_OK);
    if (w->err.rc == MS_OK)
        w->err = *err;
}

static void fail_memory(struct mstx_writer *w)
{
    ms_no_memory(&w->err);
}

static void run_statement(struct mstx_writer *w, struct ms_stmt *st)
{
    if (w->err.rc == MS_OK)
        (void)!ms_stmt_run(st, &w->err);
}

static void write_texts(struct mstx_writer *w, size_t first)
{
    for (size_t i = first; i < w->text.keys.n && w->err.rc == MS_OK; i++) {
        ms_stmt_i64(w->add_text, 1, (int64_t)i + 1);
        ms_stmt_str(w->add_text, 2, ms_map_key(&w->text, (uint32_t)i));
        run_statement(w, w->add_text);
    }
}

static void flush_rows(struct mstx_writer *w)
{
    if (w->err.rc == MS_OK)
        (void)!ms_bulk_flush(w->names, &w->err);
    if (w->err.rc == MS_OK)
        (void)!mstx__texts_flush(&w->args, &w->err);
}

static void write_summaries(struct mstx_writer *w)
{
    static const char sql[] =
        "INSERT INTO ranks SELECT rank, min(host), count(*), sum(events), sum(dropped)"
        " FROM processes WHERE rank >= 0 GROUP BY rank;"
        "INSERT INTO runs SELECT 1, (SELECT value FROM meta WHERE key = 'path'),"
        " (SELECT min(start_ns) FROM tracks), (SELECT max(end_ns) FROM tracks),"
        " (SELECT value FROM meta WHERE key = 'world_size'), (SELECT count(*) FROM processes),"
        " (SELECT count(*) FROM tracks), (SELECT sum(events) FROM tracks);";
    if (w->err.rc == MS_OK)
        (void)!ms_store_exec(w->store, sql, &w->err);
}

enum ms_rc mstx__writer_commit(struct mstx_writer *w, struct ms_err *err)
{
    mstx__writer_meta(w, "format", "msprobe run.db");
    mstx__writer_meta(w, "version", MSTX_DB_VERSION);
    write_texts(w, 0);
    flush_rows(w);
    write_summaries(w);
    free_statements(w);
    enum ms_rc rc = w->err.rc;
    if (rc == MS_OK) {
        rc = ms_store_commit(w->store, err);
        w->store = NULL;
    } else if (err != NULL && err->rc == MS_OK) {
        *err = w->err;
    }
    mstx__writer_abort(w);
    return rc;
}

enum ms_rc mstx__writer_why(const struct mstx_writer *w, struct ms_err *err)
{
    if (err != NULL && err->rc == MS_OK)
        *err = w->err;
    return w->err.rc;
}

enum ms_rc mstx__writer_commit_part(struct mstx_writer *w, uint32_t known, struct ms_err *err)
{
    ms_assert(known <= w->text.keys.n);
    write_texts(w, known);
    flush_rows(w);
    free_statements(w);
    enum ms_rc rc = mstx__writer_why(w, err);
    if (rc == MS_OK) {
        rc = ms_store_commit(w->store, err);
        w->store = NULL;
    }
    mstx__writer_abort(w);
    return rc;
}

enum ms_rc mstx__writer_blob(struct mstx_writer *w, int64_t chunk, struct ms_str blob,
                             struct ms_err *err)
{
    ms_assert(chunk >= 1);
    ms_stmt_i64(w->add_blob, 1, chunk);
    ms_stmt_blob(w->add_blob, 2, blob.p, blob.n);
    return ms_stmt_run(w->add_blob, err);
}

enum ms_rc mstx__writer_name(struct mstx_writer *w, const int64_t column[9], struct ms_err *err)
{
    return ms_bulk_row(w->names, column, err);
}

/* ---- texts ------------------------------------------------------------------ */

uint32_t mstx__writer_texts(const struct mstx_writer *w)
{
    return (uint32_t)w->text.keys.n;
}

void mstx__writer_forget_texts(struct mstx_writer *w)
{
    ms_map_free(&w->text);
    w->text = (struct ms_map){0};
}

uint32_t mstx__writer_text(struct mstx_writer *w, struct ms_str text)
{
    if (text.n == 0 || w->err.rc != MS_OK)
        return 0;
    uint32_t i = ms_map_put_copy(&w->text, text, w->arena, NULL);
    if (i == MS_MAP_NONE) {
        fail_memory(w);
        return 0;
    }
    return i + 1;
}

uint32_t mstx__writer_args(struct mstx_writer *w, struct ms_str text)
{
    uint32_t id = 0;
    if (text.n != 0 && w->err.rc == MS_OK)
        (void)!mstx__texts_put(&w->args, text, &id, &w->err);
    return id;
}

struct mstx_args_form mstx__writer_args_form(struct mstx_writer *w, struct ms_str text)
{
    const uint32_t at = mstx__texts_form(&w->args, text);
    const bool has = at != MSTX_TEXT_FORMLESS;
    return (struct mstx_args_form){at, has ? w->args.form.p[at - 1].runs : 0};
}

uint32_t mstx__writer_args_runs(struct mstx_writer *w, uint32_t form,
                                const struct mstx_text_run *runs)
{
    uint32_t id = 0;
    if (w->err.rc == MS_OK)
        (void)!mstx__texts_put_runs(&w->args, form, runs, &id, &w->err);
    return id;
}

struct ms_str mstx__writer_text_of(const struct mstx_writer *w, uint32_t id)
{
    return id != 0 && id <= w->text.keys.n ? ms_map_key(&w->text, id - 1) : MS_STR("");
}

/* ---- statistics of names ---------------------------------------------------- */

static struct name_stat *stat_of(struct mstx_writer *w, uint32_t name)
{
    if (name >= w->stat_of.n) {
        size_t want = w->text.keys.n + 1 > name ? w->text.keys.n + 1 : (size_t)name + 1;
        if (!ms_vec_reserve(&w->stat_of, want))
            return NULL;
        memset(w->stat_of.p + w->stat_of.n, 0, (want - w->stat_of.n) * sizeof *w->stat_of.p);
        w->stat_of.n = want;
    }
    if (w->stat_of.p[name] != 0)
        return &w->stat.p[w->stat_of.p[name] - 1];
    struct name_stat *s = ms_vec_push(&w->stat);
    if (s == NULL)
        return NULL;
    *s = (struct name_stat){.name = name, .min = INT64_MAX, .max = INT64_MIN, .first = INT64_MAX};
    w->stat_of.p[name] = (uint32_t)w->stat.n;
    return s;
}

/* Returns the quantity that statistics sum: the value of a counter as a whole number, else the
 * duration. */
static int64_t measured_ns(const struct mstx_event *e)
{
    if (e->kind != MSTX_EV_COUNTER)
        return e->dur_ns;
    double v = mstx_event_value(e);
    return v > -9e18 && v < 9e18 ? (int64_t)v : 0;
}

static void count_name(struct mstx_writer *w, const struct mstx_event *e)
{
    struct name_stat *s = stat_of(w, e->name);
    if (s == NULL) {
        fail_memory(w);
        return;
    }
    int64_t v = measured_ns(e);
    s->events++;
    s->unfinished += (e->flags & MSTX_EVF_UNFINISHED) != 0;
    if (__builtin_add_overflow(s->total, v, &s->total))
        s->total = INT64_MAX;
    s->min = v < s->min ? v : s->min;
    s->max = v > s->max ? v : s->max;
    s->first = e->start_ns < s->first ? e->start_ns : s->first;
    s->last = e->start_ns;
}

static void write_names(struct mstx_writer *w)
{
    ms_assert(w->tracks >= 1);
    for (size_t i = 0; i < w->stat.n; i++) {
        const struct name_stat *s = &w->stat.p[i];
        const int64_t column[] = {w->tracks, s->name, (int64_t)s->events,
                                  s->total,  s->min,  s->max,
                                  s->first,  s->last, (int64_t)s->unfinished};
        if (w->err.rc == MS_OK)
            (void)!ms_bulk_row(w->names, column, &w->err);
        w->stat_of.p[s->name] = 0;
    }
    w->stat.n = 0;
}

/* ---- chunks and levels ------------------------------------------------------ */

static void write_chunk(struct mstx_writer *w, const struct mstx_event *ev, uint32_t n)
{
    ms_assert(n >= 1 && n <= MSTX_CHUNK_MAX);
    if (w->err.rc != MS_OK || mstx_pack(w->packer, ev, n, &w->err) != MS_OK)
        return;
    int64_t end = INT64_MIN;
    for (uint32_t i = 0; i < n; i++)
        end = ev[i].start_ns + ev[i].dur_ns > end ? ev[i].start_ns + ev[i].dur_ns : end;
    w->chunks++;
    ms_stmt_i64(w->add_chunk, 1, w->chunks);
    ms_stmt_i64(w->add_chunk, 2, ev[0].start_ns);
    ms_stmt_i64(w->add_chunk, 3, end);
    ms_stmt_i64(w->add_chunk, 4, n);
    run_statement(w, w->add_chunk);
    ms_stmt_i64(w->add_blob, 1, w->chunks);
    ms_stmt_blob(w->add_blob, 2, w->packer->out.p, w->packer->out.n);
    run_statement(w, w->add_blob);
    w->level_events += n;
}

static void begin_level(struct mstx_writer *w)
{
    w->level_first_chunk = w->chunks + 1;
    w->level_events = 0;
}

static void end_level(struct mstx_writer *w, unsigned shift)
{
    ms_assert(w->level_first_chunk <= w->chunks + 1);
    const int64_t column[] = {w->tracks, shift, (int64_t)w->level_events, w->level_first_chunk,
                              (int64_t)w->chunks - w->level_first_chunk + 1};
    for (int c = 0; c < 5; c++)
        ms_stmt_i64(w->add_level, c + 1, column[c]);
    run_statement(w, w->add_level);
}

static void write_level(struct mstx_writer *w)
{
    begin_level(w);
    for (size_t i = 0; i < w->levels.ev.n; i += MSTX_CHUNK_MAX) {
        size_t left = w->levels.ev.n - i;
        write_chunk(w, &w->levels.ev.p[i],
                    (uint32_t)(left < MSTX_CHUNK_MAX ? left : MSTX_CHUNK_MAX));
    }
    end_level(w, w->levels.shift);
}

static void write_levels(struct mstx_writer *w)
{
    bool more = mstx__levels_finish(&w->levels);
    while (more && w->err.rc == MS_OK) {
        write_level(w);
        more = mstx__levels_up(&w->levels);
    }
    mstx__levels_clear(&w->levels);
}

/* ---- tracks ----------------------------------------------------------------- */

void mstx__writer_track_begin(struct mstx_writer *w, const struct mstx_track_row *t)
{
    ms_assert(t->process >= 1 && w->n == 0);
    w->track = *t;
    w->tracks++;
    w->track_events = 0;
    w->track_start = INT64_MAX;
    w->track_end = INT64_MIN;
    w->rows = 0;
    w->row_end.n = 0;
    w->n = 0;
    begin_level(w);
}

/* Returns the first row that is free when the event starts, the last row when all are in use. */
static uint16_t row_for(struct mstx_writer *w, const struct mstx_event *e)
{
    ms_assert(w->row_end.n <= ROWS_MAX);
    size_t row = 0;
    while (row < w->row_end.n && w->row_end.p[row] > e->start_ns && row + 1 < ROWS_MAX)
        row++;
    int64_t end = e->start_ns + e->dur_ns;
    if (row < w->row_end.n) {
        w->row_end.p[row] = end > w->row_end.p[row] ? end : w->row_end.p[row];
        return (uint16_t)row;
    }
    int64_t *slot = ms_vec_push(&w->row_end);
    if (slot == NULL)
        fail_memory(w);
    else
        *slot = end;
    return (uint16_t)row;
}

static void flush_chunk(struct mstx_writer *w)
{
    if (w->n != 0) {
        write_chunk(w, w->buffer, w->n);
        if (!mstx__levels_add(&w->levels, w->buffer, w->n))
            fail_memory(w);
    }
    w->n = 0;
}

struct mstx_event *mstx__writer_slot(struct mstx_writer *w)
{
    ms_assert(w->n < MSTX_CHUNK_MAX);
    return &w->buffer[w->n];
}

void mstx__writer_event(struct mstx_writer *w)
{
    struct mstx_event *ev = &w->buffer[w->n];
    if (w->err.rc != MS_OK)
        return;
    ms_assert(ev->dur_ns >= 0 && (w->n == 0 || ev[-1].start_ns <= ev->start_ns));
    if (!w->track.has_rows)
        ev->depth = row_for(w, ev);
    count_name(w, ev);
    int64_t end = ev->start_ns + ev->dur_ns;
    w->track_start = ev->start_ns < w->track_start ? ev->start_ns : w->track_start;
    w->track_end = end > w->track_end ? end : w->track_end;
    w->rows = ev->depth >= w->rows ? ev->depth + 1u : w->rows;
    w->track_events++;
    if (++w->n == MSTX_CHUNK_MAX)
        flush_chunk(w);
}

static void add_track(struct mstx_writer *w)
{
    const struct mstx_track_row *t = &w->track;
    struct ms_stmt *st = w->add_track;
    ms_stmt_i64(st, 1, w->tracks);
    ms_stmt_i64(st, 2, t->process);
    ms_stmt_i64(st, 3, t->kind);
    ms_stmt_i64(st, 4, t->tid);
    ms_stmt_str(st, 5, t->domain);
    ms_stmt_str(st, 6, t->name);
    ms_stmt_str(st, 7, t->unit);
    ms_stmt_i64(st, 8, (int64_t)w->track_events);
    ms_stmt_i64(st, 9, w->rows);
    ms_stmt_i64(st, 10, w->track_start);
    ms_stmt_i64(st, 11, w->track_end);
    ms_stmt_null(st, 12);
    if (t->kind == MSTX_TRACK_STREAM)
        ms_stmt_i64(st, 12, t->device);
    run_statement(w, st);
}

void mstx__writer_track_end(struct mstx_writer *w)
{
    flush_chunk(w);
    if (w->track_events == 0) {
        w->tracks--;
        return;
    }
    end_level(w, 0);
    write_levels(w);
    write_names(w);
    add_track(w);
    if (w->events == 0 || w->track_start < w->start)
        w->start = w->track_start;
    if (w->events == 0 || w->track_end > w->end)
        w->end = w->track_end;
    w->events += w->track_events;
}

static int by_start(const void *pa, const void *pb)
{
    const struct mstx_event *a = pa, *b = pb;
    return MS_ORDER(a->start_ns, b->start_ns, MS_ORDER(b->dur_ns, a->dur_ns, 0));
}

/* Sorting needs as much memory again, and most lanes are written in order. */
static bool is_sorted(const mstx_events *ev)
{
    size_t i = 1;
    while (i < ev->n && by_start(&ev->p[i - 1], &ev->p[i]) <= 0)
        i++;
    return i >= ev->n;
}

void mstx__writer_track(struct mstx_writer *w, const struct mstx_track_row *t, mstx_events *ev)
{
    if (!is_sorted(ev))
        ms_vec_sort(ev, by_start);
    mstx__writer_track_begin(w, t);
    for (size_t i = 0; i < ev->n; i++) {
        *mstx__writer_slot(w) = ev->p[i];
        mstx__writer_event(w);
    }
    mstx__writer_track_end(w);
}

/* ---- the rest --------------------------------------------------------------- */

uint32_t mstx__writer_process_id(struct mstx_writer *w)
{
    return ++w->processes;
}

void mstx__writer_process(struct mstx_writer *w, uint32_t id, const struct mstx_process_row *p)
{
    ms_assert(id >= 1);
    struct ms_stmt *st = NULL;
    if (w->err.rc != MS_OK ||
        ms_store_prepare(w->store, &st,
                         "INSERT INTO processes VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                         &w->err) != MS_OK)
        return;
    const struct ms_str text[] = {p->name, p->dir, p->tool, p->state};
    const int64_t number[] = {p->start_ns,
                              p->end_ns,
                              (int64_t)p->records,
                              (int64_t)p->events,
                              (int64_t)p->unfinished,
                              (int64_t)p->dropped,
                              p->cost_ns};
    ms_stmt_i64(st, 1, id);
    ms_stmt_i64(st, 2, p->rank);
    ms_stmt_str(st, 3, p->host);
    ms_stmt_i64(st, 4, p->pid);
    ms_stmt_i64(st, 5, p->ppid);
    for (int i = 0; i < 4; i++)
        ms_stmt_str(st, 6 + i, text[i]);
    for (int i = 0; i < 7; i++)
        ms_stmt_i64(st, 10 + i, number[i]);
    run_statement(w, st);
    ms_stmt_free(st);
}

/* Inserts two texts into a table of two columns. */
static void add_pair(struct mstx_writer *w, const char *sql, const char *a, const char *b)
{
    struct ms_stmt *st = NULL;
    if (w->err.rc != MS_OK || ms_store_prepare(w->store, &st, sql, &w->err) != MS_OK)
        return;
    ms_stmt_str(st, 1, ms_str_of(a));
    ms_stmt_str(st, 2, ms_str_of(b));
    run_statement(w, st);
    ms_stmt_free(st);
}

void mstx__writer_problem(struct mstx_writer *w, const char *file, const char *text)
{
    w->problems++;
    add_pair(w, "INSERT INTO problems VALUES(?,?)", file, text);
}

enum ms_rc mstx__writer_fail_of_problem(struct mstx_writer *w, struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    ms_assert(w->problems != 0);
    MS_TRY(ms_store_prepare(w->store, &st, "SELECT file, text FROM problems LIMIT 1", err));
    if (ms_stmt_next(st, &rc, err)) {
        const struct ms_str file = ms_stmt_get_str(st, 0), text = ms_stmt_get_str(st, 1);
        rc = ms_fail(err, MS_E_FORMAT, "%.*s: %.*s", (int)file.n, file.p, (int)text.n, text.p);
    }
    ms_stmt_free(st);
    return rc;
}

void mstx__writer_meta(struct mstx_writer *w, const char *key, const char *value)
{
    add_pair(w, "INSERT OR REPLACE INTO meta VALUES(?,?)", key, value);
}

void mstx__writer_source(struct mstx_writer *w, const char *path)
{
    struct stat st;
    struct ms_stmt *add = NULL;
    if (w->err.rc != MS_OK || stat(path, &st) != 0 ||
        ms_store_prepare(w->store, &add, "INSERT OR REPLACE INTO sources VALUES(?,?,?)", &w->err) !=
            MS_OK)
        return;
    ms_stmt_str(add, 1, ms_str_of(path));
    ms_stmt_i64(add, 2, st.st_size);
    ms_stmt_i64(add, 3, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
    run_statement(w, add);
    ms_stmt_free(add);
}

struct mstx_writer_totals mstx__writer_totals(const struct mstx_writer *w)
{
    return (struct mstx_writer_totals){.processes = w->processes,
                                       .tracks = w->tracks,
                                       .events = w->events,
                                       .problems = w->problems,
                                       .start_ns = w->start,
                                       .end_ns = w->end};
}
