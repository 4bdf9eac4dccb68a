/* SPDX-License-Identifier: MIT
 *
 * run_drawn: drawn tracks and calls, written into a run.db: what is found in it is what was put in,
 * by a search through all that was put in; each level is the one on record, and so is every table.
 * A condition in SQL that skips blobs finds the rows that the same condition finds without (+column).
 */
#include "mstx/rundb/events_table.h"
#include "mstx/rundb/packed_tables.h"
#include "mstx/rundb/run_query.h"
#include "mstx/rundb/run_write.h"
#include "probe/base/mem.h"
#include "tests/support/recorded.h"

#include <inttypes.h>
#include <strings.h>

enum { RUNS = 5, TRACKS = 5, NAMES = 6 };

static struct ms_err err;
static char dir[64], path[80];
static uint64_t state;
static mstx_events made[TRACKS]; /* what was put in, by start */
static struct mstx_tl *tl;
static const char *const names[NAMES] = {"forward",    "Backward",  "step 1",
                                         "all_reduce", "FORWARD x", "loss"};

#define below(n) recorded_below(&state, (n))

/* ---- writing ------------------------------------------------------------------------ */

static struct mstx_event draw_event(struct mstx_writer *w, int64_t start, bool counters)
{
    const uint8_t kind = (uint8_t)(counters        ? MSTX_EV_COUNTER
                                   : below(4) == 0 ? MSTX_EV_REGION
                                                   : below(3));
    struct mstx_event e = {
        .start_ns = start,
        .dur_ns = kind == MSTX_EV_MARK || counters ? 0 : (int64_t)below(1u << (1 + below(12))),
        .id = below(9),
        .arg = below(999),
        .name = mstx__writer_text(w, ms_str_of(names[below(NAMES)])),
        .args = below(5) == 0 ? mstx__writer_text(w, MS_STR("{\"category\": \"io\"}")) : 0,
        .count = 1,
        .end_tid = below(7) == 0 ? 71 : 0,
        .kind = kind,
        .flags = (uint8_t)(below(6) == 0 ? 1u << below(5) : 0)};
    if (kind == MSTX_EV_REGION)
        e.size = 1 + below(5000);
    if (counters && e.flags == MSTX_EVF_FLOAT)
        e.arg = 0x4000000000000000u + ((uint64_t)below(9) << 48);
    if (counters && below(3) == 0)
        e.arg = (uint64_t) - (int64_t)below(500);
    return e;
}

static void draw_track(struct mstx_writer *w, size_t at, uint32_t process)
{
    static const uint32_t sizes[] = {2, 1, 40, 513, 700, 4096, 4097, 5000};
    const uint32_t n = sizes[below(8)];
    const bool counters = below(4) == 0;
    const struct mstx_track_row row = {.process = process,
                                       .kind = counters ? MSTX_TRACK_COUNTER : MSTX_TRACK_THREAD,
                                       .tid = 70 + (uint32_t)at,
                                       .domain = MS_STR("default"),
                                       .name = ms_str_of(names[at % NAMES]),
                                       .unit = counters ? MS_STR("MB") : MS_STR("")};
    int64_t t = 1000000 + (int64_t)below(1000);
    made[at].n = 0;
    mstx__writer_track_begin(w, &row);
    for (uint32_t i = 0; i < n; i++) {
        const struct mstx_event e = draw_event(w, t, counters);
        *mstx__writer_slot(w) = e;
        mstx__writer_event(w);
        struct mstx_event *kept = ms_vec_push(&made[at]);
        ck_assert_ptr_nonnull(kept);
        *kept = e;
        t += below(5) == 0 ? 0 : below(1u << (1 + below(9)));
    }
    mstx__writer_track_end(w);
}

static void draw_cells(struct mstx_packed_out *out, unsigned columns)
{
    for (unsigned c = 0; c < columns; c++) {
        int64_t v = below(4) == 0 ? below(3) : below(40);
        if (columns == MSTX_CALL_COLUMNS && (c == MSTX_CALL_START || c == MSTX_CALL_ID))
            v = 1000 * (int64_t)out->rows.n + below(900);
        if (columns == MSTX_SPAN_COLUMNS && c == MSTX_SPAN_KIND)
            v = below(4);
        mstx__rows_put(&out->rows, c, below(9) == 0 && c > 1 ? MSTX_ROWS_NULL : v);
    }
    out->rows.n++;
}

