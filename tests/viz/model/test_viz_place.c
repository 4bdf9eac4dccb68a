/* SPDX-License-Identifier: MIT
 *
 * Links as text, and the window of time: what both viewers compute with.
 */
#include "probe/base/mem.h"
#include "tests/support/check.h"
#include "viz/model/place.h"
#include "viz/tui/time_state.h"

static struct ms_buf out, scratch;

static void begin(void)
{
    out = scratch = (struct ms_buf){.max = 1 << 16};
}

static void end(void)
{
    ms_buf_free(&out);
    ms_buf_free(&scratch);
}

static const char *again(const char *text)
{
    struct viz_place p;
    struct ms_err e = {0};
    ms_buf_clear(&out);
    ms_buf_clear(&scratch);
    ck_ok(viz_place_read(&p, ms_str_of(text), &scratch, &e), e);
    viz_place_write(&p, &out);
    return ms_buf_z(&out);
}

START_TEST(a_place_comes_back_as_it_was_written)
{
    static const char *const places[] = {
        "overview",
        "graph?step=0&rank=1&node=Functional.linear.3.forward",
        "timeline?from=1700000000000000123&to=1700000000000000456&track=14",
        "timeline?track=14&call=1700000000000000123",
        "table?step=2&golden=1&node=a%2Fb%20c&q=state%3AE",
        "cluster?rank=63",
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        ck_assert_str_eq(again(places[i]), places[i]);
}
END_TEST

START_TEST(texts_of_a_place_are_decoded_whatever_their_order)
{
    struct viz_place p;
    struct ms_err e = {0};
    ck_ok(viz_place_read(&p, MS_STR("graph?q=a+b&node=%E4%BD%A0%22&step=7"), &scratch, &e), e);
    ck_assert(ms_str_is(p.node, "\xe4\xbd\xa0\""));
    ck_assert(ms_str_is(p.query, "a b"));
    ck_assert_int_eq(p.step, 7);
    ck_assert_int_eq(p.rank, -1);
}
END_TEST

START_TEST(what_a_later_version_says_is_passed_over)
{
    ck_assert_str_eq(again("graph?colour=blue&step=1&x"), "graph?step=1");
}
END_TEST

START_TEST(places_that_make_no_sense_are_refused)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "begins with"},
               {"grph?step=1", "begins with"},
               {"graph?step=x", "must be a number"},
               {"graph?step=99999999999999999999", "must be a number"},
               {"graph?node=%4", "well-formed"},
               {"graph?node=%zz", "well-formed"},
               {"graph?node=a%00b", "well-formed"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct viz_place p;
        struct ms_err e = {0};
        enum ms_rc rc = viz_place_read(&p, ms_str_of(bad[i].text), &scratch, &e);
        ck_assert_msg(rc == MS_E_FORMAT, "%s was taken", bad[i].text);
        ck_says(e, bad[i].why);
    }
}
END_TEST

START_TEST(a_link_longer_than_the_limit_is_an_error)
{
    struct ms_buf small = {.max = 16};
    struct viz_place p;
    struct ms_err e = {0};
    ck_assert_int_eq(viz_place_read(&p, MS_STR("graph?node=a_name_longer_than_that"), &small, &e),
                     MS_E_LIMIT);
    ms_buf_free(&small);
}
END_TEST

/* ---- windows --------------------------------------------------------------------- */

START_TEST(the_whole_run_is_shown_with_room_on_both_sides)
{
    struct viz_window w = viz_window_all(1000000, 2000000);
    ck_assert_int_eq(w.from, 980000);
    ck_assert_int_eq(w.to, 2020000);
}
END_TEST

START_TEST(zooming_keeps_the_pointer_in_place)
{
    struct viz_window w = viz_window_all(0, 1000000000);
    viz_window_show(&w, 0, 1000000000);
    viz_window_zoom(&w, 0.1, 0.25);
    ck_assert_int_eq(viz_window_length(&w), 100000000);
    ck_assert_int_eq(w.from, 225000000); /* a quarter of the screen is 250 ms before and after */
}
END_TEST

START_TEST(no_zoom_and_no_pan_leaves_the_run_or_the_shortest_time)
{
    struct viz_window w = viz_window_all(0, 1000000);
    struct viz_window all = w;
    viz_window_zoom(&w, 1e12, 0.5);
    ck_assert_int_eq(w.from, all.from);
    ck_assert_int_eq(w.to, all.to);
    for (int i = 0; i < 100; i++)
        viz_window_zoom(&w, 0.01, 0.999);
    ck_assert_int_eq(viz_window_length(&w), VIZ_SHORTEST_NS);
    viz_window_pan(&w, 1e15);
    ck_assert_int_eq(w.to, all.to);
    viz_window_pan(&w, -1e15);
    ck_assert_int_eq(w.from, all.from);
}
END_TEST

START_TEST(an_empty_run_has_a_window)
{
    struct viz_window w = viz_window_all(5, 5);
    ck_assert_int_gt(viz_window_length(&w), 0);
    ck_assert(w.from <= 5 && 5 <= w.to);
}
END_TEST

START_TEST(a_ruler_ticks_in_round_numbers)
{
    static const struct {
        int64_t length, step;
    } cases[] = {{10, 1},
                 {1000, 100},
                 {12345, 2000},
                 {90000000, 10000000},
                 {INT64_C(30000000000), INT64_C(5000000000)},
                 {INT64_C(600000000000), INT64_C(60000000000)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct viz_window w = {0, cases[i].length, 0, cases[i].length};
        int64_t step = viz_ruler_step(&w, 10);
        ck_assert_msg(step == cases[i].step, "%lld ns: %lld", (long long)cases[i].length,
                      (long long)step);
    }
}
END_TEST

START_TEST(a_ruler_never_has_more_ticks_than_asked_for)
{
    for (int64_t length = 10; length > 0 && length < INT64_C(1) << 60;
         length = length * 7 / 5 + 1) {
        struct viz_window w = {0, length, 0, length};
        int64_t step = viz_ruler_step(&w, 8);
        ck_assert_int_gt(step, 0);
        ck_assert_int_le(length / step, 8 + 1);
    }
}
END_TEST

TEST_MAIN_AROUND(begin, end, "viz_place", a_place_comes_back_as_it_was_written,
                 texts_of_a_place_are_decoded_whatever_their_order,
                 what_a_later_version_says_is_passed_over, places_that_make_no_sense_are_refused,
                 a_link_longer_than_the_limit_is_an_error,
                 the_whole_run_is_shown_with_room_on_both_sides, zooming_keeps_the_pointer_in_place,
                 no_zoom_and_no_pan_leaves_the_run_or_the_shortest_time, an_empty_run_has_a_window,
                 a_ruler_ticks_in_round_numbers, a_ruler_never_has_more_ticks_than_asked_for)
