/* SPDX-License-Identifier: MIT
 *
 * run_query: queries of viewers to run.db.
 *
 * Opening reads processes, tracks and levels, a few rows each.  The places and
 * time spans of a level's chunks are read when the level is first used; from then
 * on a view is a binary search and the unpacking of the chunks on the screen.
 * Texts are fetched on first use.
 */
#include "mstx/rundb/run_query.h"

#include "mstx/rundb/fold_read.h"
#include "mstx/rundb/levels.h"
#include "mstx/rundb/pack.h"
#include "mstx/rundb/packed_tables.h"
#include "mstx/rundb/packed_texts.h"
#include "mstx/rundb/run_schema.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdlib.h>

static const size_t TEXT_BYTES_MAX = (size_t)1 << 34;
static const int64_t CHUNKS_MAX = INT64_C(1) << 31;

struct chunk {
    int64_t start, end;
    int64_t end_so_far; /* latest end of this chunk and all before it */
};

struct level {
    unsigned shift;
    uint64_t events;
    int64_t first;
    int64_t count;
    struct chunk *chunk; /* NULL: not read yet */
};

struct levels {
    MS_VEC(struct level) list; /* by shift */
};

struct mstx_tl {
    struct ms_store *store;
    struct ms_stmt *get_blob, *get_text, *get_chunks;
    struct mstx_packed_source packed;
    struct mstx_fold *fold;
    struct ms_arena *arena;
    MS_VEC(struct mstx_process) process;
    MS_VEC(struct mstx_track) track;
    MS_VEC(struct levels) levels; /* by track */
    MS_VEC(struct ms_str) text;   /* by id; p is NULL when not fetched yet */
    struct mstx_texts_in args;
    int64_t start, end;
    struct ms_err failed; /* the first failure while a text was fetched */
    mstx_read_fn on_read; /* NULL: nobody watches */
    void *watcher;
    struct mstx_event unpacked[MSTX_CHUNK_MAX];
};

/* ---- opening ---------------------------------------------------------------- */

/* Handles one row of a query. */
typedef enum ms_rc (*row_fn)(struct mstx_tl *tl, struct ms_stmt *st, struct ms_err *err);

