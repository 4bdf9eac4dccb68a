/* SPDX-License-Identifier: MIT
 *
 * trail: what a step waited for, on threads and streams that are laid out here by hand.
 */
#include "mstx/differ/trail.h"
#include "tests/support/check.h"

static struct mstx_places places;
static struct mstx_lane_set set;
static struct mstx_trail trail;
static uint32_t gap;

static uint32_t place(const char *name, enum mstx_place_kind kind)
{
    return mstx__places_child(&places, MSTX_ROOT, mstx__places_name(&places, ms_str_of(name)),
                              kind);
}

static void set_up(void)
{
    ck_assert(mstx__places_new(&places));
    set = (struct mstx_lane_set){0};
    trail = (struct mstx_trail){0};
    gap = mstx__places_name(&places, MS_STR("gap before"));
}

static void tear_down(void)
{
    mstx__trail_free(&trail);
    mstx__lane_set_free(&set);
    mstx__places_free(&places);
}

static struct mstx_lane *add_lane(void)
{
    struct mstx_lane *l = ms_vec_push(&set.lane);
    ck_assert_ptr_nonnull(l);
    *l = (struct mstx_lane){.tid = (uint32_t)set.lane.n};
    return l;
}

/* Adds a span to a lane, after those before it, and the bits that are empty around it. */
static struct mstx_lane_span *add_span(struct mstx_lane *l, int64_t start, int64_t end,
                                       const char *name)
{
    struct mstx_lane_span *s = ms_vec_push(&l->span);
    ck_assert_ptr_nonnull(s);
    *s = (struct mstx_lane_span){
        .start = start, .end = end, .length = end - start, .place = place(name, MSTX_PLACE_RANGE)};
    if (l->bit.n != 0 && l->bit.p[l->bit.n - 1].start == start)
        l->bit.n--;
    struct mstx_bit *b = ms_vec_push(&l->bit);
    ck_assert_ptr_nonnull(b);
    *b = (struct mstx_bit){start, (uint32_t)(l->span.n - 1)};
    b = ms_vec_push(&l->bit);
    ck_assert_ptr_nonnull(b);
    *b = (struct mstx_bit){end, MSTX_NO_SPAN};
    return s;
}

/* Adds a kernel; launched by a span of the first lane, or -1. */
static void add_kernel(int64_t start, int64_t end, const char *name, int64_t call, uint32_t before)
{
    struct mstx_device_span *d = ms_vec_push(&set.device);
    ck_assert_ptr_nonnull(d);
    *d = (struct mstx_device_span){.start = start,
                                   .end = end,
                                   .before = before,
                                   .place = place(name, MSTX_PLACE_KERNEL),
                                   .lane = call >= 0 ? 0 : -1,
                                   .call = call >= 0 ? (uint32_t)call : 0};
    set.has_launches |= call >= 0;
}

static void walk(int64_t from, int64_t to)
{
    struct mstx_walk w = {.to = &trail, .places = &places, .lanes = &set, .gap = gap};
    ck_assert(mstx__trail_walk(&w, 0, from, to));
    int64_t sum = 0;
    for (size_t i = 0; i < trail.part.n; i++)
        sum += trail.part.p[i].ns;
    ck_assert_int_eq(sum, to - from); /* whatever is on it, it has no gaps */
}

static int64_t time_at(uint32_t where)
{
    int64_t sum = 0;
    for (size_t i = 0; i < trail.part.n; i++)
        sum += trail.part.p[i].place == where ? trail.part.p[i].ns : 0;
    return sum;
}

static int64_t range_time(const char *name)
{
    return time_at(place(name, MSTX_PLACE_RANGE));
}

static int64_t kernel_time(const char *name)
{
    return time_at(place(name, MSTX_PLACE_KERNEL));
}

static int64_t gap_time(const char *name)
{
    return time_at(
        mstx__places_child(&places, place(name, MSTX_PLACE_KERNEL), gap, MSTX_PLACE_GAP));
}

