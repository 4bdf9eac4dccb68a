/* SPDX-License-Identifier: MIT
 *
 * Official recipes against what their published formulas give, worked out here in another way.
 */
#include "mstx/foreign/ascend_files.h"
#include "mstx/foreign/ascend_tables.h"
#include "mstx/official/comm_rows.h"
#include "mstx/official/figures.h"
#include "mstx/official/slow_ranks.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[64];

static void must_exec(struct ms_store *s, const char *sql)
{
    struct ms_err e = {0};
    ck_ok(ms_store_exec(s, sql, &e), e);
}

/* ---- the rule ------------------------------------------------------------------------ */

START_TEST(the_published_example_names_the_shortest)
{
    const double x[] = {100, 398, 399, 400, 401, 402, 405, 410};
    const int64_t rank[] = {0, 5, 7, 1, 6, 4, 2, 3};
    int64_t slow[8];
    ck_assert_uint_eq(mstx__judge_slow_ranks(x, rank, 8, slow), 1);
    ck_assert_int_eq(slow[0], 0);
}
END_TEST

START_TEST(few_values_and_equal_values_name_nobody)
{
    const double two[] = {1, 100}, equal[] = {5, 5, 5, 5, 5}, three[] = {1, 50, 50, 51, 51};
    const int64_t rank[] = {0, 1, 2, 3, 4};
    int64_t slow[5];
    ck_assert_uint_eq(mstx__judge_slow_ranks(two, rank, 2, slow), 0);
    ck_assert_uint_eq(mstx__judge_slow_ranks(equal, rank, 5, slow), 0);
    ck_assert_uint_eq(mstx__judge_slow_ranks(three, rank, 5, slow), 0);
}
END_TEST

/* The four ratios take their values from the places that the literature gives them. */
START_TEST(each_size_has_its_ratio)
{
    static const struct {
        size_t n;
        double limit; /* of the table */
        size_t gap, far;
    } at[] = {{4, .920, 1, 3},   {7, .680, 1, 6},   {8, .723, 1, 6},
              {10, .638, 1, 8},  {11, .707, 2, 9},  {13, .649, 2, 11},
              {14, .672, 2, 11}, {30, .484, 2, 27}, {100, .341, 2, 97}};
    int64_t rank[100], slow[100];
    for (size_t i = 0; i < 100; i++)
        rank[i] = (int64_t)i;
    for (size_t c = 0; c < sizeof at / sizeof *at; c++) {
        for (int above = 0; above <= 1; above++) {
            double x[100];
            /* all but the least lie close together from `gap` on, so that the ratio is
             * gap / (gap + width) */
            const double ratio = at[c].limit + (above ? 0.004 : -0.004);
            for (size_t i = 0; i < at[c].n; i++) {
                const double width = 1000 * (1 - ratio);
                const size_t first = at[c].gap;
                x[i] = i < first        ? (double)i * 0.001
                       : i >= at[c].far ? 1000 + (double)(i - at[c].far)
                                        : 1000 * ratio + width * (double)(i - first) /
                                                             (double)(at[c].far - first);
            }
            ck_assert_msg(mstx__judge_slow_ranks(x, rank, at[c].n, slow) == (size_t)above,
                          "%zu values, ratio %g", at[c].n, ratio);
        }
    }
}
END_TEST

START_TEST(more_than_a_hundred_are_judged_by_their_deviation)
{
    double x[200];
    int64_t rank[200], slow[200];
    for (int i = 0; i < 200; i++) {
        x[i] = 1000 + i % 7;
        rank[i] = i;
    }
    for (int i = 0; i < 200; i++) /* ascending */
        x[i] = 1000 + i / 30;
    x[0] = 10;
    x[1] = 20;
    ck_assert_uint_eq(mstx__judge_slow_ranks(x, rank, 200, slow), 2);
    ck_assert_int_eq(slow[1], 1);
    x[0] = x[1] = 1000;
    x[199] = 5000; /* all others wait for the first */
    ck_assert_uint_eq(mstx__judge_slow_ranks(x, rank, 200, slow), 1);
    ck_assert_int_eq(slow[0], 0);
}
END_TEST

/* ---- databases ----------------------------------------------------------------------- */

/* Operation `op` of `group` took a rank so long. */
static int64_t took(int rank, int op)
{
    return op == 1 && rank == 3 ? 100000 : 400000 + 1000 * ((rank * 7 + op * 3) % 11);
}

