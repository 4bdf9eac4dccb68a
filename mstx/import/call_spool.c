/* SPDX-License-Identifier: MIT
 *
 * call_spool: see the header.
 */
#include "mstx/import/call_spool.h"

#include "mstx/cluster/join.h"
#include "mstx/cluster/links.h"
#include "mstx/import/cluster_save.h"
#include "mstx/rundb/side_file.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <stdlib.h>
#include <string.h>

/* Calls in memory at a time: 29 MB of calls, and as much again for their joins at most. */
enum { CALLS_OF_ROUND = 1 << 19 };

/* Calls of one process on one communicator, one behind the other in the file. */
struct block {
    uint64_t at; /* place in the file, in calls */
    uint32_t group, n;
    uint32_t taken;    /* calls that earlier rounds have joined */
    uint32_t last_seq; /* of the last call */
};

/* The blocks of one kind of calls, and their order by communicator. */
struct blocks {
    MS_VEC(struct block) list; /* by process */
    uint32_t *order;           /* by communicator, then by process */
    uint32_t *begin;           /* by communicator: its first block in `order` */
};

struct mstx_spool {
    struct mstx_side_file file;
    uint64_t calls; /* in the file */
    size_t round;   /* calls that are joined at a time, about */
    struct blocks coll, p2p;
    mstx_cl_calls sorted; /* of one process */
    MS_VEC(uint32_t) count;
};

/* ---- life ------------------------------------------------------------------- */

enum ms_rc mstx__spool_new(struct mstx_spool **out, const char *beside, size_t round,
                           struct ms_err *err)
{
    struct mstx_spool *s = ms_calloc(1, sizeof *s);
    *out = s;
    if (s == NULL)
        return ms_no_memory(err);
    s->round = round != 0 ? round : CALLS_OF_ROUND;
    return mstx__side_open(&s->file, beside, err);
}

static void free_blocks(struct blocks *b)
{
    ms_vec_free(&b->list);
    ms_free(b->order);
    ms_free(b->begin);
}

void mstx__spool_free(struct mstx_spool *s)
{
    if (s == NULL)
        return;
    mstx__side_close(&s->file);
    free_blocks(&s->coll);
    free_blocks(&s->p2p);
    ms_vec_free(&s->sorted);
    ms_vec_free(&s->count);
    ms_free(s);
}

/* ---- the file ------------------------------------------------------------------ */

static enum ms_rc write_calls(struct mstx_spool *s, const struct mstx_cl_call *p, size_t n,
                              struct ms_err *err)
{
    MS_TRY(mstx__side_append(&s->file, p, n * sizeof *p, err));
    s->calls += n;
    return MS_OK;
}

static enum ms_rc read_calls(const struct mstx_spool *s, uint64_t at, struct mstx_cl_call *p,
                             size_t n, struct ms_err *err)
{
    return mstx__side_read(&s->file, at * sizeof *p, p, n * sizeof *p, err);
}

/* ---- calls of a process --------------------------------------------------------- */

static int by_seq(const void *pa, const void *pb)
{
    const struct mstx_cl_call *a = pa, *b = pb;
    return MS_ORDER(a->seq, b->seq, MS_ORDER(a->start_ns, b->start_ns, 0));
}

/* Brings the calls on one communicator into the order of their collectives. */
static void sort_by_seq(struct mstx_cl_call *p, size_t n)
{
    bool is_sorted = true;
    for (size_t i = 1; i < n && is_sorted; i++)
        is_sorted = p[i - 1].seq <= p[i].seq;
    if (!is_sorted)
        qsort(p, n, sizeof *p, by_seq);
}

/* Copies the calls into s->sorted by communicator; s->count tells afterwards where the calls of each
 * communicator end. */
static bool sort_by_group(struct mstx_spool *s, const mstx_cl_calls *v, size_t groups)
{
    if (!ms_vec_reserve(&s->count, groups + 1) || !ms_vec_reserve(&s->sorted, v->n))
        return false;
    memset(s->count.p, 0, (groups + 1) * sizeof *s->count.p);
    for (size_t i = 0; i < v->n; i++)
        s->count.p[v->p[i].group + 1]++;
    for (size_t g = 1; g <= groups; g++)
        s->count.p[g] += s->count.p[g - 1];
    for (size_t i = 0; i < v->n; i++)
        s->sorted.p[s->count.p[v->p[i].group]++] = v->p[i];
    s->sorted.n = v->n;
    return true;
}

