/* SPDX-License-Identifier: MIT */
#include "probe/base/arena.h"
#include "probe/base/log.h"
#include "probe/base/mem.h"
#include "probe/write/settings.h"

#include "tests/support/check.h"

static struct ms_err err;
static struct probe_settings *s;

static void drop(void)
{
    probe_settings_free(s);
    s = NULL;
}

/* Single quotes stand for double ones. */
static enum ms_rc parse(const char *quoted)
{
    char text[1024];
    size_t n = strlen(quoted);
    ck_assert_uint_lt(n, sizeof text);
    for (size_t i = 0; i <= n; i++)
        text[i] = quoted[i] == '\'' ? '"' : quoted[i];
    drop();
    ms_err_clear(&err);
    return probe_settings_parse(&s, "config.json", text, n, &err);
}

static void parse_ok(const char *quoted)
{
    ck_ok(parse(quoted), err);
}

START_TEST(defaults_are_those_of_the_official_tool)
{
    parse_ok("{'dump_path': './out'}");
    ck_assert_str_eq(s->dump_path, "./out");
    ck_assert_int_eq(s->task, PROBE_TASK_STATISTICS);
    ck_assert_int_eq(s->level, PROBE_LEVEL_L1);
    ck_assert_int_eq(s->summary, PROBE_SUMMARY_STATISTICS);
    ck_assert_int_eq(s->risk, PROBE_RISK_FOCUS);
    ck_assert_uint_eq(s->nsteps, 0);
    ck_assert_uint_eq(s->nranks, 0);
    ck_assert_uint_eq(s->data_mode, 0);
    ck_assert(!s->no_extra && !s->high_precision && !s->all_numbers && !s->disabled);
    ck_assert_str_eq(s->op_namespaces[0], "_C_ascend");
    drop();
}
END_TEST

START_TEST(a_file_with_everything_is_understood)
{
    parse_ok("{'task': 'statistics', 'dump_path': '/d', 'rank': [0, '2-3'], 'step': ['7', 5],"
             " 'level': 'mix', 'dump_enable': false, 'extra_info': false, 'precision': 'high',"
             " 'risk_level': 'ALL', 'async_dump': null, 'all_numbers': true,"
             " 'memory_limit_mb': 3, 'framework': 'mindspore', 'custom_op_namespaces': ['mine'],"
             " 'statistics': {'scope': [], 'list': ['relu', 'fc'], 'tensor_list': ['sum'],"
             "  'data_mode': ['forward', 'output'], 'summary_mode': 'xor',"
             "  'slice': [{'dim': 1, 'begin': -3, 'end': null, 'size': 8}, {'end': 2}]},"
             " 'tensor': {'list': ['other']}, 'free_benchmark': {'fuzz_device': 3}}");
    ck_assert_int_eq(s->level, PROBE_LEVEL_MIX);
    ck_assert_int_eq(s->framework, PROBE_FW_MINDSPORE);
    ck_assert_int_eq(s->summary, PROBE_SUMMARY_XOR);
    ck_assert_int_eq(s->risk, PROBE_RISK_ALL);
    ck_assert_uint_eq(s->memory_max, 3 << 20);
    ck_assert(s->disabled && s->no_extra && s->high_precision && s->all_numbers);
    ck_assert_str_eq(s->op_namespaces[0], "mine");
    ck_assert_ptr_null(s->op_namespaces[1]);
    ck_assert_uint_eq(s->nranks, 2);
    ck_assert_uint_eq(s->rank[1].first, 2);
    ck_assert_uint_eq(s->rank[1].last, 3);
    ck_assert_uint_eq(s->step[0].first, 7);
    ck_assert_ptr_null(s->scope[0]);
    ck_assert_str_eq(s->list[1], "fc");
    ck_assert_ptr_null(s->list[2]);
    ck_assert_str_eq(s->tensor_list[0], "sum");
    ck_assert_uint_eq(s->data_mode, PROBE_DATA_FORWARD | PROBE_DATA_OUTPUT);
    ck_assert_uint_eq(s->nslices, 2);
    ck_assert(s->slice[0].dim == 1 && s->slice[0].begin == -3 && !s->slice[0].has_end);
    ck_assert(s->slice[0].has_size && s->slice[0].size == 8);
    ck_assert(s->slice[1].has_end && s->slice[1].end == 2 && !s->slice[1].has_size);
    drop();
}
END_TEST

