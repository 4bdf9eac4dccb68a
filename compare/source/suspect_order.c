/* SPDX-License-Identifier: MIT
 *
 * suspect_order: sorts the suspects; suspect 1 is the one to look at first.
 *
 * Suspect 1 is the first strong suspect in execution order, not the largest: an early
 * small difference comes before a late large one, unless the early one is tiny.
 */
#include "compare/source/certainty.h"
#include "compare/source/suspect.h"
#include "probe/base/assert.h"

#include <math.h>
#include <stdlib.h>

enum { SUSPECTS_MAX = 10 }; /* users look at no more than this */
/* Any share from 0 to 1 puts the same 82 of 83 faults on top. The share matters where several
 * faults differ by orders of magnitude. */
static const double strong_share = 0.4;

struct order {
    const struct cmp_source *s;
    const struct source__raw *raw;
    int step;
    unsigned tier; /* see tier_of */
    bool backward;
    uint32_t node;
    int rank;
    uint32_t index;
};

static const struct observe__part *part_of(const struct cmp_source *s, const struct source__raw *r)
{
    return s->parts.p[r->part];
}

/* Returns 0 for strong and hard suspects; higher for weak figures, soft attributes, and structure
 * without effect. */
static unsigned tier_of(const struct source__raw *r, double strongest, bool figures_forward)
{
    /* sorts after all differences of the forward pass */
    bool late = !r->forward && !figures_forward;
    if (r->is_other)
        return 1;
    if (r->why == CMP_WHY_SHAPE || r->why == CMP_WHY_DTYPE)
        return late ? 5 : 0;
    /* An argument with an effect is evidence enough, however small the effect. */
    if (r->why == CMP_WHY_SCALAR && r->cls == SOURCE__NUM && !late)
        return 0;
    /* A gradient that is cut shows in values only after the forward pass. */
    if (r->why == CMP_WHY_GRAD && r->forward && !figures_forward && strongest > 0)
        return 0;
    switch ((enum source__class)r->cls) {
    case SOURCE__NUM:
        if (late)
            return 5;
        return r->s >= strong_share * strongest ? 0 : 1;
    case SOURCE__HARD:
        return 0;
    case SOURCE__SOFT:
        return !r->forward && strongest > 0 ? 6 : 2;
    default:
        return 3;
    }
}

static int compare_order(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->tier != y->tier)
        return x->tier < y->tier ? -1 : 1;
    if (x->backward != y->backward)
        return x->backward ? 1 : -1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Finds the strongest figure of one step, and whether it is of the forward pass. */
static void find_strongest(const struct cmp_source *s, int step, double *strongest, bool *forward)
{
    *strongest = 0;
    *forward = false;
    for (size_t i = 0; i < s->raws.n; i++) {
        const struct source__raw *r = &s->raws.p[i];
        if (r->cls != SOURCE__NUM || part_of(s, r)->step != step)
            continue;
        *strongest = fmax(*strongest, r->s);
        *forward |= r->forward;
    }
}

/* Tells whether a suspect is an input that no recorded operator made and that is no parameter. */
static bool is_from_outside(const struct cmp_source *s, const struct source__raw *r)
{
    const struct observe__part *p = part_of(s, r);
    return r->why == CMP_WHY_INPUT && r->forward && r->leaf != OBSERVE__NONE &&
           (p->leaves.p[r->leaf].flags & OBSERVE__IS_PARAM) == 0;
}

/* Share of the first difference that an earlier operator of one side alone must make. */
static const float structure_share = 0.3F;

/* An operator of one side alone stands before the first figure. It is the source where that figure seems
 * to come from outside the dump, so that an operator that no dump records lies between them, or where
 * what is computed with the operator differs as much: a mask hides differences from what reads it. */
static bool is_before(const struct order *first, const struct order *o)
{
    const struct observe__part *p = part_of(o->s, o->raw);
    if (o->step != first->step || o->raw->part != first->raw->part || o->node >= first->node ||
        o->raw->cls != SOURCE__STRUCTURE || !o->raw->forward)
        return false;
    return is_from_outside(o->s, first->raw) ||
           p->nodes.p[o->node].border > structure_share * p->nodes.p[first->node].out;
}

static void prefer_structure(const struct cmp_source *s, struct order *o)
{
    if (s->raws.n < 2 || o[0].tier != 0 || !o[0].raw->forward || o[0].raw->is_parting)
        return;
    for (size_t i = 1; i < s->raws.n; i++)
        o[i].tier = is_before(&o[0], &o[i]) ? 0 : o[i].tier;
    qsort(o, s->raws.n, sizeof *o, compare_order);
}

