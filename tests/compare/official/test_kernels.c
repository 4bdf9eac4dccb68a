/* SPDX-License-Identifier: MIT
 *
 * kernels: dumps of graph kernels, as files and as lines of statistics.
 */
#include "tests/support/check.h"

#include "compare/official/kernel_list.h"
#include "compare/official/kernels.h"
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

static char *compare_as(bool strict, const char *ranks, struct cmp_sheet_sum *sum)
{
    static char text[8192];
    char t[96], b[96], o[96];
    struct cmp_files files = {0};
    struct ms_file f;
    const struct cmp_kernel_conf conf = {
        .ranks = ranks, .stamp = "20260814102107", .strict = strict};
    snprintf(t, sizeof t, "%s/t", dir);
    snprintf(b, sizeof b, "%s/b", dir);
    snprintf(o, sizeof o, "%s/out", dir);
    text[0] = 0;
    if (cmp_compare_kernels(t, b, o, &conf, sum, &files, &err) == MS_OK) {
        ck_ok(ms_file_map(&f, files.list.p[0], sizeof text - 1, &err), err);
        memcpy(text, f.p, f.n);
        text[f.n] = 0;
        ms_file_unmap(&f);
    }
    cmp_files_free(&files);
    return text;
}

static char *compare(const char *ranks, struct cmp_sheet_sum *sum)
{
    return compare_as(false, ranks, sum);
}

START_TEST(names_of_files_say_what_belongs_together)
{
    static const struct {
        const char *name, *key;
        uint64_t time;
    } list[] = {
        {"Add.op1.0.3.1715.input.0.slot.ND.npy", "op1.0.input.0.slot", 1715},
        {"Add.op1.7.3.1715.99.output.1.slot.ND.npy", "op1.7.output.1.slot", 1715},
        {"Add.op1.0.3.1715.output.0.DefaultFormat.npy", "op1.0.output.0", 1715},
        {"Add.op1.0.3.1715.output.1.0.ND.npy", "op1.0.output.1.0", 1715},
        {"Add.op1.0.3.1715.input.0.slot.npy", "op1.0.input.0", 1715},
        {"Add.op1.0.3.1715.input.slot.npy", NULL, 0},
        {"Add.op1.0.3.now.input.0.slot.ND.npy", NULL, 0},
        {"Add.op1.0.3.1715.weight.0.slot.ND.npy", NULL, 0},
        {"notes.npy", NULL, 0},
    };
    struct ms_buf key = {.max = 1 << 12};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        uint64_t time = 0;
        bool fine = cmp__kernel_name(ms_str_of(list[i].name), &key, &time);
        ck_assert_msg(fine == (list[i].key != NULL), "%s", list[i].name);
        if (fine) {
            ck_assert_str_eq(ms_buf_z(&key), list[i].key);
            ck_assert_uint_eq(time, list[i].time);
        }
    }
    ms_buf_free(&key);
}
END_TEST

START_TEST(calls_of_a_kernel_are_paired_in_the_order_they_ran)
{
    struct cmp_sheet_sum sum;
    scratch_dir(dir);
    put_npy("t/rank_0/net/0/3/Add.a.0.1.200.output.0.s.ND.npy", 1, 2);
    put_npy("t/rank_0/net/0/3/Add.a.0.1.100.output.0.s.ND.npy", 3, 4);
    put_npy("b/rank_0/net/0/3/Add.a.0.1.20.output.0.s.ND.npy", 1, 2);
    put_npy("b/rank_0/net/0/3/Add.a.0.1.10.output.0.s.ND.npy", 3, 4);
    const char *table = compare("0", &sum);
    ck_assert_uint_eq(sum.rows, 2);
    ck_assert_uint_eq(sum.yes, 2);
    ck_assert_ptr_nonnull(strstr(table, "float32,float32,\"[2,]\",\"[2,]\",4.0,3.0,3.5,5.0"));
    cmp_sheet_sum_free(&sum);
    scratch_remove(dir);
}
END_TEST

