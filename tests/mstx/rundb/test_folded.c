/* SPDX-License-Identifier: MIT
 *
 * Folding: what was folded exactly reads the same, within a bound no time is further off than that and the
 * order stays, what repeats takes no room, numbers of any size are coded, and damage is told.
 */
#include "mstx/rundb/fold_fit.h"
#include "mstx/rundb/fold_read.h"
#include "mstx/rundb/fold_write.h"
#include "mstx/rundb/run_query.h"
#include "mstx/rundb/run_schema.h"
#include "mstx/rundb/run_write.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"

static char dir[64], plain[96], folded[96];
static uint64_t seed;
static struct ms_err err;

static uint64_t rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed * 0x2545F4914F6CDD1Du >> 16;
}

static void set_up(void)
{
    seed = 0x9E3779B97F4A7C15u;
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(plain, sizeof plain, "%s/plain.db", dir);
    snprintf(folded, sizeof folded, "%s/folded.db", dir);
}

static void tear_down(void)
{
    scratch_remove(dir);
}

/* ---- runs --------------------------------------------------------------------------- */

/* Kinds of tracks. */
enum { STEPS, NESTED, MARKS, COUNTERS, OVERLAPS, MANY_OPEN, ODD, TRACKS };

static void put_event(struct mstx_writer *w, int64_t start, int64_t dur, const char *name, int kind,
                      uint64_t arg)
{
    struct mstx_event *e = mstx__writer_slot(w);
    *e = (struct mstx_event){.start_ns = start,
                             .dur_ns = dur,
                             .name = mstx__writer_text(w, ms_str_of(name)),
                             .kind = (uint8_t)kind,
                             .count = 1,
                             .arg = arg,
                             .id = kind == MSTX_EV_RANGE ? rnd() % 3 : 0};
    mstx__writer_event(w);
}

/* One period of a track; returns the time of the next. */
static int64_t put_period(struct mstx_writer *w, int track, int64_t t, int number)
{
    char name[32];
    const int64_t noise = (int64_t)(rnd() % 1000);
    switch (track) {
    case STEPS:
        snprintf(name, sizeof name, "step %d", number);
        put_event(w, t, 100000 + noise, name, MSTX_EV_RANGE, 0);
        return t + 100000 + noise;
    case NESTED:
        put_event(w, t, 90000, "outer", MSTX_EV_PUSHPOP, 0);
        for (int i = 0; i < 3; i++)
            put_event(w, t + 1000 + 20000 * i + noise, 5000, i == 1 ? "b" : "a", MSTX_EV_PUSHPOP,
                      0);
        return t + 100000 + noise;
    case MARKS:
        put_event(w, t, 0, number % 2 != 0 ? "odd" : "even", MSTX_EV_MARK, 0);
        return t + 50000 + noise;
    case COUNTERS:
        put_event(w, t, 0, "memory", MSTX_EV_COUNTER, (uint64_t)number * 4096);
        return t + 10000;
    case OVERLAPS:
        put_event(w, t, 300000 + 7 * noise, "sent", MSTX_EV_RANGE, 0);
        return t + 40000 + noise;
    case MANY_OPEN:
        put_event(w, t, 100000000, "open", MSTX_EV_RANGE, 0);
        return t + 100 + noise;
    default: /* nothing repeats */
        snprintf(name, sizeof name, "n%u", (unsigned)(rnd() % 50));
        put_event(w, t, (int64_t)(rnd() >> (16 + rnd() % 40)), name, MSTX_EV_RANGE, rnd());
        return t + (int64_t)(rnd() % 3 == 0 ? 0 : rnd() >> (20 + rnd() % 30));
    }
}