static void draw_packed(struct mstx_writer *w,
                        enum ms_rc (*make)(struct mstx_packed_out *, struct ms_store *,
                                           struct ms_err *),
                        unsigned columns)
{
    struct mstx_packed_out out;
    ck_ok(make(&out, mstx__writer_store(w), &err), err);
    for (int64_t id = 1; id <= 6; id++) {
        for (uint32_t i = below(30); i > 0; i--)
            draw_cells(&out, columns);
        ck_ok(mstx__packed_flush(&out, 3 * id, &err), err);
    }
    mstx__packed_free(&out);
}

static void draw_run(void)
{
    struct mstx_writer *w;
    ck_ok(mstx__writer_new(&w, path, &err), err);
    for (int i = 0; i < 2; i++) {
        const uint32_t id = mstx__writer_process_id(w);
        const struct mstx_process_row p = {.rank = i == 0 ? (int32_t)below(3) : -1,
                                           .pid = 70 + id,
                                           .ppid = 1,
                                           .host = MS_STR("host"),
                                           .name = MS_STR("train"),
                                           .dir = MS_STR("rank_0/x"),
                                           .tool = MS_STR("1.0"),
                                           .state = MS_STR("finished"),
                                           .start_ns = 5,
                                           .end_ns = 9,
                                           .records = below(99),
                                           .events = below(99),
                                           .unfinished = below(4),
                                           .dropped = below(4),
                                           .cost_ns = below(99)};
        mstx__writer_process(w, id, &p);
    }
    for (size_t i = 0; i < TRACKS; i++) {
        const struct mstx_track_row row = {.process = 1};
        mstx__writer_track_begin(w, &row); /* without events: no track */
        mstx__writer_track_end(w);
        draw_track(w, i, 1 + (uint32_t)(i % 2));
    }
    draw_packed(w, mstx__packed_calls_new, MSTX_CALL_COLUMNS);
    draw_packed(w, mstx__packed_joins_new, MSTX_JOIN_COLUMNS);
    draw_packed(w, mstx__packed_spans_new, MSTX_SPAN_COLUMNS);
    mstx__writer_problem(w, "a file", "a problem");
    mstx__writer_meta(w, "path", "/run");
    mstx__writer_meta(w, "world_size", "2");
    const struct mstx_writer_totals all = mstx__writer_totals(w);
    ck_assert(all.processes == 2 && all.tracks == TRACKS && all.problems == 1);
    int64_t first = INT64_MAX, last = INT64_MIN;
    size_t events = 0;
    for (size_t i = 0; i < TRACKS; i++) {
        events += made[i].n;
        for (size_t k = 0; k < made[i].n; k++) {
            const int64_t end = made[i].p[k].start_ns + made[i].p[k].dur_ns;
            first = made[i].p[k].start_ns < first ? made[i].p[k].start_ns : first;
            last = end > last ? end : last;
        }
    }
    ck_assert(all.events == events && all.start_ns == first && all.end_ns == last);
    ck_assert(ms_str_is(mstx__writer_text_of(w, 0), ""));
    for (uint32_t i = 1; i <= mstx__writer_texts(w); i++)
        ck_assert_uint_eq(mstx__writer_text(w, mstx__writer_text_of(w, i)), i);
    ck_assert(ms_str_is(mstx__writer_text_of(w, mstx__writer_texts(w) + 1), ""));
    ck_ok(mstx__writer_commit(w, &err), err);
}

/* ---- second answers --------------------------------------------------------------------- */

static bool is_same(const struct mstx_event *a, const struct mstx_event *b)
{
    return a->start_ns == b->start_ns && a->dur_ns == b->dur_ns && a->id == b->id &&
           a->arg == b->arg && a->name == b->name && a->args == b->args && a->count == b->count &&
           a->end_tid == b->end_tid && a->kind == b->kind && a->flags == b->flags;
}

/* Check writes down every assertion that holds, which is much for thousands of events. */
#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            ck_abort_msg("%s", #cond);                                                             \
    } while (0)

static int64_t draw_time(const mstx_events *all)
{
    const int64_t first = all->n != 0 ? all->p[0].start_ns : 0;
    if (all->n == 0 || below(8) == 0)
        return first + (int64_t)below(3) - 1;
    const struct mstx_event *e = &all->p[below((uint32_t)all->n)];
    return below(2) == 0 ? e->start_ns + (int64_t)below(3) - 1
                         : e->start_ns + e->dur_ns + (int64_t)below(3) - 1;
}