START_TEST(a_kernel_without_a_partner_is_listed)
{
    struct cmp_sheet_sum sum;
    scratch_dir(dir);
    put_npy("t/0/net/0/3/Add.a.0.1.1.output.0.s.ND.npy", 1, 2);
    put_npy("b/0/net/0/3/Add.a.0.1.1.output.0.s.ND.npy", 1, 9);
    put_npy("b/0/net/0/3/Add.b.0.1.1.output.0.s.ND.npy", 1, 2);
    put_npy("b/1/net/0/3/Add.b.0.1.1.output.0.s.ND.npy", 1, 2);
    const char *table = compare(NULL, &sum);
    ck_assert_uint_eq(sum.rows, 2);
    ck_assert_uint_eq(sum.no, 1);
    ck_assert_uint_eq(sum.rest, 1);
    ck_assert_ptr_nonnull(strstr(table, "Dump file is not ndarray."));
    ck_assert_uint_eq(sum.notes.n, 1);
    ck_assert_str_eq(sum.notes.p[0], "rank 1 step 3 is on the golden side alone");
    cmp_sheet_sum_free(&sum);
    scratch_remove(dir);
}
END_TEST

START_TEST(shortened_names_are_looked_up)
{
    static const char mapping[] = "short,long\n1.npy,Add.a.0.1.1.output.0.s.ND.npy\n";
    struct cmp_sheet_sum sum;
    scratch_dir(dir);
    put("t/0/net/0/3/mapping.csv", mapping, sizeof mapping - 1);
    put_npy("t/0/net/0/3/1.npy", 1, 2);
    put_npy("b/0/net/0/3/Add.a.0.1.1.output.0.s.ND.npy", 1, 2);
    compare("0", &sum);
    ck_assert_uint_eq(sum.yes, 1);
    cmp_sheet_sum_free(&sum);
    scratch_remove(dir);
}
END_TEST

#define HEAD "Op Type,Op Name,Task,Stream,Time,IO,Slot,Size,Type,Shape,Max,Min,Avg,L2\n"

START_TEST(columns_of_statistics_are_found_by_their_names)
{
    static const char t[] = "Timestamp,Op Name,Task ID,IO,Slot,Data Type,Shape,L2Norm Value,"
                            "Max Value,Min Value\n"
                            "7,op1,0,output,0,float32,\"(2,3)\",5,2,1\n";
    struct cmp_sheet_sum sum;
    scratch_dir(dir);
    put("t/0/net/0/3/statistic.csv", t, sizeof t - 1);
    put("b/0/net/0/3/statistic.csv", t, sizeof t - 1);
    const char *table = compare("0", &sum);
    ck_assert_ptr_nonnull(strstr(table, "op1.0.output.0,op1.0.output.0,float32,float32,\"[2,3]\","
                                        "\"[2,3]\",2.0,1.0,nan,5.0,"));
    ck_assert_uint_eq(sum.yes, 1);
    cmp_sheet_sum_free(&sum);
    scratch_remove(dir);
}
END_TEST

START_TEST(lines_of_statistics_are_compared_as_well)
{
    static const char t[] = HEAD "Add,a,0,1,5,output,0,8,float32,\"(2,)\",1.5,0,1,2\n"
                                 "Add,b,0,1,5,output,0,8,float32,\"(2,)\",4,0,1,2\n"
                                 "Add,c,0,1,5,output,0,8,float32,\"(2,)\",null,False,True,2\n";
    static const char b[] = HEAD "Add,a,0,1,5,output,0,8,float32,\"(2,)\",1,0,1,2\n"
                                 "Add,b,0,1,5,output,0,8,float32,\"(2,)\",1,0,1,2\n"
                                 "Add,c,0,1,5,output,0,8,float16,\"(2,)\",0,0,1,2\n";
    struct cmp_sheet_sum sum;
    scratch_dir(dir);
    put("t/0/net/1/3/statistic.csv", t, sizeof t - 1);
    put("b/0/net/1/3/statistic.csv", b, sizeof b - 1);
    const char *table = compare("", &sum);
    ck_assert_uint_eq(sum.yes, 1);
    ck_assert_uint_eq(sum.no, 1);
    ck_assert_uint_eq(sum.rest, 1);
    ck_assert_ptr_nonnull(strstr(table, "a.0.output.0,a.0.output.0,float32,float32"));
    ck_assert_ptr_nonnull(strstr(table, "Yes,,0.5,0.0,0.0,0.0,50.0%,N/A,0.0%,0.0%,"));
    ck_assert_ptr_nonnull(strstr(table, "Dtype of NPU and bench Tensor do not match."));
    cmp_sheet_sum_free(&sum);
    scratch_remove(dir);
}
END_TEST

