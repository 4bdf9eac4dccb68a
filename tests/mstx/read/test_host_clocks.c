/* SPDX-License-Identifier: MIT
 *
 * Clocks from collectives: hosts with known offsets and drifts hold barriers; what is found must be
 * what was put in.
 */
#include "mstx/read/host_clocks.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <stdlib.h>

static struct mstx_clocks clocks;
static struct mstx_meetings meetings;
static uint64_t seed;

static const int64_t BASE = INT64_C(5000000000000), SECOND = 1000000000;

/* What the reference, host 0, is ahead of host h at true time t; drift in ppm. */
static int64_t offset_of[4];
static double drift_of[4];
static int64_t local(unsigned h, int64_t t)
{
    return t - offset_of[h] - (int64_t)(drift_of[h] * 1e-6 * (double)(t - BASE));
}

static void begin(void)
{
    clocks = (struct mstx_clocks){0};
    meetings = (struct mstx_meetings){0};
    seed = 88172645463325252u;
    for (unsigned h = 0; h < 4; h++) {
        struct mstx_host_clock *c = ms_vec_push(&clocks.host);
        ck_assert_ptr_nonnull(c);
        *c = (struct mstx_host_clock){.boot_id = {(uint8_t)(h + 1)}, .offset_ns = 1000 + h};
    }
}

static void end(void)
{
    ms_vec_free(&meetings.list);
    mstx__clocks_free(&clocks);
}

static int64_t random_ns(int64_t most)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed % (uint64_t)most);
}

/* A barrier of two hosts: both come within 3 ms of each other and leave up to 20 us after the last. */
static void barrier(unsigned a, unsigned b, uint32_t seq, int64_t t)
{
    const unsigned host[] = {a, b};
    const int64_t came[] = {t - random_ns(3000000), t};
    for (int i = 0; i < 2; i++) {
        const struct mstx_meeting m = {.uid = 7 + a + b,
                                       .seq = seq,
                                       .host = host[i],
                                       .start = local(host[i], came[(seq + (uint32_t)i) % 2]),
                                       .end = local(host[i], t + random_ns(20000)),
                                       .op = MSTX_COMM_BARRIER};
        ck_assert(mstx__meeting_add(&meetings, &m));
    }
}

static void align(void)
{
    struct ms_err e = {0};
    ck_ok(mstx__meetings_align(&meetings, &clocks, 0, &e), e);
}

/* How far the times of a host are from the truth between two times. */
static int64_t worst(unsigned h, int64_t from, int64_t to)
{
    int64_t most = 0;
    for (int64_t t = from; t <= to; t += SECOND / 2) {
        const int64_t l = local(h, t);
        const int64_t off =
            llabs(l + mstx__clock_shift(&clocks.host.p[h], l) - clocks.host.p[0].offset_ns - t);
        most = off > most ? off : most;
    }
    return most;
}

START_TEST(a_host_that_nobody_measured_follows_from_its_barriers)
{
    begin();
    offset_of[1] = SECOND;
    drift_of[1] = 50;
    for (uint32_t i = 0; i < 500; i++)
        barrier(0, 1, i, BASE + i * SECOND / 10);
    align();
    ck_assert_int_lt(worst(1, BASE, BASE + 50 * SECOND), 5000);
    ck_assert_int_eq(clocks.host.p[1].apart.p[0].method, MSTX_APART_MEETINGS);
    ck_assert_uint_eq(clocks.host.p[2].apart.n, 0); /* took part in nothing */
    end();
}
END_TEST

START_TEST(a_host_is_reached_through_another)
{
    begin();
    offset_of[1] = -SECOND;
    offset_of[2] = 12345678;
    drift_of[1] = -50;
    drift_of[2] = 120;
    for (uint32_t i = 0; i < 500; i++) {
        barrier(2, 1, i, BASE + i * SECOND / 10);
        barrier(0, 1, i, BASE + i * SECOND / 10 + 50000000);
    }
    align();
    ck_assert_int_lt(worst(1, BASE, BASE + 50 * SECOND), 5000);
    ck_assert_int_lt(worst(2, BASE, BASE + 50 * SECOND), 10000);
    end();
}
END_TEST