static void make_profile(int rank)
{
    char path[160], sql[512];
    struct ms_store *s;
    struct ms_err e = {0};
    snprintf(path, sizeof path, "%s/rank%d", dir, rank);
    ck_ok(ms_mkdirs(path, &e), e);
    snprintf(path, sizeof path, "%s/rank%d/ascend_pytorch_profiler_%d.db", dir, rank, rank);
    ck_ok(ms_store_create(&s, path, &e), e);
    must_exec(s, "CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);"
                 "INSERT INTO STRING_IDS VALUES(1, 'group_a'), (10, 'hcom_allReduce__1_0_1'),"
                 " (11, 'hcom_allReduce__1_1_1'), (12, 'hcom_send__1_2_1');"
                 "CREATE TABLE COMMUNICATION_OP(opName INTEGER, startNs INTEGER, endNs INTEGER,"
                 " groupName INTEGER, connectionId INTEGER);");
    for (int op = 0; op < 3; op++) {
        const long long start = 1000000 * op - took(rank, op) + 900000;
        snprintf(sql, sizeof sql, "INSERT INTO COMMUNICATION_OP VALUES(%d, %lld, %lld, 1, 0)",
                 10 + op, start,
                 op == 2 && rank == 0 ? start + 1 : start + (long long)took(rank, op));
        must_exec(s, sql);
    }
    ck_ok(ms_store_commit(s, &e), e);
}

static void must_be(struct ms_store *s, const char *sql, const char *expected)
{
    struct ms_stmt *st;
    struct ms_err e = {0};
    bool more;
    ck_ok(ms_store_prepare(s, &st, sql, &e), e);
    ck_ok(ms_stmt_step(st, &more, &e), e);
    ck_assert_msg(more, "%s: no row", sql);
    struct ms_str v = ms_stmt_get_str(st, 0);
    ck_assert_msg(ms_str_is(v, expected), "%s: '%.*s', expected '%s'", sql, MS_STR_ARG(v),
                  expected);
    ms_stmt_free(st);
}

static int by_value(const void *pa, const void *pb)
{
    const double a = *(const double *)pa, b = *(const double *)pb;
    return a < b ? -1 : a > b;
}

START_TEST(slow_rank_has_the_tables_and_values_of_the_recipe)
{
    struct mstx_recipe r = {.path = dir, .step = MSTX_ALL_STEPS};
    struct ms_store *s;
    struct ms_err e = {0};
    char path[160], expected[128];
    scratch_dir(dir);
    for (int rank = 0; rank < 8; rank++)
        make_profile(rank);
    snprintf(path, sizeof path, "%s/rank9", dir);
    ck_ok(ms_mkdirs(path, &e), e);
    snprintf(path, sizeof path, "%s/rank9/ascend_pytorch_profiler_9.db", dir);
    write_file(path, "no database", 11);
    snprintf(path, sizeof path, "%s/out.db", dir);
    ck_ok(ms_store_create(&s, path, &e), e);
    r.s = s;
    ck_ok(mstx__ascend_functions(s, &e), e);
    ck_ok(mstx__recipe_find_files(&r, NULL, &e), e);
    ck_assert_uint_eq(r.files.ranks.n, 9);
    ck_assert_int_eq(r.files.ranks.p[7].rank, 7);
    ck_ok(mstx__find_slow_ranks(&r, &e), e);
    ck_assert_uint_eq(r.bad, 1);
    must_be(s, "SELECT group_concat(rankId || ':' || slowAffectCount, ' ') FROM SlowRank", "3:1");
    must_be(s,
            "SELECT SlowRank || ' ' || OpName || ' ' || GroupName || ' ' || Timestamp || ' ' ||"
            " Count FROM SlowOpStats",
            "3 hcom_allReduce__1_1_1 group_a 1800000 8");
    double x[8], sum = 0, squares = 0;
    for (int rank = 0; rank < 8; rank++)
        sum += x[rank] = (double)took(rank, 1);
    for (int rank = 0; rank < 8; rank++)
        squares += (x[rank] - sum / 8) * (x[rank] - sum / 8);
    qsort(x, 8, sizeof *x, by_value);
    snprintf(expected, sizeof expected, "%.3f %.3f %.3f %.3f %.3f %.3f %.3f %.3f", sum / 8,
             sqrt(squares / 7), x[0], x[1] + 0.75 * (x[2] - x[1]), (x[3] + x[4]) / 2,
             x[5] + 0.25 * (x[6] - x[5]), x[7], sum);
    must_be(s,
            "SELECT printf('%.3f %.3f %.3f %.3f %.3f %.3f %.3f %.3f', MeanNs, StdNs, MinNs,"
            " Q1Ns, MedianNs, Q3Ns, MaxNs, SumNs) FROM SlowOpStats",
            expected);
    must_be(s, "SELECT count(*) || '' FROM ImportProblem WHERE file LIKE '%profiler_9.db'", "1");
    mstx__recipe_free(&r);
    ms_store_close(s);
    scratch_remove(dir);
}
END_TEST

