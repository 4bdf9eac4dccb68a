/* SPDX-License-Identifier: MIT
 *
 * slow_ranks: finds stragglers: the rank with the shortest duration in a collective arrived last,
 * if its duration is shorter than chance explains.
 *
 * Dixon's test of the least of n values at 0.995, for more than 100 ranks three deviations.
 */
#include "mstx/official/slow_ranks.h"

#include "mstx/official/sql/slow_ranks.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/vec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAST = 3, DIXON_MOST = 100 };

/* Critical values, from n = 3. */
static const double dixon[DIXON_MOST - LEAST + 1] = {
    .994, .920, .823, .744, .680, .723, .676, .638, .707, .675, .649, .672, .649, .629,
    .611, .595, .580, .568, .556, .545, .536, .526, .519, .510, .503, .496, .489, .484,
    .478, .473, .468, .463, .458, .454, .450, .446, .442, .439, .435, .432, .429, .425,
    .423, .420, .417, .414, .412, .409, .407, .405, .402, .400, .398, .396, .394, .392,
    .391, .388, .387, .385, .383, .382, .380, .379, .377, .376, .374, .372, .371, .370,
    .368, .368, .366, .365, .364, .363, .361, .360, .359, .358, .356, .356, .355, .353,
    .352, .352, .351, .350, .349, .348, .347, .346, .345, .344, .344, .343, .341, .341};

/* ---- the rule -------------------------------------------------------------------- */

static double dixon_ratio(const double *x, size_t n)
{
    if (n <= 7)
        return (x[1] - x[0]) / (x[n - 1] - x[0]);
    if (n <= 10)
        return (x[1] - x[0]) / (x[n - 2] - x[0]);
    if (n <= 13)
        return (x[2] - x[0]) / (x[n - 2] - x[0]);
    return (x[2] - x[0]) / (x[n - 3] - x[0]);
}

static size_t three_deviations(const double *x, const int64_t *rank, size_t n, int64_t *slow)
{
    double sum = 0, squares = 0;
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    const double deviation = sqrt(squares / (double)n);
    while (found < n && x[found] < mean - 3 * deviation) {
        slow[found] = rank[found];
        found++;
    }
    if (found == 0 && x[n - 1] > mean + 3 * deviation)
        slow[found++] = rank[0];
    return found;
}

static bool has_few_values(const double *x, size_t n)
{
    size_t distinct = 1;
    for (size_t i = 1; i < n && distinct <= LEAST; i++)
        distinct += x[i] != x[i - 1];
    return distinct <= LEAST;
}

size_t mstx__judge_slow_ranks(const double *x, const int64_t *rank, size_t n, int64_t *slow)
{
    if (n < LEAST || has_few_values(x, n))
        return 0;
    if (n > DIXON_MOST)
        return three_deviations(x, rank, n, slow);
    if (!(dixon_ratio(x, n) > dixon[n - LEAST]))
        return 0;
    slow[0] = rank[0];
    return 1;
}

/* ---- one operation ----------------------------------------------------------------- */

/* One operation on all its ranks, the shortest duration first. */
struct op {
    MS_VEC(double) duration;
    MS_VEC(int64_t) rank;
    MS_VEC(int64_t) start;
    MS_VEC(int64_t) slow;
    struct ms_buf group, name;
    struct ms_stmt *add, *vote;
    double unit; /* nanoseconds in a unit of the output */
};

static double find_quantile(const struct op *o, double q)
{
    ms_assert(o->duration.n != 0 && q >= 0 && q <= 1);
    const double at = q * (double)(o->duration.n - 1);
    const size_t low = (size_t)at;
    const size_t high = low + 1 < o->duration.n ? low + 1 : low;
    return o->duration.p[low] + (at - (double)low) * (o->duration.p[high] - o->duration.p[low]);
}

static int64_t earliest_of_slow(const struct op *o, size_t found)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < o->rank.n; i++) {
        for (size_t k = 0; k < found; k++) {
            if (o->rank.p[i] == o->slow.p[k] && o->start.p[i] < first)
                first = o->start.p[i];
        }
    }
    return first;
}

static enum ms_rc add_stats(struct op *o, size_t found, struct ms_err *err)
{
    ms_assert(found <= o->slow.cap && o->rank.n == o->duration.n && o->start.n == o->duration.n);
    const size_t n = o->duration.n;
    struct ms_buf ranks = {.max = (size_t)1 << 20};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < found; i++)
        ms_buf_printf(&ranks, i != 0 ? ",%" PRId64 : "%" PRId64, o->slow.p[i]);
    MS_TRY(ms_buf_check(&ranks, err));
    for (size_t i = 0; i < n; i++)
        sum += o->duration.p[i];
    for (size_t i = 0; i < n; i++)
        squares += pow(o->duration.p[i] - sum / (double)n, 2);
    const double column[] = {sum / (double)n,       sqrt(squares / (double)(n - 1)),
                             o->duration.p[0],      find_quantile(o, 0.25),
                             find_quantile(o, 0.5), find_quantile(o, 0.75),
                             o->duration.p[n - 1],  sum};
    ms_stmt_str(o->add, 1, ms_buf_slice(&ranks));
    ms_stmt_str(o->add, 2, ms_buf_slice(&o->name));
    ms_stmt_str(o->add, 3, ms_buf_slice(&o->group));
    ms_stmt_i64(o->add, 4, earliest_of_slow(o, found));
    ms_stmt_i64(o->add, 5, (int64_t)n);
    for (int i = 0; i < 8; i++)
        ms_stmt_f64(o->add, 6 + i, column[i] / o->unit);
    enum ms_rc rc = ms_stmt_run(o->add, err);
    ms_buf_free(&ranks);
    return rc;
}

