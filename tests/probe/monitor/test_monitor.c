/* SPDX-License-Identifier: MIT
 *
 * Figures, lines and alarms of the monitor, with values worked out by hand. Whether the files are those of the
 * official monitor asks tests/suites/suite_monitor.sh.
 */
#include "probe/monitor/monitor.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <math.h>

static char dir[64], csv[128];
static struct probe_monitor_settings *settings;
static struct probe_monitor *monitor;

static void begin(const char *config)
{
    static const int64_t mates[] = {0, 1};
    struct ms_err err = {0};
    scratch_dir(dir);
    snprintf(csv, sizeof csv, "%s/csv", dir);
    ck_ok(probe_monitor_settings_parse(&settings, "config.json", ms_str_of(config), &err), err);
    const struct probe_monitor_conf conf = {
        .settings = settings, .dir = csv, .base = dir, .rank = 1, .mates = mates, .nmates = 2};
    ck_ok(probe_monitor_open(&monitor, &conf, &err), err);
}

static void end(void)
{
    probe_monitor_close(monitor);
    probe_monitor_settings_free(settings);
    scratch_remove(dir);
}

static struct probe_tensor tensor(enum ms_dtype dtype, const void *p, uint64_t n)
{
    return (struct probe_tensor){.dtype = dtype,
                                 .ndim = 1,
                                 .shape = {n},
                                 .stride = {1},
                                 .count = n,
                                 .data = p,
                                 .contiguous = true};
}

static void put(enum probe_mon_metric metric, uint32_t group, const char *name, enum ms_dtype dtype,
                const void *p, uint64_t n)
{
    struct ms_err err = {0};
    const struct probe_tensor t = tensor(dtype, p, n);
    ck_ok(probe_monitor_put(monitor, metric, group, ms_str_of(name), &t, "torch.x", &err), err);
}

static void flush(enum probe_mon_metric metric, int64_t step, bool with_micro)
{
    struct ms_err err = {0};
    ck_ok(probe_monitor_flush(monitor, metric, step, with_micro, false, &err), err);
}

static void has_text(const char *name, const char *text)
{
    char path[256];
    struct ms_file file;
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_ok(ms_file_map(&file, path, 1 << 20, &err), err);
    ck_assert_msg(file.n == strlen(text) && memcmp(file.p, text, file.n) == 0,
                  "expected:\n%s\nfound:\n%.*s", text, (int)file.n, file.p);
    ms_file_unmap(&file);
}

START_TEST(figures_are_those_of_the_elements)
{
    static const float v[] = {3, -4, 1e-9F, 0};
    struct probe_mon_row row;
    const struct probe_tensor t = tensor(MS_DT_F32, v, 4);
    probe_monitor_figures(&row, &t, "torch.float32", UINT32_MAX, 1e-8);
    ck_assert_double_eq(row.figures[PROBE_MON_MIN], -4);
    ck_assert_double_eq(row.figures[PROBE_MON_MAX], 3);
    ck_assert_double_eq_tol(row.figures[PROBE_MON_NORM], 5, 1e-12);
    ck_assert_double_eq_tol(row.figures[PROBE_MON_MEAN], -0.25, 1e-9);
    ck_assert_double_eq(row.figures[PROBE_MON_ZEROS], 0.5);
    ck_assert_double_eq(row.figures[PROBE_MON_NANS], 0);
}
END_TEST

START_TEST(a_nan_is_in_all_figures_but_the_counts)
{
    static const float v[] = {1, NAN, 0};
    struct probe_mon_row row;
    const struct probe_tensor t = tensor(MS_DT_F32, v, 3);
    probe_monitor_figures(&row, &t, "torch.float32", UINT32_MAX, 1e-8);
    ck_assert(isnan(row.figures[PROBE_MON_MIN]) && isnan(row.figures[PROBE_MON_NORM]));
    ck_assert(isnan(row.figures[PROBE_MON_MAX]) && isnan(row.figures[PROBE_MON_MEAN]));
    ck_assert_double_eq(row.figures[PROBE_MON_NANS], 1);
    ck_assert_double_eq(row.figures[PROBE_MON_ZEROS], (float)1 / (float)3);
}
END_TEST

START_TEST(an_empty_tensor_has_a_norm_and_no_order)
{
    struct probe_mon_row row;
    const struct probe_tensor t = tensor(MS_DT_I64, NULL, 0);
    probe_monitor_figures(&row, &t, "torch.int64", UINT32_MAX, 1e-8);
    ck_assert(isnan(row.figures[PROBE_MON_MIN]) && isnan(row.figures[PROBE_MON_ZEROS]));
    ck_assert_double_eq(row.figures[PROBE_MON_NORM], 0);
    ck_assert_int_eq(row.kind, PROBE_MON_FLOATS);
}
END_TEST

START_TEST(half_precision_knows_no_eps_of_1e_8)
{
    static const uint16_t v[] = {0, 0x3c00};
    struct probe_mon_row row;
    const struct probe_tensor t = tensor(MS_DT_F16, v, 2);
    probe_monitor_figures(&row, &t, "torch.float16", UINT32_MAX, 1e-8);
    ck_assert_double_eq(row.figures[PROBE_MON_ZEROS], 0); /* as in PyTorch, where eps becomes 0 */
}
END_TEST

