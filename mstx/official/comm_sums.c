/* SPDX-License-Identifier: MIT
 *
 * comm_sums: sums durations of communication operations by type, by rank and by name, and lists the
 * ranks of each group.
 *
 *     comm_rows ──► by type ──► all ranks, each rank
 *               ──► by name ──► the names with the longest mean
 */
#include "mstx/official/comm_sums.h"

#include "mstx/official/comm_rows.h"
#include "mstx/official/figures.h"
#include "mstx/official/sql/comm_sums.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <math.h>

static const struct mstx_rank_query hccl = {
    .direct = MSTX_READ_COMM, .needs = "COMMUNICATION_OP STRING_IDS", .sql = sql_read_hccl};

struct sums {
    struct ms_store *s;
    struct mstx__comm_rows c;
    struct ms_stmt *add;
    MS_VEC(double) x;
};

/* Describes the durations of some rows, in their order; those that are NULL do not count. */
static enum ms_rc describe_rows(struct sums *m, const uint32_t *row, size_t n,
                                struct mstx__figures *out, struct ms_err *err)
{
    m->x.n = 0;
    if (!ms_vec_reserve(&m->x, n))
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const int64_t dur = mstx__comm_dur(&m->c, row[i]);
        if (dur != MSTX_NO_VALUE)
            m->x.p[m->x.n++] = (double)dur;
    }
    *out = mstx__describe(m->x.p, m->x.n);
    return MS_OK;
}

/* ---- types ------------------------------------------------------------------------------- */

/* The types of operations in order of their text. */
struct types {
    MS_VEC(uint32_t) list;
    uint32_t *place; /* by text: the place in the list, or UINT32_MAX */
    const struct mstx__comm_rows *c;
};

static int by_text(const void *pa, const void *pb, void *ctx)
{
    return ms_str_cmp(mstx__comm_text(ctx, *(const uint32_t *)pa),
                      mstx__comm_text(ctx, *(const uint32_t *)pb));
}

static bool list_types(struct types *t, const struct mstx__comm_rows *c)
{
    const size_t texts = c->text.keys.n;
    t->c = c;
    t->place = ms_alloc((texts + 1) * sizeof *t->place);
    if (t->place == NULL)
        return false;
    memset(t->place, 0xFF, texts * sizeof *t->place);
    for (size_t i = 0; i < c->kind.n; i++) {
        const uint32_t type = c->kind.p[i].type;
        if (type == MSTX_NO_TEXT || t->place[type] == 0)
            continue;
        uint32_t *slot = ms_vec_push(&t->list);
        if (slot == NULL)
            return false;
        *slot = type;
        t->place[type] = 0;
    }
    if (t->list.n != 0)
        qsort_r(t->list.p, t->list.n, sizeof *t->list.p, by_text, (void *)(uintptr_t)c);
    for (uint32_t i = 0; i < t->list.n; i++)
        t->place[t->list.p[i]] = i;
    return true;
}

static uint32_t type_of_row(void *ctx, size_t row)
{
    const struct types *t = ctx;
    const uint32_t type = mstx__comm_kind(t->c, row)->type;
    return type != MSTX_NO_TEXT ? t->place[type] : UINT32_MAX;
}

static enum ms_rc add_type(struct sums *m, uint32_t type, const int64_t *rank, const uint32_t *row,
                           size_t n, struct ms_err *err)
{
    struct mstx__figures f;
    MS_TRY(describe_rows(m, row, n, &f, err));
    ms_stmt_str(m->add, 1, mstx__comm_text(&m->c, type));
    mstx__bind_figures(m->add, 2, &f, false);
    if (rank != NULL)
        ms_stmt_i64(m->add, 2 + MSTX_FIGURES, *rank);
    return ms_stmt_run(m->add, err);
}

static enum ms_rc sum_all_ranks(struct sums *m, const struct types *t,
                                const struct mstx__comm_order *o, struct ms_err *err)
{
    MS_TRY(ms_store_prepare(m->s, &m->add, sql_add_all_ranks, err));
    for (size_t i = 0; i < t->list.n; i++)
        MS_TRY(add_type(m, t->list.p[i], NULL, o->row + o->first[i], o->first[i + 1] - o->first[i],
                        err));
    return MS_OK;
}

