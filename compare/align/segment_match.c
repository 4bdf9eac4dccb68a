/* SPDX-License-Identifier: MIT
 *
 * segment_match: finds anchors, and pairs the operators between two anchors.
 *
 * An anchor is an operator identified by its values alone: the statistics of an
 * output or parameter are near one value of the other run and far from all others.
 * Candidates are found in a grid over (size, class, ln norm, ln peak, tilt); a value
 * is compared with those in the 27 cells around its own. When hardly any anchors keep
 * the order of execution, the runs have no values in common and all anchors are
 * dropped.
 *
 * Anchors cut both runs into short segments, which keeps the work linear. The pairs
 * of a round tell which values and modules correspond, which is evidence for the next
 * round. During a round the evidence is read only, so all threads work on segments;
 * each thread writes the partners of its own golden operators.
 */
#include "compare/align/segment_match.h"
#include "compare/align/score.h"
#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdlib.h>

enum { BAND = 256, SEGMENT_CHUNK = 64 }; /* SEGMENT_CHUNK: segments that a thread takes at once */
/* A segment with more cells is matched near its diagonal only; no generated pair has one. */
#define CELLS_MAX 4000000.0

struct worker {
    struct align__path_room room;
    MS_VEC(uint32_t) lo, hi;
    uint64_t cells;
};

struct round {
    struct align__ctx *c;
    struct worker *worker;
    uint32_t *next; /* by golden operator: its partner of this round */
};

struct segment { /* operators [a, a_end) and [b, b_end) */
    const struct align__ctx *c;
    uint32_t a, b, a_end, b_end;
};

static float score_cell(void *ctx, uint32_t r, uint32_t col, unsigned k, unsigned l)
{
    const struct segment *s = ctx;
    struct align__evidence e;
    (void)k;
    (void)l;
    align__weigh_pair(s->c, s->a + r, s->b + col, &e);
    /* In the last round a pair that will not be shown must not block another pair. */
    return s->c->round + 1 < ALIGN__ROUNDS || align__accept_pair(s->c, &e) ? e.score : -1;
}

/* Returns the segment before anchor i; behind the last anchor for i = anchors.n. */
static struct segment segment_at(const struct align__ctx *c, size_t i)
{
    const struct align__link *before = i > 0 ? &c->anchors.p[i - 1] : NULL;
    const struct align__link *after = i < c->anchors.n ? &c->anchors.p[i] : NULL;
    ms_assert(i <= c->anchors.n);
    ms_assert(before == NULL || after == NULL || (before->a < after->a && before->b < after->b));
    return (struct segment){.c = c,
                            .a = before != NULL ? before->a + 1 : 0,
                            .b = before != NULL ? before->b + 1 : 0,
                            .a_end = after != NULL ? after->a : (uint32_t)c->side[0].ops.n,
                            .b_end = after != NULL ? after->b : (uint32_t)c->side[1].ops.n};
}

/* Limits a segment that is too large to the cells near its diagonal. */
static enum ms_rc narrow_band(struct worker *w, struct align__path *p, struct ms_err *err)
{
    if ((double)p->rows * (double)p->cols <= CELLS_MAX)
        return MS_OK;
    if (!ms_vec_reserve(&w->lo, p->rows) || !ms_vec_reserve(&w->hi, p->rows))
        return ms_no_memory(err);
    for (uint32_t r = 0; r < p->rows; r++) {
        uint32_t at = (uint32_t)((double)r * p->cols / p->rows);
        uint32_t reach = align__path_reach(p->rows, BAND) + p->cols / p->rows;
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
    struct align__path p = {.rows = s->a_end - s->a,
                            .cols = s->b_end - s->b,
                            .merge = 1,
                            .score = score_cell,
                            .ctx = s};
    if (p.rows == 0 || p.cols == 0)
        return MS_OK;
    MS_TRY(narrow_band(w, &p, err));
    MS_TRY(align__path_find(&p, &w->room, &w->cells, err));
    for (size_t i = 0; i < w->room.out.n; i++)
        r->next[s->a + w->room.out.p[i].r] = s->b + w->room.out.p[i].c;
    return MS_OK;
}

static enum ms_rc match_chunk(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    const struct round *r = ctx;
    const struct align__ctx *c = r->c;
    for (size_t i = item * SEGMENT_CHUNK; i <= c->anchors.n && i < (item + 1) * SEGMENT_CHUNK;
         i++) {
        struct segment s = segment_at(c, i);
        MS_TRY(match_segment(r, &s, &r->worker[worker], err));
        if (i < c->anchors.n)
            r->next[c->anchors.p[i].a] = c->anchors.p[i].b;
    }
    return MS_OK;
}

/* Replaces the partners of the previous round by those of this round. */
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
    ms_assert(rc != MS_OK || (align__is_mutual(c->op[0], c->side[0].ops.n, c->op[1]) &&
                              align__is_mutual(c->op[1], c->side[1].ops.n, c->op[0])));
    if (rc == MS_OK)
        rc = align__learn_names(c, pairs.p, pairs.n, err);
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
    MS_TRY(ms_pool_run(c->pool, c->anchors.n / SEGMENT_CHUNK + 1, match_chunk, r, err));
    return take_partners(c, r->next, err);
}

