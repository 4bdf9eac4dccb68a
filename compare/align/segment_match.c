/* SPDX-License-Identifier: MIT
 *
 * align_anchor: ops that are known to be the same by their values alone.
 *
 * An output or parameter whose statistics are near one value of the other run and
 * far from all others is an anchor.  Candidates share a cell of a grid over
 * (size, class, ln norm, ln largest magnitude, lopsidedness); the 27 cells around
 * are looked at.  When hardly any anchors keep order the runs have no values in common, and
 * what is left of them would do more harm than good.
 */
#include "compare/align_int.h"

#include <math.h>
#include <stdlib.h>

#define NEAR      0.03F
#define MARGIN    4
#define EQUAL     0.001F /* no distance is taken for smaller */
#define ENOUGH    0.0375 /* share of values that anchors must hold to be believed */
#define SIGMA_MIN 0.004F
#define UNLIKE    0.2F /* families with less in common are different operators */
enum { CROWD = 64 };   /* a cell with more has no value that stands alone */

struct item {      /* a value that can be an anchor */
    uint64_t kind; /* hash of what must be equal: size, class, parameter or not */
    uint32_t value, op;
    uint32_t next;      /* of the cell */
    int32_t cell[3];    /* norm, peak, tilt */
    uint32_t best;      /* item of the other side */
    float near, second; /* distances of the nearest and the one after it */
    bool crowded, is_param;
};

struct cells { /* the first item in each */
    uint32_t *slots, mask;
    uint64_t *taken; /* a bit for each of SPARSE times as many cells: most are empty */
};
enum { SPARSE = 4, CHUNK = 4096 };

struct grid {
    const struct align__ctx *c;
    MS_VEC(struct item) item[2];
    struct cells cells[2];
    MS_VEC(uint32_t) wanted; /* target items that are the nearest of one that stands alone */
    size_t met;              /* values that have found their partner */
};

/* The last op that reads a parameter, when all that do lie in one module: ops before it prepare. */
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

/* (max + min) / peak in steps of 0.09: what is NEAR differs by no more than one step. */
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

static void note(struct item *it, uint32_t other, float d)
{
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
                note(x, b, d);
        }
        b = y->next;
    }
}

/* Find the nearest of the other side, and the one after it. */
static void probe(const struct grid *g, int side, struct item *x)
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
    for (size_t i = item * CHUNK; i < g->item[0].n && i < (item + 1) * CHUNK; i++)
        probe(g, 0, &g->item[0].p[i]);
    return MS_OK;
}

static enum ms_rc probe_wanted(void *ctx, size_t item, unsigned worker, struct ms_err *err)
{
    struct grid *g = ctx;
    (void)worker;
    (void)err;
    for (size_t i = item * CHUNK; i < g->wanted.n && i < (item + 1) * CHUNK; i++)
        probe(g, 1, &g->item[1].p[g->wanted.p[i]]);
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

/* Only target items that may become anchors look for their nearest, each once. */
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

/* One link for each value that has found its partner. */
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
            continue; /* dumps of modules alone have values, but no ops */
        struct align__link *l = ms_vec_push(&c->anchors);
        if (l == NULL)
            return ms_no_memory(err);
        float most = x->is_param ? 1.5F : 1.0F;
        *l = (struct align__link){x->op, y->op, most * (1 - x->near / NEAR) + 0.1F, x->near};
        /* One parameter serves unlike operators: its value says nothing for them. */
        if (x->is_param && both_known(c, l) && likeness_of(c, l) < UNLIKE)
            c->anchors.n--;
    }
    return MS_OK;
}

/* The usual distance of values that should be equal. */
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

/* Drop links between unlike operators that are not nearly equal: chance meetings. */
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
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

/* Several values of one pair of ops add up. */
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

static enum ms_rc settle(struct align__ctx *c, const struct grid *g, struct ms_err *err)
{
    MS_TRY(measure_noise(c, err));
    filter_links(c);
    join_links(c);
    MS_TRY(align__learn(c, c->anchors.p, c->anchors.n, err));
    MS_TRY(align__chain(c->anchors.p, &c->anchors.n, err));
    size_t fewer = g->item[0].n < g->item[1].n ? g->item[0].n : g->item[1].n;
    bool no_ops = c->side[0].ops.n == 0 || c->side[1].ops.n == 0;
    size_t met = no_ops ? g->met : c->anchors.n;
    c->by_value = met != 0 && (double)met >= ENOUGH * (double)fewer;
    if (!c->by_value)
        c->anchors.n = 0;
    c->strict = align__likeness(c->strict);
    return MS_OK;
}

static enum ms_rc find_anchors(struct grid *g, struct align__ctx *c, struct ms_err *err)
{
    for (int side = 0; side < 2; side++) {
        MS_TRY(list_items(g, c, side, err));
        MS_TRY(fill_cells(g, side, err));
    }
    MS_TRY(ms_pool_run(c->pool, g->item[0].n / CHUNK + 1, probe_golden, g, err));
    MS_TRY(list_wanted(g, err));
    MS_TRY(ms_pool_run(c->pool, g->wanted.n / CHUNK + 1, probe_wanted, g, err));
    MS_TRY(link_items(g, c, err));
    return settle(c, g, err);
}

enum ms_rc align__anchors(struct align__ctx *c, struct ms_err *err)
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
