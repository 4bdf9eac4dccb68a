/* SPDX-License-Identifier: MIT
 *
 * slow_links: finds transfers far slower than others of their kind.
 *
 * The shortest duration of an operation is how long its transfer took. Operations of one kind (type,
 * bytes and number of ranks) ought to take equally long; a kind with a transfer that is more than
 * three deviations off is odd, and its rows are listed.
 */
#include "mstx/official/slow_links.h"

#include "mstx/official/comm_rows.h"
#include "mstx/official/figures.h"
#include "mstx/official/sql/slow_links.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const struct mstx_rank_query links = {.direct = MSTX_READ_COMM,
                                             .needs =
                                                 "COMMUNICATION_OP STRING_IDS ENUM_HCCL_DATA_TYPE",
                                             .sql = sql_read_links};

/* An operation on all its ranks; a send, a receive and one without a name or a group have no transfer
 * and no ranks. */
struct transfer {
    int64_t ns; /* the shortest duration */
    uint32_t ranks;
    uint32_t like; /* of the last row that was rated, in `likes`; UINT32_MAX: none yet */
};
/* What operations that ought to take equally long have in common. */
struct like_key {
    int64_t bytes;
    uint32_t type, ranks;
};
struct like {
    struct like_key key;
    size_t rows;
    double sum, squares, least, most;
    uint32_t place; /* among the odd ones in order, or UINT32_MAX */
};
struct rating {
    struct ms_store *s;
    struct mstx__comm_rows c;
    struct transfer *transfer; /* by operation */
    struct ms_map key;
    struct ms_arena *arena;
    MS_VEC(struct like) likes;
    MS_VEC(uint32_t) odd; /* in order of type, bytes and ranks */
    MS_VEC(double) x;
    struct ms_stmt *add_op, *add_sum;
};

/* ---- transfers --------------------------------------------------------------------------- */

static bool find_transfers(struct rating *m)
{
    const struct mstx__comm_rows *c = &m->c;
    m->transfer = ms_calloc(c->op.keys.n + 1, sizeof *m->transfer);
    for (uint32_t i = 0; i < c->op.keys.n && m->transfer != NULL; i++)
        m->transfer[i] = (struct transfer){.ns = MSTX_NO_VALUE, .like = UINT32_MAX};
    for (size_t i = 0; i < c->row.n && m->transfer != NULL; i++) {
        struct transfer *t = &m->transfer[c->row.p[i].op];
        const int64_t dur = mstx__comm_dur(c, i);
        t->ranks++;
        if (dur != MSTX_NO_VALUE && (t->ns == MSTX_NO_VALUE || dur < t->ns))
            t->ns = dur;
    }
    for (uint32_t i = 0; i < c->op.keys.n && m->transfer != NULL; i++) {
        const struct ms_str name = mstx__comm_name(c, i);
        struct transfer *t = &m->transfer[i];
        if (name.p == NULL || mstx__comm_group(c, i) == MSTX_NO_TEXT ||
            ms_str_find_str(name, MS_STR("send")) >= 0 ||
            ms_str_find_str(name, MS_STR("receive")) >= 0)
            t->ranks = 0;
        if (t->ranks == 0 || t->ns == MSTX_NO_VALUE)
            t->ns = 0;
    }
    return m->transfer != NULL;
}

/* ---- kinds --------------------------------------------------------------------------------- */

static bool put_like(struct rating *m, struct like_key key, uint32_t *place)
{
    bool added;
    *place =
        ms_map_put_copy(&m->key, (struct ms_str){(const char *)&key, sizeof key}, m->arena, &added);
    if (*place == MS_MAP_NONE)
        return false;
    struct like *slot = added ? ms_vec_push(&m->likes) : NULL;
    if (slot != NULL)
        *slot =
            (struct like){.key = key, .least = INFINITY, .most = -INFINITY, .place = UINT32_MAX};
    return !added || slot != NULL;
}

/* Finds the entry of a row; UINT32_MAX: its type or its bytes are not known. Most operations have one entry, which
 * is remembered. */
