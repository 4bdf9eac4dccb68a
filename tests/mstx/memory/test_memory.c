/* SPDX-License-Identifier: MIT
 *
 * The model of memory use and its answers, and the readers that fill it, each on a file whose answer is
 * counted by hand.
 */
#include "tests/support/scratch_run.h"

#include "mstx/memory/mem_read.h"
#include "mstx/memory/mem_report.h"

#include "probe/base/pickle.h"
#include "probe/base/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct mstx_mem_log *log_;
static struct mstx_mem_space *cpu;
static struct mstx_mem_report report;

static void begin(void)
{
    ck_assert_int_eq(mstx__mem_log_new(&log_, NULL), MS_OK);
    ck_assert_int_eq(mstx__mem_space(log_, 0, MS_STR("cpu"), &cpu, NULL), MS_OK);
}

static void answer(void)
{
    ck_assert_int_eq(mstx__mem_report_make(&report, "x", log_, NULL), MS_OK);
}

static void end(void)
{
    mstx__mem_report_free(&report);
    mstx__mem_log_free(log_);
}

static uint32_t site_of(const char *frame, enum mstx_mem_phase phase)
{
    struct mstx_mem_site site = {.frame = mstx__mem_text(log_, ms_str_of(frame)),
                                 .phase = (uint8_t)phase};
    uint32_t number;
    ck_assert_int_eq(mstx__mem_site(log_, &site, &number, NULL), MS_OK);
    return number;
}

static void take(int64_t at, uint64_t address, uint64_t bytes, uint32_t site)
{
    ck_assert_int_eq(mstx__mem_alloc(cpu, at, address, bytes, site, MSTX_MEM_UNKNOWN, NULL), MS_OK);
}

static void give(int64_t at, uint64_t address, uint8_t phase)
{
    bool found;
    ck_assert_int_eq(mstx__mem_free(cpu, at, address, phase, &found, NULL), MS_OK);
    ck_assert(found);
}

/* ---- the model ---------------------------------------------------------------------------- */

START_TEST(the_peak_is_what_lives_at_one_event)
{
    begin();
    const uint32_t a = site_of("a.py:1 f", MSTX_PHASE_NONE),
                   b = site_of("b.py:2 g", MSTX_PHASE_NONE);
    take(1, 100, 10, a);
    take(2, 200, 30, b);
    give(3, 100, 0);
    take(4, 300, 5, a);
    answer();
    const struct mstx_mem_peak *p = &report.answers.p[0].peak;
    ck_assert_uint_eq(p->bytes, 40);
    ck_assert_uint_eq(p->event, 2);
    ck_assert_uint_eq(p->blocks, 2);
    ck_assert_uint_eq(p->frames.p[0].bytes, 30);
    ck_assert(ms_str_is(mstx__mem_text_of(log_, p->frames.p[0].text), "b.py:2 g"));
    end();
}
END_TEST

START_TEST(a_block_at_a_used_address_ends_the_one_before)
{
    begin();
    take(1, 100, 10, 0);
    take(2, 100, 20, 0);
    answer();
    ck_assert_uint_eq(report.answers.p[0].peak.bytes, 20);
    end();
}
END_TEST

/* Addresses that share slots of the table stay findable while others go. */
START_TEST(open_blocks_are_found_however_many_go)
{
    enum { N = 5000 };
    begin();
    uint64_t live = 0, most = 0;
    for (uint64_t i = 0; i < N; i++) {
        take((int64_t)i, i * 64, i + 1, 0);
        live += i + 1;
        most = live > most ? live : most;
        if (i % 3 == 2) {
            give((int64_t)i, (i - 1) * 64, 0);
            live -= i;
        }
    }
    for (uint64_t i = 0; i < N; i++) {
        if (i % 3 != 1 || i + 1 >= N)
            give(N, i * 64, 0);
    }
    answer();
    ck_assert_uint_eq(report.answers.p[0].peak.bytes, most);
    ck_assert_uint_eq(cpu->unmatched, 0);
    end();
}
END_TEST

