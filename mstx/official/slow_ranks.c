/* SPDX-License-Identifier: MIT
 *
 * slow_ranks: finds stragglers: the rank with the shortest duration in a collective arrived last,
 * if its duration is shorter than chance explains.
 *
 * Dixon's test of the least of n values at 0.995, for more than 100 ranks three deviations.
 */
#include "mstx/official/slow_ranks.h"

#include "mstx/official/comm_rows.h"
#include "mstx/official/figures.h"
#include "mstx/official/sql/slow_ranks.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/vec.h"

#include <inttypes.h>
#include <math.h>

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

/* A rank in an operation. */
struct part {
    int64_t dur, rank, start;
};
/* One operation on all its ranks, the shortest duration first. */
struct op {
    MS_VEC(struct part) part;
    MS_VEC(double) duration;
    MS_VEC(int64_t) rank;
    MS_VEC(int64_t) slow;
    struct ms_str group, name;
    struct ms_stmt *add, *vote;
    double unit; /* nanoseconds in a unit of the output */
};

static int64_t earliest_of_slow(const struct op *o, size_t found)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < o->part.n; i++) {
        for (size_t k = 0; k < found; k++) {
            if (o->part.p[i].rank == o->slow.p[k] && o->part.p[i].start < first)
                first = o->part.p[i].start;
        }
    }
    return first;
}

static enum ms_rc add_stats(struct op *o, size_t found, struct ms_err *err)
{
    ms_assert(found <= o->slow.cap && o->rank.n == o->duration.n && o->part.n == o->duration.n);
    struct ms_buf ranks = {.max = (size_t)1 << 20};
    for (size_t i = 0; i < found; i++)
        ms_buf_printf(&ranks, i != 0 ? ",%" PRId64 : "%" PRId64, o->slow.p[i]);
    MS_TRY(ms_buf_check(&ranks, err));
    const struct mstx__figures f = mstx__describe(o->duration.p, o->duration.n);
    const double column[] = {f.mean, f.deviation, f.min, f.q1, f.median, f.q3, f.max, f.sum};
    ms_stmt_str(o->add, 1, ms_buf_slice(&ranks));
    ms_stmt_str(o->add, 2, o->name);
    ms_stmt_str(o->add, 3, o->group);
    ms_stmt_i64(o->add, 4, earliest_of_slow(o, found));
    ms_stmt_i64(o->add, 5, (int64_t)f.n);
    for (int i = 0; i < 8; i++)
        ms_stmt_f64(o->add, 6 + i, column[i] / o->unit);
    enum ms_rc rc = ms_stmt_run(o->add, err);
    ms_buf_free(&ranks);
    return rc;
}

static int by_duration(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;
    return MS_ORDER(a->dur, b->dur, MS_ORDER(a->rank, b->rank, MS_ORDER(a->start, b->start, 0)));
}

static bool sort_parts(struct op *o)
{
    const size_t n = o->part.n;
    if (!ms_vec_reserve(&o->slow, n) || !ms_vec_reserve(&o->duration, n) ||
        !ms_vec_reserve(&o->rank, n))
        return false;
    ms_vec_sort(&o->part, by_duration);
    for (size_t i = 0; i < n; i++) {
        o->duration.p[i] = (double)o->part.p[i].dur;
        o->rank.p[i] = o->part.p[i].rank;
    }
    o->duration.n = o->rank.n = n;
    return true;
}

static enum ms_rc judge_op(struct op *o, struct ms_err *err)
{
    if (!sort_parts(o))
        return ms_no_memory(err);
    const size_t found = mstx__judge_slow_ranks(o->duration.p, o->rank.p, o->duration.n, o->slow.p);
    if (found > 1)
        qsort(o->slow.p, found, sizeof *o->slow.p, ms_order_i64);
    enum ms_rc rc = found != 0 ? add_stats(o, found, err) : MS_OK;
    for (size_t i = 0; i < found && rc == MS_OK; i++) {
        ms_stmt_i64(o->vote, 1, o->slow.p[i]);
        rc = ms_stmt_run(o->vote, err);
    }
    return rc;
}

/* ---- all operations ------------------------------------------------------------------ */

/* Communication operations whose call is within the step. */
static const struct mstx_rank_query operations = {
    .direct = MSTX_READ_COMM, .needs = "COMMUNICATION_OP STRING_IDS", .sql = sql_read_ops};

/* The operations that are judged, in order of group and name. */
struct judged {
    const struct mstx__comm_rows *c;
    uint32_t *place;       /* by operation: its place in the order, or UINT32_MAX */
    MS_VEC(uint32_t) list; /* operations in order */
};

/* Tells whether a name is that of a transfer between two ranks. The official tool looks for lower
 * case alone, which HcclSend does not have. */
static bool is_transfer(struct ms_str name, bool strict)
{
    if (strict)
        return ms_str_find_str(name, MS_STR("send")) >= 0 ||
               ms_str_find_str(name, MS_STR("receive")) >= 0;
    return mstx__is_transfer(name);
}

/* Sets even[group] to whether equally many ranks made each operation of a group; the others are left
 * out. count is by operation. */
static bool *find_even_groups(const struct mstx__comm_rows *c, const uint32_t *count)
{
    const size_t groups = c->text.keys.n;
    bool *even = ms_alloc(groups + 1);
    uint32_t *of = ms_calloc(groups + 1, sizeof *of);
    for (size_t i = 0; i < groups && even != NULL; i++)
        even[i] = true;
    for (uint32_t i = 0; i < c->op.keys.n && even != NULL && of != NULL; i++) {
        const uint32_t group = mstx__comm_group(c, i);
        if (count[i] == 0)
            continue;
        even[group] = even[group] && (of[group] == 0 || of[group] == count[i]);
        of[group] = count[i];
    }
    if (of == NULL) {
        ms_free(even);
        even = NULL;
    }
    ms_free(of);
    return even;
}

