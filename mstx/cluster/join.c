/* SPDX-License-Identifier: MIT
 *
 * join: one collective in the calls of all its ranks.
 *
 * The place of a call is the first place of its communicator plus the sequence number, so calls of
 * one collective are brought together by a counting sort.  The last rank to arrive does not wait,
 * so the shortest call is the transfer time, and the waiting of each other rank is the excess of
 * its call over the shortest one: clocks of hosts are not compared.
 */
#include "mstx/cluster/join.h"

#include "mstx/format/note_kinds.h"

#include "mstx/format/comm_rates.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- places ------------------------------------------------------------------- */

/* Sequence numbers have few gaps: a number beyond GAPS times the number of calls is a damaged
 * record. */
enum { GAPS = 4, GAPS_LEAST = 4096 };

static void count_hosts(const struct mstx_cluster *c, struct mstx_cl_group *g)
{
    g->hosts = g->members.n != 0;
    for (size_t m = 1; m < g->members.n && g->hosts < 2; m++)
        g->hosts += c->process.p[g->members.p[m]].host != c->process.p[g->members.p[0]].host;
}

void mstx__cluster_find_places(struct mstx_cluster *c)
{
    size_t place = 0;
    for (size_t i = 0; i < c->group.n; i++) {
        struct mstx_cl_group *g = &c->group.p[i];
        const uint64_t most = g->calls * GAPS + GAPS_LEAST;
        const uint64_t span = g->calls != 0 ? (uint64_t)g->last_seq - g->first_seq + 1 : 0;
        g->seqs = (uint32_t)(span < most ? span : most);
        g->place = place;
        place += g->seqs;
        count_hosts(c, g);
    }
    c->from = 0;
    c->to = place;
}

size_t mstx__cluster_place(const struct mstx_cluster *c, const struct mstx_cl_call *k)
{
    ms_assert(k->group < c->group.n);
    const struct mstx_cl_group *g = &c->group.p[k->group];
    const uint32_t at = k->seq - g->first_seq;
    return at < g->seqs ? g->place + at : SIZE_MAX;
}

/* Calls ordered by place, for the places that this process joins. */
struct places {
    uint32_t *begin; /* by place, from c->from: its first call in order; one more than places */
    uint32_t *order; /* of calls in coll */
    size_t n;
};

static void free_places(struct places *p)
{
    ms_free(p->begin);
    ms_free(p->order);
}

static void count_places(struct mstx_cluster *c, uint32_t *count, size_t n)
{
    for (size_t i = 0; i < c->coll.n; i++) {
        const size_t at = mstx__cluster_place(c, &c->coll.p[i]) - c->from;
        if (at < n)
            count[at]++;
        else
            c->strange++;
    }
}

static bool make_places(struct mstx_cluster *c, struct places *p)
{
    ms_assert(c->from <= c->to);
    *p = (struct places){.n = c->to - c->from};
    p->begin = ms_calloc(p->n + 2, sizeof *p->begin);
    p->order = ms_calloc(c->coll.n + 1, sizeof *p->order);
    if (p->begin == NULL || p->order == NULL || c->coll.n > UINT32_MAX / 2) {
        free_places(p);
        return false;
    }
    uint32_t *count = p->begin + 1; /* shifted by one: ends become begins while placing */
    count_places(c, count, p->n);
    uint32_t sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t here = count[i];
        count[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < c->coll.n; i++) {
        const size_t at = mstx__cluster_place(c, &c->coll.p[i]) - c->from;
        if (at < p->n)
            p->order[count[at]++] = (uint32_t)i;
    }
    return true;
}

/* ---- one collective ------------------------------------------------------------- */

/* A mismatch: the call that most ranks made (a), and one that differs (b). */
struct quarrel {
    const struct mstx_cl_call *a, *b;
};

static bool has_equal_bytes(unsigned op)
{
    return (mstx_comm_is_barrier(op) && op != MSTX_COMM_REDUCE_SCATTER_V &&
            op != MSTX_COMM_ALLGATHER_V && op != MSTX_COMM_ALLTOALL_V &&
            op != MSTX_COMM_ALLTOALL_W) ||
           op == MSTX_COMM_BROADCAST || op == MSTX_COMM_REDUCE;
}

static bool is_same_call(const struct mstx_cl_call *a, const struct mstx_cl_call *b)
{
    return a->op == b->op &&
           (!has_equal_bytes(a->op) || (a->bytes == b->bytes && a->dtype == b->dtype));
}

static struct mstx_cl_note note_of(const char *kind, int32_t rank, double value,
                                   const struct mstx_cl_call *k)
{
    return (struct mstx_cl_note){.kind = kind,
                                 .severity = "error",
                                 .rank = rank,
                                 .first_step = -1,
                                 .last_step = -1,
                                 .value = value,
                                 .at_ns = k->start_ns,
                                 .group = k->group,
                                 .seq = k->seq};
}

