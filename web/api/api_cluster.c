/* SPDX-License-Identifier: MIT
 *
 * api_cluster: communication between ranks.
 */
#include "viz/model/collectives.h"
#include "web/api/api.h"

#include "mstx/conclude/alike_ranks.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* More ranks are folded, so that the answer has a bounded size. */
enum { RANKS_MAX = 64, WHICH_WIDTH = 48 };

static void put_numbers(struct ms_jwrite *w, size_t n, const int64_t *v)
{
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        ms_jwrite_i64(w, v[i]);
    ms_jwrite_arr_end(w);
}

static void put_rank(struct ms_jwrite *w, const struct viz_rank_share *r)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "rank", r->rank);
    ms_jwrite_ki64(w, "span", r->span_ns);
    ms_jwrite_ki64(w, "comm", r->comm_ns);
    ms_jwrite_ki64(w, "wait", r->wait_ns);
    ms_jwrite_ki64(w, "collectives", r->collectives);
    ms_jwrite_ki64(w, "last", r->last);
    ms_jwrite_ki64(w, "blamed", r->made_others_wait_ns);
    ms_jwrite_obj_end(w);
}

static void put_size(struct ms_jwrite *w, const struct viz_size *s)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "op", s->op);
    ms_jwrite_ki64(w, "bytes", s->bytes);
    ms_jwrite_ki64(w, "calls", s->calls);
    ms_jwrite_ki64(w, "ns", s->ns);
    ms_jwrite_obj_end(w);
}

/* ---- use of time ---------------------------------------------------------------------- */

/* Writes the means over the steps of a rank, or of ranks that are alike, ns. */
static void put_parts(struct ms_jwrite *w, const struct mstx_use_rank *r, size_t ranks,
                      struct ms_str which)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "rank", r->rank);
    if (ranks > 1) {
        ms_jwrite_ki64(w, "count", (int64_t)ranks);
        ms_jwrite_ktext(w, "which", which);
    }
    ms_jwrite_ki64(w, "steps", r->steps);
    for (int k = 0; k < MSTX_USE_PARTS; k++)
        ms_jwrite_kf64(w, mstx_use_names[k], r->ns[k]);
    ms_jwrite_obj_end(w);
}

/* Writes ranks that are alike as one; the odd ones come first. */
static enum ms_rc put_alike(struct ms_jwrite *w, const struct mstx_use *u, uint32_t *group,
                            mstx_alike_list *list, struct ms_err *err)
{
    MS_TRY(mstx_alike_find(u, list, group, err));
    for (uint32_t g = 0; g < list->n; g++) {
        struct ms_buf which = {.max = 2 * WHICH_WIDTH};
        mstx_alike_text(u, group, g, WHICH_WIDTH, &which);
        put_parts(w, &list->p[g].mean, list->p[g].ranks, ms_buf_slice(&which));
        ms_buf_free(&which);
    }
    return MS_OK;
}

static enum ms_rc put_use(struct ms_jwrite *w, const struct mstx_use *u, struct ms_err *err)
{
    mstx_alike_list list = {.p = NULL};
    uint32_t *group = ms_calloc(u->rank.n + 1, sizeof *group);
    enum ms_rc rc = group != NULL ? MS_OK : ms_no_memory(err);
    ms_jwrite_key(w, MS_STR("use"));
    ms_jwrite_arr(w);
    if (u->rank.n > RANKS_MAX && rc == MS_OK)
        rc = put_alike(w, u, group, &list, err);
    for (size_t i = 0; i < u->rank.n && u->rank.n <= RANKS_MAX; i++)
        put_parts(w, &u->rank.p[i], 1, MS_STR(""));
    ms_jwrite_arr_end(w);
    ms_vec_free(&list);
    ms_free(group);
    return rc;
}

/* ---- all ranks ------------------------------------------------------------------------ */

/* Puts ranks first that enter most of their collectives last: in a collective of all ranks anybody
 * may be last, and makes thousands wait. */
static int most_blamed_first(const void *pa, const void *pb)
{
    const struct viz_rank_share *a = pa, *b = pb;
    const bool last_a = 2 * a->last > a->collectives, last_b = 2 * b->last > b->collectives;
    if (last_a != last_b)
        return last_a ? -1 : 1;
    return MS_ORDER(b->made_others_wait_ns, a->made_others_wait_ns, MS_ORDER(a->rank, b->rank, 0));
}

