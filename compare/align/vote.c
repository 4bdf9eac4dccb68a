/* SPDX-License-Identifier: MIT
 *
 * vote: derives pairs of modules and values from paired operators.
 *
 * Two modules are paired when most of the operator pairs inside either are inside
 * both. Sizes rule out a module that merely contains the right one (q_proj and a
 * fused qkv contain the same pairs). Modules without operators, as in dumps of
 * modules alone, are matched in order by their own records.
 */
#include "compare/align/vote.h"
#include "compare/align/module_match.h"
#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <stdlib.h>

enum { UP = 12, LOOK = 8 };

/* ---- values -------------------------------------------------------------- */

uint32_t align__split_behind(const struct align__side *s, uint32_t op)
{
    ms_assert(op < s->ops.n);
    const struct align__op *o = &s->ops.p[op];
    for (unsigned i = 0; i < o->nout; i++) {
        const struct align__value *v = &s->values.p[align__outs(s, o)[i].value];
        for (uint32_t k = 0; k < v->uses; k++) {
            uint32_t reader = s->users[v->first_use + k];
            if (reader > op && align__family_is_split(s->ops.p[reader].family))
                return reader;
        }
    }
    return ALIGN__NONE;
}

static void map_value(struct align__ctx *c, uint32_t a, uint32_t b)
{
    ms_assert(a < c->side[0].values.n && b < c->side[1].values.n);
    c->vmap[a] = b;
    c->vmap_back[b] = a;
}

/* Returns the index of the value in y that corresponds to x[i]: the most similar one, or the one at
 * the same index when lists of equal length do not distinguish their values better. y.n must not be
 * 0. */
static unsigned partner_of(const struct align__ctx *c, const struct align__value *x, unsigned i,
                           const struct align__tensor *y, unsigned n, bool by_place, float *like)
{
    unsigned best = by_place ? i : 0;
    *like = -1;
    for (unsigned j = 0; j < n && j < LOOK; j++) {
        float now = align__likeness(align__distance(x, &c->side[1].values.p[y[j].value]));
        if (by_place && j == i)
            now += 0.3F;
        if (now > *like) {
            *like = now;
            best = j;
        }
    }
    return best;
}

static void map_outputs(struct align__ctx *c, const struct align__op *a, const struct align__op *b)
{
    const struct align__tensor *x = align__outs(&c->side[0], a);
    const struct align__tensor *y = align__outs(&c->side[1], b);
    bool equal_lists = a->nout == b->nout;
    for (unsigned i = 0; i < a->nout && i < LOOK && b->nout != 0; i++) {
        float like;
        unsigned j =
            partner_of(c, &c->side[0].values.p[x[i].value], i, y, b->nout, equal_lists, &like);
        bool same_size = c->dims.list.p[x[i].dims].n == c->dims.list.p[y[j].dims].n;
        if ((c->by_value && like > 0.3F) || (equal_lists && same_size))
            map_value(c, x[i].value, y[j].value);
    }
}

/* Returns the split behind the last operator directly in a module, or ALIGN__NONE. */
static uint32_t split_of(const struct align__side *s, uint32_t module)
{
    uint32_t op = s->modules.p[module].direct;
    return op != ALIGN__NONE ? align__split_behind(s, op) : ALIGN__NONE;
}

/* Maps the values of parts[from] to parts[to - 1], which belong to one whole: the output of the
 * k-th part is the k-th output of the split behind the whole. */
static void map_parts(struct align__ctx *c, size_t from, size_t to)
{
    const struct align__link *l = c->parts.p + from;
    int whole = to - from > 1 && l[0].a == l[1].a ? 0 : 1;
    const struct align__side *s = &c->side[whole];
    uint32_t split = split_of(s, whole == 0 ? l->a : l->b);
    if (split == ALIGN__NONE || s->ops.p[split].nout != to - from)
        return;
    const struct align__tensor *out = align__outs(s, &s->ops.p[split]);
    const struct align__side *small = &c->side[1 - whole];
    for (size_t i = 0; i < to - from; i++) {
        uint32_t op = small->modules.p[whole == 0 ? l[i].b : l[i].a].direct;
        if (op == ALIGN__NONE || small->ops.p[op].nout == 0)
            continue;
        uint32_t value = align__outs(small, &small->ops.p[op])->value;
        if (whole == 0)
            map_value(c, out[i].value, value);
        else
            map_value(c, value, out[i].value);
    }
}

static void map_all_parts(struct align__ctx *c)
{
    for (size_t i = 0, j; i < c->parts.n; i = j) {
        const struct align__link *l = c->parts.p;
        for (j = i + 1; j < c->parts.n && (l[j].a == l[i].a || l[j].b == l[i].b); j++)
            continue;
        map_parts(c, i, j);
    }
}