/* A run of ranks that do the same. */
static void make_run(int ranks, int periods)
{
    struct mstx_writer *w;
    ck_ok(mstx__writer_new(&w, plain, &err), err);
    for (int r = 0; r < ranks; r++) {
        const struct mstx_process_row p = {.rank = r,
                                           .pid = 100u + (unsigned)r,
                                           .host = MS_STR("h"),
                                           .name = MS_STR("p"),
                                           .dir = MS_STR("d"),
                                           .tool = MS_STR("t"),
                                           .state = MS_STR("finished")};
        const uint32_t id = mstx__writer_process_id(w);
        mstx__writer_process(w, id, &p);
        for (int k = 0; k < TRACKS; k++) {
            const struct mstx_track_row row = {.process = id,
                                               .kind = k == COUNTERS ? MSTX_TRACK_COUNTER
                                                                     : MSTX_TRACK_THREAD,
                                               .tid = (uint32_t)k,
                                               .domain = MS_STR("default"),
                                               .name = MS_STR("main"),
                                               .unit = MS_STR("")};
            int64_t t = 1700000000000000000 + 13 * r;
            mstx__writer_track_begin(w, &row);
            for (int i = 0; i < periods; i++)
                t = put_period(w, k, t, i);
            mstx__writer_track_end(w);
        }
    }
    ck_ok(mstx__writer_commit(w, &err), err);
}

static int64_t size_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    fclose(f);
    return n;
}

static void fold(int64_t bound)
{
    unlink(folded);
    ck_ok(mstx__fold_database(plain, folded, bound, &err), err);
}

static bool is_near(int64_t a, int64_t b, int64_t bound)
{
    return a - b <= bound && b - a <= bound;
}

static void check_event(const struct mstx_event *a, const struct mstx_event *b, int64_t bound)
{
    ck_assert(is_near(a->start_ns, b->start_ns, bound));
    ck_assert(is_near(a->start_ns + a->dur_ns, b->start_ns + b->dur_ns, bound));
    ck_assert_uint_eq(a->id, b->id);
    ck_assert_uint_eq(a->arg, b->arg);
    ck_assert_uint_eq(a->size, b->size);
    ck_assert_uint_eq(a->name, b->name);
    ck_assert_uint_eq(a->count, b->count);
    ck_assert_uint_eq(a->depth, b->depth);
    ck_assert_uint_eq(a->kind, b->kind);
    ck_assert_uint_eq(a->flags, b->flags);
}

/* Both databases have the same events, whose times differ at most by the bound. */
static void check_same(int64_t bound)
{
    struct mstx_tl *a, *b;
    ck_ok(mstx_tl_open(&a, plain, &err), err);
    ck_ok(mstx_tl_open(&b, folded, &err), err);
    ck_assert_uint_eq(mstx_tl_track_count(a), mstx_tl_track_count(b));
    for (size_t t = 0; t < mstx_tl_track_count(a); t++) {
        struct mstx_cursor *ca, *cb;
        const struct mstx_event *ea, *eb;
        int64_t before = INT64_MIN;
        ck_ok(mstx__cursor_new(&ca, a, t, &err), err);
        ck_ok(mstx__cursor_new(&cb, b, t, &err), err);
        for (;;) {
            ck_ok(mstx__cursor_next(ca, &ea, &err), err);
            ck_ok(mstx__cursor_next(cb, &eb, &err), err);
            ck_assert((ea == NULL) == (eb == NULL));
            if (ea == NULL)
                break;
            check_event(ea, eb, bound);
            ck_assert_int_le(before, eb->start_ns);
            before = eb->start_ns;
        }
        mstx__cursor_free(ca);
        mstx__cursor_free(cb);
    }
    mstx_tl_close(a);
    mstx_tl_close(b);
}

START_TEST(exact_folding_loses_nothing)
{
    static const int periods[] = {1, 3, 700, 5000};
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        unlink(plain);
        make_run(2, periods[i]);
        fold(0);
        check_same(0);
    }
}
END_TEST

START_TEST(no_time_is_further_off_than_the_bound)
{
    static const int64_t bounds[] = {1, 100, 1000000};
    make_run(2, 3000);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        fold(bounds[i]);
        check_same(bounds[i]);
    }
}
END_TEST