/* Where the values of both programs part is known, differences elsewhere are consequences. */
static void prefer_parting(const struct cmp_source *s, struct order *o)
{
    bool has_any = false;
    for (size_t i = 0; i < s->raws.n; i++)
        has_any |= o[i].raw->is_parting;
    for (size_t i = 0; i < s->raws.n && has_any; i++)
        o[i].tier = o[i].raw->is_parting ? 0 : o[i].tier + 1;
}

static void sort_raws(const struct cmp_source *s, struct order *o)
{
    double strongest = 0;
    bool forward = false;
    for (uint32_t i = 0; i < s->raws.n; i++) {
        const struct source__raw *r = &s->raws.p[i];
        const struct observe__part *p = part_of(s, r);
        if (i == 0 || o[i - 1].step != p->step)
            find_strongest(s, p->step, &strongest, &forward);
        o[i] = (struct order){.s = s,
                              .raw = r,
                              .step = p->step,
                              .tier = tier_of(r, strongest, forward),
                              .backward = !r->forward,
                              .node = r->node,
                              .rank = p->rank,
                              .index = i};
    }
    prefer_parting(s, o);
    if (s->raws.n > 1)
        qsort(o, s->raws.n, sizeof *o, compare_order);
    prefer_structure(s, o);
    for (size_t i = 1; i < s->raws.n; i++)
        ms_assert(compare_order(&o[i - 1], &o[i]) < 0);
}

/* ---- roles --------------------------------------------------------------- */

/* Returns the role of a node. `before` is the noise known before the first suspect; noise learned
 * later may contain its consequences. */
static enum cmp_role role_of(const struct observe__node *n, float before)
{
    const float noise = 3 * fminf(n->floor, fmaxf(n->tiny, before));
    bool dirty_in = n->in > noise || (n->flags & OBSERVE__IN_FLAGGED);
    bool dirty_out = n->out > noise || (n->flags & OBSERVE__OUT_FLAGGED);
    if (!dirty_in && !dirty_out)
        return CMP_ROLE_CLEAN;
    if (!dirty_out)
        return CMP_ROLE_ABSORBS;
    if (!(n->flags & OBSERVE__OUT_FLAGGED) && n->in > 0 && n->out < n->in / 10)
        return CMP_ROLE_ABSORBS;
    return n->out > 2 * n->in ? CMP_ROLE_AMPLIFIES : CMP_ROLE_PROPAGATES;
}

static float first_floor(const struct cmp_source *s, uint32_t part)
{
    uint32_t first = OBSERVE__NONE;
    for (size_t i = 0; i < s->raws.n; i++) {
        const struct source__raw *r = &s->raws.p[i];
        if (r->part == part && r->cls == SOURCE__NUM && !r->is_other && r->node < first)
            first = r->node;
    }
    return first != OBSERVE__NONE ? s->parts.p[part]->nodes.p[first].floor : HUGE_VALF;
}

static void settle_roles(struct cmp_source *s)
{
    for (size_t i = 0; i < s->parts.n; i++) {
        float before = first_floor(s, (uint32_t)i);
        for (size_t k = 0; k < s->parts.p[i]->nodes.n; k++) {
            struct observe__node *n = &s->parts.p[i]->nodes.p[k];
            if (n->flags & OBSERVE__OUT_MEASURED)
                n->role = (uint8_t)role_of(n, before);
            else
                n->role = n->flags & OBSERVE__OUT_FLAGGED ? CMP_ROLE_PROPAGATES : CMP_ROLE_CLEAN;
        }
    }
    for (size_t i = 0; i < s->raws.n; i++) {
        const struct source__raw *r = &s->raws.p[i];
        if ((r->cls == SOURCE__NUM || r->cls == SOURCE__HARD) && !r->is_other)
            s->parts.p[r->part]->nodes.p[r->node].role = CMP_ROLE_INTRODUCES;
    }
}

static size_t count_later(const struct cmp_source *s, const struct source__raw *r)
{
    const struct observe__part *p = part_of(s, r);
    size_t n = 0;
    for (size_t i = r->node + 1; i < p->nodes.n; i++) {
        unsigned role = p->nodes.p[i].role;
        n += role == CMP_ROLE_PROPAGATES || role == CMP_ROLE_AMPLIFIES;
    }
    return n;
}

/* ---- the list ------------------------------------------------------------ */