START_TEST(a_long_run_follows_a_clock_that_changes_its_rate)
{
    begin();
    offset_of[1] = 0;
    drift_of[1] = 20;
    for (uint32_t i = 0; i < 5000; i++)
        barrier(0, 1, i, BASE + i * SECOND / 10);
    /* from here on the same clock runs 30 ppm faster */
    const int64_t turn = BASE + 500 * SECOND;
    offset_of[1] = (int64_t)(-30e-6 * (double)(turn - BASE));
    drift_of[1] = 50;
    for (uint32_t i = 5000; i < 10000; i++)
        barrier(0, 1, i, BASE + i * SECOND / 10);
    align();
    ck_assert_uint_gt(clocks.host.p[1].apart.n, 5);
    ck_assert_int_lt(worst(1, turn + 200 * SECOND, turn + 500 * SECOND), 50000);
    end();
}
END_TEST

static void measure_as(unsigned h, int64_t t, int64_t wrong_by, int64_t uncertainty)
{
    struct mstx_apart *p = ms_vec_push(&clocks.host.p[h].apart);
    ck_assert_ptr_nonnull(p);
    *p =
        (struct mstx_apart){local(h, t), t - local(h, t) + wrong_by, uncertainty, MSTX_APART_PINGS};
    clocks.host.p[h].reference_ns = clocks.host.p[0].offset_ns;
}
static void measure(unsigned h, int64_t t, int64_t wrong_by)
{
    measure_as(h, t, wrong_by, 1000);
}

START_TEST(certain_measures_count_and_others_only_where_they_say_more)
{
    begin();
    offset_of[1] = SECOND;
    drift_of[1] = 50;
    offset_of[2] = -SECOND;
    drift_of[2] = -20;
    measure_as(1, BASE, 100, 300); /* MPI at both ends, TCP in between and behind */
    measure_as(1, BASE + SECOND / 100, -7000, 15000);
    for (int i = 1; i < 10; i++)
        measure_as(1, BASE + i * 60 * SECOND, (i % 2 == 0 ? 1 : -1) * 9000, 15000);
    measure_as(1, BASE + 600 * SECOND, -100, 300);
    measure_as(1, BASE + 600 * SECOND + SECOND / 100, 9000, 15000);
    for (int i = 0; i < 5; i++) /* one of them is from a time when the machine slept */
        measure_as(2, BASE + i * 60 * SECOND, i == 2 ? 400000000 : 3000, 5000);
    mstx__clocks_align(&clocks, &clocks.host.p[0]);
    ck_assert_uint_eq(clocks.host.p[1].apart.n, 2);
    ck_assert_int_lt(worst(1, BASE, BASE + 660 * SECOND), 200);
    ck_assert_int_lt(worst(2, BASE, BASE + 240 * SECOND), 8001);
    end();
}
END_TEST

START_TEST(an_unsure_measure_bends_no_line_that_is_surer_there)
{
    begin();
    offset_of[1] = SECOND;
    drift_of[1] = 50;
    measure_as(1, BASE - SECOND / 5, -5800, 5600); /* before and between the sure ones */
    measure_as(1, BASE, 100, 300);
    measure_as(1, BASE + SECOND / 2, 5800, 5600);
    measure_as(1, BASE + SECOND, -100, 300);
    mstx__clocks_align(&clocks, &clocks.host.p[0]);
    ck_assert_uint_eq(clocks.host.p[1].apart.n, 2);
    ck_assert_int_lt(worst(1, BASE - SECOND / 5, BASE + SECOND), 300);
    end();
}
END_TEST

START_TEST(what_drifts_from_a_straight_line_is_followed)
{
    begin();
    offset_of[1] = drift_of[1] = 0;
    for (int i = 0; i <= 10; i++) { /* an arc: half a ppm faster each minute */
        const int64_t bow = INT64_C(15000) * i * (10 - i);
        measure_as(1, BASE + i * 60 * SECOND, bow, 2000);
    }
    mstx__clocks_align(&clocks, &clocks.host.p[0]);
    ck_assert_uint_eq(clocks.host.p[1].apart.n, 11);
    for (int i = 0; i <= 10; i++) {
        const int64_t t = BASE + i * 60 * SECOND, bow = INT64_C(15000) * i * (10 - i);
        const int64_t found =
            t + mstx__clock_shift(&clocks.host.p[1], t) - clocks.host.p[0].offset_ns;
        ck_assert_int_eq(found - t, bow);
    }
    end();
}
END_TEST