enum ms_rc align__match_segments(struct align__ctx *c, struct ms_err *err)
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

/* Measured on 24 to 100 pairs (README.md). NEAR from 0.015 to 0.06 and MARGIN from 2 to 8 change
 * anchor recall by at most 0.006; SIGMA_MIN with factors of sigma from 2 to 6 changes no figure by
 * more than 0.003. The filter by UNLIKE raises the precision of pairs from 0.998 to 0.999 and the
 * lowest recall of modules from 0.98 to 1.00. */
#define NEAR      0.03F
#define MARGIN    4
#define EQUAL     0.001F /* a smaller distance counts as this distance */
#define ENOUGH    0.0375 /* least share of values in anchors; with fewer, anchors are chance */
#define SIGMA_MIN 0.004F
#define UNLIKE    0.2F /* families with a lower likeness are different operators */
/* A value in a cell with more values cannot stand out. Without this limit 100,000 nodes a side
 * would take 28 million distances. */
enum { CROWD = 64 };

struct item {      /* a value that may become an anchor */
    uint64_t kind; /* hash of what must be equal: size, class, whether it is a parameter */
    uint32_t value, op;
    uint32_t next;      /* next item of the cell */
    int32_t cell[3];    /* norm, peak, tilt */
    uint32_t best;      /* nearest item of the other side */
    float near, second; /* distances of the nearest item and the second nearest */
    bool crowded, is_param;
};

struct cells { /* hash table: the first item in each cell */
    uint32_t *slots, mask;
    uint64_t *taken; /* bitmap of SPARSE times as many cells; most are empty */
};
enum { SPARSE = 4, ITEM_CHUNK = 4096 };

struct grid {
    const struct align__ctx *c;
    MS_VEC(struct item) item[2];
    struct cells cells[2];
    MS_VEC(uint32_t) wanted; /* target items that are the clear nearest of a golden item */
    size_t met;              /* number of values with a partner */
};

/* Returns the last operator that reads a parameter if all readers are in one module, where the
 * operators before the last only prepare it; else ALIGN__NONE. */
static uint32_t reader_of(const struct align__side *s, const struct align__value *v)
{
    if (v->uses == 0)
        return ALIGN__NONE;
    const uint32_t *ops = s->users + v->first_use;
    for (uint32_t i = 1; i < v->uses; i++) {
        if (s->ops.p[ops[i]].parent != s->ops.p[ops[0]].parent)
            return ALIGN__NONE;
    }
    return ops[v->uses - 1];
}

/* Returns (max + min) / peak in steps of 0.09. Two values within NEAR differ by at most one
 * step. */
static int32_t tilt_of(const struct align__value *v)
{
    double peak = fmax(fabs(v->stat[ALIGN__MAX]), fabs(v->stat[ALIGN__MIN]));
    double tilt = peak > 0 ? (v->stat[ALIGN__MAX] + v->stat[ALIGN__MIN]) / peak : 0;
    return isfinite(tilt) ? (int32_t)lrint(tilt / 0.09) : 0;
}