/* Counts the ranks of each operation; 0 for transfers and for operations without a group. */
static uint32_t *count_ranks(const struct mstx__comm_rows *c, bool strict)
{
    uint32_t *count = ms_calloc(c->op.keys.n + 1, sizeof *count);
    for (size_t i = 0; i < c->row.n && count != NULL; i++)
        count[c->row.p[i].op]++;
    for (uint32_t i = 0; i < c->op.keys.n && count != NULL; i++) {
        if (mstx__comm_group(c, i) == MSTX_NO_TEXT || is_transfer(mstx__comm_name(c, i), strict))
            count[i] = 0;
    }
    return count;
}

static int by_name(const void *pa, const void *pb, void *ctx)
{
    const struct mstx__comm_rows *c = ctx;
    const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    const int order = ms_str_cmp(mstx__comm_text(c, mstx__comm_group(c, a)),
                                 mstx__comm_text(c, mstx__comm_group(c, b)));
    return order != 0 ? order : ms_str_cmp(mstx__comm_name(c, a), mstx__comm_name(c, b));
}

static bool list_ops(struct judged *j, const uint32_t *count, const bool *even)
{
    const struct mstx__comm_rows *c = j->c;
    j->place = ms_alloc((c->op.keys.n + 1) * sizeof *j->place);
    if (j->place == NULL)
        return false;
    for (uint32_t i = 0; i < c->op.keys.n; i++) {
        j->place[i] = UINT32_MAX;
        if (count[i] == 0 || !even[mstx__comm_group(c, i)])
            continue;
        uint32_t *slot = ms_vec_push(&j->list);
        if (slot == NULL)
            return false;
        *slot = i;
    }
    if (j->list.n != 0)
        qsort_r(j->list.p, j->list.n, sizeof *j->list.p, by_name, (void *)(uintptr_t)c);
    for (uint32_t i = 0; i < j->list.n; i++)
        j->place[j->list.p[i]] = i;
    return true;
}

static enum ms_rc choose_ops(struct judged *j, bool strict, struct ms_err *err)
{
    uint32_t *count = count_ranks(j->c, strict);
    bool *even = count != NULL ? find_even_groups(j->c, count) : NULL;
    const bool ok = even != NULL && list_ops(j, count, even);
    ms_free(count);
    ms_free(even);
    return ok ? MS_OK : ms_no_memory(err);
}

static uint32_t place_of_row(void *ctx, size_t row)
{
    const struct judged *j = ctx;
    return j->place[j->c->row.p[row].op];
}

static enum ms_rc gather_parts(struct op *o, const struct mstx__comm_rows *c, const uint32_t *row,
                               size_t n, struct ms_err *err)
{
    o->part.n = 0;
    if (!ms_vec_reserve(&o->part, n))
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        o->part.p[o->part.n++] = (struct part){mstx__comm_dur(c, row[i]),
                                               mstx__comm_rank(c, row[i]), c->start.p[row[i]]};
    }
    return MS_OK;
}

static enum ms_rc judge_ops(const struct judged *j, const struct mstx__comm_order *order,
                            struct op *o, struct ms_err *err)
{
    const struct mstx__comm_rows *c = j->c;
    for (size_t i = 0; i < j->list.n; i++) {
        o->group = mstx__comm_text(c, mstx__comm_group(c, j->list.p[i]));
        o->name = mstx__comm_name(c, j->list.p[i]);
        MS_TRY(gather_parts(o, c, order->row + order->first[i],
                            order->first[i + 1] - order->first[i], err));
        MS_TRY(judge_op(o, err));
    }
    return MS_OK;
}

static enum ms_rc vote_slow_rank(struct mstx_recipe *r, const struct mstx__comm_rows *c,
                                 struct op *o, struct ms_err *err)
{
    struct judged j = {.c = c};
    struct mstx__comm_order order = {0};
    MS_TRY(ms_store_prepare(r->s, &o->add, sql_add_stats, err));
    MS_TRY(ms_store_prepare(r->s, &o->vote, sql_add_vote, err));
    enum ms_rc rc = choose_ops(&j, r->strict, err);
    if (rc == MS_OK)
        rc = mstx__comm_order_new(&order, c, (uint32_t)j.list.n, place_of_row, &j, err);
    if (rc == MS_OK)
        rc = judge_ops(&j, &order, o, err);
    mstx__comm_order_free(&order);
    ms_free(j.place);
    ms_vec_free(&j.list);
    return rc;
}

static void free_op(struct op *o)
{
    ms_stmt_free(o->add);
    ms_stmt_free(o->vote);
    ms_vec_free(&o->part);
    ms_vec_free(&o->duration);
    ms_vec_free(&o->rank);
    ms_vec_free(&o->slow);
}

enum ms_rc mstx__find_slow_ranks(struct mstx_recipe *r, struct ms_err *err)
{
    /* the official tool fills columns named Ns with microseconds */
    struct op o = {.unit = r->strict ? 1e3 : 1};
    struct mstx__comm_rows c;
    enum ms_rc rc = mstx__comm_rows_read(r, &operations, MSTX_COMM_STARTS, &c, err);
    if (rc == MS_OK)
        rc = ms_store_exec(r->s, sql_make_tables, err);
    if (rc == MS_OK)
        rc = vote_slow_rank(r, &c, &o, err);
    free_op(&o);
    mstx__comm_rows_free(&c);
    return rc == MS_OK ? ms_store_exec(r->s, sql_write_tables, err) : rc;
}