/* Pictures and searches answer alike, though most levels are not stored. */
START_TEST(pictures_and_searches_are_alike)
{
    struct mstx_tl *tl[2];
    mstx_events ev[2] = {{0}, {0}};
    make_run(1, 5000);
    fold(0);
    ck_ok(mstx_tl_open(&tl[0], plain, &err), err);
    ck_ok(mstx_tl_open(&tl[1], folded, &err), err);
    for (size_t t = 0; t < TRACKS; t++) {
        const struct mstx_track *row = mstx_tl_track(tl[0], t);
        const int64_t length = row->end_ns - row->start_ns;
        for (int zoom = 0; zoom < 12; zoom += 3) {
            uint64_t count[2] = {0};
            for (int k = 0; k < 2; k++) {
                ck_ok(mstx_tl_picture(tl[k], t, row->start_ns, row->start_ns + (length >> zoom),
                                      1 + (length >> zoom) / 500, &ev[k], &err),
                      err);
                for (size_t i = 0; i < ev[k].n; i++)
                    count[k] += ev[k].p[i].count;
            }
            ck_assert_msg(zoom != 0 || count[0] == count[1], "track %zu", t);
            ck_assert(count[0] != 0 && count[1] != 0);
        }
        for (int k = 0; k < 30; k++) {
            struct mstx_event found[2] = {{0}};
            bool is[2];
            const int64_t at = row->start_ns + (int64_t)(rnd() % (uint64_t)(length + 1));
            for (int d = 0; d < 2; d++) {
                struct mstx_names *names;
                ck_ok(mstx_tl_find(tl[d], "3", &names, &err), err);
                ck_ok(mstx_tl_next(tl[d], t, at, names, &found[d], &is[d], &err), err);
                mstx_names_free(names);
            }
            ck_assert(is[0] == is[1]);
            if (is[0])
                check_event(&found[0], &found[1], 0);
        }
    }
    for (int k = 0; k < 2; k++) {
        mstx_tl_close(tl[k]);
        ms_vec_free(&ev[k]);
    }
}
END_TEST

/* The rows of structure do not grow with ranks and steps. */
START_TEST(what_repeats_is_stored_once)
{
    int64_t parts[3];
    static const int shape[3][2] = {{8, 1000}, {32, 1000}, {8, 3000}};
    for (int i = 0; i < 3; i++) {
        struct mstx_writer *w;
        struct mstx_tl *tl;
        struct ms_stmt *st;
        bool more;
        unlink(plain);
        ck_ok(mstx__writer_new(&w, plain, &err), err);
        for (int r = 0; r < shape[i][0]; r++) {
            const struct mstx_process_row p = {.rank = r,
                                               .host = MS_STR("h"),
                                               .name = MS_STR("p"),
                                               .dir = MS_STR("d"),
                                               .tool = MS_STR("t"),
                                               .state = MS_STR("s")};
            const uint32_t id = mstx__writer_process_id(w);
            const struct mstx_track_row row = {.process = id,
                                               .domain = MS_STR("default"),
                                               .name = MS_STR("m"),
                                               .unit = MS_STR("")};
            int64_t t = 0;
            mstx__writer_process(w, id, &p);
            mstx__writer_track_begin(w, &row);
            for (int k = 0; k < shape[i][1]; k++)
                t = put_period(w, NESTED, t, k);
            mstx__writer_track_end(w);
        }
        ck_ok(mstx__writer_commit(w, &err), err);
        fold(0);
        ck_assert_int_lt(3 * size_of(folded), size_of(plain));
        ck_ok(mstx_tl_open(&tl, folded, &err), err);
        ck_ok(ms_store_prepare(mstx_tl_store(tl), &st, "SELECT count(*) FROM fold_parts", &err),
              err);
        ck_ok(ms_stmt_step(st, &more, &err), err);
        parts[i] = ms_stmt_get_i64(st, 0);
        ms_stmt_free(st);
        mstx_tl_close(tl);
    }
    ck_assert_int_eq(parts[0], parts[1]);
    ck_assert_int_eq(parts[0], parts[2]);
}
END_TEST

/* ---- numbers ------------------------------------------------------------------------ */

