/* SPDX-License-Identifier: MIT
 *
 * align_segment: matching ops between two anchors.
 *
 * Anchors cut both runs into short segments, which keeps the work linear.  A
 * round's pairs tell which values and modules correspond, and that is evidence
 * for the next round.  Within a round nothing that a segment looks at changes, so
 * all threads work at segments; each writes the partners of its own golden ops.
 */
#include "compare/align_int.h"

enum { BAND = 256, CHUNK = 64 }; /* segments dealt at once */
#define CELLS_MAX 4000000.0

struct worker {
    struct align__path_room room;
    MS_VEC(uint32_t) lo, hi;
    uint64_t cells;
};

struct round {
    struct align__ctx *c;
    struct worker *worker;
    uint32_t *next; /* by golden op: its partner of this round */
};

struct segment { /* ops [a, a_end) and [b, b_end) */
    const struct align__ctx *c;
    uint32_t a, b, a_end, b_end;
};

static float score(void *ctx, uint32_t r, uint32_t col, unsigned k, unsigned l)
{
    const struct segment *s = ctx;
    struct align__evidence e;
    (void)k;
    (void)l;
    align__weigh(s->c, s->a + r, s->b + col, &e);
    /* What would not be shown in the end is not to keep others apart. */
    return s->c->round + 1 < ALIGN__ROUNDS || align__accept(s->c, &e) ? e.score : -1;
}

/* The segment before anchor i, or behind the last one. */
static struct segment segment_at(const struct align__ctx *c, size_t i)
{
    const struct align__link *before = i > 0 ? &c->anchors.p[i - 1] : NULL;
    const struct align__link *after = i < c->anchors.n ? &c->anchors.p[i] : NULL;
    return (struct segment){.c = c,
                            .a = before != NULL ? before->a + 1 : 0,
                            .b = before != NULL ? before->b + 1 : 0,
                            .a_end = after != NULL ? after->a : (uint32_t)c->side[0].ops.n,
                            .b_end = after != NULL ? after->b : (uint32_t)c->side[1].ops.n};
}

/* A segment too large for all its cells keeps those near its diagonal. */
static enum ms_rc narrow(struct worker *w, struct align__path *p, struct ms_err *err)
{
    if ((double)p->rows * (double)p->cols <= CELLS_MAX)
        return MS_OK;
    if (!ms_vec_reserve(&w->lo, p->rows) || !ms_vec_reserve(&w->hi, p->rows))
        return ms_no_memory(err);
    for (uint32_t r = 0; r < p->rows; r++) {
        uint32_t at = (uint32_t)((double)r * p->cols / p->rows);
        uint32_t reach = BAND + p->cols / p->rows;
        w->lo.p[r] = at > reach ? at - reach : 0;
        w->hi.p[r] = p->cols - 1 - at > reach ? at + reach : p->cols - 1;
    }
    p->lo = w->lo.p;
    p->hi = w->hi.p;
    return MS_OK;
}

static enum ms_rc match_segment(const struct round *r, struct segment *s, struct worker *w,
                                struct ms_err *err)
{
    struct align__path p = {
        .rows = s->a_end - s->a, .cols = s->b_end - s->b, .merge = 1, .score = score, .ctx = s};
    if (p.rows == 0 || p.cols == 0)
        return MS_OK;
    MS_TRY(narrow(w, &p, err));
    MS_TRY(align__path_find(&p, &w->room, &w->cells, err));
    for (size_t i = 0; i < w->room.out.n; i++)
        r->next[s->a + w->room.out.p[i].r] = s->b + w->room.out.p[i].c;
    return MS_OK;
}

static enum ms_rc match_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct round *r = ctx;
    const struct align__ctx *c = r->c;
    for (size_t i = item * CHUNK; i <= c->anchors.n && i < (item + 1) * CHUNK; i++) {
        struct segment s = segment_at(c, i);
        MS_TRY(match_segment(r, &s, &r->worker[worker], err));
        if (i < c->anchors.n)
            r->next[c->anchors.p[i].a] = c->anchors.p[i].b;
    }
    return MS_OK;
}

/* The partners found take the place of those of the round before. */
static enum ms_rc take_partners(struct align__ctx *c, const uint32_t *next, struct ms_err *err)
{
    MS_VEC(struct align__link) pairs = {0};
    enum ms_rc rc = MS_OK;
    memset(c->op[1], 0xff, c->side[1].ops.n * sizeof *c->op[1]);
    for (uint32_t a = 0; rc == MS_OK && a < c->side[0].ops.n; a++) {
        c->op[0][a] = next[a];
        if (next[a] == ALIGN__NONE)
            continue;
        c->op[1][next[a]] = a;
        struct align__link *l = ms_vec_push(&pairs);
        if (l != NULL)
            *l = (struct align__link){a, next[a], 0, 0};
        rc = l != NULL ? MS_OK : ms_no_memory(err);
    }
    if (rc == MS_OK)
        rc = align__learn(c, pairs.p, pairs.n, err);
    ms_vec_free(&pairs);
    return rc;
}

static enum ms_rc match_all(struct round *r, unsigned workers, struct ms_err *err)
{
    struct align__ctx *c = r->c;
    r->worker = ms_calloc(workers, sizeof *r->worker);
    r->next = ms_alloc((c->side[0].ops.n + 1) * sizeof *r->next);
    if (r->worker == NULL || r->next == NULL)
        return ms_no_memory(err);
    memset(r->next, 0xff, (c->side[0].ops.n + 1) * sizeof *r->next);
    MS_TRY(ms_pool_run(c->pool, c->anchors.n / CHUNK + 1, match_chunk, r, err));
    return take_partners(c, r->next, err);
}

enum ms_rc align__segments(struct align__ctx *c, struct ms_err *err)
{
    struct round r = {.c = c};
    unsigned workers = c->pool != NULL ? ms_pool_threads(c->pool) : 1;
    enum ms_rc rc = match_all(&r, workers, err);
    for (unsigned i = 0; r.worker != NULL && i < workers; i++) {
        c->cells += r.worker[i].cells;
        align__path_room_free(&r.worker[i].room);
        ms_vec_free(&r.worker[i].lo);
        ms_vec_free(&r.worker[i].hi);
    }
    ms_free(r.worker);
    ms_free(r.next);
    return rc;
}
