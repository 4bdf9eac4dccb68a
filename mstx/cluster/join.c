/* SPDX-License-Identifier: MIT
 *
 * cl_join: one collective in the calls of all its ranks.
 *
 * Place of a call: where its communicator begins, and its number there, so calls come together by
 * counting and without a sort.  The last to come waits for nobody, so the shortest call is the
 * transfer and what the others took longer is their waiting: no clock is compared.
 */
#include "mstx/tl_cluster.h"

#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- formulas ----------------------------------------------------------------- */

bool mstx_cl_is_barrier(unsigned op)
{
    switch (op) {
    case MSTX_COMM_BARRIER:
    case MSTX_COMM_ALLREDUCE:
    case MSTX_COMM_REDUCE_SCATTER:
    case MSTX_COMM_REDUCE_SCATTER_V:
    case MSTX_COMM_ALLGATHER:
    case MSTX_COMM_ALLGATHER_V:
    case MSTX_COMM_ALLTOALL:
    case MSTX_COMM_ALLTOALL_V:
    case MSTX_COMM_ALLTOALL_W:
        return true;
    default:
        return false;
    }
}

/* Do calls count what one rank gives to or has from each of the others? */
static bool counts_a_share(unsigned op)
{
    return op == MSTX_COMM_REDUCE_SCATTER || op == MSTX_COMM_ALLGATHER ||
           op == MSTX_COMM_ALLTOALL || op == MSTX_COMM_GATHER || op == MSTX_COMM_SCATTER;
}

double mstx_cl_algorithm_bytes(unsigned op, uint64_t bytes, int64_t n)
{
    if (op == MSTX_COMM_BARRIER)
        return 0;
    return counts_a_share(op) ? (double)bytes * (double)n : (double)bytes;
}

double mstx_cl_bus_factor(unsigned op, int64_t n)
{
    const double others = n > 0 ? (double)(n - 1) / (double)n : 0;
    if (op == MSTX_COMM_ALLREDUCE)
        return 2 * others;
    if (counts_a_share(op) || op == MSTX_COMM_ALLTOALL_V || op == MSTX_COMM_REDUCE_SCATTER_V ||
        op == MSTX_COMM_ALLGATHER_V || op == MSTX_COMM_ALLTOALL_W)
        return others;
    return 1;
}

/* v[at] becomes what it would be in sorted order, with nothing greater before and nothing smaller
 * behind it. */
static void put_in_place(double *v, size_t n, size_t at)
{
    size_t from = 0, last = n - 1; /* it lies within */
    while (from < last) {
        const double pivot = v[from + (last - from) / 2];
        size_t i = from, k = last;
        for (;; i++, k--) {
            while (v[i] < pivot)
                i++;
            while (v[k] > pivot)
                k--;
            if (i >= k)
                break;
            const double kept = v[i];
            v[i] = v[k];
            v[k] = kept;
        }
        if (at <= k)
            last = k;
        else
            from = k + 1;
    }
}

double mstx__median(double *v, size_t n)
{
    if (n == 0)
        return 0;
    put_in_place(v, n, n / 2);
    double low = v[n / 2];
    for (size_t i = 0; n % 2 == 0 && i < n / 2; i++)
        low = i == 0 || v[i] > low ? v[i] : low;
    return n % 2 != 0 ? low : (low + v[n / 2]) / 2;
}

/* ---- places ------------------------------------------------------------------- */

size_t mstx__cluster_place(const struct mstx_cluster *c, const struct mstx_cl_call *k)
{
    const struct mstx_cl_group *g = &c->group.p[k->group];
    const uint32_t at = k->seq - g->first_seq;
    return at < g->seqs ? g->place + at : SIZE_MAX;
}

