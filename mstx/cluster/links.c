/* SPDX-License-Identifier: MIT
 *
 * links: transfer times by path, and paths that are slower than comparable ones.
 *
 * A path is a pair of ranks for transfers, and all ranks of a communicator for collectives.  Paths
 * are alike when operation, bytes, number of ranks and locality (within a host or between hosts)
 * agree.
 */
#include "mstx/cluster/links.h"

#include "mstx/format/note_kinds.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>

/* Smaller transfers are ignored: eager sends return before the data has left the sender. */
static const uint64_t LEAST_BYTES = 65536;
/* Chosen by hand: a slow path takes at least SLOW_RATIO times the median of paths that are alike
 * and is SLOW_Z robust deviations above it.  No benchmark derives these limits; bench_cluster
 * counts how often the resulting notes are right on simulated runs with known slow paths. */
static const double SLOW_RATIO = 1.12, SLOW_Z = 4, LEAST_SPREAD = 0.02;
enum { CALLS_SURE = 5, PATHS_SURE = 3 };

/* ---- paths ---------------------------------------------------------------------- */

/* Adds a path with its n times.  A path is open while other importing processes may hold times of
 * it. */
static bool add_path(struct mstx_cluster *c, const struct mstx_cl_link *like, double *ns, size_t n,
                     bool is_open)
{
    ms_assert(n >= 1);
    struct mstx_cl_link *l = ms_vec_push(&c->link);
    if (l == NULL || (is_open && !ms_vec_reserve(&c->open, c->open.n + n)))
        return false;
    *l = *like;
    l->calls = (int64_t)n;
    l->ratio = 1;
    l->is_open = is_open;
    l->first_open = c->open.n;
    for (size_t i = 0; is_open && i < n; i++)
        c->open.p[c->open.n++] = (int64_t)ns[i];
    l->transfer_ns = is_open ? 0 : (int64_t)mstx__median(ns, n);
    return true;
}

/* ---- collectives ---------------------------------------------------------------- */

static int by_kind(const void *pa, const void *pb)
{
    const struct mstx_cl_join *const *a = pa, *const *b = pb;
    return MS_ORDER((*a)->op, (*b)->op,
                    MS_ORDER((*a)->bytes, (*b)->bytes, MS_ORDER((*a)->ranks, (*b)->ranks, 0)));
}

struct room {
    const struct mstx_cl_join **join;
    double *ns;
};

/* Adds the paths of one communicator, which has n joins. */
static bool add_group(struct mstx_cluster *c, const struct mstx_cl_join *j, size_t n,
                      struct room *r)
{
    ms_assert(n >= 1);
    const struct mstx_cl_group *g = &c->group.p[j->group];
    const bool is_open = g->place < c->from || g->place + g->seqs > c->to;
    size_t many = 0;
    bool sorted = true, ok = true;
    for (size_t i = 0; i < n; i++) {
        if (j[i].transfer_ns <= 0)
            continue;
        r->join[many++] = &j[i];
        sorted &= many < 2 || by_kind(&r->join[many - 2], &r->join[many - 1]) <= 0;
    }
    if (!sorted)
        qsort(r->join, many, sizeof(const struct mstx_cl_join *), by_kind);
    for (size_t i = 0, last; ok && i < many; i = last) {
        for (last = i; last < many && by_kind(&r->join[i], &r->join[last]) == 0; last++)
            r->ns[last - i] = (double)r->join[last]->transfer_ns;
        const struct mstx_cl_link like = {.src = -1,
                                          .dst = -1,
                                          .group = j->group,
                                          .ranks = r->join[i]->ranks,
                                          .hosts = g->hosts,
                                          .bytes = r->join[i]->bytes,
                                          .op = r->join[i]->op};
        ok = add_path(c, &like, r->ns, last - i, is_open);
    }
    return ok;
}

static bool add_collectives(struct mstx_cluster *c)
{
    struct room r = {ms_calloc(c->join.n + 1, sizeof *r.join),
                     ms_calloc(c->join.n + 1, sizeof *r.ns)};
    bool ok = r.join != NULL && r.ns != NULL;
    for (size_t i = 0, last; ok && i < c->join.n; i = last) {
        for (last = i; last < c->join.n && c->join.p[last].group == c->join.p[i].group;)
            last++;
        ok = add_group(c, &c->join.p[i], last - i, &r);
    }
    ms_free(r.join);
    ms_free(r.ns);
    return ok;
}

