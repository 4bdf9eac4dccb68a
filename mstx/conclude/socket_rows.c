/* SPDX-License-Identifier: MIT
 *
 * socket_rows: see the header.
 */
#include "mstx/conclude/socket_rows.h"

#include "mstx/cluster/connections.h"
#include "mstx/conclude/finding_kinds.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <inttypes.h>
#include <stdlib.h>

/* A sample of a connection, as it was recorded. */
struct sample {
    struct ms_str self, peer; /* ADDRESS/PORT */
    uint32_t process;
    int64_t at_ns;
    struct mstx_conn_end end;
};

struct reading {
    struct mstx_tl *tl;
    uint32_t process;
    MS_VEC(struct sample) list;
    MS_VEC(struct mstx_conn_end) end;
};

/* ---- reading ----------------------------------------------------------------------- */

static double number_in(struct ms_str text, const char *key)
{
    struct ms_str part;
    uint64_t v;
    while (ms_str_split(&text, ' ', &part)) {
        struct ms_str value = part, name = MS_STR("");
        ms_str_split(&value, '=', &name);
        if (ms_str_is(name, key) && value.p != NULL && ms_str_u64(value, &v))
            return (double)v;
    }
    return 0;
}

static enum ms_rc take_mark(void *ctx, const struct mstx_event *ev, struct ms_err *err)
{
    struct reading *r = ctx;
    struct ms_str text = mstx_tl_text(r->tl, ev->name), self = MS_STR(""), peer = MS_STR("");
    ms_str_split(&text, ' ', &self);
    ms_str_split(&text, ' ', &peer);
    if (text.p == NULL)
        return MS_OK;
    struct sample *s = ms_vec_push(&r->list);
    if (s == NULL)
        return ms_no_memory(err);
    const int64_t since = mstx_tl_process(r->tl, r->process)->start_ns;
    const double rwnd = number_in(text, "rwnd_us"), busy = number_in(text, "busy_us");
    *s = (struct sample){.self = self,
                         .peer = peer,
                         .process = r->process,
                         .at_ns = ev->start_ns,
                         .end = {.min_rtt_us = number_in(text, "min_rtt_us"),
                                 .busy_us = busy > rwnd ? busy - rwnd : 0,
                                 .sent = number_in(text, "sent"),
                                 .retransmitted = number_in(text, "retrans"),
                                 .span_us = (double)(ev->start_ns - since) / 1e3}};
    return MS_OK;
}

static enum ms_rc read_samples(struct reading *r, struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(r->tl); i++) {
        const struct mstx_track *t = mstx_tl_track(r->tl, i);
        r->process = t->process;
        if (ms_str_is(t->domain, MSTX_SOCKET_DOMAIN) &&
            mstx_tl_process(r->tl, t->process)->rank >= 0)
            MS_TRY(mstx_tl_walk(r->tl, i, NULL, take_mark, r, err));
    }
    return mstx__tl_check(r->tl, err);
}

/* ---- both ends --------------------------------------------------------------------- */

static int compare_ends(struct ms_str a, struct ms_str b, struct ms_str c, struct ms_str d)
{
    const int first = ms_str_cmp(a, c);
    return first != 0 ? first : ms_str_cmp(b, d);
}

/* Orders the ends of one connection together: by the lesser address, then the greater one. */
static int by_connection(const void *pa, const void *pb)
{
    const struct sample *a = pa, *b = pb;
    const bool a_low = ms_str_cmp(a->self, a->peer) < 0, b_low = ms_str_cmp(b->self, b->peer) < 0;
    const int order = compare_ends(a_low ? a->self : a->peer, a_low ? a->peer : a->self,
                                   b_low ? b->self : b->peer, b_low ? b->peer : b->self);
    if (order != 0)
        return order;
    return MS_ORDER(a->process, b->process, MS_ORDER(a->at_ns, b->at_ns, 0));
}

static bool is_same_connection(const struct sample *a, const struct sample *b)
{
    return (ms_str_eq(a->self, b->self) && ms_str_eq(a->peer, b->peer)) ||
           (ms_str_eq(a->self, b->peer) && ms_str_eq(a->peer, b->self));
}

/* Adds the newest samples of both ends of a connection, whose samples are [from, to).  A connection of which only
 * one end is known leads out of the job. */
static bool add_ends(struct reading *r, size_t from, size_t to)
{
    const struct sample *a = &r->list.p[from], *b = &r->list.p[to - 1];
    for (size_t i = from; i < to && r->list.p[i].process == a->process; i++)
        a = &r->list.p[i];
    if (a->process == b->process)
        return true;
    struct mstx_conn_end *ends = ms_vec_push(&r->end), *second = ms_vec_push(&r->end);
    if (ends == NULL || second == NULL)
        return false;
    r->end.p[r->end.n - 2] = a->end;
    r->end.p[r->end.n - 1] = b->end;
    r->end.p[r->end.n - 2].rank = r->end.p[r->end.n - 1].peer = a->process;
    r->end.p[r->end.n - 2].peer = r->end.p[r->end.n - 1].rank = b->process;
    return true;
}

