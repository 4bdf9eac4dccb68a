/* SPDX-License-Identifier: MIT
 *
 * Dumps and monitor files made here, converted, and asked in SQL.
 */
#include "probe/trend/trend.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"
#include "probe/base/trace.h"
#include "tests/support/check.h"

static char dir[64];

/* ---- making input ----------------------------------------------------- */

static void put_file(const char *path, const char *text)
{
    char full[256];
    struct ms_err err = {0};
    snprintf(full, sizeof full, "%s/%s", dir, path);
    char *slash = strrchr(full, '/');
    *slash = '\0';
    ck_ok(ms_mkdirs(full, &err), err);
    *slash = '/';
    write_file(full, text, strlen(text));
}

/* A tensor whose Norm, Max, Min and Mean are as given. */
#define STATS(norm, max, min, mean)                                                                \
    "\"shape\": [1], \"Norm\": " norm ", \"Max\": " max ", \"Min\": " min ", \"Mean\": " mean "}"
#define F32(norm)                                                                                  \
    "{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", " STATS(norm, "2.0", "1.0", "1.5")
#define TYPE(type, dtype)                                                                          \
    "{\"type\": \"" type "\", \"dtype\": \"" dtype "\", " STATS("9.0", "2.0", "1.0", "1.5")
#define DUMP(records)                                                                              \
    "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"pytorch\", "                  \
    "\"dump_data_dir\": null, \"data\": {" records "}}"

static struct probe_trended convert(struct probe_trend_conf conf, struct ms_err *err)
{
    char data[128], db[128];
    struct probe_trended done;
    snprintf(data, sizeof data, "%s/in", dir);
    snprintf(db, sizeof db, "%s/out", dir);
    conf.data = data;
    conf.db = db;
    ck_ok(probe_trend_convert(&done, &conf, NULL, err), *err);
    return done;
}

/* Rows of a query as "a|b/c|d/". */
static const char *ask(const char *name, const char *sql)
{
    static char out[4096];
    char path[128];
    struct ms_err err = {0};
    struct ms_store *s;
    struct ms_stmt *st;
    bool more;
    size_t at = 0;
    snprintf(path, sizeof path, "%s/out/%s", dir, name);
    ck_ok(ms_store_open(&s, path, &err), err);
    ck_ok(ms_store_prepare(s, &st, sql, &err), err);
    out[0] = '\0';
    for (;;) {
        ck_ok(ms_stmt_step(st, &more, &err), err);
        if (!more)
            break;
        for (int i = 0; i < ms_stmt_columns(st); i++)
            at += (size_t)snprintf(out + at, sizeof out - at, "%s%.*s", i == 0 ? "" : "|",
                                   MS_STR_ARG(ms_stmt_get_str(st, i)));
        at += (size_t)snprintf(out + at, sizeof out - at, "/");
    }
    ms_stmt_free(st);
    ms_store_close(s);
    return out;
}

#define DUMP_DB    "dump_data.trend.db"
#define MONITOR_DB "monitor_data.trend.db"
#define ROWS                                                                                       \
    "SELECT rank, step, target_name, micro_step, metric_name, norm FROM trend_data "               \
    "JOIN monitoring_targets USING (target_id) JOIN monitoring_metrics USING (metric_id) "         \
    "ORDER BY rank, step, metric_id, target_name, micro_step"

static void begin(void)
{
    scratch_dir(dir);
}
static void end(struct probe_trended *done)
{
    probe_trended_free(done);
    scratch_remove(dir);
}

/* ---- dumps ------------------------------------------------------------ */

