/* SPDX-License-Identifier: MIT
 *
 * The program comes first: kills, forks, full disks, memory, threads, and a
 * configuration that changes meanwhile.
 */
#include "probe/base/log.h"
#include "probe/base/mem.h"

#include "tests/support/dumper_fixture.h"
#include "tests/support/settle.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- a program first -------------------------------------------------- */

START_TEST(a_warm_dumper_allocates_nothing)
{
    begin();
    enum { OPS = 3000, STEPS = 3 };
    volatile int steps = STEPS; /* a loop that is unrolled has a call site for each step */
    uint64_t calls[STEPS];
    struct probe_dumper *d = open_with(everything());
    for (int step = 0; step < steps; step++) {
        probe_dumper_start(d);
        uint64_t before = ms_mem_calls();
        struct probe_call *c = probe_module_enter(d, "a", "A");
        for (int i = 0; i < OPS * steps; i++)
            op(d, "relu");
        probe_call_exit(c);
        calls[step] = ms_mem_calls() - before;
        probe_dumper_stop(d);
        probe_dumper_step(d);
    }
    close_dumper(d);
    ck_assert_uint_gt(calls[0], 0);
    ck_assert_uint_eq(calls[STEPS - 1], 0);
    scratch_remove(dir);
}
END_TEST

START_TEST(memory_of_tensors_on_their_way_is_bounded)
{
    begin();
    enum { LIMIT = 1 << 20, ELEMENTS = 60000 };
    static float large[ELEMENTS], larger[LIMIT];
    struct probe_tensor_desc t = {.data = large, .dtype = "float32", .ndim = 1};
    struct probe_tensor_desc u = {.data = larger, .dtype = "float32", .ndim = 1};
    t.shape = &(const uint64_t){ELEMENTS};
    u.shape = &(const uint64_t){LIMIT};
    const struct probe_value v = {.kind = PROBE_TENSOR, .tensor = &t};
    const struct probe_value w = {.kind = PROBE_TENSOR, .tensor = &u};
    struct probe_settings s = everything();
    s.task = PROBE_TASK_TENSOR;
    s.memory_max = LIMIT;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    op(d, "first"); /* names its call site, which takes memory of its own */
    size_t before = ms_mem_live();
    ms_mem_peak_reset();
    for (int i = 0; i < 20; i++) {
        large[0] = (float)i;
        probe_op(d, "Torch", "a", NULL, 0, &v, 1);
    }
    probe_op(d, "Torch", "larger", NULL, 0, &w, 1);
    probe_dumper_stop(d);
    ck_assert_uint_lt(ms_mem_peak(), before + LIMIT);
    close_dumper(d);
    for (int i = 0; i < 20; i++) {
        struct probe_tensor file;
        char path[300];
        float first;
        snprintf(path, sizeof path, "%s/" STEP0 "dump_tensor_data/Torch.a.%d.forward.output.0.pt",
                 dir, i);
        ck_ok(probe_tensor_open(&file, path, SIZE_MAX, &err), err);
        memcpy(&first, file.data, sizeof first);
        ck_assert(file.count == ELEMENTS && first == (float)i);
        ck_ok(probe_tensor_verify(&file, &err), err);
        probe_tensor_close(&file);
    }
    ck_assert(exists(STEP0 "dump_tensor_data/Torch.larger.0.forward.output.0.pt"));
    scratch_remove(dir);
}
END_TEST

