/* SPDX-License-Identifier: MIT */
#include "probe/dump/census.h"

#include "probe/base/mem.h"
#include "probe/base/trace.h"

#include "tests/support/check.h"

static struct ms_err err;
static struct probe_dump *dump;
static struct probe_census census;

static void take(const char *text, struct ms_pool *pool)
{
    ms_err_clear(&err);
    ck_ok(probe_dump_parse(&dump, "d", ms_str_of(text), 0, NULL, &err), err);
    ck_ok(probe_census_take(&census, dump, pool, &err), err);
}

static void tear_down(void)
{
    probe_census_free(&census);
    probe_dump_close(dump);
}

#define TENSOR(dtype, shape, rest)                                                                 \
    "{\"type\": \"torch.Tensor\", \"dtype\": \"" dtype "\", \"shape\": " shape rest "}"

START_TEST(records_count_by_kind_direction_and_prefix)
{
    take("{\"data\": {\"Functional.a.0.forward\": {}, \"Functional.a.0.backward\": {}, "
         "\"Module.b.B.forward.0\": {}, \"Module.b.B.parameters_grad.0\": {}, "
         "\"x.0.debug\": null, \"strange\": {}, \"Tensor.add.0.forward\": {}}}",
         NULL);
    ck_assert_uint_eq(census.nodes[PROBE_NODE_API], 3);
    ck_assert_uint_eq(census.nodes[PROBE_NODE_MODULE], 1);
    ck_assert_uint_eq(census.nodes[PROBE_NODE_PGRAD], 1);
    ck_assert_uint_eq(census.nodes[PROBE_NODE_DEBUG], 1);
    ck_assert_uint_eq(census.nodes[PROBE_NODE_OTHER], 1);
    ck_assert_uint_eq(census.forward, 3);
    ck_assert_uint_eq(census.backward, 2);
    static const struct {
        const char *prefix;
        uint64_t n;
    } want[] = {{"Functional", 2}, {"Module", 2}, {"", 1}, {"strange", 1}, {"Tensor", 1}};
    ck_assert_uint_eq(census.prefix_nodes.n, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert(ms_str_is(ms_map_key(&census.prefixes, i), want[i].prefix));
        ck_assert_uint_eq(census.prefix_nodes.p[i], want[i].n);
    }
    tear_down();
}
END_TEST

START_TEST(leaves_count_by_what_they_are)
{
    take(
        "{\"data\": {\"F.a.0.forward\": {\"input_args\": [null, {\"type\": \"int\", \"value\": 1}, "
        "null, " TENSOR("torch.float32", "[2, 3]", "") ", " TENSOR(
            "torch.bfloat16", "[5]",
            "") ", " TENSOR("torch.float32", "[]",
                            ", \"data_name\": \"a.pt\"") ", " TENSOR("torch.int64", "[0, 7]",
                                                                     ", "
                                                                     "\"tensor_stat_index\": "
                                                                     "4") ", " TENSOR("odd", "[3]",
                                                                                      "") ", "
                                                                                          "{"
                                                                                          "\""
                                                                                          "ty"
                                                                                          "pe"
                                                                                          "\""
                                                                                          ": "
                                                                                          "\""
                                                                                          "to"
                                                                                          "rc"
                                                                                          "h."
                                                                                          "Pr"
                                                                                          "oc"
                                                                                          "es"
                                                                                          "sG"
                                                                                          "ro"
                                                                                          "up"
                                                                                          "\""
                                                                                          ", "
                                                                                          "\""
                                                                                          "gr"
                                                                                          "ou"
                                                                                          "p_"
                                                                                          "ra"
                                                                                          "nk"
                                                                                          "s"
                                                                                          "\""
                                                                                          ": "
                                                                                          "[]"
                                                                                          "}]"
                                                                                          "}}"
                                                                                          "}",
        NULL);
    ck_assert_uint_eq(census.tensors, 5);
    ck_assert_uint_eq(census.values, 2);
    ck_assert_uint_eq(census.nulls, 2);
    ck_assert_uint_eq(census.files, 1);
    ck_assert_uint_eq(census.unfinished, 1);
    ck_assert_uint_eq(census.of_dtype[MS_DT_F32], 2);
    ck_assert_uint_eq(census.of_dtype[MS_DT_BF16], 1);
    ck_assert_uint_eq(census.of_dtype[MS_DT_I64], 1);
    ck_assert_uint_eq(census.of_dtype[MS_DT_NONE], 1);
    ck_assert_uint_eq(census.tensor_bytes, 6 * 4 + 5 * 2 + 4);
    ck_assert_uint_eq(census.first_nan, MS_MAP_NONE);
    ck_assert_uint_eq(census.first_inf, MS_MAP_NONE);
    tear_down();
}
END_TEST

