/* SPDX-License-Identifier: MIT
 *
 * Calibration points of segments become a clock: which points count, which of two near ones, and
 * what time it is on, before and behind the line between them.
 */
#include "mstx/read/host_clocks.h"
#include "tests/support/check.h"

static struct ms_err err;
static struct mstx_clocks clocks;

static const int64_t MS = 1000000, SECOND = 1000000000, REAL = INT64_C(1700000000) * 1000000000;
/* Greatest times that are believed: 36 years after the start of a machine, and the year 2100. */
static const int64_t YEARS_36 = INT64_C(1) << 60, YEAR_2100 = INT64_C(4102444800) * 1000000000;

static struct mstx_host_clock *new_clock(uint32_t kind, uint64_t hz)
{
    const struct mstx_seg head = {.clock = kind, .tick_hz = hz, .boot_id = {7}};
    mstx__clocks_free(&clocks);
    clocks = (struct mstx_clocks){0};
    struct mstx_host_clock *c = mstx__clock_of(&clocks, &head);
    ck_assert_ptr_nonnull(c);
    return c;
}

static void tear_down(void)
{
    mstx__clocks_free(&clocks);
    clocks = (struct mstx_clocks){0};
}

/* Adds records of a ring of the clock that new_clock made. */
static struct mstx_host_clock *add(uint32_t ring, const struct mstx_rec *rec, size_t n)
{
    const struct mstx_segment s = {
        .head = {.clock = MSTX_CLOCK_TSC, .ring = ring, .boot_id = {7}}, .rec = rec, .n = n};
    ck_ok(mstx__clock_add(&clocks, &s, &err), err);
    ck_assert_uint_eq(clocks.host.n, 1);
    return &clocks.host.p[0];
}

static struct mstx_rec calib(uint64_t ticks, int64_t mono, int64_t real, uint32_t width)
{
    return (struct mstx_rec){.type = MSTX_REC_CALIB,
                             .ticks = ticks,
                             .id = (uint64_t)mono,
                             .arg = (uint64_t)real,
                             .name = width};
}

static struct mstx_rec measured(int64_t at, int64_t offset, uint32_t unsure)
{
    return (struct mstx_rec){
        .type = MSTX_REC_SYNC, .arg = (uint64_t)at, .id = (uint64_t)offset, .name = unsure};
}

/* ---- hosts ------------------------------------------------------------------------- */

START_TEST(a_clock_belongs_to_one_start_of_one_machine)
{
    struct mstx_seg head = {.clock = MSTX_CLOCK_TSC, .tick_hz = 2000000000, .boot_id = {7}};
    const struct mstx_host_clock *c = new_clock(MSTX_CLOCK_TSC, 2000000000);
    ck_assert(c->slope == 0.5);
    ck_assert_ptr_eq(mstx__clock_of(&clocks, &head), c);
    head.boot_id[15] = 1;
    ck_assert_ptr_ne(mstx__clock_of(&clocks, &head), &clocks.host.p[0]);
    head.boot_id[15] = 0;
    head.clock = MSTX_CLOCK_MONOTONIC;
    ck_assert(mstx__clock_of(&clocks, &head)->slope == 1);
    ck_assert_uint_eq(clocks.host.n, 3);
    ck_assert(new_clock(MSTX_CLOCK_TSC, 0)->slope == 0);
}
END_TEST

/* ---- collecting ---------------------------------------------------------------------- */

static const struct {
    uint64_t ticks;
    int64_t mono, real;
    unsigned taken;
} points[] = {
    {1, 1, 1, 1},
    {0, 1, 1, 0},
    {1, 0, 1, 0},
    {1, -1, 1, 0},
    {1, 1, 0, 0},
    {1, 1, -1, 0},
    {UINT64_MAX, YEARS_36 - 1, YEAR_2100 - 1, 1},
    {1, YEARS_36, 1, 0},
    {1, 1, YEAR_2100, 0},
};

START_TEST(points_that_no_clock_can_have_are_left_out)
{
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        const struct mstx_rec r = calib(points[i].ticks, points[i].mono, points[i].real, 9);
        new_clock(MSTX_CLOCK_TSC, 0);
        const struct mstx_host_clock *c = add(0, &r, 1);
        ck_assert_msg(c->knot.n == points[i].taken, "point %zu", i);
        if (c->knot.n != 1)
            continue;
        ck_assert_uint_eq(c->knot.p[0].ticks, points[i].ticks);
        ck_assert_int_eq(c->knot.p[0].mono_ns, points[i].mono);
        ck_assert_int_eq(c->knot.p[0].real_ns, points[i].real);
        ck_assert_uint_eq(c->knot.p[0].width, 9);
    }
}
END_TEST