START_TEST(a_bad_tensor_becomes_null_with_a_note)
{
    begin();
    const struct probe_tensor_desc cases[] = {
        {.data = numbers, .dtype = "qint8", .shape = shape, .ndim = 2},
        {.data = NULL, .dtype = "float32", .shape = shape, .ndim = 2},
        {.data = numbers,
         .dtype = "float32",
         .shape = (const uint64_t[]){UINT64_MAX, 2},
         .ndim = 2},
    };
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    struct probe_call *c = probe_op_enter(d, "Torch", "a");
    for (size_t i = 0; i < 3; i++)
        probe_call_input(c, &(struct probe_value){.kind = PROBE_TENSOR, .tensor = &cases[i]});
    probe_call_output(c, &x);
    probe_call_input(c, &x); /* too late */
    probe_call_exit(c);
    close_dumper(d);
    const char *text = text_of(STEP0 "dump.json");
    has(text, "\"input_args\": [\n    null,\n    null,\n    null\n   ],");
    has(text, "\"output\": [\n    {");
    text = text_of(STEP0 "dump_error_info.log");
    has(text, "] Torch.a.0.forward: a tensor is left out: unknown dtype 'qint8'\n");
    has_not(text, "without data"); /* a kind is told once a step */
    has(text, "a value came after those that follow it");
    scratch_remove(dir);
}
END_TEST

START_TEST(without_a_dumper_nothing_happens)
{
    probe_dumper_start(NULL);
    probe_dumper_stop(NULL);
    probe_dumper_step(NULL);
    probe_dumper_set_rank(NULL, 1);
    probe_dumper_set_step(NULL, 1);
    ck_assert(!probe_dumper_active(NULL));
    struct probe_call *c = probe_module_enter(NULL, "a", "A");
    ck_assert_ptr_null(c);
    ck_assert_ptr_null(probe_op_enter(NULL, "Torch", "a"));
    ck_assert_ptr_null(probe_root_enter(NULL, "optimizer"));
    ck_assert_ptr_null(probe_module_enter_backward(NULL, "a", "A", 0));
    ck_assert_int_eq(probe_call_number(c), -1);
    probe_call_input(c, &x);
    probe_call_output(c, &x);
    probe_call_parameter(c, &x);
    probe_call_detach(c);
    probe_call_drop(c);
    probe_call_exit(c);
    ck_assert_int_eq(probe_op(NULL, "Torch", "a", &x, 1, &x, 1), -1);
    probe_parameters_grad(NULL, "a", "A", &x, 1);
    probe_save(NULL, "a", &x);
    probe_save_grad(NULL, "a", &x);
    ck_assert_int_eq(probe_dumper_close(NULL, &err), MS_OK);
}
END_TEST

START_TEST(a_step_that_cannot_be_written_is_given_up)
{
    begin();
    char path[96];
    snprintf(path, sizeof path, "%s/step0", dir);
    write_file(path, "in the way", 10);
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    ck_assert(!probe_dumper_active(d));
    op(d, "relu");
    probe_dumper_step(d);
    probe_dumper_start(d);
    ck_assert(probe_dumper_active(d));
    op(d, "relu");
    ck_assert_int_ne(probe_dumper_close(d, &err), MS_OK);
    ck_says(err, "step0");
    ck_assert_str_eq(records_of("step1/rank0/dump.json"), RELU);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_full_disk_stops_the_dump_and_not_the_program)
{
    begin();
    struct probe_settings s = everything();
    s.task = PROBE_TASK_TENSOR;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    op(d, "relu");
    probe_dumper_stop(d);
    char path[96];
    snprintf(path, sizeof path, "%s/" STEP0 "dump_tensor_data", dir);
    ck_assert_int_eq(chmod(path, 0), 0);
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -rf '%s' && : > '%s'", path, path);
    ck_assert_int_eq(system(cmd), 0); /* no file can be made there now */
    probe_dumper_start(d);
    for (int i = 0; i < 3000; i++)
        op(d, "gelu");
    probe_dumper_stop(d);
    ck_assert(!probe_dumper_active(d));
    ck_assert_int_ne(probe_dumper_close(d, &err), MS_OK);
    has(records_of(STEP0 "dump.json"), RELU); /* what was flushed before is whole */
    scratch_remove(dir);
}
END_TEST