START_TEST(settings_follow_from_each_other)
{
    parse_ok("{'task': 'structure', 'dump_path': 'd', 'level': 'L1'}");
    ck_assert_int_eq(s->level, PROBE_LEVEL_MIX);
    parse_ok("{'task': 'structure', 'dump_path': 'd', 'level': 'L0'}");
    ck_assert_int_eq(s->level, PROBE_LEVEL_L0);
    parse_ok("{'dump_path': 'd', 'level': 'debug', 'statistics': {'list': ['a'], 'slice': [{}]}}");
    ck_assert_ptr_null(s->list);
    ck_assert_uint_eq(s->nslices, 0);
    drop();
}
END_TEST

static const struct {
    const char *text, *says;
} wrong[] = {
    {"{}", "config.json: dump_path: required"},
    {"{'dump_path': 3}", "line 1, byte 14: dump_path: expected a string, found the number 3"},
    {"{'dump_path': 'd', 'task': 'statistic'}",
     "task: expected one of \"statistics\", \"tensor\", \"structure\", \"nan_check\", "
     "\"overflow_check\", found \"statistic\"; did you mean \"statistics\"?"},
    {"{'dump_path': 'd', 'level': 'L2'}", "level: expected one of \"mix\", \"L0\", \"L1\""},
    {"{'dump_path': 'd', 'level': {}}", "level: expected a string, found an object"},
    {"{'dump_path': 'd', 'step': 3}", "step: expected a list of numbers, found the number 3"},
    {"{'dump_path': 'd', 'step': [1, '4-2']}", "step[1]: expected a number from 0 to 1000000"},
    {"{'dump_path': 'd', 'step': [-1]}", "step[0]: expected a number from 0"},
    {"{'dump_path': 'd', 'rank': [1.5]}", "rank[0]: expected a number from 0"},
    {"{'dump_path': 'd', 'rank': [1000001]}", "rank[0]: expected a number from 0"},
    {"{'dump_path': 'd', 'rank': [true]}", "rank[0]: expected a number or a text such as \"2-4\""},
    {"{'dump_path': 'd', 'extra_info': 1}", "extra_info: expected true or false"},
    {"{'dump_path': 'd', 'custom_op_namespaces': 'npu'}",
     "custom_op_namespaces: expected a list of strings, found a string"},
    {"{'dump_path': 'd', 'custom_op_namespaces': [1]}",
     "custom_op_namespaces[0]: expected a string"},
    {"{'dump_path': 'd', 'memory_limit_mb': 0}", "expected a number from 1 to"},
    {"{'dump_path': 'd', 'statistics': []}", "statistics: expected an object"},
    {"{'dump_path': 'd', 'statistics': {'list': 'relu'}}",
     "statistics.list: expected a list of strings, found a string"},
    {"{'dump_path': 'd', 'statistics': {'list': [1]}}", "statistics.list[0]: expected a string"},
    {"{'dump_path': 'd', 'statistics': {'data_mode': ['forwards']}}",
     "statistics.data_mode[0]: expected one of \"all\""},
    {"{'dump_path': 'd', 'statistics': {'summary_mode': ['max']}}",
     "statistics.summary_mode: a list goes with MindSpore; expected one of \"statistics\""},
    {"{'dump_path': 'd', 'framework': 'mindspore', 'statistics': {'summary_mode': ['maxi']}}",
     "statistics.summary_mode[0]: expected one of \"max\""},
    {"{'dump_path': 'd', 'statistics': {'data_mode': ['all', 'input']}}",
     "byte 47: statistics.data_mode: \"all\" stands alone; expected it or some of"},
    {"{'dump_path': 'd', 'statistics': {'slice': [{'dim': -1}]}}",
     "statistics.slice[0].dim: expected a number from 0"},
    {"{'dump_path': 'd', 'statistics': {'slice': [3]}}", "statistics.slice[0]: expected an object"},
    {"{'dump_path': 'd', 'statistics': {'slice': [{'begin': 0.5}]}}", "a whole number"},
    {"{'dump_path': 'd', 'tensor': {'bench_path': 'x'}}", "tensor.bench_path: comparing while"},
    {"{'dump_path': 'd', 'statistics': {'scope': ['Functional.a.0.forward']}}",
     "scope: expected no names or two"},
    {"{'dump_path': 'd', 'statistics': {'scope': ['Functional.a.0.forward', 'Module.b']}}",
     "scope[1]: expected a whole name such as Functional.linear.0.forward, found \"Module.b\""},
    {"{'dump_path': 'd', 'level': 'L0', 'statistics': {'scope': ['Functional.a.0.forward', "
     "'Functional.a.0.forward']}}",
     "scope[0]: expected a whole name such as Module.fc"},
    {"{'dump_path': 'd', 'task': 'nan_check', 'level': 'mix'}", "level: task nan_check"},
    {"{'dump_path': 'd', 'task': 'nan_check', 'nan_check': {'data_mode': ['input']}}",
     "needs \"output\""},
    {"{'dump_path': 'd', 'task': 'tensor', 'tensor': {'summary_mode': 'md5'}}",
     "summary_mode: goes with task statistics only"},
    {"{'dump_path': 'd', 'task': 'tensor', 'tensor': {'tensor_list': ['a']}}", "tensor_list: goes"},
    {"{'dump_path': 'd', 'task': 'structure', 'level': 'debug', 'x': 1", "line 1"},
    {"{'dump_path': 'd', 'task': 'nan_check', 'level': 'debug'}", "level: task nan_check"},
    {"{'dump_path': 'd', 'task': 'overflow_check', 'level': 'debug'}", "task: level debug"},
    {"{'dump_path': 'd', 'task': 'overflow_check', 'overflow_check': {'overflow_nums': -2}}",
     "overflow_nums: expected a number from -1"},
    {"{'dump_path': 'd', 'async_dump': true, 'task': 'tensor'}", "async_dump: needs names"},
    {"{'dump_path': 'd', 'async_dump': true, 'statistics': {'summary_mode': 'md5'}}",
     "async_dump: expected false, as"},
    {"{'dump_path': 'd', 'dump_path': 'e'}", "dump_path: for the second time"},
    {"{'dump_path': 'a\\u0000b'}", "holds \\u0000"},
    {"[1]", "expected an object"},
    {"{'dump_path': 'd'} x", "line 1, byte"},
    {"{'dump_path': 'd',\n 'step': [1,\n]}", "line 3"},
    {"", "config.json"},
};