/* ---- transfers ------------------------------------------------------------------ */

/* One end of a transfer. */
struct end {
    int32_t src, dst;
    uint32_t group, order; /* of the call among all */
    bool receives;
};

static int by_path(const void *pa, const void *pb)
{
    const struct end *a = pa, *b = pb;
    const int by_end = MS_ORDER(a->receives, b->receives, MS_ORDER(a->order, b->order, 0));
    return MS_ORDER(a->group, b->group, MS_ORDER(a->src, b->src, MS_ORDER(a->dst, b->dst, by_end)));
}

bool mstx__cluster_ends(const struct mstx_cluster *c, const struct mstx_cl_call *k, int32_t *src,
                        int32_t *dst)
{
    ms_assert(k->group < c->group.n && k->process < c->process.n);
    const struct mstx_cl_group *g = &c->group.p[k->group];
    const int32_t own = c->process.p[k->process].rank;
    if (k->peer < 0 || own < 0 || (k->op != MSTX_COMM_SEND && k->op != MSTX_COMM_RECV))
        return false;
    if (g->world.n != 0 && (size_t)k->peer >= g->world.n)
        return false;
    const int32_t peer = g->world.n != 0 ? g->world.p[k->peer] : k->peer;
    const bool receives = k->op == MSTX_COMM_RECV;
    *src = receives ? peer : own;
    *dst = receives ? own : peer;
    return true;
}

static bool is_same_path(const struct end *a, const struct end *b)
{
    return a->group == b->group && a->src == b->src && a->dst == b->dst;
}

/* Duration of a transfer whose ends were both recorded. */
struct transfer {
    uint64_t bytes;
    double ns;
};

static int by_bytes(const void *pa, const void *pb)
{
    const struct transfer *a = pa, *b = pb;
    return MS_ORDER(a->bytes, b->bytes, 0);
}

static bool measure_transfer(const struct mstx_cl_call *a, const struct mstx_cl_call *b,
                             struct transfer *t)
{
    ms_assert(a->group == b->group);
    const bool tells = !((a->flags | b->flags) & MSTX_CF_ASYNC) && !a->unfinished && !b->unfinished;
    const int64_t ns = a->dur_ns < b->dur_ns ? a->dur_ns : b->dur_ns;
    *t = (struct transfer){a->bytes, (double)ns};
    return tells && a->bytes == b->bytes && a->bytes >= LEAST_BYTES && ns > 0;
}

/* Adds one path for each size of its n transfers. */
static bool add_sizes(struct mstx_cluster *c, const struct end *e, uint32_t hosts,
                      struct transfer *t, size_t n, double *ns)
{
    bool ok = true;
    if (n != 0)
        qsort(t, n, sizeof *t, by_bytes);
    for (size_t i = 0, last; ok && i < n; i = last) {
        for (last = i; last < n && t[last].bytes == t[i].bytes; last++)
            ns[last - i] = t[last].ns;
        const struct mstx_cl_link like = {.src = e->src,
                                          .dst = e->dst,
                                          .group = e->group,
                                          .ranks = 2,
                                          .hosts = hosts,
                                          .bytes = t[i].bytes,
                                          .op = MSTX_COMM_SEND};
        ok = add_path(c, &like, ns, last - i, false);
    }
    return ok;
}

/* Adds the paths of a pair of ranks.  The n-th send of one rank to the other matches the n-th
 * receive of the other. */
static bool add_pair(struct mstx_cluster *c, const struct end *e, size_t n, struct transfer *t,
                     double *ns)
{
    ms_assert(n >= 1);
    size_t receive = 0, many = 0;
    uint32_t hosts = 1;
    while (receive < n && !e[receive].receives)
        receive++;
    for (size_t s = 0; s < receive && receive + s < n; s++) {
        const struct mstx_cl_call *a = &c->p2p.p[e[s].order], *b = &c->p2p.p[e[receive + s].order];
        many += measure_transfer(a, b, &t[many]);
        hosts = c->process.p[a->process].host != c->process.p[b->process].host ? 2 : 1;
    }
    return add_sizes(c, e, hosts, t, many, ns);
}

