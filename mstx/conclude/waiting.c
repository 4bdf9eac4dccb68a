/* SPDX-License-Identifier: MIT
 *
 * waiting: see the header.
 */
#include "mstx/conclude/waiting.h"

#include "mstx/conclude/call_rows.h"
#include "mstx/conclude/finding_kinds.h"
#include "mstx/conclude/open_calls.h"
#include "mstx/conclude/waiting_why.h"

/* Cost from which a finding is an error. */
static const double GREAT_COST = 0.10;
/* A rank is slow for part of the run (fail_slow) when more than this share of the steps, at either
 * end, has no excess; fewer quiet steps are chance. */
static const double FREE_LEAST = 0.15;

/* Run delay of all ranks is told from this share of their work on. */
static const double DELAY_TOLD = 0.05;

/* ---- one rank ------------------------------------------------------------------- */

static bool is_late(const struct mstx_waiting *w, const struct mstx_waiter *r)
{
    const double free = FREE_LEAST * w->waiters.steps;
    return r->from > free || w->waiters.steps - r->to > free;
}

static const int64_t *times_of(const struct mstx_waiting *w, const struct mstx_waiter *r)
{
    return w->waiters.step_at + (size_t)r->rank * (w->waiters.steps + 1);
}

/* Returns the step in which the rank works most, of those that hold its excess. */
static uint32_t worst_step(const struct mstx_waiting *w, const struct mstx_waiter *r)
{
    const double *work = w->waiters.work + (size_t)r->rank * w->waiters.steps;
    uint32_t worst = r->from;
    for (uint32_t s = r->from; s < r->to; s++)
        worst = work[s] > work[worst] ? s : worst;
    return worst;
}

/* Adds the time of the rank's worst step, which viewers show, and the numbers of all in which it was slow when
 * the program names steps. */
static void put_time(const struct mstx_waiting *w, const struct mstx_call_rows *rows,
                     const struct mstx_steps *steps, const struct mstx_waiter *r,
                     struct mstx_finding *f)
{
    const int64_t *at = times_of(w, r);
    const uint32_t process = rows->process.p[r->rank], worst = worst_step(w, r);
    f->from_ns = at[worst];
    f->to_ns = at[worst + 1];
    for (size_t i = 0; i < steps->list.n && rows->steps.steps != 0; i++) {
        const struct mstx_step *s = &steps->list.p[i];
        if (s->process != process)
            continue;
        if (s->start_ns == at[r->from])
            f->first_step = s->number;
        if (s->start_ns == at[r->to - 1])
            f->last_step = s->number;
    }
}

static void say_why(struct ms_message *m, const struct mstx_waiter *r,
                    const struct mstx_wait_why *why)
{
    static const char *const causes[] = {[MSTX_CAUSE_UNKNOWN] = "",
                                         [MSTX_CAUSE_COMPUTES] = "computes",
                                         [MSTX_CAUSE_WAITS_FOR_CPU] = "waits_for_cpu",
                                         [MSTX_CAUSE_THROTTLED] = "throttled",
                                         [MSTX_CAUSE_OFF_CPU] = "off_cpu",
                                         [MSTX_CAUSE_WRITES] = "writes"};
    if (why->has_larger_batches)
        ms_message_str(m, "why", MS_STR("larger_batches"));
    else if (r->cause != MSTX_CAUSE_UNKNOWN)
        ms_message_str(m, "why", ms_str_of(causes[r->cause]));
    if (why->name[0] != 0 && !why->has_larger_batches) {
        ms_message_str(m, "doing", ms_str_of(why->name));
        ms_message_f64(m, "part", why->share);
    }
    if (why->second[0] != 0 && !why->has_larger_batches) {
        ms_message_str(m, "second", ms_str_of(why->second));
        ms_message_f64(m, "second_part", why->second_share);
    }
}

static enum ms_rc add_finding(struct mstx_tl *tl, const struct mstx_waiting *w,
                              const struct mstx_call_rows *rows, const struct mstx_steps *steps,
                              const struct mstx_waiter *r, mstx_findings *to, struct ms_err *err)
{
    struct mstx_wait_why why;
    MS_TRY(mstx__waiting_why(tl, rows, &w->waiters, r, &why, err));
    const bool late = is_late(w, r);
    struct mstx_finding *f =
        mstx__finding_add(to, late ? "fail_slow" : "straggler", &mstx_say_waiter,
                          r->cost >= GREAT_COST ? MSTX_ERROR_FINDING : MSTX_WARNING_FINDING,
                          rows->rank.p[r->rank], r->cost);
    if (f == NULL)
        return ms_no_memory(err);
    put_time(w, rows, steps, r, f);
    ms_message_i64(&f->message, "rank", f->rank);
    if (!r->is_steady)
        ms_message_i64(&f->message, "bursts", 1);
    if (late && f->first_step >= 0 && f->last_step >= f->first_step) {
        ms_message_i64(&f->message, "first_step", f->first_step);
        ms_message_i64(&f->message, "last_step", f->last_step);
    } else if (late) {
        int64_t start, end;
        mstx_tl_span(tl, &start, &end);
        ms_message_i64(&f->message, "since_ns", times_of(w, r)[r->from] - start);
        ms_message_i64(&f->message, "until_ns", times_of(w, r)[r->to] - start);
    }
    ms_message_i64(&f->message, "longer_ns", (int64_t)r->excess_ns);
    ms_message_f64(&f->message, "cost", r->cost);
    ms_message_i64(&f->message, "gain_ns", (int64_t)(r->cost * w->waiters.step_ns));
    ms_message_f64(&f->message, "longest", r->persistence);
    say_why(&f->message, r, &why);
    return MS_OK;
}