START_TEST(what_is_wrong_is_named_with_what_is_allowed)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(parse(wrong[i].text) != MS_OK, "accepted: %s", wrong[i].text);
        ck_assert_ptr_null(s);
        ck_says(err, wrong[i].says);
    }
}
END_TEST

START_TEST(a_list_of_figures_is_statistics_without_a_graph)
{
    parse_ok("{'dump_path': 'd', 'framework': 'mindspore',"
             " 'statistics': {'summary_mode': ['max', 'l2norm', 'nan count']}}");
    ck_assert_int_eq(s->summary, PROBE_SUMMARY_STATISTICS);
    drop();
}
END_TEST

START_TEST(unknown_keys_are_warned_about_with_the_nearest_spelling)
{
    char dir[64], path[96], said[4096] = "";
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/log", dir);
    setenv("MSPROBE_LOG", path, 1);
    ck_ok(ms_log_from_env(&err), err);
    parse_ok("{'dump_path': 'd', 'sumary': {'deep': [1, {}]}, 'stepp': [3],"
             " 'statistics': {'summary_modes': 'md5', 'device': 'npu'}}");
    drop();
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    said[fread(said, 1, sizeof said - 1, f)] = '\0';
    fclose(f);
    ck_assert_ptr_nonnull(strstr(said, ": unknown key 'sumary'"));
    ck_assert_ptr_nonnull(strstr(said, "unknown key 'stepp'; did you mean 'step'?"));
    ck_assert_ptr_nonnull(
        strstr(said, "unknown key 'statistics.summary_modes'; did you mean 'summary_mode'?"));
    ck_assert_ptr_nonnull(
        strstr(said, "statistics.device: is for what only the official tool does"));
    scratch_remove(dir);
}
END_TEST