static struct ms_str name_of(const struct cmp_source *s, const struct source__raw *r)
{
    const struct observe__part *p = part_of(s, r);
    const struct observe__node *n = &p->nodes.p[r->node];
    struct ms_str target = observe__name(p, 1, n->id[1]);
    return target.p != NULL ? target : observe__name(p, 0, n->id[0]);
}

static enum ms_rc add_group(struct cmp_source *s, const struct source__raw *r,
                            struct cmp_suspect *out, struct ms_err *err)
{
    const struct observe__part *p = part_of(s, r);
    const uint32_t *list = NULL;
    size_t n = 0;
    for (size_t i = 0; i < p->members.n; i += 2 + p->members.p[i + 1]) {
        if (p->members.p[i] == out->target_node) {
            n = p->members.p[i + 1];
            list = p->members.p + i + 2;
        }
    }
    struct ms_str *group = ms_arena_calloc(s->arena, n + 1, sizeof *group);
    if (group == NULL)
        return ms_arena_fail(s->arena, err);
    for (size_t i = 0; i < n; i++)
        group[i] = observe__name(p, 1, list[i]);
    group[n] = out->target;
    out->group = group;
    out->ngroup = out->target.p != NULL ? n + 1 : 0;
    return MS_OK;
}

/* Returns the golden operator whose place a target node without a partner takes: what reads the
 * target's value reads the golden operator's on the other side. OBSERVE__NONE: there is none. */
static uint32_t counterpart(const struct observe__part *p, uint32_t node)
{
    for (size_t i = 0; i < p->leaves.n; i++) {
        const struct observe__leaf *l = &p->leaves.p[i];
        bool reads = (l->flags & OBSERVE__IS_OUT) == 0 && l->maker[1] == node;
        if (reads && l->maker[0] != OBSERVE__NONE && p->nodes.p[l->maker[0]].id[1] == OBSERVE__NONE)
            return p->nodes.p[l->maker[0]].id[0];
    }
    return OBSERVE__NONE;
}

static enum ms_rc fill_suspect(struct cmp_source *s, const struct source__raw *r, uint32_t place,
                               size_t more, struct ms_err *err)
{
    struct cmp_suspect *out = &s->list.p[place - 1];
    const struct observe__part *p = part_of(s, r);
    struct observe__node *n = &s->parts.p[r->part]->nodes.p[r->node];
    bool figures = n->flags & OBSERVE__OUT_MEASURED && p->mode != PROBE_MODE_MD5;
    bool root = r->why == CMP_WHY_PARAMETER || r->why == CMP_WHY_INPUT;
    bool known = figures || (root && p->mode != PROBE_MODE_MD5); /* a root needs no output */
    bool alone = n->id[0] == OBSERVE__NONE && r->why != CMP_WHY_EXTRA;
    uint32_t golden = r->instead != OBSERVE__NONE ? p->nodes.p[r->instead].id[0]
                      : alone                     ? counterpart(p, r->node)
                                                  : n->id[0];
    *out = (struct cmp_suspect){.place = place,
                                .part = p->number,
                                .target_node = n->id[1],
                                .golden_node = golden,
                                .target = observe__name(p, 1, n->id[1]),
                                .golden = observe__name(p, 0, golden),
                                .module = MS_STR(""),
                                .rank = p->rank,
                                .step = p->step,
                                .why = (enum cmp_why)r->why,
                                .role = CMP_ROLE_INTRODUCES,
                                .in = known ? r->in : NAN,
                                .out = figures ? r->out : NAN,
                                .floor = figures ? r->floor : NAN,
                                .factor = known ? fmax(r->factor, 1) : NAN,
                                .score = r->s,
                                .may_read_other_order = r->may_read_other_order,
                                .reader = r->is_other ? p->nodes.p[r->reader].id[1] : MS_MAP_NONE,
                                .later = count_later(s, r),
                                .more = more,
                                .ranks = out->ranks,
                                .nranks = out->nranks};
    n->suspect = out->place;
    MS_TRY(add_group(s, r, out, err));
    return source__describe(s, r, out, err);
}

static enum ms_rc add_rank(struct cmp_source *s, struct cmp_suspect *out, int rank,
                           struct ms_err *err)
{
    for (size_t i = 0; i < out->nranks; i++) {
        if (out->ranks[i] == rank)
            return MS_OK;
    }
    int *ranks = ms_arena_calloc(s->arena, out->nranks + 1, sizeof *ranks);
    if (ranks == NULL)
        return ms_arena_fail(s->arena, err);
    size_t at = 0;
    while (at < out->nranks && out->ranks[at] < rank)
        at++;
    if (at != 0)
        memcpy(ranks, out->ranks, at * sizeof *ranks);
    ranks[at] = rank;
    if (at < out->nranks)
        memcpy(ranks + at + 1, out->ranks + at, (out->nranks - at) * sizeof *ranks);
    ms_assert(at == 0 || ranks[at - 1] < rank);
    out->ranks = ranks;
    out->nranks++;
    return MS_OK;
}