START_TEST(a_thread_alone_is_its_innermost_spans)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 100, 300, "load");
    add_span(l, 400, 900, "forward");
    walk(50, 1000);
    ck_assert_int_eq(range_time("load"), 200);
    ck_assert_int_eq(range_time("forward"), 500);
    ck_assert_int_eq(time_at(MSTX_ROOT), 50 + 100 + 100);
}
END_TEST

START_TEST(a_step_that_begins_within_a_span_has_the_rest_of_it)
{
    add_span(add_lane(), 0, 1000, "forward");
    walk(600, 700);
    ck_assert_int_eq(range_time("forward"), 100);
    ck_assert_uint_eq(trail.part.n, 1);
}
END_TEST

START_TEST(a_wait_goes_on_at_the_kernel_and_its_launch)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 10000, "prepare");
    add_span(l, 10000, 11000, "launch");
    add_span(l, 11000, 60000, "synchronize")->waits = true;
    add_kernel(20000, 59000, "gemm", 1, MSTX_NO_SPAN);
    walk(0, 60000);
    ck_assert_int_eq(range_time("synchronize"), 1000); /* after the kernel */
    ck_assert_int_eq(kernel_time("gemm"), 39000);
    ck_assert_int_eq(gap_time("gemm"), 9000); /* it was launched at 11000 */
    ck_assert_int_eq(range_time("launch"), 1000);
    ck_assert_int_eq(range_time("prepare"), 10000);
}
END_TEST

START_TEST(kernels_behind_each_other_are_all_waited_for)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 1000, "launch");
    add_span(l, 1000, 2000, "launch again");
    add_span(l, 2000, 50000, "synchronize")->waits = true;
    add_kernel(3000, 30000, "first", 0, MSTX_NO_SPAN);
    add_kernel(30500, 49000, "second", 1, 0);
    walk(0, 50000);
    ck_assert_int_eq(kernel_time("second"), 18500);
    ck_assert_int_eq(gap_time("second"), 500);
    ck_assert_int_eq(kernel_time("first"), 27000);
    ck_assert_int_eq(gap_time("first"), 2000);
    ck_assert_int_eq(range_time("launch"), 1000);
    ck_assert_int_eq(range_time("launch again"), 0); /* the device was busy: nobody waited for it */
}
END_TEST

START_TEST(a_kernel_waits_for_another_stream)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 1000, "launch");
    add_span(l, 1000, 90000, "synchronize")->waits = true;
    add_kernel(2000, 60000, "send", 0, MSTX_NO_SPAN);
    add_kernel(61000, 88000, "use", 0, MSTX_NO_SPAN);
    walk(0, 90000);
    ck_assert_int_eq(kernel_time("use"), 27000);
    ck_assert_int_eq(gap_time("use"), 1000);
    ck_assert_int_eq(kernel_time("send"), 58000);
}
END_TEST

START_TEST(a_kernel_that_nothing_waits_for_costs_nothing)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 1000, "launch");
    add_span(l, 1000, 50000, "work");
    add_kernel(2000, 49000, "side", 0, MSTX_NO_SPAN);
    walk(0, 50000);
    ck_assert_int_eq(kernel_time("side"), 0);
    ck_assert_int_eq(range_time("work"), 49000);
}
END_TEST

START_TEST(a_call_that_copies_waits_for_its_own_copy)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 1000, "work");
    add_span(l, 1000, 30000, "memcpy")->link = 7;
    add_kernel(2000, 29500, "copy", 1, MSTX_NO_SPAN);
    set.device.p[0].link = 7;
    walk(0, 30000);
    ck_assert_int_eq(kernel_time("copy"), 27500);
    ck_assert_int_eq(range_time("memcpy"), 500 + 1000); /* after it, and until it began */
}
END_TEST

START_TEST(another_thread_works_while_this_one_stands_in_a_range)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 1000, "backward")->holds = true;
    l = add_lane();
    add_span(l, 200, 500, "mm");
    add_span(l, 700, 900, "add");
    set.is_profile = true;
    walk(0, 1000);
    ck_assert_int_eq(range_time("mm"), 300);
    ck_assert_int_eq(range_time("add"), 200);
    ck_assert_int_eq(range_time("backward"), 500);
}
END_TEST

