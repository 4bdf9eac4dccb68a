/* SPDX-License-Identifier: MIT */
#include "probe/dump/stack.h"
#include "probe/tensor/tensor.h"
#include "probe/write/call_entry.h"

#include "tests/support/dumper_fixture.h"

#include <math.h>
#include <pthread.h>

/* ---- names, records and parents --------------------------------------- */

START_TEST(a_model_is_dumped_as_the_format_says)
{
    begin();
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    struct probe_call *net = probe_module_enter(d, "net", "Net");
    struct probe_call *fc = probe_module_enter(d, "net.fc", "Linear");
    probe_call_input(fc, &x);
    struct probe_call *linear = probe_op_enter(d, "Functional", "linear");
    ck_assert_ptr_null(probe_op_enter(d, "Functional", "inner"));
    probe_call_input(linear, &x);
    probe_call_input(linear, &(struct probe_value){.kind = PROBE_INT, .i = 3, .key = "dim"});
    probe_call_output(linear, &x);
    int64_t number = probe_call_number(linear);
    probe_call_exit(linear);
    probe_call_output(fc, &x);
    struct probe_value weight = x;
    weight.key = "weight";
    probe_call_parameter(fc, &weight);
    probe_call_exit(fc);
    probe_call_exit(net);

    struct probe_call *back = probe_op_enter_backward(d, "Functional", "linear", number);
    probe_call_input(back, &x);
    probe_call_output(back, &(struct probe_value){.kind = PROBE_NONE});
    probe_call_exit(back);
    probe_parameters_grad(d, "net.fc", "Linear", &weight, 1);
    struct probe_call *optimizer = probe_root_enter(d, "optimizer");
    probe_op(d, "Tensor", "add_", NULL, 0, &x, 1);
    probe_call_exit(optimizer);
    probe_call_exit(probe_root_enter(d, "optimizer")); /* it stays one node */
    close_dumper(d);

    ck_assert_str_eq(records_of(STEP0 "dump.json"),
                     "Functional.linear.0.forward Module.net.fc.Linear.forward.0"
                     " Module.net.Net.forward.0 Functional.linear.0.backward"
                     " Module.net.fc.Linear.parameters_grad.0 Tensor.add_.0.forward");
    ck_assert_str_eq(text_of(STEP0 "construct.json"),
                     "{\n"
                     " \"Functional.linear.0.forward\": \"Module.net.fc.Linear.forward.0\",\n"
                     " \"Module.net.Net.forward.0\": null,\n"
                     " \"Module.net.fc.Linear.forward.0\": \"Module.net.Net.forward.0\",\n"
                     " \"Functional.linear.0.backward\": \"Module.net.fc.Linear.backward.0\",\n"
                     " \"optimizer\": null,\n"
                     " \"Tensor.add_.0.forward\": \"optimizer\"\n}");
    scratch_remove(dir);
}
END_TEST

#define LEAF(indent)                                                                               \
    "{\n" indent " \"type\": \"torch.Tensor\",\n" indent " \"dtype\": \"torch.float32\",\n" indent \
    " \"shape\": [\n" indent "  2,\n" indent "  3\n" indent " ],\n" indent                         \
    " \"Max\": 6.0,\n" indent " \"Min\": 1.0,\n" indent " \"Mean\": 3.5,\n" indent                 \
    " \"Norm\": 9.539392471313477,\n" indent " \"requires_grad\": false\n" indent "}"