START_TEST(a_measure_that_the_barriers_forbid_is_put_right)
{
    begin();
    offset_of[1] = SECOND;
    offset_of[2] = -SECOND;
    drift_of[1] = drift_of[2] = 0;
    measure(1, BASE, 0);
    measure(2, BASE, 3000000); /* the way there took longer than the way back */
    for (uint32_t i = 0; i < 500; i++) {
        barrier(0, 1, i, BASE + i * SECOND / 10);
        barrier(0, 2, i, BASE + i * SECOND / 10);
    }
    align();
    ck_assert_int_eq(clocks.host.p[1].apart.p[0].method, MSTX_APART_PINGS);
    ck_assert_int_eq(worst(1, BASE, BASE + 50 * SECOND), 0);
    ck_assert_int_eq(clocks.host.p[2].apart.p[0].method, MSTX_APART_CORRECTED);
    ck_assert_int_lt(worst(2, BASE, BASE + 50 * SECOND), 20001);
    end();
}
END_TEST

START_TEST(times_of_no_clock_and_single_calls_do_no_harm)
{
    begin();
    static const struct mstx_meeting odd[] = {
        {.start = -1, .end = 5}, {.start = 5, .end = 1}, {.start = 0, .end = INT64_MAX}};
    for (size_t i = 0; i < 3; i++)
        ck_assert(mstx__meeting_add(&meetings, &odd[i]));
    ck_assert_uint_eq(meetings.list.n, 0);
    offset_of[1] = 5000;
    drift_of[1] = 0;
    barrier(0, 1, 0, BASE);
    align();
    ck_assert_uint_eq(clocks.host.p[1].apart.n, 1);
    ck_assert_int_lt(worst(1, BASE, BASE), 3000000);
    end();
}
END_TEST

START_TEST(only_calls_that_wait_for_all_count)
{
    struct mstx_rec_comm c = {.op = MSTX_COMM_ALLREDUCE, .lib = MSTX_LIB_MPI, .count = 1};
    ck_assert(mstx__meeting_counts(&c));
    c.count = 0;
    ck_assert(!mstx__meeting_counts(&c));
    c.op = MSTX_COMM_BARRIER;
    ck_assert(mstx__meeting_counts(&c));
    c.lib = MSTX_LIB_NCCL; /* returns when it is in a queue */
    ck_assert(!mstx__meeting_counts(&c));
    c = (struct mstx_rec_comm){.op = MSTX_COMM_BROADCAST, .lib = MSTX_LIB_MPI, .count = 1};
    ck_assert(!mstx__meeting_counts(&c));
}
END_TEST

/* The reference may be any host; the first one is then measured like the others. */
START_TEST(the_first_host_is_measured_where_another_is_the_reference)
{
    struct ms_err e = {0};
    begin();
    offset_of[2] = SECOND;
    for (uint32_t i = 0; i < 500; i++)
        barrier(0, 2, i, BASE + i * SECOND / 10);
    ck_ok(mstx__meetings_align(&meetings, &clocks, 2, &e), e);
    ck_assert_uint_eq(clocks.host.p[2].apart.n, 1); /* the point that names the reference */
    ck_assert_int_eq(clocks.host.p[2].apart.p[0].offset_ns, 0);
    ck_assert_int_eq(clocks.host.p[2].apart.p[0].uncertainty_ns, 0);
    ck_assert_uint_ne(clocks.host.p[0].apart.n, 0);
    const struct mstx_host_clock *c = clocks.host.p;
    for (int64_t t = BASE; t <= BASE + 50 * SECOND; t += SECOND)
        ck_assert_int_lt(llabs(local(0, t) + mstx__clock_shift(&c[0], local(0, t)) -
                               (local(2, t) + mstx__clock_shift(&c[2], local(2, t)))),
                         5000);
    offset_of[2] = 0;
    end();
}
END_TEST

TEST_MAIN("host_clocks", a_host_that_nobody_measured_follows_from_its_barriers,
          a_host_is_reached_through_another, a_long_run_follows_a_clock_that_changes_its_rate,
          a_measure_that_the_barriers_forbid_is_put_right,
          certain_measures_count_and_others_only_where_they_say_more,
          an_unsure_measure_bends_no_line_that_is_surer_there,
          what_drifts_from_a_straight_line_is_followed,
          times_of_no_clock_and_single_calls_do_no_harm, only_calls_that_wait_for_all_count,
          the_first_host_is_measured_where_another_is_the_reference)