static bool add_transfers(struct mstx_cluster *c)
{
    const size_t n = c->p2p.n;
    struct end *ends = ms_calloc(n + 1, sizeof *ends);
    struct transfer *t = ms_calloc(n + 1, sizeof *t);
    double *ns = ms_calloc(n + 1, sizeof *ns);
    bool ok = ends != NULL && t != NULL && ns != NULL;
    size_t many = 0;
    for (size_t i = 0; ok && i < n; i++) {
        const struct mstx_cl_call *k = &c->p2p.p[i];
        struct end *e = &ends[many];
        *e = (struct end){0, 0, k->group, (uint32_t)i, k->op == MSTX_COMM_RECV};
        many += mstx__cluster_ends(c, k, &e->src, &e->dst);
    }
    if (many != 0)
        qsort(ends, many, sizeof *ends, by_path);
    for (size_t i = 0, last; ok && i < many; i = last) {
        for (last = i; last < many && is_same_path(&ends[last], &ends[i]);)
            last++;
        ok = add_pair(c, &ends[i], last - i, t, ns);
    }
    ms_free(ends);
    ms_free(t);
    ms_free(ns);
    return ok;
}

void mstx__cluster_paths(struct mstx_cluster *c)
{
    c->no_memory |= !add_collectives(c) || !add_transfers(c);
}

/* ---- all paths ------------------------------------------------------------------ */

static int compare_like(const struct mstx_cl_link *a, const struct mstx_cl_link *b)
{
    return MS_ORDER(a->op, b->op,
                    MS_ORDER(a->bytes, b->bytes,
                             MS_ORDER(a->ranks, b->ranks, MS_ORDER(a->hosts, b->hosts, 0))));
}

static int by_likeness(const void *pa, const void *pb)
{
    const struct mstx_cl_link *a = pa, *b = pb;
    int order = compare_like(a, b);
    if (order != 0)
        return order;
    return MS_ORDER(a->src, b->src, MS_ORDER(a->dst, b->dst, MS_ORDER(a->group, b->group, 0)));
}

/* Merges the parts of a path that several importing processes found. */
static bool close_paths(struct mstx_cluster *c)
{
    double *ns = ms_calloc(c->open.n + 1, sizeof *ns);
    size_t kept = 0;
    for (size_t i = 0, last; ns != NULL && i < c->link.n; i = last) {
        struct mstx_cl_link *l = &c->link.p[kept++];
        size_t n = 0;
        for (last = i; last < c->link.n && by_likeness(&c->link.p[i], &c->link.p[last]) == 0;
             last++) {
            const struct mstx_cl_link *part = &c->link.p[last];
            for (int64_t k = 0; part->is_open && k < part->calls; k++)
                ns[n++] = (double)c->open.p[part->first_open + (size_t)k];
        }
        *l = c->link.p[i];
        if (l->is_open) {
            l->calls = (int64_t)n;
            l->transfer_ns = (int64_t)mstx__median(ns, n);
        }
    }
    c->link.n = ns != NULL ? kept : 0;
    ms_free(ns);
    return ns != NULL;
}

static void note_slow_path(struct mstx_cluster *c, const struct mstx_cl_link *l, size_t paths)
{
    ms_assert(paths >= PATHS_SURE);
    struct mstx_cl_note *n =
        mstx__cluster_note(c, "slow_link", l->ratio >= 1.5 ? "error" : "warning", l->src, l->ratio);
    if (n == NULL)
        return;
    ms_message_begin(&n->message, l->src >= 0 ? &mstx_note_slow_link : &mstx_note_slow_group);
    ms_message_i64(&n->message, "bytes", (int64_t)l->bytes);
    ms_message_f64(&n->message, "ratio", l->ratio);
    ms_message_i64(&n->message, "alike", (int64_t)paths - 1);
    if (l->src >= 0) {
        ms_message_i64(&n->message, "src", l->src);
        ms_message_i64(&n->message, "dst", l->dst);
        return;
    }
    const struct mstx_cl_group *g = &c->group.p[l->group];
    const int32_t first = c->process.p[g->members.p[0]].rank;
    const int32_t last = c->process.p[g->members.p[g->members.n - 1]].rank;
    n->rank = first;
    ms_message_i64(&n->message, "ranks", (int64_t)g->members.n);
    ms_message_i64(&n->message, "first_rank", first);
    ms_message_i64(&n->message, "last_rank", last);
    ms_message_str(&n->message, "comm", ms_str_of(g->name));
    ms_message_str(&n->message, "op", ms_str_of(mstx_comm_op_text(l->op)));
}