/* A suspect of the list: the raw suspect it is made from, and the number of others like it. */
struct entry {
    const struct order *first;
    size_t more;
};

struct listing {
    struct cmp_source *s;
    struct ms_map keys;
    struct ms_buf key;
    struct entry entry[SUSPECTS_MAX];
};

/* Writes the key by which suspects are merged into one entry. The effects of one missing bias on
 * the optimizer, and a variation that repeats in each layer, are the same for many nodes; a
 * difference of the forward pass belongs to its node alone. */
static struct ms_str write_key(struct listing *l, const struct source__raw *r)
{
    const struct observe__part *p = part_of(l->s, r);
    bool own = r->cls == SOURCE__NUM && r->forward;
    ms_buf_clear(&l->key);
    bool alone = r->why == CMP_WHY_MISSING || r->why == CMP_WHY_EXTRA || r->why == CMP_WHY_MOVED;
    if (own || (alone && r->forward)) {
        ms_buf_str(&l->key, name_of(l->s, r));
    } else {
        uint32_t path = r->leaf != OBSERVE__NONE ? p->leaves.p[r->leaf].path : OBSERVE__NONE;
        bool optimizer = r->why == CMP_WHY_VALUE || r->why == CMP_WHY_NORM;
        ms_buf_printf(&l->key, "%u/%u/%d/%u/%d", r->why, p->nodes.p[r->node].op, r->forward,
                      optimizer ? 0 : path, p->step);
    }
    return ms_buf_slice(&l->key);
}

/* Returns the entry that names the node of a raw suspect already, or MS_MAP_NONE. */
static uint32_t find_node(const struct listing *l, const struct source__raw *r)
{
    struct ms_str name = name_of(l->s, r);
    for (uint32_t i = 0; i < l->s->list.n; i++) {
        if (ms_str_eq(name, name_of(l->s, l->entry[i].first->raw)))
            return i;
    }
    return MS_MAP_NONE;
}

static enum ms_rc add_entry(struct listing *l, const struct order *o, struct ms_err *err)
{
    bool added = false;
    struct ms_str key = write_key(l, o->raw);
    MS_TRY(ms_buf_check(&l->key, err));
    uint32_t id = ms_map_get(&l->keys, key);
    if (id == MS_MAP_NONE)
        id = find_node(l, o->raw);
    if (id == MS_MAP_NONE && l->s->list.n == SUSPECTS_MAX)
        return MS_OK;
    if (id == MS_MAP_NONE)
        id = ms_map_put_copy(&l->keys, key, l->s->arena, &added);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    ms_assert(id < SUSPECTS_MAX);
    struct entry *e = &l->entry[id];
    if (added) {
        l->s->list.n++;
        *e = (struct entry){o, 0};
        l->s->list.p[id] = (struct cmp_suspect){0};
    } else if (!ms_str_eq(name_of(l->s, o->raw), name_of(l->s, e->first->raw))) {
        e->more += o->step == e->first->step && o->rank == e->first->rank;
    }
    return o->step == e->first->step ? add_rank(l->s, &l->s->list.p[id], o->rank, err) : MS_OK;
}

static enum ms_rc list_all(struct cmp_source *s, const struct order *o, struct ms_err *err)
{
    struct listing l = {.s = s, .key = {.max = 1 << 20}};
    if (!ms_vec_reserve(&s->list, SUSPECTS_MAX))
        return ms_no_memory(err);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < s->raws.n && rc == MS_OK; i++)
        rc = add_entry(&l, &o[i], err);
    for (uint32_t i = 0; i < s->list.n && rc == MS_OK; i++)
        rc = fill_suspect(s, l.entry[i].first->raw, i + 1, l.entry[i].more, err);
    if (rc == MS_OK)
        source__rate_suspects(s);
    ms_buf_free(&l.key);
    ms_map_free(&l.keys);
    return rc;
}

enum ms_rc source__rank_suspects(struct cmp_source *s, struct ms_err *err)
{
    struct order *o = ms_alloc((s->raws.n + 1) * sizeof *o);
    if (o == NULL)
        return ms_no_memory(err);
    settle_roles(s);
    sort_raws(s, o);
    enum ms_rc rc = list_all(s, o, err);
    ms_free(o);
    return rc;
}