static void note_mismatch(struct mstx_cluster *c, const struct quarrel *q, const char *comm)
{
    ms_assert(q->a != NULL && q->b != NULL && q->a->seq == q->b->seq);
    const int32_t rank_a = c->process.p[q->a->process].rank;
    const int32_t rank_b = c->process.p[q->b->process].rank;
    struct mstx_cl_note *n = ms_vec_push(&c->quarrel);
    if (n == NULL) {
        c->no_memory = true;
        return;
    }
    *n = note_of("mismatch", rank_b, q->a->seq, q->a);
    n->at_ns = q->b->start_ns;
    ms_message_begin(&n->message, &mstx_note_mismatch);
    ms_message_i64(&n->message, "rank", rank_a);
    ms_message_i64(&n->message, "other_rank", rank_b);
    ms_message_i64(&n->message, "seq", q->a->seq);
    ms_message_str(&n->message, "comm", ms_str_of(comm));
    ms_message_str(&n->message, "op", ms_str_of(mstx_comm_op_text(q->a->op)));
    ms_message_i64(&n->message, "bytes", (int64_t)q->a->bytes);
    ms_message_str(&n->message, "type", ms_str_of(mstx_comm_type_text(q->a->dtype)));
    ms_message_str(&n->message, "other_op", ms_str_of(mstx_comm_op_text(q->b->op)));
    ms_message_i64(&n->message, "other_bytes", (int64_t)q->b->bytes);
    ms_message_str(&n->message, "other_type", ms_str_of(mstx_comm_type_text(q->b->dtype)));
}

static bool tells_waiting(const struct mstx_cl_call *k)
{
    return !(k->flags & MSTX_CF_ASYNC) && !k->unfinished;
}

/* Adds the waiting time of each rank to its step, and the sum to the join. */
static void measure_waiting(struct mstx_cluster *c, const uint32_t *at, struct mstx_cl_join *j)
{
    ms_assert(j->ranks >= 2);
    int64_t least = INT64_MAX, second = INT64_MAX, most = 0;
    size_t last = 0;
    for (uint32_t i = 0; i < j->ranks; i++) {
        const int64_t d = c->coll.p[at[i]].dur_ns;
        if (d < least) {
            second = least;
            least = d;
            last = i;
        } else if (d < second) {
            second = d;
        }
        most = d > most ? d : most;
    }
    j->transfer_ns = least;
    j->skew_ns = most - least;
    j->last = c->coll.p[at[last]].process;
    for (uint32_t i = 0; i < j->ranks; i++) {
        const struct mstx_cl_call *k = &c->coll.p[at[i]];
        const int64_t waited = k->dur_ns - least;
        j->waited_ns += waited;
        if (k->step != MSTX_NO_STEP)
            c->step.p[k->step].waiting_ns += waited;
    }
    const uint32_t step = c->coll.p[at[last]].step;
    if (step != MSTX_NO_STEP && second != INT64_MAX)
        c->step.p[step].blame_ns += second - least;
}

static void join_one(struct mstx_cluster *c, const uint32_t *at, uint32_t n, bool *quarrels)
{
    ms_assert(n >= 1);
    const struct mstx_cl_call *first = &c->coll.p[at[0]];
    const struct mstx_cl_group *g = &c->group.p[first->group];
    struct quarrel q = {first, NULL};
    bool tells = true, once = true;
    uint32_t alike = 0;
    const struct mstx_cl_join *before = c->join.n != 0 ? &c->join.p[c->join.n - 1] : NULL;
    ms_assert(before == NULL || before->group < first->group ||
              (before->group == first->group && before->seq < first->seq));
    struct mstx_cl_join *j = ms_vec_push(&c->join);
    if (j == NULL) {
        c->no_memory = true;
        return;
    }
    *j = (struct mstx_cl_join){.group = first->group,
                               .seq = first->seq,
                               .ranks = n,
                               .last = UINT32_MAX,
                               .step = MSTX_NO_STEP,
                               .start_ns = first->start_ns,
                               .transfer_ns = -1,
                               .op = first->op,
                               .bytes = first->bytes,
                               .agrees = true};
    if (first->step != MSTX_NO_STEP)
        j->step = c->step.p[first->step].number;
    for (uint32_t i = 0; i < n; i++) {
        const struct mstx_cl_call *k = &c->coll.p[at[i]];
        tells &= tells_waiting(k);
        once &= i == 0 || c->coll.p[at[i - 1]].process != k->process;
        j->start_ns = k->start_ns < j->start_ns ? k->start_ns : j->start_ns;
        alike += is_same_call(first, k);
        if (q.b == NULL && !is_same_call(first, k))
            q.b = k;
        if (k->bytes > j->bytes)
            j->bytes = k->bytes;
    }
    j->agrees = q.b == NULL;
    if (q.b != NULL && !*quarrels) {
        *quarrels = true; /* after the first mismatch all collectives differ */
        if (alike * 2 < n)
            q = (struct quarrel){q.b, first};
        note_mismatch(c, &q, g->name);
    }
    const bool complete = n >= 2 && (g->size < 0 || (int64_t)n == g->size);
    if (complete && tells && once && j->agrees && mstx_comm_is_barrier(j->op))
        measure_waiting(c, at, j);
}

