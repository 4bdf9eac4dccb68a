/* SPDX-License-Identifier: MIT
 *
 * Clocks of traces: two ranks whose clocks are apart and drift are joined by their collectives, to within
 * what is told; clocks that agree, and collectives that are not the same, move nothing.
 */
#include "mstx/foreign/trace_clock.h"
#include "tests/support/check.h"

static uint64_t seed = 0x9E3779B97F4A7C15u;
static struct ms_arena *keys;
static struct mstx_trace_clocks clocks;
static struct mstx_trace_time times[2];
static struct mstx_trace_joined joined[2];

static int64_t draw(int64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed % (uint64_t)below);
}

/* What the clock of the second rank shows at a true time. */
struct apart {
    int64_t offset;
    double drift;
};
enum { BASE = 1000000000 };
static const int64_t EPOCH = INT64_C(1711964646000000000);

static int64_t shown(const struct apart *a, int64_t t)
{
    return t + a->offset + (int64_t)(a->drift * (double)t);
}

/* Records n collectives, one every 100 ms: each rank arrives when it likes, both leave together but for
 * some microseconds. */
static void record(mstx_trace_meetings met[2], int n, const struct apart *a)
{
    for (int i = 0; i < n; i++) {
        const int64_t begin = BASE + i * INT64_C(100000000);
        int64_t came[2] = {begin + draw(900000), begin + draw(900000)};
        const int64_t left = (came[0] > came[1] ? came[0] : came[1]) + 200000 + draw(300000);
        for (int r = 0; r < 2; r++) {
            const int64_t end = left + draw(20000);
            struct mstx_trace_meeting *m = ms_vec_push(&met[r]);
            ck_assert_ptr_nonnull(m);
            *m = (struct mstx_trace_meeting){.group = 77,
                                             .seq = (uint32_t)i,
                                             .bytes = 4096,
                                             .op = MSTX_COMM_ALLREDUCE,
                                             .start_ns = r == 0 ? came[r] : shown(a, came[r]),
                                             .end_ns = r == 0 ? end : shown(a, end)};
        }
    }
}

static void join(mstx_trace_meetings met[2])
{
    struct ms_err e = {0};
    keys = ms_arena_new(1 << 24);
    clocks = (struct mstx_trace_clocks){0};
    for (int r = 0; r < 2; r++) {
        times[r] = (struct mstx_trace_time){.base_ns = EPOCH};
        ck_ok(mstx__trace_clock_join(&clocks, &met[r], keys, &times[r], &joined[r], &e), e);
    }
    ck_assert(!joined[0].disagrees);
}

static void end(mstx_trace_meetings met[2])
{
    for (int r = 0; r < 2; r++) {
        mstx__trace_time_free(&times[r]);
        ms_vec_free(&met[r]);
    }
    mstx__trace_clocks_free(&clocks);
    ms_arena_free(keys);
}

/* Checks the time of the run at every collective against the true one. */
static void check_times(const mstx_trace_meetings *met, int n, const struct apart *a)
{
    for (int i = 0; i < n; i++) {
        const int64_t t = BASE + i * INT64_C(100000000);
        const int64_t off = mstx__trace_time(&times[1], shown(a, t)) - EPOCH - t;
        ck_assert_int_le(off < 0 ? -off : off, joined[1].unsure_ns);
    }
    ck_assert_uint_eq(met[1].n, (size_t)n);
}

START_TEST(an_offset_is_found)
{
    static const struct apart cases[] = {{INT64_C(30000000000), 0},
                                         {INT64_C(-30000000000), 20e-6},
                                         {5000000, -50e-6},
                                         {INT64_C(-86400000000000), 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mstx_trace_meetings met[2] = {0};
        record(met, 50, &cases[i]);
        join(met);
        ck_assert(joined[1].disagrees && joined[1].is_joined);
        ck_assert_uint_eq(joined[1].shared, 50);
        check_times(met, 50, &cases[i]);
        ck_assert_int_le(joined[1].unsure_ns, 2000000);
        end(met);
    }
}
END_TEST

START_TEST(a_drift_is_followed)
{
    static const struct apart cases[] = {{INT64_C(30000000000), 50e-6}, {-7, -90e-6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mstx_trace_meetings met[2] = {0};
        record(met, 6000, &cases[i]);
        join(met);
        ck_assert(joined[1].disagrees && joined[1].is_joined);
        ck_assert_double_eq_tol(mstx__trace_drift(&times[1]), -cases[i].drift, 5e-6);
        check_times(met, 6000, &cases[i]);
        ck_assert_int_le(joined[1].unsure_ns, 2000000);
        end(met);
    }
}
END_TEST

START_TEST(clocks_that_agree_are_left_alone)
{
    static const struct apart none = {100000, 0};
    mstx_trace_meetings met[2] = {0};
    record(met, 200, &none);
    join(met);
    ck_assert(!joined[1].disagrees);
    ck_assert_uint_eq(joined[1].shared, 200);
    ck_assert_int_eq(mstx__trace_time(&times[1], 5), EPOCH + 5);
    end(met);
}
END_TEST

/* A profiler that began one collective later, or collectives of other sizes: they are not the same. */
START_TEST(collectives_that_are_not_the_same_say_nothing)
{
    static const struct apart far = {INT64_C(30000000000), 0};
    for (int way = 0; way < 2; way++) {
        mstx_trace_meetings met[2] = {0};
        record(met, 50, &far);
        if (way == 0)
            met[1].n--;
        else
            met[1].p[20].bytes++;
        join(met);
        ck_assert(!joined[1].disagrees);
        ck_assert_uint_eq(joined[1].shared, 0);
        end(met);
    }
}
END_TEST

/* A clock that jumps by a second in the middle fits no line. */
START_TEST(a_clock_that_jumps_is_told)
{
    static const struct apart none = {0, 0};
    mstx_trace_meetings met[2] = {0};
    record(met, 50, &none);
    for (int i = 25; i < 50; i++) {
        met[1].p[i].start_ns += 1000000000;
        met[1].p[i].end_ns += 1000000000;
    }
    join(met);
    ck_assert(joined[1].disagrees && !joined[1].is_joined);
    ck_assert_int_eq(mstx__trace_time(&times[1], 5), EPOCH + 5);
    end(met);
}
END_TEST

TEST_MAIN("trace_clock", an_offset_is_found, a_drift_is_followed, clocks_that_agree_are_left_alone,
          collectives_that_are_not_the_same_say_nothing, a_clock_that_jumps_is_told)
