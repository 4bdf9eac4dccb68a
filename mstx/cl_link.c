/* SPDX-License-Identifier: MIT
 *
 * cl_link: how fast data goes on each path, and which path is slower than its like.
 *
 * A path is a pair of ranks for transfers, all ranks of a communicator for collectives; alike are
 * those with the same operation, bytes and number of ranks, within a host or between hosts.
 */
#include "mstx/tl_cluster.h"

#include "probe/base/human.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Eager transfers end before the data has gone anywhere. */
static const uint64_t LEAST_BYTES = 65536;
static const double SLOW_RATIO = 1.12, SLOW_Z = 4, LEAST_SPREAD = 0.02;
enum { CALLS_SURE = 5, PATHS_SURE = 3 };

/* One transfer or collective. */
struct sample {
    uint64_t bytes;
    int64_t ns;
    uint32_t group, ranks, hosts;
    int32_t src, dst;
    uint8_t op;
};
typedef MS_VEC(struct sample) samples;

/* ---- collectives ---------------------------------------------------------------- */

static bool sample_joins(struct mstx_cluster *c, samples *out)
{
    for (size_t i = 0; i < c->join.n; i++) {
        const struct mstx_cl_join *j = &c->join.p[i];
        if (j->transfer_ns <= 0)
            continue;
        struct sample *s = ms_vec_push(out);
        if (s == NULL)
            return false;
        *s = (struct sample){
            j->bytes, j->transfer_ns, j->group, j->ranks, c->group.p[j->group].hosts, -1,
            -1,       j->op};
    }
    return true;
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
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    if (a->receives != b->receives)
        return a->receives ? 1 : -1;
    return (a->order > b->order) - (a->order < b->order);
}

/* false: the other end is not known. */
static bool end_of(const struct mstx_cluster *c, size_t at, struct end *e)
{
    const struct mstx_cl_call *k = &c->p2p.p[at];
    const struct mstx_cl_group *g = &c->group.p[k->group];
    const int32_t own = c->process.p[k->process].rank;
    if (k->peer < 0 || own < 0 || (k->op != MSTX_COMM_SEND && k->op != MSTX_COMM_RECV))
        return false;
    if (g->world.n != 0 && (size_t)k->peer >= g->world.n)
        return false;
    const int32_t peer = g->world.n != 0 ? g->world.p[k->peer] : k->peer;
    const bool receives = k->op == MSTX_COMM_RECV;
    *e = (struct end){receives ? peer : own, receives ? own : peer, k->group, (uint32_t)at,
                      receives};
    return true;
}

static bool is_same_path(const struct end *a, const struct end *b)
{
    return a->group == b->group && a->src == b->src && a->dst == b->dst;
}

static bool sample_pair(const struct mstx_cluster *c, const struct end *send,
                        const struct end *receive, samples *out)
{
    const struct mstx_cl_call *a = &c->p2p.p[send->order], *b = &c->p2p.p[receive->order];
    const bool tells = !((a->flags | b->flags) & MSTX_CF_ASYNC) && !a->unfinished && !b->unfinished;
    const int64_t ns = a->dur_ns < b->dur_ns ? a->dur_ns : b->dur_ns;
    if (!tells || a->bytes != b->bytes || a->bytes < LEAST_BYTES || ns <= 0)
        return true;
    struct sample *s = ms_vec_push(out);
    const bool apart = c->process.p[a->process].host != c->process.p[b->process].host;
    if (s != NULL)
        *s = (struct sample){a->bytes, ns, a->group, 2, apart ? 2 : 1, send->src, send->dst, a->op};
    return s != NULL;
}

/* The n-th that one sends to another is the n-th that the other receives. */
static bool sample_transfers(const struct mstx_cluster *c, samples *out)
{
    MS_VEC(struct end) ends = {0};
    bool ok = ms_vec_reserve(&ends, c->p2p.n + 1);
    for (size_t i = 0; ok && i < c->p2p.n; i++)
        ends.n += end_of(c, i, &ends.p[ends.n]);
    if (ok && ends.n != 0)
        qsort(ends.p, ends.n, sizeof *ends.p, by_path);
    for (size_t i = 0; ok && i < ends.n;) {
        size_t receive = i, last = i;
        while (last < ends.n && is_same_path(&ends.p[last], &ends.p[i]))
            last++;
        while (receive < last && !ends.p[receive].receives)
            receive++;
        for (size_t s = i, r = receive; ok && s < receive && r < last; s++, r++)
            ok = sample_pair(c, &ends.p[s], &ends.p[r], out);
        i = last;
    }
    ms_vec_free(&ends);
    return ok;
}

/* ---- paths ---------------------------------------------------------------------- */

static int compare_like(const struct sample *a, const struct sample *b)
{
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->ranks != b->ranks)
        return a->ranks < b->ranks ? -1 : 1;
    return (a->hosts > b->hosts) - (a->hosts < b->hosts);
}

static int compare_path(const struct sample *a, const struct sample *b)
{
    int order = compare_like(a, b);
    if (order != 0)
        return order;
    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    return (a->group > b->group) - (a->group < b->group);
}