START_TEST(names_of_records_become_targets_and_metrics)
{
    struct ms_err err = {0};
    begin();
    put_file(
        "in/step3/rank1/dump.json",
        DUMP("\"Functional.f.2.forward\": {\"input_args\": [" F32(
            "1.0") "], \"output\": [" F32("2.0") "]},"
                                                 "\"Functional.f.2.backward\": {\"input\": [" F32("3.0") "], \"output\": [null, " F32(
                                                     "4.0") "]},"
                                                            "\"Module.a.0.A.forward.5\": "
                                                            "{\"input_args\": [], \"output\": "
                                                            "[" F32(
                                                                "5.0") "],"
                                                                       " \"parameters\": "
                                                                       "{\"weight\": " F32("6.0") ", \"old\": [" F32("6.5") ", " F32(
                                                                           "6.6") "]}},"
                                                                                  "\"Module.a.0.A."
                                                                                  "parameters_grad."
                                                                                  "1\": "
                                                                                  "{\"weight\": "
                                                                                  "[" F32(
                                                                                      "7.0") "]},"
                                                                                             "\"Mod"
                                                                                             "ule."
                                                                                             "a.0."
                                                                                             "A."
                                                                                             "param"
                                                                                             "eters"
                                                                                             "_grad"
                                                                                             "\": "
                                                                                             "{\"bi"
                                                                                             "as\":"
                                                                                             " "
                                                                                             "[" F32(
                                                                                                 "8"
                                                                                                 "."
                                                                                                 "0") "]},"
                                                                                                      "\"Module.r.R.forward.0\": {\"input_args\": [" F32(
                                                                                                          "9.0") "], \"is_recompute\": true},"
                                                                                                                 "\"save.0.debug\": [" F32(
                                                                                                                     "10.0") "]"));
    struct probe_trended done = convert((struct probe_trend_conf){0}, &err);
    ck_assert_str_eq(ask(DUMP_DB, ROWS), "1|3|Functional.f.input.0|2|forward|1.0/"
                                         "1|3|Functional.f.output.0|2|forward|2.0/"
                                         "1|3|Module.a.0.A.output.0|5|forward|5.0/"
                                         "1|3|Module.a.0.A.parameters.old|5|forward|6.5/"
                                         "1|3|Module.a.0.A.parameters.weight|5|forward|6.0/"
                                         "1|3|Functional.f.input.0|2|backward|3.0/"
                                         "1|3|Functional.f.output.1|2|backward|4.0/"
                                         "1|3|Module.r.R.input.0|0|recompute|9.0/"
                                         "1|3|Module.a.0.A.bias|0|parameters_grad|8.0/"
                                         "1|3|Module.a.0.A.weight|1|parameters_grad|7.0/");
    ck_assert_str_eq(ask(DUMP_DB, "SELECT * FROM global_stats ORDER BY rowid DESC LIMIT 1"),
                     "1|3|3|norm,max,min,mean|norm,max,min,mean|norm,max,min,mean|"
                     "norm,max,min,mean/");
    ck_assert_uint_eq(done.dump.inputs, 1);
    end(&done);
}
END_TEST

START_TEST(only_direct_tensors_of_three_types_are_taken)
{
    struct ms_err err = {0};
    begin();
    put_file(
        "in/step0/rank0/dump.json",
        DUMP("\"Functional.f.0.forward\": {\"input_args\": [" TYPE("torch.Tensor", "torch.float16") "," TYPE("mindspore.Tensor", "BFloat16") "," TYPE(
            "torch.Tensor",
            "torch.float64") "," TYPE("torch.Tensor",
                                      "torch.int64") "," TYPE("numpy.ndarray",
                                                              "float32") ", [" F32("1.0") "], "
                                                                                          "{\"k\":"
                                                                                          " " F32(
                                                                                              "1.0") "},"
                                                                                                     "{\"type\": \"int\", "
                                                                                                     "\"value\": 3}, " TYPE(
                                                                                                         "mindtorch.Tensor",
                                                                                                         "Float32") "], "
                                                                                                                    "\"input_"
                                                                                                                    "kwargs\""
                                                                                                                    ": "
                                                                                                                    "{\"k\":"
                                                                                                                    " " F32(
                                                                                                                        "1.0") "}}"));
    struct probe_trended done = convert((struct probe_trend_conf){0}, &err);
    ck_assert_str_eq(ask(DUMP_DB, "SELECT target_name FROM monitoring_targets ORDER BY target_id"),
                     "Functional.f.input.0/Functional.f.input.1/Functional.f.input.8/");
    end(&done);
}
END_TEST