START_TEST(what_cannot_be_compared_is_said)
{
    struct cmp_sheet_sum sum;
    static const char cut[] = HEAD "Add,a,0,1\n";
    scratch_dir(dir);
    put_npy("t/0/net/0/3/Add.a.0.1.1.output.0.s.ND.npy", 1, 2);
    put("b/0/net/0/3/statistic.csv", cut, sizeof cut - 1);
    compare("0", &sum);
    ck_says(err, "expected 14 columns or more");
    ms_err_clear(&err);
    compare("7", &sum);
    ck_says(err, "no kernels of a rank and step that are asked for");
    scratch_remove(dir);
}
END_TEST

/* MatMul ran first, but Add is listed before it; its target is all zeros, and one of its partner's
 * numbers is none. */
START_TEST(strictly_files_are_compared_as_the_official_tool_does)
{
    for (int strict = 0; strict < 2; strict++) {
        struct cmp_sheet_sum sum;
        scratch_dir(dir);
        put_npy("t/0/net/0/3/Add.a.0.1.20.output.0.s.ND.npy", 0, 0);
        put_npy("b/0/net/0/3/Add.a.0.1.20.output.0.s.ND.npy", 0.5F, 0.25F);
        put_npy("t/0/net/0/3/MatMul.m.0.1.10.output.0.s.ND.npy", NAN, 2);
        put_npy("b/0/net/0/3/MatMul.m.0.1.10.output.0.s.ND.npy", NAN, 2);
        const char *text = compare_as(strict != 0, "0", &sum);
        const char *add = strstr(text, "t/0/net/0/3/Add."),
                   *mat = strstr(text, "t/0/net/0/3/MatMul.");
        ck_assert(add != NULL && mat != NULL);
        ck_assert((add < mat) == (strict != 0));
        ck_assert(strstr(add, strict ? ",Yes,\"Cannot compare" : ",No,\"Cannot compare") != NULL);
        ck_assert(strstr(mat, strict ? "\"[2,]\",,,,,,,,,Yes" : "\"[2,]\",2.0,2.0,nan") != NULL);
        scratch_remove(dir);
    }
}
END_TEST

START_TEST(strictly_there_is_no_table_where_one_side_has_no_files)
{
    struct cmp_sheet_sum sum;
    scratch_dir(dir);
    put_npy("t/0/net/0/3/Add.a.0.1.20.output.0.s.ND.npy", 0, 0);
    put("b/0/net/0/3/else.txt", "x", 1);
    ck_assert_ptr_nonnull(strstr(compare_as(false, "0", &sum), "Add.a"));
    cmp_sheet_sum_free(&sum);
    ck_assert_str_eq(compare_as(true, "0", &sum), "");
    ck_assert_uint_eq(sum.notes.n, 1);
    cmp_sheet_sum_free(&sum);
    ms_err_clear(&err);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("kernels", strictly_files_are_compared_as_the_official_tool_does,
          strictly_there_is_no_table_where_one_side_has_no_files,
          names_of_files_say_what_belongs_together,
          calls_of_a_kernel_are_paired_in_the_order_they_ran, a_kernel_without_a_partner_is_listed,
          shortened_names_are_looked_up, lines_of_statistics_are_compared_as_well,
          columns_of_statistics_are_found_by_their_names, what_cannot_be_compared_is_said)