/* Makes a database of one rank in the scratch folder, and reads its operations by a query. */
static void read_operations(struct mstx_recipe *r, struct mstx__comm_rows *c, const char *rows,
                            const char *query)
{
    const struct mstx_rank_query q = {.needs = "COMMUNICATION_OP", .sql = query};
    struct ms_err e = {0};
    struct ms_store *s;
    char path[160];
    *r = (struct mstx_recipe){.path = dir, .step = MSTX_ALL_STEPS};
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/ascend_pytorch_profiler_0.db", dir);
    ck_ok(ms_store_create(&s, path, &e), e);
    must_exec(s, "CREATE TABLE COMMUNICATION_OP(startNs INTEGER, endNs INTEGER)");
    must_exec(s, rows);
    ck_ok(ms_store_commit(s, &e), e);
    ck_ok(ms_store_scratch(&r->s, &e), e);
    ck_ok(mstx__recipe_find_files(r, NULL, &e), e);
    ck_ok(mstx__comm_rows_read(r, &q, MSTX_COMM_KINDS | MSTX_COMM_STARTS, c, &e), e);
}

static void forget_operations(struct mstx_recipe *r, struct mstx__comm_rows *c)
{
    mstx__comm_rows_free(c);
    mstx__recipe_free(r);
    ms_store_close(r->s);
    scratch_remove(dir);
}

/* Durations that 32 bits do not hold are kept beside the rows. */
START_TEST(operations_of_any_duration_keep_it)
{
    static const int64_t took_ns[] = {
        0, 4294967294, 4294967295, 7, 5000000000000, 4294967296, MSTX_NO_VALUE /* NULL */, -3, 8};
    enum { N = sizeof took_ns / sizeof *took_ns };
    struct mstx_recipe r;
    struct mstx__comm_rows c;
    struct ms_buf sql = {.max = 4096};
    for (int i = 0; i < N; i++) {
        ms_buf_printf(&sql, "INSERT INTO COMMUNICATION_OP VALUES(%d, ", i);
        if (took_ns[i] == MSTX_NO_VALUE)
            ms_buf_printf(&sql, "NULL);");
        else
            ms_buf_printf(&sql, "%lld);", i + (long long)took_ns[i]);
    }
    ms_buf_z(&sql);
    read_operations(&r, &c, sql.p,
                    "SELECT 'g', 'n', 't', startNs, endNs - startNs FROM COMMUNICATION_OP"
                    " ORDER BY startNs");
    ck_assert_uint_eq(c.row.n, N);
    for (size_t i = 0; i < N; i++) {
        ck_assert_int_eq(mstx__comm_dur(&c, i), took_ns[i]);
        ck_assert_int_eq(c.start.p[i], (int64_t)i);
        ck_assert_str_eq(mstx__comm_text(&c, mstx__comm_kind(&c, i)->type).p, "t");
    }
    ms_buf_free(&sql);
    forget_operations(&r, &c);
}
END_TEST

/* Ranks may disagree on what an operation is: of 300 rows of three operations each keeps its own type. */
START_TEST(rows_of_one_operation_keep_different_types)
{
    struct mstx_recipe r;
    struct mstx__comm_rows c;
    char type[8];
    read_operations(&r, &c,
                    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299)"
                    " INSERT INTO COMMUNICATION_OP SELECT i, i + 1 FROM n",
                    "SELECT 'g', 'n' || (startNs % 3), 't' || (startNs * startNs % 7), startNs, 1"
                    " FROM COMMUNICATION_OP ORDER BY startNs");
    ck_assert_uint_eq(c.op.keys.n, 3);
    ck_assert_uint_eq(c.row.n, 300);
    for (size_t i = 0; i < 300; i++) {
        snprintf(type, sizeof type, "t%zu", i * i % 7);
        ck_assert_str_eq(mstx__comm_text(&c, mstx__comm_kind(&c, i)->type).p, type);
    }
    forget_operations(&r, &c);
}
END_TEST

/* ---- figures ------------------------------------------------------------------------- */

/* Draws a value of one of these kinds: few distinct ones, durations, of both signs, of any size. */
static double draw_value(unsigned kind, uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    const uint64_t r = *seed >> 11;
    switch (kind) {
    case 0:
        return (double)(r % 5);
    case 1:
        return (double)(r % 4000000000);
    case 2:
        return (double)(int64_t)(r % 2000001) / 7 - 142857;
    default:
        return ldexp((double)r, (int)(r % 600) - 300) * (r % 2 != 0 ? 1 : -1);
    }
}