START_TEST(a_record_has_its_parts_in_order_and_to_the_byte)
{
    begin();
    struct probe_settings s = everything();
    s.no_extra = true;
    struct probe_dumper *d = open_with(s);
    const struct probe_value items[] = {{.kind = PROBE_BOOL, .b = true},
                                        {.kind = PROBE_STR, .s = "a"}};
    probe_dumper_start(d);
    struct probe_call *c = probe_module_enter(d, "fc", "Linear");
    probe_call_input(c, &x);
    probe_call_input(c, &(struct probe_value){.kind = PROBE_LIST, .items = items, .n = 2});
    probe_call_input(c, &(struct probe_value){.kind = PROBE_FLOAT, .f = 0.5, .key = "eps"});
    probe_call_exit(c);
    close_dumper(d);
    ck_assert_str_eq(
        text_of(STEP0 "dump.json"),
        "{\n \"task\": \"statistics\",\n \"level\": \"mix\",\n \"framework\": \"pytorch\",\n"
        " \"dump_data_dir\": null,\n \"data\": {\n  \"Module.fc.Linear.forward.0\": {\n"
        "   \"input_args\": [\n    " LEAF(
            "    ") ",\n    [\n     {\n      \"type\": \"bool\",\n"
                    "      \"value\": true\n     },\n     {\n      \"type\": \"str\",\n      "
                    "\"value\": \"a\"\n"
                    "     }\n    ]\n   ],\n   \"input_kwargs\": {\n    \"eps\": {\n     \"type\": "
                    "\"float\",\n"
                    "     \"value\": 0.5\n    }\n   },\n   \"output\": [],\n   \"parameters\": "
                    "{}\n  }\n }\n}");
    ck_assert(!exists(STEP0 "stack.json") && !exists(STEP0 "construct.json"));
    scratch_remove(dir);
}
END_TEST

START_TEST(calls_are_counted_in_each_step_anew)
{
    begin();
    struct probe_dumper *d = open_with(everything());
    for (int step = 0; step < 2; step++) {
        probe_dumper_start(d);
        op(d, "relu");
        op(d, "gelu");
        op(d, "relu");
        probe_dumper_stop(d);
        op(d, "after");
        probe_dumper_step(d);
    }
    close_dumper(d);
    const char *want =
        "Functional.relu.0.forward Functional.gelu.0.forward Functional.relu.1.forward";
    ck_assert_str_eq(records_of(STEP0 "dump.json"), want);
    ck_assert_str_eq(records_of("step1/rank0/dump.json"), want);
    scratch_remove(dir);
}
END_TEST

START_TEST(mindspore_has_cells_and_no_requires_grad)
{
    begin();
    struct probe_settings s = everything();
    s.framework = PROBE_FW_MINDSPORE;
    s.level = PROBE_LEVEL_L0;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    struct probe_call *c = probe_module_enter(d, "fc", "Dense");
    ck_assert_ptr_null(probe_op_enter(d, "Mint", "add"));
    probe_call_output(c, &x);
    probe_call_exit(c);
    close_dumper(d);
    const char *text = text_of(STEP0 "dump.json");
    has(text, "\"Cell.fc.Dense.forward.0\"");
    has(text, "\"dtype\": \"Float32\"");
    has_not(text, "requires_grad");
    scratch_remove(dir);
}
END_TEST

START_TEST(a_detached_call_ends_later_and_from_any_thread)
{
    begin();
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    struct probe_call *c = probe_op_enter(d, "Distributed", "all_reduce");
    probe_call_detach(c);
    op(d, "relu");
    probe_call_output(c, &x);
    probe_call_exit(c);
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"),
                     "Functional.relu.0.forward Distributed.all_reduce.0.forward");
    scratch_remove(dir);
}
END_TEST

START_TEST(what_was_left_open_inside_goes_with_its_module)
{
    begin();
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    struct probe_call *outer = probe_module_enter(d, "a", "A");
    probe_module_enter(d, "a.b", "B");
    probe_op_enter(d, "Functional", "relu"); /* an exception, say */
    probe_call_exit(outer);
    op(d, "gelu");
    probe_call_drop(probe_module_enter(d, "c", "C"));
    struct probe_call *stale = probe_module_enter(d, "d", "D");
    probe_dumper_step(d);
    probe_call_exit(stale);
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"),
                     "Module.a.A.forward.0 Functional.gelu.0.forward");
    has(text_of(STEP0 "dump_error_info.log"),
        "Functional.relu.0.forward: was entered and not left");
    has(text_of(STEP0 "dump_error_info.log"), "Call stack (most recent call last):\nFile ");
    scratch_remove(dir);
}
END_TEST