/* Writes the ranks; of many those for which others waited longest. */
static void put_ranks(struct ms_jwrite *w, struct viz_cluster *c)
{
    const size_t listed = c->ranks.n <= RANKS_MAX ? c->ranks.n : RANKS_MAX;
    if (listed < c->ranks.n)
        ms_vec_sort(&c->ranks, most_blamed_first);
    ms_jwrite_ki64(w, "count", (int64_t)c->ranks.n);
    ms_jwrite_ki64(w, "bin", (int64_t)c->bin); /* neighbouring ranks of a row of waits, transfers */
    ms_jwrite_key(w, MS_STR("ranks"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < listed; i++)
        put_rank(w, &c->ranks.p[i]);
    ms_jwrite_arr_end(w);
}

/* Writes of every rank: rank, collectives, those that it entered last, ns that it waited, ns that others waited. */
static void put_every(struct ms_jwrite *w, const struct viz_cluster *c)
{
    ms_jwrite_key(w, MS_STR("every"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < c->ranks.n; i++) {
        const struct viz_rank_share *r = &c->ranks.p[i];
        put_numbers(w, 5,
                    (const int64_t[]){r->rank, r->collectives, r->last, r->wait_ns,
                                      r->made_others_wait_ns});
    }
    ms_jwrite_arr_end(w);
}

static enum ms_rc put_dimensions(struct ms_jwrite *w, struct mstx_tl *tl, struct ms_err *err)
{
    struct viz_dimension d[VIZ_DIMENSIONS_MAX];
    size_t n;
    MS_TRY(viz_dimensions_read(d, &n, tl, err));
    ms_jwrite_key(w, MS_STR("dimensions"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++) {
        ms_jwrite_obj(w);
        ms_jwrite_kstr(w, "name", d[i].name);
        ms_jwrite_ki64(w, "size", d[i].size);
        ms_jwrite_ki64(w, "stride", d[i].stride);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_arr_end(w);
    return MS_OK;
}

static enum ms_rc put_cluster(struct ms_jwrite *w, struct viz_cluster *c, const struct mstx_use *u,
                              struct mstx_tl *tl, struct ms_err *err)
{
    ms_jwrite_obj(w);
    put_every(w, c);
    MS_TRY(put_dimensions(w, tl, err));
    put_ranks(w, c);
    ms_jwrite_key(w, MS_STR("waits")); /* rank, last rank to arrive, ns, calls */
    ms_jwrite_arr(w);
    for (size_t i = 0; i < c->waits.n; i++) {
        const struct viz_wait *x = &c->waits.p[i];
        put_numbers(w, 4, (const int64_t[]){x->rank, x->late, x->ns, x->calls});
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, MS_STR("transfers")); /* from, to, bytes, ns, calls */
    ms_jwrite_arr(w);
    for (size_t i = 0; i < c->transfers.n; i++) {
        const struct viz_transfer *x = &c->transfers.p[i];
        put_numbers(w, 5, (const int64_t[]){x->from, x->to, x->bytes, x->ns, x->calls});
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, MS_STR("sizes"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < c->sizes.n; i++)
        put_size(w, &c->sizes.p[i]);
    ms_jwrite_arr_end(w);
    const enum ms_rc rc = put_use(w, u, err);
    ms_jwrite_obj_end(w);
    return rc;
}

enum ms_rc web_api_cluster(struct web_call *c, struct ms_err *err)
{
    struct viz_cluster cluster;
    struct mstx_use use;
    MS_TRY(viz_cluster_read(&cluster, c->reader->tl, err));
    enum ms_rc rc = mstx_use_measure(c->reader->tl, &use, err);
    if (rc == MS_OK) {
        rc = put_cluster(c->json, &cluster, &use, c->reader->tl, err);
        mstx_use_free(&use);
    }
    viz_cluster_free(&cluster);
    return rc;
}

/* ---- one collective ------------------------------------------------------------------- */

static void put_collective(struct ms_jwrite *w, const struct viz_collective *one, int64_t first)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "op", one->op);
    ms_jwrite_ki64(w, "bytes", one->bytes);
    ms_jwrite_key(w, MS_STR("calls")); /* rank, process, thread, start, end; the straggler last */
    ms_jwrite_arr(w);
    for (size_t i = 0; i < one->list.n; i++) {
        const struct viz_arrival *a = &one->list.p[i];
        put_numbers(
            w, 5,
            (const int64_t[]){a->rank, a->process, a->tid, a->start_ns - first, a->end_ns - first});
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

/* Reads the collective that a process entered at `start`, or with `rank` the worst of those from `from` to `to`
 * that the rank entered last. Times count from the first event. */
static enum ms_rc read_collective(struct web_call *c, struct viz_collective *one, int64_t first,
                                  struct ms_err *err)
{
    static const int64_t far = INT64_C(1) << 53;
    int64_t process = 0, start = 0, rank = -1, from = 0, to = far;
    MS_TRY(web_query_int(c->query, "process", 0, UINT32_MAX, &process, err));
    MS_TRY(web_query_int(c->query, "start", 0, far, &start, err));
    MS_TRY(web_query_int(c->query, "rank", 0, INT32_MAX, &rank, err));
    MS_TRY(web_query_int(c->query, "from", -far, far, &from, err));
    MS_TRY(web_query_int(c->query, "to", -far, far, &to, err));
    const enum ms_rc rc =
        rank >= 0 ? viz_collective_worst(one, c->reader->tl, rank, first + from, first + to, NULL)
                  : viz_collective_read(one, c->reader->tl, (size_t)process, first + start, NULL);
    if (rc == MS_OK || rc == MS_E_NOTFOUND)
        return rc;
    return ms_fail(err, rc, "the communication calls of the run cannot be read");
}

/* Answers one collective, the straggler last; null: none. */
enum ms_rc web_api_collective(struct web_call *c, struct ms_err *err)
{
    struct viz_collective one;
    int64_t first, last;
    mstx_tl_span(c->reader->tl, &first, &last);
    const enum ms_rc rc = read_collective(c, &one, first, err);
    if (rc == MS_E_NOTFOUND) {
        ms_jwrite_null(c->json);
        return MS_OK;
    }
    if (rc != MS_OK)
        return rc;
    put_collective(c->json, &one, first);
    viz_collective_free(&one);
    return MS_OK;
}

/* ---- ranks that are alike -------------------------------------------------------------- */

/* Writes the ranks of a group as pairs, the first and the last of those that follow each other. */
static void put_members(struct ms_jwrite *w, const struct mstx_use *u, const uint32_t *group,
                        uint32_t which)
{
    int64_t from = -1, to = -1;
    ms_jwrite_key(w, MS_STR("ranks"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < u->rank.n; i++) {
        if (group[i] != which)
            continue;
        if (from >= 0 && u->rank.p[i].rank != to + 1)
            put_numbers(w, 2, (const int64_t[]){from, to});
        from = from < 0 || u->rank.p[i].rank != to + 1 ? u->rank.p[i].rank : from;
        to = u->rank.p[i].rank;
    }
    if (from >= 0)
        put_numbers(w, 2, (const int64_t[]){from, to});
    ms_jwrite_arr_end(w);
}

static enum ms_rc put_groups(struct ms_jwrite *w, const struct mstx_use *u, struct ms_err *err)
{
    mstx_alike_list list = {.p = NULL};
    uint32_t *group = ms_calloc(u->rank.n + 1, sizeof *group);
    enum ms_rc rc = group != NULL ? mstx_alike_find(u, &list, group, err) : ms_no_memory(err);
    ms_jwrite_arr(w);
    for (uint32_t g = 0; rc == MS_OK && g < list.n; g++) {
        struct ms_buf which = {.max = 2 * WHICH_WIDTH};
        mstx_alike_text(u, group, g, WHICH_WIDTH, &which);
        ms_jwrite_obj(w);
        ms_jwrite_ktext(w, "which", ms_buf_slice(&which));
        put_members(w, u, group, g);
        ms_jwrite_obj_end(w);
        ms_buf_free(&which);
    }
    ms_jwrite_arr_end(w);
    ms_vec_free(&list);
    ms_free(group);
    return rc;
}

/* Answers the groups of ranks that use their steps alike: which ranks, as text and as pairs of first and last. */
enum ms_rc web_api_alike(struct web_call *c, struct ms_err *err)
{
    struct mstx_use use;
    MS_TRY(mstx_use_measure(c->reader->tl, &use, err));
    const enum ms_rc rc = put_groups(c->json, &use, err);
    mstx_use_free(&use);
    return rc;
}