static enum ms_rc list_items(struct grid *g, const struct align__ctx *c, int side,
                             struct ms_err *err)
{
    const struct align__side *s = &c->side[side];
    for (uint32_t i = 0; i < s->values.n; i++) {
        const struct align__value *v = &s->values.p[i];
        bool is_param = v->module != ALIGN__NONE;
        uint32_t op = is_param ? reader_of(s, v) : v->producer;
        if (!v->known || (op == ALIGN__NONE && s->ops.n != 0))
            continue;
        struct item *it = ms_vec_push(&g->item[side]);
        if (it == NULL)
            return ms_no_memory(err);
        const uint64_t kind[3] = {v->n, v->cls, is_param};
        *it = (struct item){.kind = ms_str_hash((struct ms_str){(const char *)kind, sizeof kind}),
                            .value = i,
                            .op = op,
                            .next = ALIGN__NONE,
                            .cell = {(int32_t)lrintf(v->ln_norm / NEAR),
                                     (int32_t)lrintf(v->ln_peak / NEAR), tilt_of(v)},
                            .best = ALIGN__NONE,
                            .near = INFINITY,
                            .second = INFINITY,
                            .is_param = is_param};
    }
    return MS_OK;
}

static uint32_t hash_of(uint64_t kind, const int32_t cell[3])
{
    uint64_t h = kind + (uint32_t)cell[0] * 0x9E3779B97F4A7C15U +
                 (uint32_t)cell[1] * 0xD6E8FEB86659FD93U + (uint32_t)cell[2] * 0xA0761D6478BD642FU;
    h = (h ^ h >> 29) * 0xE7037ED1A0B428DBU;
    return (uint32_t)(h >> 32);
}

static enum ms_rc fill_cells(struct grid *g, int side, struct ms_err *err)
{
    struct cells *cells = &g->cells[side];
    uint32_t size = 64;
    while (size < 2 * g->item[side].n && size < 1U << 30)
        size *= 2;
    cells->mask = size - 1;
    cells->slots = ms_alloc((size_t)size * sizeof *cells->slots);
    cells->taken = ms_calloc((size_t)size * SPARSE / 64, sizeof *cells->taken);
    if (cells->slots == NULL || cells->taken == NULL)
        return ms_no_memory(err);
    memset(cells->slots, 0xff, (size_t)size * sizeof *cells->slots);
    for (uint32_t i = (uint32_t)g->item[side].n; i-- > 0;) {
        struct item *it = &g->item[side].p[i];
        uint32_t hash = hash_of(it->kind, it->cell), bit = hash & (size * SPARSE - 1);
        it->next = cells->slots[hash & cells->mask];
        cells->slots[hash & cells->mask] = i;
        cells->taken[bit / 64] |= 1ULL << bit % 64;
    }
    return MS_OK;
}

static void note_neighbour(struct item *it, uint32_t other, float d)
{
    ms_assert(d >= 0 && it->near <= it->second);
    if (d < it->near) {
        it->second = it->near;
        it->near = d;
        it->best = other;
    } else if (d < it->second) {
        it->second = d;
    }
}

static void probe_cell(const struct grid *g, int side, struct item *x, const int32_t cell[3])
{
    const struct cells *cells = &g->cells[1 - side];
    const struct align__value *v = &g->c->side[side].values.p[x->value];
    uint32_t hash = hash_of(x->kind, cell), bit = hash & (cells->mask * SPARSE + SPARSE - 1);
    unsigned seen = 0;
    if ((cells->taken[bit / 64] >> bit % 64 & 1) == 0)
        return;
    for (uint32_t b = cells->slots[hash & cells->mask]; b != ALIGN__NONE;) {
        const struct item *y = &g->item[1 - side].p[b];
        if (y->kind == x->kind && memcmp(y->cell, cell, sizeof y->cell) == 0) {
            x->crowded = ++seen > CROWD;
            if (x->crowded)
                return;
            float d = align__distance(v, &g->c->side[1 - side].values.p[y->value]);
            if (d >= 0)
                note_neighbour(x, b, d);
        }
        b = y->next;
    }
}