static void map_values(struct align__ctx *c)
{
    memset(c->vmap, 0xff, c->side[0].values.n * sizeof *c->vmap);
    memset(c->vmap_back, 0xff, c->side[1].values.n * sizeof *c->vmap_back);
    for (uint32_t a = 0; a < c->side[0].ops.n; a++) {
        uint32_t b = c->op[0][a];
        if (b != ALIGN__NONE)
            map_outputs(c, &c->side[0].ops.p[a], &c->side[1].ops.p[b]);
    }
    map_all_parts(c);
}

/* ---- modules ------------------------------------------------------------- */

struct ballot { /* the pairs of operators inside both a and b */
    uint32_t a, b, n;
    float score;
};

struct urn {
    MS_VEC(struct ballot) list;
    uint32_t *slots, mask;
    uint32_t *all[2]; /* by module: number of pairs inside it */
};

static enum ms_rc grow_urn(struct urn *u, struct ms_err *err)
{
    uint32_t size = u->slots == NULL ? 1024 : 2 * (u->mask + 1);
    uint32_t *slots = ms_alloc((size_t)size * sizeof *slots);
    if (slots == NULL)
        return ms_no_memory(err);
    memset(slots, 0xff, (size_t)size * sizeof *slots);
    ms_free(u->slots);
    u->slots = slots;
    u->mask = size - 1;
    for (uint32_t i = 0; i < u->list.n; i++) {
        uint32_t at = (u->list.p[i].a * 0x9e3779b1U) ^ (u->list.p[i].b * 0x85ebca77U);
        for (at ^= at >> 15; slots[at & u->mask] != ALIGN__NONE; at++)
            continue;
        slots[at & u->mask] = i;
    }
    return MS_OK;
}

static enum ms_rc cast_votes(struct urn *u, uint32_t a, uint32_t b, uint32_t n, struct ms_err *err)
{
    if (u->slots == NULL || u->list.n >= u->mask / 2)
        MS_TRY(grow_urn(u, err));
    uint32_t at = (a * 0x9e3779b1U) ^ (b * 0x85ebca77U);
    for (at ^= at >> 15; u->slots[at & u->mask] != ALIGN__NONE; at++) {
        struct ballot *bal = &u->list.p[u->slots[at & u->mask]];
        if (bal->a == a && bal->b == b) {
            bal->n += n;
            return MS_OK;
        }
    }
    struct ballot *new = ms_vec_push(&u->list);
    if (new == NULL)
        return ms_no_memory(err);
    *new = (struct ballot){a, b, n, 0};
    u->slots[at & u->mask] = (uint32_t)(u->list.n - 1);
    return MS_OK;
}

/* Adds n votes for the modules around x and the modules around `first`, whose direct operators are
 * paired. */
static enum ms_rc cast_pairs(const struct align__ctx *c, struct urn *u, uint32_t x, uint32_t first,
                             uint32_t n, struct ms_err *err)
{
    uint32_t y = first;
    for (unsigned j = 0; y != ALIGN__NONE && j < UP; j++, y = c->side[1].modules.p[y].parent)
        u->all[1][y] += n;
    for (unsigned i = 0; x != ALIGN__NONE && i < UP; i++, x = c->side[0].modules.p[x].parent) {
        u->all[0][x] += n;
        y = first;
        for (unsigned j = 0; y != ALIGN__NONE && j < UP; j++, y = c->side[1].modules.p[y].parent)
            MS_TRY(cast_votes(u, x, y, n, err));
    }
    return MS_OK;
}

/* Counts the votes of all pairs. Successive pairs mostly share their modules and are counted
 * together. */
static enum ms_rc cast_all(const struct align__ctx *c, struct urn *u, struct ms_err *err)
{
    uint32_t x = ALIGN__NONE, y = ALIGN__NONE, n = 0;
    for (uint32_t a = 0; a < c->side[0].ops.n; a++) {
        uint32_t b = c->op[0][a];
        if (b == ALIGN__NONE)
            continue;
        uint32_t now[2] = {c->side[0].ops.p[a].parent, c->side[1].ops.p[b].parent};
        if (n != 0 && (now[0] != x || now[1] != y)) {
            MS_TRY(cast_pairs(c, u, x, y, n, err));
            n = 0;
        }
        x = now[0];
        y = now[1];
        n++;
    }
    return cast_pairs(c, u, x, y, n, err);
}

static float output_likeness(const struct align__ctx *c, const struct align__module *a,
                             const struct align__module *b)
{
    if (!c->by_value || a->nout == 0 || b->nout == 0)
        return 0;
    return align__likeness(
        align__distance(&c->side[0].values.p[align__module_outs(&c->side[0], a)->value],
                        &c->side[1].values.p[align__module_outs(&c->side[1], b)->value]));
}