static void check_view(size_t track)
{
    const mstx_events *all = &made[track];
    mstx_events got = {0};
    const int64_t a = draw_time(all), b = draw_time(all);
    size_t k = 0;
    ck_ok(mstx_tl_view(tl, track, a, b, 0, &got, &err), err);
    for (size_t i = 0; i < all->n && a <= b; i++) {
        const struct mstx_event *e = &all->p[i];
        if (e->start_ns > b || e->start_ns + e->dur_ns < a)
            continue;
        MUST(k < got.n && is_same(e, &got.p[k]));
        k++;
    }
    ck_assert_uint_eq(k, got.n);
    ms_vec_free(&got);
}

static void check_steps(size_t track, const struct mstx_names *wanted)
{
    const mstx_events *all = &made[track];
    const int64_t t = draw_time(all);
    const struct mstx_event *next = NULL, *before = NULL;
    struct mstx_event e;
    bool found;
    for (size_t i = 0; i < all->n; i++) {
        if (wanted != NULL && !mstx_names_has(wanted, all->p[i].name))
            continue;
        if (all->p[i].start_ns > t && next == NULL)
            next = &all->p[i];
        if (all->p[i].start_ns < t)
            before = &all->p[i];
    }
    ck_ok(mstx_tl_next(tl, track, t, wanted, &e, &found, &err), err);
    ck_assert(found == (next != NULL) && (!found || is_same(&e, next)));
    ck_ok(mstx_tl_prev(tl, track, t, wanted, &e, &found, &err), err);
    ck_assert(found == (before != NULL) && (!found || is_same(&e, before)));
}

static void check_cursor(size_t track)
{
    const mstx_events *all = &made[track];
    struct mstx_cursor *c;
    const struct mstx_event *e;
    const int64_t t = draw_time(all);
    size_t i = 0;
    ck_ok(mstx__cursor_new(&c, tl, track, &err), err);
    const bool seeks = below(2) == 0;
    if (seeks)
        mstx__cursor_seek(c, t);
    ck_ok(mstx__cursor_next(c, &e, &err), err);
    /* Only whole chunks are skipped, in which every event ends before t. */
    for (; seeks && i < all->n && (e == NULL || !is_same(e, &all->p[i])); i++)
        MUST(all->p[i].start_ns + all->p[i].dur_ns < t);
    ck_assert(!seeks || e == NULL || i % 4096 == 0);
    while (e != NULL) {
        MUST(i < all->n && is_same(e, &all->p[i]));
        i++;
        MUST(mstx__cursor_next(c, &e, &err) == MS_OK);
    }
    ck_assert_uint_eq(i, all->n);
    mstx__cursor_free(c);
}

struct walked {
    const mstx_events *all;
    const struct mstx_names *wanted;
    size_t at;
};

static enum ms_rc walk_one(void *ctx, const struct mstx_event *e, struct ms_err *unused)
{
    struct walked *w = ctx;
    (void)unused;
    while (w->wanted != NULL && !mstx_names_has(w->wanted, w->all->p[w->at].name))
        w->at++;
    MUST(is_same(e, &w->all->p[w->at]));
    w->at++;
    return MS_OK;
}

static void check_names(size_t track)
{
    static const char *const text[] = {"forward", "FORWARD", "ward", "step", "zzz", ""};
    for (size_t i = 0; i < 6; i++) {
        struct mstx_names *found;
        struct walked w = {.all = &made[track]};
        bool used[NAMES + 2] = {false};
        size_t want = 0;
        ck_ok(mstx_tl_find(tl, text[i], &found, &err), err);
        for (size_t t = 0; t < TRACKS; t++) {
            for (size_t k = 0; k < made[t].n; k++) {
                const uint32_t id = made[t].p[k].name;
                const bool has = strcasestr(mstx_tl_text(tl, id).p, text[i]) != NULL;
                MUST(mstx_names_has(found, id) == has);
                want += has && !used[id];
                used[id] = true;
            }
        }
        ck_assert_uint_eq(mstx_names_count(found), want);
        ck_assert(!mstx_names_has(found, 0) && !mstx_names_has(found, UINT32_MAX));
        w.wanted = found;
        ck_ok(mstx_tl_walk(tl, track, found, walk_one, &w, &err), err);
        check_steps(track, found);
        mstx_names_free(found);
    }
}

