/* SPDX-License-Identifier: MIT
 *
 * sheets: tables without a dump.json: trees of .npy files, dumps of ATB, and the json
 * of msprobe 1 that asks for them.
 */
#include "tests/support/check.h"

#include "compare/official/atb.h"
#include "compare/official/old_input.h"
#include "compare/official/trees.h"
#include "probe/base/io.h"

static char dir[64];
static struct ms_err err;

static void put(const char *name, const void *p, size_t n)
{
    char path[256];
    struct ms_out *out;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_ok(ms_out_create(&out, path, &err), err);
    ms_out_write(out, p, n);
    ck_ok(ms_out_commit(out, &err), err);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* An .npy of two float32. */
static void put_npy(const char *name, float a, float b)
{
    char bytes[128 + 8];
    const float v[2] = {a, b};
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\1\0v\0", 10);
    memcpy(bytes + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 57);
    bytes[127] = '\n';
    memcpy(bytes + 128, v, sizeof v);
    put(name, bytes, sizeof bytes);
}

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static unsigned at;
    char *p = paths[at++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", dir, name);
    return p;
}

static char *text_of(const char *path)
{
    static char text[8192];
    struct ms_file f;
    ck_ok(ms_file_map(&f, path, sizeof text - 1, &err), err);
    memcpy(text, f.p, f.n);
    text[f.n] = 0;
    ms_file_unmap(&f);
    return text;
}

/* ---- trees --------------------------------------------------------------- */

static enum ms_rc compare_trees(const struct ms_map *map, const struct ms_str *golden,
                                struct cmp_sheet_sum *sum, struct cmp_files *files)
{
    const struct cmp_tree_names names = {map, golden};
    *sum = (struct cmp_sheet_sum){0};
    *files = (struct cmp_files){0};
    return cmp_compare_trees(path_of("t"), path_of("b"), path_of("out"), &names, sum, files, &err);
}

START_TEST(a_table_mirrors_each_directory)
{
    struct cmp_sheet_sum sum;
    struct cmp_files files;
    const struct ms_map none = {0};
    scratch_dir(dir);
    put_npy("t/a_0_1.npy", 1, 2);
    put_npy("b/a_5_7.npy", 1, 2);
    put_npy("t/deep/b_0_1.npy", 1, 2);
    put_npy("b/deep/b_0_1.npy", 1, 5);
    ck_ok(compare_trees(&none, NULL, &sum, &files), err);
    ck_assert_uint_eq(files.list.n, 2);
    ck_assert_str_eq(files.list.p[0], path_of("out/result.csv"));
    ck_assert_str_eq(files.list.p[1], path_of("out/deep/result.csv"));
    char *table = text_of(files.list.p[0]);
    ck_assert_ptr_nonnull(strstr(table, "\na_0,float32,float32,\"(2,)\",\"(2,)\",1.0,0.0,0.0,0.0,"
                                        "1.0,1.0,2.0,1.0,1.5,2.23606797749979,"));
    table = text_of(files.list.p[1]);
    ck_assert_ptr_nonnull(strstr(table, "\nb_0,"));
    ck_assert_ptr_nonnull(strstr(table, ",No,"));
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    scratch_remove(dir);
}
END_TEST

START_TEST(names_that_differ_are_mapped)
{
    struct cmp_sheet_sum sum;
    struct cmp_files files;
    struct ms_map map = {0};
    const struct ms_str golden = MS_STR("y");
    scratch_dir(dir);
    put_npy("t/x_0_1.npy", 1, 2);
    put_npy("b/y_0_1.npy", 1, 2);
    ck_assert_uint_eq(ms_map_put(&map, MS_STR("x"), NULL), 0);
    ck_ok(compare_trees(&map, &golden, &sum, &files), err);
    ck_assert_uint_eq(sum.rows, 1);
    ck_assert_uint_eq(sum.yes, 1);
    ms_map_free(&map);
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    scratch_remove(dir);
}
END_TEST

START_TEST(files_of_one_side_alone_and_broken_ones_are_listed)
{
    struct cmp_sheet_sum sum;
    struct cmp_files files;
    const struct ms_map none = {0};
    scratch_dir(dir);
    put_npy("t/x_0_1.npy", 1, 2);
    put_npy("b/y_0_1.npy", 1, 2);
    put_npy("t/z_0_1.npy", 1, 2);
    put_text("b/z_0_1.npy", "no array");
    put_npy("t/alone/z_0_1.npy", 1, 2);
    ck_ok(compare_trees(&none, NULL, &sum, &files), err);
    ck_assert_uint_eq(sum.rows, 4); /* and alone/z below the target's z */
    ck_assert_uint_eq(sum.rest, 4);
    ck_assert_uint_eq(sum.notes.n, 1);
    ck_assert_ptr_nonnull(strstr(sum.notes.p[0], "/alone is on the target side alone"));
    ck_assert_ptr_nonnull(strstr(text_of(files.list.p[0]), "does not begin as .npy"));
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    scratch_remove(dir);
}
END_TEST

START_TEST(trees_without_a_common_directory_are_an_error)
{
    struct cmp_sheet_sum sum;
    struct cmp_files files;
    const struct ms_map none = {0};
    scratch_dir(dir);
    put_npy("t/x/a_0_1.npy", 1, 2);
    put_npy("b/y/a_0_1.npy", 1, 2);
    ck_assert_int_eq(compare_trees(&none, NULL, &sum, &files), MS_E_NOTFOUND);
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    scratch_remove(dir);
}
END_TEST

/* ---- ATB -------------------------------------------------------------------- */

#define ATB_HEADER                                                                                 \
    "Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape,"  \
    "Max,Min,Mean,Norm,Tensor Path\n"

static enum ms_rc compare_atb(bool strict, struct cmp_sheet_sum *sum, struct cmp_files *files)
{
    const struct cmp_atb_conf conf = {strict, "20260814102107"};
    *sum = (struct cmp_sheet_sum){0};
    *files = (struct cmp_files){0};
    return cmp_compare_atb(path_of("t"), path_of("b"), path_of("out"), &conf, sum, files, &err);
}

START_TEST(lines_of_atb_meet_by_operator_and_index)
{
    struct cmp_sheet_sum sum;
    struct cmp_files files;
    scratch_dir(dir);
    put_text("t/statistic.csv",
             ATB_HEADER "0_1,0,Model/Add,T,0_1,intensor,0,float,ND,\"2,3\",4,1,2,"
                        "5,N/A\n"
                        "0_1,0,Model/Mul,T,0_2,intensor,0,float,ND,2,4,1,2,5,"
                        "N/A\n"
                        "broken,line\n");
    put_text("b/statistic.csv",
             ATB_HEADER "0_2,0,Model/Add,T,0_1,intensor,0,float,ND,\"2,3\",2,1,0,"
                        "N/A,N/A\n");
    ck_ok(compare_atb(true, &sum, &files), err);
    ck_assert_uint_eq(sum.rows, 1);
    ck_assert_str_eq(files.list.p[0], path_of("out/atb_stats_compare_result_20260814102107.xlsx"));
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    ck_ok(compare_atb(false, &sum, &files), err);
    ck_assert_uint_eq(sum.rows, 2);
    ck_assert_uint_eq(sum.rest, 1);
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    scratch_remove(dir);
}
END_TEST

START_TEST(tensors_of_atb_are_read_below_the_directory)
{
    static const char bin[] = "$Version=1.0\n$Object.Count=1\n$Object.Length=8\nformat=2\ndtype=0\n"
                              "dims=2\n$Object.data=0,8\n$End=1\n\0\0\x80?\0\0\0@";
    struct cmp_sheet_sum sum;
    struct cmp_files files;
    scratch_dir(dir);
    put_text("t/statistic.csv", ATB_HEADER
             "0_1,0,Add,T,1,intensor,0,float,ND,2,,,,,/x/atb_dump_data/data/0_1/0/1/a.bin\n"
             "0_1,0,Add,T,1,intensor,1,float,ND,2,,,,,/x/atb_dump_data/data/0_1/0/../a.bin\n");
    put_text("b/statistic.csv", ATB_HEADER
             "0_1,0,Add,T,1,intensor,0,float,ND,2,,,,,/y/atb_dump_data/data/0_9/0/1/a.bin\n"
             "0_1,0,Add,T,1,intensor,1,float,ND,2,,,,,/y/atb_dump_data/data/0_9/0/1/a.bin\n");
    put("t/1/a.bin", bin, sizeof bin - 1);
    put("b/1/a.bin", bin, sizeof bin - 1);
    ck_ok(compare_atb(false, &sum, &files), err);
    ck_assert_uint_eq(sum.rows, 2);
    ck_assert_uint_eq(sum.yes, 1);
    ck_assert_uint_eq(sum.notes.n, 1); /* nothing leads out of the directory */
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    scratch_remove(dir);
}
END_TEST

START_TEST(what_is_not_of_atb_is_said)
{
    struct cmp_sheet_sum sum;
    struct cmp_files files;
    ms_err_clear(&err);
    scratch_dir(dir);
    put_text("t/statistic.csv", "a,b\n1,2\n");
    put_text("b/statistic.csv", ATB_HEADER);
    ck_assert_int_eq(compare_atb(false, &sum, &files), MS_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, "no line of 15 columns"));
    cmp_sheet_sum_free(&sum);
    cmp_files_free(&files);
    scratch_remove(dir);
}
END_TEST

