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

#include "mstx/official/mark_stats.h"
#include "mstx/official/rank_rows.h"
#include "mstx/official/sql/mark_sums.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdlib.h>

enum { NEST_MAX = 100 }; /* deeper ranges keep their names, as in the official tool */

enum { MARKS, RANGES, STEPS };
static const struct mstx_rank_query mark_rows[] = {
    [MARKS] = {.no_run = true, /* a run has plain marks, which have no pairs */
               .needs = "MSTX_EVENTS STRING_IDS",
               .sql = sql_read_marks},
    [RANGES] = {.direct = MSTX_READ_RANGES,
                .needs = "MSTX_EVENTS STRING_IDS",
                .sql = sql_read_ranges},
    [STEPS] = {.direct = MSTX_READ_STEPS, .optional = true, .sql = sql_read_steps},
};

/* ---- one rank ---------------------------------------------------------------------------- */

struct range {
    struct ms_str name;
    int64_t start, end;
    double device; /* NAN: none */
    size_t row;
};

struct summing {
    struct mstx__mark_stats *stats;
    struct ms_arena *arena; /* names of the rank */
    MS_VEC(struct mstx__timed) timed;
    MS_VEC(struct mstx__mark_step) steps;
    MS_VEC(struct range) ranges;
    struct { /* start marks without an end so far, latest last */
        MS_VEC(struct ms_str) stem;
        MS_VEC(int64_t) tid, cann, device, framework;
    } open;
    int64_t rank;
    bool any;    /* rank is valid */
    bool strict; /* by a defect, the official tool has only the CANN time of marks */
};

static enum ms_rc add_row(struct summing *m, const struct mstx__timed *row, struct ms_err *err)
{
    struct mstx__timed *slot = ms_vec_push(&m->timed);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *row;
    return MS_OK;
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
    const struct mstx__timed row = {
        .name = m->open.stem.p[at],
        .start = m->open.cann.p[at],
        .framework = m->strict ? 0 : (double)(v[2] - m->open.framework.p[at]),
        .cann = (double)(v[0] - m->open.cann.p[at]),
        .device = m->strict ? 0 : (double)(v[1] - m->open.device.p[at])};
    enum ms_rc rc = add_row(m, &row, err);
    remove_mark(m, at);
    return rc;
}

/* Columns: text, then times in CANN, on the device and in the framework, then the thread. */
static enum ms_rc add_mark(struct summing *m, const struct mstx__rank_rows *rows,
                           const struct mstx__cell *cell, struct ms_err *err)
{
    const struct ms_str start = MS_STR("_start"), stop = MS_STR("_stop");
    const struct ms_str msg = mstx__cell_text(rows, cell);
    const int64_t v[] = {mstx__cell_number(&cell[1]), mstx__cell_number(&cell[2]),
                         mstx__cell_number(&cell[3]), mstx__cell_number(&cell[4])};
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
        const struct mstx__timed row = {.name = r->name,
                                        .start = r->start,
                                        .cann = (double)(r->end - r->start),
                                        .device = r->device};
        rc = add_row(m, &row, err);
    }
    return rc;
}

/* Columns: text, start, end, time on the device. */
static enum ms_rc add_range(struct summing *m, const struct mstx__rank_rows *rows,
                            const struct mstx__cell *cell, struct ms_err *err)
{
    struct range *r = ms_vec_push(&m->ranges);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct range){.name = ms_arena_str(m->arena, mstx__cell_text(rows, cell)),
                        .start = mstx__cell_number(&cell[1]),
                        .end = mstx__cell_number(&cell[2]),
                        .device = mstx__cell_real(&cell[3]),
                        .row = m->ranges.n};
    return r->name.p != NULL ? MS_OK : ms_arena_fail(m->arena, err);
}

/* Columns: number, start, end. */
static enum ms_rc add_step(struct summing *m, const struct mstx__rank_rows *rows,
                           const struct mstx__cell *cell, struct ms_err *err)
{
    struct mstx__mark_step *slot = ms_vec_push(&m->steps);
    (void)rows;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct mstx__mark_step){mstx__cell_number(cell), mstx__cell_number(&cell[1]),
                                     mstx__cell_number(&cell[2])};
    return MS_OK;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

static enum ms_rc begin_rank(struct summing *m, int64_t rank, struct ms_err *err)
{
    m->rank = rank;
    m->any = true;
    m->timed.n = m->steps.n = m->ranges.n = 0;
    m->open.stem.n = m->open.tid.n = m->open.cann.n = m->open.device.n = m->open.framework.n = 0;
    ms_arena_free(m->arena);
    m->arena = ms_arena_new((size_t)1 << 32);
    return m->arena != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc finish_rank(struct summing *m, struct ms_err *err)
{
    if (!m->any)
        return MS_OK;
    MS_TRY(finish_ranges(m, err));
    return mstx__mark_stats_add(m->stats, m->rank, m->timed.p, m->timed.n, m->steps.p, m->steps.n,
                                err);
}

/* Takes the rows of one query; marks come before ranges, and steps last. */
static enum ms_rc take_rows(void *ctx, size_t query, int64_t rank,
                            const struct mstx__rank_rows *rows, struct ms_err *err)
{
    static enum ms_rc (*const take[])(struct summing * m, const struct mstx__rank_rows *rows,
                                      const struct mstx__cell *cell, struct ms_err *err) = {
        [MARKS] = add_mark, [RANGES] = add_range, [STEPS] = add_step};
    struct summing *m = ctx;
    if (!m->any || m->rank != rank) {
        MS_TRY(finish_rank(m, err));
        MS_TRY(begin_rank(m, rank, err));
    }
    for (size_t i = 0; i < rows->cells.n; i += (size_t)rows->columns)
        MS_TRY(take[query](m, rows, &rows->cells.p[i], err));
    return MS_OK;
}

static void free_summing(struct summing *m)
{
    mstx__mark_stats_free(m->stats);
    ms_arena_free(m->arena);
    ms_vec_free(&m->timed);
    ms_vec_free(&m->steps);
    ms_vec_free(&m->ranges);
    ms_vec_free(&m->open.stem);
    ms_vec_free(&m->open.tid);
    ms_vec_free(&m->open.cann);
    ms_vec_free(&m->open.device);
    ms_vec_free(&m->open.framework);
}

enum ms_rc mstx__sum_marks(struct mstx_recipe *r, struct ms_err *err)
{
    struct summing m = {.strict = r->strict};
    enum ms_rc rc = mstx__mark_stats_new(&m.stats, err);
    if (rc == MS_OK)
        rc = mstx__recipe_visit_rows(r, mark_rows, 3, take_rows, &m, err);
    if (rc == MS_OK)
        rc = finish_rank(&m, err);
    if (rc == MS_OK)
        rc = mstx__mark_stats_write(m.stats, r->s, err);
    free_summing(&m);
    return rc;
}