static enum ms_rc take_calls(struct mstx_spool *s, struct blocks *b, mstx_cl_calls *v,
                             size_t groups, bool is_coll, struct ms_err *err)
{
    if (v->n == 0)
        return MS_OK;
    if (!sort_by_group(s, v, groups))
        return ms_no_memory(err);
    for (size_t g = 0, first = 0; g < groups; first = s->count.p[g++]) {
        struct mstx_cl_call *p = s->sorted.p + first;
        const uint32_t n = s->count.p[g] - (uint32_t)first;
        struct block *slot = n != 0 ? ms_vec_push(&b->list) : NULL;
        if (n == 0)
            continue;
        if (slot == NULL)
            return ms_no_memory(err);
        if (is_coll)
            sort_by_seq(p, n);
        *slot = (struct block){
            .at = s->calls + first, .group = (uint32_t)g, .n = n, .last_seq = p[n - 1].seq};
    }
    v->n = 0;
    return write_calls(s, s->sorted.p, s->sorted.n, err);
}

enum ms_rc mstx__spool_take(struct mstx_spool *s, struct mstx_cluster *c, struct ms_err *err)
{
    MS_TRY(take_calls(s, &s->coll, &c->coll, c->group.n, true, err));
    return take_calls(s, &s->p2p, &c->p2p, c->group.n, false, err);
}

/* ---- blocks by communicator -------------------------------------------------------- */

static bool order_blocks(struct blocks *b, size_t groups)
{
    b->order = ms_calloc(b->list.n + 1, sizeof *b->order);
    b->begin = ms_calloc(groups + 2, sizeof *b->begin);
    if (b->order == NULL || b->begin == NULL)
        return false;
    uint32_t *at = b->begin + 1; /* ends become begins while placing */
    for (size_t i = 0; i < b->list.n; i++)
        at[b->list.p[i].group + 1]++;
    for (size_t g = 1; g <= groups; g++)
        at[g] += at[g - 1];
    for (size_t i = 0; i < b->list.n; i++)
        b->order[at[b->list.p[i].group]++] = (uint32_t)i;
    return true;
}

/* ---- rounds of collectives ----------------------------------------------------------- */

struct joining {
    struct mstx_spool *s;
    struct mstx_cluster *c;
    struct mstx_join_saver saver;
    size_t group; /* first communicator with collectives that are not joined */
    size_t all;   /* places */
};

/* Returns the end of the round that begins at a place. */
static size_t end_of_round(const struct joining *j, size_t from)
{
    double room = (double)j->s->round;
    for (size_t i = j->group; i < j->c->group.n; i++) {
        const struct mstx_cl_group *g = &j->c->group.p[i];
        const size_t first = g->place > from ? g->place : from;
        const size_t left = g->place + g->seqs > first ? g->place + g->seqs - first : 0;
        const double each = g->seqs != 0 ? (double)g->calls / g->seqs : 0;
        if (left != 0 && each * (double)left > room) {
            const size_t end = first + (size_t)(room / each);
            return end > from ? end : from + 1;
        }
        room -= each * (double)left;
    }
    return j->all;
}

static enum ms_rc read_seq(const struct mstx_spool *s, const struct block *b, uint32_t i,
                           uint32_t *seq, struct ms_err *err)
{
    struct mstx_cl_call k;
    MS_TRY(read_calls(s, b->at + i, &k, 1, err));
    *seq = k.seq;
    return MS_OK;
}

/* Finds how many calls of a block have sequence numbers before `limit`. */
static enum ms_rc find_limit(const struct mstx_spool *s, const struct block *b, uint64_t limit,
                             uint32_t *end, struct ms_err *err)
{
    uint32_t low = b->taken, high = b->n, seq;
    if (b->last_seq < limit)
        low = high;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        MS_TRY(read_seq(s, b, middle, &seq, err));
        if (seq < limit)
            low = middle + 1;
        else
            high = middle;
    }
    *end = low;
    return MS_OK;
}

static enum ms_rc load_block(const struct mstx_spool *s, struct block *b, uint32_t end,
                             mstx_cl_calls *to, struct ms_err *err)
{
    const uint32_t n = end - b->taken;
    if (n == 0)
        return MS_OK;
    if (!ms_vec_reserve(to, to->n + n))
        return ms_no_memory(err);
    MS_TRY(read_calls(s, b->at + b->taken, to->p + to->n, n, err));
    to->n += n;
    b->taken = end;
    return MS_OK;
}

/* Loads the calls of a communicator whose places lie before `to`. */
static enum ms_rc load_group(struct joining *j, size_t group, size_t to, struct ms_err *err)
{
    struct blocks *b = &j->s->coll;
    const struct mstx_cl_group *g = &j->c->group.p[group];
    const size_t seqs = to - g->place < g->seqs ? to - g->place : g->seqs;
    for (uint32_t i = b->begin[group]; i < b->begin[group + 1]; i++) {
        struct block *one = &b->list.p[b->order[i]];
        uint32_t end;
        MS_TRY(find_limit(j->s, one, (uint64_t)g->first_seq + seqs, &end, err));
        MS_TRY(load_block(j->s, one, end, &j->c->coll, err));
        if (seqs == g->seqs)
            j->c->strange += one->n - end;
    }
    return MS_OK;
}