START_TEST(columns_are_written_as_pandas_does)
{
    static const float f[] = {1.23456789F, 2.5F};
    static const int64_t i[] = {3, 7};
    static const uint8_t b[] = {0, 1};
    begin("{\"ops\": [\"max\", \"nans\"], \"step_count_per_record\": 2}");
    put(PROBE_MON_ACTV, 0, "0:a:0", MS_DT_I64, i, 2);
    put(PROBE_MON_ACTV, 1, "0:b:0", MS_DT_I64, i, 2);
    put(PROBE_MON_ACTV, 1, "0:c:0", MS_DT_F32, f, 1);
    put(PROBE_MON_ACTV, 2, "0:d:0", MS_DT_BOOL, b, 2);
    put(PROBE_MON_ACTV, 0, "0:a:1", MS_DT_I64, i, 1);
    flush(PROBE_MON_ACTV, 1, true);
    put(PROBE_MON_ACTV, 1, "0:b:0", MS_DT_F32, f, 2);
    flush(PROBE_MON_ACTV, 1, true);
    has_text("csv/actv_0-1.csv", "vpp_stage,name,step,micro_step,max,nans,shape,dtype\n"
                                 "0,a,1,0,7,0,[2],torch.x\n"
                                 "0,a,1,1,3,0,[1],torch.x\n"
                                 "0,b,1,0,7.0,0,[2],torch.x\n"
                                 "0,c,1,0,1.234568,0,[1],torch.x\n"
                                 "0,d,1,0,True,0,[2],torch.x\n"
                                 "0,b,1,0,2.5,0,[2],torch.x\n");
    end();
}
END_TEST

START_TEST(tensors_of_mindspore_have_numbers_and_tuples)
{
    struct ms_err err = {0};
    static const int64_t i[] = {3, 7};
    const struct probe_tensor one = tensor(MS_DT_I64, i, 2);
    struct probe_tensor none = tensor(MS_DT_I64, i, 1), two = one;
    none.ndim = 0;
    two.ndim = 2;
    two.shape[1] = two.stride[1] = 1;
    begin("{\"ops\": [\"max\", \"nans\"]}");
    ck_ok(probe_monitor_put(monitor, PROBE_MON_PARAM_ORIGIN, 0, MS_STR("0:a"), &one, "Int64", &err),
          err);
    ck_ok(probe_monitor_put(monitor, PROBE_MON_PARAM_ORIGIN, 0, MS_STR("0:b"), &two, "Int64", &err),
          err);
    ck_ok(
        probe_monitor_put(monitor, PROBE_MON_PARAM_ORIGIN, 0, MS_STR("0:c"), &none, "Int64", &err),
        err);
    flush(PROBE_MON_PARAM_ORIGIN, 0, false);
    has_text("csv/param_origin_0-0.csv", "vpp_stage,name,step,max,nans,shape,dtype\n"
                                         "0,a,0,7.0,0.0,\"(2,)\",Int64\n"
                                         "0,b,0,7.0,0.0,\"(2, 1)\",Int64\n"
                                         "0,c,0,3.0,0.0,(),Int64\n");
    end();
}
END_TEST

START_TEST(what_is_no_tensor_has_a_line_of_nan)
{
    struct ms_err err = {0};
    static const float f[] = {1};
    begin("{\"ops\": [\"nans\"]}");
    ck_ok(probe_monitor_put(monitor, PROBE_MON_ACTV_GRAD, 0, MS_STR("0:a, b:0"), NULL, "", &err),
          err);
    put(PROBE_MON_ACTV_GRAD, 0, "0:c:0", MS_DT_F32, f, 1);
    flush(PROBE_MON_ACTV_GRAD, 4, true);
    has_text("csv/actv_grad_4-4.csv", "vpp_stage,name,step,micro_step,nans,shape,dtype\n"
                                      "0,\"a, b\",4,0,nan,nan,nan\n"
                                      "0,c,4,0,0.0,[1],torch.x\n");
    end();
}
END_TEST

START_TEST(a_series_without_figures_in_a_step_has_no_line)
{
    static const float f[] = {1};
    begin("{\"ops\": [\"max\"], \"step_count_per_record\": 10}");
    put(PROBE_MON_GRAD_REDUCED, 0, "0:a", MS_DT_F32, f, 1);
    put(PROBE_MON_GRAD_REDUCED, 0, "0:b", MS_DT_F32, f, 1);
    flush(PROBE_MON_GRAD_REDUCED, 0, false);
    put(PROBE_MON_GRAD_REDUCED, 0, "0:b", MS_DT_F32, f, 1);
    flush(PROBE_MON_GRAD_REDUCED, 1, false);
    has_text("csv/grad_reduced_0-9.csv", "vpp_stage,name,step,max,shape,dtype\n"
                                         "0,a,0,1.0,[1],torch.x\n"
                                         "0,b,0,1.0,[1],torch.x\n"
                                         "0,b,1,1.0,[1],torch.x\n");
    end();
}
END_TEST