static bool find_like(struct rating *m, size_t row, uint32_t *place)
{
    struct transfer *t = &m->transfer[m->c.row.p[row].op];
    const struct mstx__comm_kind *k = mstx__comm_kind(&m->c, row);
    *place = UINT32_MAX;
    if (k->bytes == MSTX_NO_VALUE || k->type == MSTX_NO_TEXT)
        return true;
    const struct like_key *last = t->like != UINT32_MAX ? &m->likes.p[t->like].key : NULL;
    if ((last == NULL || last->bytes != k->bytes || last->type != k->type) &&
        !put_like(m, (struct like_key){k->bytes, k->type, t->ranks}, &t->like))
        return false;
    *place = t->like;
    return true;
}

/* Sums up the transfer times of each kind, then the squares of their distances from its mean. */
static bool sum_likes(struct rating *m)
{
    const struct mstx__comm_rows *c = &m->c;
    uint32_t place;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < c->row.n; i++) {
            const double x = (double)m->transfer[c->row.p[i].op].ns;
            if (!find_like(m, i, &place))
                return false;
            if (place == UINT32_MAX)
                continue;
            struct like *l = &m->likes.p[place];
            const double off = pass == 1 ? x - l->sum / (double)l->rows : 0;
            l->squares += off * off;
            l->sum += pass == 0 ? x : 0;
            l->rows += pass == 0;
            l->least = x < l->least ? x : l->least;
            l->most = x > l->most ? x : l->most;
        }
    }
    return true;
}

static bool is_odd(const struct like *l)
{
    const double mean = l->sum / (double)l->rows, deviation = sqrt(l->squares / (double)l->rows);
    return deviation > 0 && (l->most > mean + 3 * deviation || l->least < mean - 3 * deviation);
}

static int by_key(const void *pa, const void *pb, void *ctx)
{
    const struct rating *m = ctx;
    const struct like_key *a = &m->likes.p[*(const uint32_t *)pa].key;
    const struct like_key *b = &m->likes.p[*(const uint32_t *)pb].key;
    const int type = ms_str_cmp(mstx__comm_text(&m->c, a->type), mstx__comm_text(&m->c, b->type));
    return type != 0 ? type : MS_ORDER(a->bytes, b->bytes, MS_ORDER(a->ranks, b->ranks, 0));
}

static bool list_odd(struct rating *m)
{
    for (uint32_t i = 0; i < m->likes.n; i++) {
        uint32_t *slot = is_odd(&m->likes.p[i]) ? ms_vec_push(&m->odd) : NULL;
        if (slot != NULL)
            *slot = i;
        else if (is_odd(&m->likes.p[i]))
            return false;
    }
    if (m->odd.n != 0)
        qsort_r(m->odd.p, m->odd.n, sizeof *m->odd.p, by_key, m);
    for (uint32_t i = 0; i < m->odd.n; i++)
        m->likes.p[m->odd.p[i]].place = i;
    return true;
}

/* ---- tables -------------------------------------------------------------------------------- */

static uint32_t place_of_row(void *ctx, size_t row)
{
    struct rating *m = ctx;
    uint32_t place = UINT32_MAX;
    /* All keys are there by now, so that no memory is needed. */
    if (!find_like(m, row, &place) || place == UINT32_MAX)
        return UINT32_MAX;
    return m->likes.p[place].place;
}

static enum ms_rc add_op(struct rating *m, size_t at, struct ms_err *err)
{
    const struct mstx__comm_row *row = &m->c.row.p[at];
    const struct mstx__comm_kind *kind = mstx__comm_kind(&m->c, at);
    const struct transfer *t = &m->transfer[row->op];
    const int64_t dur = mstx__comm_dur(&m->c, at);
    ms_stmt_i64(m->add_op, 1, mstx__comm_rank(&m->c, at));
    ms_stmt_str(m->add_op, 2, mstx__comm_text(&m->c, mstx__comm_group(&m->c, row->op)));
    if (dur != MSTX_NO_VALUE)
        ms_stmt_i64(m->add_op, 3, dur);
    else
        ms_stmt_null(m->add_op, 3);
    ms_stmt_str(m->add_op, 4, mstx__comm_name(&m->c, row->op));
    ms_stmt_str(m->add_op, 5, mstx__comm_text(&m->c, kind->type));
    ms_stmt_str(m->add_op, 6, mstx__comm_text(&m->c, kind->dtype));
    ms_stmt_i64(m->add_op, 7, kind->bytes);
    ms_stmt_i64(m->add_op, 8, t->ns);
    ms_stmt_i64(m->add_op, 9, t->ranks);
    return ms_stmt_run(m->add_op, err);
}