START_TEST(what_is_not_finite_is_counted_once_a_tensor)
{
    take(
        "{\"data\": {\"F.a.0.forward\": {\"input_args\": [" TENSOR("torch.int8", "[1]", ", \"Max\": 1, \"Min\": null") ", " TENSOR(
            "torch.float16", "[1]",
            ", \"Max\": Infinity, \"Norm\": Infinity") ", " TENSOR("torch.float16", "[1]",
                                                                   ", \"Max\": NaN, "
                                                                   "\"Min\": NaN, \"Mean\": "
                                                                   "-Infinity") ", "
                                                                                "{\"type\": "
                                                                                "\"float\", "
                                                                                "\"value\": "
                                                                                "NaN},"
                                                                                " " TENSOR(
                                                                                    "torch."
                                                                                    "float1"
                                                                                    "6",
                                                                                    "[1]",
                                                                                    ", "
                                                                                    "\"Mean"
                                                                                    "\": "
                                                                                    "NaN") "]}}}",
        NULL);
    ck_assert_uint_eq(census.nan_tensors, 2);
    ck_assert_uint_eq(census.first_nan, 2);
    ck_assert_uint_eq(census.inf_tensors, 1); /* the mean of the third overflows alone */
    ck_assert_uint_eq(census.first_inf, 1);
    tear_down();
}
END_TEST

START_TEST(sizes_beyond_64_bits_do_not_wrap)
{
    take("{\"data\": {\"F.a.0.forward\": {\"output\": [" TENSOR(
             "torch.int8", "[9223372036854775807]",
             "") ", " TENSOR("torch.int8", "[9223372036854775807]",
                             "") ", " TENSOR("torch.int8", "[2]",
                                             "") "]},"
                                                 "\"F.b.0.forward\": {\"output\": [" TENSOR(
                                                     "torch.int64", "[4294967296, 4294967296]",
                                                     "") "]}}}",
         NULL);
    ck_assert_uint_eq(census.tensor_bytes, UINT64_MAX);
    tear_down();
}
END_TEST

START_TEST(an_empty_dump_has_nothing)
{
    take("{\"data\": {}}", NULL);
    ck_assert_uint_eq(census.tensors + census.values + census.nulls + census.forward, 0);
    ck_assert_uint_eq(census.prefix_nodes.n, 0);
    tear_down();
}
END_TEST

/* Enough rows for several chunks, an odd one in each. */
static char *many_rows(unsigned n)
{
    struct ms_buf b = {.max = 1 << 26};
    ms_buf_puts(&b, "{\"data\": {\"F.a.0.forward\": {\"output\": [null");
    for (unsigned i = 1; i < n; i++) {
        const char *max = i == n / 2 ? "NaN" : i == n / 2 + 1 ? "-Infinity" : "0.5";
        ms_buf_printf(&b,
                      ", {\"type\": \"torch.Tensor\", \"dtype\": \"torch.%s\", \"shape\": [%u], "
                      "\"Max\": %s}",
                      i % 3 == 0 ? "float32" : "int8", i % 7, max);
    }
    ms_buf_puts(&b, "]}}}");
    ms_buf_z(&b);
    return b.p;
}

START_TEST(threads_do_not_change_the_figures)
{
    char *text = many_rows(60000);
    struct probe_census one;
    take(text, NULL);
    one = census;
    census = (struct probe_census){0};
    ck_assert_uint_eq(one.tensors, 59999);
    ck_assert_uint_eq(one.first_nan, 30000);
    ck_assert_uint_eq(one.first_inf, 30001);
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct ms_pool *pool;
        ck_ok(ms_pool_new(&pool, threads, &err), err);
        ck_ok(probe_census_take(&census, dump, pool, &err), err);
        ck_assert_int_eq(memcmp(census.nodes, one.nodes, sizeof one.nodes), 0);
        ck_assert_int_eq(memcmp(census.of_dtype, one.of_dtype, sizeof one.of_dtype), 0);
        ck_assert_uint_eq(census.tensors, one.tensors);
        ck_assert_uint_eq(census.nulls, 1);
        ck_assert_uint_eq(census.tensor_bytes, one.tensor_bytes);
        ck_assert_uint_eq(census.nan_tensors, 1);
        ck_assert_uint_eq(census.first_nan, one.first_nan);
        ck_assert_uint_eq(census.first_inf, one.first_inf);
        probe_census_free(&census);
        ms_pool_free(pool);
    }
    probe_census_free(&one);
    probe_dump_close(dump);
    ms_free(text);
}
END_TEST

START_TEST(every_failed_allocation_is_a_clean_error)
{
    ck_ok(
        probe_dump_parse(&dump, "d", MS_STR("{\"data\": {\"A.b.0.forward\": {}}}"), 0, NULL, &err),
        err);
    ms_trace_reset();
    size_t live = ms_mem_live();
    for (uint64_t n = 1;; n++) {
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_census_take(&census, dump, NULL, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (rc == MS_OK)
            probe_census_free(&census);
        else
            ck_assert_int_eq(rc, MS_E_NOMEM);
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed)
            break;
    }
    probe_dump_close(dump);
}
END_TEST

TEST_MAIN("census", records_count_by_kind_direction_and_prefix, leaves_count_by_what_they_are,
          what_is_not_finite_is_counted_once_a_tensor, sizes_beyond_64_bits_do_not_wrap,
          an_empty_dump_has_nothing, threads_do_not_change_the_figures,
          every_failed_allocation_is_a_clean_error)