static enum ms_rc for_rows(struct mstx_tl *tl, const char *sql, row_fn fn, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(tl->store, &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = fn(tl, st, err);
    ms_stmt_free(st);
    return rc;
}

/* Returns a copy of a column's text that lives until close; "" for NULL. */
static struct ms_str keep_text(struct mstx_tl *tl, struct ms_stmt *st, int column)
{
    struct ms_str s = ms_stmt_get_str(st, column);
    if (s.n == 0)
        return MS_STR("");
    s = ms_arena_str(tl->arena, s);
    if (s.p == NULL)
        (void)ms_no_memory(&tl->failed);
    return s.p != NULL ? s : MS_STR("");
}

static enum ms_rc check_version(struct mstx_tl *tl, struct ms_stmt *st, struct ms_err *err)
{
    (void)tl;
    const struct ms_str version = ms_stmt_get_str(st, 0);
    if (!ms_str_is(version, MSTX_DB_VERSION) && !ms_str_is(version, MSTX_DB_FOLDED))
        return ms_fail(
            err, MS_E_UNSUPPORTED,
            "run.db has format version %.*s; this msprobe reads versions %s and %s; import "
            "the capture again",
            MS_STR_ARG(version), MSTX_DB_VERSION, MSTX_DB_FOLDED);
    return MS_OK;
}

static enum ms_rc add_process(struct mstx_tl *tl, struct ms_stmt *st, struct ms_err *err)
{
    struct mstx_process *p = ms_vec_push(&tl->process);
    if (p == NULL)
        return ms_no_memory(err);
    *p = (struct mstx_process){.rank = (int32_t)ms_stmt_get_i64(st, 1),
                               .pid = (uint32_t)ms_stmt_get_i64(st, 2),
                               .host = keep_text(tl, st, 3),
                               .name = keep_text(tl, st, 4),
                               .start_ns = ms_stmt_get_i64(st, 5),
                               .end_ns = ms_stmt_get_i64(st, 6),
                               .dropped = (uint64_t)ms_stmt_get_i64(st, 7),
                               .tool = keep_text(tl, st, 8)};
    if (ms_stmt_get_i64(st, 0) != (int64_t)tl->process.n)
        return ms_fail(err, MS_E_FORMAT, "the processes of run.db are not numbered from 1");
    return MS_OK;
}

static enum ms_rc add_track(struct mstx_tl *tl, struct ms_stmt *st, struct ms_err *err)
{
    struct mstx_track *t = ms_vec_push(&tl->track);
    struct levels *l = ms_vec_push(&tl->levels);
    if (l != NULL)
        *l = (struct levels){0};
    if (t == NULL || l == NULL)
        return ms_no_memory(err);
    *t = (struct mstx_track){.id = (uint32_t)ms_stmt_get_i64(st, 0),
                             .process = (uint32_t)ms_stmt_get_i64(st, 1) - 1,
                             .kind = (enum mstx_track_kind)ms_stmt_get_i64(st, 2),
                             .tid = (uint32_t)ms_stmt_get_i64(st, 3),
                             .domain = keep_text(tl, st, 4),
                             .name = keep_text(tl, st, 5),
                             .unit = keep_text(tl, st, 6),
                             .events = (uint64_t)ms_stmt_get_i64(st, 7),
                             .rows = (uint32_t)ms_stmt_get_i64(st, 8),
                             .start_ns = ms_stmt_get_i64(st, 9),
                             .end_ns = ms_stmt_get_i64(st, 10),
                             .device = (uint32_t)ms_stmt_get_i64(st, 11)};
    if (t->process >= tl->process.n || t->id != tl->track.n ||
        (unsigned)t->kind >= MSTX_TRACK_KINDS)
        return ms_fail(err, MS_E_FORMAT, "track %zu of run.db makes no sense", tl->track.n);
    tl->start = tl->track.n == 1 || t->start_ns < tl->start ? t->start_ns : tl->start;
    tl->end = tl->track.n == 1 || t->end_ns > tl->end ? t->end_ns : tl->end;
    return MS_OK;
}

static enum ms_rc add_level(struct mstx_tl *tl, struct ms_stmt *st, struct ms_err *err)
{
    int64_t track = ms_stmt_get_i64(st, 0), shift = ms_stmt_get_i64(st, 1);
    int64_t count = ms_stmt_get_i64(st, 4);
    if (track < 1 || track > (int64_t)tl->track.n || shift < 0 || shift > 62 || count < 1 ||
        count > CHUNKS_MAX)
        return ms_fail(err, MS_E_FORMAT, "a level of run.db makes no sense");
    struct level *l = ms_vec_push(&tl->levels.p[track - 1].list);
    if (l == NULL)
        return ms_no_memory(err);
    *l = (struct level){.shift = (unsigned)shift,
                        .events = (uint64_t)ms_stmt_get_i64(st, 2),
                        .first = ms_stmt_get_i64(st, 3),
                        .count = count};
    return MS_OK;
}

static enum ms_rc read_tables(struct mstx_tl *tl, struct ms_err *err)
{
    MS_TRY(for_rows(tl, "SELECT value FROM meta WHERE key = 'version'", check_version, err));
    MS_TRY(for_rows(tl,
                    "SELECT id, rank, pid, host, name, start_ns, end_ns, dropped, tool"
                    " FROM processes ORDER BY id",
                    add_process, err));
    MS_TRY(for_rows(tl,
                    "SELECT id, process, kind, tid, domain, name, unit, events, rows, start_ns,"
                    " end_ns, device FROM tracks ORDER BY id",
                    add_track, err));
    MS_TRY(for_rows(tl,
                    "SELECT track, shift, events, first_chunk, chunks FROM levels"
                    " ORDER BY track, shift",
                    add_level, err));
    MS_TRY(
        ms_store_prepare(tl->store, &tl->get_text, "SELECT value FROM strings WHERE id = ?", err));
    MS_TRY(ms_store_prepare(tl->store, &tl->get_chunks,
                            "SELECT start_ns, end_ns FROM chunks WHERE id >= ? AND id < ?"
                            " ORDER BY id",
                            err));
    return ms_store_prepare(tl->store, &tl->get_blob, "SELECT data FROM blobs WHERE chunk = ?",
                            err);
}

static struct ms_str text_of(void *ctx, uint32_t id)
{
    return mstx_tl_text(ctx, id);
}

enum ms_rc mstx_tl_open(struct mstx_tl **out, const char *path, struct ms_err *err)
{
    *out = NULL;
    struct mstx_tl *tl = ms_calloc(1, sizeof *tl);
    if (tl == NULL)
        return ms_no_memory(err);
    tl->arena = ms_arena_new(TEXT_BYTES_MAX);
    enum ms_rc rc = tl->arena != NULL ? ms_store_open(&tl->store, path, err) : ms_no_memory(err);
    if (rc == MS_OK) {
        tl->args = (struct mstx_texts_in){.store = tl->store, .arena = tl->arena};
        rc = mstx__fold_new(&tl->fold, tl->store, err);
        tl->packed = (struct mstx_packed_source){
            .store = tl->store,
            .folded = tl->fold != NULL ? mstx__fold_columns(tl->fold) : NULL,
            .text = text_of,
            .ctx = tl};
        if (rc == MS_OK)
            rc = read_tables(tl, err);
        if (rc == MS_OK)
            rc = mstx__packed_tables(&tl->packed, err);
        if (rc == MS_OK)
            rc = mstx__tl_check(tl, err);
        /* failures of the store name it already */
        if (rc != MS_OK && err != NULL && !ms_str_starts(ms_str_of(err->msg), ms_str_of(path)))
            ms_err_wrap(err, "%s", path);
    }
    if (rc == MS_OK)
        *out = tl;
    else
        mstx_tl_close(tl);
    return rc;
}

static void free_levels(struct levels *l)
{
    for (size_t i = 0; i < l->list.n; i++)
        ms_free(l->list.p[i].chunk);
    ms_vec_free(&l->list);
}

void mstx_tl_close(struct mstx_tl *tl)
{
    if (tl == NULL)
        return;
    ms_stmt_free(tl->get_blob);
    ms_stmt_free(tl->get_text);
    mstx__texts_in_free(&tl->args);
    ms_stmt_free(tl->get_chunks);
    mstx__fold_free(tl->fold);
    ms_store_close(tl->store);
    mstx__packed_source_free(&tl->packed);
    for (size_t i = 0; i < tl->levels.n; i++)
        free_levels(&tl->levels.p[i]);
    ms_vec_free(&tl->levels);
    ms_vec_free(&tl->track);
    ms_vec_free(&tl->process);
    ms_vec_free(&tl->text);
    ms_arena_free(tl->arena);
    ms_free(tl);
}

/* ---- processes, tracks and texts -------------------------------------------- */

struct mstx_packed_source *mstx__tl_packed(struct mstx_tl *tl)
{
    return &tl->packed;
}

struct ms_store *mstx_tl_store(struct mstx_tl *tl)
{
    return tl->store;
}

size_t mstx_tl_process_count(const struct mstx_tl *tl)
{
    return tl->process.n;
}

const struct mstx_process *mstx_tl_process(const struct mstx_tl *tl, size_t i)
{
    ms_assert(i < tl->process.n);
    return &tl->process.p[i];
}

size_t mstx_tl_track_count(const struct mstx_tl *tl)
{
    return tl->track.n;
}

const struct mstx_track *mstx_tl_track(const struct mstx_tl *tl, size_t i)
{
    ms_assert(i < tl->track.n);
    return &tl->track.p[i];
}

void mstx_tl_span(const struct mstx_tl *tl, int64_t *start_ns, int64_t *end_ns)
{
    *start_ns = tl->start;
    *end_ns = tl->end;
}

enum ms_rc mstx__tl_check(const struct mstx_tl *tl, struct ms_err *err)
{
    const struct ms_err *failed = tl->failed.rc != MS_OK ? &tl->failed : &tl->args.failed;
    if (failed->rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = *failed;
    return failed->rc;
}

static bool reserve_text(struct mstx_tl *tl, uint32_t id)
{
    if (id < tl->text.n)
        return true;
    size_t want = (size_t)id + id / 2 + 64;
    if (!ms_vec_reserve(&tl->text, want)) {
        (void)ms_no_memory(&tl->failed);
        return false;
    }
    memset(tl->text.p + tl->text.n, 0, (want - tl->text.n) * sizeof *tl->text.p);
    tl->text.n = want;
    return true;
}

static struct ms_str fetch_text(struct mstx_tl *tl, uint32_t id)
{
    bool more;
    struct ms_str s = MS_STR("");
    struct ms_err why = {0};
    ms_stmt_i64(tl->get_text, 1, id);
    enum ms_rc rc = ms_stmt_step(tl->get_text, &more, &why);
    if (rc == MS_OK && more)
        s = keep_text(tl, tl->get_text, 0);
    if (rc != MS_OK && tl->failed.rc == MS_OK)
        tl->failed = why; /* SQLite calls a page damaged that the disk does not give */
    ms_stmt_reset(tl->get_text);
    return s;
}

struct ms_str mstx_tl_text(struct mstx_tl *tl, uint32_t id)
{
    if (id == 0)
        return MS_STR("");
    if ((id & MSTX_TEXT_PACKED) != 0)
        return mstx__texts_get(&tl->args, id);
    /* A damaged id must not grow the table: fetch the text first. */
    if (id >= tl->text.n && fetch_text(tl, id).n == 0)
        return MS_STR("");
    if (!reserve_text(tl, id))
        return MS_STR("");
    if (tl->text.p[id].p == NULL)
        tl->text.p[id] = fetch_text(tl, id);
    return tl->text.p[id];
}

/* ---- chunks ----------------------------------------------------------------- */

static enum ms_rc load_index(struct mstx_tl *tl, struct level *l, struct ms_err *err)
{
    ms_assert(l->count >= 1);
    if (l->chunk != NULL)
        return MS_OK;
    struct chunk *chunk = ms_calloc((size_t)l->count, sizeof *chunk);
    if (chunk == NULL)
        return ms_no_memory(err);
    ms_stmt_i64(tl->get_chunks, 1, l->first);
    ms_stmt_i64(tl->get_chunks, 2, l->first + l->count);
    enum ms_rc rc = MS_OK;
    int64_t n = 0, end = INT64_MIN;
    while (n < l->count && ms_stmt_next(tl->get_chunks, &rc, err)) {
        struct chunk c = {ms_stmt_get_i64(tl->get_chunks, 0), ms_stmt_get_i64(tl->get_chunks, 1),
                          0};
        end = c.end > end ? c.end : end;
        c.end_so_far = end;
        chunk[n++] = c;
    }
    ms_stmt_reset(tl->get_chunks);
    if (rc == MS_OK && n != l->count)
        rc = ms_fail(err, MS_E_FORMAT, "run.db lacks chunks of a level; import the capture again");
    if (rc == MS_OK)
        l->chunk = chunk;
    else
        ms_free(chunk);
    return rc;
}

/* Returns the first chunk that may hold an event that ends at t or later. */
static int64_t first_reaching(const struct level *l, int64_t t)
{
    ms_assert(l->chunk != NULL);
    int64_t lo = 0, hi = l->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (l->chunk[mid].end_so_far < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Returns the first chunk that starts after t. */
static int64_t first_behind(const struct level *l, int64_t t)
{
    ms_assert(l->chunk != NULL);
    int64_t lo = 0, hi = l->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (l->chunk[mid].start <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Reads a packed chunk, borrowed until get_blob is reset. */
static enum ms_rc get_chunk(struct mstx_tl *tl, int64_t id, struct ms_str *blob, struct ms_err *err)
{
    bool more = false;
    ms_stmt_i64(tl->get_blob, 1, id);
    MS_TRY(ms_stmt_step(tl->get_blob, &more, err));
    if (!more)
        return ms_fail(err, MS_E_FORMAT,
                       "run.db has no chunk %" PRId64 "; import the capture again", id);
    *blob = ms_stmt_get_blob(tl->get_blob, 0);
    return MS_OK;
}

/* ---- views ------------------------------------------------------------------ */

static struct level *level_for(struct levels *l, int64_t res_ns)
{
    ms_assert(l->list.n >= 1);
    struct level *best = &l->list.p[0];
    for (size_t i = 1; i < l->list.n; i++) {
        if (l->list.p[i].shift < 63 && (int64_t)1 << l->list.p[i].shift <= res_ns)
            best = &l->list.p[i];
    }
    return best;
}

bool mstx__tl_level(const struct mstx_tl *tl, size_t track, unsigned from, unsigned *shift,
                    uint64_t *events)
{
    ms_assert(track < tl->levels.n);
    const struct levels *l = &tl->levels.p[track];
    size_t i = 0;
    while (i < l->list.n && l->list.p[i].shift < from)
        i++;
    if (i == l->list.n)
        return false;
    *shift = l->list.p[i].shift;
    *events = l->list.p[i].events;
    return true;
}

static enum ms_rc take_visible(const struct mstx_tl *tl, uint32_t n, int64_t t0, int64_t t1,
                               mstx_events *out, struct ms_err *err)
{
    ms_assert(n <= MSTX_CHUNK_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct mstx_event *e = &tl->unpacked[i];
        if (e->start_ns > t1)
            break;
        if (e->start_ns + e->dur_ns < t0)
            continue;
        struct mstx_event *slot = ms_vec_push(out);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = *e;
    }
    return MS_OK;
}

/* Unpacks a chunk into tl->unpacked; may leave out events that start after `until`. */
typedef enum ms_rc (*unpack_fn)(struct mstx_tl *tl, struct ms_str blob, int64_t until, uint32_t *n,
                                struct ms_err *err);

static enum ms_rc view_chunks(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1,
                              int64_t res_ns, unpack_fn unpack, mstx_events *out,
                              struct ms_err *err)
{
    ms_assert(track < tl->levels.n);
    struct levels *levels = &tl->levels.p[track];
    if (levels->list.n == 0 || t0 > t1)
        return MS_OK;
    struct level *l = level_for(levels, res_ns);
    MS_TRY(load_index(tl, l, err));
    int64_t end = first_behind(l, t1);
    for (int64_t i = first_reaching(l, t0); i < end; i++) {
        uint32_t n = 0;
        struct ms_str blob;
        if (l->chunk[i].end < t0)
            continue;
        enum ms_rc rc = get_chunk(tl, l->first + i, &blob, err);
        if (rc == MS_OK)
            rc = unpack(tl, blob, t1, &n, err);
        ms_stmt_reset(tl->get_blob);
        MS_TRY(rc);
        MS_TRY(take_visible(tl, n, t0, t1, out, err));
    }
    return MS_OK;
}

static enum ms_rc unpack_all(struct mstx_tl *tl, struct ms_str blob, int64_t until, uint32_t *n,
                             struct ms_err *err)
{
    (void)until;
    return mstx__is_folded(blob) ? mstx__fold_events(tl->fold, blob, tl->unpacked, n, err)
                                 : mstx_unpack(blob, tl->unpacked, n, err);
}

static enum ms_rc unpack_drawn(struct mstx_tl *tl, struct ms_str blob, int64_t until, uint32_t *n,
                               struct ms_err *err)
{
    if (!mstx__is_folded(blob))
        return mstx_unpack_drawn(blob, until, tl->unpacked, n, err);
    MS_TRY(mstx__fold_events(tl->fold, blob, tl->unpacked, n, err));
    for (uint32_t i = 0; i < *n; i++) {
        tl->unpacked[i].id = 0;
        tl->unpacked[i].args = tl->unpacked[i].end_tid = 0;
    }
    return MS_OK;
}

enum ms_rc mstx_tl_view(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                        mstx_events *out, struct ms_err *err)
{
    return view_chunks(tl, track, t0, t1, res_ns, unpack_all, out, err);
}

/* ---- pictures --------------------------------------------------------------- */

/* A level is stored only where the number of events has halved, so the finest level for a screen's
 * resolution may hold several events for a pixel.  They are joined here by the same rule as the
 * levels. */

/* Returns the shift of the least power of two that is not below v. */
static unsigned shift_of(int64_t v)
{
    unsigned shift = 0;
    while (shift < MSTX_SHIFT_MAX && (int64_t)1 << shift < v)
        shift++;
    return shift;
}

enum ms_rc mstx_tl_picture(struct mstx_tl *tl, size_t track, int64_t t0, int64_t t1, int64_t res_ns,
                           mstx_events *out, struct ms_err *err)
{
    unsigned shift = shift_of(res_ns);
    out->n = 0;
    MS_TRY(view_chunks(tl, track, t0, t1, (int64_t)1 << shift, unpack_drawn, out, err));
    if (shift == 0)
        return MS_OK;
    struct mstx_levels joined = {.ev = *out};
    bool good = mstx__levels_join(&joined, shift);
    *out = joined.ev;
    joined.ev = (mstx_events){0};
    mstx__levels_free(&joined);
    return good ? MS_OK : ms_no_memory(err);
}

/* ---- names ------------------------------------------------------------------ */

struct mstx_names {
    uint64_t *bit;
    uint32_t size; /* ids below this have a bit */
    size_t count;
};

static bool is_wanted(void *ctx, uint32_t name)
{
    const struct mstx_names *names = ctx;
    return name < names->size && (names->bit[name / 64] >> name % 64 & 1) != 0;
}

static bool has_name(struct mstx_tl *tl, struct ms_str blob, void *names)
{
    return mstx__is_folded(blob) ? mstx__fold_has_name(tl->fold, blob, is_wanted, names)
                                 : mstx_pack_has_name(blob, is_wanted, names);
}

/* Unpacks a chunk into tl->unpacked; sets *n to 0 when names are given and the chunk holds none of
 * them. */
static enum ms_rc read_chunk(struct mstx_tl *tl, int64_t id, const struct mstx_names *names,
                             uint32_t *n, struct ms_err *err)
{
    struct ms_str blob;
    void *ctx = (void *)(uintptr_t)names;
    *n = 0;
    enum ms_rc rc = get_chunk(tl, id, &blob, err);
    if (rc == MS_OK && (names == NULL || has_name(tl, blob, ctx)))
        rc = unpack_all(tl, blob, INT64_MAX, n, err);
    ms_stmt_reset(tl->get_blob);
    if (tl->on_read != NULL)
        tl->on_read(tl->watcher, *n);
    return rc;
}

static enum ms_rc collect_names(struct mstx_tl *tl, const char *text, struct mstx_names *names,
                                struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(tl->store, &st,
                            "SELECT id FROM strings WHERE id IN (SELECT DISTINCT name FROM names)"
                            " AND instr(lower(value), lower(?)) > 0",
                            err));
    ms_stmt_str(st, 1, ms_str_of(text));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        int64_t id = ms_stmt_get_i64(st, 0);
        if (id > 0 && id < names->size) {
            names->bit[id / 64] |= (uint64_t)1 << id % 64;
            names->count++;
        }
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc count_texts(struct mstx_tl *tl, uint32_t *size, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(tl->store, &st, "SELECT ifnull(max(id), 0) + 1 FROM strings", err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK) {
        int64_t n = ms_stmt_get_i64(st, 0);
        *size = n > 0 && n < UINT32_MAX ? (uint32_t)n : 1;
    }
    ms_stmt_free(st);
    return rc;
}

enum ms_rc mstx_tl_find(struct mstx_tl *tl, const char *text, struct mstx_names **out,
                        struct ms_err *err)
{
    *out = NULL;
    uint32_t size;
    MS_TRY(count_texts(tl, &size, err));
    struct mstx_names *names = ms_calloc(1, sizeof *names);
    if (names == NULL)
        return ms_no_memory(err);
    names->size = size;
    names->bit = ms_calloc(size / 64 + 1, sizeof *names->bit);
    enum ms_rc rc = names->bit != NULL ? collect_names(tl, text != NULL ? text : "", names, err)
                                       : ms_no_memory(err);
    if (rc == MS_OK)
        *out = names;
    else
        mstx_names_free(names);
    return rc;
}

size_t mstx_names_count(const struct mstx_names *names)
{
    ms_assert(names != NULL);
    return names->count;
}

bool mstx_names_has(const struct mstx_names *names, uint32_t name)
{
    ms_assert(names != NULL);
    return is_wanted((void *)(uintptr_t)names, name);
}

void mstx_names_free(struct mstx_names *names)
{
    if (names == NULL)
        return;
    ms_free(names->bit);
    ms_free(names);
}

/* ---- steps and walks -------------------------------------------------------- */

static enum ms_rc level_0(struct mstx_tl *tl, size_t track, struct level **l, struct ms_err *err)
{
    ms_assert(track < tl->levels.n);
    *l = tl->levels.p[track].list.n != 0 ? &tl->levels.p[track].list.p[0] : NULL;
    return *l != NULL ? load_index(tl, *l, err) : MS_OK;
}

static bool is_match(const struct mstx_event *e, const struct mstx_names *names)
{
    return names == NULL || mstx_names_has(names, e->name);
}

enum ms_rc mstx_tl_next(struct mstx_tl *tl, size_t track, int64_t t, const struct mstx_names *names,
                        struct mstx_event *ev, bool *found, struct ms_err *err)
{
    struct level *l;
    *found = false;
    MS_TRY(level_0(tl, track, &l, err));
    if (l == NULL)
        return MS_OK;
    /* The chunk before the first one that starts after t may hold events that start after t. */
    int64_t i = first_behind(l, t);
    for (i = i > 0 ? i - 1 : 0; i < l->count && !*found; i++) {
        uint32_t n;
        MS_TRY(read_chunk(tl, l->first + i, names, &n, err));
        for (uint32_t k = 0; k < n && !*found; k++) {
            *found = tl->unpacked[k].start_ns > t && is_match(&tl->unpacked[k], names);
            if (*found)
                *ev = tl->unpacked[k];
        }
    }
    return MS_OK;
}

enum ms_rc mstx_tl_prev(struct mstx_tl *tl, size_t track, int64_t t, const struct mstx_names *names,
                        struct mstx_event *ev, bool *found, struct ms_err *err)
{
    struct level *l;
    *found = false;
    MS_TRY(level_0(tl, track, &l, err));
    if (l == NULL)
        return MS_OK;
    for (int64_t i = first_behind(l, t); i-- > 0 && !*found;) {
        uint32_t n;
        MS_TRY(read_chunk(tl, l->first + i, names, &n, err));
        for (uint32_t k = n; k-- > 0 && !*found;) {
            *found = tl->unpacked[k].start_ns < t && is_match(&tl->unpacked[k], names);
            if (*found)
                *ev = tl->unpacked[k];
        }
    }
    return MS_OK;
}

enum ms_rc mstx_tl_walk(struct mstx_tl *tl, size_t track, const struct mstx_names *names,
                        mstx_event_fn fn, void *ctx, struct ms_err *err)
{
    ms_assert(fn != NULL);
    struct level *l;
    MS_TRY(level_0(tl, track, &l, err));
    for (int64_t i = 0; l != NULL && i < l->count; i++) {
        uint32_t n;
        MS_TRY(read_chunk(tl, l->first + i, names, &n, err));
        for (uint32_t k = 0; k < n; k++) {
            if (is_match(&tl->unpacked[k], names))
                MS_TRY(fn(ctx, &tl->unpacked[k], err));
        }
    }
    return MS_OK;
}

void mstx_tl_watch(struct mstx_tl *tl, mstx_read_fn fn, void *ctx)
{
    tl->on_read = fn;
    tl->watcher = ctx;
}

/* ---- cursors ---------------------------------------------------------------- */

struct mstx_cursor {
    struct mstx_tl *tl;
    struct level *level; /* NULL: a track without events */
    int64_t chunk;       /* next chunk to read */
    uint32_t at, n;
    struct mstx_event ev[MSTX_CHUNK_MAX];
};

enum ms_rc mstx__cursor_new(struct mstx_cursor **out, struct mstx_tl *tl, size_t track,
                            struct ms_err *err)
{
    *out = NULL;
    struct level *l;
    MS_TRY(level_0(tl, track, &l, err));
    struct mstx_cursor *c = ms_alloc(sizeof *c);
    if (c == NULL)
        return ms_no_memory(err);
    c->tl = tl;
    c->level = l;
    c->chunk = 0;
    c->at = c->n = 0;
    *out = c;
    return MS_OK;
}

enum ms_rc mstx__cursor_next(struct mstx_cursor *c, const struct mstx_event **ev,
                             struct ms_err *err)
{
    ms_assert(c->at <= c->n && c->n <= MSTX_CHUNK_MAX);
    *ev = NULL;
    if (c->at == c->n) {
        if (c->level == NULL || c->chunk == c->level->count)
            return MS_OK;
        MS_TRY(read_chunk(c->tl, c->level->first + c->chunk, NULL, &c->n, err));
        memcpy(c->ev, c->tl->unpacked, c->n * sizeof *c->ev);
        c->chunk++;
        c->at = 0;
    }
    *ev = &c->ev[c->at++];
    return MS_OK;
}

void mstx__cursor_seek(struct mstx_cursor *c, int64_t t)
{
    if (c->level != NULL)
        c->chunk = first_reaching(c->level, t);
}

void mstx__cursor_free(struct mstx_cursor *c)
{
    ms_free(c);
}
