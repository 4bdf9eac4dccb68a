/* SPDX-License-Identifier: MIT
 *
 * The expected files in tests/data/writer/ come from tests/gen/writer_expected.py,
 * which works out the same dump on its own.
 */
#include "tests/support/writer_place.h"

#include "probe/base/mem.h"
#include "probe/base/trace.h"
#include "probe/dump/dump.h"
#include "probe/dump/stack.h"
#include "probe/dump/tree.h"
#include "probe/tensor/tensor.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* Our own strict readers take all three files as they are now. */
static size_t ck_files_are_whole(bool extra)
{
    struct probe_dump *d;
    struct probe_tree tree;
    struct probe_stacks stacks;
    ms_err_clear(&err);
    ck_ok(probe_dump_open(&d, file_in_dir("dump.json"), 0, NULL, &err), err);
    size_t nodes = d->nodes.n;
    probe_dump_close(d);
    if (extra) {
        ck_ok(probe_tree_open(&tree, file_in_dir("construct.json"), 0, &err), err);
        probe_tree_close(&tree);
        ck_ok(probe_stacks_open(&stacks, file_in_dir("stack.json"), 0, &err), err);
        probe_stacks_close(&stacks);
    }
    return nodes;
}

/* ---- the dump of the expected files ------------------------------------------------- */

static void put_forward(struct probe_writer *w)
{
    struct probe_tensor_desc scalar = {.data = &half_two, .dtype = "float32"};
    probe_record_begin(w, "Functional.linear.0.forward");
    probe_section(w, PROBE_SEC_INPUT_ARGS);
    probe_put_tensor(w, NULL, TENSOR("float32", counting, true, 2, 3));
    probe_put_none(w, NULL);
    probe_put_int(w, NULL, -3);
    probe_list_begin(w, NULL);
    probe_put_tensor(w, NULL, TENSOR("float32", NULL, false, 0, 4));
    probe_put_tensor(w, NULL, &scalar);
    probe_list_end(w);
    probe_section(w, PROBE_SEC_INPUT_KWARGS);
    probe_put_bool(w, "inplace", false);
    probe_put_float(w, "eps", 1e-05);
    probe_put_str(w, "mode", "\xc3\xa9 \"q\"\n");
    probe_dict_begin(w, "deep");
    probe_put_float(w, "inf", -INFINITY);
    probe_list_begin(w, "empty");
    probe_list_end(w);
    probe_dict_end(w);
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, TENSOR("torch.bfloat16", bf16_ones, false, 3));
    probe_record_end(w);
}

static void put_module(struct probe_writer *w)
{
    probe_record_begin(w, "Module.fc.Linear.forward.0");
    probe_section(w, PROBE_SEC_INPUT_ARGS);
    probe_section(w, PROBE_SEC_INPUT_KWARGS);
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, TENSOR("int64", whole, false, 3));
    probe_section(w, PROBE_SEC_PARAMETERS);
    probe_put_tensor(w, "weight", TENSOR("float16", halves, false, 2));
    probe_record_end(w);
}

static void put_backward(struct probe_writer *w)
{
    static const uint64_t shape[] = {2, 2};
    static const uint64_t columns[] = {1, 2};
    struct probe_tensor_desc transposed = {
        .data = square, .dtype = "float32", .shape = shape, .stride = columns, .ndim = 2};
    probe_record_begin(w, "Functional.linear.0.backward");
    probe_section(w, PROBE_SEC_INPUT);
    probe_put_tensor(w, NULL, TENSOR("float64", doubles, false, 2));
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, TENSOR("uint8", bytes, false, 2));
    probe_put_tensor(w, NULL, TENSOR("bool", truths, false, 3));
    probe_record_end(w);
    probe_record_begin(w, "Module.fc.Linear.parameters_grad.0");
    probe_list_begin(w, "weight");
    probe_put_tensor(w, NULL, &transposed);
    probe_list_end(w);
    probe_record_end(w);
}

static void put_debug(struct probe_writer *w)
{
    static const float two[] = {0.5F, -2};
    probe_record_begin(w, "var.0.debug");
    probe_list_begin(w, "a");
    probe_put_tensor(w, NULL, TENSOR("float32", two, false, 2));
    probe_list_end(w);
    probe_put_int(w, "b", 3);
    probe_record_end(w);
}

