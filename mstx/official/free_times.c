/* SPDX-License-Identifier: MIT
 *
 * free_times: explains the longest times in which a device neither computed nor communicated.
 *
 *     PYTORCH_API   ── op ──┐ wait            ┌── op ──┐ wait
 *     CANN_API              └─► launch        │        └─► launch
 *     TASK                        └─► ██████  │ free time      └─► ██████
 *
 * The task before a free time and the task after it are compared: where the launch of the later one
 * waited longer behind its operator than that of the earlier one, the launches are to blame, else the
 * framework, which called nothing meanwhile.
 */
#include "mstx/official/free_times.h"

#include "mstx/official/rank_rows.h"
#include "mstx/official/sql/free_times.h"
#include "mstx/official/us_text.h"

#include "probe/base/order.h"
#include "probe/base/store_vtab.h"
#include "probe/base/vec.h"

#include <stdio.h>
#include <stdlib.h>

/* How much longer a launch may wait behind its operator: the bound of the official tool. */
enum { WAIT_NS = 50000, TYPES = 64 };

static const struct mstx_rank_query queries[] = {
    {.columns = "start, end",
     .needs = "COMPUTE_TASK_INFO TASK COMMUNICATION_OP",
     .sql = sql_read_busy},
    {.columns = "type, start, end, cann_start, cann_end, op_start, op_end",
     .needs = "TASK",
     .sql = sql_read_tasks},
};
enum { BUSY, TASKS, QUERIES };
enum { CANN_START = 3, CANN_END, OP_START, OP_END, COLUMNS }; /* of the tasks */

struct free_time {
    int64_t start, end;
};
struct task {
    struct ms_str type;
    int64_t start, end, cann_start, cann_end, op_start, op_end;
    bool has_op;
};
struct free_times {
    struct ms_stmt *add;
    size_t top;
    bool strict;
    MS_VEC(struct free_time) list; /* of the rank, the longest first */
    MS_VEC(struct task) task;      /* in order of their start */
};
struct reason {
    bool has_idle;
    int64_t op_idle, cann_idle;
    char text[512];
};

/* ---- times ------------------------------------------------------------------------------------ */

static int longest_first(const void *pa, const void *pb)
{
    const struct free_time *a = pa, *b = pb;
    return MS_ORDER(b->end - b->start, a->end - a->start, MS_ORDER(a->start, b->start, 0));
}

/* Keeps the longest times between what the device did. */
static enum ms_rc find_free(struct free_times *f, const struct mstx__rank_rows *rows,
                            struct ms_err *err)
{
    int64_t busy_until = 0;
    f->list.n = 0;
    for (size_t i = 0; i < rows->cells.n; i += 2) {
        const int64_t start = mstx__cell_number(&rows->cells.p[i]),
                      end = mstx__cell_number(&rows->cells.p[i + 1]);
        struct free_time *slot = i != 0 && start > busy_until ? ms_vec_push(&f->list) : NULL;
        if (i != 0 && start > busy_until && slot == NULL)
            return ms_no_memory(err);
        if (slot != NULL)
            *slot = (struct free_time){busy_until, start};
        busy_until = i == 0 || end > busy_until ? end : busy_until;
    }
    if (f->list.n > 1)
        qsort(f->list.p, f->list.n, sizeof *f->list.p, longest_first);
    f->list.n = f->list.n < f->top ? f->list.n : f->top;
    return MS_OK;
}

/* ---- tasks within a free time -------------------------------------------------------------------- */

struct type_count {
    struct ms_str type;
    size_t n, first;
};

static int most_first(const void *pa, const void *pb)
{
    const struct type_count *a = pa, *b = pb;
    return MS_ORDER(b->n, a->n, MS_ORDER(a->first, b->first, 0));
}

static size_t count_type(struct type_count *list, size_t n, const struct task *t)
{
    size_t i = 0;
    while (i < n && !ms_str_eq(list[i].type, t->type))
        i++;
    if (i == n && n == TYPES)
        return n;
    if (i == n)
        list[n] = (struct type_count){.type = t->type, .first = n};
    list[i].n++;
    return i == n ? n + 1 : n;
}

