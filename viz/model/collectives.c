/* SPDX-License-Identifier: MIT
 *
 * collectives: queries over comm_ops and over the joins of ranks made by import. A collective is
 * identified by its communicator and its number in it, which are the same on every rank.
 */
#include "viz/model/collectives.h"

#include "mstx/conclude/rank_sums.h"

#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { SIZES_MAX = 500 };

static const char RANKS_SQL[] =
    "SELECT p.rank, max(p.end_ns) - min(p.start_ns) FROM processes p"
    " WHERE p.rank >= 0 AND p.rank IN (SELECT rank FROM comm_ops) GROUP BY p.rank ORDER BY p.rank";
static const char CALLS_SQL[] =
    "SELECT rank, start_ns, end_ns FROM comm_ops WHERE rank >= 0 AND class <> 3"
    " ORDER BY rank, start_ns";
/* Waiting time is the duration of a call beyond the transfer time; join computed the last rank
 * and the transfer time. Each call looks up its join in a materialized table. */
static const char WAITS_SQL[] =
    "WITH j AS MATERIALIZED (SELECT comm_group, seq, last_rank, transfer_ns FROM joins"
    " WHERE last_rank >= 0)"
    "SELECT c.rank, j.last_rank, sum(max(0, c.end_ns - c.start_ns - j.transfer_ns)), count(*)"
    " FROM comm_ops c CROSS JOIN j ON c.comm_group = j.comm_group AND c.seq = j.seq"
    " WHERE c.class = 0 AND c.rank >= 0"
    " GROUP BY c.rank, j.last_rank ORDER BY c.rank, j.last_rank";
/* A send without a recorded byte count of its own has sent all its bytes. */
#define SENT "ifnull(c.sent, CASE WHEN c.op LIKE '%send%' THEN c.bytes END)"
static const char TRANSFERS_SQL[] =
    "SELECT c.rank, ifnull(json_extract('[' || nullif(g.ranks, '') || ']', '$[' || c.peer || ']'),"
    " c.peer), sum(" SENT "), sum(c.end_ns - c.start_ns), count(*) FROM comm_ops c"
    " LEFT JOIN comm_groups g ON g.id = c.comm_group WHERE c.class = 1 AND c.peer >= 0 AND"
    " " SENT " > 0 GROUP BY 1, 2 ORDER BY 1, 2";
static const char SIZES_SQL[] =
    "SELECT op, bytes, count(*), sum(end_ns - start_ns) FROM comm_ops WHERE bytes > 0"
    " GROUP BY op, bytes ORDER BY count(*) DESC LIMIT ?1";
static const char COLLECTIVE_SQL[] =
    "SELECT o.rank, o.process - 1, o.tid, o.start_ns, o.end_ns, o.op, o.bytes FROM comm_ops c"
    " JOIN comm_ops o ON o.comm_group = c.comm_group AND o.seq = c.seq AND o.class = 0"
    " WHERE c.process = ?1 AND c.start_ns = ?2 AND c.class = 0 ORDER BY o.start_ns";

/* Two ranks tell how far apart those of a communicator are. */
static const char DIMENSIONS_SQL[] =
    "SELECT name, size, substr(ranks, 1, 40) FROM comm_groups WHERE size > 1 ORDER BY id";
static const char WORST_SQL[] =
    "SELECT o.rank, o.process - 1, o.tid, o.start_ns, o.end_ns, o.op, o.bytes"
    " FROM (SELECT comm_group g, seq s FROM joins WHERE last_rank = ?1 AND start_ns BETWEEN ?2 AND"
    " ?3 ORDER BY waited_ns DESC LIMIT 1) JOIN comm_ops o ON o.comm_group = g AND o.seq = s AND"
    " o.class = 0 ORDER BY o.start_ns";

typedef enum ms_rc (*row_fn)(void *ctx, struct ms_stmt *st, struct ms_err *err);

static enum ms_rc each_row(struct ms_stmt *st, row_fn fn, void *ctx, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = fn(ctx, st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc query_rows(struct mstx_tl *tl, const char *sql, row_fn fn, void *ctx,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql, err));
    return each_row(st, fn, ctx, err);
}

static void take_op(char out[40], struct ms_str op)
{
    snprintf(out, 40, "%.*s", MS_STR_ARG(op));
}

/* ---- sums of the import -------------------------------------------------------------- */

static const char RANK_COMM_SQL[] = "SELECT rank, span_ns, comm_ns, wait_ns, collectives, last,"
                                    " blame_ns FROM rank_comm ORDER BY rank";
static const char RANK_COUNT_SQL[] = "SELECT count(DISTINCT rank) FROM processes WHERE rank >= 0";
static const char PAIRS_SQL[] = "SELECT kind, rank, other, bytes, ns, calls FROM rank_pairs"
                                " ORDER BY kind, rank, other";