START_TEST(a_killed_program_leaves_whole_documents)
{
    begin();
    int ready[2];
    char byte;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct probe_settings s = everything();
        s.task = PROBE_TASK_TENSOR;
        struct probe_dumper *d = open_with(s);
        probe_dumper_start(d);
        for (int i = 0;; i++) {
            op(d, "relu");
            if (i == 3000)
                (void)!write(ready[1], "x", 1);
        }
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct probe_dump *dump;
    char path[300];
    snprintf(path, sizeof path, "%s/" STEP0 "dump.json", dir);
    ck_ok(probe_dump_open(&dump, path, 0, NULL, &err), err); /* strict, without repair */
    ck_assert_uint_gt(dump->nodes.n, 100);
    struct ms_str last = probe_node_name(dump, (uint32_t)dump->nodes.n - 1);
    snprintf(path, sizeof path, STEP0 "dump_tensor_data/%.*s.output.0.pt", MS_STR_ARG(last));
    ck_assert(exists(path));
    probe_dump_close(dump);
    scratch_remove(dir);
}
END_TEST

/* One value and nothing after it: any JSON file of a step. */
static void check_document(const char *name)
{
    char path[300];
    struct ms_file f;
    struct ms_jread r;
    snprintf(path, sizeof path, "%s/" STEP0 "%s", dir, name);
    if (!exists(path + strlen(dir) + 1))
        return;
    ck_ok(ms_file_map(&f, path, 1 << 30, &err), err);
    ms_jread_init(&r, f.p, f.n, 0);
    ck_assert_msg(ms_jread_skip(&r, ms_jread_next(&r)) != MS_J_ERR && ms_jread_next(&r) == MS_J_END,
                  "%s is cut after %zu bytes", name, f.n);
    ms_file_unmap(&f);
}

