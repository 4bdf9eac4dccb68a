/* SPDX-License-Identifier: MIT
 *
 * join_share: divides the joining of collectives among the importing processes.
 *
 *     every process has the calls of        share        every process has the calls of
 *     some ranks                       ───────────────►  some collectives, of all their ranks
 *
 * Every process receives all ranks and steps and the number of calls of each communicator, from
 * which the place of each collective follows.  Each process joins a range of places with an equal
 * number of calls.  The joins of these ranges, concatenated, are in the same order as those of a
 * single process.
 */
#include "mstx/import/join_share.h"

#include "mstx/cluster/join.h"
#include "mstx/cluster/links.h"
#include "mstx/format/note_kinds.h"
#include "mstx/rundb/packed_tables.h"
#include "probe/base/exchange.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- ranks, steps and counts of calls -------------------------------------------------------- */

static void put_known(const struct mstx_cluster *c, struct ms_buf *b)
{
    const uint64_t hosts = c->host.n, groups = c->group.n;
    ms_put_bytes(b, &hosts, sizeof hosts);
    for (size_t i = 0; i < c->host.n; i++)
        ms_put_text(b, ms_str_of(c->host.p[i]));
    ms_put_items(b, &c->process);
    ms_put_items(b, &c->step);
    ms_put_bytes(b, &groups, sizeof groups);
    for (size_t i = 0; i < c->group.n; i++) {
        const struct mstx_cl_group *g = &c->group.p[i];
        ms_put_bytes(b, &g->calls, sizeof g->calls);
        ms_put_bytes(b, &g->first_seq, sizeof g->first_seq);
        ms_put_bytes(b, &g->last_seq, sizeof g->last_seq);
        ms_put_items(b, &g->members);
    }
}

static void forget_known(struct mstx_cluster *c)
{
    for (size_t i = 0; i < c->host.n; i++)
        ms_free(c->host.p[i]);
    c->host.n = c->process.n = c->step.n = 0;
    for (size_t i = 0; i < c->group.n; i++) {
        struct mstx_cl_group *g = &c->group.p[i];
        g->calls = 0;
        g->first_seq = UINT32_MAX;
        g->last_seq = 0;
        g->members.n = 0;
    }
}

static bool take_hosts(struct mstx_cluster *c, struct ms_taker *t, size_t first)
{
    MS_VEC(uint32_t) number = {0};
    uint64_t hosts;
    ms_take_bytes(t, &hosts, sizeof hosts);
    for (uint64_t i = 0; i < hosts && !t->bad && !c->no_memory; i++) {
        uint32_t *slot = ms_vec_push(&number);
        c->no_memory |= slot == NULL;
        if (slot != NULL)
            *slot = mstx__cluster_host(c, ms_take_text(t));
    }
    c->no_memory |= !ms_take_items(t, &c->process);
    for (size_t i = first; i < c->process.n; i++)
        c->process.p[i].host = c->process.p[i].host < number.n ? number.p[c->process.p[i].host] : 0;
    ms_vec_free(&number);
    return !c->no_memory && !t->bad;
}

static bool take_counts(struct mstx_cl_group *g, struct ms_taker *t, uint32_t processes)
{
    const size_t first = g->members.n;
    uint64_t calls;
    uint32_t first_seq, last_seq;
    ms_take_bytes(t, &calls, sizeof calls);
    ms_take_bytes(t, &first_seq, sizeof first_seq);
    ms_take_bytes(t, &last_seq, sizeof last_seq);
    g->calls += calls;
    g->first_seq = first_seq < g->first_seq ? first_seq : g->first_seq;
    g->last_seq = last_seq > g->last_seq ? last_seq : g->last_seq;
    if (!ms_take_items(t, &g->members))
        return false;
    for (size_t m = first; m < g->members.n; m++)
        g->members.p[m] += processes;
    return true;
}

