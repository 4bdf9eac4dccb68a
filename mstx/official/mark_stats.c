/* SPDX-License-Identifier: MIT
 *
 * mark_stats: see the header.
 *
 * Rows of a rank lie together, sorted by their share of the rank's time, so that merging the ranks
 * gives the order of MSTXMarkStats. A name of a step is one entry, a row its number and its
 * durations; those of framework and device are kept only where there are any.
 */
#include "mstx/official/mark_stats.h"

#include "mstx/official/figures.h"
#include "mstx/official/sql/mark_stats.h"

#include "probe/base/assert.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <math.h>

enum { FRAMEWORK, CANN, DEVICE, KINDS };

/* The rows of a rank. */
struct rank {
    int64_t rank;
    size_t first, end;
    double sum[KINDS];
    bool has_device;
};
struct mstx__mark_stats {
    struct ms_arena *arena;
    struct ms_map entry;     /* the step, then the name */
    MS_VEC(uint32_t) row;    /* by row: its entry */
    MS_VEC(double) x[KINDS]; /* by row; empty: 0 for the framework, NAN for the device */
    MS_VEC(struct rank) ranks;
    MS_VEC(uint32_t) order; /* rows in the order of MSTXMarkStats */
};

enum ms_rc mstx__mark_stats_new(struct mstx__mark_stats **out, struct ms_err *err)
{
    struct mstx__mark_stats *m = ms_calloc(1, sizeof *m);
    *out = m;
    if (m == NULL)
        return ms_no_memory(err);
    m->arena = ms_arena_new((size_t)1 << 34);
    if (m->arena != NULL)
        return MS_OK;
    ms_free(m);
    *out = NULL;
    return ms_no_memory(err);
}

void mstx__mark_stats_free(struct mstx__mark_stats *m)
{
    if (m == NULL)
        return;
    ms_map_free(&m->entry);
    ms_vec_free(&m->row);
    for (int k = 0; k < KINDS; k++)
        ms_vec_free(&m->x[k]);
    ms_vec_free(&m->ranks);
    ms_vec_free(&m->order);
    ms_arena_free(m->arena);
    ms_free(m);
}

/* ---- entries ------------------------------------------------------------------------------- */

static int64_t step_of_entry(const struct mstx__mark_stats *m, uint32_t entry)
{
    int64_t step;
    memcpy(&step, ms_map_key(&m->entry, entry).p, sizeof step);
    return step;
}

static struct ms_str name_of_entry(const struct mstx__mark_stats *m, uint32_t entry)
{
    const struct ms_str key = ms_map_key(&m->entry, entry);
    return ms_str_sub(key, sizeof(int64_t), key.n);
}

static double value_of(const struct mstx__mark_stats *m, int kind, size_t row)
{
    if (m->x[kind].n != 0)
        return m->x[kind].p[row];
    return kind == DEVICE ? NAN : 0;
}

/* ---- one rank ------------------------------------------------------------------------------ */

/* A row of a rank before rows are sorted. */
struct placed {
    const struct mstx__timed *row;
    int64_t step;
    uint32_t same;   /* its number among those of the rank, step and name */
    uint32_t number; /* of rank, step and name */
    double share;
};
struct placing {
    struct placed *placed;
    struct ms_map key; /* step and name */
    struct ms_arena *arena;
    MS_VEC(uint32_t) count; /* by key */
    struct ms_buf text;
};

/* Finds the first step in which a time lies; 0: none. */
static int64_t find_step(const struct mstx__mark_step *step, size_t n, int64_t t)
{
    for (size_t i = 0; i < n && step[i].start <= t; i++) {
        if (t <= step[i].end)
            return step[i].id;
    }
    return 0;
}

static void make_key(struct ms_buf *text, int64_t step, struct ms_str name)
{
    ms_buf_clear(text);
    ms_buf_str(text, (struct ms_str){(const char *)&step, sizeof step});
    ms_buf_str(text, name);
}

static bool place_row(struct placing *p, struct placed *to)
{
    bool added;
    make_key(&p->text, to->step, to->row->name);
    to->number = ms_map_put_copy(&p->key, ms_buf_slice(&p->text), p->arena, &added);
    if (to->number == MS_MAP_NONE || (added && ms_vec_push(&p->count) == NULL))
        return false;
    if (added)
        p->count.p[to->number] = 0;
    to->same = p->count.p[to->number]++;
    return true;
}

