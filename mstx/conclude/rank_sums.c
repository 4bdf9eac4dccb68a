/* SPDX-License-Identifier: MIT
 *
 * rank_sums: see the header.  One pass over the joins and one over the calls; a call finds its join
 * by communicator and number in a sorted list.
 */
#include "mstx/conclude/rank_sums.h"

#include "mstx/format/comm.h"
#include "mstx/rundb/packed_tables.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/base/store_bulk.h"

#include <stdlib.h>

struct rank_sum {
    int64_t rank, span_ns, comm_ns, wait_ns, collectives, last, blame_ns;
};
struct pair_sum {
    int64_t bytes, ns, calls;
};
/* Collectives with a known last rank. */
struct join {
    int64_t group, seq, last, transfer_ns;
};
struct size_sum {
    int64_t op, bytes, calls, ns;
};
struct span {
    int64_t start_ns, end_ns;
};
/* Members of a communicator, where they are not those of the whole run. */
struct members {
    int64_t group;
    size_t first, n; /* in the list of all members */
};

enum { GROUPS_KEPT = 4096 };

struct mstx_rank_sums {
    MS_VEC(struct rank_sum) ranks; /* sorted */
    size_t bin;                    /* ranks of a bin */
    struct pair_sum pair[2][MSTX_RANK_BINS][MSTX_RANK_BINS];
    MS_VEC(struct join) joins;     /* sorted */
    size_t last_join[GROUPS_KEPT]; /* by communicator: the index after the join that was found */
    MS_VEC(struct size_sum) sizes;
    MS_VEC(uint32_t) slot; /* hash table of sizes: index + 1; a power of two */
    MS_VEC(struct members) groups;
    MS_VEC(int64_t) member;
    MS_VEC(struct span) spans; /* calls of one process */
    int64_t process;           /* whose calls these are */
    struct rank_sum *now;      /* its rank; NULL: none */
};

static int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* ---- ranks and communicators ------------------------------------------------ */

static int by_rank(const void *pa, const void *pb)
{
    const struct rank_sum *a = pa, *b = pb;
    return MS_ORDER(a->rank, b->rank, 0);
}

static struct rank_sum *rank_of(struct mstx_rank_sums *s, int64_t rank)
{
    const struct rank_sum key = {.rank = rank};
    if (rank >= 0 && rank < (int64_t)s->ranks.n && s->ranks.p[rank].rank == rank)
        return &s->ranks.p[rank];
    return s->ranks.n != 0 ? bsearch(&key, s->ranks.p, s->ranks.n, sizeof key, by_rank) : NULL;
}

static enum ms_rc read_ranks(struct mstx_rank_sums *s, struct ms_store *store, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(store, &st,
                            "SELECT rank, max(end_ns) - min(start_ns) FROM processes"
                            " WHERE rank >= 0 GROUP BY rank ORDER BY rank",
                            err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct rank_sum *slot = ms_vec_push(&s->ranks);
        if (slot == NULL)
            rc = ms_no_memory(err);
        else
            *slot = (struct rank_sum){.rank = ms_stmt_get_i64(st, 0),
                                      .span_ns = ms_stmt_get_i64(st, 1)};
    }
    ms_stmt_free(st);
    s->bin = (s->ranks.n + MSTX_RANK_BINS - 1) / MSTX_RANK_BINS;
    return rc;
}

/* Adds the members of a communicator from "0,8,16". */
static enum ms_rc add_members(struct mstx_rank_sums *s, int64_t group, struct ms_str ranks,
                              struct ms_err *err)
{
    struct members *m = ms_vec_push(&s->groups);
    struct ms_str word;
    if (m == NULL)
        return ms_no_memory(err);
    *m = (struct members){.group = group, .first = s->member.n};
    while (ms_str_split(&ranks, ',', &word)) {
        int64_t *slot = ms_vec_push(&s->member);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = 0;
        for (uint32_t i = 0; i < word.n && i < 10 && word.p[i] >= '0' && word.p[i] <= '9'; i++)
            *slot = 10 * *slot + (word.p[i] - '0');
        m->n++;
    }
    return MS_OK;
}