START_TEST(only_the_ring_of_the_process_has_points_in_records)
{
    const struct mstx_rec r[] = {calib(5, SECOND, REAL, 3),
                                 {.type = MSTX_REC_MARK, .ticks = 6, .id = 1, .arg = 1},
                                 measured(SECOND, 77, 5)};
    new_clock(MSTX_CLOCK_TSC, 0);
    const struct mstx_host_clock *c = add(1, r, 3);
    ck_assert_uint_eq(c->knot.n + c->apart.n, 0);
    add(0, r, 2);
    ck_assert_uint_eq(c->knot.n, 1);
    ck_assert_uint_eq(c->apart.n, 0);
    add(0, r, 3);
    ck_assert_uint_eq(c->knot.n, 2);
    ck_assert_uint_eq(c->apart.n, 1);
    ck_assert_int_eq(c->apart.p[0].at_ns, SECOND);
    ck_assert_int_eq(c->apart.p[0].offset_ns, 77);
    ck_assert_int_eq(c->apart.p[0].uncertainty_ns, 5);
    ck_assert_int_eq(c->apart.p[0].method, MSTX_APART_PINGS);
}
END_TEST

START_TEST(the_header_of_every_ring_has_two_points)
{
    const struct mstx_segment s = {
        .head = {
            .clock = MSTX_CLOCK_TSC,
            .ring = 3,
            .boot_id = {7},
            .first_calib = {.ticks = 10, .monotonic_ns = SECOND, .realtime_ns = REAL, .width = 4},
            .last_calib = {.ticks = 20,
                           .monotonic_ns = 2 * SECOND,
                           .realtime_ns = REAL + SECOND,
                           .width = 5}}};
    const struct mstx_host_clock *c = new_clock(MSTX_CLOCK_TSC, 0);
    ck_ok(mstx__clock_add(&clocks, &s, &err), err);
    ck_assert_uint_eq(c->knot.n, 2);
    ck_assert_uint_eq(c->knot.p[0].ticks, 10);
    ck_assert_uint_eq(c->knot.p[1].ticks, 20);
    ck_assert_uint_eq(c->knot.p[1].width, 5);
}
END_TEST

static const struct {
    int64_t at, offset;
    unsigned taken;
} offsets[] = {
    {1, 0, 1},
    {0, 0, 0},
    {-1, 0, 0},
    {YEARS_36, 1, 1},
    {YEARS_36 + 1, 1, 0},
    {1, YEARS_36, 1},
    {1, YEARS_36 + 1, 0},
    {1, -YEARS_36, 1},
    {1, -YEARS_36 - 1, 0},
};

START_TEST(offsets_that_no_host_can_have_are_left_out)
{
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        const struct mstx_rec r = measured(offsets[i].at, offsets[i].offset, 1);
        new_clock(MSTX_CLOCK_TSC, 0);
        ck_assert_msg(add(0, &r, 1)->apart.n == offsets[i].taken, "offset %zu", i);
    }
}
END_TEST

/* ---- fitting ----------------------------------------------------------------------- */

static struct mstx_host_clock *fit(const struct mstx_rec *rec, size_t n)
{
    new_clock(MSTX_CLOCK_TSC, 0);
    struct mstx_host_clock *c = add(0, rec, n);
    ck_assert(mstx__clock_fit(c) == (c->knot.n > 1));
    return c;
}

START_TEST(of_near_points_the_one_that_was_read_fastest_stays)
{
    const struct mstx_rec r[] = {calib(1000, SECOND, REAL, 50),
                                 calib(1100, SECOND + 100 * MS, REAL, 20),
                                 calib(1200, SECOND + 200 * MS, REAL, 20),
                                 calib(1500, SECOND + 500 * MS, REAL, 90),
                                 calib(1650, SECOND + 650 * MS, REAL, 95),
                                 calib(1701, SECOND + 701 * MS, REAL, 99)};
    const struct mstx_host_clock *c = fit(r, 6);
    ck_assert_uint_eq(c->knot.n, 3);
    ck_assert_uint_eq(c->knot.p[0].ticks, 1100);
    ck_assert_uint_eq(c->knot.p[1].ticks, 1500);
    ck_assert_uint_eq(c->knot.p[2].ticks, 1701);
}
END_TEST