static enum ms_rc join_ends(struct reading *r, struct ms_err *err)
{
    if (r->list.n > 1)
        qsort(r->list.p, r->list.n, sizeof *r->list.p, by_connection);
    for (size_t i = 0, last; i < r->list.n; i = last) {
        for (last = i + 1; last < r->list.n && is_same_connection(&r->list.p[i], &r->list.p[last]);)
            last++;
        if (!add_ends(r, i, last))
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* ---- findings ---------------------------------------------------------------------- */

/* Marks the processes of ranks that times of transfers have named already. */
static bool mark_named(struct mstx_tl *tl, const mstx_findings *known, bool *named)
{
    MS_VEC(int64_t) rank = {0};
    bool ok = true;
    for (size_t i = 0; i < known->n && ok; i++) {
        if (strcmp(known->p[i].kind, "slow_link") != 0)
            continue;
        int64_t *slot = ms_vec_push(&rank);
        ok = slot != NULL;
        if (ok)
            *slot = known->p[i].rank;
    }
    ms_vec_sort(&rank, ms_order_i64);
    for (size_t k = 0; k < mstx_tl_process_count(tl) && rank.n != 0; k++) {
        const int64_t of = mstx_tl_process(tl, (uint32_t)k)->rank;
        named[k] = bsearch(&of, rank.p, rank.n, sizeof of, ms_order_i64) != NULL;
    }
    ms_vec_free(&rank);
    return ok;
}

/* Returns by how much a connection is worse than the others: a multiple, or of losses the part. */
static double value_of(const struct mstx_slow_conn *s)
{
    return s->by == MSTX_SLOW_RATE   ? s->usual / s->value
           : s->by == MSTX_SLOW_LOSS ? s->value
                                     : s->value / s->usual;
}

static void say_measure(struct ms_message *m, const struct mstx_slow_conn *s)
{
    switch (s->by) {
    case MSTX_SLOW_RATE:
        ms_message_i64(m, "rate", (int64_t)s->value);
        ms_message_i64(m, "usual_rate", (int64_t)s->usual);
        break;
    case MSTX_SLOW_LOSS:
        ms_message_f64(m, "lost", s->value);
        ms_message_f64(m, "usual_lost", s->usual);
        break;
    case MSTX_SLOW_TRIP:
        ms_message_i64(m, "trip_ns", (int64_t)(s->value * 1e3));
        ms_message_i64(m, "usual_ns", (int64_t)(s->usual * 1e3));
        break;
    }
}

static enum ms_rc add_finding(struct mstx_tl *tl, const struct mstx_slow_conn *s, mstx_findings *to,
                              struct ms_err *err)
{
    const bool is_pair = s->peer != UINT32_MAX;
    const int32_t rank = mstx_tl_process(tl, s->rank)->rank;
    const int32_t peer = is_pair ? mstx_tl_process(tl, s->peer)->rank : -1;
    struct mstx_finding *f = mstx__finding_add(to, "slow_link", &mstx_say_slow_connection,
                                               MSTX_WARNING_FINDING, rank, value_of(s));
    if (f == NULL)
        return ms_no_memory(err);
    ms_message_i64(&f->message, "rank", rank);
    ms_message_str(&f->message, "host", mstx_tl_process(tl, s->rank)->host);
    if (is_pair) {
        ms_message_i64(&f->message, "peer", peer);
        ms_message_str(&f->message, "peer_host", mstx_tl_process(tl, s->peer)->host);
    }
    say_measure(&f->message, s);
    ms_message_f64(&f->message, "busy", s->busy);
    return MS_OK;
}

/* Adds the slow connections, each rank once; the busiest come first. */
static enum ms_rc add_findings(struct mstx_tl *tl, const mstx_slow_conns *slow, bool *named,
                               mstx_findings *to, struct ms_err *err)
{
    for (size_t i = 0; i < slow->n; i++) {
        const struct mstx_slow_conn *s = &slow->p[i];
        if (named[s->rank] || (s->peer != UINT32_MAX && named[s->peer]))
            continue;
        MS_TRY(add_finding(tl, s, to, err));
        named[s->rank] = true;
    }
    return MS_OK;
}

static enum ms_rc judge(struct reading *r, mstx_findings *to, struct ms_err *err)
{
    mstx_slow_conns slow = {0};
    const uint32_t processes = (uint32_t)mstx_tl_process_count(r->tl);
    bool *named = ms_calloc((size_t)processes + 1, sizeof *named);
    const bool ok = named != NULL && mark_named(r->tl, to, named) &&
                    mstx__connections(r->end.p, r->end.n, processes, &slow);
    const enum ms_rc rc = ok ? add_findings(r->tl, &slow, named, to, err) : ms_no_memory(err);
    ms_vec_free(&slow);
    ms_free(named);
    return rc;
}

enum ms_rc mstx__find_slow_connections(struct mstx_tl *tl, mstx_findings *to, struct ms_err *err)
{
    struct reading r = {.tl = tl};
    enum ms_rc rc = read_samples(&r, err);
    if (rc == MS_OK)
        rc = join_ends(&r, err);
    if (rc == MS_OK && r.end.n != 0)
        rc = judge(&r, to, err);
    ms_vec_free(&r.list);
    ms_vec_free(&r.end);
    return rc;
}