/* The kernel ends a write of a killed process at a page, of which a document of this size has some. */
START_TEST(killed_at_any_moment_all_documents_are_whole)
{
    enum { TIMES = 25 };
    for (int i = 0; i < TIMES; i++) {
        begin();
        pid_t child = fork();
        if (child == 0) {
            struct probe_dumper *d = open_with(everything());
            for (;;) {
                probe_dumper_start(d);
                for (int k = 0; k < 20000; k++)
                    op(d, "relu");
                probe_dumper_stop(d);
            }
        }
        usleep(3000 + (useconds_t)(i * 7919 % 40000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        check_document("dump.json");
        check_document("stack.json");
        check_document("construct.json");
        scratch_remove(dir);
    }
}
END_TEST

START_TEST(a_forked_child_leaves_the_dump_alone)
{
    begin();
    struct probe_settings s = everything();
    s.task = PROBE_TASK_TENSOR;
    struct probe_dumper *d = open_with(s);
    probe_dumper_start(d);
    struct probe_call *c = probe_op_enter(d, "Torch", "a");
    settle();
    pid_t child = fork();
    if (child == 0) {
        probe_call_output(c, &x);
        probe_call_exit(c);
        op(d, "child");
        probe_dumper_stop(d);
        probe_dumper_step(d);
        probe_dumper_start(d);
        _exit(probe_dumper_active(d) || probe_dumper_close(d, NULL) != MS_OK);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    probe_call_output(c, &x);
    probe_call_exit(c);
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"), "Torch.a.0.forward");
    scratch_remove(dir);
}
END_TEST

START_TEST(a_program_that_does_not_close_keeps_its_dump)
{
    begin();
    pid_t child = fork();
    if (child == 0) {
        struct probe_dumper *d = open_with(everything());
        probe_dumper_start(d);
        op(d, "relu");
        exit(0);
    }
    waitpid(child, NULL, 0);
    ck_assert_str_eq(records_of(STEP0 "dump.json"), RELU);
    scratch_remove(dir);
}
END_TEST

/* ---- a file that is looked at again ----------------------------------- */

/* Another file under the name, looked at whatever the hour. */
static void rewrite_config(struct probe_dumper *d, const char *path, const char *switch_text)
{
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "{\"dump_path\": \"%s\", \"level\": \"L1\", \"risk_level\": \"ALL\"%s}", dir,
            switch_text);
    fclose(f);
    if (d != NULL)
        d->source.looked_ns = INT64_MIN / 2;
}

static void one_step(struct probe_dumper *d)
{
    probe_dumper_start(d);
    op(d, "relu");
    probe_dumper_stop(d);
    probe_dumper_step(d);
}

START_TEST(a_switch_in_the_file_turns_a_running_dump_on_and_off)
{
    begin();
    char path[100];
    struct probe_dumper *d;
    snprintf(path, sizeof path, "%s/config.json", dir);
    rewrite_config(NULL, path, ", \"dump_enable\": false");
    ck_ok(probe_dumper_load(&d, path, &err), err);
    probe_dumper_set_rank(d, 0);
    one_step(d);
    rewrite_config(d, path, ", \"dump_enable\": true");
    one_step(d);
    rewrite_config(d, path, ", \"dump_enable\": true, \"statistics\": {\"list\": [\"gelu\"]}");
    one_step(d);
    rewrite_config(d, path, ", \"dump_enable\": tru");
    one_step(d);
    rewrite_config(d, path, ""); /* it stays as it was: off */
    one_step(d);
    close_dumper(d);
    ck_assert(!exists("step0"));
    ck_assert_str_eq(records_of("step1/rank0/dump.json"), RELU);
    ck_assert_str_eq(records_of("step2/rank0/dump.json"), "");
    ck_assert(!exists("step3") && !exists("step4"));
    scratch_remove(dir);
}
END_TEST

START_TEST(a_file_without_the_switch_is_read_once)
{
    begin();
    char path[100];
    struct probe_dumper *d;
    snprintf(path, sizeof path, "%s/config.json", dir);
    rewrite_config(NULL, path, "");
    ck_ok(probe_dumper_load(&d, path, &err), err);
    probe_dumper_set_rank(d, 0);
    rewrite_config(d, path, ", \"dump_enable\": false");
    one_step(d);
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"), RELU);
    scratch_remove(dir);
}
END_TEST

/* ---- figures that come later ------------------------------------------- */

START_TEST(records_wait_in_their_order_for_figures_that_come_later)
{
    begin();
    struct probe_dumper *d = open_with(everything());
    struct probe_tensor t = {.dtype = MS_DT_F32, .ndim = 1, .shape = {2}, .count = 2};
    probe_dumper_start(d);
    struct probe_call *c = probe_op_enter(d, "Functional", "relu");
    ck_assert_ptr_nonnull(probe__call_part(c, PROBE_SEC_INPUT_ARGS));
    probe__call_tensor(c, NULL, &t, &(struct probe__leaf_as){.later = 2});
    probe__call_tensor(c, NULL, &t, &(struct probe__leaf_as){.later = 1});
    probe_call_exit(c);
    op(d, "gelu");
    const struct probe__figure figures[] = {{.kind = PROBE_NUM_FLOAT, .v = 1.5},
                                            {.kind = PROBE_NUM_INT, .i = -7},
                                            {.kind = PROBE_NUM_NULL},
                                            {.kind = PROBE_NUM_BOOL, .v = 1}};
    probe__dumper_figures(d, figures, 4); /* the second tensor gets none */
    close_dumper(d);
    ck_assert_str_eq(records_of(STEP0 "dump.json"),
                     "Functional.relu.0.forward Functional.gelu.0.forward");
    const char *text = text_of(STEP0 "dump.json");
    const char *first = strstr(text, "\"Max\": null");
    ck_assert_ptr_nonnull(first);
    has(first, "\"Max\": 1.5,\n     \"Min\": -7,\n     \"Mean\": null,\n     \"Norm\": true,");
    scratch_remove(dir);
}
END_TEST

/* ---- threads ---------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 200 };

static void *run_thread(void *ctx)
{
    struct probe_dumper *d = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        struct probe_call *c = probe_module_enter(d, "a", "A");
        op(d, "relu");
        probe_call_exit(c);
    }
    return NULL;
}

START_TEST(threads_have_their_own_modules_and_one_count)
{
    begin();
    pthread_t thread[THREADS];
    struct probe_settings s = everything();
    s.task = PROBE_TASK_TENSOR;
    s.memory_max = 1 << 16;
    struct probe_dumper *d = open_with(s);
    for (int round = 0; round < 2; round++) { /* the second finds what the first one left */
        probe_dumper_start(d);
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&thread[i], NULL, run_thread, d), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        probe_dumper_stop(d);
        probe_dumper_step(d);
    }
    close_dumper(d);
    struct probe_dump *dump;
    char path[300];
    snprintf(path, sizeof path, "%s/" STEP0 "dump.json", dir);
    ck_ok(probe_dump_open(&dump, path, 0, NULL, &err), err);
    ck_assert_uint_eq(dump->nodes.n, 2 * THREADS * ROUNDS);
    probe_dump_close(dump);
    has(text_of("step1/rank0/construct.json"), "\"Functional.relu.0.forward\": \"Module.a.A");
    scratch_remove(dir);
}
END_TEST

