/* SPDX-License-Identifier: MIT
 *
 * delays: see the header.
 */
#include "mstx/cluster/delays.h"

#include "probe/base/assert.h"

#include <string.h>

const struct mstx_delay *mstx__delays_find(const struct mstx_delays *l, uint32_t class)
{
    size_t from = 0, to = l != NULL ? l->n : 0;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (l->at[middle].class < class)
            from = middle + 1;
        else
            to = middle;
    }
    return l != NULL && from < l->n && l->at[from].class == class ? &l->at[from] : NULL;
}

struct mstx_delays *mstx__delays_new(struct mstx_profiles *p, size_t n)
{
    struct mstx_delays *l = ms_arena_alloc(p->memory, sizeof *l + n * sizeof *l->at);
    if (l != NULL)
        l->n = 0;
    return l;
}

/* ---- profiles --------------------------------------------------------------------- */

bool mstx__profiles_begin(struct mstx_profiles *p, size_t limit)
{
    *p = (struct mstx_profiles){.memory = ms_arena_new(limit)};
    struct mstx_profile *none = p->memory != NULL ? ms_vec_push(&p->all) : NULL;
    if (none == NULL) {
        mstx__profiles_end(p);
        return false;
    }
    *none = (struct mstx_profile){0};
    return true;
}

void mstx__profiles_end(struct mstx_profiles *p)
{
    if (p->memory != NULL)
        ms_arena_free(p->memory);
    ms_vec_free(&p->all);
    ms_vec_free(&p->result);
    ms_map_free(&p->joined);
    *p = (struct mstx_profiles){0};
}

static uint32_t add_profile(struct mstx_profiles *p, const struct mstx_delays *l,
                            const struct mstx_behind *behind, size_t behinds)
{
    struct mstx_behind *copy = ms_arena_alloc(p->memory, (behinds + 1) * sizeof *copy);
    struct mstx_profile *slot = copy != NULL ? ms_vec_push(&p->all) : NULL;
    if (slot == NULL)
        return MSTX_NO_PROFILE;
    if (behinds != 0)
        memcpy(copy, behind, behinds * sizeof *copy);
    *slot = (struct mstx_profile){.delays = l, .behind = copy, .behinds = (uint32_t)behinds};
    for (uint32_t i = 0; i < l->n; i++) {
        slot->least = l->at[i].ns < slot->least ? l->at[i].ns : slot->least;
        slot->greatest = l->at[i].ns > slot->greatest ? l->at[i].ns : slot->greatest;
    }
    return (uint32_t)p->all.n - 1;
}

static void put(struct mstx_delays *to, uint32_t class, double ns)
{
    if (ns != 0)
        to->at[to->n++] = (struct mstx_delay){ns, class};
}

/* ---- the later of two ---------------------------------------------------------------- */

static const struct mstx_behind *find_behind(const struct mstx_profile *of, uint32_t profile)
{
    size_t from = 0, to = of->behinds;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (of->behind[middle].profile < profile)
            from = middle + 1;
        else
            to = middle;
    }
    return from < of->behinds && of->behind[from].profile == profile ? &of->behind[from] : NULL;
}

/* Tells whether the point of profile b is as late as that of a, or later, in every class. */
static bool is_never_earlier(const struct mstx_profiles *p, uint32_t b, double tb, uint32_t a,
                             double ta)
{
    const struct mstx_profile *pa = &p->all.p[a], *pb = &p->all.p[b];
    if (tb + pb->least >= ta + pa->greatest)
        return true;
    const struct mstx_behind *behind = find_behind(pb, a);
    return behind != NULL && tb + behind->ns >= ta;
}