START_TEST(values_are_kept_within_what_the_viewer_draws)
{
    static const struct {
        const char *written, *stored;
    } cases[] = {
        {"1.5", "1.5"},
        {"Infinity", "1000000001.0"},
        {"-Infinity", "-1000000001.0"},
        {"2e9", "1000000000.0"},
        {"-1e10", "-1000000000.0"},
        {"NaN", ""},
        {"null", ""},
        {"true", "1.0"},
        {"\"x\"", ""},
        {"7", "7.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024], wanted[64];
        struct ms_err err = {0};
        begin();
        snprintf(text, sizeof text,
                 DUMP("\"Functional.f.0.forward\": {\"output\": [{\"type\": \"torch.Tensor\", "
                      "\"dtype\": \"torch.float32\", \"shape\": [], \"Max\": %s}]}"),
                 cases[i].written);
        put_file("in/step0/rank0/dump.json", text);
        struct probe_trended done = convert((struct probe_trend_conf){0}, &err);
        snprintf(wanted, sizeof wanted, "|%s|%s/", cases[i].stored,
                 cases[i].stored[0] == '\0' ? "null" : "real");
        ck_assert_str_eq(ask(DUMP_DB, "SELECT norm, max, typeof(max) FROM trend_data"), wanted);
        end(&done);
    }
}
END_TEST

static const char two_runs[] = DUMP("\"Functional.f.0.forward\": {\"output\": [" F32(
    "1.0") "]},"
           "\"Module.m.M.forward.0\": {\"output\": [" F32(
               "2.0") "]},"
                      "\"Functional.f.1.forward\": {\"output\": [" F32(
                          "3.0") "]},"
                                 "\"Module.m.M.forward.1\": {\"output\": [" F32(
                                     "4.0") "]},"
                                            "\"Functional.f.1.backward\": {\"output\": [" F32(
                                                "5.0") "]},"
                                                       "\"Module.m.M.parameters_grad.1\": "
                                                       "{\"weight\": [" F32(
                                                           "6.0") "]},"
                                                                  "\"Functional.loose.0.forward\": "
                                                                  "{\"output\": [" F32("7.0") "]}");
/* The second run is mentioned first, and listed last. */
static const char two_roots[] =
    "{\"Functional.f.1.forward\": \"Module.m.M.forward.1\","
    "\"Functional.f.0.forward\": \"Module.m.M.forward.0\", \"Module.m.M.forward.0\": null,"
    "\"Functional.f.1.backward\": null, \"Functional.loose.0.forward\": null,"
    "\"Module.m.M.forward.1\": null}";

START_TEST(each_run_of_the_model_is_a_micro_step)
{
    struct ms_err err = {0};
    begin();
    for (int step = 4; step < 6; step++) {
        char path[64];
        snprintf(path, sizeof path, "in/step%d/rank0/dump.json", step);
        put_file(path, two_runs);
        snprintf(path, sizeof path, "in/step%d/rank0/construct.json", step);
        put_file(path, two_roots);
    }
    struct probe_trended done = convert((struct probe_trend_conf){.micro_step = true}, &err);
    ck_assert_str_eq(ask(DUMP_DB, ROWS), "0|0|Functional.f.output.0|0|forward|1.0/"
                                         "0|0|Module.m.M.output.0|0|forward|2.0/"
                                         "0|1|Functional.f.output.0|0|forward|3.0/"
                                         "0|1|Module.m.M.output.0|0|forward|4.0/"
                                         "0|1|Functional.f.output.0|0|backward|5.0/"
                                         "0|1|Module.m.M.weight|1|parameters_grad|6.0/"
                                         "0|2|Functional.f.output.0|0|forward|1.0/"
                                         "0|2|Module.m.M.output.0|0|forward|2.0/"
                                         "0|3|Functional.f.output.0|0|forward|3.0/"
                                         "0|3|Module.m.M.output.0|0|forward|4.0/"
                                         "0|3|Functional.f.output.0|0|backward|5.0/"
                                         "0|3|Module.m.M.weight|1|parameters_grad|6.0/");
    ck_assert_str_eq(ask(DUMP_DB, "SELECT max_rank, min_step, max_step FROM global_stats"),
                     "0|0|3/");
    end(&done);
}
END_TEST

START_TEST(without_micro_steps_a_step_keeps_its_number)
{
    struct ms_err err = {0};
    begin();
    put_file("in/step4/rank0/dump.json", two_runs);
    put_file("in/step4/rank0/construct.json", two_roots);
    struct probe_trended done = convert((struct probe_trend_conf){0}, &err);
    ck_assert_str_eq(ask(DUMP_DB, "SELECT DISTINCT step FROM trend_data"), "4/");
    ck_assert_str_eq(ask(DUMP_DB, "SELECT target_name, micro_step FROM monitoring_targets "
                                  "WHERE target_name LIKE '%f.out%' ORDER BY 2"),
                     "Functional.f.output.0|0/Functional.f.output.0|1/");
    end(&done);
}
END_TEST

START_TEST(twins_that_lead_in_a_circle_end)
{
    struct ms_err err = {0};
    begin();
    put_file("in/step0/rank0/dump.json", two_runs);
    put_file("in/step0/rank0/construct.json",
             "{\"Functional.f.0.forward\": \"Module.x.X.backward.0\","
             "\"Module.x.X.forward.0\": \"Functional.f.0.backward\","
             "\"Module.m.M.forward.0\": null}");
    struct probe_trended done = convert((struct probe_trend_conf){.micro_step = true}, &err);
    ck_assert_str_eq(ask(DUMP_DB, "SELECT target_name FROM monitoring_targets ORDER BY 1"),
                     "Module.m.M.output.0/Module.m.M.weight/");
    end(&done);
}
END_TEST

START_TEST(names_are_mapped)
{
    struct ms_err err = {0};
    char mapping[128];
    begin();
    put_file(
        "in/step0/rank0/dump.json",
        DUMP("\"Module.layers.0.self_attention.Attn.forward.0\": {\"output\": [" F32("1.0") "]}"));
    put_file("map.json", "{\"self_attention\": \"attn\", \"layers.0.attn\": \"first\"}");
    snprintf(mapping, sizeof mapping, "%s/map.json", dir);
    struct probe_trended done = convert((struct probe_trend_conf){.mapping = mapping}, &err);
    ck_assert_str_eq(ask(DUMP_DB, "SELECT target_name FROM monitoring_targets"),
                     "Module.first.Attn.output.0/");
    end(&done);
}
END_TEST

START_TEST(a_mapping_must_be_texts)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "expected an object of names"},
        {"{\"a\": 1}", "expected a text that replaces"},
        {"{\"\": \"x\"}", "an empty name"},
        {"{\"a\": \"b\"", "the text ends"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char mapping[128];
        struct ms_err err = {0};
        struct probe_trended done;
        begin();
        put_file("map.json", cases[i].text);
        snprintf(mapping, sizeof mapping, "%s/map.json", dir);
        const struct probe_trend_conf conf = {.data = dir, .db = dir, .mapping = mapping};
        ck_assert_int_eq(probe_trend_convert(&done, &conf, NULL, &err), MS_E_FORMAT);
        ck_says(err, cases[i].says);
        ck_says(err, "map.json: line 1");
        scratch_remove(dir);
    }
}
END_TEST