/* ---- on record ------------------------------------------------------------------------------ */

static void put_rows(struct ms_buf *b, const char *sql)
{
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    uint32_t crc = 0, n = 0;
    ck_ok(ms_store_prepare(mstx_tl_store(tl), &st, sql, &err), err);
    for (; ms_stmt_next(st, &rc, &err); n++) {
        for (int i = 0; i < ms_stmt_columns(st); i++) {
            const struct ms_str s =
                ms_stmt_is_null(st, i) ? MS_STR("NULL") : ms_stmt_get_str(st, i);
            crc = ms_crc32(ms_crc32(crc, s.p, s.n), "|", 1);
            if (recorded_shows)
                printf("%.*s|", MS_STR_ARG(s));
        }
        if (recorded_shows)
            printf("\n");
    }
    ck_ok(rc, err);
    ms_buf_printf(b, "  %u %08x %s\n", n, crc, sql);
    ms_stmt_free(st);
}

/* Rows of a query that gives one number. */
static int64_t number_of(const char *sql)
{
    struct ms_stmt *st;
    bool more;
    ck_ok(ms_store_prepare(mstx_tl_store(tl), &st, sql, &err), err);
    ck_ok(ms_stmt_step(st, &more, &err), err);
    ck_assert(more);
    const int64_t v = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return v;
}

/* The same condition with the columns' bounds and, behind a plus, without them. */
static void check_bounds(const char *table, const char *sum, const char *const *column, unsigned n,
                         int times)
{
    static const char *const op[] = {"=", "<", "<=", ">", ">="};
    for (int i = 0; i < times; i++) {
        char bound[256] = "", plain[256] = "", sql[400];
        int64_t got[2];
        for (unsigned k = 1 + below(3); k > 0; k--) {
            const char *c = column[below(n)], *o = op[below(5)];
            const bool is_time = strstr(c, "_ns") != NULL, is_event = table[0] == 'e';
            const uint32_t v = is_time && is_event ? 1000000 + 2000 * below(200)
                               : is_time           ? 1000 * below(30)
                                                   : below(is_event ? 7 : 40);
            snprintf(bound + strlen(bound), sizeof bound - strlen(bound), "%s %s %s %u",
                     bound[0] != '\0' ? " AND" : "", c, o, v);
            snprintf(plain + strlen(plain), sizeof plain - strlen(plain), "%s +%s %s %u",
                     plain[0] != '\0' ? " AND" : "", c, o, v);
        }
        for (int way = 0; way < 2; way++) {
            snprintf(sql, sizeof sql, "SELECT count(*) + 7 * ifnull(sum(%s), 0) FROM %s WHERE%s",
                     sum, table, way == 0 ? bound : plain);
            got[way] = number_of(sql);
        }
        ck_assert_msg(got[0] == got[1], "%s:%s: %" PRId64 ", not %" PRId64, table, bound, got[0],
                      got[1]);
    }
}

/* Tracks and chunks are left out by their first start and last end: conditions at these times exactly. */
static void check_edge(const char *column, int64_t value)
{
    static const char *const op[] = {"=", "<", "<=", ">", ">="};
    char sql[200];
    for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
        snprintf(sql, sizeof sql, "SELECT count(*) FROM events WHERE %s %s %" PRId64, column, op[i],
                 value);
        const int64_t bound = number_of(sql);
        snprintf(sql, sizeof sql, "SELECT count(*) FROM events WHERE +%s %s %" PRId64, column,
                 op[i], value);
        ck_assert_int_eq(bound, number_of(sql));
    }
}

static void check_edges(void)
{
    for (size_t i = 0; i < TRACKS; i++) {
        int64_t last = made[i].p[0].start_ns;
        for (size_t k = 0; k < made[i].n; k++) {
            const int64_t end = made[i].p[k].start_ns + made[i].p[k].dur_ns;
            last = end > last ? end : last;
        }
        check_edge("start_ns", made[i].p[0].start_ns);
        check_edge("start_ns", made[i].p[made[i].n - 1].start_ns);
        check_edge("end_ns", last);
        check_edge("end_ns", made[i].p[0].start_ns);
    }
}