/* ---- the run --------------------------------------------------------------------- */

/* Tells whether the calls can be judged.  Calls that only enqueue work of a device do not show when
 * ranks wait. */
static bool is_judgeable(const struct mstx_call_rows *rows)
{
    return rows->rank.n >= 2 && !rows->has_device && rows->has_one_clock;
}

static enum ms_rc judge(struct mstx_waiting *w, struct mstx_call_rows *rows,
                        const struct mstx_steps *steps, struct mstx_replay_rows *spans,
                        struct ms_err *err)
{
    struct mstx_call_graph g;
    struct mstx_waits waits;
    struct mstx_call_steps called;
    mstx__call_graph_cut(&g, &waits, &rows->calls, (uint32_t)rows->rank.n, rows->unsure_ns);
    mstx__call_steps(&called, &g, &rows->calls, &rows->steps);
    ms_vec_free(&rows->calls); /* the rest is made of the points */
    mstx__call_graph_build(&g, &waits);
    if (!g.no_memory)
        mstx__waiters_of_steps(&w->waiters, &g, &called, &rows->use);
    mstx__call_steps_free(&called);
    const bool no_memory = g.no_memory || w->waiters.no_memory;
    const enum ms_rc rc = no_memory ? ms_no_memory(err)
                                    : mstx__replay_calls(spans, rows, steps, &g, &w->waiters, err);
    mstx__call_graph_free(&g);
    w->is_whole = rc == MS_OK && w->waiters.is_known && !rows->is_part;
    return rc;
}

static enum ms_rc keep_ranks(struct mstx_waiting *w, const struct mstx_call_rows *rows,
                             struct ms_err *err)
{
    if (!ms_vec_reserve(&w->rank, rows->rank.n))
        return ms_no_memory(err);
    memcpy(w->rank.p, rows->rank.p, rows->rank.n * sizeof *w->rank.p);
    w->rank.n = rows->rank.n;
    return MS_OK;
}

static enum ms_rc judge_and_add(struct mstx_tl *tl, struct mstx_waiting *w,
                                struct mstx_call_rows *rows, const struct mstx_steps *steps,
                                struct mstx_replay_rows *spans, mstx_findings *to,
                                struct ms_err *err)
{
    if (!is_judgeable(rows))
        return MS_OK;
    MS_TRY(keep_ranks(w, rows, err));
    MS_TRY(judge(w, rows, steps, spans, err));
    for (size_t i = 0; i < w->waiters.list.n; i++) {
        if (w->waiters.list.p[i].is_named)
            MS_TRY(add_finding(tl, w, rows, steps, &w->waiters.list.p[i], to, err));
    }
    return MS_OK;
}

enum ms_rc mstx__find_waiting(struct mstx_tl *tl, const struct mstx_steps *steps,
                              int64_t missing_ns, struct mstx_waiting *w,
                              struct mstx_replay_rows *spans, mstx_findings *to, struct ms_err *err)
{
    struct mstx_call_rows rows;
    *w = (struct mstx_waiting){0};
    MS_TRY(mstx__call_rows_read(tl, steps, &rows, err));
    enum ms_rc rc = mstx__find_open_calls(tl, &rows, missing_ns, to, err);
    if (rc == MS_OK)
        rc = judge_and_add(tl, w, &rows, steps, spans, to, err);
    mstx__call_rows_free(&rows);
    if (rc != MS_OK)
        mstx__waiting_free(w);
    return rc;
}

bool mstx__waiting_confirms(const struct mstx_waiting *w, int32_t rank)
{
    double cost = 0, other = 0;
    for (size_t i = 0; i < w->waiters.list.n; i++) {
        const struct mstx_waiter *r = &w->waiters.list.p[i];
        if (w->rank.p[r->rank] == rank) {
            if (r->is_named)
                return false; /* the rank has a finding already */
            cost = r->cost;
        } else if (r->cost > other) {
            other = r->cost;
        }
    }
    return !w->is_whole || (cost >= 2 * other && !w->waiters.has_causes);
}

enum ms_rc mstx__find_balance(const struct mstx_waiting *w, mstx_findings *to, struct ms_err *err)
{
    bool is_balanced = w->is_whole;
    for (size_t i = 0; i < to->n; i++)
        is_balanced &= strcmp(to->p[i].kind, "straggler") != 0 &&
                       strcmp(to->p[i].kind, "fail_slow") != 0 &&
                       strcmp(to->p[i].kind, "hang") != 0;
    if (!is_balanced)
        return MS_OK;
    struct mstx_finding *f = mstx__finding_add(to, "balance", &mstx_say_balance, MSTX_INFO_FINDING,
                                               -1, w->waiters.in_comm);
    if (f == NULL)
        return ms_no_memory(err);
    ms_message_i64(&f->message, "ranks", w->waiters.ranks);
    ms_message_i64(&f->message, "steps", w->waiters.steps);
    ms_message_f64(&f->message, "comm", w->waiters.in_comm);
    if (w->waiters.delayed >= DELAY_TOLD)
        ms_message_f64(&f->message, "delayed", w->waiters.delayed);
    return MS_OK;
}

void mstx__waiting_free(struct mstx_waiting *w)
{
    mstx__waiters_free(&w->waiters);
    ms_vec_free(&w->rank);
}