/* Some of the records, so that a caller can flush in between. */
static void put_part(struct probe_writer *w, bool debug, int i)
{
    if (debug && i == 0)
        put_debug(w);
    if (!debug && i == 0)
        put_forward(w);
    if (!debug && i == 1)
        put_module(w);
    if (!debug && i == 2)
        put_backward(w);
}

static const struct {
    const char *expected;
    struct probe_conf conf;
} dumps[] = {
    {"statistics_statistics_mix_pytorch", {0}},
    {"statistics_statistics_mix_pytorch_all_numbers", {.all_numbers = true}},
    {"statistics_md5_L0_pytorch", {.summary = PROBE_SUMMARY_MD5, .level = PROBE_LEVEL_L0}},
    {"statistics_xor_L1_pytorch", {.summary = PROBE_SUMMARY_XOR, .level = PROBE_LEVEL_L1}},
    {"statistics_statistics_L1_mindspore",
     {.level = PROBE_LEVEL_L1, .framework = PROBE_FW_MINDSPORE}},
    {"statistics_statistics_L0_mindtorch",
     {.level = PROBE_LEVEL_L0, .framework = PROBE_FW_MINDTORCH}},
    {"statistics_statistics_debug_pytorch", {.level = PROBE_LEVEL_DEBUG}},
    {"tensor_statistics_mix_pytorch", {.task = PROBE_TASK_TENSOR, .framework = PROBE_FW_PYTORCH}},
    {"tensor_md5_L0_mindspore",
     {.task = PROBE_TASK_TENSOR,
      .summary = PROBE_SUMMARY_MD5,
      .level = PROBE_LEVEL_L0,
      .framework = PROBE_FW_MINDSPORE}},
    {"structure_statistics_mix_pytorch", {.task = PROBE_TASK_STRUCTURE}},
};

/* The expected text with the real data directory in it. */
static char *expected_text(const char *name)
{
    char at[128];
    char real[PATH_MAX];
    size_t n;
    snprintf(at, sizeof at, "tests/data/writer/%s.json", name);
    char *text = read_file(at, &n);
    char *mark = strstr(text, "@DIR@");
    if (mark == NULL)
        return text;
    ck_assert_ptr_nonnull(realpath(dir, real));
    char *out = malloc(n + PATH_MAX);
    snprintf(out, n + PATH_MAX, "%.*s%s/dump_tensor_data%s", (int)(mark - text), text, real,
             mark + 5);
    free(text);
    return out;
}

/* flush: after each record as well, which must not show in the end. */
static void ck_dump(size_t i, bool flush)
{
    bool debug = dumps[i].conf.level == PROBE_LEVEL_DEBUG;
    scratch_dir(dir);
    struct probe_writer *w = open_with(dumps[i].conf);
    for (int part = 0; part < 3; part++) {
        put_part(w, debug, part);
        if (flush)
            ck_ok(probe_writer_flush(w, &err), err);
        if (flush && !debug)
            ck_files_are_whole(true);
    }
    ck_closes(w);
    char *want = expected_text(dumps[i].expected);
    ck_file_is(debug ? "debug.json" : "dump.json", want);
    free(want);
    ck_assert_int_eq(access(file_in_dir("dump.json"), F_OK) == 0, !debug);
    ck_assert_int_eq(access(file_in_dir("construct.json"), F_OK) == 0, !debug);
    ck_assert_int_eq(access(file_in_dir("stack.json"), F_OK) == 0, !debug);
    ck_assert_int_eq(access(file_in_dir("dump_tensor_data"), F_OK) == 0,
                     dumps[i].conf.task == PROBE_TASK_TENSOR);
    scratch_remove(dir);
}

START_TEST(each_kind_of_dump_is_right_to_the_byte)
{
    for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
        ck_dump(i, false);
        ck_dump(i, true);
    }
}
END_TEST

