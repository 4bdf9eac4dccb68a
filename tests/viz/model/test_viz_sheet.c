/* SPDX-License-Identifier: MIT
 *
 * Tables: of a comparison, of curves, of memory, and of two runs.
 */
#include "tests/support/view_files.h"

#include "probe/base/mem.h"
#include "viz/model/path_kind.h"
#include "viz/model/sheet_made.h"

#include <sys/stat.h>

static struct viz_sheet *sheet;
static char path[160];

static void set_up(void)
{
    view_set_up();
    sheet = NULL;
}

static void tear_down(void)
{
    viz_sheet_free(sheet);
    view_tear_down();
}

static const char *put_file(const char *name, const char *text)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    write_file(path, text, strlen(text));
    return path;
}

/* Rows as they were answered: "STATE field|field ..." of each, one a line. */
static char said[4096];

static enum ms_rc say_row(void *ctx, size_t i, const char *state, const struct ms_str *fields,
                          size_t n, struct ms_err *e)
{
    (void)ctx;
    (void)i;
    (void)e;
    size_t at = strlen(said);
    at += (size_t)snprintf(said + at, sizeof said - at, "%s", state);
    for (size_t k = 0; k < n; k++)
        at += (size_t)snprintf(said + at, sizeof said - at, "%c%.*s", k == 0 ? ' ' : '|',
                               MS_STR_ARG(fields[k]));
    snprintf(said + at, sizeof said - at, "\n");
    return MS_OK;
}

static size_t ask(struct viz_sheet_asked a)
{
    size_t total = 0;
    said[0] = '\0';
    ck_ok(viz_sheet_read(sheet, &a, 0, 100, &total, say_row, NULL, &err), err);
    return total;
}

#define COMPARED                                                                                   \
    "NPU "                                                                                         \
    "Name,NormRelativeErr,Result\na,2%,pass\nb,10%,error\nc,,unmatched\n\"d,e\",9.5%,Warning\n"

START_TEST(a_table_is_sorted_by_numbers_with_what_is_none_last)
{
    ck_ok(viz_sheet_open(&sheet, put_file("compare_result.csv", COMPARED), &err), err);
    ck_assert_uint_eq(viz_sheet_columns(sheet), 3);
    ck_assert_uint_eq(ask((struct viz_sheet_asked){.text = MS_STR(""), .column = 1}), 4);
    ck_assert_str_eq(said, "pass a|2%|pass\nwarning d,e|9.5%|Warning\nerror b|10%|error\n"
                           "none c||unmatched\n");
    ask((struct viz_sheet_asked){.text = MS_STR(""), .column = 1, .descending = true});
    ck_assert_str_eq(said, "error b|10%|error\nwarning d,e|9.5%|Warning\npass a|2%|pass\n"
                           "none c||unmatched\n");
}
END_TEST

START_TEST(a_table_is_filtered_by_a_text_and_by_what_fails)
{
    ck_ok(viz_sheet_open(&sheet, put_file("compare_result.csv", COMPARED), &err), err);
    ck_assert_uint_eq(
        ask((struct viz_sheet_asked){.text = MS_STR(""), .column = -1, .failing = true}), 2);
    ck_assert_str_eq(said, "error b|10%|error\nwarning d,e|9.5%|Warning\n");
    ck_assert_uint_eq(ask((struct viz_sheet_asked){.text = MS_STR("PASS"), .column = -1}), 1);
    ck_assert_uint_eq(ask((struct viz_sheet_asked){.text = MS_STR("nowhere"), .column = -1}), 0);
}
END_TEST

START_TEST(a_text_is_taken_with_its_memory_even_when_it_is_no_table)
{
    struct ms_buf text = {.max = 100};
    ms_buf_puts(&text, "name\n\"never closed\n");
    ck_assert_int_ne(viz_sheet_take(&sheet, &text, &err), MS_OK);
    ck_assert_ptr_null(text.p);
    ck_assert_ptr_null(sheet);
}
END_TEST

START_TEST(memory_is_a_row_for_each_owner_of_the_peak)
{
    put_file(
        "memory_block.csv",
        "start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_peak_memory,"
        "file_name,line_num,type,tag,is_persistent,is_small\n"
        "1,9,0x1000,0,0,4096,4096,net.py,3,kWeight,Dense,1,0\n"
        "2,5,0x3000,0,0,12288,16384,net.py,7,kTemp,MatMul,0,0\n");
    open_path(path, NULL);
    ck_assert_ptr_nonnull(session.sheet);
    ck_assert_ptr_null(reader.tl);
    ck_ok(viz_sheet_of_memory(&sheet, path, &err), err);
    ask((struct viz_sheet_asked){.text = MS_STR("kind"), .column = 2, .descending = true});
    ck_assert_ptr_nonnull(strstr(said, "parameter|kind|4096|25.0%|"));
    ck_assert_ptr_nonnull(strstr(said, "|12288|75.0%|"));
}
END_TEST

START_TEST(a_record_of_memory_beside_a_trace_is_not_what_a_folder_is)
{
    put_file("a_snapshot.pickle", "");
    ck_assert_int_eq(viz_path_kind_of(dir), VIZ_PATH_MEMORY);
    put_file("b_trace.json.gz", "");
    ck_assert_int_eq(viz_path_kind_of(dir), VIZ_PATH_TRACE);
}
END_TEST