static const char STORED_SIZES_SQL[] =
    "SELECT op, bytes, calls, ns FROM call_sizes ORDER BY calls DESC";

static enum ms_rc take_rank(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_cluster *c = ctx;
    struct viz_rank_share *r = ms_vec_push(&c->ranks);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct viz_rank_share){.rank = ms_stmt_get_i64(st, 0),
                                 .span_ns = ms_stmt_get_i64(st, 1),
                                 .comm_ns = ms_stmt_get_i64(st, 2),
                                 .wait_ns = ms_stmt_get_i64(st, 3),
                                 .collectives = ms_stmt_get_i64(st, 4),
                                 .last = ms_stmt_get_i64(st, 5),
                                 .made_others_wait_ns = ms_stmt_get_i64(st, 6)};
    return MS_OK;
}

static enum ms_rc take_bin(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_cluster *c = ctx;
    (void)err;
    c->bin = ((size_t)ms_stmt_get_i64(st, 0) + MSTX_RANK_BINS - 1) / MSTX_RANK_BINS;
    return MS_OK;
}

static enum ms_rc take_pair(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_cluster *c = ctx;
    const int64_t a = ms_stmt_get_i64(st, 1), b = ms_stmt_get_i64(st, 2);
    const int64_t ns = ms_stmt_get_i64(st, 4), calls = ms_stmt_get_i64(st, 5);
    const bool waits = ms_stmt_get_i64(st, 0) == MSTX_PAIR_WAITS;
    struct viz_wait *w = waits ? ms_vec_push(&c->waits) : NULL;
    struct viz_transfer *t = waits ? NULL : ms_vec_push(&c->transfers);
    if (w != NULL)
        *w = (struct viz_wait){a, b, ns, calls};
    else if (t != NULL)
        *t = (struct viz_transfer){a, b, ms_stmt_get_i64(st, 3), ns, calls};
    else
        return ms_no_memory(err);
    return MS_OK;
}

/* ---- ranks -------------------------------------------------------------------------- */

static enum ms_rc add_rank(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_cluster *c = ctx;
    struct viz_rank_share *r = ms_vec_push(&c->ranks);
    if (r == NULL)
        return ms_no_memory(err);
    *r = (struct viz_rank_share){.rank = ms_stmt_get_i64(st, 0), .span_ns = ms_stmt_get_i64(st, 1)};
    return MS_OK;
}

static struct viz_rank_share *rank_of(struct viz_cluster *c, int64_t rank)
{
    for (size_t i = 0; i < c->ranks.n; i++) {
        if (c->ranks.p[i].rank == rank)
            return &c->ranks.p[i];
    }
    return NULL;
}

struct covering {
    struct viz_cluster *c;
    struct viz_rank_share *now;
    int64_t until; /* time of that rank counted up to here */
};

static enum ms_rc cover_row(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct covering *v = ctx;
    int64_t rank = ms_stmt_get_i64(st, 0), a = ms_stmt_get_i64(st, 1), b = ms_stmt_get_i64(st, 2);
    (void)err;
    if (v->now == NULL || v->now->rank != rank) {
        v->now = rank_of(v->c, rank);
        v->until = INT64_MIN;
    }
    a = a > v->until ? a : v->until;
    if (v->now != NULL && b > a) {
        v->now->comm_ns += b - a;
        v->until = b;
    }
    return MS_OK;
}

/* ---- pairs --------------------------------------------------------------------------- */

static enum ms_rc add_wait(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_cluster *c = ctx;
    struct viz_wait *w = ms_vec_push(&c->waits);
    if (w == NULL)
        return ms_no_memory(err);
    *w = (struct viz_wait){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1), ms_stmt_get_i64(st, 2),
                           ms_stmt_get_i64(st, 3)};
    struct viz_rank_share *r = rank_of(c, w->rank), *late = rank_of(c, w->late);
    if (r != NULL) {
        r->wait_ns += w->ns;
        r->collectives += w->calls;
        r->last += r == late ? w->calls : 0;
    }
    if (late != NULL && late != r)
        late->made_others_wait_ns += w->ns;
    return MS_OK;
}

static enum ms_rc add_transfer(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_cluster *c = ctx;
    struct viz_transfer *t = ms_vec_push(&c->transfers);
    if (t == NULL)
        return ms_no_memory(err);
    *t = (struct viz_transfer){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1),
                               ms_stmt_get_i64(st, 2), ms_stmt_get_i64(st, 3),
                               ms_stmt_get_i64(st, 4)};
    return MS_OK;
}

