/* SPDX-License-Identifier: MIT
 *
 * Views against brute force: on every level and in every window nothing is lost,
 * nothing is invented and the answer stays small; steps, searches, reports.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/conclude/run_report.h"
#include "mstx/foreign/export.h"
#include "mstx/format/step_name.h"
#include "mstx/rundb/run_query.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"
#include "tests/support/make_capture.h"

static char dir[64], run[80];
static struct mstx_tl *tl;

static void begin(struct maker *m)
{
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    maker_begin(m, run, 0, 4242);
}

static void open_it(void)
{
    struct ms_err e = {0};
    ck_ok(mstx_run_open(&tl, run, NULL, &e), e);
}

static void end(void)
{
    mstx_tl_close(tl);
    scratch_remove(dir);
}

static void make_training(uint64_t records)
{
    struct maker m;
    begin(&m);
    maker_training(&m, 1, 4242, records);
    maker_end(&m);
    open_it();
}

static mstx_events view(int64_t t0, int64_t t1, int64_t res)
{
    mstx_events ev = {0};
    struct ms_err e = {0};
    ck_ok(mstx_tl_view(tl, 0, t0, t1, res, &ev, &e), e);
    return ev;
}

START_TEST(every_level_holds_every_event_once)
{
    make_training(100000);
    uint64_t all = mstx_tl_track(tl, 0)->events;
    for (int shift = 0; shift < 40; shift += 2) {
        mstx_events ev = view(INT64_MIN, INT64_MAX, (int64_t)1 << shift);
        uint64_t count = 0;
        for (size_t i = 0; i < ev.n; i++) {
            count += ev.p[i].count;
            ck_assert(i == 0 || ev.p[i - 1].start_ns <= ev.p[i].start_ns);
            /* what was joined is no longer than two slots */
            ck_assert(ev.p[i].count == 1 || ev.p[i].dur_ns <= (int64_t)2 << shift);
        }
        ck_assert_uint_eq(count, all);
        ms_vec_free(&ev);
    }
    end();
}
END_TEST

START_TEST(a_view_holds_what_touches_its_window)
{
    make_training(40000);
    mstx_events all = view(INT64_MIN, INT64_MAX, 0);
    int64_t start, stop;
    mstx_tl_span(tl, &start, &stop);
    for (int i = 0; i < 50; i++) {
        int64_t t0 = start + (stop - start) * i / 50, t1 = t0 + (stop - start) / (1 + i * i);
        mstx_events ev = view(t0, t1, 0);
        size_t want = 0;
        for (size_t k = 0; k < all.n; k++)
            want += all.p[k].start_ns <= t1 && all.p[k].start_ns + all.p[k].dur_ns >= t0;
        ck_assert_uint_eq(ev.n, want);
        ms_vec_free(&ev);
    }
    ms_vec_free(&all);
    end();
}
END_TEST

START_TEST(the_answer_stays_small_at_any_zoom)
{
    make_training(400000);
    int64_t start, stop;
    mstx_tl_span(tl, &start, &stop);
    for (int zoom = 0; zoom < 30; zoom++) {
        int64_t width = (stop - start) >> zoom, t0 = start + (stop - start) / 3;
        mstx_events ev = view(t0, t0 + width, width / 1000);
        ck_assert_uint_le(ev.n, 20000);
        ms_vec_free(&ev);
    }
    end();
}
END_TEST

/* Whatever the zoom: a row has no two small events in one slot, and none is lost. */
START_TEST(pixels_bound_a_picture)
{
    make_training(400000);
    int64_t start, stop;
    mstx_tl_span(tl, &start, &stop);
    const struct mstx_track *t = mstx_tl_track(tl, 0);
    mstx_events ev = {0};
    for (int zoom = 0; zoom < 24; zoom++) {
        struct ms_err e = {0};
        int64_t width = ((stop - start) >> zoom) + 1, res = width / 1000;
        ck_ok(mstx_tl_picture(tl, 0, start, start + width, res, &ev, &e), e);
        ck_assert_uint_le(ev.n, (uint64_t)t->rows * 2 * 2 * 1002);
        mstx_events all = view(start, start + width, 0);
        uint64_t drawn = 0;
        for (size_t i = 0; i < ev.n; i++)
            drawn += ev.p[i].count;
        ck_assert_uint_ge(drawn, all.n);
        ms_vec_free(&all);
    }
    ms_vec_free(&ev);
    end();
}
END_TEST