/* Appends the ranks, steps and counts of one process; its indices follow those appended before. */
static bool take_known(struct mstx_cluster *c, struct ms_taker *t)
{
    const size_t processes = c->process.n, steps = c->step.n;
    uint64_t groups;
    if (!take_hosts(c, t, processes) || !ms_take_items(t, &c->step))
        return false;
    for (size_t i = processes; i < c->process.n; i++)
        c->process.p[i].first_step += (uint32_t)steps;
    for (size_t i = steps; i < c->step.n; i++)
        c->step.p[i].process += (uint32_t)processes;
    ms_take_bytes(t, &groups, sizeof groups);
    for (uint64_t i = 0; i < groups && i < c->group.n && !t->bad; i++) {
        if (!take_counts(&c->group.p[i], t, (uint32_t)processes))
            return false;
    }
    return !t->bad;
}

static void move_calls(struct mstx_cl_call *p, size_t n, uint32_t processes, uint32_t steps)
{
    for (size_t i = 0; i < n; i++) {
        p[i].process += processes;
        p[i].step += p[i].step != MSTX_NO_STEP ? steps : 0;
    }
}

static enum ms_rc learn_ranks(struct mstx_cluster *c, struct ms_par *par, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    struct ms_gathered all;
    put_known(c, &b);
    enum ms_rc rc = ms_share_all(par, &b, MS_OK, &all, err);
    ms_buf_free(&b);
    if (rc != MS_OK)
        return rc;
    forget_known(c);
    for (unsigned i = 0; rc == MS_OK && i < ms_par_size(par); i++) {
        struct ms_taker t = ms_gathered_message(&all, i);
        if (i == ms_par_rank(par)) {
            const uint32_t processes = (uint32_t)c->process.n, steps = (uint32_t)c->step.n;
            move_calls(c->coll.p, c->coll.n, processes, steps);
            move_calls(c->p2p.p, c->p2p.n, processes, steps);
        }
        if (!take_known(c, &t))
            rc = t.bad ? ms_fail(err, MS_E_INTERNAL, "the message of process %u is damaged", i)
                       : ms_no_memory(err);
    }
    ms_gathered_free(&all);
    return ms_share_result(par, rc, err);
}

/* ---- the owner of each collective ------------------------------------------------------------ */

/* Returns the place that has this many calls before it. */
static size_t place_after(const struct mstx_cluster *c, double calls)
{
    for (size_t i = 0; i < c->group.n; i++) {
        const struct mstx_cl_group *g = &c->group.p[i];
        if (calls < (double)g->calls)
            return g->place + (size_t)(calls / (double)g->calls * g->seqs);
        calls -= (double)g->calls;
    }
    return c->to;
}

/* Sets end[p] to one past the last place of process p.  Ranges end where a blob of joins ends, so
 * that each blob is written by one process. */
static void deal_out(const struct mstx_cluster *c, unsigned k, double less, size_t *end)
{
    ms_assert(k >= 1 && less < 1);
    double all = 0;
    for (size_t i = 0; i < c->group.n; i++)
        all += (double)c->group.p[i].calls;
    const double share = (1 + less) / k;
    for (unsigned p = 0; p < k; p++) {
        const double until = share * (p + 1) - less;
        const size_t at = place_after(c, until > 0 ? until * all : 0);
        end[p] = p + 1 == k ? c->to : at - at % MSTX_JOINS_TOGETHER;
    }
}

static unsigned owner_of_place(const size_t *end, unsigned k, size_t place)
{
    ms_assert(k >= 1);
    unsigned p = 0;
    while (p + 1 < k && place >= end[p])
        p++;
    return p;
}

static unsigned owner_of_pair(const struct mstx_cluster *c, const struct mstx_cl_call *k,
                              unsigned processes)
{
    int32_t a, b;
    if (!mstx__cluster_ends(c, k, &a, &b))
        return 0;
    const uint64_t key = (uint64_t)k->group << 40 ^ (uint64_t)(uint32_t)a << 20 ^ (uint32_t)b;
    return (unsigned)((key * 0x9E3779B97F4A7C15u >> 33) % processes);
}

/* ---- sending calls to their owners -------------------------------------------- */

enum { NOBODY = UINT16_MAX, PIECE = (1 << 20) / sizeof(struct mstx_cl_call) };

struct deal {
    struct mstx_cluster *c;
    struct ms_par *par;
    unsigned k;
    const size_t *end;   /* one past the last place of each process; NULL: divides by rank pairs */
    uint64_t *to, *from; /* number of calls to send to, and to receive from, each process */
    uint16_t *owner;     /* process that joins the call, by call */
    const mstx_cl_calls *given;
    mstx_cl_calls taken;
    struct mstx_cl_call *piece; /* one message */
    struct ms_buf got;
};