START_TEST(numbers_of_any_size_are_coded)
{
    static int64_t in[MSTX_NUMBERS_MAX], difference[MSTX_NUMBERS_MAX];
    static uint8_t context[MSTX_NUMBERS_MAX];
    static uint16_t class[MSTX_NUMBERS_MAX];
    static const uint32_t counts[] = {1, 2, 3, 100, MSTX_NUMBERS_MAX};
    for (unsigned form = 0; form < 4; form++) {
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            const uint32_t n = counts[k];
            struct mstx_fits fits = {0};
            struct mstx_fitted *x;
            struct ms_buf code = {.max = 1 << 20};
            for (uint32_t i = 0; i < n; i++) {
                in[i] = form == 0   ? 7
                        : form == 1 ? (int64_t)(rnd() % 100) + 1000 * (i % 3)
                        : form == 2 ? (int64_t)(rnd() << 20 >> rnd() % 64)
                                    : (i % 2 != 0 ? INT64_MAX : INT64_MIN);
                class[i] = (uint16_t)(i % 3);
            }
            const struct mstx_numbers v = {n, 3, class, in, NULL};
            ck_ok(mstx__fit(&fits, 1, &v, &x, difference, context, &err), err);
            mstx__encode(&code, &x->model, difference, context, n);
            ck_ok(ms_buf_check(&code, &err), err);
            for (unsigned s = 0; s < x->model.contexts; s++)
                mstx__context_fill(&x->model.context[s]);
            struct mstx_bytes b = mstx_bytes_of(ms_buf_slice(&code));
            struct mstx_decoder d;
            mstx__decoder_begin(&d, &b);
            for (uint32_t i = 0; i < n; i++) {
                const struct mstx_class *c = &x->model.class[class[i]];
                const int64_t got =
                    (int64_t)((uint64_t)mstx__decode(&d, &x->model.context[c->context]) +
                              (uint64_t)c->centre);
                ck_assert_int_eq(got, in[i]);
            }
            ck_assert(mstx__decoder_ended(&d));
            ck_assert(form != 0 || n < 100 || code.n < 64);
            ms_buf_free(&code);
            mstx__fits_free(&fits);
        }
    }
}
END_TEST

/* ---- damage --------------------------------------------------------------------------- */

/* Reads all that is in a folded database; the first failure. */
static enum ms_rc read_all(struct ms_err *e)
{
    struct mstx_tl *tl;
    MS_TRY(mstx_tl_open(&tl, folded, e));
    enum ms_rc rc = MS_OK;
    for (size_t t = 0; t < mstx_tl_track_count(tl) && rc == MS_OK; t++) {
        mstx_events ev = {0};
        rc = mstx_tl_view(tl, t, INT64_MIN, INT64_MAX, 0, &ev, e);
        ms_vec_free(&ev);
    }
    mstx_tl_close(tl);
    return rc;
}

START_TEST(damage_is_told)
{
    static const char *const ways[] = {
        "UPDATE blobs SET data = substr(data, 1, length(data) - 1)",
        "UPDATE blobs SET data = substr(data, 1, 9)",
        "UPDATE blobs SET data = data || x'00'",
        "UPDATE blobs SET data = x'0201'",
        "DELETE FROM fold_parts WHERE id = 2",
        "UPDATE fold_parts SET data = x'05' || x'789c'",
        "UPDATE fold_parts SET data = (SELECT data FROM fold_parts WHERE id = 1)",
        "UPDATE fold_parts SET data = x'ffffffff7f' || data",
        "UPDATE fold_parts SET data = substr(data, 1, length(data) - 3)",
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct ms_store *s;
        unlink(plain);
        make_run(1, 50);
        fold(0);
        ck_ok(read_all(&err), err);
        ck_ok(ms_store_edit(&s, folded, &err), err);
        ck_ok(ms_store_exec(s, ways[i], &err), err);
        ms_store_close(s);
        struct ms_err e = {0};
        ck_assert_msg(read_all(&e) == MS_E_FORMAT, "%s: %s", ways[i], e.msg);
        ck_says(e, "import the capture again");
    }
}
END_TEST

START_TEST(memory_that_runs_out_is_told)
{
    make_run(1, 30);
    for (uint64_t n = 1;; n += 1 + n / 16) {
        struct ms_err e = {0};
        const size_t live = ms_mem_live();
        unlink(folded);
        ms_mem_fail_at(n);
        enum ms_rc rc = mstx__fold_database(plain, folded, 100, &e);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed) {
            ck_assert_int_eq(rc, MS_OK);
            break;
        }
        ck_assert_msg(rc == MS_OK || rc == MS_E_NOMEM, "allocation %llu: %s", (unsigned long long)n,
                      e.msg);
    }
}
END_TEST

TEST_MAIN_OF(set_up, tear_down, 120, "folded", exact_folding_loses_nothing,
             no_time_is_further_off_than_the_bound, pictures_and_searches_are_alike,
             what_repeats_is_stored_once, numbers_of_any_size_are_coded, damage_is_told,
             memory_that_runs_out_is_told)
