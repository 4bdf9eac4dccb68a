/* SPDX-License-Identifier: MIT
 *
 * mark_sums: sums ranges and pairs of marks by name, step and rank: in the framework, in CANN, on
 * the device.
 *
 *     marks  NAME_start ... NAME_stop    the last start of a thread first
 *     ranges outer { inner }             become outer::inner
 *
 * A name that occurs twice within a step gets the suffixes _0, _1, ...
 */
#include "mstx/official/mark_sums.h"

#include "mstx/official/sql/mark_sums.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdlib.h>

enum { NEST_MAX = 100 }; /* deeper ranges keep their names, as in the official tool */

static const struct mstx_rank_query mark_rows[] = {
    {.into = "MarkRows",
     .columns = "rank INTEGER, msg, cann INTEGER, device INTEGER, framework INTEGER, tid INTEGER",
     .needs = "MSTX_EVENTS STRING_IDS",
     .sql = sql_read_marks},
    {.into = "RangeRows",
     .columns = "rank INTEGER, msg, start INTEGER, end INTEGER, device REAL",
     .needs = "MSTX_EVENTS STRING_IDS",
     .sql = sql_read_ranges},
    {.into = "MarkSteps",
     .columns = "rank INTEGER, id, start INTEGER, end INTEGER",
     .optional = true,
     .sql = sql_read_steps},
};

/* ---- one rank ---------------------------------------------------------------------------- */

struct range {
    struct ms_str name;
    int64_t start, end;
    double device;
    bool on_device;
    size_t row;
};

struct summing {
    struct ms_store *s;
    struct ms_arena *arena;
    struct ms_stmt *add; /* rank, name, start, framework, cann, device */
    MS_VEC(struct range) ranges;
    struct { /* start marks without an end so far, latest last */
        MS_VEC(struct ms_str) stem;
        MS_VEC(int64_t) tid, cann, device, framework;
    } open;
    int64_t rank;
    bool any;    /* rank is valid */
    bool strict; /* by a defect, the official tool has only the CANN time of marks */
};

static enum ms_rc add_row(struct summing *m, struct ms_str name, int64_t start,
                          const double duration[3], bool on_device, struct ms_err *err)
{
    ms_stmt_i64(m->add, 1, m->rank);
    ms_stmt_str(m->add, 2, name);
    ms_stmt_i64(m->add, 3, start);
    for (int i = 0; i < 3; i++)
        ms_stmt_f64(m->add, 4 + i, duration[i]);
    if (!on_device)
        ms_stmt_null(m->add, 6);
    return ms_stmt_run(m->add, err);
}

static bool push_mark(struct summing *m, struct ms_str stem, const int64_t v[4])
{
    struct ms_str *name = ms_vec_push(&m->open.stem);
    int64_t *tid = ms_vec_push(&m->open.tid), *cann = ms_vec_push(&m->open.cann);
    int64_t *device = ms_vec_push(&m->open.device);
    int64_t *framework = ms_vec_push(&m->open.framework);
    if (name == NULL || tid == NULL || cann == NULL || device == NULL || framework == NULL)
        return false;
    *name = ms_arena_str(m->arena, stem);
    *cann = v[0];
    *device = v[1];
    *framework = v[2];
    *tid = v[3];
    return name->p != NULL;
}

static void remove_mark(struct summing *m, size_t at)
{
    const size_t behind = --m->open.stem.n - at;
    memmove(&m->open.stem.p[at], &m->open.stem.p[at + 1], behind * sizeof *m->open.stem.p);
    int64_t *all[] = {m->open.tid.p, m->open.cann.p, m->open.device.p, m->open.framework.p};
    for (size_t i = 0; i < 4; i++)
        memmove(&all[i][at], &all[i][at + 1], behind * sizeof *all[i]);
    m->open.tid.n = m->open.cann.n = m->open.device.n = m->open.framework.n = m->open.stem.n;
}

/* Pairs an end with the last start of the same thread and stem; an end without a start is
 * skipped. */
static enum ms_rc end_mark(struct summing *m, struct ms_str stem, const int64_t v[4],
                           struct ms_err *err)
{
    size_t at = m->open.stem.n;
    while (at != 0 && !(m->open.tid.p[at - 1] == v[3] && ms_str_eq(m->open.stem.p[at - 1], stem)))
        at--;
    if (at == 0)
        return MS_OK;
    at--;
    const double duration[] = {m->strict ? 0 : (double)(v[2] - m->open.framework.p[at]),
                               (double)(v[0] - m->open.cann.p[at]),
                               m->strict ? 0 : (double)(v[1] - m->open.device.p[at])};
    enum ms_rc rc = add_row(m, m->open.stem.p[at], m->open.cann.p[at], duration, true, err);
    remove_mark(m, at);
    return rc;
}

static enum ms_rc add_mark(struct summing *m, struct ms_stmt *st, struct ms_err *err)
{
    const struct ms_str start = MS_STR("_start"), stop = MS_STR("_stop");
    const struct ms_str msg = ms_stmt_get_str(st, 1);
    const int64_t v[] = {ms_stmt_get_i64(st, 2), ms_stmt_get_i64(st, 3), ms_stmt_get_i64(st, 4),
                         ms_stmt_get_i64(st, 5)};
    if (!m->any || m->rank != ms_stmt_get_i64(st, 0))
        m->open.stem.n = m->open.tid.n = m->open.cann.n = m->open.device.n = m->open.framework.n =
            0;
    m->any = true;
    m->rank = ms_stmt_get_i64(st, 0);
    if (ms_str_ends(msg, start))
        return push_mark(m, ms_str_sub(msg, 0, msg.n - start.n), v) ? MS_OK : ms_no_memory(err);
    return ms_str_ends(msg, stop) ? end_mark(m, ms_str_sub(msg, 0, msg.n - stop.n), v, err) : MS_OK;
}