static void find_owners(struct deal *d, const mstx_cl_calls *v)
{
    for (size_t i = 0; i < v->n; i++) {
        const struct mstx_cl_call *k = &v->p[i];
        const size_t place = d->end != NULL ? mstx__cluster_place(d->c, k) : 0;
        unsigned owner = NOBODY;
        if (d->end == NULL)
            owner = owner_of_pair(d->c, k, d->k);
        else if (place != SIZE_MAX)
            owner = owner_of_place(d->end, d->k, place);
        d->owner[i] = (uint16_t)owner;
        if (owner != NOBODY)
            d->to[owner]++;
        else
            d->c->strange++;
    }
}

static enum ms_rc share_counts(struct deal *d, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    struct ms_gathered all;
    ms_put_bytes(&b, d->to, d->k * sizeof *d->to);
    enum ms_rc rc = ms_share_all(d->par, &b, MS_OK, &all, err);
    ms_buf_free(&b);
    for (unsigned i = 0; rc == MS_OK && i < d->k; i++) {
        struct ms_taker t = ms_gathered_message(&all, i);
        for (unsigned p = 0; p <= ms_par_rank(d->par); p++)
            ms_take_bytes(&t, &d->from[i], sizeof d->from[i]);
    }
    if (rc == MS_OK)
        ms_gathered_free(&all);
    return rc;
}

static uint64_t all_of(const uint64_t *v, unsigned n)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += v[i];
    return sum;
}

/* Allocates all memory before the first message, because a process that fails later would leave the
 * others waiting. */
static bool make_room(struct deal *d)
{
    d->piece = ms_calloc(PIECE, sizeof *d->piece);
    return d->piece != NULL && ms_buf_room(&d->got, PIECE * sizeof *d->piece) != NULL &&
           ms_vec_reserve(&d->taken, all_of(d->from, d->k) + 1);
}

static enum ms_rc send_calls(struct deal *d, unsigned to, struct ms_err *err)
{
    ms_assert(to != ms_par_rank(d->par) && to < d->k);
    size_t n = 0;
    for (size_t i = 0; i < d->given->n; i++) {
        if (d->owner[i] != to)
            continue;
        d->piece[n++] = d->given->p[i];
        if (n == PIECE) {
            MS_TRY(ms_par_send(d->par, to, d->piece, n * sizeof *d->piece, err));
            n = 0;
        }
    }
    return n != 0 ? ms_par_send(d->par, to, d->piece, n * sizeof *d->piece, err) : MS_OK;
}

static enum ms_rc receive_calls(struct deal *d, unsigned from, struct ms_err *err)
{
    ms_assert(from != ms_par_rank(d->par) && from < d->k);
    struct mstx_cl_call *p = d->taken.p + all_of(d->from, from);
    for (uint64_t i = 0; i < d->from[from]; i += PIECE) {
        const uint64_t n = d->from[from] - i < PIECE ? d->from[from] - i : PIECE;
        unsigned who;
        MS_TRY(ms_par_recv(d->par, (int)from, &d->got, &who, err));
        if (d->got.n != n * sizeof *p)
            return ms_fail(err, MS_E_INTERNAL, "process %u sent %zu bytes instead of %zu", from,
                           d->got.n, (size_t)n * sizeof *p);
        memcpy(p + i, d->got.p, d->got.n);
    }
    return MS_OK;
}

static void keep_calls(struct deal *d, unsigned own)
{
    struct mstx_cl_call *p = d->taken.p + all_of(d->from, own);
    for (size_t i = 0; i < d->given->n; i++) {
        if (d->owner[i] == own)
            *p++ = d->given->p[i];
    }
}

/* Exchanges calls in rounds.  In each round processes exchange in pairs and the lower rank sends
 * first, so that no two processes wait for each other. */
static enum ms_rc exchange_calls(struct deal *d, struct ms_err *err)
{
    const unsigned own = ms_par_rank(d->par);
    for (unsigned round = 0; round < d->k; round++) {
        const unsigned with = (round + d->k - own) % d->k;
        if (with == own)
            keep_calls(d, own);
        if (with > own)
            MS_TRY(send_calls(d, with, err));
        if (with != own)
            MS_TRY(receive_calls(d, with, err));
        if (with < own)
            MS_TRY(send_calls(d, with, err));
    }
    d->taken.n = all_of(d->from, d->k);
    return MS_OK;
}