/* Adds the types of a rank. at[i] is the place of its first row among those of type i and moves
 * behind its last, since rows of a rank lie together. */
static enum ms_rc sum_rank(struct sums *m, const struct types *t, const struct mstx__comm_order *o,
                           size_t rank, size_t *at, struct ms_err *err)
{
    for (size_t i = 0; i < t->list.n; i++) {
        const size_t first = at[i];
        while (at[i] < o->first[i + 1] && o->row[at[i]] < m->c.end.p[rank])
            at[i]++;
        if (at[i] != first)
            MS_TRY(
                add_type(m, t->list.p[i], &m->c.rank.p[rank], o->row + first, at[i] - first, err));
    }
    return MS_OK;
}

static enum ms_rc sum_each_rank(struct sums *m, const struct types *t,
                                const struct mstx__comm_order *o, struct ms_err *err)
{
    ms_stmt_free(m->add);
    m->add = NULL;
    MS_TRY(ms_store_prepare(m->s, &m->add, sql_add_each_rank, err));
    size_t *at = ms_alloc((t->list.n + 1) * sizeof *at);
    if (at == NULL)
        return ms_no_memory(err);
    memcpy(at, o->first, t->list.n * sizeof *at);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < m->c.rank.n && rc == MS_OK; i++)
        rc = sum_rank(m, t, o, i, at, err);
    ms_free(at);
    return rc;
}

static enum ms_rc sum_types(struct sums *m, struct ms_err *err)
{
    struct types t = {0};
    struct mstx__comm_order o = {0};
    enum ms_rc rc = list_types(&t, &m->c) ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = mstx__comm_order_new(&o, &m->c, (uint32_t)t.list.n, type_of_row, &t, err);
    if (rc == MS_OK)
        rc = sum_all_ranks(m, &t, &o, err);
    if (rc == MS_OK)
        rc = sum_each_rank(m, &t, &o, err);
    mstx__comm_order_free(&o);
    ms_free(t.place);
    ms_vec_free(&t.list);
    return rc;
}

/* ---- groups ------------------------------------------------------------------------------ */

struct member {
    uint32_t group;
    int64_t rank;
};

static int by_rank(const void *pa, const void *pb)
{
    const struct member *a = pa, *b = pb;
    return MS_ORDER(a->group, b->group, MS_ORDER(a->rank, b->rank, 0));
}

static enum ms_rc write_group(struct sums *m, const struct member *p, size_t n, struct ms_err *err)
{
    struct ms_buf ranks = {.max = (size_t)1 << 30};
    for (size_t i = 0; i < n; i++)
        ms_buf_printf(&ranks, i != 0 ? ";%" PRId64 : "%" PRId64, p[i].rank);
    enum ms_rc rc = ms_buf_check(&ranks, err);
    ms_stmt_str(m->add, 1, mstx__comm_text(&m->c, p->group));
    ms_stmt_str(m->add, 2, ms_buf_slice(&ranks));
    if (rc == MS_OK)
        rc = ms_stmt_run(m->add, err);
    ms_buf_free(&ranks);
    return rc;
}

typedef MS_VEC(struct member) members;

/* Lists each rank of each group once. seen[group] is one more than the last rank that was listed. */
static bool list_members(const struct mstx__comm_rows *c, members *list)
{
    size_t at = 0, *seen = ms_calloc(c->text.keys.n + 1, sizeof *seen);
    bool ok = seen != NULL;
    for (size_t rank = 0; rank < c->rank.n && ok; rank++) {
        for (; at < c->end.p[rank] && ok; at++) {
            const uint32_t group = mstx__comm_group(c, c->row.p[at].op);
            if (group == MSTX_NO_TEXT || seen[group] == rank + 1)
                continue;
            struct member *slot = ms_vec_push(list);
            ok = slot != NULL;
            if (ok)
                *slot = (struct member){group, c->rank.p[rank]};
            seen[group] = rank + 1;
        }
    }
    ms_free(seen);
    return ok;
}