START_TEST(a_capture_does_not_look_at_other_threads)
{
    add_span(add_lane(), 0, 1000, "backward")->holds = true;
    add_span(add_lane(), 200, 500, "mm");
    walk(0, 1000);
    ck_assert_int_eq(range_time("mm"), 0);
}
END_TEST

START_TEST(streams_without_launches_fill_what_threads_leave)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 1000, "forward");
    add_span(l, 3000, 4000, "optimizer");
    add_kernel(500, 800, "early", -1, MSTX_NO_SPAN);
    add_kernel(1500, 2500, "reduce", -1, 0);
    add_kernel(2900, 3500, "gather", -1, 1);
    walk(0, 4000);
    ck_assert_int_eq(kernel_time("early"), 0);
    ck_assert_int_eq(kernel_time("reduce"), 1000);
    ck_assert_int_eq(kernel_time("gather"), 100); /* as long as the thread did nothing */
    ck_assert_int_eq(range_time("forward"), 1000);
    ck_assert_int_eq(time_at(MSTX_ROOT), 500 + 400);
}
END_TEST

START_TEST(time_for_which_a_thread_waited_for_a_cpu_is_left_out)
{
    struct mstx_lane *l = add_lane();
    add_span(l, 0, 1000, "forward");
    const struct mstx_delay samples[] = {{0, 50}, {500, 50}, {1000, 350}};
    for (size_t i = 0; i < 3; i++) {
        struct mstx_delay *slot = ms_vec_push(&l->delay);
        ck_assert_ptr_nonnull(slot);
        *slot = samples[i];
    }
    ck_assert_int_eq(mstx__lane_delay(l, 0, 1000), 300);
    ck_assert_int_eq(mstx__lane_delay(l, 0, 500), 0);
    ck_assert_int_eq(mstx__lane_delay(l, 750, 1000), 150);
    ck_assert_int_eq(mstx__lane_delay(l, -100, 0), 0);
    ck_assert_int_eq(mstx__lane_delay(l, 1000, 2000), 0);
    struct mstx_walk w = {.to = &trail, .places = &places, .lanes = &set, .gap = gap};
    ck_assert(mstx__trail_walk(&w, 0, 0, 1000));
    ck_assert_int_eq(range_time("forward"), 700);
}
END_TEST

START_TEST(parts_are_sorted_by_place_and_keep_their_order)
{
    const uint32_t a = place("a", MSTX_PLACE_RANGE), b = place("b", MSTX_PLACE_RANGE);
    const struct mstx_trail_part parts[] = {{b, 0, 1}, {a, 0, 2}, {b, 0, 3}, {a, 1, 4}, {b, 1, 5}};
    for (size_t i = 0; i < 5; i++) {
        struct mstx_trail_part *slot = ms_vec_push(&trail.part);
        ck_assert_ptr_nonnull(slot);
        *slot = parts[i];
    }
    ck_assert(mstx__trail_sort(&trail, places.list.n));
    static const int64_t sorted[] = {2, 4, 1, 3, 5};
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(trail.part.p[i].ns, sorted[i]);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "trail", a_thread_alone_is_its_innermost_spans,
                 a_step_that_begins_within_a_span_has_the_rest_of_it,
                 a_wait_goes_on_at_the_kernel_and_its_launch,
                 kernels_behind_each_other_are_all_waited_for, a_kernel_waits_for_another_stream,
                 a_kernel_that_nothing_waits_for_costs_nothing,
                 a_call_that_copies_waits_for_its_own_copy,
                 another_thread_works_while_this_one_stands_in_a_range,
                 a_capture_does_not_look_at_other_threads,
                 streams_without_launches_fill_what_threads_leave,
                 time_for_which_a_thread_waited_for_a_cpu_is_left_out,
                 parts_are_sorted_by_place_and_keep_their_order)