/* Explains a free time in which the device did something else; false: it did nothing. */
static bool explain_by_tasks(const struct free_times *f, const struct free_time *t,
                             struct reason *out)
{
    struct type_count types[TYPES];
    size_t n = 0, at = 0;
    int64_t most = 0, until = t->start;
    char us[MSTX_US_TEXT];
    for (size_t i = 0; i < f->task.n; i++) {
        const struct task *k = &f->task.p[i];
        if (k->start <= t->start || k->end >= t->end)
            continue;
        n = count_type(types, n, k);
        most = k->start - until > most ? k->start - until : most;
        until = k->end > until ? k->end : until;
    }
    if (n == 0)
        return false;
    most = t->end - until > most ? t->end - until : most;
    qsort(types, n, sizeof *types, most_first);
    at = (size_t)snprintf(out->text, sizeof out->text, "Device task running: ");
    for (size_t i = 0; i < n && at < sizeof out->text - 128; i++)
        at += (size_t)snprintf(out->text + at, sizeof out->text - at, "%s%zu %.*s tasks",
                               i != 0 ? ", " : "", types[i].n,
                               (int)(types[i].type.n < 64 ? types[i].type.n : 64), types[i].type.p);
    snprintf(out->text + at, sizeof out->text - at, ", max remaining free %s us",
             mstx__us_text(most, us));
    return true;
}

/* ---- the tasks around a free time ------------------------------------------------------------------ */

static void find_around(const struct free_times *f, const struct free_time *t,
                        const struct task **before, const struct task **after)
{
    *before = *after = NULL;
    for (size_t i = 0; i < f->task.n; i++) {
        const struct task *k = &f->task.p[i];
        if (k->end <= t->start && (*before == NULL || k->end >= (*before)->end))
            *before = k;
        if (k->start >= t->end && *after == NULL)
            *after = k;
    }
}

static void explain_by_launches(const struct task *a, const struct task *b, struct reason *out)
{
    char us[MSTX_US_TEXT];
    const int64_t first = a->cann_end - a->cann_start, second = b->cann_end - b->cann_start;
    const int64_t gap = b->cann_start - a->cann_end, launch = first > second ? first : second;
    if (gap >= launch)
        snprintf(out->text, sizeof out->text,
                 "Abnormal CANN layer: long time between two node@launch %s us",
                 mstx__us_text(gap, us));
    else
        snprintf(out->text, sizeof out->text, "Abnormal CANN layer: long node@launch %s us",
                 mstx__us_text(launch, us));
}

static void explain(const struct free_times *f, const struct free_time *t, struct reason *out)
{
    const struct task *a, *b;
    char us[MSTX_US_TEXT];
    *out = (struct reason){0};
    if (explain_by_tasks(f, t, out))
        return;
    find_around(f, t, &a, &b);
    if (a == NULL || b == NULL) {
        snprintf(out->text, sizeof out->text, "Skip free analysis due to no prev or next task.");
        return;
    }
    if (!a->has_op || !b->has_op) {
        snprintf(out->text, sizeof out->text,
                 "Skip free analysis due to no pytorch dispatch time.");
        return;
    }
    out->has_idle = true;
    out->op_idle = b->op_end - a->op_end;
    out->cann_idle = b->cann_end - a->cann_end;
    if ((b->cann_start - b->op_end) - (a->cann_start - a->op_end) < WAIT_NS)
        snprintf(out->text, sizeof out->text, "Idle Pytorch layer: no task dispatched in %s us",
                 mstx__us_text(out->op_idle, us));
    else
        explain_by_launches(a, b, out);
}

/* ---- rows ------------------------------------------------------------------------------------------- */

/* Rounds the times of a column as the official tool does: it reads a column that lacks values as
 * floats, and takes a missing operator for one at time 0, unless all are missing. */