static uint64_t size_of_params(const struct align__ctx *c, const struct align__side *s,
                               const struct align__module *m)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < m->nparam; i++)
        /* unsigned: overflow is defined, and harmless here */
        sum += c->dims.list.p[align__module_params(s, m)[i].dims].n;
    return sum;
}

/* Tells whether the sizes of parameters and outputs allow two modules to be one. */
static bool sizes_agree(const struct align__ctx *c, uint32_t ia, uint32_t ib)
{
    const struct align__module *a = &c->side[0].modules.p[ia];
    const struct align__module *b = &c->side[1].modules.p[ib];
    if (c->mod_dp[0][ia] == ib)
        return true;
    if (a->nparam != 0 && b->nparam != 0 &&
        !align__same_size(c, size_of_params(c, &c->side[0], a), size_of_params(c, &c->side[1], b)))
        return false;
    if (a->nout == 0 || b->nout == 0)
        return true;
    return align__same_size(c, c->dims.list.p[align__module_outs(&c->side[0], a)->dims].n,
                            c->dims.list.p[align__module_outs(&c->side[1], b)->dims].n);
}

static float rate_ballot(const struct align__ctx *c, const struct urn *u, const struct ballot *bal)
{
    float share = 2 * (float)bal->n / (float)(u->all[0][bal->a] + u->all[1][bal->b]);
    ms_assert(bal->n <= u->all[0][bal->a] && bal->n <= u->all[1][bal->b]);
    if (share < 0.5F || !sizes_agree(c, bal->a, bal->b))
        return 0;
    const struct align__module *a = &c->side[0].modules.p[bal->a];
    const struct align__module *b = &c->side[1].modules.p[bal->b];
    bool met;
    float params = align__param_likeness(c, a, b, &met);
    bool same =
        a->nout != 0 && b->nout != 0 &&
        align__module_outs(&c->side[0], a)->dims == align__module_outs(&c->side[1], b)->dims;
    return share + 0.5F * output_likeness(c, a, b) + 0.5F * params + (same ? 0.2F : 0) +
           0.3F * align__word_likeness(c, bal->a, bal->b);
}

static int by_score(const void *p, const void *q)
{
    const struct ballot *x = p;
    const struct ballot *y = q;
    return MS_ORDER(y->score, x->score, MS_ORDER(x->a, y->a, MS_ORDER(x->b, y->b, 0)));
}

static void pair_modules(struct align__ctx *c, uint32_t a, uint32_t b)
{
    if (c->mod_pair[0][a] != ALIGN__NONE || c->mod_pair[1][b] != ALIGN__NONE)
        return;
    c->mod_pair[0][a] = b;
    c->mod_pair[1][b] = a;
}

/* Pairs modules by votes: each pair of operators votes for every pair of modules around it, and the
 * highest rated pair of modules wins. */
static enum ms_rc elect_modules(struct align__ctx *c, struct urn *u, struct ms_err *err)
{
    for (int s = 0; s < 2; s++) {
        u->all[s] = ms_calloc(c->side[s].modules.n + 1, sizeof *u->all[s]);
        if (u->all[s] == NULL)
            return ms_no_memory(err);
    }
    MS_TRY(cast_all(c, u, err));
    size_t n = 0;
    for (size_t i = 0; i < u->list.n; i++) {
        struct ballot bal = u->list.p[i];
        bal.score = rate_ballot(c, u, &bal);
        if (bal.score > 0)
            u->list.p[n++] = bal;
    }
    if (n != 0)
        qsort(u->list.p, n, sizeof *u->list.p, by_score);
    for (size_t i = 0; i < n; i++)
        pair_modules(c, u->list.p[i].a, u->list.p[i].b);
    return MS_OK;
}

/* Pairs modules that got no votes by the order of parameter modules. With 5 % of the operators
 * deleted this raises the recall of modules from 0.97 to 0.997. */
static void fill_from_order(struct align__ctx *c)
{
    for (uint32_t a = 0; a < c->side[0].modules.n; a++) {
        uint32_t b = c->mod_dp[0][a];
        if (b != ALIGN__NONE && sizes_agree(c, a, b))
            pair_modules(c, a, b);
    }
}

/* Sets the context of operators: paired modules, and the part of a module that has no pair. */
static void set_context(struct align__ctx *c)
{
    for (int s = 0; s < 2; s++)
        memcpy(c->mod[s], c->mod_pair[s], c->side[s].modules.n * sizeof *c->mod[s]);
    for (size_t i = 0; i < c->parts.n; i++) {
        const struct align__link *l = &c->parts.p[i];
        if (c->mod[0][l->a] == ALIGN__NONE)
            c->mod[0][l->a] = l->b;
        if (c->mod[1][l->b] == ALIGN__NONE)
            c->mod[1][l->b] = l->a;
    }
}