static enum ms_rc read_groups(struct mstx_rank_sums *s, struct ms_store *store, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(
        store, &st, "SELECT id, ranks FROM comm_groups WHERE ranks <> '' ORDER BY id", err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = add_members(s, ms_stmt_get_i64(st, 0), ms_stmt_get_str(st, 1), err);
    ms_stmt_free(st);
    return rc;
}

static int by_group(const void *pa, const void *pb)
{
    const struct members *a = pa, *b = pb;
    return MS_ORDER(a->group, b->group, 0);
}

/* Returns the rank in the whole run of a peer, which is numbered in its communicator. */
static int64_t rank_of_peer(const struct mstx_rank_sums *s, int64_t group, int64_t peer)
{
    const struct members key = {.group = group};
    const struct members *m =
        s->groups.n != 0 ? bsearch(&key, s->groups.p, s->groups.n, sizeof key, by_group) : NULL;
    return m != NULL && peer < (int64_t)m->n ? s->member.p[m->first + (size_t)peer] : peer;
}

static struct pair_sum *pair_of(struct mstx_rank_sums *s, enum mstx_pair_kind kind,
                                const struct rank_sum *a, const struct rank_sum *b)
{
    return &s->pair[kind][(size_t)(a - s->ranks.p) / s->bin][(size_t)(b - s->ranks.p) / s->bin];
}

/* ---- joins ------------------------------------------------------------------ */

static enum ms_rc take_joins(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    static const unsigned wanted[] = {MSTX_JOIN_GROUP, MSTX_JOIN_SEQ, MSTX_JOIN_LAST,
                                      MSTX_JOIN_TRANSFER};
    struct mstx_rank_sums *s = ctx;
    const int64_t *cell[4];
    for (int c = 0; c < 4; c++) {
        cell[c] = mstx__rows_column(rows, wanted[c], err);
        if (cell[c] == NULL)
            return MS_E_FORMAT;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        if (cell[2][i] < 0)
            continue;
        struct join *j = ms_vec_push(&s->joins);
        if (j == NULL)
            return ms_no_memory(err);
        *j = (struct join){cell[0][i], cell[1][i], cell[2][i], cell[3][i]};
    }
    return MS_OK;
}

static int by_place(const void *pa, const void *pb)
{
    const struct join *a = pa, *b = pb;
    return MS_ORDER(a->group, b->group, MS_ORDER(a->seq, b->seq, 0));
}

/* Returns the join of a call; NULL: none.  Ranks make most calls of a communicator one after the
 * other, so the join after the last one found is tried first. */
static const struct join *join_of(struct mstx_rank_sums *s, int64_t group, int64_t seq)
{
    const struct join key = {.group = group, .seq = seq};
    size_t *last = group >= 0 && group < GROUPS_KEPT ? &s->last_join[group] : NULL;
    const struct join *next = last != NULL && *last < s->joins.n ? &s->joins.p[*last] : NULL;
    if (next == NULL || by_place(&key, next) != 0)
        next = s->joins.n != 0 ? bsearch(&key, s->joins.p, s->joins.n, sizeof key, by_place) : NULL;
    if (next != NULL && last != NULL)
        *last = (size_t)(next - s->joins.p) + 1;
    return next;
}

/* Adds the wait of a call: what its duration is beyond the transfer.  Without a transfer time the
 * wait is not known. */
static void add_wait(struct mstx_rank_sums *s, int64_t group, int64_t seq, int64_t dur_ns)
{
    const struct join *j = join_of(s, group, seq);
    struct rank_sum *late = j != NULL ? rank_of(s, j->last) : NULL;
    if (late == NULL)
        return;
    const bool is_known = j->transfer_ns != MSTX_ROWS_NULL;
    const int64_t ns = is_known && dur_ns > j->transfer_ns ? dur_ns - j->transfer_ns : 0;
    struct pair_sum *pair = pair_of(s, MSTX_PAIR_WAITS, s->now, late);
    pair->ns = add(pair->ns, ns);
    pair->calls++;
    s->now->wait_ns = add(s->now->wait_ns, ns);
    s->now->collectives++;
    s->now->last += s->now == late;
    if (s->now != late)
        late->blame_ns = add(late->blame_ns, ns);
}

/* ---- sizes ------------------------------------------------------------------ */

static size_t slot_of(const struct mstx_rank_sums *s, int64_t op, int64_t bytes)
{
    const uint64_t key = ((uint64_t)bytes << 8 | (uint64_t)op) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(key >> 24) & (s->slot.n - 1);
    for (; s->slot.p[at] != 0; at = (at + 1) & (s->slot.n - 1)) {
        const struct size_sum *k = &s->sizes.p[s->slot.p[at] - 1];
        if (k->op == op && k->bytes == bytes)
            break;
    }
    return at;
}

static bool grow_sizes(struct mstx_rank_sums *s)
{
    const size_t want = s->slot.n != 0 ? 2 * s->slot.n : 1024;
    if (2 * s->sizes.n < s->slot.n)
        return true;
    if (!ms_vec_reserve(&s->slot, want))
        return false;
    s->slot.n = want;
    memset(s->slot.p, 0, want * sizeof *s->slot.p);
    for (size_t i = 0; i < s->sizes.n; i++)
        s->slot.p[slot_of(s, s->sizes.p[i].op, s->sizes.p[i].bytes)] = (uint32_t)i + 1;
    return true;
}

static enum ms_rc add_size(struct mstx_rank_sums *s, int64_t op, int64_t bytes, int64_t ns,
                           struct ms_err *err)
{
    if (bytes <= 0)
        return MS_OK;
    if (!grow_sizes(s))
        return ms_no_memory(err);
    uint32_t *slot = &s->slot.p[slot_of(s, op, bytes)];
    if (*slot == 0) {
        struct size_sum *made = ms_vec_push(&s->sizes);
        if (made == NULL)
            return ms_no_memory(err);
        *made = (struct size_sum){.op = op, .bytes = bytes};
        *slot = (uint32_t)s->sizes.n;
    }
    struct size_sum *k = &s->sizes.p[*slot - 1];
    k->calls++;
    k->ns = add(k->ns, ns);
    return MS_OK;
}

static int frequent_first(const void *pa, const void *pb)
{
    const struct size_sum *a = pa, *b = pb;
    if (a->calls != b->calls)
        return a->calls > b->calls ? -1 : 1;
    return MS_ORDER(a->op, b->op, MS_ORDER(a->bytes, b->bytes, 0));
}

/* ---- calls ------------------------------------------------------------------ */

static int by_start(const void *pa, const void *pb)
{
    const struct span *a = pa, *b = pb;
    return MS_ORDER(a->start_ns, b->start_ns, 0);
}

/* Adds the time that the calls of a process cover to its rank; overlapping ones count once. */
static void end_process(struct mstx_rank_sums *s)
{
    int64_t until = INT64_MIN;
    ms_vec_sort(&s->spans, by_start);
    for (size_t i = 0; i < s->spans.n && s->now != NULL; i++) {
        const struct span *x = &s->spans.p[i];
        const int64_t from = x->start_ns > until ? x->start_ns : until;
        if (x->end_ns > from) {
            s->now->comm_ns = add(s->now->comm_ns, x->end_ns - from);
            until = x->end_ns;
        }
    }
    s->spans.n = 0;
}

static enum ms_rc add_span(struct mstx_rank_sums *s, int64_t start_ns, int64_t end_ns,
                           struct ms_err *err)
{
    struct span *x = ms_vec_push(&s->spans);
    if (x == NULL)
        return ms_no_memory(err);
    *x = (struct span){start_ns, end_ns};
    return MS_OK;
}

enum { GROUP, SEQ, PROCESS, RANK, OP, COUNT, ELEM, SENT, PEER, START, DUR, WANTED };
static const unsigned wanted[WANTED] = {MSTX_CALL_GROUP, MSTX_CALL_SEQ,  MSTX_CALL_PROCESS,
                                        MSTX_CALL_RANK,  MSTX_CALL_OP,   MSTX_CALL_COUNT,
                                        MSTX_CALL_ELEM,  MSTX_CALL_SENT, MSTX_CALL_PEER,
                                        MSTX_CALL_START, MSTX_CALL_DUR};

/* Adds what a rank sent to a peer.  A send without a byte count of its own has sent all. */
static void add_transfer(struct mstx_rank_sums *s, const int64_t *call, int64_t bytes)
{
    const bool is_send = strstr(mstx_comm_op_text((unsigned)call[OP]), "Send") != NULL;
    const int64_t sent = call[SENT] != MSTX_ROWS_NULL ? call[SENT] : is_send ? bytes : 0;
    if (call[PEER] < 0 || sent <= 0)
        return;
    struct rank_sum *to = rank_of(s, rank_of_peer(s, call[GROUP], call[PEER]));
    if (to == NULL)
        return;
    struct pair_sum *pair = pair_of(s, MSTX_PAIR_SENDS, s->now, to);
    pair->bytes = add(pair->bytes, sent);
    pair->ns = add(pair->ns, call[DUR]);
    pair->calls++;
}

static enum ms_rc add_call(struct mstx_rank_sums *s, const int64_t *call, struct ms_err *err)
{
    const enum mstx_comm_class class = mstx_comm_op_class((unsigned)call[OP]);
    const int64_t bytes = (int64_t)((uint64_t)call[COUNT] * (uint64_t)call[ELEM]);
    MS_TRY(add_size(s, call[OP], bytes, call[DUR], err));
    if (call[PROCESS] != s->process) {
        end_process(s);
        s->process = call[PROCESS];
        s->now = rank_of(s, call[RANK]);
    }
    if (s->now == NULL || class == MSTX_CLASS_ADMIN)
        return MS_OK;
    if (class == MSTX_CLASS_COLL)
        add_wait(s, call[GROUP], call[SEQ], call[DUR]);
    else if (class == MSTX_CLASS_P2P)
        add_transfer(s, call, bytes);
    return add_span(s, call[START], add(call[START], call[DUR]), err);
}

static enum ms_rc take_calls(void *ctx, struct mstx_rows *rows, struct ms_err *err)
{
    const int64_t *cell[WANTED];
    int64_t call[WANTED];
    for (int c = 0; c < WANTED; c++) {
        cell[c] = mstx__rows_column(rows, wanted[c], err);
        if (cell[c] == NULL)
            return MS_E_FORMAT;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        for (int c = 0; c < WANTED; c++)
            call[c] = cell[c][i];
        MS_TRY(add_call(ctx, call, err));
    }
    return MS_OK;
}

/* ---- making ----------------------------------------------------------------- */

static enum ms_rc sum_up(struct mstx_rank_sums *s, struct mstx_tl *tl, struct ms_err *err)
{
    struct ms_store *store = mstx_tl_store(tl);
    MS_TRY(read_ranks(s, store, err));
    MS_TRY(read_groups(s, store, err));
    MS_TRY(mstx__packed_each_join(mstx__tl_packed(tl), take_joins, s, err));
    ms_vec_sort(&s->joins, by_place);
    MS_TRY(mstx__packed_each_call(mstx__tl_packed(tl), take_calls, s, err));
    end_process(s);
    ms_vec_sort(&s->sizes, frequent_first);
    return MS_OK;
}

enum ms_rc mstx__rank_sums_make(struct mstx_rank_sums **sums, struct mstx_tl *tl,
                                struct ms_err *err)
{
    *sums = ms_calloc(1, sizeof **sums);
    if (*sums == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = sum_up(*sums, tl, err);
    if (rc != MS_OK) {
        mstx__rank_sums_free(*sums);
        *sums = NULL;
    }
    return rc;
}

void mstx__rank_sums_free(struct mstx_rank_sums *sums)
{
    if (sums == NULL)
        return;
    ms_vec_free(&sums->ranks);
    ms_vec_free(&sums->joins);
    ms_vec_free(&sums->sizes);
    ms_vec_free(&sums->slot);
    ms_vec_free(&sums->groups);
    ms_vec_free(&sums->member);
    ms_vec_free(&sums->spans);
    ms_free(sums);
}

/* ---- saving ----------------------------------------------------------------- */

static enum ms_rc put_ranks(const struct mstx_rank_sums *s, struct ms_bulk *to, struct ms_err *err)
{
    for (size_t i = 0; i < s->ranks.n; i++) {
        const struct rank_sum *r = &s->ranks.p[i];
        const int64_t column[] = {r->rank,        r->span_ns, r->comm_ns, r->wait_ns,
                                  r->collectives, r->last,    r->blame_ns};
        if (r->comm_ns != 0 || r->collectives != 0)
            MS_TRY(ms_bulk_row(to, column, err));
    }
    return ms_bulk_flush(to, err);
}

static enum ms_rc put_pairs(const struct mstx_rank_sums *s, struct ms_bulk *to, struct ms_err *err)
{
    for (size_t i = 0; i < 2u * MSTX_RANK_BINS * MSTX_RANK_BINS; i++) {
        const size_t kind = i / MSTX_RANK_BINS / MSTX_RANK_BINS;
        const size_t a = i / MSTX_RANK_BINS % MSTX_RANK_BINS, b = i % MSTX_RANK_BINS;
        const struct pair_sum *p = &s->pair[kind][a][b];
        if (p->calls == 0)
            continue;
        const int64_t column[] = {(int64_t)kind,
                                  s->ranks.p[a * s->bin].rank,
                                  s->ranks.p[b * s->bin].rank,
                                  p->bytes,
                                  p->ns,
                                  p->calls};
        MS_TRY(ms_bulk_row(to, column, err));
    }
    return ms_bulk_flush(to, err);
}

static enum ms_rc put_sizes(const struct mstx_rank_sums *s, struct ms_store *store,
                            struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = ms_store_prepare(store, &st, "INSERT INTO call_sizes VALUES(?,?,?,?)", err);
    if (rc != MS_OK)
        return rc;
    for (size_t i = 0; i < s->sizes.n && i < MSTX_SIZES_MAX && rc == MS_OK; i++) {
        const struct size_sum *k = &s->sizes.p[i];
        ms_stmt_str(st, 1, ms_str_of(mstx_comm_op_text((unsigned)k->op)));
        ms_stmt_i64(st, 2, k->bytes);
        ms_stmt_i64(st, 3, k->calls);
        ms_stmt_i64(st, 4, k->ns);
        rc = ms_stmt_run(st, err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc save_ranks(const struct mstx_rank_sums *s, struct ms_store *store,
                             struct ms_err *err)
{
    struct ms_bulk *to;
    MS_TRY(ms_bulk_new(&to, store, "INSERT INTO rank_comm VALUES", "(?,?,?,?,?,?,?)", 7, err));
    enum ms_rc rc = put_ranks(s, to, err);
    ms_bulk_free(to);
    return rc;
}

static enum ms_rc save_pairs(const struct mstx_rank_sums *s, struct ms_store *store,
                             struct ms_err *err)
{
    struct ms_bulk *to;
    MS_TRY(ms_bulk_new(&to, store, "INSERT INTO rank_pairs VALUES", "(?,?,?,?,?,?)", 6, err));
    enum ms_rc rc = put_pairs(s, to, err);
    ms_bulk_free(to);
    return rc;
}

enum ms_rc mstx__rank_sums_save(const struct mstx_rank_sums *sums, struct ms_store *s,
                                struct ms_err *err)
{
    MS_TRY(ms_store_exec(
        s,
        "INSERT INTO rank_use SELECT rank, count(*), avg(end_ns - start_ns), avg(computing_ns),"
        " avg(communication_ns), avg(exposed_ns), avg(overlapped_ns), avg(free_ns),"
        " avg(bubble_ns), avg(preparing_ns), avg(waiting_ns), avg(blame_ns) FROM rank_steps"
        " WHERE rank >= 0 GROUP BY rank ORDER BY 1",
        err));
    MS_TRY(save_ranks(sums, s, err));
    MS_TRY(save_pairs(sums, s, err));
    return put_sizes(sums, s, err);
}