START_TEST(joined_events_tell_their_longest_and_their_sum)
{
    struct maker m;
    begin(&m);
    uint32_t a = maker_text(&m, "short"), b = maker_text(&m, "long");
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t t = 1000 * i, dur = i == 1234 ? 90 : 10;
        maker_begin_range(&m, t, 1, i == 1234 ? b : a, 0);
        maker_end_range(&m, t + dur, 1, i == 1234 ? b : a, 0, t, 0);
    }
    maker_end_ring(&m);
    maker_end(&m);
    open_it();
    mstx_events ev = view(INT64_MIN, INT64_MAX, INT64_MAX);
    uint64_t count = 0, sum = 0, longest = 0;
    for (size_t i = 0; i < ev.n; i++) {
        ck_assert_uint_gt(ev.p[i].count, 1);
        count += ev.p[i].count;
        sum += ev.p[i].size;
        if (ev.p[i].arg > longest) {
            longest = ev.p[i].arg;
            ck_assert(ms_str_is(mstx_tl_text(tl, ev.p[i].name), longest == 90 ? "long" : "short"));
        }
    }
    ck_assert_uint_eq(count, 4000);
    ck_assert_uint_eq(sum, 3999 * 10 + 90);
    ck_assert_uint_eq(longest, 90);
    ms_vec_free(&ev);
    end();
}
END_TEST

START_TEST(next_and_previous_walk_over_every_event)
{
    struct ms_err e = {0};
    struct mstx_event ev;
    bool found;
    make_training(20000);
    mstx_events all = view(INT64_MIN, INT64_MAX, 0);
    int64_t t = INT64_MIN;
    size_t n = 0;
    for (;; n++, t = ev.start_ns) {
        ck_ok(mstx_tl_next(tl, 0, t, NULL, &ev, &found, &e), e);
        if (!found)
            break;
        ck_assert_int_eq(ev.start_ns, all.p[n].start_ns);
    }
    ck_assert_uint_eq(n, all.n);
    for (t = INT64_MAX; n-- > 0; t = ev.start_ns) {
        ck_ok(mstx_tl_prev(tl, 0, t, NULL, &ev, &found, &e), e);
        ck_assert(found);
        ck_assert_int_eq(ev.start_ns, all.p[n].start_ns);
    }
    ms_vec_free(&all);
    end();
}
END_TEST

START_TEST(a_search_finds_names_whatever_their_case)
{
    struct ms_err e = {0};
    struct mstx_names *names;
    struct mstx_event ev;
    bool found;
    make_training(20000);
    ck_ok(mstx_tl_find(tl, "ALLre", &names, &e), e);
    ck_assert_uint_eq(mstx_names_count(names), 1);
    int64_t t = INT64_MIN;
    size_t n = 0;
    for (;; n++, t = ev.start_ns) {
        ck_ok(mstx_tl_next(tl, 0, t, names, &ev, &found, &e), e);
        if (!found)
            break;
        ck_assert(ms_str_is(mstx_tl_text(tl, ev.name), "allreduce"));
    }
    mstx_events all = view(INT64_MIN, INT64_MAX, 0);
    size_t want = 0;
    for (size_t i = 0; i < all.n; i++)
        want += ms_str_is(mstx_tl_text(tl, all.p[i].name), "allreduce");
    ck_assert_uint_eq(n, want);
    ms_vec_free(&all);
    mstx_names_free(names);
    ck_ok(mstx_tl_find(tl, "nothing like it", &names, &e), e);
    ck_assert_uint_eq(mstx_names_count(names), 0);
    mstx_names_free(names);
    end();
}
END_TEST

/* ---- reports ---------------------------------------------------------------- */