/* ---- the json of msprobe 1 ------------------------------------------------------ */

START_TEST(an_input_json_selects_kernels_and_names)
{
    struct cmp_old_input in;
    scratch_dir(dir);
    put_text("i.json",
             "{\"npu_path\": \"t\", \"bench_path\": \"b\", \"rank_id\": [0, 12],"
             " \"step_id\": [3], \"common\": true, \"map_dict\": {\"x\": \"y\", \"a\": \"b\"}}");
    ck_ok(cmp_old_input_read(&in, path_of("i.json"), &err), err);
    ck_assert_str_eq(in.ranks, "0,12");
    ck_assert_str_eq(in.steps, "3");
    ck_assert(in.trees);
    ck_assert_uint_eq(ms_map_get(&in.npu_names, MS_STR("x")), 0);
    ck_assert(ms_str_is(in.bench_names.p[0], "y"));
    ck_assert_uint_eq(ms_map_get(&in.npu_names, MS_STR("a")), 1);
    ck_assert(ms_str_is(in.bench_names.p[1], "b"));
    cmp_old_input_free(&in);
    scratch_remove(dir);
}
END_TEST

START_TEST(an_input_json_with_other_types_is_refused)
{
    static const char *const list[] = {
        "{\"rank_id\": 0}",
        "{\"rank_id\": [\"0\"]}",
        "{\"rank_id\": [-1]}",
        "{\"rank_id\": [0",
        "{\"map_dict\": [1]}",
        "{\"map_dict\": {\"a\": 1}}",
        "{\"map_dict\": {\"a\": \"b\"",
        "{\"npu_path\": 1}",
        "{\"npu_path\": \"a\", \"bench_path\": \"b\", \"bench_path\": \"c\"}",
        "{\"npu_path\": \"a\", \"bench_path\": \"b\", \"common\": 1}",
        "[]",
    };
    struct cmp_old_input in;
    scratch_dir(dir);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        put_text("i.json", list[i]);
        ck_assert_msg(cmp_old_input_read(&in, path_of("i.json"), &err) == MS_E_FORMAT, "%s",
                      list[i]);
    }
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("sheets", a_table_mirrors_each_directory, names_that_differ_are_mapped,
          files_of_one_side_alone_and_broken_ones_are_listed,
          trees_without_a_common_directory_are_an_error, lines_of_atb_meet_by_operator_and_index,
          tensors_of_atb_are_read_below_the_directory, what_is_not_of_atb_is_said,
          an_input_json_selects_kernels_and_names, an_input_json_with_other_types_is_refused)