/* Adds the figures of an odd kind and the first ranks with the longest and the shortest transfer. */
static enum ms_rc add_sum(struct rating *m, const struct like *l, const uint32_t *row, size_t n,
                          struct ms_err *err)
{
    char name[256];
    size_t low = 0, high = 0;
    m->x.n = 0;
    if (!ms_vec_reserve(&m->x, n))
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        m->x.p[i] = (double)m->transfer[m->c.row.p[row[i]].op].ns;
        low = m->x.p[i] < m->x.p[low] ? i : low;
        high = m->x.p[i] > m->x.p[high] ? i : high;
    }
    const struct mstx__figures f = mstx__describe(m->x.p, n);
    const int length =
        snprintf(name, sizeof name, "%.*s%" PRIu32 "_%" PRId64,
                 MS_STR_ARG(mstx__comm_text(&m->c, l->key.type)), l->key.ranks, l->key.bytes);
    ms_stmt_str(m->add_sum, 1, (struct ms_str){name, (uint32_t)length});
    mstx__bind_figures(m->add_sum, 2, &f, true);
    ms_stmt_i64(m->add_sum, 2 + MSTX_FIGURES, mstx__comm_rank(&m->c, row[high]));
    ms_stmt_i64(m->add_sum, 3 + MSTX_FIGURES, mstx__comm_rank(&m->c, row[low]));
    return ms_stmt_run(m->add_sum, err);
}

static enum ms_rc write_odd(struct rating *m, const struct mstx__comm_order *o, struct ms_err *err)
{
    MS_TRY(ms_store_prepare(m->s, &m->add_op, sql_add_op, err));
    MS_TRY(ms_store_prepare(m->s, &m->add_sum, sql_add_sum, err));
    for (size_t i = 0; i < m->odd.n; i++) {
        for (size_t k = o->first[i]; k < o->first[i + 1]; k++)
            MS_TRY(add_op(m, o->row[k], err));
        MS_TRY(add_sum(m, &m->likes.p[m->odd.p[i]], o->row + o->first[i],
                       o->first[i + 1] - o->first[i], err));
    }
    return MS_OK;
}

static enum ms_rc rate_links(struct rating *m, struct ms_err *err)
{
    struct mstx__comm_order order = {0};
    m->arena = ms_arena_new((size_t)1 << 32);
    if (m->arena == NULL || !find_transfers(m) || !sum_likes(m) || !list_odd(m))
        return ms_no_memory(err);
    enum ms_rc rc = mstx__comm_order_new(&order, &m->c, (uint32_t)m->odd.n, place_of_row, m, err);
    if (rc == MS_OK)
        rc = write_odd(m, &order, err);
    mstx__comm_order_free(&order);
    return rc;
}

enum ms_rc mstx__find_slow_links(struct mstx_recipe *r, struct ms_err *err)
{
    struct rating m = {.s = r->s};
    enum ms_rc rc = mstx__comm_rows_read(r, &links, MSTX_COMM_KINDS, &m.c, err);
    if (rc == MS_OK)
        rc = ms_store_exec(r->s, sql_make_links, err);
    if (rc == MS_OK)
        rc = rate_links(&m, err);
    ms_stmt_free(m.add_op);
    ms_stmt_free(m.add_sum);
    ms_free(m.transfer);
    ms_map_free(&m.key);
    ms_arena_free(m.arena);
    ms_vec_free(&m.likes);
    ms_vec_free(&m.odd);
    ms_vec_free(&m.x);
    mstx__comm_rows_free(&m.c);
    return rc == MS_OK ? ms_store_exec_i64(r->s, sql_list_slow_links, &r->top, 1, err) : rc;
}