static struct probe_call *backward(struct probe_dumper *d, const char *path, bool ends_first)
{
    return probe__enter(d, &(struct probe__entry){.kind = PROBE__MODULE,
                                                  .dir = PROBE_BACKWARD,
                                                  .prefix = "Module",
                                                  .name = path,
                                                  .class_name = "A",
                                                  .ends_first = ends_first});
}

/* A framework may tell that a module's backward is over before it tells so of those inside. */
START_TEST(a_backward_that_ends_first_leaves_those_inside_open)
{
    begin();
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    struct probe_call *calls[3];
    const char *const paths[] = {"a", "a.b", "a.b.c"};
    for (int i = 0; i < 3; i++)
        calls[i] = backward(d, paths[i], true);
    probe_call_exit(calls[1]);
    op(d, "gelu"); /* in the innermost, which goes on */
    probe_call_exit(calls[0]);
    probe_call_exit(calls[2]);
    op(d, "gelu"); /* in none */
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"),
                     "Module.a.b.A.backward.0 Functional.gelu.0.forward Module.a.A.backward.0"
                     " Module.a.b.c.A.backward.0 Functional.gelu.1.forward");
    has(text_of(STEP0 "construct.json"),
        "\"Functional.gelu.0.forward\": \"Module.a.b.c.A.backward.0\"");
    has(text_of(STEP0 "construct.json"), "\"Functional.gelu.1.forward\": null");
    scratch_remove(dir);
}
END_TEST

/* ---- selection -------------------------------------------------------- */

START_TEST(only_chosen_steps_and_ranks_make_files)
{
    begin();
    struct probe_settings s = everything();
    s.step = (const struct probe_range[]){{1, 2}, {5, 5}};
    s.nsteps = 2;
    struct probe_dumper *d = open_with(s);
    for (int i = 0; i < 7; i++) {
        probe_dumper_start(d);
        ck_assert(probe_dumper_active(d) == (i == 1 || i == 2 || i == 5));
        op(d, "relu");
        probe_dumper_step(d);
    }
    close_dumper(d);
    for (int i = 0; i < 7; i++) {
        char name[32];
        snprintf(name, sizeof name, "step%d", i);
        ck_assert(exists(name) == (i == 1 || i == 2 || i == 5));
    }
    s.nsteps = 0;
    s.rank = &(const struct probe_range){1, 1};
    s.nranks = 1;
    d = open_with(s);
    probe_dumper_start(d);
    ck_assert(!probe_dumper_active(d));
    close_dumper(d);
    ck_assert(!exists("step0"));
    scratch_remove(dir);
}
END_TEST

START_TEST(a_process_without_a_rank_is_none_of_those_chosen)
{
    begin();
    struct probe_settings s = everything();
    s.rank_known = false;
    s.rank = &(const struct probe_range){0, 1};
    s.nranks = 1;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    ck_assert(!probe_dumper_active(d));
    op(d, "relu");
    probe_dumper_step(d);
    ck_assert(!exists("step0"));
    probe_dumper_set_rank(d, 1);
    probe_dumper_start(d);
    op(d, "gelu");
    close_dumper(d);
    ck_assert_str_eq(records_of("step1/rank1/dump.json"), "Functional.gelu.0.forward");
    scratch_remove(dir);
}
END_TEST

START_TEST(the_launcher_says_which_rank_this_is)
{
    begin();
    struct probe_settings s = everything();
    s.rank_known = false;
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    struct probe_dumper *d = open_with(s);
    probe_dumper_set_step(d, 40);
    probe_dumper_start(d);
    close_dumper(d);
    ck_assert(exists("step40/rank3/dump.json"));
    scratch_remove(dir);
}
END_TEST