static void check_tables(struct ms_buf *b)
{
    static const char *const calls[] = {"id",         "process", "rank",    "tid",
                                        "comm_group", "seq",     "start_ns"},
                             *const joins[] = {"comm_group", "seq",   "step",   "ranks",
                                               "missing",    "bytes", "agrees", "skew_ns"},
                             *const spans[] = {"timeline", "process", "rank",
                                               "tid",      "step",    "start_ns"},
                             *const events[] = {"track", "rank", "start_ns", "end_ns"};
    static const char *const all[] = {"SELECT * FROM comm_ops",
                                      "SELECT * FROM joins",
                                      "SELECT * FROM replay_spans",
                                      "SELECT * FROM processes",
                                      "SELECT * FROM tracks",
                                      "SELECT * FROM levels",
                                      "SELECT * FROM chunks",
                                      "SELECT * FROM names",
                                      "SELECT * FROM strings",
                                      "SELECT * FROM ranks",
                                      "SELECT * FROM runs",
                                      "SELECT * FROM problems",
                                      "SELECT * FROM events WHERE track < 4"};
    check_bounds("comm_ops", "id", calls, 7, 25);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        put_rows(b, all[i]);
    check_bounds("comm_ops", "id", calls, 7, 25); /* now the index of blobs is complete */
    check_bounds("joins", "bytes", joins, 8, 25);
    check_bounds("replay_spans", "start_ns", spans, 6, 25);
    check_bounds("events", "dur_ns", events, 4, 8);
    check_edges();
}

static void put_levels(struct ms_buf *b, size_t track)
{
    const int64_t first = made[track].n != 0 ? made[track].p[0].start_ns : 0;
    for (int64_t res = 1; res < (int64_t)1 << 34; res *= 3) {
        mstx_events view = {0}, picture = {0};
        struct ms_buf text = {.max = 1 << 24};
        ck_ok(mstx_tl_view(tl, track, INT64_MIN, INT64_MAX, res, &view, &err), err);
        ck_ok(mstx_tl_picture(tl, track, first + 3 * res, first + 999 * res, res, &picture, &err),
              err);
        for (size_t i = 0; i < view.n + picture.n; i++) {
            const struct mstx_event *e = i < view.n ? &view.p[i] : &picture.p[i - view.n];
            ms_buf_printf(&text, "%" PRId64 "+%" PRId64 " %" PRIu64 " %" PRIu64, e->start_ns,
                          e->dur_ns, e->arg, e->size);
            ms_buf_printf(&text, " %u %u %u %u %u;", e->name, e->count, e->depth, e->kind,
                          e->flags);
        }
        ms_buf_printf(b, " %zu %zu %08x", view.n, picture.n, ms_crc32(0, text.p, text.n));
        ms_buf_free(&text);
        ms_vec_free(&view);
        ms_vec_free(&picture);
    }
    ms_buf_putc(b, '\n');
}

static void check_run(struct ms_buf *b)
{
    ck_ok(mstx_tl_open(&tl, path, &err), err);
    ck_ok(mstx_tl_add_events(tl, &err), err);
    ck_assert_uint_eq(mstx_tl_track_count(tl), TRACKS);
    for (size_t i = 0; i < TRACKS; i++) {
        ck_assert_uint_eq(mstx_tl_track(tl, i)->events, made[i].n);
        for (int k = 0; k < 20; k++) {
            check_view(i);
            check_steps(i, NULL);
        }
        for (int k = 0; k < 4; k++)
            check_cursor(i);
        check_names(i);
        put_levels(b, i);
    }
    check_tables(b);
    mstx_tl_close(tl);
}

START_TEST(drawn_runs)
{
    struct ms_buf b = {.max = 1 << 20};
    const size_t live = ms_mem_live();
    for (unsigned seed = 0; seed < RUNS; seed++) {
        scratch_dir(dir);
        snprintf(path, sizeof path, "%s/run.db", dir);
        state = seed;
        ms_buf_printf(&b, "run %u\n", seed);
        draw_run();
        check_run(&b);
        scratch_remove(dir);
    }
    for (size_t i = 0; i < TRACKS; i++)
        ms_vec_free(&made[i]);
    recorded_check(&b, "runs");
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

RECORDED_MAIN("run_drawn", drawn_runs)