enum ms_rc align__vote_modules(struct align__ctx *c, struct ms_err *err)
{
    struct urn u = {.slots = NULL};
    map_values(c);
    for (int s = 0; s < 2; s++)
        memset(c->mod_pair[s], 0xff, c->side[s].modules.n * sizeof *c->mod_pair[s]);
    enum ms_rc rc = elect_modules(c, &u, err);
    if (rc == MS_OK) {
        fill_from_order(c);
        set_context(c);
    }
    ms_assert(align__is_mutual(c->mod_pair[0], c->side[0].modules.n, c->mod_pair[1]));
    ms_assert(align__is_mutual(c->mod_pair[1], c->side[1].modules.n, c->mod_pair[0]));
    ms_vec_free(&u.list);
    ms_free(u.slots);
    ms_free(u.all[0]);
    ms_free(u.all[1]);
    return rc;
}

/* ---- modules without ops ------------------------------------------------- */

struct loose {
    struct align__ctx *c;
    MS_VEC(uint32_t) side[2];
};

static float loose_score(void *ctx, uint32_t r, uint32_t col, unsigned k, unsigned l)
{
    const struct loose *lo = ctx;
    const struct align__ctx *c = lo->c;
    const struct align__module *a = &c->side[0].modules.p[lo->side[0].p[r]];
    const struct align__module *b = &c->side[1].modules.p[lo->side[1].p[col]];
    bool met;
    (void)k;
    (void)l;
    float params = align__param_likeness(c, a, b, &met);
    if ((a->nparam != 0) != (b->nparam != 0) || (a->nparam != 0 && !met))
        params = -0.375F;
    bool same =
        a->nout != 0 && b->nout != 0 &&
        align__module_outs(&c->side[0], a)->dims == align__module_outs(&c->side[1], b)->dims;
    return 0.8F * params + 0.5F * output_likeness(c, a, b) + (same ? 0.3F : 0) +
           0.7F * align__word_likeness(c, lo->side[0].p[r], lo->side[1].p[col]) -
           (c->by_value ? 0.8F : 0.5F);
}

/* Lists the modules of a side that have a record but no operators and no partner. They are numbered
 * in the order of their records. */
static enum ms_rc list_loose(struct loose *l, int side, struct ms_err *err)
{
    const struct align__side *s = &l->c->side[side];
    for (uint32_t i = 0; i < s->modules.n; i++) {
        const struct align__module *m = &s->modules.p[i];
        if (m->lo != ALIGN__NONE || m->node == ALIGN__NONE || m->again ||
            l->c->mod_pair[side][i] != ALIGN__NONE)
            continue;
        uint32_t *slot = ms_vec_push(&l->side[side]);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = i;
    }
    return MS_OK;
}

enum ms_rc align__match_loose_modules(struct align__ctx *c, struct ms_err *err)
{
    enum { REACH = 1024 };
    struct loose l = {.c = c};
    struct align__path_room room = {.best = {.p = NULL}};
    MS_VEC(uint32_t) window[2] = {{0}, {0}};
    enum ms_rc rc = list_loose(&l, 0, err);
    if (rc == MS_OK)
        rc = list_loose(&l, 1, err);
    ms_assert(c->cut[0] != 0 && c->cut[1] != 0);
    uint32_t rows = (uint32_t)l.side[0].n;
    uint32_t cols = (uint32_t)l.side[1].n;
    if (rc == MS_OK &&
        (!ms_vec_reserve(&window[0], rows + 1U) || !ms_vec_reserve(&window[1], rows + 1U)))
        rc = ms_no_memory(err);
    uint32_t reach = align__path_reach(rows, REACH);
    for (uint32_t r = 0; rc == MS_OK && r < rows && cols != 0; r++) {
        uint32_t at = (uint32_t)((double)r * cols / rows);
        window[0].p[r] = at > reach ? at - reach : 0;
        window[1].p[r] = cols - 1 - at > reach ? at + reach : cols - 1;
    }
    const struct align__path path = {.rows = rows,
                                     .cols = cols,
                                     .lo = window[0].p,
                                     .hi = window[1].p,
                                     .merge = 1,
                                     .score = loose_score,
                                     .ctx = &l};
    if (rc == MS_OK)
        rc = align__path_find(&path, &room, &c->cells, err);
    for (size_t i = 0; rc == MS_OK && i < room.out.n; i++)
        pair_modules(c, l.side[0].p[room.out.p[i].r], l.side[1].p[room.out.p[i].c]);
    ms_vec_free(&l.side[0]);
    ms_vec_free(&l.side[1]);
    ms_vec_free(&window[0]);
    ms_vec_free(&window[1]);
    align__path_room_free(&room);
    return rc;
}