START_TEST(events_in_any_order_give_the_same_peak)
{
    const struct mstx_mem_event in[] = {{.at_ns = 5, .address = 1, .bytes = 0},
                                        {.at_ns = 3, .address = 2, .bytes = 7},
                                        {.at_ns = 1, .address = 1, .bytes = 10},
                                        {.at_ns = 4, .address = 9, .bytes = -4}};
    mstx_mem_events events = {0};
    begin();
    for (size_t i = 0; i < 4; i++)
        *ms_vec_push(&events) = in[i];
    ck_assert_int_eq(mstx__mem_replay(cpu, &events, NULL), MS_OK);
    ms_vec_free(&events);
    answer();
    /* the block at 9 lived before the record */
    ck_assert_uint_eq(report.answers.p[0].peak.bytes, 21);
    ck_assert_uint_eq(report.answers.p[0].peak.by_kind[MSTX_MEM_UNKNOWN], 21);
    end();
}
END_TEST

static void add_step(int64_t number, int64_t from, int64_t to)
{
    *ms_vec_push(&cpu->steps) = (struct mstx_mem_step){number, from, to};
}

/* ---- growth -------------------------------------------------------------------------------- */

enum growth { LEAKS, WARMS_UP, REPLACES, LEAKS_LITTLE, LEAKS_EVERY_THIRD };
static const struct {
    enum growth kind;
    bool leaks;
} growths[] = {{LEAKS, true},
               {WARMS_UP, false},
               {REPLACES, false},
               {LEAKS_LITTLE, false},
               {LEAKS_EVERY_THIRD, true}};

/* Whether a step leaves a block of that growth behind. */
static bool leaves(enum growth kind, int64_t step)
{
    return kind == LEAKS || kind == LEAKS_LITTLE || (kind == WARMS_UP && step < 4) ||
           (kind == REPLACES && step >= 19) || (kind == LEAKS_EVERY_THIRD && step % 3 == 0);
}

START_TEST(only_what_every_step_leaves_is_growth)
{
    begin();
    const uint32_t work = site_of("model.py:9 forward", MSTX_PHASE_FORWARD);
    const uint32_t kept = site_of("train.py:7 loop", MSTX_PHASE_NONE);
    const enum growth kind = growths[_i].kind;
    for (int64_t s = 0; s < 20; s++) {
        add_step(s, 100 * s, 100 * s + 99);
        take(100 * s + 1, 1, 1000000, work);
        if (leaves(kind, s))
            take(100 * s + 2, 1000 + (uint64_t)s * 64, kind == LEAKS_LITTLE ? 1 : 64000, kept);
        give(100 * s + 50, 1, MSTX_PHASE_BACKWARD);
    }
    answer();
    const struct mstx_mem_growth *g = &report.answers.p[0].growth;
    ck_assert_uint_eq(g->steps, 16);
    ck_assert_uint_eq(g->leaks.n, growths[_i].leaks ? 1 : 0);
    ck_assert_int_eq(mstx__mem_has_findings(&report), growths[_i].leaks);
    if (kind == LEAKS)
        ck_assert_double_eq_tol(g->bytes_per_step, 64000, 1e-9);
    end();
}
END_TEST

START_TEST(few_steps_decide_nothing)
{
    begin();
    for (int64_t s = 0; s < 7; s++) {
        add_step(s, 100 * s, 100 * s + 99);
        take(100 * s + 2, 1000 + (uint64_t)s * 64, 64000, 0);
    }
    answer();
    ck_assert_uint_eq(report.answers.p[0].growth.steps, 0);
    ck_assert(!mstx__mem_has_findings(&report));
    end();
}
END_TEST

START_TEST(ranks_are_out_of_balance_from_a_tenth_on)
{
    struct mstx_mem_space *other;
    begin();
    take(1, 1, 1000, 0);
    ck_assert_int_eq(mstx__mem_space(log_, 1, MS_STR("cpu"), &other, NULL), MS_OK);
    ck_assert_int_eq(mstx__mem_alloc(other, 1, 1, _i == 0 ? 1099 : 1101, 0, 0, NULL), MS_OK);
    answer();
    ck_assert_int_eq(mstx__mem_ranks_differ(&report), _i != 0);
    ck_assert_int_eq(report.most_rank, 1);
    end();
}
END_TEST