START_TEST(what_was_written_reads_back_with_the_names_of_the_format)
{
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){.task = PROBE_TASK_TENSOR});
    put_forward(w);
    put_backward(w);
    ck_closes(w);
    struct probe_dump *d;
    ck_ok(probe_dump_open(&d, file_in_dir("dump.json"), 0, NULL, &err), err);
    static const char *const names[] = {
        "Functional.linear.0.forward.input.0",        "Functional.linear.0.forward.input.1",
        "Functional.linear.0.forward.input.2",        "Functional.linear.0.forward.input.3.0",
        "Functional.linear.0.forward.input.3.1",      "Functional.linear.0.forward.input.inplace",
        "Functional.linear.0.forward.input.eps",      "Functional.linear.0.forward.input.mode",
        "Functional.linear.0.forward.input.deep.inf", "Functional.linear.0.forward.output.0",
        "Functional.linear.0.backward.input.0",       "Functional.linear.0.backward.output.0",
        "Functional.linear.0.backward.output.1",      "Module.fc.Linear.parameters_grad.0.weight",
    };
    struct ms_buf name = {.max = 1 << 12};
    ck_assert_uint_eq(d->rows.n, sizeof names / sizeof *names);
    for (size_t i = 0; i < d->rows.n; i++) {
        probe_row_name(d, &d->rows.p[i], &name);
        ck_assert_str_eq(ms_buf_z(&name), names[i]);
    }
    ms_buf_free(&name);
    probe_dump_close(d);
    scratch_remove(dir);
}
END_TEST

static void ck_tensor_file(const char *name, enum probe_file_kind kind, const void *want, size_t n)
{
    struct probe_tensor t;
    char at[256];
    snprintf(at, sizeof at, "%s/dump_tensor_data/%s", dir, name);
    ck_ok(probe_tensor_open(&t, at, SIZE_MAX, &err), err);
    ck_assert_int_eq(t.kind, kind);
    ck_assert_uint_eq(t.count * ms_dtype_size(t.dtype), n);
    ck_assert_int_eq(memcmp(t.data, want, n), 0);
    probe_tensor_close(&t);
}

START_TEST(tensor_files_hold_the_elements_in_order)
{
    static const float transposed[] = {1, 3, 2, 4};
    static const float wide_ones[] = {1, 1, 1};
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){.task = PROBE_TASK_TENSOR});
    put_forward(w);
    put_backward(w);
    ck_closes(w);
    ck_tensor_file("Functional.linear.0.forward.input.0.pt", PROBE_FILE_PT, counting,
                   sizeof counting);
    ck_tensor_file("Functional.linear.0.forward.input.3.1.pt", PROBE_FILE_PT, &half_two, 4);
    ck_tensor_file("Functional.linear.0.forward.output.0.pt", PROBE_FILE_PT, bf16_ones, 6);
    ck_tensor_file("Module.fc.Linear.parameters_grad.0.weight.pt", PROBE_FILE_PT, transposed, 16);
    scratch_remove(dir);
    scratch_dir(dir);
    w = open_with((struct probe_conf){.task = PROBE_TASK_TENSOR, .framework = PROBE_FW_MINDSPORE});
    put_forward(w);
    ck_closes(w);
    /* .npy has no bfloat16. */
    ck_tensor_file("Functional.linear.0.forward.output.0.npy", PROBE_FILE_NPY, wide_ones, 12);
    scratch_remove(dir);
}
END_TEST

/* ---- growing files ------------------------------------------------------------------------ */

START_TEST(the_files_are_documents_from_the_start)
{
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){0});
    ck_file_is("dump.json", "{\n \"task\": \"statistics\",\n \"level\": \"mix\",\n \"framework\": "
                            "\"pytorch\",\n \"dump_data_dir\": null,\n \"data\": {}\n}");
    ck_file_is("construct.json", "{}");
    ck_file_is("stack.json", "{}");
    ck_assert_uint_eq(ck_files_are_whole(true), 0);
    ck_closes(w);
    ck_assert_uint_eq(ck_files_are_whole(true), 0);
    scratch_remove(dir);
}
END_TEST

static void put_stacks(struct probe_writer *w, bool flush)
{
    static const char *const shared[] = {"File /w/net.py, line 10, in forward, \n return s.fc(x)",
                                         "File b"};
    static const char *const own[] = {"File \xc3\xa9"};
    probe_stack(w, "Functional.linear.0.forward", shared, 2);
    if (flush)
        probe_writer_flush(w, NULL);
    probe_stack(w, "Module.fc.Linear.forward.0", own, 1);
    probe_stack(w, "Functional.relu.0.forward", shared, 2);
}