START_TEST(names_of_steps_are_known_with_their_numbers)
{
    static const struct {
        const char *name;
        bool is;
        int64_t number;
    } cases[] = {{"ProfilerStep#17", true, 17},
                 {"step 3", true, 3},
                 {"Step_0004", true, 4},
                 {"step", true, -1},
                 {"iteration 9", true, 9},
                 {"iter: 12", true, 12},
                 {"train_step#5", true, 5},
                 {"stepping", false, -1},
                 {"step 3 of 4", false, -1},
                 {"steps", false, -1},
                 {"", false, -1},
                 {"iterator", false, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t number;
        bool is = mstx_is_step_name(ms_str_of(cases[i].name), &number);
        ck_assert_msg(is == cases[i].is, "%s", cases[i].name);
        ck_assert_int_eq(number, cases[i].number);
    }
}
END_TEST

/* stem ending in a space or # gets a number. */
static void make_steps(bool marks, const char *stem, int slow)
{
    struct maker m;
    begin(&m);
    uint32_t work = maker_text(&m, "work");
    uint32_t id[21];
    for (int i = 0; i <= 20; i++) {
        char name[32];
        if (strchr(" #", stem[strlen(stem) - 1]) != NULL)
            snprintf(name, sizeof name, "%s%d", stem, i);
        else
            snprintf(name, sizeof name, "%s", stem);
        id[i] = maker_text(&m, name);
    }
    maker_ring(&m, 1, 1, 4242);
    uint64_t t = 0;
    for (int i = 0; i < 20; i++) {
        uint64_t dur = i == slow ? 5000000 : 1000000;
        if (marks)
            maker_mark(&m, t, id[i], 0);
        else
            maker_begin_range(&m, t, 99, id[i], 0);
        for (uint64_t k = 0; k < 4; k++) {
            maker_begin_range(&m, t + 100000 * (k + 1), 1, work, 0);
            maker_end_range(&m, t + 100000 * (k + 1) + 1000 * (k + 1), 1, work, 0,
                            t + 100000 * (k + 1), 0);
        }
        if (!marks)
            maker_end_range(&m, t + dur, 99, id[i], 0, t, 0);
        t += dur + (marks ? 0 : 1000);
    }
    if (marks)
        maker_mark(&m, t, id[20], 0);
    maker_end_ring(&m);
    maker_end(&m);
    open_it();
}

static void check_steps(enum mstx_step_source source, bool numbered)
{
    struct ms_err e = {0};
    struct mstx_report r;
    ck_ok(mstx_report_read(tl, true, &r, &e), e);
    ck_assert_int_eq(r.steps.source, source);
    ck_assert_uint_ge(r.steps.list.n, 19);
    ck_assert_int_eq(r.step_median_ns, source == MSTX_STEPS_PERIOD ? 1001000 : 1000000);
    ck_assert_uint_eq(r.findings.n, 1);
    ck_assert_str_eq(r.findings.p[0].kind, "slow_step");
    if (numbered)
        ck_assert_int_eq(r.findings.p[0].first_step, 7);
    mstx_report_free(&r);
}

START_TEST(steps_are_found_by_ranges_marks_and_period)
{
    make_steps(false, "ProfilerStep#", 7);
    check_steps(MSTX_STEPS_RANGES, true);
    end();
    make_steps(true, "step ", 7);
    check_steps(MSTX_STEPS_MARKS, true);
    end();
    make_steps(false, "epoch", 7);
    check_steps(MSTX_STEPS_PERIOD, false);
    end();
}
END_TEST

/* Eight marks a millisecond apart, but that nearly all of the run lies between two of them. */
START_TEST(what_returns_at_both_ends_of_a_run_is_no_step)
{
    struct maker m;
    struct ms_err e = {0};
    struct mstx_report r;
    begin(&m);
    uint32_t table = maker_text(&m, "print a table");
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0; i < 8; i++)
        maker_mark(&m, i * 1000000 + (i < 4 ? 0 : 200000000), table, 0);
    maker_end_ring(&m);
    maker_end(&m);
    open_it();
    ck_ok(mstx_report_read(tl, true, &r, &e), e);
    ck_assert_uint_eq(r.steps.list.n, 0);
    ck_assert_uint_eq(r.findings.n, 0);
    mstx_report_free(&r);
    end();
}
END_TEST