START_TEST(settings_from_code_are_checked_and_copied)
{
    char path[] = "out";
    char word[] = "relu";
    struct probe_range range = {1, 2};
    struct probe_slice slice = {.dim = 1};
    const char *list[] = {word, NULL};
    struct probe_settings from = {.dump_path = path,
                                  .step = &range,
                                  .nsteps = 1,
                                  .list = list,
                                  .slice = &slice,
                                  .nslices = 1};
    struct probe_settings to;
    struct ms_arena *arena = ms_arena_new(SIZE_MAX);
    ck_ok(probe__settings_copy(&to, &from, arena, &err), err);
    memset(path, 'x', 3);
    memset(word, 'x', 4);
    range.first = slice.dim = 9;
    ck_assert_str_eq(to.dump_path, "out");
    ck_assert_str_eq(to.list[0], "relu");
    ck_assert_ptr_null(to.list[1]);
    ck_assert_ptr_null(to.scope[0]);
    ck_assert_uint_eq(to.step[0].first, 1);
    ck_assert_uint_eq(to.slice[0].dim, 1);
    from.level = (enum probe_level)77;
    ck_assert_int_ne(probe__settings_copy(&to, &from, arena, &err), MS_OK);
    from.level = PROBE_LEVEL_MIX;
    range = (struct probe_range){3, 1};
    ms_err_clear(&err);
    ck_assert_int_ne(probe__settings_copy(&to, &from, arena, &err), MS_OK);
    ck_says(err, "step[0]: from 3 to 1");
    ms_arena_free(arena);
}
END_TEST

START_TEST(every_allocation_that_fails_is_reported)
{
    size_t before = ms_mem_live();
    for (unsigned n = 1;; n++) {
        drop();
        s = NULL;
        ms_err_clear(&err);
        ms_mem_fail_at(n);
        static const char text[] = "{\"dump_path\": \"d\", \"step\": [1, \"2-4\"], \"rank\": [2],"
                                   "\"statistics\": {\"list\": [\"a\\u00e9\", \"b\"],"
                                   "\"slice\": [{\"dim\": 1}]}}";
        enum ms_rc rc = probe_settings_parse(&s, "c", text, sizeof text - 1, &err);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        if (!failed)
            break;
        if (rc == MS_OK) /* an arena was content with less */
            continue;
        ck_assert_int_eq(err.rc, MS_E_NOMEM);
        ck_assert_uint_eq(ms_mem_live(), before);
    }
    drop();
    ck_assert_uint_eq(ms_mem_live(), before);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_an_error)
{
    ck_assert_int_ne(probe_settings_load(&s, "/nowhere/config.json", &err), MS_OK);
    ck_says(err, "/nowhere/config.json");
    ck_assert_ptr_null(s);
}
END_TEST

TEST_MAIN("settings", defaults_are_those_of_the_official_tool, a_file_with_everything_is_understood,
          settings_follow_from_each_other, what_is_wrong_is_named_with_what_is_allowed,
          a_list_of_figures_is_statistics_without_a_graph,
          unknown_keys_are_warned_about_with_the_nearest_spelling,
          settings_from_code_are_checked_and_copied, every_allocation_that_fails_is_reported,
          a_file_that_is_not_there_is_an_error)
