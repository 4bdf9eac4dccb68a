/* SPDX-License-Identifier: MIT
 *
 * call_steps: see the header.
 */
#include "mstx/cluster/call_steps.h"

#include "mstx/format/comm.h"

#include "probe/base/mem.h"

#include <string.h>

enum { STEPS_MOST = 400, WINDOWS = 40, PERIOD_MOST = 200 };

struct finding {
    struct mstx_call_steps *s;
    const struct mstx_call_graph *g;
    uint32_t ranks;
};

/* Returns a hash of a call that is the same for the same call in the next step. */
static uint64_t token_of(const struct mstx_gcall *c)
{
    uint64_t h = (uint64_t)c->op << 32 | (uint64_t)c->log_bytes << 24 | (c->flags & MSTX_CF_ASYNC);
    h = (h ^ c->group) * 0x9E3779B97F4A7C15u;
    h = (h ^ (uint32_t)c->tag) * 0x9E3779B97F4A7C15u;
    return (c->flags & MSTX_CF_ANY) != 0 ? h : (h ^ (uint32_t)c->peer) * 0x9E3779B97F4A7C15u;
}

struct sequence {
    MS_VEC(uint64_t) token;
    MS_VEC(int64_t) at;
};

static void collect_sequence(const mstx_gcalls *calls, size_t *at, uint32_t rank,
                             struct sequence *s, bool *no_memory)
{
    s->token.n = s->at.n = 0;
    for (; *at < calls->n && calls->p[*at].rank == rank; ++*at) {
        const struct mstx_gcall *c = &calls->p[*at];
        if (c->begin == MSTX_NO_POINT)
            continue;
        uint64_t *token = ms_vec_push(&s->token);
        int64_t *t = ms_vec_push(&s->at);
        if (token == NULL || t == NULL) {
            *no_memory = true;
            return;
        }
        *token = token_of(c);
        *t = c->start_ns;
    }
}

/* Returns the smallest period after which at least 80 % of the calls recur, 0 when there is
 * none. */
static uint32_t period_of(const struct sequence *s)
{
    enum { LOOKED_AT = 20000 };
    const size_t n = s->token.n < LOOKED_AT ? s->token.n : LOOKED_AT;
    for (size_t p = 1; p <= PERIOD_MOST && 4 * p <= n; p++) {
        size_t same = 0;
        for (size_t i = 0; i + p < n; i++)
            same += s->token.p[i] == s->token.p[i + p];
        if (5 * same >= 4 * (n - p))
            return (uint32_t)p;
    }
    return 0;
}

static int64_t rank_end(const struct mstx_call_graph *g, uint32_t rank)
{
    return g->first.p[rank + 1] != g->first.p[rank] ? g->point.p[g->first.p[rank + 1] - 1].at_ns
                                                    : g->end_ns;
}

/* Cuts the calls of a rank into steps of a period; returns their number. */
static uint32_t steps_of_sequence(const struct sequence *s, uint32_t period, int64_t end,
                                  uint32_t wanted, int64_t *to)
{
    const uint32_t steps = period != 0 ? (uint32_t)(s->token.n / period) : 0;
    const uint32_t joined = wanted != 0 ? (steps + wanted - 1) / wanted : 1;
    if (to == NULL || wanted == 0)
        return steps;
    for (uint32_t k = 0; k < wanted; k++) {
        const size_t at = (size_t)k * joined * period;
        to[k] = at < s->at.n ? s->at.p[at] : end;
    }
    to[wanted] = end;
    return steps;
}

/* Finds steps by periods, when the numbers of periods of all ranks are about equal. */
static uint32_t find_periods(struct finding *f, const mstx_gcalls *calls)
{
    struct sequence s = {0};
    uint32_t least = UINT32_MAX, most = 0, wanted = 0;
    for (int pass = 0; pass < 2 && !f->s->no_memory; pass++) {
        size_t at = 0;
        for (uint32_t r = 0; r < f->ranks; r++) {
            collect_sequence(calls, &at, r, &s, &f->s->no_memory);
            int64_t *to = pass != 0 ? f->s->at_ns + (size_t)r * (wanted + 1) : NULL;
            const uint32_t n = steps_of_sequence(&s, period_of(&s), rank_end(f->g, r), wanted, to);
            least = n < least ? n : least;
            most = n > most ? n : most;
        }
        if (pass == 0 && (least < MSTX_STEPS_LEAST || most > least + 1))
            break;
        if (pass == 0) {
            wanted =
                least > STEPS_MOST ? (least + 1) / ((least + STEPS_MOST - 1) / STEPS_MOST) : least;
            f->s->at_ns = ms_calloc((size_t)f->ranks * (wanted + 1), sizeof *f->s->at_ns);
            f->s->no_memory |= f->s->at_ns == NULL;
        }
    }
    ms_vec_free(&s.token);
    ms_vec_free(&s.at);
    return wanted;
}

static uint32_t cut_windows(struct finding *f)
{
    const int64_t whole = f->g->end_ns - f->g->start_ns;
    f->s->at_ns = ms_calloc((size_t)f->ranks * (WINDOWS + 1), sizeof *f->s->at_ns);
    f->s->no_memory |= f->s->at_ns == NULL;
    for (size_t i = 0; f->s->at_ns != NULL && i < (size_t)f->ranks * (WINDOWS + 1); i++)
        f->s->at_ns[i] = f->g->start_ns + whole / WINDOWS * (int64_t)(i % (WINDOWS + 1));
    return WINDOWS;
}

static uint32_t copy_steps(struct finding *f, const struct mstx_step_times *known)
{
    const size_t n = (size_t)f->ranks * (known->steps + 1);
    f->s->at_ns = ms_calloc(n, sizeof *f->s->at_ns);
    f->s->no_memory |= f->s->at_ns == NULL;
    if (f->s->at_ns != NULL)
        memcpy(f->s->at_ns, known->at_ns, n * sizeof *f->s->at_ns);
    return known->steps;
}

static void find_steps(struct finding *f, const mstx_gcalls *calls,
                       const struct mstx_step_times *known)
{
    f->s->steps = known->steps >= MSTX_STEPS_LEAST ? copy_steps(f, known) : find_periods(f, calls);
    if (f->s->steps == 0 && !f->s->no_memory)
        f->s->steps = cut_windows(f);
}

static void count_receives(struct finding *f, const mstx_gcalls *calls)
{
    f->s->from_any = ms_calloc(f->ranks + 1, sizeof *f->s->from_any);
    f->s->no_memory |= f->s->from_any == NULL;
    for (size_t i = 0; f->s->from_any != NULL && i < calls->n; i++) {
        const struct mstx_gcall *c = &calls->p[i];
        f->s->from_any[c->rank] += c->op == MSTX_COMM_RECV && (c->flags & MSTX_CF_ANY) != 0;
    }
}

void mstx__call_steps(struct mstx_call_steps *s, const struct mstx_call_graph *g,
                      const mstx_gcalls *calls, const struct mstx_step_times *known)
{
    *s = (struct mstx_call_steps){.no_memory = g->no_memory};
    if (g->no_memory || g->first.n < 3 || g->point.n == 0)
        return;
    struct finding f = {s, g, (uint32_t)(g->first.n - 1)};
    find_steps(&f, calls, known);
    count_receives(&f, calls);
}

void mstx__call_steps_free(struct mstx_call_steps *s)
{
    ms_free(s->at_ns);
    ms_free(s->from_any);
}