START_TEST(what_no_command_reads_is_named_by_its_first_bytes)
{
    static const struct {
        const char *name, *bytes;
        enum viz_path_kind kind;
    } files[] = {{"a.png", "\x89PNG\r\n", VIZ_PATH_PICTURE},
                 {"a.out",
                  "\x7f"
                  "ELF",
                  VIZ_PATH_PROGRAM},
                 {"train", "#!/bin/sh\n", VIZ_PATH_PROGRAM},
                 {"dump.tar.gz", "\x1f\x8b", VIZ_PATH_TAR},
                 {"dump.zip", "PK\x03\x04....step0/dump.json", VIZ_PATH_ZIP},
                 {"x.pt", "PK\x03\x04....archive/data.pkl", VIZ_PATH_TENSOR},
                 {"compare_result.xlsx", "PK\x03\x04....[Content_Types].xml", VIZ_PATH_TABLE},
                 {"half.db", "SQLite format 3", VIZ_PATH_DAMAGED},
                 {"notes", "words", VIZ_PATH_OTHER}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put_file(files[i].name, files[i].bytes);
        ck_assert_msg(viz_path_kind_of(path) == files[i].kind, "%s", files[i].name);
        ck_assert(viz_path_is_read(files[i].kind) == (i == 5 || i == 6));
    }
}
END_TEST

/* A monitor's folder: one curve that ends in step 3, and one that does not. */
START_TEST(a_curve_says_from_which_step_on_it_has_no_number)
{
    char folder[160], file[260];
    snprintf(folder, sizeof folder, "%s/Dec01_10-00-00-rank0-1", dir);
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    snprintf(file, sizeof file, "%s/actv_0-4.csv", folder);
    static const char text[] =
        "vpp_stage,name,step,norm\n0,fc,0,1\n0,out,0,5\n0,fc,1,2\n0,out,1,4\n"
        "0,fc,2,3\n0,out,2,nan\n0,fc,3,nan\n0,out,3,8\n0,fc,4,nan\n0,out,4,2\n";
    write_file(file, text, sizeof text - 1);
    ck_ok(viz_sheet_of_trend(&sheet, dir, &err), err);
    ask((struct viz_sheet_asked){.text = MS_STR("fc,actv"), .column = -1});
    ck_assert_str_eq(said, "error fc|actv|0|5|1|3|1|3|▁▅█××|error|no number from step 3 on\n");
    ask((struct viz_sheet_asked){.text = MS_STR("out,actv"), .column = -1});
    ck_assert_str_eq(said, "none out|actv|0|5|5|2|2|8|▅▃×█▁||\n");
}
END_TEST

/* Two traces of eight steps; in the first one "work" takes three times as long. */
static void put_steps(const char *name, int work_us)
{
    struct ms_buf b = {.max = 1 << 20};
    int64_t at = 1000;
    ms_buf_puts(&b, "[" EVENT("other", "2", "9", "1000", "50"));
    for (int i = 0; i < 16; i++, at += work_us + 50) {
        ms_buf_printf(&b, "," EVENT("step %d", "1", "1", "%lld", "%d"), i, (long long)at,
                      work_us + 40 + i % 2);
        ms_buf_printf(&b, "," EVENT("work", "1", "1", "%lld", "%d"), (long long)at, work_us);
    }
    ms_buf_puts(&b, "]");
    put_file(name, ms_buf_z(&b));
    ms_buf_free(&b);
}

START_TEST(two_runs_are_a_timeline_and_a_table_of_what_takes_longer)
{
    char old[160];
    put_steps("old.json", 100);
    snprintf(old, sizeof old, "%s", path);
    put_steps("new.json", 300);
    open_path(path, old);
    ck_assert_ptr_nonnull(reader.tl);
    ck_assert_str_eq(session.older->path, old);
    ck_assert_ptr_nonnull(reader.older->tl);
    ck_assert_ptr_null(reader.graph);
    ck_assert_str_eq(session.flame, "[[0, 0, \"\", 0.149, 0.349], [1, 0, \"work\", 0.1, 0.3]]");
    char *flame;
    ck_ok(viz_sheet_of_runs(&sheet, &flame, path, old, &err), err);
    ck_assert_str_eq(flame, session.flame);
    ms_free(flame);
    ask((struct viz_sheet_asked){.text = MS_STR(""), .column = -1});
    ck_assert(strncmp(said, "warning ", 8) == 0);
    ck_assert_ptr_nonnull(strstr(said, "|cause: "));
    ck_assert_ptr_nonnull(strstr(said, "none work||0.2|0.1|0.3|16|16|||\n"));
}
END_TEST

START_TEST(a_run_beside_something_else_is_told_what_both_are)
{
    char table[160];
    snprintf(table, sizeof table, "%s", put_file("compare_result.csv", COMPARED));
    put_steps("new.json", 300);
    struct viz_conf conf = {.path = path, .golden = table};
    ck_assert_int_eq(viz_session_open(&session, &conf, &err), MS_E_ARG);
    ck_says(err, "new.json is a trace and ");
    ck_says(err, "is a table of a comparison; two runs or two dumps are compared");
    ms_err_clear(&err);
    conf.golden = "/nonexistent/run";
    ck_assert_int_eq(viz_session_open(&session, &conf, &err), MS_E_NOTFOUND);
    ck_says(err, "/nonexistent/run");
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "viz_sheet",
                 a_table_is_sorted_by_numbers_with_what_is_none_last,
                 a_table_is_filtered_by_a_text_and_by_what_fails,
                 a_text_is_taken_with_its_memory_even_when_it_is_no_table,
                 memory_is_a_row_for_each_owner_of_the_peak,
                 a_record_of_memory_beside_a_trace_is_not_what_a_folder_is,
                 what_no_command_reads_is_named_by_its_first_bytes,
                 a_curve_says_from_which_step_on_it_has_no_number,
                 two_runs_are_a_timeline_and_a_table_of_what_takes_longer,
                 a_run_beside_something_else_is_told_what_both_are)