static bool is_slow(const struct mstx_cl_link *l, size_t paths)
{
    return paths >= PATHS_SURE && l->calls >= CALLS_SURE && l->bytes >= LEAST_BYTES &&
           l->ratio >= SLOW_RATIO && l->z >= SLOW_Z;
}

/* Compares each of the paths [from, to), which are alike, with their median. */
static void compare_paths(struct mstx_cluster *c, size_t from, size_t to, double *v)
{
    ms_assert(from < to && to <= c->link.n);
    const size_t n = to - from;
    for (size_t i = 0; i < n; i++)
        v[i] = (double)c->link.p[from + i].transfer_ns;
    const double middle = mstx__median(v, n);
    for (size_t i = 0; i < n; i++)
        v[i] = fabs((double)c->link.p[from + i].transfer_ns - middle);
    double spread = 1.4826 * mstx__median(v, n);
    if (spread < LEAST_SPREAD * middle)
        spread = LEAST_SPREAD * middle;
    for (size_t i = from; i < to && middle > 0; i++) {
        struct mstx_cl_link *l = &c->link.p[i];
        l->ratio = (double)l->transfer_ns / middle;
        l->z = ((double)l->transfer_ns - middle) / spread;
    }
}

/* Groups the entries of a path, the greatest deviation first: only this entry can become a note. */
static int by_path_and_z(const void *pa, const void *pb)
{
    const struct mstx_cl_link *a = pa, *b = pb;
    const int by_z = MS_ORDER(b->z, a->z, 0);
    const bool is_pair = a->src >= 0;
    return MS_ORDER(a->src, b->src,
                    MS_ORDER(a->dst, b->dst, is_pair ? by_z : MS_ORDER(a->group, b->group, by_z)));
}

struct slow {
    struct mstx_cl_link link;
    size_t paths;
};

static void note_slow_paths(struct mstx_cluster *c, struct slow *slow, size_t n)
{
    if (n != 0)
        qsort(slow, n, sizeof *slow, by_path_and_z);
    for (size_t i = 0; i < n; i++) {
        const struct mstx_cl_link *l = &slow[i].link, *b = i != 0 ? &slow[i - 1].link : l;
        const bool is_same =
            i != 0 && l->src == b->src && l->dst == b->dst && (l->src >= 0 || l->group == b->group);
        if (!is_same)
            note_slow_path(c, l, slow[i].paths);
    }
}

static void judge_paths(struct mstx_cluster *c)
{
    double *v = ms_calloc(c->link.n + 1, sizeof *v);
    MS_VEC(struct slow) slow = {0};
    for (size_t i = 0; v != NULL && i < c->link.n;) {
        size_t last = i;
        while (last < c->link.n && compare_like(&c->link.p[i], &c->link.p[last]) == 0)
            last++;
        compare_paths(c, i, last, v);
        for (size_t k = i; k < last; k++) {
            struct slow *s = is_slow(&c->link.p[k], last - i) ? ms_vec_push(&slow) : NULL;
            if (s != NULL)
                *s = (struct slow){c->link.p[k], last - i};
        }
        i = last;
    }
    c->no_memory |= v == NULL;
    note_slow_paths(c, slow.p, slow.n);
    ms_vec_free(&slow);
    ms_free(v);
}

void mstx__cluster_links(struct mstx_cluster *c)
{
    ms_vec_sort(&c->link, by_likeness);
    if (close_paths(c))
        judge_paths(c);
    else
        c->no_memory = true;
}