START_TEST(names_are_measured_exactly)
{
    struct ms_err e = {0};
    mstx_name_rows rows = {0};
    make_steps(true, "step ", -1);
    ck_ok(mstx_names_measure(tl, &rows, &e), e);
    const struct mstx_name_row *work = &rows.p[0];
    ck_assert(ms_str_is(work->name, "work"));
    ck_assert_uint_eq(work->events, 80);
    ck_assert_int_eq(work->total_ns, 20 * (1000 + 2000 + 3000 + 4000));
    ck_assert_int_eq(work->mean_ns, 2500);
    ck_assert_int_eq(work->p50_ns, 2000);
    ck_assert_int_eq(work->p99_ns, 4000);
    ck_assert_int_eq(work->max_ns, 4000);
    ck_assert_double_eq_tol(work->share, 200000.0 / 20000000.0, 1e-12);
    ms_vec_free(&rows);
    end();
}
END_TEST

static int by_value(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return a < b ? -1 : a > b;
}

START_TEST(percentiles_of_many_stay_within_half_a_percent)
{
    struct ms_err e = {0};
    mstx_name_rows rows = {0};
    make_training(200000);
    ck_ok(mstx_names_measure(tl, &rows, &e), e);
    mstx_events all = view(INT64_MIN, INT64_MAX, 0);
    int64_t *dur = ms_calloc(all.n, sizeof *dur);
    for (size_t r = 0; r < rows.n; r++) {
        size_t n = 0;
        for (size_t i = 0; i < all.n; i++) {
            if (ms_str_eq(mstx_tl_text(tl, all.p[i].name), rows.p[r].name))
                dur[n++] = all.p[i].dur_ns;
        }
        qsort(dur, n, sizeof *dur, by_value);
        ck_assert_uint_eq(rows.p[r].events, n);
        double p50 = (double)dur[(n + 1) / 2 - 1], p99 = (double)dur[(n * 99 + 99) / 100 - 1];
        ck_assert_double_eq_tol((double)rows.p[r].p50_ns, p50, 0.005 * p50 + 1);
        ck_assert_double_eq_tol((double)rows.p[r].p99_ns, p99, 0.005 * p99 + 1);
    }
    ms_free(dur);
    ms_vec_free(&all);
    ms_vec_free(&rows);
    end();
}
END_TEST

/* ---- nesting ---------------------------------------------------------------- */

static void count_end(void *ctx, unsigned lane, int64_t end_ns)
{
    (void)lane;
    (void)end_ns;
    ++*(int *)ctx;
}

START_TEST(slices_that_overlap_go_to_another_lane)
{
    static const int64_t slice[][3] = {{0, 100, 0}, {10, 50, 0},  {20, 60, 1},
                                       {30, 70, 2}, {50, 100, 0}, {65, 120, 1}};
    struct mstx_nest n = {0};
    int ended = 0;
    for (size_t i = 0; i < sizeof slice / sizeof *slice; i++) {
        unsigned lane;
        int64_t stop = slice[i][1];
        ck_assert(mstx__nest(&n, slice[i][0], &stop, count_end, &ended, &lane));
        ck_assert_uint_eq(lane, (unsigned)slice[i][2]);
        ck_assert_int_eq(stop, slice[i][1]);
    }
    mstx__nest_finish(&n, count_end, &ended);
    ck_assert_int_eq(ended, 6);
}
END_TEST

TEST_MAIN("run_query", every_level_holds_every_event_once, a_view_holds_what_touches_its_window,
          the_answer_stays_small_at_any_zoom, pixels_bound_a_picture,
          joined_events_tell_their_longest_and_their_sum, next_and_previous_walk_over_every_event,
          a_search_finds_names_whatever_their_case, names_of_steps_are_known_with_their_numbers,
          steps_are_found_by_ranges_marks_and_period, what_returns_at_both_ends_of_a_run_is_no_step,
          names_are_measured_exactly, percentiles_of_many_stay_within_half_a_percent,
          slices_that_overlap_go_to_another_lane)