static enum ms_rc add_size(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_cluster *c = ctx;
    struct viz_size *s = ms_vec_push(&c->sizes);
    if (s == NULL)
        return ms_no_memory(err);
    *s = (struct viz_size){.bytes = ms_stmt_get_i64(st, 1),
                           .calls = ms_stmt_get_i64(st, 2),
                           .ns = ms_stmt_get_i64(st, 3)};
    take_op(s->op, ms_stmt_get_str(st, 0));
    return MS_OK;
}

static enum ms_rc read_sizes(struct viz_cluster *c, struct mstx_tl *tl, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, SIZES_SQL, err));
    ms_stmt_i64(st, 1, SIZES_MAX);
    return each_row(st, add_size, c, err);
}

/* Tells whether the import has stored sums; databases of older versions and of others have none. */
static bool has_sums(struct mstx_tl *tl)
{
    struct ms_stmt *st;
    bool more = false;
    if (ms_store_prepare(mstx_tl_store(tl), &st, "SELECT 1 FROM rank_comm LIMIT 1", NULL) != MS_OK)
        return false;
    const bool ok = ms_stmt_step(st, &more, NULL) == MS_OK;
    ms_stmt_free(st);
    return ok && more;
}

static enum ms_rc read_sums(struct viz_cluster *c, struct mstx_tl *tl, struct ms_err *err)
{
    MS_TRY(query_rows(tl, RANK_COMM_SQL, take_rank, c, err));
    MS_TRY(query_rows(tl, PAIRS_SQL, take_pair, c, err));
    MS_TRY(query_rows(tl, RANK_COUNT_SQL, take_bin, c, err));
    return query_rows(tl, STORED_SIZES_SQL, add_size, c, err);
}

/* Sums the calls themselves. */
static enum ms_rc sum_calls(struct viz_cluster *c, struct mstx_tl *tl, struct ms_err *err)
{
    struct covering v = {.c = c};
    enum ms_rc rc = query_rows(tl, RANKS_SQL, add_rank, c, err);
    if (rc == MS_OK)
        rc = query_rows(tl, CALLS_SQL, cover_row, &v, err);
    if (rc == MS_OK)
        rc = query_rows(tl, WAITS_SQL, add_wait, c, err);
    if (rc == MS_OK)
        rc = query_rows(tl, TRANSFERS_SQL, add_transfer, c, err);
    return rc == MS_OK ? read_sizes(c, tl, err) : rc;
}

enum ms_rc viz_cluster_read(struct viz_cluster *c, struct mstx_tl *tl, struct ms_err *err)
{
    *c = (struct viz_cluster){.bin = 1};
    enum ms_rc rc = has_sums(tl) ? read_sums(c, tl, err) : sum_calls(c, tl, err);
    if (rc != MS_OK)
        viz_cluster_free(c);
    return rc;
}

void viz_cluster_free(struct viz_cluster *c)
{
    ms_vec_free(&c->ranks);
    ms_vec_free(&c->waits);
    ms_vec_free(&c->transfers);
    ms_vec_free(&c->sizes);
}

/* ---- dimensions ----------------------------------------------------------------------- */

struct dimensions {
    struct viz_dimension *list;
    size_t n;
};

/* The name of a communicator up to its number: "tensor" of "tensor_12". */
static struct ms_str without_number(struct ms_str s)
{
    uint32_t n = s.n;
    while (n != 0 && ((s.p[n - 1] >= '0' && s.p[n - 1] <= '9') || strchr("_-.:#", s.p[n - 1])))
        n--;
    return ms_str_sub(s, 0, n != 0 ? n : s.n);
}

static enum ms_rc add_group(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct dimensions *d = ctx;
    struct ms_str ranks = ms_stmt_get_str(st, 2), one;
    int64_t rank[2] = {0, 0};
    const int64_t size = ms_stmt_get_i64(st, 1);
    size_t i = 0;
    (void)err;
    for (int k = 0; k < 2; k++) {
        if (!ms_str_split(&ranks, ',', &one) || !ms_str_i64(one, &rank[k]))
            return MS_OK;
    }
    const int64_t stride = rank[1] - rank[0];
    while (i < d->n && (d->list[i].size != size || d->list[i].stride != stride))
        i++;
    if (i == d->n && (stride <= 0 || i == VIZ_DIMENSIONS_MAX))
        return MS_OK;
    struct viz_dimension *to = &d->list[i];
    if (i == d->n) {
        *to = (struct viz_dimension){.size = size, .stride = stride};
        snprintf(to->name, sizeof to->name, "%.*s",
                 MS_STR_ARG(without_number(ms_stmt_get_str(st, 0))));
        d->n++;
    }
    to->groups++;
    return MS_OK;
}