START_TEST(two_dumpers_do_not_meet)
{
    begin();
    struct probe_settings s = everything();
    char other[96];
    snprintf(other, sizeof other, "%s/other", dir);
    struct probe_dumper *a = open_with(s);
    s.dump_path = other;
    struct probe_dumper *b = open_with(s);
    probe_dumper_start(a);
    probe_dumper_start(b);
    struct probe_call *c = probe_op_enter(a, "Torch", "a");
    op(b, "relu"); /* inside an operator of the other one */
    probe_call_exit(c);
    close_dumper(a);
    close_dumper(b);
    ck_assert_str_eq(records_of(STEP0 "dump.json"), "Torch.a.0.forward");
    ck_assert_str_eq(records_of("other/" STEP0 "dump.json"), RELU);
    scratch_remove(dir);
}
END_TEST

START_TEST(every_allocation_that_fails_leaves_a_working_program)
{
    size_t before = ms_mem_live();
    ms_log_set_level(MS_LOG_ERROR);
    for (unsigned n = 1; n < 400; n++) {
        struct probe_dumper *d;
        begin();
        struct probe_settings s = everything();
        s.task = PROBE_TASK_TENSOR;
        s.list = WORDS("relu", "a");
        s.memory_max = 1 << 16;
        ms_mem_fail_at(n);
        if (probe_dumper_open(&d, &s, &err) == MS_OK) {
            probe_dumper_start(d);
            run_model(d);
            probe_dumper_set_rank(d, 1);
            probe_dumper_step(d);
            (void)!probe_dumper_close(d, &err);
        }
        bool done = !ms_mem_failed();
        ms_mem_fail_at(0);
        scratch_remove(dir);
        ck_assert_uint_eq(ms_mem_live(), before);
        if (done)
            return;
    }
    ck_abort_msg("more allocations than expected");
}
END_TEST

TEST_MAIN("dumper_safety", a_warm_dumper_allocates_nothing,
          memory_of_tensors_on_their_way_is_bounded, a_bad_tensor_becomes_null_with_a_note,
          without_a_dumper_nothing_happens, a_step_that_cannot_be_written_is_given_up,
          a_full_disk_stops_the_dump_and_not_the_program, a_killed_program_leaves_whole_documents,
          killed_at_any_moment_all_documents_are_whole, a_forked_child_leaves_the_dump_alone,
          a_program_that_does_not_close_keeps_its_dump,
          a_switch_in_the_file_turns_a_running_dump_on_and_off,
          a_file_without_the_switch_is_read_once,
          records_wait_in_their_order_for_figures_that_come_later,
          threads_have_their_own_modules_and_one_count, two_dumpers_do_not_meet,
          every_allocation_that_fails_leaves_a_working_program)