/* ---- ranges within ranges ------------------------------------------------------------------ */

static int outer_first(const void *pa, const void *pb)
{
    const struct range *a = pa, *b = pb;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

static int by_row(const void *pa, const void *pb)
{
    const struct range *a = pa, *b = pb;
    return a->row < b->row ? -1 : a->row > b->row;
}

static bool place_inside(struct summing *m, struct range *r, const struct range *outer)
{
    ms_assert(outer->name.n != 0 && r->name.n != 0);
    struct ms_str whole = {NULL, outer->name.n + 2 + r->name.n};
    char *p = ms_arena_text(m->arena, whole.n);
    if (p == NULL)
        return false;
    memcpy(p, outer->name.p, outer->name.n);
    memcpy(p + outer->name.n, "::", 2);
    memcpy(p + outer->name.n + 2, r->name.p, r->name.n);
    whole.p = p;
    r->name = whole;
    return true;
}

/* Prefixes each range with the innermost range that is open at its start. Rows of equal times
 * share the name of the last, which is the innermost. */
static bool name_by_nesting(struct summing *m)
{
    const size_t n = m->ranges.n;
    struct range *r = m->ranges.p;
    MS_VEC(size_t) open = {0};
    bool ok = true;
    qsort(r, n, sizeof *r, outer_first);
    for (size_t i = 0; i < n && ok; i++) {
        while (open.n != 0 && r[open.p[open.n - 1]].end < r[i].end)
            open.n--;
        if (open.n != 0 && open.n + 1 < NEST_MAX && r[i].name.n != 0 &&
            r[open.p[open.n - 1]].name.n != 0)
            ok = place_inside(m, &r[i], &r[open.p[open.n - 1]]);
        size_t *slot = ms_vec_push(&open);
        ok = ok && slot != NULL;
        if (ok)
            *slot = i;
    }
    for (size_t i = n; i-- > 1 && ok;) {
        if (r[i - 1].start == r[i].start && r[i - 1].end == r[i].end)
            r[i - 1].name = r[i].name;
    }
    ms_vec_free(&open);
    return ok;
}

static enum ms_rc finish_ranges(struct summing *m, struct ms_err *err)
{
    if (m->ranges.n == 0)
        return MS_OK;
    if (!name_by_nesting(m))
        return ms_no_memory(err);
    qsort(m->ranges.p, m->ranges.n, sizeof *m->ranges.p, by_row);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < m->ranges.n && rc == MS_OK; i++) {
        const struct range *r = &m->ranges.p[i];
        const double duration[] = {0, (double)(r->end - r->start), r->device};
        rc = add_row(m, r->name, r->start, duration, r->on_device, err);
    }
    m->ranges.n = 0;
    return rc;
}

static enum ms_rc add_range(struct summing *m, struct ms_stmt *st, struct ms_err *err)
{
    if (m->any && m->rank != ms_stmt_get_i64(st, 0))
        MS_TRY(finish_ranges(m, err));
    m->any = true;
    m->rank = ms_stmt_get_i64(st, 0);
    struct range *r = ms_vec_push(&m->ranges);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct range){.name = ms_arena_str(m->arena, ms_stmt_get_str(st, 1)),
                        .start = ms_stmt_get_i64(st, 2),
                        .end = ms_stmt_get_i64(st, 3),
                        .device = ms_stmt_get_f64(st, 4),
                        .on_device = !ms_stmt_is_null(st, 4),
                        .row = m->ranges.n};
    return r->name.p != NULL ? MS_OK : ms_arena_fail(m->arena, err);
}

/* ---- all ranks ------------------------------------------------------------------------------- */

typedef enum ms_rc (*row_fn)(struct summing *m, struct ms_stmt *st, struct ms_err *err);

static enum ms_rc read_rows(struct summing *m, const char *sql, row_fn take, struct ms_err *err)
{
    struct ms_stmt *st;
    m->any = false;
    MS_TRY(ms_store_prepare(m->s, &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = take(m, st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc sum_ranks(struct summing *m, struct ms_err *err)
{
    MS_TRY(ms_store_prepare(m->s, &m->add, sql_add_timed, err));
    MS_TRY(read_rows(m, sql_find_marks, add_mark, err));
    MS_TRY(read_rows(m, sql_find_ranges, add_range, err));
    return finish_ranges(m, err);
}

static enum ms_rc write_tables(struct ms_store *s, struct ms_err *err)
{
    MS_TRY(ms_store_exec(s, sql_number_names, err));
    return ms_store_exec(s, sql_summarize, err);
}

enum ms_rc mstx__sum_marks(struct mstx_recipe *r, struct ms_err *err)
{
    struct summing m = {.s = r->s, .strict = r->strict};
    MS_TRY(mstx__recipe_read_rows(r, mark_rows, 3, err));
    MS_TRY(ms_store_exec(r->s, sql_make_timed, err));
    m.arena = ms_arena_new((size_t)1 << 34);
    enum ms_rc rc = m.arena != NULL ? sum_ranks(&m, err) : ms_no_memory(err);
    ms_stmt_free(m.add);
    ms_arena_free(m.arena);
    ms_vec_free(&m.ranges);
    ms_vec_free(&m.open.stem);
    ms_vec_free(&m.open.tid);
    ms_vec_free(&m.open.cann);
    ms_vec_free(&m.open.device);
    ms_vec_free(&m.open.framework);
    return rc == MS_OK ? write_tables(r->s, err) : rc;
}