START_TEST(figures_are_those_of_sorted_values)
{
    static const size_t counts[] = {1, 2, 3, 63, 64, 65, 1000, 40001};
    enum { MOST = 40001 };
    double *x = malloc(MOST * sizeof *x), *sorted = malloc(MOST * sizeof *sorted);
    uint64_t seed = 29;
    for (size_t c = 0; c < 4 * sizeof counts / sizeof *counts; c++) {
        const size_t n = counts[c / 4];
        for (size_t i = 0; i < n; i++)
            x[i] = sorted[i] = draw_value((unsigned)(c % 4), &seed);
        qsort(sorted, n, sizeof *sorted, ms_order_f64);
        const struct mstx__figures f = mstx__describe(x, n);
        ck_assert_uint_eq(f.n, n);
        ck_assert(memcmp(x, sorted, n * sizeof *x) == 0);
        ck_assert(f.min == sorted[0] && f.max == sorted[n - 1]);
        ck_assert(n % 2 == 0 || f.median == sorted[n / 2]);
    }
    free(x);
    free(sorted);
}
END_TEST

/* ---- statistics of SQL --------------------------------------------------------------- */

START_TEST(sql_knows_statistics_and_hashes)
{
    struct ms_store *s;
    struct ms_err e = {0};
    char path[160];
    scratch_dir(dir);
    snprintf(path, sizeof path, "%s/out.db", dir);
    ck_ok(ms_store_create(&s, path, &e), e);
    ck_ok(mstx__ascend_functions(s, &e), e);
    must_exec(s, "CREATE TABLE t(x); INSERT INTO t VALUES(1), (2), (4), (9), (NULL), (4)");
    must_be(s,
            "SELECT printf('%.6f %.6f %.6f', quantile(x, 0.25), stddev(x), stddev_pop(x)) FROM t",
            "2.000000 3.082207 2.756810");
    must_be(s, "SELECT ifnull(quantile(x, 0.5), 'none') FROM t WHERE x > 100", "none");
    must_be(s, "SELECT ifnull(stddev(x), 'none') FROM t WHERE x = 9", "none");
    must_be(s, "SELECT round_even(0.00125, 4) || ' ' || round_even(2.5, 0)", "0.0012 2.0");
    must_be(s, "SELECT double_hash('group_name_43')", "3985310753366107491");
    must_be(s, "SELECT double_hash('default')", "6438267842827357177");
    must_be(s, "SELECT p2p_domain('hcom_send__233_58_1')", "233");
    must_be(s, "SELECT ifnull(p2p_domain('hcom_send__233_58'), 'none')", "none");
    must_be(s, "SELECT ifnull(p2p_domain('hcom_allReduce__233_58_1'), 'none')", "none");
    ms_store_close(s);
    scratch_remove(dir);
}
END_TEST

/* ---- texts of others --------------------------------------------------------------------- */

struct seen {
    int n;
    char last[128];
};

static enum ms_rc see(void *ctx, const struct mstx_ascend_op *op, struct ms_err *err)
{
    struct seen *seen = ctx;
    (void)err;
    seen->n++;
    snprintf(seen->last, sizeof seen->last, "%.*s %.*s %.*s %.*s %.*s", MS_STR_ARG(op->step),
             MS_STR_ARG(op->kind), MS_STR_ARG(op->op), MS_STR_ARG(op->group), MS_STR_ARG(op->text));
    return MS_OK;
}

START_TEST(operations_are_told_with_step_and_group)
{
    static const char text[] = "{\"step1\": {\"p2p\": {}, \"collective\": {\"a@7\": {\"x\": [1]},"
                               " \"Total Op Info@7\": {}, \"b\": 3}}, \"step2\": 5,"
                               " \"s\\u0074ep3\": {\"collective\": {\"c@d@8\": {\"y\": 2}}}}";
    struct seen seen = {0};
    struct ms_err e = {0};
    ck_ok(mstx__ascend_json_read(text, sizeof text - 1, see, &seen, &e), e);
    ck_assert_int_eq(seen.n, 2);
    ck_assert_str_eq(seen.last, "step3 collective c@d@8 8 {\"y\": 2}");
    ck_assert_int_eq(mstx__ascend_json_read("[1]", 3, see, &seen, &e), MS_E_FORMAT);
    ms_err_clear(&e);
    ck_assert_int_eq(mstx__ascend_json_read(text, sizeof text - 9, see, &seen, &e), MS_E_FORMAT);
}
END_TEST

TEST_MAIN("recipe", the_published_example_names_the_shortest,
          few_values_and_equal_values_name_nobody, each_size_has_its_ratio,
          more_than_a_hundred_are_judged_by_their_deviation, operations_of_any_duration_keep_it,
          rows_of_one_operation_keep_different_types, figures_are_those_of_sorted_values,
          slow_rank_has_the_tables_and_values_of_the_recipe, sql_knows_statistics_and_hashes,
          operations_are_told_with_step_and_group)