START_TEST(points_are_200_ms_apart_at_least)
{
    const struct mstx_rec near[] = {calib(10, SECOND, REAL, 5),
                                    calib(20, SECOND + 200 * MS, REAL, 5),
                                    calib(30, SECOND + 400 * MS + 2, REAL, 5)};
    const struct mstx_rec far[] = {calib(10, SECOND, REAL, 5),
                                   calib(20, SECOND + 200 * MS + 1, REAL, 5)};
    const struct mstx_host_clock *c = fit(near, 3);
    ck_assert_uint_eq(c->knot.n, 2);
    ck_assert_uint_eq(c->knot.p[1].ticks, 30);
    ck_assert_uint_eq(fit(far, 2)->knot.n, 2);
}
END_TEST

START_TEST(a_short_run_has_its_first_and_its_last_point)
{
    const struct mstx_rec r[] = {calib(300, SECOND + 30, REAL + 30, 1),
                                 calib(100, SECOND + 10, REAL + 10, 9),
                                 calib(200, SECOND + 20, REAL + 20, 2)};
    struct mstx_host_clock *c = fit(r, 3);
    ck_assert_uint_eq(c->knot.n, 2);
    ck_assert_uint_eq(c->knot.p[0].ticks, 100);
    ck_assert_uint_eq(c->knot.p[1].ticks, 300);
    ck_assert_int_eq(c->offset_ns, REAL - SECOND);
    ck_assert_int_eq(mstx__clock_steady(c, 250), SECOND + 25);
    /* Time that stands still or goes back gives no second point. */
    const struct mstx_rec still[] = {calib(100, SECOND, REAL, 1), calib(200, SECOND, REAL, 2)};
    const struct mstx_rec back[] = {calib(100, SECOND, REAL, 1), calib(200, SECOND - 5, REAL, 2)};
    const struct mstx_rec same[] = {calib(100, SECOND, REAL, 1), calib(100, SECOND + 5, REAL, 2)};
    ck_assert_uint_eq(fit(still, 2)->knot.n, 1);
    ck_assert_uint_eq(fit(back, 2)->knot.n, 1);
    ck_assert_uint_eq(fit(same, 2)->knot.n, 1);
}
END_TEST

START_TEST(a_fast_reading_does_not_turn_time_back)
{
    const struct mstx_rec r[] = {calib(100, 10 * SECOND, REAL, 5),
                                 calib(200, 11 * SECOND, REAL, 50), calib(300, 9 * SECOND, REAL, 1),
                                 calib(400, 11 * SECOND + 100 * MS, REAL, 2)};
    const struct mstx_host_clock *c = fit(r, 4);
    ck_assert_uint_eq(c->knot.n, 2);
    ck_assert_uint_eq(c->knot.p[0].ticks, 100);
    ck_assert_uint_eq(c->knot.p[1].ticks, 400);
}
END_TEST

/* Two readings of one tick: a line through them would have no slope. */
START_TEST(points_of_one_tick_are_one)
{
    const struct mstx_rec r[] = {calib(100, 10 * SECOND, REAL, 5), calib(100, 11 * SECOND, REAL, 9),
                                 calib(101, 12 * SECOND, REAL, 5)};
    const struct mstx_host_clock *c = fit(r, 3);
    ck_assert_uint_eq(c->knot.n, 2);
    ck_assert_uint_eq(c->knot.p[0].ticks, 100);
    ck_assert_int_eq(c->knot.p[0].mono_ns, 10 * SECOND);
    ck_assert_uint_eq(c->knot.p[1].ticks, 101);
}
END_TEST

/* ---- converting ---------------------------------------------------------------------- */

START_TEST(time_is_linear_between_points_and_beyond_them)
{
    const struct mstx_rec r[] = {calib(1000, SECOND, REAL, 1), calib(2000, 2 * SECOND, REAL, 1),
                                 calib(4000, 3 * SECOND, REAL, 1)};
    static const struct {
        uint64_t ticks;
        int64_t ms;
    } at[] = {{1000, 1000}, {1500, 1500}, {2000, 2000}, {3000, 2500}, {4000, 3000}, {6000, 4000},
              {1999, 1999}, {500, 500},   {3998, 2999}, {0, 0},       {1001, 1001}};
    struct mstx_host_clock *c = fit(r, 3);
    ck_assert_uint_eq(c->knot.n, 3);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        ck_assert_int_eq(mstx__clock_steady(c, at[i].ticks), at[i].ms * MS);
        ck_assert_int_eq(mstx__clock_ns(c, at[i].ticks), at[i].ms * MS + REAL - SECOND);
    }
}
END_TEST