/* Finds the nearest item of the other side and the distance of the second nearest. */
static void probe_cells(const struct grid *g, int side, struct item *x)
{
    const int32_t *at = x->cell;
    for (int32_t k = 0; k < 27 && !x->crowded; k++) {
        const int32_t cell[3] = {at[0] + k / 9 - 1, at[1] + k / 3 % 3 - 1, at[2] + k % 3 - 1};
        probe_cell(g, side, x, cell);
    }
}

static enum ms_rc probe_golden(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct grid *g = ctx;
    (void)worker;
    (void)err;
    for (size_t i = item * ITEM_CHUNK; i < g->item[0].n && i < (item + 1) * ITEM_CHUNK; i++)
        probe_cells(g, 0, &g->item[0].p[i]);
    return MS_OK;
}

static enum ms_rc probe_wanted(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct grid *g = ctx;
    (void)worker;
    (void)err;
    for (size_t i = item * ITEM_CHUNK; i < g->wanted.n && i < (item + 1) * ITEM_CHUNK; i++)
        probe_cells(g, 1, &g->item[1].p[g->wanted.p[i]]);
    return MS_OK;
}

static bool stands_alone(const struct item *it)
{
    return it->second >= MARGIN * (it->near > EQUAL ? it->near : EQUAL);
}

static bool may_be_anchor(const struct item *it)
{
    return !it->crowded && it->best != ALIGN__NONE && it->near <= NEAR && stands_alone(it);
}

/* Lists the target items that may become anchors, each once. Only these search for their nearest
 * golden item. */
static enum ms_rc list_wanted(struct grid *g, struct ms_err *err)
{
    bool *listed = ms_calloc(g->item[1].n + 1, sizeof *listed);
    enum ms_rc rc = listed != NULL ? MS_OK : ms_no_memory(err);
    for (size_t a = 0; rc == MS_OK && a < g->item[0].n; a++) {
        const struct item *x = &g->item[0].p[a];
        if (!may_be_anchor(x) || listed[x->best])
            continue;
        uint32_t *slot = ms_vec_push(&g->wanted);
        if (slot == NULL) {
            rc = ms_no_memory(err);
            break;
        }
        *slot = x->best;
        listed[x->best] = true;
    }
    ms_free(listed);
    return rc;
}

static float likeness_of(const struct align__ctx *c, const struct align__link *l)
{
    return align__family_likeness(c->side[0].ops.p[l->a].family, c->side[1].ops.p[l->b].family);
}

static bool both_known(const struct align__ctx *c, const struct align__link *l)
{
    return c->side[0].ops.p[l->a].family != ALIGN__FAM_UNKNOWN &&
           c->side[1].ops.p[l->b].family != ALIGN__FAM_UNKNOWN;
}

static int by_size(const void *p, const void *q)
{
    float x = *(const float *)p;
    float y = *(const float *)q;
    return (x > y) - (x < y);
}

/* Adds an anchor for each value with a partner. */
static enum ms_rc link_items(struct grid *g, struct align__ctx *c, struct ms_err *err)
{
    for (uint32_t a = 0; a < g->item[0].n; a++) {
        const struct item *x = &g->item[0].p[a];
        if (!may_be_anchor(x))
            continue;
        const struct item *y = &g->item[1].p[x->best];
        if (y->best != a || !may_be_anchor(y))
            continue;
        g->met++;
        if (x->op == ALIGN__NONE || y->op == ALIGN__NONE)
            continue; /* a dump of modules alone has values but no operators */
        struct align__link *l = ms_vec_push(&c->anchors);
        if (l == NULL)
            return ms_no_memory(err);
        float most = x->is_param ? 1.5F : 1.0F;
        *l = (struct align__link){x->op, y->op, most * (1 - x->near / NEAR) + 0.1F, x->near};
        /* A parameter that different operators read identifies none of them. */
        if (x->is_param && both_known(c, l) && likeness_of(c, l) < UNLIKE)
            c->anchors.n--;
    }
    return MS_OK;
}