static enum ms_rc load_round(struct joining *j, struct ms_err *err)
{
    struct mstx_cluster *c = j->c;
    c->coll.n = 0;
    for (; j->group < c->group.n; j->group++) {
        const struct mstx_cl_group *g = &c->group.p[j->group];
        if (g->place >= c->to && c->to != j->all)
            return MS_OK;
        MS_TRY(load_group(j, j->group, c->to, err));
        if (g->place + g->seqs > c->to)
            return MS_OK;
    }
    return MS_OK;
}

static enum ms_rc join_round(struct joining *j, struct ms_err *err)
{
    struct mstx_cluster *c = j->c;
    const size_t quarrels = c->quarrel.n, missing = c->missing.n;
    MS_TRY(load_round(j, err));
    c->join.n = 0;
    mstx__cluster_join(c);
    if (!c->no_memory)
        mstx__cluster_paths(c);
    if (c->no_memory)
        return ms_no_memory(err);
    mstx__cluster_forget_repeated(c, quarrels, missing);
    return mstx__joins_save(&j->saver, c, err);
}

static enum ms_rc join_collectives(struct joining *j, struct ms_err *err)
{
    struct mstx_cluster *c = j->c;
    enum ms_rc rc = MS_OK;
    for (size_t at = 0; at < j->all && rc == MS_OK; at = c->to) {
        c->from = at;
        c->to = end_of_round(j, at);
        rc = join_round(j, err);
    }
    c->coll.n = c->join.n = 0;
    return rc == MS_OK ? mstx__joins_finish(&j->saver, err) : rc;
}

/* ---- rounds of transfers ---------------------------------------------------------------- */

static uint64_t calls_of_group(const struct blocks *b, size_t group)
{
    uint64_t n = 0;
    for (uint32_t i = b->begin[group]; i < b->begin[group + 1]; i++)
        n += b->list.p[b->order[i]].n;
    return n;
}

/* Keeps the calls from `first` on whose pair of ranks belongs to this part of the pairs. */
static void keep_pairs(struct mstx_cluster *c, size_t first, uint64_t part, uint64_t parts)
{
    size_t kept = first;
    for (size_t i = first; i < c->p2p.n; i++) {
        int32_t a, b;
        const bool known = mstx__cluster_ends(c, &c->p2p.p[i], &a, &b);
        const uint64_t key = (uint64_t)(uint32_t)a << 32 ^ (uint32_t)b;
        if (known && (key * 0x9E3779B97F4A7C15u >> 33) % parts == part)
            c->p2p.p[kept++] = c->p2p.p[i];
    }
    c->p2p.n = kept;
}

static enum ms_rc measure_transfers(struct mstx_cluster *c, struct ms_err *err)
{
    mstx__cluster_paths(c);
    c->p2p.n = 0;
    return c->no_memory ? ms_no_memory(err) : MS_OK;
}

/* Loads one part of the transfers of a communicator. */
static enum ms_rc load_pairs(struct joining *j, size_t group, uint64_t part, uint64_t parts,
                             struct ms_err *err)
{
    struct blocks *b = &j->s->p2p;
    for (uint32_t i = b->begin[group]; i < b->begin[group + 1]; i++) {
        struct block *one = &b->list.p[b->order[i]];
        const size_t first = j->c->p2p.n;
        one->taken = 0;
        MS_TRY(load_block(j->s, one, one->n, &j->c->p2p, err));
        if (parts != 1)
            keep_pairs(j->c, first, part, parts);
    }
    return MS_OK;
}

/* Measures the paths between ranks.  A round has whole communicators, or a part of the pairs of one
 * that has more calls than a round. */
static enum ms_rc join_transfers(struct joining *j, struct ms_err *err)
{
    struct mstx_cluster *c = j->c;
    for (size_t g = 0; g < c->group.n; g++) {
        const uint64_t n = calls_of_group(&j->s->p2p, g), parts = n / j->s->round + 1;
        if (c->p2p.n != 0 && c->p2p.n + n > j->s->round)
            MS_TRY(measure_transfers(c, err));
        for (uint64_t part = 0; part < parts; part++) {
            MS_TRY(load_pairs(j, g, part, parts, err));
            if (parts != 1)
                MS_TRY(measure_transfers(c, err));
        }
    }
    return measure_transfers(c, err);
}

enum ms_rc mstx__spool_join(struct mstx_spool *s, struct mstx_cluster *c, struct ms_store *to,
                            struct ms_err *err)
{
    ms_assert(c->coll.n == 0 && c->p2p.n == 0);
    mstx__cluster_find_places(c);
    struct joining j = {.s = s, .c = c, .all = c->to};
    if (!order_blocks(&s->coll, c->group.n) || !order_blocks(&s->p2p, c->group.n))
        return ms_no_memory(err);
    MS_TRY(mstx__joins_begin(&j.saver, to, err));
    enum ms_rc rc = join_collectives(&j, err);
    mstx__joins_end(&j.saver);
    return rc == MS_OK ? join_transfers(&j, err) : rc;
}