START_TEST(a_clock_of_one_point_goes_as_the_recorder_says)
{
    const struct mstx_rec r = calib(1000, SECOND, REAL, 1);
    struct mstx_host_clock *c = new_clock(MSTX_CLOCK_TSC, 500000000);
    add(0, &r, 1);
    ck_assert(mstx__clock_fit(c));
    ck_assert_int_eq(mstx__clock_steady(c, 1500), SECOND + 1000);
    ck_assert_int_eq(mstx__clock_steady(c, 500), SECOND - 1000);
    /* Nobody said how fast: a tick is taken for a nanosecond, and the time is known to be a guess. */
    c = new_clock(MSTX_CLOCK_TSC, 0);
    add(0, &r, 1);
    ck_assert(!mstx__clock_fit(c));
    ck_assert_int_eq(mstx__clock_steady(c, 1500), SECOND + 500);
}
END_TEST

START_TEST(a_clock_without_points_counts_ticks)
{
    struct mstx_host_clock *c = new_clock(MSTX_CLOCK_TSC, 0);
    ck_assert(!mstx__clock_fit(c));
    ck_assert_int_eq(mstx__clock_ns(c, 12345), 12345);
    c = new_clock(MSTX_CLOCK_TSC, 250000000);
    ck_assert(!mstx__clock_fit(c));
    ck_assert_int_eq(mstx__clock_ns(c, 10), 40);
    ck_assert_int_eq(mstx__clock_steady(c, UINT64_MAX), INT64_C(2000000000000000000));
}
END_TEST

START_TEST(damaged_ticks_do_not_overflow)
{
    const struct mstx_rec r[] = {calib(1000, SECOND, REAL, 1),
                                 calib(1001, SECOND + 300 * MS, REAL + 300 * MS, 1)};
    const int64_t most = (INT64_C(1) << 62) - 1;
    struct mstx_host_clock *c = fit(r, 2);
    ck_assert_int_eq(mstx__clock_steady(c, UINT64_MAX),
                     INT64_C(2000000000000000000) + SECOND + 300 * MS);
    ck_assert_int_le(mstx__clock_ns(c, UINT64_MAX), most);
    ck_assert_int_eq(mstx__clock_steady(c, 1000), SECOND);
    ck_assert_int_eq(mstx__clock_steady(c, 999), SECOND - 300 * MS);
}
END_TEST

/* ---- calls that meet --------------------------------------------------------------------- */

START_TEST(collectives_that_need_the_data_of_all_are_meetings)
{
    for (unsigned op = 0; op < MSTX_COMM_OP_COUNT; op++) {
        const bool all = op == MSTX_COMM_ALLREDUCE || op == MSTX_COMM_REDUCE_SCATTER ||
                         op == MSTX_COMM_ALLGATHER || op == MSTX_COMM_ALLTOALL;
        struct mstx_rec_comm c = {.op = (uint8_t)op, .lib = MSTX_LIB_MPI, .count = 1};
        ck_assert_msg(mstx__meeting_counts(&c) == (all || op == MSTX_COMM_BARRIER), "op %u", op);
        c.count = 0;
        ck_assert_msg(mstx__meeting_counts(&c) == (op == MSTX_COMM_BARRIER), "op %u", op);
    }
}
END_TEST

START_TEST(a_call_has_a_time_after_the_start_of_the_machine)
{
    static const struct {
        int64_t start, end;
        size_t taken;
    } calls[] = {{0, 0, 1}, {0, YEARS_36, 1}, {0, YEARS_36 + 1, 0},   {-1, 0, 0},
                 {5, 4, 0}, {5, 5, 1},        {YEARS_36, YEARS_36, 1}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct mstx_meetings m = {0};
        const struct mstx_meeting one = {.start = calls[i].start, .end = calls[i].end};
        ck_assert(mstx__meeting_add(&m, &one));
        ck_assert_msg(m.list.n == calls[i].taken, "call %zu", i);
        ms_vec_free(&m.list);
    }
}
END_TEST

TEST_MAIN_AROUND(
    NULL, tear_down, "clock_knots", a_clock_belongs_to_one_start_of_one_machine,
    points_that_no_clock_can_have_are_left_out, only_the_ring_of_the_process_has_points_in_records,
    the_header_of_every_ring_has_two_points, offsets_that_no_host_can_have_are_left_out,
    of_near_points_the_one_that_was_read_fastest_stays, points_are_200_ms_apart_at_least,
    a_short_run_has_its_first_and_its_last_point, a_fast_reading_does_not_turn_time_back,
    points_of_one_tick_are_one, time_is_linear_between_points_and_beyond_them,
    a_clock_of_one_point_goes_as_the_recorder_says, a_clock_without_points_counts_ticks,
    damaged_ticks_do_not_overflow, collectives_that_need_the_data_of_all_are_meetings,
    a_call_has_a_time_after_the_start_of_the_machine)