static uint32_t step_with(float v, int64_t step)
{
    uint32_t alarms;
    struct ms_err err = {0};
    put(PROBE_MON_GRAD_REDUCED, 0, "2:fc.weight", MS_DT_F32, &v, 1);
    flush(PROBE_MON_GRAD_REDUCED, step, false);
    ck_ok(probe_monitor_step_end(monitor, &alarms, &err), err);
    return alarms;
}

START_TEST(alarms_are_a_whole_json_after_each_step)
{
    begin("{\"ops\": [\"norm\"], \"alert\": {\"dump\": true, \"rules\": [{\"rule_name\": "
          "\"AnomalyNan\"},"
          "{\"rule_name\": \"AnomalyTurbulence\", \"args\": {\"threshold\": 0.5}}]}}");
    has_text("anomaly_detected/rank1/anomaly.json", "{}");
    ck_assert_uint_eq(step_with(1, 0), 0);
    ck_assert_uint_eq(step_with(2, 1), 1);
#define FIRST                                                                                      \
    "{\n \"2:fc.weight/rank1/post_grad_step_1_call_0\": {\n  \"rank\": 1,\n  \"step\": 1,\n"       \
    "  \"micro_step\": 0,\n  \"pp_stage\": 0,\n  \"vpp_stage\": 2,\n  \"call_id\": 0,\n"           \
    "  \"tag_name\": \"2:fc.weight/rank1/post_grad\",\n"                                           \
    "  \"message\": \"Rule AnomalyTurbulence reports anomaly signal in "                           \
    "('2:fc.weight/rank1/post_grad', 'norm') at step 1, current value 2.0, history mean 1.0.\",\n" \
    "  \"group_mates\": [\n   0,\n   1\n  ]\n }"
    has_text("anomaly_detected/rank1/anomaly.json", FIRST "\n}");
    ck_assert_uint_eq(step_with(NAN, 2), 1);
    ck_assert_uint_eq(step_with(1, 3), 0); /* a NaN is no history */
    ck_assert_uint_eq(step_with(2, 4), 1);
    end();
}
END_TEST

START_TEST(without_memory_it_fails_cleanly)
{
    static const float f[] = {1, 2};
    for (uint64_t n = 1;; n++) {
        struct ms_err err = {0};
        const struct probe_tensor t = tensor(MS_DT_F32, f, 2);
        const size_t live = ms_mem_live();
        uint32_t alarms;
        begin("{\"alert\": {\"dump\": true, \"rules\": [{\"rule_name\": \"AnomalyNan\", \"args\": "
              "{\"threshold\": 0.5}}]}}");
        ms_mem_fail_at(n);
        enum ms_rc rc =
            probe_monitor_put(monitor, PROBE_MON_ACTV, 0, MS_STR("0:a:0"), &t, "x", &err);
        if (rc == MS_OK)
            rc = probe_monitor_flush(monitor, PROBE_MON_ACTV, 0, true, false, &err);
        if (rc == MS_OK)
            rc = probe_monitor_step_end(monitor, &alarms, &err);
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        end();
        ck_assert_uint_eq(ms_mem_live(), live);
        ck_assert_msg(rc == MS_OK || rc == MS_E_NOMEM, "allocation %u: %s", (unsigned)n, err.msg);
        if (!failed)
            break;
    }
}
END_TEST

START_TEST(a_mistake_is_named_with_its_place)
{
    static const char *const cases[][2] = {
        {"{\"ops\": [\"nrom\"]}", "ops[0]: expected one of"},
        {"{\"targets\": [1]}", "targets: expected an object of names"},
        {"{\"targets\": {\"fc\": 1}}", "fc: expected an object"},
        {"{\"eps\": -1}", "eps: expected a number that is not negative"},
        {"{\"module_ranks\": [-1]}", "module_ranks[0]: expected a number from 0"},
        {"{\"alert\": {\"rules\": [{}]}}", "alert.rules[0]: expected a rule_name"},
        {"{\"append_output\": [\"a\"]}", "append_output: expected no times or two"},
        {"{\"cc_distribution\": {\"enable\": 1}}",
         "cc_distribution.enable: expected true or false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct probe_monitor_settings *s;
        struct ms_err err = {0};
        ck_assert_int_eq(
            probe_monitor_settings_parse(&s, "config.json", ms_str_of(cases[i][0]), &err),
            MS_E_FORMAT);
        ck_says(err, cases[i][1]);
        ck_says(err, "config.json: line 1");
    }
}
END_TEST

TEST_MAIN("monitor", figures_are_those_of_the_elements, a_nan_is_in_all_figures_but_the_counts,
          an_empty_tensor_has_a_norm_and_no_order, half_precision_knows_no_eps_of_1e_8,
          columns_are_written_as_pandas_does, tensors_of_mindspore_have_numbers_and_tuples,
          what_is_no_tensor_has_a_line_of_nan, a_series_without_figures_in_a_step_has_no_line,
          alarms_are_a_whole_json_after_each_step, without_memory_it_fails_cleanly,
          a_mistake_is_named_with_its_place)