static void round_column(struct free_times *f, const struct mstx__rank_rows *rows, size_t column,
                         int64_t *first)
{
    bool has_none = false;
    for (size_t i = column; i < rows->cells.n; i += COLUMNS)
        has_none |= rows->cells.p[i].type == MS_VALUE_NULL;
    for (size_t i = 0; i < f->task.n && has_none; i++) {
        int64_t *at = (int64_t *)(void *)((char *)first + i * sizeof(struct task));
        *at = (int64_t)(double)*at;
    }
}

static void keep_defects(struct free_times *f, const struct mstx__rank_rows *rows)
{
    bool any = false;
    struct task *first = f->task.p;
    for (size_t i = 0; i < f->task.n; i++)
        any |= f->task.p[i].has_op;
    for (size_t i = 0; i < f->task.n && any; i++)
        f->task.p[i].has_op = true;
    if (f->task.n == 0)
        return;
    round_column(f, rows, CANN_START, &first->cann_start);
    round_column(f, rows, CANN_END, &first->cann_end);
    round_column(f, rows, OP_END, &first->op_end);
}

static enum ms_rc keep_tasks(struct free_times *f, const struct mstx__rank_rows *rows,
                             struct ms_err *err)
{
    f->task.n = 0;
    for (size_t i = 0; i < rows->cells.n; i += COLUMNS) {
        const struct mstx__cell *c = &rows->cells.p[i];
        struct task *k = ms_vec_push(&f->task);
        if (k == NULL)
            return ms_no_memory(err);
        *k = (struct task){mstx__cell_text(rows, &c[0]),    mstx__cell_number(&c[1]),
                           mstx__cell_number(&c[2]),        mstx__cell_number(&c[CANN_START]),
                           mstx__cell_number(&c[CANN_END]), mstx__cell_number(&c[OP_START]),
                           mstx__cell_number(&c[OP_END]),   mstx__cell_number(&c[OP_START]) != 0};
        if (k->type.p == NULL)
            k->type = MS_STR("None");
    }
    if (f->strict)
        keep_defects(f, rows);
    return MS_OK;
}

static enum ms_rc add_row(struct free_times *f, int64_t rank, const struct free_time *t,
                          struct ms_err *err)
{
    struct reason why;
    char from[MSTX_US_TEXT], to[MSTX_US_TEXT];
    explain(f, t, &why);
    ms_stmt_i64(f->add, 1, rank);
    ms_stmt_str(f->add, 2, mstx__us_text_exact(t->start, from));
    ms_stmt_str(f->add, 3, mstx__us_text_exact(t->end, to));
    ms_stmt_f64(f->add, 4, (double)(t->end - t->start) / 1000);
    for (int i = 0; i < 2; i++) {
        if (why.has_idle)
            ms_stmt_f64(f->add, 5 + i, (double)(i == 0 ? why.op_idle : why.cann_idle) / 1000);
        else
            ms_stmt_null(f->add, 5 + i);
    }
    ms_stmt_str(f->add, 7, ms_str_of(why.text));
    return ms_stmt_run(f->add, err);
}

static enum ms_rc take_rows(void *ctx, size_t query, int64_t rank,
                            const struct mstx__rank_rows *rows, struct ms_err *err)
{
    struct free_times *f = ctx;
    if (query == BUSY)
        return find_free(f, rows, err);
    MS_TRY(keep_tasks(f, rows, err));
    for (size_t i = 0; i < f->list.n && f->task.n != 0; i++)
        MS_TRY(add_row(f, rank, &f->list.p[i], err));
    return MS_OK;
}

enum ms_rc mstx__explain_free_times(struct mstx_recipe *r, struct ms_err *err)
{
    struct free_times f = {.top = (size_t)r->top, .strict = r->strict};
    MS_TRY(ms_store_exec(r->s, sql_make_table, err));
    MS_TRY(ms_store_prepare(r->s, &f.add, sql_add_row, err));
    const enum ms_rc rc = mstx__recipe_visit_rows(r, queries, QUERIES, take_rows, &f, err);
    ms_stmt_free(f.add);
    ms_vec_free(&f.list);
    ms_vec_free(&f.task);
    return rc;
}
