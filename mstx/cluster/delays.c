/* SPDX-License-Identifier: MIT
 *
 * delays: see the header.
 */
#include "mstx/cluster/delays.h"

#include "probe/base/assert.h"

#include <math.h>
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
    uint32_t size = 0;
    while (size < 31 && (size_t)1 << size < n)
        size++;
    struct mstx_delays *l = p->unused[size];
    if (l != NULL)
        p->unused[size] = l->next;
    else
        l = ms_arena_alloc(p->memory, sizeof *l + ((size_t)1 << size) * sizeof *l->at);
    if (l != NULL)
        *l = (struct mstx_delays){.shared = 1, .size = size};
    return l;
}

struct mstx_delays *mstx__delays_share(struct mstx_delays *l)
{
    if (l != NULL)
        l->shared++;
    return l;
}

void mstx__delays_release(struct mstx_profiles *p, struct mstx_delays *l)
{
    if (l == NULL || --l->shared != 0)
        return;
    l->next = p->unused[l->size];
    p->unused[l->size] = l;
}

/* ---- profiles --------------------------------------------------------------------- */

bool mstx__profiles_begin(struct mstx_profiles *p, size_t limit)
{
    static const struct mstx_shift none = {0, 0};
    *p = (struct mstx_profiles){.memory = ms_arena_new(limit)};
    struct mstx_profile *first = p->memory != NULL ? ms_vec_push(&p->all) : NULL;
    if (first != NULL)
        *first = (struct mstx_profile){0};
    const bool ok = first != NULL && mstx__shifts_number(p, &none, 1) == 0;
    if (!ok)
        mstx__profiles_end(p);
    return ok;
}

void mstx__profiles_end(struct mstx_profiles *p)
{
    if (p->memory != NULL)
        ms_arena_free(p->memory);
    ms_vec_free(&p->all);
    ms_vec_free(&p->shifts);
    ms_map_free(&p->numbers);
    *p = (struct mstx_profiles){0};
}

static const struct mstx_shift *copy_shifts(struct mstx_profiles *p, const struct mstx_shift *v,
                                            size_t n)
{
    struct mstx_shift *copy = ms_arena_alloc(p->memory, (n + 1) * sizeof *copy);
    if (copy != NULL && n != 0)
        memcpy(copy, v, n * sizeof *copy);
    return copy;
}

static uint32_t add_profile(struct mstx_profiles *p, struct mstx_delays *l,
                            const struct mstx_shift *behind, size_t behinds)
{
    const struct mstx_shift *copy = copy_shifts(p, behind, behinds);
    struct mstx_profile *slot = copy != NULL ? ms_vec_push(&p->all) : NULL;
    if (slot == NULL)
        return MSTX_NO_PROFILE;
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

uint32_t mstx__profiles_overlay(struct mstx_profiles *p, uint32_t rest,
                                const struct mstx_delay *own, size_t n,
                                const struct mstx_shift *behind, size_t behinds)
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

/* ---- shifts ------------------------------------------------------------------------ */

static const struct mstx_shift *find_behind(const struct mstx_profile *of, uint64_t profile)
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

/* Tells whether a is as late as b, or later, in every class. */
static bool is_never_earlier(const struct mstx_profiles *p, const struct mstx_shift *a,
                             const struct mstx_shift *b)
{
    const struct mstx_profile *pa = &p->all.p[a->profile], *pb = &p->all.p[b->profile];
    if (a->ns + pa->least >= b->ns + pb->greatest)
        return true;
    const struct mstx_shift *behind = find_behind(pa, b->profile);
    return behind != NULL && a->ns + behind->ns >= b->ns;
}

size_t mstx__shifts_prune(struct mstx_profiles *p, struct mstx_shift *v, size_t n)
{
    p->work += n * n / 4;
    for (size_t i = n; i-- > 0 && n > 1;) {
        size_t k = 0;
        while (k < n && (k == i || !is_never_earlier(p, &v[k], &v[i])))
            k++;
        if (k < n)
            memmove(&v[i], &v[i + 1], (--n - i) * sizeof *v);
    }
    return n;
}

uint32_t mstx__shifts_number(struct mstx_profiles *p, const struct mstx_shift *v, size_t n)
{
    bool is_new = false;
    const struct ms_str key = {(const char *)v, (uint32_t)(n * sizeof *v)};
    const uint32_t number = ms_map_put_copy(&p->numbers, key, p->memory, &is_new);
    if (number == MS_MAP_NONE)
        return MSTX_NO_PROFILE;
    if (!is_new)
        return number;
    const struct mstx_shift *copy = copy_shifts(p, v, n);
    struct mstx_shifts *slot = copy != NULL ? ms_vec_push(&p->shifts) : NULL;
    if (slot == NULL)
        return MSTX_NO_PROFILE;
    *slot = (struct mstx_shifts){(uint32_t)n, 0, copy};
    return number;
}

double mstx__shifts_delay(const struct mstx_profiles *p, uint32_t shifts, uint32_t class)
{
    const struct mstx_shifts *s = &p->shifts.p[shifts];
    double latest = -INFINITY;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct mstx_delay *found =
            mstx__delays_find(p->all.p[s->at[i].profile].delays, class);
        latest = fmax(latest, s->at[i].ns + (found != NULL ? found->ns : 0));
    }
    return latest;
}