START_TEST(construct_and_stack_are_right_to_the_byte)
{
    for (int flush = 0; flush < 2; flush++) {
        scratch_dir(dir);
        struct probe_writer *w = open_with((struct probe_conf){0});
        probe_parent(w, "Functional.linear.0.forward", "Module.fc.Linear.forward.0");
        probe_parent(w, "Module.fc.Linear.forward.0", NULL);
        put_stacks(w, flush);
        ck_ok(probe_writer_flush(w, &err), err);
        ck_files_are_whole(true);
        probe_parent(w, "Functional.linear.0.backward", NULL);
        ck_closes(w);
        char *want = expected_text("construct");
        ck_file_is("construct.json", want);
        free(want);
        want = expected_text("stack");
        ck_file_is("stack.json", want);
        free(want);
        scratch_remove(dir);
    }
}
END_TEST

START_TEST(a_stack_split_by_flushes_reads_right_before_it_is_joined)
{
    struct probe_stacks s;
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){0});
    put_stacks(w, true);
    ck_ok(probe_writer_flush(w, &err), err);
    ck_ok(probe_stacks_open(&s, file_in_dir("stack.json"), 0, &err), err);
    ck_assert_uint_eq(s.frames.n, 3);
    struct ms_str first = probe_stack_frames(&s, MS_STR("Functional.linear.0.forward"));
    struct ms_str second = probe_stack_frames(&s, MS_STR("Functional.relu.0.forward"));
    ck_assert(first.n != 0 && ms_str_eq(first, second));
    probe_stacks_close(&s);
    ck_closes(w);
    ck_ok(probe_stacks_open(&s, file_in_dir("stack.json"), 0, &err), err);
    ck_assert_uint_eq(s.frames.n, 2);
    probe_stacks_close(&s);
    scratch_remove(dir);
}
END_TEST

START_TEST(level_l1_keeps_construct_empty_and_no_extra_has_none)
{
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){.level = PROBE_LEVEL_L1});
    probe_parent(w, "a", "b");
    ck_closes(w);
    ck_file_is("construct.json", "{}");
    scratch_remove(dir);
    scratch_dir(dir);
    w = open_with((struct probe_conf){.no_extra = true});
    probe_parent(w, "a", "b");
    put_stacks(w, true);
    ck_closes(w);
    ck_assert_int_ne(access(file_in_dir("construct.json"), F_OK), 0);
    ck_assert_int_ne(access(file_in_dir("stack.json"), F_OK), 0);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_dropped_record_leaves_no_trace)
{
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){0});
    put_forward(w);
    probe_record_begin(w, "Functional.x.0.forward");
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_int(w, NULL, 1);
    probe_list_begin(w, NULL);
    ck_ok(probe_writer_flush(w, &err), err); /* inside of a record nothing is to be written */
    probe_record_drop(w);
    probe_record_drop(w);
    put_module(w);
    probe_record_begin(w, "Functional.y.0.forward");
    probe_record_drop(w);
    put_backward(w);
    ck_closes(w);
    char *want = expected_text("statistics_statistics_mix_pytorch");
    ck_file_is("dump.json", want);
    free(want);
    scratch_remove(dir);
}
END_TEST

/* ---- misuse ------------------------------------------------------------------------------- */

static void value_without_key(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_INPUT_KWARGS);
    probe_put_int(w, NULL, 1);
}
static void end_of_nothing(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_list_end(w);
    probe_list_end(w);
}
static void list_not_ended(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_list_begin(w, NULL);
}
static void list_ended_as_dict(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_list_begin(w, NULL);
    probe_dict_end(w);
}
static void no_such_section(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_PGRAD);
}
static void unknown_dtype(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, TENSOR("float33", counting, false, 2));
}
static void no_dtype(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, TENSOR(NULL, counting, false, 2));
}
static void no_data(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, TENSOR("float32", NULL, false, 2));
}
static void huge_shape(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL,
                     TENSOR("int8", counting, false, UINT64_C(1) << 33, UINT64_C(1) << 33));
}
static void too_many_dimensions(struct probe_writer *w)
{
    static const uint64_t ones[33];
    struct probe_tensor_desc t = {.data = counting, .dtype = "int8", .shape = ones, .ndim = 33};
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, &t);
}
static void too_deep(struct probe_writer *w)
{
    probe_section(w, PROBE_SEC_OUTPUT);
    for (int i = 0; i < 100; i++)
        probe_list_begin(w, NULL);
}

