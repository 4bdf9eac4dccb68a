/* SPDX-License-Identifier: MIT
 *
 * Tests of device times: a program marks on streams of the processor, or on queues of OpenCL
 * where there is a device for it, and says when its work really ran; the capture must agree.
 */
#include "tests/programs/run.h"

static FILE *output;

/* Run it; what it prints can be read afterwards. Its exit status. */
static int app(const char *what, const char *n)
{
    char path[100];
    snprintf(path, sizeof path, "%s/out", rt_dir);
    int keep = dup(STDOUT_FILENO);
    fflush(stdout);
    ck_assert_ptr_nonnull(freopen(path, "w", stdout));
    int status = rt_wait(rt_spawn("tests/programs/device_app", what, n, NULL));
    fflush(stdout);
    dup2(keep, STDOUT_FILENO);
    close(keep);
    output = fopen(path, "r");
    ck_assert_ptr_nonnull(output);
    return status;
}

static void done(struct cap *c)
{
    cap_free(c);
    fclose(output);
    rt_done();
}

/* The device time of the k-th event of a ring order, by the ticks of its start. */
static int64_t time_of(const struct cap *c, const struct mstx_rec *start, bool end)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct mstx_rec *r = &c->rec[i].r;
        if (r->type == MSTX_REC_DEVICE && r->id == start->id && r->ticks == start->ticks &&
            r->name == (end ? 1u : 0u) && (r->flags & MSTX_F_NO_DEVICE) == 0)
            return (int64_t)r->arg;
    }
    ck_abort_msg("no device time");
    return 0;
}

static size_t count_flag(const struct cap *c, int type, unsigned flag)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->rec[i].r.type == type && (c->rec[i].r.flags & flag) != 0;
    return n;
}

/* What the program printed lies within what was recorded, which lies within what it printed of the
 * work before and after: a queue works in order. */
static void ranges_hold_their_work(const struct cap *c, int64_t slack)
{
    long long began, ended, before = 0;
    int64_t last = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct mstx_rec *r = &c->rec[i].r;
        if (r->type != MSTX_REC_BEGIN)
            continue;
        ck_assert_int_eq(fscanf(output, "%lld %lld", &began, &ended), 2);
        int64_t start = time_of(c, r, false), end = time_of(c, r, true);
        ck_assert_int_ge(start, before - slack);
        ck_assert_int_le(start, began + slack);
        ck_assert_int_ge(end, ended - slack);
        ck_assert_int_ge(start, last);
        ck_assert_int_ge(end, start);
        if (before != 0)
            ck_assert_int_le(last, began + slack);
        last = end;
        before = ended;
    }
    ck_assert_int_ne(last, 0);
}

START_TEST(a_range_on_a_stream_holds_the_work_in_it)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("cpu", "20"), 0);
    cap_load_one(&c, rt_out);
    ranges_hold_their_work(&c, 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_STREAM, NULL, "worker"), 1);
    done(&c);
}
END_TEST

START_TEST(a_clock_that_is_ahead_and_drifts_is_mapped_to_the_host)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_CPU_OFFSET_NS", "1000000000000", 1);
    setenv("MSTX_CPU_DRIFT_PPM", "50", 1);
    ck_assert_int_eq(app("cpu", "500"), 0);
    unsetenv("MSTX_CPU_OFFSET_NS");
    unsetenv("MSTX_CPU_DRIFT_PPM");
    cap_load_one(&c, rt_out);
    ranges_hold_their_work(&c, 5000);
    done(&c);
}
END_TEST

START_TEST(a_hundred_thousand_marks_all_get_their_time)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("marks", "100000"), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "tick"), 100000);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 100000);
    ck_assert_uint_eq(count_flag(&c, MSTX_REC_DEVICE, MSTX_F_NO_DEVICE), 0);
    done(&c);
}
END_TEST

START_TEST(threads_may_share_a_stream)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("threads", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "shared"), 20000);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 40000);
    done(&c);
}
END_TEST

START_TEST(lost_times_are_counted_one_by_one)
{
    struct cap c;
    rt_setup();
    setenv("MSTX_CPU_LOSS", "10", 1);
    ck_assert_int_eq(app("marks", "1000"), 0);
    unsetenv("MSTX_CPU_LOSS");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 1000);
    ck_assert_uint_eq(count_flag(&c, MSTX_REC_DEVICE, MSTX_F_NO_DEVICE), 100);
    done(&c);
}
END_TEST