#define TAGS                                                                                       \
    "SELECT tag_name, category FROM tag_target_mapping JOIN monitoring_tags USING (tag_id) "       \
    "ORDER BY 1, 2"

START_TEST(targets_of_dumps_have_tags)
{
    static const struct {
        const char *record, *tags;
    } cases[] = {
        {"Module.layers.0.fc.Linear.forward.0",
         "Module|default/fc.Linear|module/layers.0|layer/output.0|index/"},
        {"Module.a.b.layers.1.2.x.3.X.forward.0", "Module|default/X|module/a.b|module/"
                                                  "layers.1|layer/output.0|index/x.3|layer/"},
        {"Cell.0.1.A.forward.0", "A|module/Cell|default/output.0|index/"},
        {"Functional.linear.3.forward", "Functional.linear|function/output.0|index/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct ms_err err = {0};
        begin();
        snprintf(text, sizeof text, DUMP("\"%s\": {\"output\": [" F32("1.0") "]}"),
                 cases[i].record);
        put_file("in/step0/rank0/dump.json", text);
        struct probe_trended done = convert((struct probe_trend_conf){0}, &err);
        ck_assert_str_eq(ask(DUMP_DB, TAGS), cases[i].tags);
        end(&done);
    }
}
END_TEST

/* ---- monitor files ---------------------------------------------------- */

START_TEST(monitor_files_of_all_ranks_share_one_count_of_micro_steps)
{
    struct ms_err err = {0};
    begin();
    put_file("in/Aug14_10-21-07-rank0-1a2b3c4d/grad_reduced_5-6.csv",
             "vpp_stage,name,step,micro_step,norm,max,shape\n"
             "0,w,5,0,1.5,nan,\"[2, 3]\"\n0,w,6,0,2.5,inf,x\n0,w,6,1,3.5,,x\n");
    put_file("in/Aug14_10-21-07-rank2-1a2b3c4d/actv_5-6.csv",
             "vpp_stage,name,step,micro_step,mean\n1,layers.3.fc.input,5,2,4.5\n");
    put_file("in/Aug14_10-21-07-rank2-1a2b3c4d/stack_info.csv", "not,for,us\n");
    put_file("in/Aug14_10-21-07-rank2-1a2b3c4d/actv_5-6.csv.bak", "nor this\n");
    struct probe_trended done = convert((struct probe_trend_conf){.micro_step = true}, &err);
    ck_assert_str_eq(ask(MONITOR_DB,
                         "SELECT rank, step, target_name, vpp_stage, metric_name, norm, "
                         "max, mean FROM trend_data JOIN monitoring_targets USING "
                         "(target_id) JOIN monitoring_metrics USING (metric_id)"),
                     "0|0|w|0|grad_reduced|1.5||/0|3|w|0|grad_reduced|2.5|1000000001.0|/"
                     "0|4|w|0|grad_reduced|3.5||/2|2|layers.3.fc.input|1|actv|||4.5/");
    ck_assert_str_eq(ask(MONITOR_DB, "SELECT max_rank, min_step, max_step, actv, grad_reduced FROM "
                                     "global_stats"),
                     "2|0|4|mean|norm,max/");
    ck_assert_str_eq(ask(MONITOR_DB, TAGS),
                     "fc|module/input|module/layers|module/layers.3|layer/w|module/");
    ck_assert_uint_eq(done.monitor.inputs, 2);
    end(&done);
}
END_TEST

START_TEST(a_monitor_file_without_steps_counts_as_step_0)
{
    struct ms_err err = {0};
    begin();
    put_file("in/x-rank12-y/other_0-0.csv",
             "name,vpp_stage,norm\nloss,0,2\nloss,0,3\n,0,4\nz,q,5\n");
    struct probe_trended done =
        convert((struct probe_trend_conf){.from = PROBE_TREND_MONITOR}, &err);
    ck_assert_str_eq(ask(MONITOR_DB, ROWS), "12|0|loss|0|other|2.0/");
    end(&done);
}
END_TEST

static void count_note(void *ctx, const struct ms_err *why)
{
    unsigned *n = ctx;
    *n += why->rc != MS_OK;
}

START_TEST(what_cannot_be_read_is_noted_and_the_rest_converted)
{
    struct ms_err err = {0};
    unsigned notes = 0;
    begin();
    put_file("in/step0/rank0/dump.json", two_runs);
    put_file("in/step0/rank1/dump.json", "{\"data\": {");
    put_file("in/a-rank0-b/actv_0-1.csv", "vpp_stage,name,norm\n0,a,1\n");
    put_file("in/a-rank0-b/actv_2-3.csv", "vpp_stage,name,norm\n0,\"a,1\n");
    put_file("in/a-rank0-b/actv_4-5.csv", "vpp_stage,name,norm\n0,a,1,2\n");
    put_file("in/a-rank0-b/actv_6-7.csv", "name,norm\na,1\n");
    put_file("in/a-rank0-b/actv_8-9.csv", "");
    struct probe_trended done =
        convert((struct probe_trend_conf){.on_note = count_note, .ctx = &notes}, &err);
    ck_assert_uint_eq(notes, 5);
    ck_assert_uint_eq(done.dump.failed, 1);
    ck_assert_uint_eq(done.monitor.failed, 4);
    ck_assert_uint_eq(done.monitor.inputs, 1);
    ck_assert_str_eq(ask(MONITOR_DB, "SELECT count(*) FROM trend_data"), "1/");
    end(&done);
}
END_TEST

START_TEST(nothing_to_convert_is_an_error)
{
    struct ms_err err = {0};
    struct probe_trended done;
    char out[128];
    begin();
    snprintf(out, sizeof out, "%s/out", dir);
    for (int from = PROBE_TREND_AUTO; from <= PROBE_TREND_MONITOR; from++) {
        const struct probe_trend_conf conf = {
            .data = dir, .db = out, .from = (enum probe_trend_from)from};
        ms_err_clear(&err);
        ck_assert_int_eq(probe_trend_convert(&done, &conf, NULL, &err), MS_E_NOTFOUND);
        ck_says(err, dir);
    }
    const struct probe_trend_conf nowhere = {.data = "/nonexistent", .db = out};
    ms_err_clear(&err);
    ck_assert_int_eq(probe_trend_convert(&done, &nowhere, NULL, &err), MS_E_NOTFOUND);
    ck_assert_int_eq(ms_path_kind(out), MS_KIND_NONE);
    scratch_remove(dir);
}
END_TEST

START_TEST(without_memory_it_fails_cleanly_and_leaves_no_file)
{
    char in[128], out[128], file[160];
    struct ms_err err = {0};
    begin();
    put_file("in/step0/rank0/dump.json", two_runs);
    put_file("in/step0/rank0/construct.json", two_roots);
    put_file("in/a-rank0-b/actv_0-1.csv", "vpp_stage,name,norm\n0,\"a\"\"b\",1\n");
    snprintf(in, sizeof in, "%s/in", dir);
    snprintf(out, sizeof out, "%s/out", dir);
    snprintf(file, sizeof file, "%s/" MONITOR_DB, out);
    const struct probe_trend_conf conf = {.data = in, .db = out, .micro_step = true};
    /* A database is written to disk each time: not every later allocation has its turn. */
    for (uint64_t n = 1;; n += 1 + n / 16) {
        struct probe_trended done;
        ms_trace_reset();
        size_t live = ms_mem_live();
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        enum ms_rc rc = probe_trend_convert(&done, &conf, NULL, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (rc == MS_OK)
            probe_trended_free(&done);
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        /* Spans do without memory, and a directory listing then looks empty. */
        ck_assert_msg(rc == MS_OK || rc == MS_E_NOMEM || rc == MS_E_NOTFOUND, "allocation %u: %s",
                      (unsigned)n, err.msg);
        ck_assert(rc == MS_OK || ms_path_kind(file) == MS_KIND_NONE);
        ck_assert(failed || rc == MS_OK);
        unlink(file);
        if (!failed)
            break;
    }
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("trend", names_of_records_become_targets_and_metrics,
          only_direct_tensors_of_three_types_are_taken,
          values_are_kept_within_what_the_viewer_draws, each_run_of_the_model_is_a_micro_step,
          without_micro_steps_a_step_keeps_its_number, twins_that_lead_in_a_circle_end,
          names_are_mapped, a_mapping_must_be_texts, targets_of_dumps_have_tags,
          monitor_files_of_all_ranks_share_one_count_of_micro_steps,
          a_monitor_file_without_steps_counts_as_step_0,
          what_cannot_be_read_is_noted_and_the_rest_converted, nothing_to_convert_is_an_error,
          without_memory_it_fails_cleanly_and_leaves_no_file)