static int by_share(const void *pa, const void *pb)
{
    const struct placed *a = pa, *b = pb;
    return MS_ORDER(b->share, a->share, MS_ORDER(a->row, b->row, 0));
}

static struct rank sum_rank(int64_t rank, const struct mstx__timed *row, size_t n)
{
    struct rank r = {.rank = rank};
    for (size_t i = 0; i < n; i++) {
        r.sum[FRAMEWORK] += row[i].framework;
        r.sum[CANN] += row[i].cann;
        r.sum[DEVICE] += isnan(row[i].device) ? 0 : row[i].device;
        r.has_device = r.has_device || !isnan(row[i].device);
    }
    return r;
}

/* Keeps a value of a row; the values of earlier rows are made up when the first one is kept. */
static bool keep_value(struct mstx__mark_stats *m, int kind, double value)
{
    const double missing = kind == DEVICE ? NAN : 0;
    const bool is_missing = kind == DEVICE ? isnan(value) : value == 0;
    if (kind != CANN && m->x[kind].n == 0 && is_missing)
        return true;
    if (!ms_vec_reserve(&m->x[kind], m->row.n))
        return false;
    while (m->x[kind].n + 1 < m->row.n)
        m->x[kind].p[m->x[kind].n++] = missing;
    m->x[kind].p[m->x[kind].n++] = value;
    return true;
}

/* Adds a row; a name that the rank has twice in the step gets its number. */
static bool keep_row(struct mstx__mark_stats *m, struct placing *p, const struct placed *from)
{
    make_key(&p->text, from->step, from->row->name);
    if (p->count.p[from->number] > 1)
        ms_buf_printf(&p->text, "_%" PRIu32, from->same);
    uint32_t *slot = ms_vec_push(&m->row);
    if (slot == NULL || p->text.bad != MS_OK)
        return false;
    *slot = ms_map_put_copy(&m->entry, ms_buf_slice(&p->text), m->arena, NULL);
    return *slot != MS_MAP_NONE && keep_value(m, FRAMEWORK, from->row->framework) &&
           keep_value(m, CANN, from->row->cann) && keep_value(m, DEVICE, from->row->device);
}

static bool add_rows(struct mstx__mark_stats *m, struct placing *p, struct rank *r,
                     const struct mstx__timed *row, size_t n, const struct mstx__mark_step *step,
                     size_t steps)
{
    for (size_t i = 0; i < n; i++) {
        p->placed[i] =
            (struct placed){.row = &row[i],
                            .step = find_step(step, steps, row[i].start),
                            .share = r->sum[CANN] != 0 ? row[i].cann / r->sum[CANN] * 100 : 0};
        if (!place_row(p, &p->placed[i]))
            return false;
    }
    if (n != 0)
        qsort(p->placed, n, sizeof *p->placed, by_share);
    for (size_t i = 0; i < n; i++) {
        if (!keep_row(m, p, &p->placed[i]))
            return false;
    }
    return true;
}

enum ms_rc mstx__mark_stats_add(struct mstx__mark_stats *m, int64_t rank,
                                const struct mstx__timed *row, size_t n,
                                const struct mstx__mark_step *step, size_t steps,
                                struct ms_err *err)
{
    struct placing p = {.placed = ms_alloc((n + 1) * sizeof *p.placed),
                        .arena = ms_arena_new((size_t)1 << 32),
                        .text = {.max = (size_t)1 << 30}};
    struct rank r = sum_rank(rank, row, n);
    r.first = m->row.n;
    bool ok = p.placed != NULL && p.arena != NULL && add_rows(m, &p, &r, row, n, step, steps);
    r.end = m->row.n;
    struct rank *slot = ok ? ms_vec_push(&m->ranks) : NULL;
    if (slot != NULL)
        *slot = r;
    ms_free(p.placed);
    ms_map_free(&p.key);
    ms_arena_free(p.arena);
    ms_vec_free(&p.count);
    ms_buf_free(&p.text);
    return slot != NULL ? MS_OK : ms_no_memory(err);
}

/* ---- the order of all ranks ---------------------------------------------------------------- */

/* The next row of a rank. */
struct head {
    double share;
    size_t row;
    uint32_t place; /* of the rank */
};

static bool is_before(const struct head *a, const struct head *b)
{
    return a->share != b->share ? a->share > b->share : a->place < b->place;
}