/* ---- readers ------------------------------------------------------------------------------ */

static char path[256];

static void write_text(const char *name, const char *text)
{
    snprintf(path, sizeof path, "%s/%s", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp",
             name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(text, 1, strlen(text), f);
    fclose(f);
}

static enum ms_rc read_file(struct ms_err *err)
{
    const enum ms_rc rc = mstx__mem_read(&log_, path, NULL, err);
    if (rc == MS_OK)
        answer();
    unlink(path);
    return rc;
}

START_TEST(a_raw_timeline_has_the_profilers_categories)
{
    write_text("msprobe-test.raw.json",
               "[[-1, 1, 100, 0], [5, 2, 50, 4], [6, 3, -50, 4], [6, 3, 50, 5], [7, 4, -50, 5]]");
    ck_assert_int_eq(read_file(NULL), MS_OK);
    const struct mstx_mem_peak *p = &report.answers.p[0].peak;
    ck_assert_uint_eq(p->bytes, 150);
    ck_assert_uint_eq(p->by_kind[MSTX_MEM_PARAMETER], 100);
    ck_assert_uint_eq(p->by_kind[MSTX_MEM_ACTIVATION], 50);
    end();
}
END_TEST

START_TEST(a_trace_gives_each_event_its_operator_module_and_step)
{
    write_text(
        "msprobe-test-rank2.json",
        "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 3, \"x\": [1]}, \"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\",\"pid\":1,"
        "\"tid\":1,\"ts\":0,\"dur\":100},"
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"train.py(7): "
        "step\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":90},"
        "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"nn.Module: "
        "Linear_0\",\"pid\":1,\"tid\":1,\"ts\":2,\"dur\":20},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":1,\"tid\":1,"
        "\"ts\":3,\"dur\":10},"
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":5,\"args\":{"
        "\"Addr\":64,\"Bytes\":4096,"
        "\"Device Type\":0,\"Device Id\":-1,\"Total Allocated\":5096}},"
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":2,\"ts\":50,\"args\":{"
        "\"Addr\":64,\"Bytes\":-4096,"
        "\"Device Type\":0,\"Device Id\":-1,\"Total Allocated\":1000}}]}");
    ck_assert_int_eq(read_file(NULL), MS_OK);
    const struct mstx_mem_peak *p = &report.answers.p[0].peak;
    ck_assert_int_eq(report.answers.p[0].space->rank, 3);
    ck_assert_uint_eq(p->bytes, 5096);
    ck_assert_uint_eq(p->by_kind[MSTX_MEM_EARLIER], 1000);
    ck_assert_int_eq(p->step, 4);
    ck_assert(ms_str_is(mstx__mem_text_of(log_, p->ops.p[0].text), "aten::linear"));
    ck_assert(ms_str_is(mstx__mem_text_of(log_, p->modules.p[0].text), "Linear_0"));
    ck_assert(ms_str_is(mstx__mem_text_of(log_, p->frames.p[0].text), "train.py:7 step"));
    end();
}
END_TEST

START_TEST(a_table_of_mindspore_has_blocks_with_both_times)
{
    write_text(
        "msprobe-test.csv",
        "start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_used_memory,"
        "actual_peak_memory,file_name,line_num,type,producer_task,task_name,node_name,graph_name,"
        "user_tasks,last_user_task,python_stack,is_persistent,is_small,\n"
        "1,9223372036854775807,4096,0,Ascend,1000,0,0,a.cc,1,Weight,1,w,Default/"
        "fc.weight,g,{},1,,1,0,\n"
        "2,5,8192,0,Ascend,300,0,0,a.cc,1,Kernel,2,t,Default/net/MatMul-op0,g,{3-},3,"
        "File:net.py;Line:4;Function:construct|,0,0,\n"
        "3,4,9000,0,Ascend,50,0,0,a.cc,1,WorkSpace,3,t,Default/net/Add-op1,g,{},3,,0,0,\n");
    ck_assert_int_eq(read_file(NULL), MS_OK);
    const struct mstx_mem_peak *p = &report.answers.p[0].peak;
    ck_assert_uint_eq(p->bytes, 1350);
    ck_assert_uint_eq(p->by_kind[MSTX_MEM_PARAMETER], 1000);
    ck_assert_uint_eq(p->by_kind[MSTX_MEM_ACTIVATION], 300);
    ck_assert_uint_eq(p->by_kind[MSTX_MEM_TEMPORARY], 50);
    end();
}
END_TEST

