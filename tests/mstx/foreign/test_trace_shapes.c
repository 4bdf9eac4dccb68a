/* SPDX-License-Identifier: MIT
 *
 * Shapes of events: what is learned from one event reads others, digit by digit; what differs otherwise is
 * left alone.
 */
#include "mstx/foreign/trace_item_fast.h"
#include "mstx/foreign/trace_shapes.h"
#include "mstx/foreign/trace_text.h"
#include "tests/support/check.h"

#include "probe/base/mem.h"

static const char kernel[] =
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7,\n"
    "  \"ts\": 1000.5, \"dur\": 3.25, \"args\": {\"device\": 0, \"stream\": 7,\n"
    "    \"correlation\": 12, \"blocks\": 0.59, \"grid\": [64, 1], \"x1\": \"a2\"}}";

static struct mstx_trace_json json;
static struct mstx_trace_shapes shapes;
static char text[1024];

static void begin(void)
{
    json = (struct mstx_trace_json){.args = {.max = 1 << 16}, .arena = ms_arena_new(1 << 20)};
    shapes = (struct mstx_trace_shapes){.arena = json.arena};
    ck_assert_ptr_nonnull(json.arena);
}

static void end(void)
{
    ms_buf_free(&json.args);
    ms_arena_free(json.arena);
}

static const char *put(const char *event)
{
    memset(text, 0, sizeof text);
    ck_assert(strlen(event) + MSTX_TRACE_TEXT_PAD < sizeof text);
    memcpy(text, event, strlen(event));
    return text + strlen(event);
}

static uint32_t learn(const char *event, uint32_t runs)
{
    struct mstx_trace_item it;
    const char *after = put(event);
    const struct mstx_args_form form = {runs != 0 ? 5 : MSTX_TEXT_FORMLESS, runs};
    ck_assert_ptr_eq(mstx__trace_item_fast(&json, &it, text, after), after);
    if (mstx__trace_shapes_wants(&shapes, &it))
        mstx__trace_shapes_learn(&shapes, &it, &form, text, after);
    return shapes.shapes;
}

/* Reads the kernel with one part of its text replaced. */
static bool read_with(const char *old, const char *new, struct mstx_trace_item *it)
{
    char event[512];
    const char *at = strstr(kernel, old);
    ck_assert_ptr_nonnull(at);
    snprintf(event, sizeof event, "%.*s%s%s", (int)(at - kernel), kernel, new, at + strlen(old));
    const char *after = put(event);
    const char *got = mstx__trace_shapes_read(&shapes, it, text, after);
    ck_assert(got == NULL || got == after);
    return got != NULL;
}

START_TEST(an_event_of_the_shape_is_read_with_its_numbers)
{
    struct mstx_trace_item it;
    begin();
    ck_assert_uint_eq(learn(kernel, 9), 1);
    ck_assert(read_with("1000.5, \"dur\": 3.25", "20000000001.04219, \"dur\": 0.7", &it));
    ck_assert_int_eq(it.ts, 20000000001042);
    ck_assert_int_eq(it.dur, 700);
    ck_assert(ms_str_is(it.category, "kernel") && ms_str_is(it.phase, "X") && it.has_ts);
    ck_assert(read_with("12, \"bl", "123456789012, \"bl", &it));
    ck_assert_int_eq(it.correlation, 123456789012);
    ck_assert_int_eq(it.stream, 7);
    ck_assert_uint_eq(it.args_form, 5);
    ck_assert_uint_eq(it.args_runs[2].value, 123456789012);
    ck_assert_uint_eq(it.args_runs[4].value, 59);
    ck_assert(read_with("0.59", "0.0590", &it));
    ck_assert_uint_eq(it.args_runs[4].value, UINT64_MAX);
    ck_assert(ms_str_is(it.args_runs[4].digits, "0590"));
    ck_assert(read_with("gemm", "another name, 3 times", &it));
    ck_assert(ms_str_is(it.name, "another name, 3 times"));
    ck_assert(read_with("\"pid\": 0", "\"pid\": 4242", &it));
    ck_assert(ms_str_is(it.pid, "4242"));
    end();
}
END_TEST

START_TEST(what_differs_otherwise_is_left_alone)
{
    static const char *const other[][2] = {{"stream", "Stream"},
                                           {"12,", "12.0,"},
                                           {"12,", "012,"},
                                           {"12,", "-12,"},
                                           {"gemm", "ge\\nmm"},
                                           {"1000.5", "1000"},
                                           {"1000.5", "\"1\""},
                                           {"[64, 1]", "[64, 1, 1]"},
                                           {"\"X\"", "\"B\""},
                                           {"}}", "}"},
                                           {"7,\n  \"ts", "7, \"ts"},
                                           {"1000.5", "1234567890123456.5"},
                                           {"12,", "1234567890123456789,"}};
    struct mstx_trace_item it;
    begin();
    ck_assert_uint_eq(learn(kernel, 9), 1);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        ck_assert_msg(!read_with(other[i][0], other[i][1], &it), "%s", other[i][1]);
    end();
}
END_TEST

/* Shapes that begin alike are told apart where they differ, a minus included. */
START_TEST(several_shapes_are_known_at_once)
{
    struct mstx_trace_item it;
    begin();
    learn(kernel, 9);
    ck_assert(!read_with("12,", "-12,", &it));
    ck_assert_uint_eq(learn("{\"ph\":\"s\",\"id\":-5,\"pid\":\"a\",\"tid\":2,\"ts\":4,\"cat\":"
                            "\"ac2g\",\"name\":\"n\"}",
                            0),
                      2);
    const char *after = put("{\"ph\":\"s\",\"id\":-61,\"pid\":\"a\",\"tid\":3,\"ts\":9,\"cat\":"
                            "\"ac2g\",\"name\":\"m\"}");
    ck_assert_ptr_eq(mstx__trace_shapes_read(&shapes, &it, text, after), after);
    ck_assert(ms_str_is(it.id, "-61") && ms_str_is(it.pid, "a") && ms_str_is(it.category, "ac2g"));
    ck_assert_int_eq(it.ts, 9000);
    ck_assert_uint_eq(it.args_form, MSTX_TEXT_FORMLESS);
    ck_assert(read_with("gemm", "other", &it));
    ck_assert_int_eq(it.correlation, 12);
    end();
}
END_TEST

START_TEST(events_that_say_more_are_not_learned)
{
    begin();
    ck_assert_uint_eq(learn("{\"ph\":\"C\",\"name\":\"c\",\"ts\":1,\"args\":{\"v\": 3}}", 1), 0);
    ck_assert_uint_eq(
        learn("{\"ph\":\"X\",\"name\":\"c\",\"ts\":1,\"args\":{\"dtype\": \"Float\"}}", 0), 0);
    ck_assert_uint_eq(learn("{\"ph\":\"X\",\"name\":\"c\",\"ts\":1,\"args\":{\"v\": 3}}", 2), 0);
    ck_assert_uint_eq(learn("{\"ph\":\"X\",\"name\":\"c\",\"ts\":1,\"args\":{}}", 0), 1);
    end();
}
END_TEST

TEST_MAIN("trace_shapes", an_event_of_the_shape_is_read_with_its_numbers,
          what_differs_otherwise_is_left_alone, several_shapes_are_known_at_once,
          events_that_say_more_are_not_learned)