static void sift_down(struct head *heap, size_t n, size_t at)
{
    for (;;) {
        size_t first = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < n; i++)
            first = is_before(&heap[i], &heap[first]) ? i : first;
        if (first == at)
            return;
        const struct head moved = heap[at];
        heap[at] = heap[first];
        heap[first] = moved;
        at = first;
    }
}

static void set_share(const struct mstx__mark_stats *m, struct head *h)
{
    const double sum = m->ranks.p[h->place].sum[CANN];
    h->share = sum != 0 ? m->x[CANN].p[h->row] / sum * 100 : 0;
}

typedef enum ms_rc (*row_fn)(void *ctx, size_t row, const struct rank *r, double share,
                             struct ms_err *err);

/* Calls fn for all rows, the greatest share first, those of equal shares by rank. */
static enum ms_rc merge_ranks(const struct mstx__mark_stats *m, row_fn fn, void *ctx,
                              struct ms_err *err)
{
    struct head *heap = ms_alloc((m->ranks.n + 1) * sizeof *heap);
    size_t n = 0;
    enum ms_rc rc = heap != NULL ? MS_OK : ms_no_memory(err);
    for (uint32_t i = 0; i < m->ranks.n && rc == MS_OK; i++) {
        heap[n] = (struct head){.row = m->ranks.p[i].first, .place = i};
        if (m->ranks.p[i].first != m->ranks.p[i].end)
            set_share(m, &heap[n++]);
    }
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
    while (n != 0 && rc == MS_OK) {
        struct head *h = heap;
        const struct rank *r = &m->ranks.p[h->place];
        rc = fn(ctx, h->row, r, h->share, err);
        if (++h->row < r->end)
            set_share(m, h);
        else
            *h = heap[--n];
        sift_down(heap, n, 0);
    }
    ms_free(heap);
    return rc;
}

/* ---- MSTXMarkStats -------------------------------------------------------------------------- */

struct writing {
    struct mstx__mark_stats *m;
    struct ms_stmt *add;
};

/* Binds a duration and its share of the rank. */
static void bind_share(struct ms_stmt *st, int at, double x, double sum)
{
    if (isnan(x))
        ms_stmt_null(st, at);
    else
        ms_stmt_f64(st, at, x);
    if (isnan(x) && sum != 0)
        ms_stmt_null(st, at + 1);
    else
        ms_stmt_f64(st, at + 1, sum != 0 ? x / sum * 100 : 0);
}

static enum ms_rc write_row(void *ctx, size_t row, const struct rank *r, double share,
                            struct ms_err *err)
{
    struct writing *w = ctx;
    const struct mstx__mark_stats *m = w->m;
    const uint32_t entry = m->row.p[row];
    uint32_t *slot = ms_vec_push(&w->m->order);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (uint32_t)row;
    ms_stmt_i64(w->add, 1, (int64_t)w->m->order.n - 1);
    ms_stmt_str(w->add, 2, name_of_entry(m, entry));
    bind_share(w->add, 3, value_of(m, FRAMEWORK, row), r->sum[FRAMEWORK]);
    ms_stmt_f64(w->add, 5, m->x[CANN].p[row]);
    ms_stmt_f64(w->add, 6, share);
    bind_share(w->add, 7, value_of(m, DEVICE, row), r->sum[DEVICE]);
    ms_stmt_i64(w->add, 9, r->rank);
    ms_stmt_i64(w->add, 10, step_of_entry(m, entry));
    return ms_stmt_run(w->add, err);
}

static enum ms_rc write_rows(struct mstx__mark_stats *m, struct ms_store *s, struct ms_err *err)
{
    struct writing w = {.m = m};
    MS_TRY(ms_store_prepare(s, &w.add, sql_add_mark, err));
    enum ms_rc rc = merge_ranks(m, write_row, &w, err);
    ms_stmt_free(w.add);
    return rc;
}

/* ---- summaries -------------------------------------------------------------------------------- */

/* A duration and its place in MSTXMarkStats; first[entry] is the place of the first of an entry. */
struct item {
    double x;
    uint32_t at;
};
struct summary {
    struct mstx__mark_stats *m;
    size_t *first;
    uint32_t *at; /* places in MSTXMarkStats, entry by entry */
    MS_VEC(struct item) items;
    MS_VEC(double) x;
    struct ms_stmt *add;
};