static enum ms_rc map_groups(struct sums *m, struct ms_err *err)
{
    members list = {0};
    ms_stmt_free(m->add);
    m->add = NULL;
    MS_TRY(ms_store_prepare(m->s, &m->add, sql_add_group, err));
    enum ms_rc rc = list_members(&m->c, &list) ? MS_OK : ms_no_memory(err);
    ms_vec_sort(&list, by_rank);
    for (size_t i = 0, end; i < list.n && rc == MS_OK; i = end) {
        for (end = i; end < list.n && list.p[end].group == list.p[i].group;)
            end++;
        rc = write_group(m, list.p + i, end - i, err);
    }
    ms_vec_free(&list);
    return rc;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Operations of one name, in whatever group. */
struct named {
    double sum;
    uint32_t op;    /* the first one of this name */
    uint32_t count; /* durations that are not NULL */
    uint32_t place;
};
struct names {
    const struct mstx__comm_rows *c;
    uint32_t *of; /* by operation: its name, or UINT32_MAX */
    MS_VEC(struct named) list;
    MS_VEC(uint32_t) top; /* the longest first */
};

static bool list_names(struct names *n, struct ms_map *key)
{
    const struct mstx__comm_rows *c = n->c;
    n->of = ms_alloc((c->op.keys.n + 1) * sizeof *n->of);
    for (uint32_t i = 0; i < c->op.keys.n && n->of != NULL; i++) {
        const struct ms_str name = mstx__comm_name(c, i);
        bool added = false;
        n->of[i] = name.p != NULL ? ms_map_put(key, name, &added) : UINT32_MAX;
        struct named *slot = added ? ms_vec_push(&n->list) : NULL;
        if ((name.p != NULL && n->of[i] == MS_MAP_NONE) || (added && slot == NULL))
            return false;
        if (added)
            *slot = (struct named){.op = i, .place = UINT32_MAX};
    }
    return n->of != NULL;
}

static void sum_names(struct names *n)
{
    for (size_t i = 0; i < n->c->row.n; i++) {
        const struct mstx__comm_row *row = &n->c->row.p[i];
        const int64_t dur = mstx__comm_dur(n->c, i);
        if (n->of[row->op] == UINT32_MAX || dur == MSTX_NO_VALUE)
            continue;
        n->list.p[n->of[row->op]].sum += (double)dur;
        n->list.p[n->of[row->op]].count++;
    }
}

/* Orders by mean, the longest first; names without a duration come last. */
static int by_mean(const void *pa, const void *pb, void *ctx)
{
    const struct names *n = ctx;
    const struct named *a = &n->list.p[*(const uint32_t *)pa];
    const struct named *b = &n->list.p[*(const uint32_t *)pb];
    const double x = a->count != 0 ? a->sum / (double)a->count : -INFINITY;
    const double y = b->count != 0 ? b->sum / (double)b->count : -INFINITY;
    return x != y ? (x > y ? -1 : 1)
                  : ms_str_cmp(mstx__comm_name(n->c, a->op), mstx__comm_name(n->c, b->op));
}

/* Chooses the names with the longest mean; a negative number chooses all, as LIMIT does. */
static bool choose_names(struct names *n, int64_t most)
{
    if (!ms_vec_reserve(&n->top, n->list.n))
        return false;
    for (uint32_t i = 0; i < n->list.n; i++)
        n->top.p[i] = i;
    if (n->list.n != 0)
        qsort_r(n->top.p, n->list.n, sizeof *n->top.p, by_mean, n);
    n->top.n = most >= 0 && (uint64_t)most < n->list.n ? (size_t)most : n->list.n;
    for (uint32_t i = 0; i < n->top.n; i++)
        n->list.p[n->top.p[i]].place = i;
    return true;
}

static uint32_t place_of_row(void *ctx, size_t row)
{
    const struct names *n = ctx;
    const uint32_t name = n->of[n->c->row.p[row].op];
    return name != UINT32_MAX ? n->list.p[name].place : UINT32_MAX;
}

/* Orders rows by duration, NULL first; rows of equal durations stay in order of rank. */
static int by_duration(const void *pa, const void *pb, void *ctx)
{
    const struct mstx__comm_rows *c = ctx;
    const uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    return MS_ORDER(mstx__comm_dur(c, a), mstx__comm_dur(c, b), MS_ORDER(a, b, 0));
}

static enum ms_rc add_name(struct sums *m, struct ms_str name, uint32_t *row, size_t n,
                           struct ms_err *err)
{
    struct mstx__figures f;
    ms_assert(n != 0);
    qsort_r(row, n, sizeof *row, by_duration, &m->c);
    MS_TRY(describe_rows(m, row, n, &f, err));
    size_t longest = n - 1;
    const int64_t most = mstx__comm_dur(&m->c, row[n - 1]);
    while (longest != 0 && mstx__comm_dur(&m->c, row[longest - 1]) == most)
        longest--;
    ms_stmt_str(m->add, 1, name);
    mstx__bind_figures(m->add, 2, &f, false);
    ms_stmt_i64(m->add, 2 + MSTX_FIGURES, mstx__comm_rank(&m->c, row[0]));
    ms_stmt_i64(m->add, 3 + MSTX_FIGURES, mstx__comm_rank(&m->c, row[longest]));
    return ms_stmt_run(m->add, err);
}

static enum ms_rc add_names(struct sums *m, const struct names *n, const struct mstx__comm_order *o,
                            struct ms_err *err)
{
    for (size_t i = 0; i < n->top.n; i++)
        MS_TRY(add_name(m, mstx__comm_name(n->c, n->list.p[n->top.p[i]].op), o->row + o->first[i],
                        o->first[i + 1] - o->first[i], err));
    return MS_OK;
}

static enum ms_rc list_longest(struct sums *m, int64_t most, struct ms_err *err)
{
    struct names n = {.c = &m->c};
    struct ms_map key = {0};
    struct mstx__comm_order o = {0};
    ms_stmt_free(m->add);
    m->add = NULL;
    MS_TRY(ms_store_prepare(m->s, &m->add, sql_add_top, err));
    enum ms_rc rc = list_names(&n, &key) ? MS_OK : ms_no_memory(err);
    ms_map_free(&key);
    if (rc == MS_OK) {
        sum_names(&n);
        rc = choose_names(&n, most) ? MS_OK : ms_no_memory(err);
    }
    if (rc == MS_OK)
        rc = mstx__comm_order_new(&o, &m->c, (uint32_t)n.top.n, place_of_row, &n, err);
    if (rc == MS_OK)
        rc = add_names(m, &n, &o, err);
    mstx__comm_order_free(&o);
    ms_free(n.of);
    ms_vec_free(&n.list);
    ms_vec_free(&n.top);
    return rc;
}

/* ---- the recipe ---------------------------------------------------------------------------- */

enum ms_rc mstx__sum_hccl(struct mstx_recipe *r, struct ms_err *err)
{
    struct sums m = {.s = r->s};
    enum ms_rc rc = mstx__comm_rows_read(r, &hccl, MSTX_COMM_KINDS, &m.c, err);
    if (rc == MS_OK)
        rc = ms_store_exec(r->s, sql_make_hccl, err);
    if (rc == MS_OK)
        rc = sum_types(&m, err);
    mstx__comm_forget_kinds(&m.c); /* kinds are not asked for again, and names take memory */
    ms_vec_free(&m.x);
    if (rc == MS_OK)
        rc = map_groups(&m, err);
    if (rc == MS_OK)
        rc = list_longest(&m, r->top, err);
    ms_stmt_free(m.add);
    ms_vec_free(&m.x);
    mstx__comm_rows_free(&m.c);
    return rc == MS_OK ? ms_store_exec(r->s, sql_write_groups, err) : rc;
}