static int by_number(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return a < b ? -1 : a > b;
}

static enum ms_rc finish_op(struct op *o, struct ms_err *err)
{
    if (o->duration.n == 0)
        return MS_OK;
    if (!ms_vec_reserve(&o->slow, o->duration.n))
        return ms_no_memory(err);
    const size_t found = mstx__judge_slow_ranks(o->duration.p, o->rank.p, o->duration.n, o->slow.p);
    if (found > 1)
        qsort(o->slow.p, found, sizeof *o->slow.p, by_number);
    enum ms_rc rc = found != 0 ? add_stats(o, found, err) : MS_OK;
    for (size_t i = 0; i < found && rc == MS_OK; i++) {
        ms_stmt_i64(o->vote, 1, o->slow.p[i]);
        rc = ms_stmt_run(o->vote, err);
    }
    o->duration.n = o->rank.n = o->start.n = 0;
    return rc;
}

static enum ms_rc add_duration(struct op *o, struct ms_stmt *st, struct ms_err *err)
{
    const struct ms_str group = ms_stmt_get_str(st, 0), name = ms_stmt_get_str(st, 1);
    if (!ms_str_eq(ms_buf_slice(&o->group), group) || !ms_str_eq(ms_buf_slice(&o->name), name)) {
        MS_TRY(finish_op(o, err));
        ms_buf_clear(&o->group);
        ms_buf_clear(&o->name);
        ms_buf_str(&o->group, group);
        ms_buf_str(&o->name, name);
        MS_TRY(ms_buf_check(&o->group, err));
        MS_TRY(ms_buf_check(&o->name, err));
    }
    double *duration = ms_vec_push(&o->duration);
    int64_t *rank = ms_vec_push(&o->rank), *start = ms_vec_push(&o->start);
    if (duration == NULL || rank == NULL || start == NULL)
        return ms_no_memory(err);
    *rank = ms_stmt_get_i64(st, 2);
    *start = ms_stmt_get_i64(st, 3);
    *duration = (double)ms_stmt_get_i64(st, 4);
    return MS_OK;
}

/* ---- all operations ------------------------------------------------------------------ */

/* Communication operations whose call is within the step. */
static const struct mstx_rank_query operations = {.into = "SlowRankOps",
                                                  .columns = "rank, grp, name, start, end",
                                                  .needs = "COMMUNICATION_OP STRING_IDS",
                                                  .sql = sql_read_ops};

static enum ms_rc read_ops(struct ms_store *s, struct op *o, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql_find_ops, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = add_duration(o, st, err);
    ms_stmt_free(st);
    return rc == MS_OK ? finish_op(o, err) : rc;
}

static enum ms_rc vote_slow_rank(struct mstx_recipe *r, struct op *o, struct ms_err *err)
{
    MS_TRY(ms_store_prepare(r->s, &o->add, sql_add_stats, err));
    MS_TRY(ms_store_prepare(r->s, &o->vote, sql_add_vote, err));
    return read_ops(r->s, o, err);
}

static void free_op(struct op *o)
{
    ms_stmt_free(o->add);
    ms_stmt_free(o->vote);
    ms_vec_free(&o->duration);
    ms_vec_free(&o->rank);
    ms_vec_free(&o->start);
    ms_vec_free(&o->slow);
    ms_buf_free(&o->group);
    ms_buf_free(&o->name);
}

enum ms_rc mstx__find_slow_ranks(struct mstx_recipe *r, struct ms_err *err)
{
    /* the official tool fills columns named Ns with microseconds */
    struct op o = {
        .group = {.max = 1 << 24}, .name = {.max = 1 << 24}, .unit = r->strict ? 1e3 : 1};
    MS_TRY(mstx__recipe_read_rows(r, &operations, 1, err));
    MS_TRY(ms_store_exec(r->s, r->strict ? sql_drop_p2p_strictly : sql_drop_p2p, err));
    MS_TRY(ms_store_exec(r->s, sql_make_tables, err));
    enum ms_rc rc = vote_slow_rank(r, &o, err);
    free_op(&o);
    if (rc == MS_OK)
        rc = ms_store_exec(r->s, sql_write_tables, err);
    return rc;
}