/* Calls by the places that are joined here. */
struct places {
    uint32_t *begin; /* by place behind the first: in order; one more at the end */
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

/* A call as most make it, and one that is another. */
struct quarrel {
    const struct mstx_cl_call *a, *b;
};

static bool has_equal_bytes(unsigned op)
{
    return (mstx_cl_is_barrier(op) && op != MSTX_COMM_REDUCE_SCATTER_V &&
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

static void take_quarrel(struct mstx_cluster *c, const struct quarrel *q, const char *comm)
{
    const int32_t rank_a = c->process.p[q->a->process].rank;
    const int32_t rank_b = c->process.p[q->b->process].rank;
    struct mstx_cl_note *n = ms_vec_push(&c->quarrel);
    if (n == NULL) {
        c->no_memory = true;
        return;
    }
    *n = note_of("mismatch", rank_b, q->a->seq, q->a);
    n->at_ns = q->b->start_ns;
    snprintf(n->text, sizeof n->text,
             "ranks %" PRId32 " and %" PRId32 " do not run the same program: call %" PRIu32
             " of %s is %s of %" PRIu64 " bytes of %s on the one, %s of %" PRIu64
             " bytes of %s on the other",
             rank_a, rank_b, q->a->seq, comm, mstx_comm_op_text(q->a->op), q->a->bytes,
             mstx_comm_type_text(q->a->dtype), mstx_comm_op_text(q->b->op), q->b->bytes,
             mstx_comm_type_text(q->b->dtype));
}

static bool tells_waiting(const struct mstx_cl_call *k)
{
    return !(k->flags & MSTX_CF_ASYNC) && !k->unfinished;
}

/* Who waited how long, into the steps of the ranks and the row. */
static void measure(struct mstx_cluster *c, const uint32_t *at, struct mstx_cl_join *j)
{
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
    const struct mstx_cl_call *first = &c->coll.p[at[0]];
    const struct mstx_cl_group *g = &c->group.p[first->group];
    struct quarrel q = {first, NULL};
    bool tells = true, once = true;
    uint32_t alike = 0;
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
        *quarrels = true; /* behind the first all differ */
        if (alike * 2 < n)
            q = (struct quarrel){q.b, first};
        take_quarrel(c, &q, g->name);
    }
    const bool complete = n >= 2 && (g->size < 0 || (int64_t)n == g->size);
    if (complete && tells && once && j->agrees && mstx_cl_is_barrier(j->op))
        measure(c, at, j);
}

/* ---- who is missing -------------------------------------------------------------- */

static void tell_missing(struct mstx_cluster *c, uint32_t process, const struct mstx_cl_call *k,
                         uint32_t waiting)
{
    const int32_t rank = c->process.p[process].rank;
    struct mstx_cl_note *n = ms_vec_push(&c->missing);
    if (n == NULL) {
        c->no_memory = true;
        return;
    }
    *n = note_of("hang", rank, waiting, k);
    snprintf(n->text, sizeof n->text,
             "rank %" PRId32 " did not come to %s (call %" PRIu32 " of %s), in which %" PRIu32
             " rank%s waited at the end",
             rank, mstx_comm_op_text(k->op), k->seq, c->group.p[k->group].name, waiting,
             waiting == 1 ? "" : "s");
}

/* Is it a collective in which some wait to the end for others? */
static bool find_missing(struct mstx_cluster *c, const struct mstx_cl_group *g, const uint32_t *at,
                         uint32_t n)
{
    uint32_t waiting = 0, came = 0;
    for (uint32_t i = 0; i < n; i++)
        waiting += c->coll.p[at[i]].unfinished;
    if (waiting == 0 || n >= g->members.n)
        return false;
    for (size_t m = 0; m < g->members.n && !c->no_memory; m++) {
        if (came < n && c->coll.p[at[came]].process == g->members.p[m])
            came++;
        else
            tell_missing(c, g->members.p[m], &c->coll.p[at[0]], waiting);
    }
    return true;
}

/* ---- all of them ----------------------------------------------------------------- */

/* Calls of one collective lie as far apart as its ranks: those of the next are on their way while
 * this one is joined. */
static void fetch_next(const struct mstx_cluster *c, const struct places *p, const uint32_t *begin)
{
    if (begin + 1 >= p->begin + p->n)
        return;
    for (uint32_t i = begin[1]; i < begin[2]; i++)
        __builtin_prefetch(&c->coll.p[p->order[i]]);
}

/* Those of a communicator that are joined here; after the first of a kind that is wrong all are. */
static void join_group(struct mstx_cluster *c, const struct mstx_cl_group *g,
                       const struct places *p)
{
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
    if (!c->no_memory)
        mstx__cluster_paths(c);
}