static const struct {
    void (*put)(struct probe_writer *);
    enum ms_rc rc;
    const char *says;
} misuse[] = {
    {value_without_key, MS_E_ARG, "without a key"},
    {end_of_nothing, MS_E_ARG, "the end of a list that was not begun"},
    {list_not_ended, MS_E_ARG, "a list or dict is not ended"},
    {list_ended_as_dict, MS_E_ARG, "closes nothing"},
    {no_such_section, MS_E_ARG, "no such part of a record"},
    {unknown_dtype, MS_E_ARG, "unknown dtype 'float33'"},
    {no_dtype, MS_E_ARG, "unknown dtype ''"},
    {no_data, MS_E_ARG, "a tensor without data"},
    {huge_shape, MS_E_LIMIT, "multiply beyond 64 bits"},
    {too_many_dimensions, MS_E_LIMIT, "33 dimensions"},
    {too_deep, MS_E_LIMIT, "nested deeper than 64 levels"},
};

START_TEST(a_record_that_is_misused_is_left_out_and_reported)
{
    for (size_t i = 0; i < sizeof misuse / sizeof *misuse; i++) {
        scratch_dir(dir);
        struct probe_writer *w = open_with((struct probe_conf){0});
        put_module(w);
        probe_record_begin(w, "Functional.bad.0.forward");
        misuse[i].put(w);
        probe_record_end(w);
        put_backward(w);
        ms_err_clear(&err);
        ck_assert_int_eq(probe_writer_close(w, &err), misuse[i].rc);
        ck_says(err, misuse[i].says);
        ck_says(err, "record 'Functional.bad.0.forward");
        ck_assert_uint_eq(ck_files_are_whole(true), 3);
        scratch_remove(dir);
    }
}
END_TEST

START_TEST(values_outside_of_a_record_go_nowhere)
{
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){0});
    probe_put_int(w, "a", 1);
    probe_put_tensor(w, "b", TENSOR("float32", counting, false, 2));
    probe_put_none(w, "c");
    probe_list_begin(w, "d");
    probe_list_end(w);
    probe_dict_begin(w, "d");
    probe_dict_end(w);
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_record_end(w);
    put_forward(w);
    put_module(w);
    put_backward(w);
    ms_err_clear(&err);
    ck_assert_int_eq(probe_writer_flush(w, &err), MS_E_ARG);
    ck_says(err, "a value outside of a record");
    ck_assert_int_eq(probe_writer_close(w, NULL), MS_E_ARG);
    char *want = expected_text("statistics_statistics_mix_pytorch");
    ck_file_is("dump.json", want);
    free(want);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_record_that_is_not_ended_is_reported)
{
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){0});
    probe_record_begin(w, "Functional.lost.0.forward");
    put_module(w);
    ms_err_clear(&err);
    ck_assert_int_eq(probe_writer_close(w, &err), MS_E_ARG);
    ck_says(err, "record 'Functional.lost.0.forward' left out: it was not ended");
    ck_assert_uint_eq(ck_files_are_whole(true), 1);
    scratch_remove(dir);
}
END_TEST

START_TEST(names_that_cannot_be_files_have_a_description_only)
{
    static const char long_name[] =
        "Functional." /* 240 and more */
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.0.forward";
    const char *const names[] = {"../../etc/x.0.forward", "a/b.0.forward", long_name,
                                 "plain.name.0.forward"};
    struct probe_dump *d;
    scratch_dir(dir);
    struct probe_writer *w = open_with((struct probe_conf){.task = PROBE_TASK_TENSOR});
    for (int i = 0; i < 4; i++) {
        probe_record_begin(w, names[i]);
        probe_section(w, PROBE_SEC_OUTPUT);
        probe_put_tensor(w, NULL, TENSOR("float32", counting, false, 2));
        probe_record_end(w);
    }
    ck_closes(w);
    ck_ok(probe_dump_open(&d, file_in_dir("dump.json"), 0, NULL, &err), err);
    ck_assert_uint_eq(d->rows.n, 4);
    for (int i = 0; i < 4; i++) {
        struct probe_leaf l;
        probe_row_leaf(d, &d->rows.p[i], &l);
        ck_assert_int_eq(l.kind, PROBE_LEAF_TENSOR);
        ck_assert_int_eq(l.data_name.n != 0, i == 3);
    }
    probe_dump_close(d);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_configuration_that_makes_no_sense_is_refused)
{
    struct probe_writer *w = (struct probe_writer *)&err;
    struct probe_conf bad[] = {{.dir = NULL},
                               {.dir = ""},
                               {.dir = "x", .task = (enum probe_task)9},
                               {.dir = "x", .summary = (enum probe_summary) - 1},
                               {.dir = "x", .level = (enum probe_level)4},
                               {.dir = "x", .framework = (enum probe_framework)4}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_err_clear(&err);
        ck_assert_int_eq(probe_writer_open(&w, &bad[i], &err), MS_E_ARG);
        ck_assert_ptr_null(w);
    }
    struct probe_conf nowhere = {.dir = "/proc/nowhere"};
    ms_err_clear(&err);
    ck_assert_int_ne(probe_writer_open(&w, &nowhere, &err), MS_OK);
    ck_says(err, "/proc/nowhere");
    ck_assert_int_eq(probe_writer_close(NULL, &err), MS_OK);
}
END_TEST