/* Computes the usual distance of values that should be equal. */
static enum ms_rc measure_noise(struct align__ctx *c, struct ms_err *err)
{
    float *d = ms_alloc((c->anchors.n + 1) * sizeof *d);
    if (d == NULL)
        return ms_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < c->anchors.n; i++) {
        if (likeness_of(c, &c->anchors.p[i]) == 1)
            d[n++] = c->anchors.p[i].distance;
    }
    qsort(d, n, sizeof *d, by_size);
    c->sigma = n != 0 ? d[n / 2] : 0;
    c->strict = 3 * c->sigma > SIGMA_MIN ? 3 * c->sigma : SIGMA_MIN;
    ms_free(d);
    return MS_OK;
}

/* Removes anchors between operators of different families whose values are not nearly equal: those
 * are chance. */
static void filter_links(struct align__ctx *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->anchors.n; i++) {
        const struct align__link *l = &c->anchors.p[i];
        if (both_known(c, l) && likeness_of(c, l) < UNLIKE && l->distance > 0.7F * c->strict)
            continue;
        c->anchors.p[n++] = *l;
    }
    c->anchors.n = n;
}

static int by_ops(const void *p, const void *q)
{
    const struct align__link *x = p;
    const struct align__link *y = q;
    return MS_ORDER(x->a, y->a, MS_ORDER(x->b, y->b, MS_ORDER(x->weight, y->weight, 0)));
}

/* Sums up the weights of anchors between the same two operators. */
static void join_links(struct align__ctx *c)
{
    size_t n = 0;
    if (c->anchors.n != 0)
        qsort(c->anchors.p, c->anchors.n, sizeof *c->anchors.p, by_ops);
    for (size_t i = 0; i < c->anchors.n; i++) {
        struct align__link l = c->anchors.p[i];
        if (n != 0 && c->anchors.p[n - 1].a == l.a && c->anchors.p[n - 1].b == l.b)
            c->anchors.p[n - 1].weight += l.weight;
        else
            c->anchors.p[n++] = l;
    }
    c->anchors.n = n;
}

static enum ms_rc settle_anchors(struct align__ctx *c, const struct grid *g, struct ms_err *err)
{
    MS_TRY(measure_noise(c, err));
    filter_links(c);
    join_links(c);
    MS_TRY(align__learn_names(c, c->anchors.p, c->anchors.n, err));
    MS_TRY(align__keep_chain(c->anchors.p, &c->anchors.n, err));
    size_t fewer = g->item[0].n < g->item[1].n ? g->item[0].n : g->item[1].n;
    bool no_ops = c->side[0].ops.n == 0 || c->side[1].ops.n == 0;
    size_t met = no_ops ? g->met : c->anchors.n;
    c->by_value = met != 0 && (double)met >= ENOUGH * (double)fewer;
    if (!c->by_value)
        c->anchors.n = 0;
    c->strict = align__likeness(c->strict);
    ms_assert(c->sigma >= 0 && c->strict >= 0 && c->strict <= 1);
    return MS_OK;
}

static enum ms_rc find_anchors(struct grid *g, struct align__ctx *c, struct ms_err *err)
{
    for (int side = 0; side < 2; side++) {
        MS_TRY(list_items(g, c, side, err));
        MS_TRY(fill_cells(g, side, err));
    }
    MS_TRY(ms_pool_run(c->pool, g->item[0].n / ITEM_CHUNK + 1, probe_golden, g, err));
    MS_TRY(list_wanted(g, err));
    MS_TRY(ms_pool_run(c->pool, g->wanted.n / ITEM_CHUNK + 1, probe_wanted, g, err));
    MS_TRY(link_items(g, c, err));
    return settle_anchors(c, g, err);
}

enum ms_rc align__find_anchors(struct align__ctx *c, struct ms_err *err)
{
    struct grid g = {.c = c};
    enum ms_rc rc = find_anchors(&g, c, err);
    for (int side = 0; side < 2; side++) {
        ms_vec_free(&g.item[side]);
        ms_free(g.cells[side].slots);
        ms_free(g.cells[side].taken);
    }
    ms_vec_free(&g.wanted);
    return rc;
}