START_TEST(tables_of_ascend_are_kilobytes_and_microseconds)
{
    write_text("msprobe-test.csv",
               "Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us),"
               "Allocation Total Allocated(MB),Device Type\n"
               "aten::a,2,1791506401715928.118\t,1791506401715930.118\t,2,1,NPU:0\n"
               "aten::b,3,1791506401715929.000\t,,,1,NPU:0\n"
               "aten::c,1.5,1791506401715931.000\t,1791506401715932.000\t,1,1,NPU:0\n");
    ck_assert_int_eq(read_file(NULL), MS_OK);
    ck_assert_uint_eq(report.answers.p[0].peak.bytes, 5120);
    ck_assert(ms_str_is(report.answers.p[0].space->device, "NPU:0"));
    end();
    write_text("msprobe-test.csv",
               "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n"
               "PTA,1,3,4,NPU:0\nPTA,2,5,8,NPU:0\nPTA,3,1,8,NPU:0\n");
    ck_assert_int_eq(read_file(NULL), MS_OK);
    ck_assert_uint_eq(report.answers.p[0].peak.bytes, 5u << 20);
    ck_assert_uint_eq(report.answers.p[0].peak.reserved_then, 8u << 20);
    end();
}
END_TEST

START_TEST(a_database_of_ascend_has_one_row_a_block)
{
    struct ms_store *db;
    snprintf(path, sizeof path, "%s/msprobe-test.db",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    unlink(path);
    ck_assert_int_eq(ms_store_create(&db, path, NULL), MS_OK);
    ck_assert_int_eq(
        ms_store_exec(db,
                      "CREATE TABLE STRING_IDS(id INTEGER, value TEXT);"
                      "CREATE TABLE OP_MEMORY(name INTEGER, size INTEGER, allocationTime INTEGER,"
                      " releaseTime INTEGER, deviceId INTEGER);"
                      "INSERT INTO STRING_IDS VALUES(1, 'aten::mm');"
                      "INSERT INTO OP_MEMORY VALUES(1, 100, 10, 20, 2), (1, 30, 15, NULL, 2),"
                      " (1, 60, 25, 26, 2);",
                      NULL),
        MS_OK);
    ck_assert_int_eq(ms_store_commit(db, NULL), MS_OK);
    ck_assert_int_eq(read_file(NULL), MS_OK);
    ck_assert_uint_eq(report.answers.p[0].peak.bytes, 130);
    ck_assert(ms_str_is(report.answers.p[0].space->device, "NPU:2"));
    ck_assert(
        ms_str_is(mstx__mem_text_of(log_, report.answers.p[0].peak.ops.p[0].text), "aten::mm"));
    end();
}
END_TEST

/* ---- snapshots ---------------------------------------------------------------------------- */

static void put_pair(struct ms_out *o, const char *key, int64_t v)
{
    ms_pickle_str(o, ms_str_of(key));
    ms_pickle_i64(o, v);
}

static void put_frames(struct ms_out *o, const char *file, const char *function)
{
    ms_pickle_str(o, MS_STR("frames"));
    ms_pickle_list(o);
    ms_pickle_dict(o);
    ms_pickle_str(o, MS_STR("filename"));
    ms_pickle_str(o, ms_str_of(file));
    ms_pickle_str(o, MS_STR("name"));
    ms_pickle_str(o, ms_str_of(function));
    put_pair(o, "line", 12);
    ms_pickle_dict_end(o);
    ms_pickle_list_end(o);
}

static void put_entry(struct ms_out *o, const char *action, int64_t address, int64_t size,
                      int64_t us)
{
    ms_pickle_dict(o);
    ms_pickle_str(o, MS_STR("action"));
    ms_pickle_str(o, ms_str_of(action));
    put_pair(o, strcmp(action, "oom") == 0 ? "device_free" : "addr", address);
    put_pair(o, "size", size);
    put_pair(o, "time_us", us);
    put_frames(o, "/home/u/train.py", "main");
    ms_pickle_dict_end(o);
}

static void put_block(struct ms_out *o, int64_t address, int64_t size, const char *state)
{
    ms_pickle_dict(o);
    put_pair(o, "address", address);
    put_pair(o, "size", size);
    ms_pickle_str(o, MS_STR("state"));
    ms_pickle_str(o, ms_str_of(state));
    put_frames(o, "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", "__init__");
    ms_pickle_dict_end(o);
}

/* A segment of 1000 bytes with a block of 400 from before the trace, one of 300 of the trace, and a
 * hole; the trace frees another old block, and a request of 250 bytes fails. */
static void write_snapshot(void)
{
    struct ms_out *o;
    snprintf(path, sizeof path, "%s/msprobe-test.pickle",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    ck_assert_int_eq(ms_out_create(&o, path, NULL), MS_OK);
    ms_pickle_begin(o);
    ms_pickle_dict(o);
    ms_pickle_str(o, MS_STR("segments"));
    ms_pickle_list(o);
    ms_pickle_dict(o);
    put_pair(o, "device", 0);
    put_pair(o, "address", 1 << 20);
    put_pair(o, "total_size", 1000);
    ms_pickle_str(o, MS_STR("blocks"));
    ms_pickle_list(o);
    put_block(o, 1 << 20, 400, "active_allocated");
    put_block(o, (1 << 20) + 400, 200, "inactive");
    put_block(o, (1 << 20) + 600, 300, "active_allocated");
    put_block(o, (1 << 20) + 900, 100, "inactive");
    ms_pickle_list_end(o);
    ms_pickle_dict_end(o);
    ms_pickle_list_end(o);
    ms_pickle_str(o, MS_STR("device_traces"));
    ms_pickle_list(o);
    ms_pickle_list(o);
    put_entry(o, "free_completed", (1 << 20) + 400, 200, 1);
    put_entry(o, "alloc", (1 << 20) + 600, 300, 2);
    put_entry(o, "oom", 40, 250, 3);
    ms_pickle_list_end(o);
    ms_pickle_list_end(o);
    ms_pickle_dict_end(o);
    ms_pickle_end(o);
    ck_assert_int_eq(ms_out_commit(o, NULL), MS_OK);
}

START_TEST(a_snapshot_knows_what_lived_before_its_trace_and_what_failed)
{
    write_snapshot();
    ck_assert_int_eq(read_file(NULL), MS_OK);
    const struct mstx_mem_answer *a = &report.answers.p[0];
    ck_assert_uint_eq(a->peak.bytes, 700);
    ck_assert_uint_eq(a->peak.reserved_then, 1000);
    ck_assert_uint_eq(a->peak.by_kind[MSTX_MEM_PARAMETER], 400);
    ck_assert_uint_eq(a->space->free_bytes, 300);
    ck_assert_uint_eq(a->space->largest_hole, 200);
    ck_assert_uint_eq(a->space->failures.n, 1);
    ck_assert_uint_eq(a->space->failures.p[0].wanted, 250);
    ck_assert_int_eq(mstx__mem_advice(a), MSTX_MEM_WOULD_FIT);
    struct ms_buf text = {.max = 1 << 20};
    mstx__mem_report_text(&report, 10, &text);
    ck_assert_ptr_nonnull(strstr(ms_buf_z(&text), "out of memory: the last request wanted 250 B"));
    ck_assert_ptr_nonnull(strstr(ms_buf_z(&text), "expandable_segments"));
    ms_buf_free(&text);
    end();
}
END_TEST

static const struct {
    const char *name, *text, *said;
} refused[] = {
    {"a.raw.json", "[[1, 2, 3]]", "category"},
    {"a.raw.json", "[[1, 9, 3, 0]]", "no memory event"},
    {"a.raw.json", "[[1, 2, 3, 0]", "line 1"},
    {"a.json", "{\"schemaVersion\": 1, \"traceEvents\": []}", "profile_memory"},
    {"a.csv", "start_time_stamp,device_addr,\n", "Ascend"},
    {"a.pickle", "\x80\x02}q\x00.", "segments"},
    {"a.pickle",
     "\x80\x02"
     "cposix\nsystem\n.",
     "nothing was executed"},
    {"a.txt", "hello", "no record of memory use"},
};

START_TEST(what_is_no_record_is_refused_with_the_reason)
{
    struct ms_err err = {0};
    char name[64];
    snprintf(name, sizeof name, "msprobe-test-%s", refused[_i].name);
    if (strstr(name, "pickle") != NULL && _i == 5) { /* holds a zero byte */
        static const char empty[] = "\x80\x02}q\x00.";
        snprintf(path, sizeof path, "%s/%s", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp",
                 name);
        FILE *f = fopen(path, "wb");
        ck_assert_ptr_nonnull(f);
        fwrite(empty, 1, sizeof empty - 1, f);
        fclose(f);
    } else {
        write_text(name, refused[_i].text);
    }
    ck_assert_int_ne(read_file(&err), MS_OK);
    ck_assert_msg(strstr(err.msg, refused[_i].said) != NULL, "%s", err.msg);
    ck_assert_ptr_null(log_);
}
END_TEST

/* ---- two records ------------------------------------------------------------------------------ */

START_TEST(two_records_are_held_beside_each_other_by_owner)
{
    struct mstx_mem_log *old_log;
    struct mstx_mem_report old;
    begin();
    take(1, 1, 100, site_of("train.py:7 loop", MSTX_PHASE_NONE));
    answer();
    old_log = log_;
    old = report;
    begin();
    take(1, 1, 160, site_of("train.py:9 loop", MSTX_PHASE_NONE));
    answer();
    struct ms_buf text = {.max = 1 << 20};
    mstx__mem_against_text(&report, &old, 10, &text);
    ck_assert_ptr_nonnull(strstr(ms_buf_z(&text), "60 B more (60.0 %)"));
    /* the number of the line moves when the file is edited */
    ck_assert_ptr_null(strstr(ms_buf_z(&text), "train.py:7 loop"));
    ms_buf_free(&text);
    mstx__mem_report_free(&old);
    mstx__mem_log_free(old_log);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory");
    TCase *tc = tcase_create("core");
    tcase_add_test(tc, the_peak_is_what_lives_at_one_event);
    tcase_add_test(tc, a_block_at_a_used_address_ends_the_one_before);
    tcase_add_test(tc, open_blocks_are_found_however_many_go);
    tcase_add_test(tc, events_in_any_order_give_the_same_peak);
    tcase_add_loop_test(tc, only_what_every_step_leaves_is_growth, 0, 5);
    tcase_add_test(tc, few_steps_decide_nothing);
    tcase_add_loop_test(tc, ranks_are_out_of_balance_from_a_tenth_on, 0, 2);
    tcase_add_test(tc, a_raw_timeline_has_the_profilers_categories);
    tcase_add_test(tc, a_trace_gives_each_event_its_operator_module_and_step);
    tcase_add_test(tc, a_table_of_mindspore_has_blocks_with_both_times);
    tcase_add_test(tc, tables_of_ascend_are_kilobytes_and_microseconds);
    tcase_add_test(tc, a_database_of_ascend_has_one_row_a_block);
    tcase_add_test(tc, a_snapshot_knows_what_lived_before_its_trace_and_what_failed);
    tcase_add_loop_test(tc, what_is_no_record_is_refused_with_the_reason, 0, 8);
    tcase_add_test(tc, two_records_are_held_beside_each_other_by_owner);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