/* ---- failures from outside ------------------------------------------------------------------ */

static enum ms_rc write_all(struct probe_conf conf)
{
    struct probe_writer *w;
    conf.dir = dir;
    ms_err_clear(&err);
    MS_TRY(probe_writer_open(&w, &conf, &err));
    put_forward(w);
    probe_parent(w, "Functional.linear.0.forward", NULL);
    put_stacks(w, true);
    put_module(w);
    put_backward(w);
    return probe_writer_close(w, &err);
}

START_TEST(every_failed_allocation_is_reported_and_leaves_documents)
{
    struct probe_conf conf = {.task = PROBE_TASK_TENSOR, .summary = PROBE_SUMMARY_MD5};
    scratch_dir(dir);
    ck_ok(write_all(conf), err);
    ms_trace_reset();
    size_t live = ms_mem_live();
    for (uint64_t n = 1;; n++) {
        ms_mem_fail_at(n);
        enum ms_rc rc = write_all(conf);
        bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ms_trace_reset();
        ck_assert_uint_eq(ms_mem_live(), live);
        if (!failed)
            break;
        ck_assert_msg(rc == MS_OK || rc == MS_E_NOMEM, "allocation %d: %d %s", (int)n, rc, err.msg);
        struct probe_dump *d;
        enum ms_rc read = probe_dump_open(&d, file_in_dir("dump.json"), 0, NULL, &err);
        ck_assert_msg(read == MS_OK || rc == MS_E_NOMEM, "allocation %d: %s", (int)n, err.msg);
        probe_dump_close(d);
        ms_trace_reset();
    }
    scratch_remove(dir);
}
END_TEST

static void put_numbered(struct probe_writer *w, int i)
{
    char name[64];
    snprintf(name, sizeof name, "Functional.x.%d.forward", i);
    probe_record_begin(w, name);
    probe_section(w, PROBE_SEC_OUTPUT);
    for (int k = 0; k < 20; k++)
        probe_put_int(w, NULL, i);
    probe_record_end(w);
}

/* In a child, whose files may not grow beyond a limit: a full disk. */
static int fill_the_disk(void)
{
    struct rlimit limit = {100000, 100000};
    struct probe_writer *w;
    struct probe_conf conf = {.dir = dir};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    int flushed = 0;
    if (probe_writer_open(&w, &conf, &err) != MS_OK)
        return 255;
    for (int i = 0; i < 200; i++) {
        put_numbered(w, i);
        if (probe_writer_flush(w, NULL) == MS_OK)
            flushed++;
    }
    enum ms_rc rc = probe_writer_close(w, &err);
    return rc == MS_E_IO && strstr(err.msg, "dump.json: cannot write") != NULL ? flushed : 254;
}

START_TEST(a_full_disk_is_reported_and_leaves_every_flushed_record)
{
    int status;
    scratch_dir(dir);
    pid_t pid = fork();
    if (pid == 0)
        _exit(fill_the_disk());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_gt(WEXITSTATUS(status), 5);
    ck_assert_int_lt(WEXITSTATUS(status), 200);
    ck_assert_uint_eq(ck_files_are_whole(true), (size_t)WEXITSTATUS(status));
    scratch_remove(dir);
}
END_TEST

/* Dumps, and closes in between all descriptors as daemons do, those of Check too; files of the program take their numbers. Returns
 * how many of those the dump has closed or written to. */