START_TEST(a_rank_that_becomes_known_renames_the_directory)
{
    begin();
    char proc[64];
    struct probe_settings s = everything();
    s.rank_known = false;
    s.task = PROBE_TASK_TENSOR;
    struct probe_dumper *d = open_with(s);
    snprintf(proc, sizeof proc, "step0/proc%d", (int)getpid());
    probe_dumper_start(d);
    op(d, "relu");
    probe_dumper_stop(d);
    ck_assert(exists(proc));
    probe_dumper_set_rank(d, 7);
    probe_dumper_start(d);
    op(d, "gelu");
    close_dumper(d);
    ck_assert(!exists(proc));
    ck_assert_str_eq(records_of("step0/rank7/dump.json"),
                     "Functional.relu.0.forward Functional.gelu.0.forward");
    ck_assert(exists("step0/rank7/dump_tensor_data/Functional.gelu.0.forward.output.0.pt"));
    has(text_of("step0/rank7/stack.json"), "Functional.gelu.0.forward");
    scratch_remove(dir);
}
END_TEST

START_TEST(filters_keep_what_they_say)
{
    const struct {
        enum probe_level level;
        const char *const *scope, *const *list;
        enum probe_risk risk;
        unsigned data_mode;
        const char *want;
    } cases[] = {
        {PROBE_LEVEL_MIX, NULL, NULL, PROBE_RISK_ALL, 0,
         RELU " " A " " VIEW " " LINEAR " " B " " BACK},
        {PROBE_LEVEL_L0, NULL, NULL, PROBE_RISK_CORE, 0, A " " B},
        {PROBE_LEVEL_L1, NULL, NULL, PROBE_RISK_ALL, 0, RELU " " VIEW " " LINEAR " " BACK},
        {PROBE_LEVEL_L1, NULL, NULL, PROBE_RISK_FOCUS, 0, RELU " " LINEAR " " BACK},
        {PROBE_LEVEL_MIX, NULL, NULL, PROBE_RISK_CORE, 0, A " " LINEAR " " B " " BACK},
        {PROBE_LEVEL_MIX, NULL, WORDS("Module.a", "linear"), PROBE_RISK_CORE, 0,
         RELU " " A " " LINEAR " " BACK},
        {PROBE_LEVEL_L1, NULL, WORDS("view"), PROBE_RISK_FOCUS, 0, VIEW},
        {PROBE_LEVEL_MIX, WORDS(VIEW, LINEAR), NULL, PROBE_RISK_FOCUS, 0, VIEW " " LINEAR " " B},
        {PROBE_LEVEL_MIX, WORDS(A, A), NULL, PROBE_RISK_FOCUS, 0, RELU " " A},
        {PROBE_LEVEL_MIX, WORDS(A, VIEW), WORDS("Functional"), PROBE_RISK_FOCUS, 0, RELU " " VIEW},
        {PROBE_LEVEL_L1, NULL, NULL, PROBE_RISK_ALL, PROBE_DATA_BACKWARD, BACK},
        {PROBE_LEVEL_L1, NULL, NULL, PROBE_RISK_ALL, PROBE_DATA_FORWARD, RELU " " VIEW " " LINEAR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        struct probe_settings s = everything();
        s.level = cases[i].level;
        s.scope = cases[i].scope;
        s.list = cases[i].list;
        s.risk = cases[i].risk;
        s.data_mode = cases[i].data_mode;
        struct probe_dumper *d = open_with(s);
        probe_dumper_start(d);
        run_model(d);
        close_dumper(d);
        ck_assert_msg(strcmp(records_of(STEP0 "dump.json"), cases[i].want) == 0,
                      "case %zu: %s, expected %s", i, records_of(STEP0 "dump.json"), cases[i].want);
        if (cases[i].level == PROBE_LEVEL_MIX) /* the tree is whole whatever is kept */
            has(text_of(STEP0 "construct.json"), "\"" RELU "\": \"" A "\"");
        scratch_remove(dir);
    }
}
END_TEST

/* A module in a module, with an operator before, in and behind the inner one, and their backwards. */
static void run_nested(struct probe_dumper *d)
{
    struct probe_call *net = probe_module_enter(d, "net", "N");
    probe_call_input(net, &x);
    op(d, "relu");
    struct probe_call *a = probe_module_enter(d, "a", "A");
    probe_call_input(a, &x);
    op(d, "view");
    probe_call_output(a, &x);
    probe_call_exit(a);
    op(d, "linear");
    probe_call_output(net, &x);
    probe_call_exit(net);
    struct probe_call *back = probe_module_enter_backward(d, "a", "A", 0);
    probe_call_exit(probe_op_enter_backward(d, "Functional", "view", 0));
    probe_call_input(back, &x);
    probe_call_output(back, &x);
    probe_call_exit(back);
    probe_parameters_grad(d, "a", "A", &(struct probe_value){.key = "weight"}, 1);
}

/* Writes each record of dump.json as its name and "i", "o" or "io", for inputs and outputs. */
static const char *parts_of_records(void)
{
    static char parts[4096];
    const char *text = strstr(text_of(STEP0 "dump.json"), "\"data\": {");
    parts[0] = '\0';
    for (size_t n = 0; (text = strstr(text, "\n  \"")) != NULL;) {
        const char *end = strstr(text, "\n  }");
        const char *in = strstr(text, "\"input"), *out = strstr(text, "\"output\"");
        text += 4;
        unsigned which = (in != NULL && in < end ? 1U : 0U) | (out != NULL && out < end ? 2U : 0U);
        n += (size_t)snprintf(parts + n, sizeof parts - n, "%s%.*s%s", n != 0 ? " " : "",
                              (int)strcspn(text, "\""), text,
                              (const char *const[]){"", " i", " o", " io"}[which]);
    }
    return parts;
}

#define NET    "Module.net.N.forward.0"
#define A_BACK "Module.a.A.backward.0"
#define GRADS  "Module.a.A.parameters_grad.0"

/* Each line is what the rules of the official tool give for these calls, but that a record of inputs
 * alone comes after those inside it. */
START_TEST(a_strict_scope_ends_between_the_parts_of_a_record)
{
    const struct {
        enum probe_level level;
        const char *const *scope;
        const char *want;
    } cases[] = {
        {PROBE_LEVEL_MIX, WORDS(A, LINEAR), VIEW " io " A " io " LINEAR " i"},
        {PROBE_LEVEL_MIX, WORDS(NET, A),
         RELU " io " A " i " NET " io Functional.view.0.backward io " A_BACK " io " GRADS},
        {PROBE_LEVEL_MIX, WORDS(RELU, VIEW), RELU " io " VIEW " i " A " i"},
        {PROBE_LEVEL_L0, WORDS(A, NET), A " io"},
        {PROBE_LEVEL_L0, WORDS(NET, A), A " i " NET " i"},
        {PROBE_LEVEL_L0, WORDS(A, A_BACK), A " io " NET " o " A_BACK " io " GRADS},
        {PROBE_LEVEL_L1, WORDS(RELU, LINEAR), RELU " io " VIEW " io " LINEAR " i"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        struct probe_settings s = everything();
        s.strict = true;
        s.level = cases[i].level;
        s.scope = cases[i].scope;
        struct probe_dumper *d = open_with(s);
        probe_dumper_start(d);
        run_nested(d);
        close_dumper(d);
        ck_assert_msg(strcmp(parts_of_records(), cases[i].want) == 0, "case %zu: %s, expected %s",
                      i, parts_of_records(), cases[i].want);
        if (strstr(cases[i].want, NET " o") != NULL) /* its inputs were not asked for: no stack */
            has_not(text_of(STEP0 "stack.json"), NET);
        scratch_remove(dir);
    }
}
END_TEST

START_TEST(data_mode_takes_parts_away)
{
    begin();
    struct probe_settings s = everything();
    s.data_mode = PROBE_DATA_OUTPUT;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    run_model(d);
    close_dumper(d);
    const char *text = text_of(STEP0 "dump.json");
    has_not(text, "input");
    has(text, "\"output\"");
    has(text, "\"parameters\"");
    scratch_remove(dir);
}
END_TEST

START_TEST(slices_narrow_what_is_described_and_kept)
{
    begin();
    struct probe_settings s = everything();
    s.task = PROBE_TASK_TENSOR;
    s.slice = (const struct probe_slice[]){{.dim = 1, .begin = -2},
                                           {.dim = 0, .has_end = true, .end = -1},
                                           {.dim = 0, .has_size = true, .size = 9},
                                           {.dim = 5}};
    s.nslices = 4;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    probe_op(d, "Functional", "relu", NULL, 0, &x, 1);
    close_dumper(d);
    struct probe_tensor t;
    char path[300];
    snprintf(path, sizeof path,
             "%s/" STEP0 "dump_tensor_data/Functional.relu.0.forward.output.0.pt", dir);
    ck_ok(probe_tensor_open(&t, path, SIZE_MAX, &err), err);
    ck_assert_uint_eq(t.ndim, 2);
    ck_assert(t.shape[0] == 1 && t.shape[1] == 2);
    ck_assert_int_eq(memcmp(t.data, numbers + 1, 2 * sizeof *numbers), 0);
    probe_tensor_close(&t);
    has(text_of(STEP0 "dump.json"), "\"Max\": 3.0");
    scratch_remove(dir);
}
END_TEST

/* ---- tasks ------------------------------------------------------------ */

START_TEST(tensors_of_the_list_get_files)
{
    begin();
    struct probe_settings s = everything();
    s.tensor_list = WORDS("gelu");
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    op(d, "relu");
    op(d, "gelu");
    close_dumper(d);
    const char *text = text_of(STEP0 "dump.json");
    has_not(text, "relu.0.forward.output.0.pt");
    has(text, "\"data_name\": \"Functional.gelu.0.forward.input.0.pt\"");
    ck_assert(exists(STEP0 "dump_tensor_data/Functional.gelu.0.forward.output.0.pt"));
    scratch_remove(dir);
}
END_TEST

START_TEST(structure_fills_all_but_the_data)
{
    begin();
    struct probe_settings s = everything();
    s.task = PROBE_TASK_STRUCTURE;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    run_model(d);
    close_dumper(d);
    has(text_of(STEP0 "dump.json"), "\"data\": {}\n}");
    has(text_of(STEP0 "construct.json"), RELU);
    has(text_of(STEP0 "stack.json"), RELU);
    scratch_remove(dir);
}
END_TEST

START_TEST(nan_check_says_which_outputs_are_odd)
{
    begin();
    static const float odd[6] = {0, NAN};
    static const int32_t whole[6] = {1};
    const struct probe_tensor_desc bad = {
        .data = odd, .dtype = "float32", .shape = shape, .ndim = 2};
    const struct probe_tensor_desc ints = {
        .data = whole, .dtype = "int32", .shape = shape, .ndim = 2};
    const struct probe_value b = {.kind = PROBE_TENSOR, .tensor = &bad};
    const struct probe_value i = {.kind = PROBE_TENSOR, .tensor = &ints};
    struct probe_settings s = everything();
    s.task = PROBE_TASK_NAN_CHECK;
    s.level = PROBE_LEVEL_L1;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    probe_op(d, "Torch", "a", &b, 1, &x, 1);
    probe_op(d, "Torch", "b", &x, 1, &b, 1);
    probe_op(d, "Torch", "c", &x, 1, &i, 1);
    close_dumper(d);
    const char *text = text_of(STEP0 "dump.json");
    has_not(text, "Max");
    const char *a = strstr(text, "Torch.a"), *second = strstr(text, "Torch.b");
    const char *third = strstr(text, "Torch.c");
    ck_assert(a != NULL && second != NULL && third != NULL);
    has(a, "\"is_nan\": 0");
    ck_assert(strstr(second, "\"is_nan\": 1") != NULL && strstr(second, "\"is_nan\": 1") < third);
    has(third, "\"is_nan\": null");
    scratch_remove(dir);
}
END_TEST

START_TEST(overflow_check_keeps_odd_records_and_then_ends)
{
    begin();
    static const float odd[6] = {0, INFINITY};
    const struct probe_tensor_desc bad = {
        .data = odd, .dtype = "float32", .shape = shape, .ndim = 2};
    const struct probe_value b = {.kind = PROBE_TENSOR, .tensor = &bad};
    struct probe_settings s = everything();
    s.task = PROBE_TASK_OVERFLOW_CHECK;
    s.overflow_nums = 2;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    op(d, "fine");
    probe_op(d, "Torch", "a", &x, 1, &b, 1);
    ck_assert(probe_dumper_active(d));
    probe_op(d, "Torch", "b", &b, 1, &x, 1);
    ck_assert(!probe_dumper_active(d));
    probe_dumper_step(d);
    probe_dumper_start(d);
    ck_assert(!probe_dumper_active(d));
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"), "Torch.a.0.forward Torch.b.0.forward");
    has(text_of(STEP0 "dump.json"), "\"task\": \"overflow_check\"");
    ck_assert(exists(STEP0 "dump_tensor_data/Torch.a.0.forward.input.0.pt"));
    ck_assert(!exists(STEP0 "dump_tensor_data/Functional.fine.0.forward.input.0.pt"));
    scratch_remove(dir);

    begin(); /* what does not fit is described without a file, and takes no room for ever */
    s.dump_path = dir;
    s.memory_max = 400;
    s.overflow_nums = -1;
    d = open_with(s);
    probe_dumper_start(d);
    probe_op(d, "Torch", "a", (const struct probe_value[]){b, b, b}, 3, &b, 1);
    probe_op(d, "Torch", "b", NULL, 0, &b, 1);
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"), "Torch.a.0.forward Torch.b.0.forward");
    ck_assert(!exists(STEP0 "dump_tensor_data/Torch.a.0.forward.output.0.pt"));
    has(text_of(STEP0 "dump_error_info.log"), "no file for Torch.a.0.forward.");
    scratch_remove(dir);
}
END_TEST

START_TEST(values_saved_by_hand_are_counted_by_name)
{
    begin();
    struct probe_settings s = everything();
    s.level = PROBE_LEVEL_DEBUG;
    s.task = PROBE_TASK_TENSOR;
    struct probe_dumper *d = open_with(s);
    struct probe_value items[] = {x, {.kind = PROBE_INT, .i = 3, .key = "n"}};
    items[0].key = "t";
    const struct probe_value dict = {.kind = PROBE_DICT, .items = items, .n = 2};
    ck_assert_ptr_null(probe_op_enter(d, "Functional", "relu"));
    probe_save(d, "loss", &x);
    probe_save(d, "loss", &dict);
    probe_save_grad(d, "loss", &x);
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "debug.json"), "loss.0.debug loss.1.debug loss_grad.0.debug");
    ck_assert(exists(STEP0 "dump_tensor_data/loss.0.debug.pt"));
    ck_assert(exists(STEP0 "dump_tensor_data/loss.1.debug.t.pt"));
    ck_assert(!exists(STEP0 "stack.json"));
    has(text_of(STEP0 "debug.json"), "  \"loss.0.debug\": {\n   \"type\": \"torch.Tensor\"");
    scratch_remove(dir);
}
END_TEST

