/* SPDX-License-Identifier: MIT
 *
 * open_calls: see the header.
 */
#include "mstx/conclude/open_calls.h"

#include "mstx/conclude/finding_kinds.h"
#include "mstx/conclude/live.h"
#include "mstx/format/comm.h"
#include "mstx/format/note_kinds.h"

#include "probe/base/mem.h"
#include "probe/base/store.h"

/* All later open calls of a communicator follow from its first one. */
enum { GROUPS_MOST = 16 };

struct search {
    struct mstx_tl *tl;
    const struct mstx_call_rows *rows;
    int64_t limit_ns;
    mstx_findings *to;
    const struct mstx_gcall
        *first[GROUPS_MOST]; /* open collective of the least number, by communicator */
    size_t groups;
    bool *is_member, *came; /* by rank */
    struct ms_err *err;
};

static const struct mstx_process *process_of(const struct search *s, uint32_t rank)
{
    return mstx_tl_process(s->tl, s->rows->process.p[rank]);
}

/* Tells whether a call had not returned when its process was last heard of. */
static bool is_open(const struct search *s, const struct mstx_gcall *c)
{
    return c->lib == MSTX_LIB_TORCH && c->end_ns >= process_of(s, c->rank)->end_ns;
}

static bool is_collective(const struct mstx_gcall *c)
{
    return mstx_comm_op_class(c->op) == MSTX_CLASS_COLL && c->seq != MSTX_NO_SEQ;
}

/* Reads the name of a communicator into the argument comm. */
static enum ms_rc say_comm(const struct search *s, struct ms_message *m, uint32_t group)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(mstx_tl_store(s->tl), &st, "SELECT name FROM comm_groups WHERE id = ?1",
                            s->err));
    ms_stmt_i64(st, 1, group);
    const enum ms_rc rc = ms_stmt_step(st, &more, s->err);
    ms_message_str(m, "comm", rc == MS_OK && more ? ms_stmt_get_str(st, 0) : MS_STR(""));
    ms_stmt_free(st);
    return rc;
}

/* ---- collectives ------------------------------------------------------------------- */

static void keep_first(struct search *s, const struct mstx_gcall *c)
{
    size_t k = 0;
    while (k < s->groups && s->first[k]->group != c->group)
        k++;
    if (k == GROUPS_MOST)
        return;
    if (k == s->groups)
        s->first[s->groups++] = c;
    else if (c->seq < s->first[k]->seq ||
             (c->seq == s->first[k]->seq && c->start_ns < s->first[k]->start_ns))
        s->first[k] = c;
}

/* Marks the ranks that ever called in the communicator and those that began this collective; returns how many
 * wait in it. */
static uint32_t mark_ranks(struct search *s, const struct mstx_gcall *of)
{
    uint32_t waiting = 0;
    memset(s->is_member, 0, s->rows->rank.n * sizeof *s->is_member);
    memset(s->came, 0, s->rows->rank.n * sizeof *s->came);
    for (size_t i = 0; i < s->rows->calls.n; i++) {
        const struct mstx_gcall *c = &s->rows->calls.p[i];
        if (c->group != of->group)
            continue;
        const bool is_this = is_collective(c) && c->seq == of->seq;
        s->is_member[c->rank] = true;
        s->came[c->rank] |= is_this;
        waiting += is_this && is_open(s, c);
    }
    return waiting;
}

static enum ms_rc add_missing(struct search *s, const struct mstx_gcall *of, uint32_t rank,
                              uint32_t waiting)
{
    struct mstx_finding *f = mstx__finding_add(s->to, "hang", &mstx_note_not_joined,
                                               MSTX_ERROR_FINDING, s->rows->rank.p[rank], waiting);
    if (f == NULL)
        return ms_no_memory(s->err);
    f->from_ns = f->to_ns = of->start_ns;
    ms_message_i64(&f->message, "rank", f->rank);
    ms_message_str(&f->message, "op", ms_str_of(mstx_comm_op_text(of->op)));
    ms_message_i64(&f->message, "seq", of->seq);
    MS_TRY(say_comm(s, &f->message, of->group));
    ms_message_i64(&f->message, "waiting", waiting);
    return mstx__judge_open(s->tl, f, s->limit_ns, s->err);
}