static int by_path_and_time(const void *pa, const void *pb)
{
    const struct sample *a = pa, *b = pb;
    int order = compare_path(a, b);
    return order != 0 ? order : (a->ns > b->ns) - (a->ns < b->ns);
}

static void add_paths(struct mstx_cluster *c, const samples *s)
{
    for (size_t i = 0; i < s->n;) {
        size_t last = i;
        while (last < s->n && compare_path(&s->p[i], &s->p[last]) == 0)
            last++;
        struct mstx_cl_link *l = ms_vec_push(&c->link);
        if (l == NULL) {
            c->no_memory = true;
            return;
        }
        const struct sample *m = &s->p[i + (last - i) / 2];
        *l = (struct mstx_cl_link){.src = m->src,
                                   .dst = m->dst,
                                   .group = m->group,
                                   .hosts = m->hosts,
                                   .bytes = m->bytes,
                                   .calls = (int64_t)(last - i),
                                   .transfer_ns = m->ns,
                                   .ratio = 1,
                                   .op = m->op};
        i = last;
    }
}

static bool are_alike(const struct mstx_cluster *c, const struct mstx_cl_link *a,
                      const struct mstx_cl_link *b)
{
    const size_t na = a->src >= 0 ? 2 : c->group.p[a->group].members.n;
    const size_t nb = b->src >= 0 ? 2 : c->group.p[b->group].members.n;
    return a->op == b->op && a->bytes == b->bytes && a->hosts == b->hosts && na == nb;
}

static void tell_slow(struct mstx_cluster *c, const struct mstx_cl_link *l, size_t paths)
{
    char bytes[MS_HUMAN_MAX];
    struct mstx_cl_note *n =
        mstx__cluster_note(c, "slow_link", l->ratio >= 1.5 ? "error" : "warning", l->src, l->ratio);
    if (n == NULL)
        return;
    ms_human_bytes(bytes, l->bytes);
    if (l->src >= 0) {
        snprintf(n->text, sizeof n->text,
                 "the link from rank %" PRId32 " to rank %" PRId32
                 " is slow: %s takes %.2f times as long as on the %zu links alike",
                 l->src, l->dst, bytes, l->ratio, paths - 1);
        return;
    }
    const struct mstx_cl_group *g = &c->group.p[l->group];
    const int32_t first = c->process.p[g->members.p[0]].rank;
    const int32_t last = c->process.p[g->members.p[g->members.n - 1]].rank;
    n->rank = first;
    snprintf(n->text, sizeof n->text,
             "a link among the %zu ranks %" PRId32 " .. %" PRId32
             " (%s) is slow: %s of %s takes %.2f times as long as in the %zu communicators alike",
             g->members.n, first, last, g->name, mstx_comm_op_text(l->op), bytes, l->ratio,
             paths - 1);
}

static bool is_slow(const struct mstx_cl_link *l, size_t paths)
{
    return paths >= PATHS_SURE && l->calls >= CALLS_SURE && l->bytes >= LEAST_BYTES &&
           l->ratio >= SLOW_RATIO && l->z >= SLOW_Z;
}

/* Those alike among [from, to). */
static void compare_paths(struct mstx_cluster *c, size_t from, size_t to, double *v)
{
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

/* One conclusion for a path, from what shows it best. */
static int by_path_and_z(const void *pa, const void *pb)
{
    const struct mstx_cl_link *a = pa, *b = pb;
    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    if (a->src < 0 && a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return a->z > b->z ? -1 : a->z < b->z;
}

struct slow {
    struct mstx_cl_link link;
    size_t paths;
};

static void tell_all(struct mstx_cluster *c, struct slow *slow, size_t n)
{
    if (n != 0)
        qsort(slow, n, sizeof *slow, by_path_and_z);
    for (size_t i = 0; i < n; i++) {
        const struct mstx_cl_link *l = &slow[i].link, *b = i != 0 ? &slow[i - 1].link : l;
        const bool is_same =
            i != 0 && l->src == b->src && l->dst == b->dst && (l->src >= 0 || l->group == b->group);
        if (!is_same)
            tell_slow(c, l, slow[i].paths);
    }
}

static void judge_paths(struct mstx_cluster *c)
{
    double *v = ms_calloc(c->link.n + 1, sizeof *v);
    MS_VEC(struct slow) slow = {0};
    for (size_t i = 0; v != NULL && i < c->link.n;) {
        size_t last = i;
        while (last < c->link.n && are_alike(c, &c->link.p[i], &c->link.p[last]))
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
    tell_all(c, slow.p, slow.n);
    ms_vec_free(&slow);
    ms_free(v);
}

void mstx__cluster_links(struct mstx_cluster *c)
{
    samples s = {0};
    if (sample_joins(c, &s) && sample_transfers(c, &s)) {
        if (s.n != 0)
            qsort(s.p, s.n, sizeof *s.p, by_path_and_time);
        add_paths(c, &s);
    } else {
        c->no_memory = true;
    }
    ms_vec_free(&s);
    if (!c->no_memory)
        judge_paths(c);
}