/* Writes the later of both points in each class, as delays of the later of both bases. */
static void write_later(struct mstx_delays *to, const struct mstx_delays *a, double ta,
                        const struct mstx_delays *b, double tb)
{
    const double base = ta > tb ? ta : tb;
    const uint32_t na = a != NULL ? a->n : 0, nb = b != NULL ? b->n : 0;
    for (uint32_t i = 0, k = 0; i < na || k < nb;) {
        const uint32_t ca = i < na ? a->at[i].class : UINT32_MAX;
        const uint32_t cb = k < nb ? b->at[k].class : UINT32_MAX;
        const uint32_t class = ca < cb ? ca : cb;
        const double in_a = ta + (ca == class ? a->at[i++].ns : 0);
        const double in_b = tb + (cb == class ? b->at[k++].ns : 0);
        put(to, class, (in_a > in_b ? in_a : in_b) - base);
    }
}

static bool is_same(const struct mstx_delays *a, const struct mstx_delays *b)
{
    const uint32_t nb = b != NULL ? b->n : 0;
    for (uint32_t i = 0; i < a->n && a->n == nb; i++) {
        if (a->at[i].class != b->at[i].class || a->at[i].ns != b->at[i].ns)
            return false;
    }
    return a->n == nb;
}

static uint32_t make_join(struct mstx_profiles *p, uint32_t a, double ta, uint32_t b, double tb)
{
    const struct mstx_delays *la = p->all.p[a].delays, *lb = p->all.p[b].delays;
    const size_t most = (la != NULL ? la->n : 0) + (size_t)(lb != NULL ? lb->n : 0);
    const double base = ta > tb ? ta : tb;
    struct mstx_delays *l = mstx__delays_new(p, most);
    p->work += most;
    if (l == NULL)
        return MSTX_NO_PROFILE;
    write_later(l, la, ta, lb, tb);
    const uint32_t later = ta > tb ? a : b;
    if (is_same(l, p->all.p[later].delays))
        return later;
    const struct mstx_behind behind[] = {{a, ta - base}, {b, tb - base}};
    return add_profile(p, l, behind, 2);
}

/* The lanes of a data-parallel job make the same joins: each is made once. */
static uint32_t *result_of(struct mstx_profiles *p, uint32_t a, double ta, uint32_t b, double tb,
                           bool *is_new)
{
    struct {
        double apart;
        uint32_t a, b;
    } key = {ta - tb + 0.0, a, b};
    const struct ms_str text = {(const char *)&key, sizeof key};
    const uint32_t i = ms_map_put_copy(&p->joined, text, p->memory, is_new);
    if (i == MS_MAP_NONE || (*is_new && ms_vec_push(&p->result) == NULL))
        return NULL;
    return &p->result.p[i];
}

uint32_t mstx__profiles_join(struct mstx_profiles *p, uint32_t a, double ta, uint32_t b, double tb)
{
    bool is_new = false;
    if (a > b)
        return mstx__profiles_join(p, b, tb, a, ta);
    if (a == b || is_never_earlier(p, a, ta, b, tb))
        return a;
    if (is_never_earlier(p, b, tb, a, ta))
        return b;
    uint32_t *result = result_of(p, a, ta, b, tb, &is_new);
    if (result != NULL && is_new)
        *result = make_join(p, a, ta, b, tb);
    return result != NULL ? *result : MSTX_NO_PROFILE;
}

uint32_t mstx__profiles_overlay(struct mstx_profiles *p, uint32_t rest,
                                const struct mstx_delay *own, size_t n,
                                const struct mstx_behind *behind, size_t behinds)
{
    const struct mstx_delays *under = p->all.p[rest].delays;
    const uint32_t most = under != NULL ? under->n : 0;
    struct mstx_delays *l = mstx__delays_new(p, most + n);
    p->work += most + n;
    if (l == NULL)
        return MSTX_NO_PROFILE;
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++) {
        ms_assert(i == 0 || own[i - 1].class < own[i].class);
        for (; k < most && under->at[k].class < own[i].class; k++)
            l->at[l->n++] = under->at[k];
        k += k < most && under->at[k].class == own[i].class;
        put(l, own[i].class, own[i].ns);
    }
    for (; k < most; k++)
        l->at[l->n++] = under->at[k];
    return add_profile(p, l, behind, behinds);
}