static enum ms_rc judge_collective(struct search *s, const struct mstx_gcall *of)
{
    const uint32_t waiting = mark_ranks(s, of);
    for (uint32_t r = 0; r < s->rows->rank.n; r++) {
        if (s->is_member[r] && !s->came[r])
            MS_TRY(add_missing(s, of, r, waiting));
    }
    return MS_OK;
}

/* ---- transfers ----------------------------------------------------------------------- */

static bool is_other_end(const struct mstx_gcall *c, const struct mstx_gcall *of)
{
    const bool fits = c->op == MSTX_COMM_SENDRECV || of->op == MSTX_COMM_SENDRECV ||
                      (c->op == MSTX_COMM_SEND) == (of->op == MSTX_COMM_RECV);
    return fits && c->rank == (uint32_t)of->peer && c->group == of->group &&
           (c->peer < 0 || (uint32_t)c->peer == of->rank) && mstx_comm_op_has_peer(c->op);
}

/* Tells whether the peer of a transfer has begun fewer other ends than the rank has begun ends. */
static bool is_alone(const struct search *s, const struct mstx_gcall *of)
{
    int64_t own = 0, other = 0;
    for (size_t i = 0; i < s->rows->calls.n; i++) {
        const struct mstx_gcall *c = &s->rows->calls.p[i];
        own += c->rank == of->rank && c->op == of->op && c->group == of->group &&
               c->peer == of->peer && c->start_ns <= of->start_ns;
        other += is_other_end(c, of);
    }
    return other < own;
}

static enum ms_rc judge_transfer(struct search *s, const struct mstx_gcall *of)
{
    const int64_t waited = process_of(s, of->rank)->end_ns - of->start_ns;
    bool may_run;
    MS_TRY(mstx__rank_may_run(s->tl, s->rows->rank.p[of->peer], &may_run, s->err));
    if ((may_run && waited < s->limit_ns) || !is_alone(s, of))
        return MS_OK;
    struct mstx_finding *f =
        mstx__finding_add(s->to, "hang", &mstx_say_misses_transfer, MSTX_ERROR_FINDING,
                          s->rows->rank.p[of->peer], (double)waited / 1e9);
    if (f == NULL)
        return ms_no_memory(s->err);
    f->from_ns = f->to_ns = of->start_ns;
    ms_message_i64(&f->message, "rank", f->rank);
    ms_message_str(&f->message, "call", ms_str_of(mstx_comm_op_text(of->op)));
    ms_message_i64(&f->message, "waiting", 1);
    ms_message_f64(&f->message, "waited_s", f->value);
    return say_comm(s, &f->message, of->group);
}

/* ---- all of them ----------------------------------------------------------------------- */

static enum ms_rc judge_all(struct search *s)
{
    for (size_t i = 0; i < s->rows->calls.n; i++) {
        const struct mstx_gcall *c = &s->rows->calls.p[i];
        if (!is_open(s, c))
            continue;
        if (is_collective(c))
            keep_first(s, c);
        else if (c->peer >= 0 && mstx_comm_op_has_peer(c->op))
            MS_TRY(judge_transfer(s, c));
    }
    for (size_t k = 0; k < s->groups; k++)
        MS_TRY(judge_collective(s, s->first[k]));
    return MS_OK;
}

enum ms_rc mstx__find_open_calls(struct mstx_tl *tl, const struct mstx_call_rows *rows,
                                 int64_t limit_ns, mstx_findings *to, struct ms_err *err)
{
    struct search s = {.tl = tl, .rows = rows, .limit_ns = limit_ns, .to = to, .err = err};
    s.is_member = ms_calloc(rows->rank.n + 1, sizeof *s.is_member);
    s.came = ms_calloc(rows->rank.n + 1, sizeof *s.came);
    const enum ms_rc rc = s.is_member != NULL && s.came != NULL ? judge_all(&s) : ms_no_memory(err);
    ms_free(s.is_member);
    ms_free(s.came);
    return rc;
}