/* ---- missing ranks --------------------------------------------------------------- */

static void note_missing(struct mstx_cluster *c, uint32_t process, const struct mstx_cl_call *k,
                         uint32_t waiting)
{
    ms_assert(process < c->process.n);
    const int32_t rank = c->process.p[process].rank;
    struct mstx_cl_note *n = ms_vec_push(&c->missing);
    if (n == NULL) {
        c->no_memory = true;
        return;
    }
    *n = note_of("hang", rank, waiting, k);
    ms_message_begin(&n->message, &mstx_note_not_joined);
    ms_message_i64(&n->message, "rank", rank);
    ms_message_str(&n->message, "op", ms_str_of(mstx_comm_op_text(k->op)));
    ms_message_i64(&n->message, "seq", k->seq);
    ms_message_str(&n->message, "comm", ms_str_of(c->group.p[k->group].name));
    ms_message_i64(&n->message, "waiting", waiting);
}

/* Notes the ranks that are missing from a collective in which others still wait at the end of the
 * run. */
static bool find_missing(struct mstx_cluster *c, const struct mstx_cl_group *g, const uint32_t *at,
                         uint32_t n)
{
    ms_assert(n >= 1);
    uint32_t waiting = 0, came = 0;
    for (uint32_t i = 0; i < n; i++)
        waiting += c->coll.p[at[i]].unfinished;
    if (waiting == 0 || n >= g->members.n)
        return false;
    for (size_t m = 0; m < g->members.n && !c->no_memory; m++) {
        if (came < n && c->coll.p[at[came]].process == g->members.p[m])
            came++;
        else
            note_missing(c, g->members.p[m], &c->coll.p[at[0]], waiting);
    }
    return true;
}

/* ---- all of them ----------------------------------------------------------------- */

/* Prefetches the calls of the next collective while the current one is joined: memory holds the
 * calls rank by rank, so calls of one collective are far apart. */
static void fetch_next(const struct mstx_cluster *c, const struct places *p, const uint32_t *begin)
{
    if (begin + 1 >= p->begin + p->n)
        return;
    for (uint32_t i = begin[1]; i < begin[2]; i++)
        __builtin_prefetch(&c->coll.p[p->order[i]]);
}

/* Joins the collectives of a communicator whose places are in [c->from, c->to).  Only the first
 * mismatch and the first collective with missing ranks are noted, because all later ones follow
 * from them. */
static void join_group(struct mstx_cluster *c, const struct mstx_cl_group *g,
                       const struct places *p)
{
    ms_assert(p->n == c->to - c->from);
    const size_t from = g->place > c->from ? g->place : c->from;
    const size_t end = g->place + g->seqs, to = end < c->to ? end : c->to;
    bool quarrels = false, misses = false;
    for (size_t k = from; k < to && !c->no_memory; k++) {
        const uint32_t *begin = &p->begin[k - c->from];
        const uint32_t n = begin[1] - begin[0];
        fetch_next(c, p, begin);
        if (n == 0)
            continue;
        join_one(c, p->order + begin[0], n, &quarrels);
        if (!misses)
            misses = find_missing(c, g, p->order + begin[0], n);
    }
}

void mstx__cluster_join(struct mstx_cluster *c)
{
    struct places p;
    if (c->no_memory || !make_places(c, &p)) {
        c->no_memory = true;
        return;
    }
    (void)!ms_vec_reserve(&c->join, p.n < c->coll.n ? p.n : c->coll.n);
    for (size_t g = 0; g < c->group.n && !c->no_memory; g++)
        join_group(c, &c->group.p[g], &p);
    free_places(&p);
}

/* ---- several ranges ------------------------------------------------------------------- */

/* Returns true when another collective of the same communicator has a note already: of ranges of one
 * communicator, only the first one reports. */
static bool is_repeated(const struct mstx_cl_note *p, size_t n, const struct mstx_cl_note *one)
{
    ms_assert(n == 0 || p != NULL);
    for (size_t i = n; i-- > 0;) {
        if (p[i].group == one->group)
            return p[i].seq != one->seq;
    }
    return false;
}

static size_t keep_first(struct mstx_cl_note *p, size_t kept, size_t n)
{
    for (size_t i = kept; i < n; i++) {
        if (!is_repeated(p, kept, &p[i]))
            p[kept++] = p[i];
    }
    return kept;
}

void mstx__cluster_forget_repeated(struct mstx_cluster *c, size_t quarrels, size_t missing)
{
    ms_assert(quarrels <= c->quarrel.n && missing <= c->missing.n);
    c->quarrel.n = keep_first(c->quarrel.p, quarrels, c->quarrel.n);
    c->missing.n = keep_first(c->missing.p, missing, c->missing.n);
}
