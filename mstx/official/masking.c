/* SPDX-License-Identifier: MIT
 *
 * masking: measures how much communication of each kind of group is hidden by kernels within a
 * step.
 *
 *     communication  ████████    ███       merged; not clipped at the ends of the step
 *     kernels           ███   ███
 *     uncovered      ███   ██    ███
 */
#include "mstx/official/masking.h"

#include "mstx/official/sql/masking.h"

#include "probe/base/mem.h"

#include <stdio.h>

static const char default_kinds[] = "dp,edp;edp;dp;ep;pp;mp;tp";

static const struct mstx_rank_query pulls[] = {
    {.into = "MaskSteps",
     .columns = "rank INTEGER, id, start INTEGER, end INTEGER",
     .needs = "STEP_TIME",
     .sql = sql_read_steps},
    {.into = "MaskComm",
     .columns = "rank INTEGER, start INTEGER, end INTEGER, kind",
     .needs = "COMMUNICATION_OP META_DATA",
     .sql = sql_read_comm},
    {.into = "MaskKernels",
     .columns = "rank INTEGER, start INTEGER, end INTEGER",
     .needs = "COMPUTE_TASK_INFO TASK",
     .sql = sql_read_kernels},
};

struct span {
    int64_t start, end;
};
typedef MS_VEC(struct span) spans;

struct masking {
    struct ms_store *s;
    int64_t step; /* only this one, or MSTX_ALL_STEPS */
    struct ms_stmt *steps, *add;
    spans comm, kernels;        /* of the rank, by start */
    spans comm_now, kernel_now; /* of the step, merged */
};

static enum ms_rc read_spans(struct ms_store *s, const char *sql, int64_t rank, struct ms_str kinds,
                             spans *to, struct ms_err *err)
{
    struct ms_stmt *st;
    to->n = 0;
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    ms_stmt_i64(st, 1, rank);
    if (ms_stmt_params(st) == 2)
        ms_stmt_str(st, 2, kinds);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct span *slot = ms_vec_push(to);
        if (slot == NULL)
            rc = ms_no_memory(err);
        else
            *slot = (struct span){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1)};
    }
    ms_stmt_free(st);
    return rc;
}

/* Merges touching spans among those that overlap the step. */
static bool merge_within(const spans *all, struct span step, spans *to)
{
    to->n = 0;
    for (size_t i = 0; i < all->n && all->p[i].start < step.end; i++) {
        const struct span s = all->p[i];
        struct span *last = to->n != 0 ? &to->p[to->n - 1] : NULL;
        if (s.end <= step.start)
            continue;
        if (last != NULL && s.start <= last->end) {
            last->end = s.end > last->end ? s.end : last->end;
            continue;
        }
        struct span *slot = ms_vec_push(to);
        if (slot == NULL)
            return false;
        *slot = s;
    }
    return true;
}

static int64_t length_of(const spans *all)
{
    int64_t sum = 0;
    for (size_t i = 0; i < all->n; i++)
        sum += all->p[i].end - all->p[i].start;
    return sum;
}

static int64_t common_length(const spans *a, const spans *b)
{
    int64_t sum = 0;
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        const int64_t start = a->p[i].start > b->p[k].start ? a->p[i].start : b->p[k].start;
        const int64_t end = a->p[i].end < b->p[k].end ? a->p[i].end : b->p[k].end;
        sum += end > start ? end - start : 0;
        if (a->p[i].end < b->p[k].end)
            i++;
        else
            k++;
    }
    return sum;
}

/* Rounds to five decimals as Python does: exactly, ties to even. */
static double round5(double v)
{
    char text[64];
    double out = v;
    snprintf(text, sizeof text, "%.5f", v);
    sscanf(text, "%lf", &out);
    return out;
}

static enum ms_rc add_step(struct masking *m, struct ms_str kinds, struct ms_err *err)
{
    const struct span step = {ms_stmt_get_i64(m->steps, 1), ms_stmt_get_i64(m->steps, 2)};
    if (step.end <= step.start)
        return MS_OK;
    if (!merge_within(&m->comm, step, &m->comm_now) ||
        !merge_within(&m->kernels, step, &m->kernel_now))
        return ms_no_memory(err);
    const double length = (double)(step.end - step.start);
    const int64_t comm = length_of(&m->comm_now);
    const int64_t uncovered = comm - common_length(&m->comm_now, &m->kernel_now);
    ms_stmt_i64(m->add, 1, ms_stmt_get_i64(m->steps, 0));
    ms_stmt_str(m->add, 2, kinds);
    ms_stmt_i64(m->add, 3, step.start);
    ms_stmt_i64(m->add, 4, step.end);
    ms_stmt_i64(m->add, 5, comm);
    ms_stmt_f64(m->add, 6, (double)comm / length);
    ms_stmt_i64(m->add, 7, uncovered);
    ms_stmt_f64(m->add, 8, round5((double)uncovered / length));
    return ms_stmt_run(m->add, err);
}

static enum ms_rc add_steps(struct masking *m, int64_t rank, struct ms_str kinds,
                            struct ms_err *err)
{
    ms_stmt_i64(m->steps, 1, rank);
    ms_stmt_i64(m->steps, 2, m->step);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(m->steps, &rc, err))
        rc = add_step(m, kinds, err);
    return rc;
}

static enum ms_rc mask_kinds(struct masking *m, int64_t rank, struct ms_str kinds,
                             struct ms_err *err)
{
    MS_TRY(read_spans(m->s, sql_find_comm, rank, kinds, &m->comm, err));
    return m->comm.n != 0 ? add_steps(m, rank, kinds, err) : MS_OK;
}

static enum ms_rc mask_rank(struct masking *m, int64_t rank, const char *kinds, struct ms_err *err)
{
    struct ms_str rest = ms_str_of(kinds), part;
    enum ms_rc rc = read_spans(m->s, sql_find_kernels, rank, MS_STR_NONE, &m->kernels, err);
    while (rc == MS_OK && m->kernels.n != 0 && ms_str_split(&rest, ';', &part))
        rc = mask_kinds(m, rank, part, err);
    return rc;
}

static enum ms_rc mask_all(struct masking *m, const struct mstx_recipe *r, struct ms_err *err)
{
    const char *kinds = r->parallel != NULL ? r->parallel : default_kinds;
    MS_TRY(ms_store_prepare(r->s, &m->steps, sql_find_steps, err));
    MS_TRY(ms_store_prepare(r->s, &m->add, sql_add_step, err));
    for (size_t i = 0; i < r->files.ranks.n; i++)
        MS_TRY(mask_rank(m, r->files.ranks.p[i].rank, kinds, err));
    return MS_OK;
}

enum ms_rc mstx__measure_masking(struct mstx_recipe *r, struct ms_err *err)
{
    struct masking m = {.s = r->s, .step = r->step};
    MS_TRY(mstx__recipe_read_rows(r, pulls, sizeof pulls / sizeof *pulls, err));
    MS_TRY(ms_store_exec(r->s, sql_make_table, err));
    enum ms_rc rc = mask_all(&m, r, err);
    ms_stmt_free(m.steps);
    ms_stmt_free(m.add);
    ms_vec_free(&m.comm);
    ms_vec_free(&m.kernels);
    ms_vec_free(&m.comm_now);
    ms_vec_free(&m.kernel_now);
    if (rc != MS_OK)
        return rc;
    return ms_store_exec(r->s, sql_drop_rows, err);
}