START_TEST(high_precision_does_not_round_to_the_narrow_type)
{
    const uint16_t one_bf16 = 0x3f80;
    const uint16_t ones[3] = {one_bf16, one_bf16, one_bf16};
    const struct probe_tensor_desc t = {
        .data = ones, .dtype = "bfloat16", .shape = &(const uint64_t){3}, .ndim = 1};
    const struct probe_value v = {.kind = PROBE_TENSOR, .tensor = &t};
    for (int high = 0; high < 2; high++) {
        begin();
        struct probe_settings s = everything();
        s.high_precision = high != 0;
        struct probe_dumper *d = open_with(s);
        probe_dumper_start(d);
        probe_op(d, "Torch", "norm", NULL, 0, &v, 1);
        close_dumper(d);
        has(text_of(STEP0 "dump.json"),
            high ? "\"Norm\": 1.7320507764816284" : "\"Norm\": 1.734375");
        scratch_remove(dir);
    }
}
END_TEST

START_TEST(integers_of_64_bits_are_exact_at_both_ends)
{
    begin();
    const int64_t v[4] = {INT64_MAX, 5, INT64_MIN, -1};
    const struct probe_tensor_desc t = {
        .data = v, .dtype = "int64", .shape = &(const uint64_t){4}, .ndim = 1};
    const struct probe_value value = {.kind = PROBE_TENSOR, .tensor = &t};
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    probe_op(d, "Torch", "sum", NULL, 0, &value, 1);
    close_dumper(d);
    const char *text = text_of(STEP0 "dump.json");
    has(text, "\"Max\": 9223372036854775807");
    has(text, "\"Min\": -9223372036854775808");
    has(text, "\"Mean\": null");
    scratch_remove(dir);
}
END_TEST

