/* SPDX-License-Identifier: MIT
 *
 * align_segment: matching ops between two anchors.
 *
 * Anchors cut both runs into short segments, which keeps the work linear.  A
 * round's pairs tell which values and modules correspond, and that is evidence
 * for the next round.
 */
#include "compare/align_int.h"

enum { BAND = 256 };
#define CELLS_MAX 4000000.0

struct segment {
    struct align__ctx *c;
    uint32_t a, b; /* first ops */
    MS_VEC(uint32_t) lo, hi;
};

static float score(void *ctx, uint32_t r, uint32_t col, unsigned k, unsigned l)
{
    const struct segment *s = ctx;
    struct align__evidence e;
    (void)k;
    (void)l;
    align__weigh(s->c, s->a + r, s->b + col, &e);
    return e.score;
}

/* A segment too large for all its cells keeps those near its diagonal. */
static enum ms_rc narrow(struct segment *s, struct align__path *p, struct ms_err *err)
{
    if ((double)p->rows * (double)p->cols <= CELLS_MAX)
        return MS_OK;
    if (!ms_vec_reserve(&s->lo, p->rows) || !ms_vec_reserve(&s->hi, p->rows))
        return align__no_memory(err);
    for (uint32_t r = 0; r < p->rows; r++) {
        uint32_t at = (uint32_t)((double)r * p->cols / p->rows);
        uint32_t reach = BAND + p->cols / p->rows;
        s->lo.p[r] = at > reach ? at - reach : 0;
        s->hi.p[r] = p->cols - 1 - at > reach ? at + reach : p->cols - 1;
    }
    p->lo = s->lo.p;
    p->hi = s->hi.p;
    return MS_OK;
}

static void join(struct align__ctx *c, uint32_t a, uint32_t b)
{
    c->op[0][a] = b;
    c->op[1][b] = a;
}

/* Match the ops from s->a and s->b on, before those at a_end and b_end. */
static enum ms_rc match_segment(struct segment *s, struct align__path_room *room, uint32_t a_end,
                                uint32_t b_end, struct ms_err *err)
{
    struct align__path p = {
        .rows = a_end - s->a, .cols = b_end - s->b, .merge = 1, .score = score, .ctx = s};
    MS_TRY(narrow(s, &p, err));
    return align__path_find(&p, room, &s->c->cells, err);
}

/* Pairs of a segment are kept apart from those of the last round, which are still in use. */
static void keep(const struct segment *s, const struct align__path_room *room,
                 struct align__link *next, size_t *n)
{
    for (size_t i = 0; i < room->out.n; i++)
        next[(*n)++] = (struct align__link){s->a + room->out.p[i].r, s->b + room->out.p[i].c, 0, 0};
}

/* Match every segment; next has room for as many pairs as there can be. */
static enum ms_rc match_all(struct segment *s, struct align__path_room *room,
                            struct align__link *next, size_t *n, struct ms_err *err)
{
    struct align__ctx *c = s->c;
    for (size_t i = 0; i <= c->anchors.n; i++) {
        bool end = i == c->anchors.n;
        uint32_t a = end ? (uint32_t)c->side[0].ops.n : c->anchors.p[i].a;
        uint32_t b = end ? (uint32_t)c->side[1].ops.n : c->anchors.p[i].b;
        MS_TRY(match_segment(s, room, a, b, err));
        keep(s, room, next, n);
        if (!end)
            next[(*n)++] = (struct align__link){a, b, 0, 0};
        s->a = a + 1;
        s->b = b + 1;
    }
    return MS_OK;
}

enum ms_rc align__segments(struct align__ctx *c, struct ms_err *err)
{
    struct segment s = {.c = c};
    struct align__path_room room = {.best = {.p = NULL}};
    size_t fewer = c->side[0].ops.n < c->side[1].ops.n ? c->side[0].ops.n : c->side[1].ops.n;
    struct align__link *next = ms_alloc((fewer + 1) * sizeof *next);
    size_t n = 0;
    enum ms_rc rc = next != NULL ? MS_OK : align__no_memory(err);
    if (rc == MS_OK)
        rc = match_all(&s, &room, next, &n, err);
    if (rc == MS_OK) {
        memset(c->op[0], 0xff, c->side[0].ops.n * sizeof *c->op[0]);
        memset(c->op[1], 0xff, c->side[1].ops.n * sizeof *c->op[1]);
        for (size_t i = 0; i < n; i++)
            join(c, next[i].a, next[i].b);
        rc = align__learn(c, next, n, err);
    }
    ms_free(next);
    ms_vec_free(&s.lo);
    ms_vec_free(&s.hi);
    align__path_room_free(&room);
    return rc;
}