enum ms_rc viz_dimensions_read(struct viz_dimension list[VIZ_DIMENSIONS_MAX], size_t *n,
                               struct mstx_tl *tl, struct ms_err *err)
{
    struct dimensions d = {list, 0};
    MS_TRY(query_rows(tl, DIMENSIONS_SQL, add_group, &d, err));
    *n = 0;
    for (size_t i = 0; i < d.n; i++) {
        if (list[i].groups > 1)
            list[(*n)++] = list[i];
    }
    return MS_OK;
}

/* ---- one collective ------------------------------------------------------------------- */

static enum ms_rc add_arrival(void *ctx, struct ms_stmt *st, struct ms_err *err)
{
    struct viz_collective *c = ctx;
    struct viz_arrival *a = ms_vec_push(&c->list);
    if (a == NULL)
        return ms_no_memory(err);
    *a =
        (struct viz_arrival){ms_stmt_get_i64(st, 0), ms_stmt_get_i64(st, 1), ms_stmt_get_i64(st, 2),
                             ms_stmt_get_i64(st, 3), ms_stmt_get_i64(st, 4)};
    take_op(c->op, ms_stmt_get_str(st, 5));
    c->bytes = ms_stmt_get_i64(st, 6);
    return MS_OK;
}

/* Reads the arrivals that a statement gives, in their order. */
static enum ms_rc read_arrivals(struct viz_collective *c, struct ms_stmt *st, struct ms_err *err)
{
    enum ms_rc rc = each_row(st, add_arrival, c, err);
    if (rc == MS_OK && c->list.n == 0)
        rc = ms_fail(err, MS_E_NOTFOUND, "no collective begins there");
    if (rc != MS_OK)
        viz_collective_free(c);
    return rc;
}

enum ms_rc viz_collective_read(struct viz_collective *c, struct mstx_tl *tl, size_t process,
                               int64_t start_ns, struct ms_err *err)
{
    struct ms_stmt *st;
    *c = (struct viz_collective){.bytes = 0};
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, COLLECTIVE_SQL, err));
    ms_stmt_i64(st, 1, (int64_t)process + 1);
    ms_stmt_i64(st, 2, start_ns);
    return read_arrivals(c, st, err);
}

enum ms_rc viz_collective_worst(struct viz_collective *c, struct mstx_tl *tl, int64_t rank,
                                int64_t from_ns, int64_t to_ns, struct ms_err *err)
{
    struct ms_stmt *st;
    *c = (struct viz_collective){.bytes = 0};
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, WORST_SQL, err));
    ms_stmt_i64(st, 1, rank);
    ms_stmt_i64(st, 2, from_ns);
    ms_stmt_i64(st, 3, to_ns);
    return read_arrivals(c, st, err);
}

void viz_collective_free(struct viz_collective *c)
{
    ms_vec_free(&c->list);
}

/* ---- one call ------------------------------------------------------------------------- */

static const char CALL_SQL[] = "SELECT name FROM comm_ops WHERE process = ?1 AND start_ns = ?2";

/* Looks in a track for the slice that begins at start_ns and has the name. */
static enum ms_rc look_in_track(struct viz_call *call, struct mstx_tl *tl, size_t track,
                                int64_t start_ns, struct ms_str name, bool *found,
                                struct ms_err *err)
{
    mstx_events events = {0};
    const enum ms_rc rc = mstx_tl_view(tl, track, start_ns, start_ns, 0, &events, err);
    for (size_t i = 0; rc == MS_OK && i < events.n && !*found; i++) {
        *found =
            events.p[i].start_ns == start_ns && ms_str_eq(mstx_tl_text(tl, events.p[i].name), name);
        *call = (struct viz_call){track, events.p[i]};
    }
    ms_vec_free(&events);
    return rc;
}

static enum ms_rc look_in_tracks(struct viz_call *call, struct mstx_tl *tl, size_t process,
                                 int64_t start_ns, struct ms_str name, bool *found,
                                 struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(tl) && !*found; i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->process == process && t->start_ns <= start_ns && start_ns <= t->end_ns)
            MS_TRY(look_in_track(call, tl, i, start_ns, name, found, err));
    }
    return MS_OK;
}

enum ms_rc viz_call_find(struct viz_call *call, struct mstx_tl *tl, size_t process,
                         int64_t start_ns, struct ms_err *err)
{
    struct ms_stmt *st;
    bool found = false;
    enum ms_rc rc = MS_OK;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, CALL_SQL, err));
    ms_stmt_i64(st, 1, (int64_t)process + 1);
    ms_stmt_i64(st, 2, start_ns);
    while (!found && ms_stmt_next(st, &rc, err))
        rc = look_in_tracks(call, tl, process, start_ns, ms_stmt_get_str(st, 0), &found, err);
    ms_stmt_free(st);
    return rc != MS_OK || found ? rc : ms_fail(err, MS_E_NOTFOUND, "no call begins there");
}