/* ---- stacks ----------------------------------------------------------- */

/* What comes after the call keeps it from being a jump, which would leave no frame. */
__attribute__((noinline)) static void first_caller(struct probe_dumper *d)
{
    op(d, "relu");
    __asm__ volatile("");
}
__attribute__((noinline)) static void second_caller(struct probe_dumper *d)
{
    op(d, "relu");
    __asm__ volatile("");
}

START_TEST(nodes_called_at_one_place_share_their_stack)
{
    begin();
    volatile int twice = 2; /* a loop that is unrolled has a place for each round */
    struct probe_dumper *d = open_with(everything());
    for (int step = 0; step < twice; step++) {
        probe_dumper_start(d);
        for (int i = 0; i < twice; i++)
            first_caller(d);
        second_caller(d);
        probe_dumper_stop(d);
        for (int i = 0; i < twice; i++) {
            probe_dumper_start(d);
            first_caller(d); /* another place, one line further */
            probe_dumper_stop(d);
        }
        probe_dumper_step(d);
    }
    close_dumper(d);
    for (int step = 0; step < 2; step++) {
        struct probe_stacks stacks;
        struct ms_str frames[5];
        char path[300], name[64];
        snprintf(path, sizeof path, "%s/step%d/rank0/stack.json", dir, step);
        ck_ok(probe_stacks_open(&stacks, path, 0, &err), err);
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "Functional.relu.%d.forward", i);
            frames[i] = probe_stack_frames(&stacks, ms_str_of(name));
            ck_assert_ptr_nonnull(frames[i].p);
            ck_assert_int_ge(ms_str_find_str(frames[i], MS_STR("File ")), 0);
        }
        ck_assert(ms_str_eq(frames[0], frames[1]) && ms_str_eq(frames[3], frames[4]));
        ck_assert(!ms_str_eq(frames[0], frames[2]) && !ms_str_eq(frames[0], frames[3]));
        ck_assert_uint_eq(stacks.frames.n, 3);
        probe_stacks_close(&stacks);
    }
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("dumper", a_model_is_dumped_as_the_format_says,
          a_record_has_its_parts_in_order_and_to_the_byte, calls_are_counted_in_each_step_anew,
          mindspore_has_cells_and_no_requires_grad, a_detached_call_ends_later_and_from_any_thread,
          what_was_left_open_inside_goes_with_its_module,
          a_backward_that_ends_first_leaves_those_inside_open,
          only_chosen_steps_and_ranks_make_files, a_process_without_a_rank_is_none_of_those_chosen,
          the_launcher_says_which_rank_this_is, a_rank_that_becomes_known_renames_the_directory,
          filters_keep_what_they_say, a_strict_scope_ends_between_the_parts_of_a_record,
          data_mode_takes_parts_away, slices_narrow_what_is_described_and_kept,
          tensors_of_the_list_get_files, structure_fills_all_but_the_data,
          nan_check_says_which_outputs_are_odd, overflow_check_keeps_odd_records_and_then_ends,
          values_saved_by_hand_are_counted_by_name,
          high_precision_does_not_round_to_the_narrow_type,
          integers_of_64_bits_are_exact_at_both_ends, nodes_called_at_one_place_share_their_stack)