static enum ms_rc pass_calls_on(struct deal *d, struct ms_err *err)
{
    d->to = ms_calloc(d->k, sizeof *d->to);
    d->from = ms_calloc(d->k, sizeof *d->from);
    d->owner = ms_calloc(d->given->n + 1, sizeof *d->owner);
    const bool ok = d->to != NULL && d->from != NULL && d->owner != NULL;
    MS_TRY(ms_share_result(d->par, ok ? MS_OK : ms_no_memory(err), err));
    find_owners(d, d->given);
    MS_TRY(share_counts(d, err));
    MS_TRY(ms_share_result(d->par, make_room(d) ? MS_OK : ms_no_memory(err), err));
    return exchange_calls(d, err);
}

/* Replaces the calls of some ranks by the calls that this process joins, in the order of their
 * ranks. */
static enum ms_rc deal_calls(struct mstx_cluster *c, struct ms_par *par, const size_t *end,
                             bool is_coll, struct ms_err *err)
{
    mstx_cl_calls *given = is_coll ? &c->coll : &c->p2p;
    struct deal d = {.c = c,
                     .par = par,
                     .k = ms_par_size(par),
                     .end = is_coll ? end : NULL,
                     .given = given,
                     .got = {.max = MS_SHARE_MAX}};
    enum ms_rc rc = pass_calls_on(&d, err);
    if (rc == MS_OK) {
        ms_vec_free(given);
        *given = d.taken;
    } else {
        ms_vec_free(&d.taken);
    }
    ms_free(d.to);
    ms_free(d.from);
    ms_free(d.owner);
    ms_free(d.piece);
    ms_buf_free(&d.got);
    return rc;
}

enum ms_rc mstx__cluster_share(struct mstx_cluster *c, struct ms_par *par, double less,
                               struct ms_err *err)
{
    ms_assert(less >= 0 && less < 1);
    const unsigned k = ms_par_size(par), own = ms_par_rank(par);
    enum ms_rc rc = ms_share_result(par, c->no_memory ? ms_no_memory(err) : MS_OK, err);
    if (rc == MS_OK && k > 1)
        rc = learn_ranks(c, par, err);
    if (rc != MS_OK)
        return rc;
    mstx__cluster_find_places(c);
    if (k == 1)
        return MS_OK;
    size_t *end = ms_calloc(k, sizeof *end);
    rc = ms_share_result(par, end != NULL ? MS_OK : ms_no_memory(err), err);
    if (rc == MS_OK) {
        deal_out(c, k, less, end);
        rc = deal_calls(c, par, end, true, err);
    }
    if (rc == MS_OK)
        rc = deal_calls(c, par, NULL, false, err);
    if (rc == MS_OK) {
        c->from = own != 0 ? end[own - 1] : 0;
        c->to = end[own];
    }
    ms_free(end);
    return rc;
}

/* ---- bringing results to process 0 ------------------------------------------------------------ */

static void put_notes(struct ms_buf *b, const struct mstx_cl_note *p, size_t n)
{
    const uint64_t count = n;
    ms_put_bytes(b, &count, sizeof count);
    for (size_t i = 0; i < n; i++) {
        ms_put_bytes(b, &p[i].rank, sizeof p[i].rank);
        ms_put_bytes(b, &p[i].value, sizeof p[i].value);
        ms_put_bytes(b, &p[i].at_ns, sizeof p[i].at_ns);
        ms_put_bytes(b, &p[i].group, sizeof p[i].group);
        ms_put_bytes(b, &p[i].seq, sizeof p[i].seq);
        ms_put_bytes(b, &p[i].message.n, sizeof p[i].message.n);
        ms_put_bytes(b, p[i].message.args, p[i].message.n);
    }
}