START_TEST(a_stream_that_cannot_keep_up_leaves_the_host_records)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("flood", "200000"), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "tick"), 200000);
    size_t host_alone = count_flag(&c, MSTX_REC_MARK, MSTX_F_NO_DEVICE);
    ck_assert_uint_ge(host_alone, 200000 - (1 << 17));
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 200000 - host_alone);
    done(&c);
}
END_TEST

START_TEST(a_captured_stream_gets_host_marks_alone)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("capture", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_find(&c, MSTX_REC_MARK, "captured")->r.flags & MSTX_F_CAPTURED,
                      MSTX_F_CAPTURED);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 2);
    done(&c);
}
END_TEST

START_TEST(a_stream_may_go_with_marks_pending)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("destroy", "20"), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 20);
    ck_assert_uint_eq(count_flag(&c, MSTX_REC_DEVICE, MSTX_F_NO_DEVICE), 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "too late"), 20);
    done(&c);
}
END_TEST

START_TEST(a_reset_loses_what_is_pending_and_says_so)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("reset", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(count_flag(&c, MSTX_REC_DEVICE, MSTX_F_NO_DEVICE), 10);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "on no stream"), 1);
    done(&c);
}
END_TEST

START_TEST(handles_that_nobody_told_of_are_not_looked_into)
{
    struct cap c;
    rt_setup();
    ck_assert_int_eq(app("foreign", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_MARK, NULL, "nobody's"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 0);
    done(&c);
}
END_TEST

START_TEST(a_forked_child_leaves_its_parents_streams_alone)
{
    struct cap c[2];
#if defined(__SANITIZE_THREAD__)
    printf("skip fork: a child of this sanitizer may not start threads\n");
    return;
#endif
    rt_setup();
    ck_assert_int_eq(app("fork", NULL), 0);
    ck_assert_uint_eq(cap_load(c, 2, rt_out), 2);
    size_t child = cap_count(&c[0], MSTX_REC_MARK, NULL, "child") != 0 ? 0 : 1;
    ck_assert_uint_eq(cap_count(&c[child], MSTX_REC_DEVICE, NULL, NULL), 1);
    ck_assert_uint_eq(cap_count(&c[1 - child], MSTX_REC_DEVICE, NULL, NULL), 2);
    cap_free(&c[0]);
    done(&c[1]);
}
END_TEST

/* ---- OpenCL --------------------------------------------------------------------------- */

static bool has_opencl(const char *what, const char *n)
{
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* drivers keep memory to the end */
    int status = app(what, n);
    if (status == 77)
        printf("skip OpenCL: no device\n");
    else
        ck_assert_int_eq(status, 0);
    return status == 0;
}

START_TEST(a_range_on_a_queue_lies_between_the_counters_of_its_commands)
{
    struct cap c;
    rt_setup();
    if (has_opencl("opencl", "300")) {
        cap_load_one(&c, rt_out);
        ranges_hold_their_work(&c, 1000);
        done(&c);
    }
}
END_TEST

START_TEST(a_hundred_thousand_marks_on_a_queue_are_joined)
{
    struct cap c;
    rt_setup();
    if (has_opencl("opencl-marks", "100000")) {
        cap_load_one(&c, rt_out);
        ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 100000);
        ck_assert_uint_eq(count_flag(&c, MSTX_REC_DEVICE, MSTX_F_NO_DEVICE), 0);
        ck_assert_uint_eq(cap_count(&c, MSTX_REC_STREAM, NULL, "the queue"), 1);
        done(&c);
    }
}
END_TEST

START_TEST(a_queue_may_be_released_with_marks_pending)
{
    struct cap c;
    rt_setup();
    if (has_opencl("opencl-release", NULL)) {
        cap_load_one(&c, rt_out);
        ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 100);
        done(&c);
    }
}
END_TEST

TEST_MAIN("device", a_range_on_a_stream_holds_the_work_in_it,
          a_clock_that_is_ahead_and_drifts_is_mapped_to_the_host,
          a_hundred_thousand_marks_all_get_their_time, threads_may_share_a_stream,
          lost_times_are_counted_one_by_one, a_stream_that_cannot_keep_up_leaves_the_host_records,
          a_captured_stream_gets_host_marks_alone, a_stream_may_go_with_marks_pending,
          a_reset_loses_what_is_pending_and_says_so,
          handles_that_nobody_told_of_are_not_looked_into,
          a_forked_child_leaves_its_parents_streams_alone,
          a_range_on_a_queue_lies_between_the_counters_of_its_commands,
          a_hundred_thousand_marks_on_a_queue_are_joined,
          a_queue_may_be_released_with_marks_pending)