/* Writes the later of both in each class. */
static void write_later(struct mstx_delays *to, const struct mstx_delays *a, double a_ns,
                        const struct mstx_delays *b, double b_ns)
{
    const double none = fmax(a_ns, b_ns);
    const uint32_t na = a != NULL ? a->n : 0, nb = b != NULL ? b->n : 0;
    for (uint32_t i = 0, k = 0; i < na || k < nb;) {
        const uint32_t ca = i < na ? a->at[i].class : UINT32_MAX;
        const uint32_t cb = k < nb ? b->at[k].class : UINT32_MAX;
        const uint32_t class = ca < cb ? ca : cb;
        const double in_a = a_ns + (ca == class ? a->at[i++].ns : 0);
        const double in_b = b_ns + (cb == class ? b->at[k++].ns : 0);
        put(to, class, fmax(in_a, in_b) - none);
    }
}

/* Returns the later of a list that begins a_ns later and a shift, as delays of the later begin. */
static struct mstx_delays *join(struct mstx_profiles *p, const struct mstx_delays *a, double a_ns,
                                const struct mstx_shift *shift)
{
    const struct mstx_delays *b = p->all.p[shift->profile].delays;
    const size_t most = (a != NULL ? a->n : 0) + (size_t)(b != NULL ? b->n : 0);
    struct mstx_delays *l = mstx__delays_new(p, most);
    p->work += most;
    if (l != NULL)
        write_later(l, a, a_ns, b, shift->ns);
    return l;
}

uint32_t mstx__shifts_flatten(struct mstx_profiles *p, uint32_t shifts)
{
    const struct mstx_shifts s = p->shifts.p[shifts];
    if (s.n == 1)
        return (uint32_t)s.at[0].profile;
    if (s.flat != 0)
        return s.flat;
    struct mstx_delays *l = mstx__delays_share(p->all.p[s.at[0].profile].delays);
    double ns = s.at[0].ns;
    for (uint32_t i = 1; i < s.n; i++) {
        struct mstx_delays *joined = join(p, l, ns, &s.at[i]);
        mstx__delays_release(p, l);
        if (joined == NULL)
            return MSTX_NO_PROFILE;
        l = joined;
        ns = fmax(ns, s.at[i].ns);
    }
    ms_assert(ns == 0);
    const uint32_t flat = add_profile(p, l, s.at, s.n);
    p->shifts.p[shifts].flat = flat != MSTX_NO_PROFILE ? flat : 0;
    return flat;
}