static void take_note(struct ms_taker *t, struct mstx_cl_note *n)
{
    ms_take_bytes(t, &n->rank, sizeof n->rank);
    ms_take_bytes(t, &n->value, sizeof n->value);
    ms_take_bytes(t, &n->at_ns, sizeof n->at_ns);
    ms_take_bytes(t, &n->group, sizeof n->group);
    ms_take_bytes(t, &n->seq, sizeof n->seq);
    ms_take_bytes(t, &n->message.n, sizeof n->message.n);
    t->bad |= n->message.n >= sizeof n->message.args;
    if (!t->bad)
        ms_take_bytes(t, n->message.args, n->message.n);
}

static bool take_quarrels(struct mstx_cluster *c, struct ms_taker *t)
{
    uint64_t n;
    ms_take_bytes(t, &n, sizeof n);
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        struct mstx_cl_note *slot = ms_vec_push(&c->quarrel);
        if (slot == NULL)
            return false;
        *slot = (struct mstx_cl_note){
            .kind = "mismatch", .severity = "error", .first_step = -1, .last_step = -1};
        ms_message_begin(&slot->message, &mstx_note_mismatch);
        take_note(t, slot);
    }
    return true;
}

static bool take_missing(struct mstx_cluster *c, struct ms_taker *t)
{
    uint64_t n;
    ms_take_bytes(t, &n, sizeof n);
    for (uint64_t i = 0; i < n && !t->bad; i++) {
        struct mstx_cl_note *slot = ms_vec_push(&c->missing);
        if (slot == NULL)
            return false;
        *slot = (struct mstx_cl_note){
            .kind = "hang", .severity = "error", .first_step = -1, .last_step = -1};
        ms_message_begin(&slot->message, &mstx_note_not_joined);
        take_note(t, slot);
    }
    return true;
}

static void put_found(const struct mstx_cluster *c, struct ms_buf *b)
{
    ms_put_bytes(b, &c->strange, sizeof c->strange);
    for (size_t i = 0; i < c->step.n; i++) {
        ms_put_bytes(b, &c->step.p[i].waiting_ns, sizeof c->step.p[i].waiting_ns);
        ms_put_bytes(b, &c->step.p[i].blame_ns, sizeof c->step.p[i].blame_ns);
    }
    put_notes(b, c->quarrel.p, c->quarrel.n);
    put_notes(b, c->missing.p, c->missing.n);
    ms_put_items(b, &c->link);
    ms_put_items(b, &c->open);
}

static bool take_found(struct mstx_cluster *c, struct ms_taker *t)
{
    const size_t links = c->link.n, open = c->open.n;
    const size_t quarrels = c->quarrel.n, missing = c->missing.n;
    uint64_t strange;
    ms_take_bytes(t, &strange, sizeof strange);
    c->strange += strange;
    for (size_t i = 0; i < c->step.n; i++) {
        int64_t waiting, blame;
        ms_take_bytes(t, &waiting, sizeof waiting);
        ms_take_bytes(t, &blame, sizeof blame);
        c->step.p[i].waiting_ns += waiting;
        c->step.p[i].blame_ns += blame;
    }
    if (!take_quarrels(c, t) || !take_missing(c, t) || !ms_take_items(t, &c->link) ||
        !ms_take_items(t, &c->open))
        return false;
    mstx__cluster_forget_repeated(c, quarrels, missing);
    for (size_t i = links; i < c->link.n; i++)
        c->link.p[i].first_open += open;
    return true;
}

enum ms_rc mstx__cluster_gather(struct mstx_cluster *c, struct ms_par *par, struct ms_err *err)
{
    struct ms_buf b = {.max = MS_SHARE_MAX};
    struct ms_gathered all;
    const bool is_first = ms_par_rank(par) == 0;
    const enum ms_rc mine = c->no_memory ? ms_no_memory(err) : MS_OK;
    if (ms_par_size(par) == 1)
        return mine;
    if (!is_first && mine == MS_OK)
        put_found(c, &b);
    enum ms_rc rc = ms_share_gather(par, &b, mine, &all, err);
    ms_buf_free(&b);
    for (unsigned i = 1; rc == MS_OK && is_first && i < ms_par_size(par); i++) {
        struct ms_taker t = ms_gathered_message(&all, i);
        if (!take_found(c, &t) || t.bad)
            rc = t.bad ? ms_fail(err, MS_E_INTERNAL, "the results of process %u are damaged", i)
                       : ms_no_memory(err);
    }
    ms_gathered_free(&all);
    return rc;
}