static int close_what_it_does_not_know(void)
{
    enum { FIRST = 3, LAST = 600 };
    struct probe_writer *w = open_with((struct probe_conf){0});
    struct stat st;
    int harmed = 0;
    for (int i = 0; i < 60; i++) {
        put_numbered(w, i);
        if (i % 4 == 0 && probe_writer_flush(w, &err) != MS_OK)
            return 101;
        for (int fd = FIRST; i == 30 && fd < LAST; fd++)
            close(fd);
        int own = i == 30 ? open(file_in_dir("own"), O_RDWR | O_CREAT, 0600) : -1;
        for (int fd = FIRST; own >= 0 && fd < LAST; fd++)
            dup2(own, fd);
    }
    if (probe_writer_close(w, &err) != MS_OK)
        return 102;
    for (int fd = FIRST; fd < LAST; fd++)
        harmed += fstat(fd, &st) != 0 || st.st_size != 0;
    return harmed < 100 ? harmed : 100;
}

START_TEST(descriptors_that_the_program_closes_are_opened_again)
{
    int status;
    scratch_dir(dir);
    pid_t pid = fork();
    if (pid == 0)
        _exit(close_what_it_does_not_know());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(ck_files_are_whole(true), 60);
    scratch_remove(dir);
}
END_TEST

/* Tells through the pipe how many records are in the file, until it is killed. */
static void dump_forever(int to)
{
    struct probe_writer *w;
    struct probe_conf conf = {.dir = dir};
    static const char *const frames[] = {"File a", "File b"};
    if (probe_writer_open(&w, &conf, &err) != MS_OK)
        _exit(1);
    for (int i = 0;; i++) {
        char name[64];
        put_numbered(w, i);
        snprintf(name, sizeof name, "Functional.x.%d.forward", i);
        probe_parent(w, name, i % 7 == 0 ? NULL : "Module.a.B.forward.0");
        probe_stack(w, name, frames, 1 + (unsigned)i % 2);
        if (i % 3 == 0 && probe_writer_flush(w, NULL) == MS_OK)
            (void)!write(to, &i, sizeof i);
    }
}

static int last_told(int from)
{
    int i;
    int last = -1;
    while (read(from, &i, sizeof i) == sizeof i)
        last = i;
    return last;
}

START_TEST(a_killed_program_leaves_every_flushed_record)
{
    unsigned seed = 12345;
    for (int run = 0; run < 25; run++) {
        int ends[2];
        int status;
        struct probe_dump *d;
        scratch_dir(dir);
        ck_assert_int_eq(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            dump_forever(ends[1]);
        }
        close(ends[1]);
        seed = seed * 1103515245 + 12345;
        struct timespec moment = {0, 1000000 + (long)(seed >> 8) % 20000000};
        nanosleep(&moment, NULL);
        kill(pid, SIGKILL);
        int last = last_told(ends[0]);
        close(ends[0]);
        waitpid(pid, &status, 0);
        if (access(file_in_dir("dump.json"), F_OK) == 0 && last >= 0) {
            ms_err_clear(&err);
            ck_ok(probe_dump_open(&d, path, PROBE_OPEN_TOLERANT, NULL, &err), err);
            ck_assert_msg(d->nodes.n > (size_t)last, "%zu records, %d told", d->nodes.n, last);
            probe_dump_close(d);
        }
        scratch_remove(dir);
    }
}
END_TEST

TEST_MAIN("writer", each_kind_of_dump_is_right_to_the_byte,
          what_was_written_reads_back_with_the_names_of_the_format,
          tensor_files_hold_the_elements_in_order, the_files_are_documents_from_the_start,
          construct_and_stack_are_right_to_the_byte,
          a_stack_split_by_flushes_reads_right_before_it_is_joined,
          level_l1_keeps_construct_empty_and_no_extra_has_none, a_dropped_record_leaves_no_trace,
          a_record_that_is_misused_is_left_out_and_reported, values_outside_of_a_record_go_nowhere,
          a_record_that_is_not_ended_is_reported,
          names_that_cannot_be_files_have_a_description_only,
          a_configuration_that_makes_no_sense_is_refused,
          every_failed_allocation_is_reported_and_leaves_documents,
          a_full_disk_is_reported_and_leaves_every_flushed_record,
          descriptors_that_the_program_closes_are_opened_again,
          a_killed_program_leaves_every_flushed_record)