/* Lists the places of the rows of each entry. */
static bool group_places(struct summary *u)
{
    const struct mstx__mark_stats *m = u->m;
    u->first = ms_calloc(m->entry.keys.n + 2, sizeof *u->first);
    u->at = ms_alloc((m->order.n + 1) * sizeof *u->at);
    if (u->first == NULL || u->at == NULL)
        return false;
    for (size_t i = 0; i < m->row.n; i++)
        u->first[(size_t)m->row.p[i] + 2]++;
    for (size_t i = 2; i < m->entry.keys.n + 2; i++)
        u->first[i] += u->first[i - 1];
    for (uint32_t i = 0; i < m->order.n; i++)
        u->at[u->first[(size_t)m->row.p[m->order.p[i]] + 1]++] = i;
    return true;
}

static int64_t rank_at(const struct mstx__mark_stats *m, uint32_t at)
{
    const size_t row = m->order.p[at];
    size_t low = 0, high = m->ranks.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (m->ranks.p[middle].end <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return m->ranks.p[low].rank;
}

static int by_value(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    return MS_ORDER(a->x, b->x, MS_ORDER(a->at, b->at, 0));
}

/* Returns the place of the first of the greatest values, which are sorted. */
static uint32_t first_of_greatest(const struct summary *u)
{
    size_t i = u->items.n - 1;
    while (i != 0 && u->items.p[i - 1].x == u->items.p[u->items.n - 1].x)
        i--;
    return u->items.p[i].at;
}

static enum ms_rc add_summary(struct summary *u, uint32_t entry, int kind, struct ms_err *err)
{
    const size_t n = u->items.n;
    const uint32_t none = u->at[u->first[entry]]; /* where no value is known */
    for (size_t i = 0; i < n; i++)
        u->x.p[i] = u->items.p[i].x;
    const struct mstx__figures f = mstx__describe(u->x.p, n);
    const bool all_zero = n != 0 && f.min == 0 && f.max == 0;
    ms_stmt_i64(u->add, 1, kind + 1);
    ms_stmt_str(u->add, 2, name_of_entry(u->m, entry));
    mstx__bind_figures(u->add, 3, &f, false);
    ms_stmt_i64(u->add, 12, all_zero ? 0 : rank_at(u->m, n != 0 ? u->items.p[0].at : none));
    ms_stmt_i64(u->add, 13, all_zero ? 0 : rank_at(u->m, n != 0 ? first_of_greatest(u) : none));
    ms_stmt_f64(u->add, 14, f.sum);
    ms_stmt_f64(u->add, 15, n != 0 && f.sum != 0 ? (f.max - f.q3) / f.sum * 100 : 0);
    ms_stmt_i64(u->add, 16, step_of_entry(u->m, entry));
    return ms_stmt_run(u->add, err);
}

static enum ms_rc summarize(struct summary *u, uint32_t entry, int kind, struct ms_err *err)
{
    const size_t first = u->first[entry], end = u->first[(size_t)entry + 1];
    u->items.n = 0;
    if (!ms_vec_reserve(&u->items, end - first) || !ms_vec_reserve(&u->x, end - first))
        return ms_no_memory(err);
    for (size_t i = first; i < end; i++) {
        const double x = value_of(u->m, kind, u->m->order.p[u->at[i]]);
        if (!isnan(x))
            u->items.p[u->items.n++] = (struct item){x, u->at[i]};
    }
    if (u->m->x[kind].n != 0) /* else they are all equal, and in the order of their places */
        ms_vec_sort(&u->items, by_value);
    return add_summary(u, entry, kind, err);
}

static enum ms_rc summarize_all(struct summary *u, struct ms_store *s, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    if (!group_places(u))
        return ms_no_memory(err);
    MS_TRY(ms_store_prepare(s, &u->add, sql_add_summary, err));
    for (int kind = 0; kind < KINDS; kind++) {
        for (uint32_t i = 0; i < u->m->entry.keys.n && rc == MS_OK; i++)
            rc = summarize(u, i, kind, err);
    }
    return rc;
}

enum ms_rc mstx__mark_stats_write(struct mstx__mark_stats *m, struct ms_store *s,
                                  struct ms_err *err)
{
    struct summary u = {.m = m};
    MS_TRY(ms_store_exec(s, sql_make_mark_stats, err));
    MS_TRY(write_rows(m, s, err));
    enum ms_rc rc = summarize_all(&u, s, err);
    ms_stmt_free(u.add);
    ms_free(u.first);
    ms_free(u.at);
    ms_vec_free(&u.items);
    ms_vec_free(&u.x);
    return rc == MS_OK ? ms_store_exec(s, sql_write_summaries, err) : rc;
}
