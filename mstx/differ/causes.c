/* SPDX-License-Identifier: MIT
 *
 * causes: see the header.
 */
#include "mstx/differ/causes.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>

/* A cause makes the step longer by at least this share, and by so many standard deviations of two
 * equal runs. */
static const double SHARE_MIN = 0.012, NOISE_MIN = 4;
/* A place is new when the old run spent less than this share of its time there. */
static const double NEW_SHARE = 0.02;
/* Places that are gone and new within one another replace each other from this share on. */
static const double REPLACED = 0.25;
/* A host disturbs a run more when its steps lose so many times what those of the old run lose, which
 * are taken to lose at least this share of a step. */
static const double HOST_MORE = 12, HOST_USUAL = 0.2;
enum { RANKS_MAX = 16 };

struct explaining {
    struct mstx_causes *to;
    const struct mstx_difference *d;
    const struct mstx_change *change; /* by place */
    const struct mstx_change *common; /* by place: what all ranks have; NULL: change is that */
    const uint32_t *first, *next;     /* children of a place, and siblings; MSTX_NO_PLACE: none */
    int64_t pair;
    double least,
        scale; /* excess from which on a place is a cause; share of it that the step feels */
};

/* Returns the excess of a place; of a rank that beyond what all have, unless all became faster. */
static double all_at(const struct explaining *e, uint32_t place)
{
    return e->change[place].all.ns - (e->common != NULL ? fmax(e->common[place].all.ns, 0) : 0);
}

static double own_at(const struct explaining *e, uint32_t place)
{
    return e->change[place].own.ns - (e->common != NULL ? fmax(e->common[place].own.ns, 0) : 0);
}

/* Tells whether ns, which is x or what a rank has of it beyond the others, makes a cause. */
static bool is_enough(const struct explaining *e, double ns, const struct mstx_excess *x)
{
    return ns * e->scale >= e->least && ns >= NOISE_MIN * x->noise && x->low > x->ns - ns;
}

static bool is_new(const struct mstx_change *c)
{
    return c->new_ns > 0 && c->old_ns <= NEW_SHARE * c->new_ns;
}

static bool is_gone(const struct mstx_change *c)
{
    return c->old_ns > 0 && c->new_ns <= NEW_SHARE * c->old_ns;
}

/* ---- kinds --------------------------------------------------------------------------------- */

static enum mstx_cause_kind kind_of(const struct explaining *e, uint32_t place)
{
    static const enum mstx_cause_kind kinds[MSTX_PLACE_KINDS] = {
        [MSTX_PLACE_STEP] = MSTX_CAUSE_STEP,     [MSTX_PLACE_RANGE] = MSTX_CAUSE_OPERATOR,
        [MSTX_PLACE_KERNEL] = MSTX_CAUSE_KERNEL, [MSTX_PLACE_COPY] = MSTX_CAUSE_COPY,
        [MSTX_PLACE_COMM] = MSTX_CAUSE_COMM,     [MSTX_PLACE_GAP] = MSTX_CAUSE_GAP,
        [MSTX_PLACE_LOAD] = MSTX_CAUSE_LOAD};
    const enum mstx_place_kind kind = e->d->places->list.p[place].kind;
    const bool is_module = kind == MSTX_PLACE_RANGE && e->first[place] != MSTX_NO_PLACE &&
                           !ms_str_has(mstx__places_text(e->d->places, place), "::");
    return is_module ? MSTX_CAUSE_MODULE : kinds[kind];
}

const char *mstx__cause_word(enum mstx_cause_kind kind)
{
    static const char *const words[MSTX_CAUSE_KINDS] = {
        "module",     "operator",     "kernel", "memory copies",  "communicator",
        "launch gap", "data loading", "step",   "host preemption"};
    ms_assert(kind < MSTX_CAUSE_KINDS);
    return words[kind];
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Adds ns of the place's excess x as a cause. */
static bool add_cause(struct explaining *e, uint32_t place, double ns, const struct mstx_excess *x)
{
    const struct mstx_change *c = &e->change[place];
    struct mstx_cause *slot = ms_vec_push(&e->to->list);
    if (slot == NULL)
        return false;
    const double apart = ns - x->ns;
    *slot = (struct mstx_cause){.kind = kind_of(e, place),
                                .place = place,
                                .pair = e->pair,
                                .cost_ns = ns * e->scale,
                                .low_ns = (x->low + apart) * e->scale,
                                .high_ns = (x->high + apart) * e->scale,
                                .old_ns = c->old_ns,
                                .new_ns = c->new_ns};
    return true;
}

/* Tells whether new places within one stand for places that are gone. */
static bool has_replaced(const struct explaining *e, uint32_t place)
{
    double gone = 0, added = 0;
    for (uint32_t k = e->first[place]; k != MSTX_NO_PLACE; k = e->next[k]) {
        if (is_gone(&e->change[k]))
            gone -= all_at(e, k);
        else if (is_new(&e->change[k]))
            added += all_at(e, k);
    }
    return added > 0 && gone > REPLACED * added;
}

/* Adds ns of x as a cause when it is enough; *left is what remains to be explained. */
static bool add_if_enough(struct explaining *e, uint32_t place, double ns,
                          const struct mstx_excess *x, double *left)
{
    if (!is_enough(e, ns, x))
        return true;
    *left -= ns;
    return add_cause(e, place, ns, x);
}

/* New places within one that are small, as those of one new line of the program are together. */
struct small_ones {
    struct mstx_excess all;
    uint32_t largest, n;
    double new_ns;
};

static struct small_ones small_ones(const struct explaining *e, uint32_t place)
{
    struct small_ones s = {.largest = MSTX_NO_PLACE};
    for (uint32_t k = e->first[place]; k != MSTX_NO_PLACE; k = e->next[k]) {
        const struct mstx_excess *x = &e->change[k].all;
        if (!is_new(&e->change[k]) || is_enough(e, all_at(e, k), x))
            continue;
        if (s.n++ == 0 || x->ns > e->change[s.largest].all.ns)
            s.largest = k;
        s.new_ns += e->change[k].new_ns;
        s.all.ns += x->ns;
        s.all.low += x->low;
        s.all.high += x->high;
        s.all.noise += x->noise;
    }
    return s;
}

/* Adds small new places within one as a cause when together they are enough. */
static bool explain_small_ones(struct explaining *e, uint32_t place, double *left)
{
    const struct small_ones s = small_ones(e, place);
    if (s.n < 2 || e->common != NULL || !is_enough(e, s.all.ns, &s.all))
        return true;
    *left -= s.all.ns;
    if (!add_cause(e, s.largest, s.all.ns, &s.all))
        return false;
    struct mstx_cause *c = &e->to->list.p[e->to->list.n - 1];
    c->others = s.n - 1;
    c->new_ns = s.new_ns;
    return true;
}

/* Adds the causes at a place and within it: first what lies in it, then its own excess, then what
 * these leave.  Sets *left to what no cause explains. */
static bool explain(struct explaining *e, uint32_t place, double *left)
{
    const struct mstx_change *c = &e->change[place];
    const bool replaced = has_replaced(e, place);
    bool ok = true;
    *left = all_at(e, place);
    if (place != MSTX_ROOT && is_new(c))
        return add_if_enough(e, place, *left, &c->all, left);
    for (uint32_t k = e->first[place]; k != MSTX_NO_PLACE && ok; k = e->next[k]) {
        double within = 0;
        if (replaced && is_new(&e->change[k]))
            continue;
        ok = explain(e, k, &within);
        *left -= all_at(e, k) - within;
    }
    if (!replaced)
        ok = ok && explain_small_ones(e, place, left);
    ok = ok && add_if_enough(e, place, own_at(e, place), &c->own, left);
    return ok && add_if_enough(e, place, *left, &c->all, left);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct slow_rank {
    size_t pair;
    double cost_ns;
};

static int by_cost(const void *pa, const void *pb)
{
    const struct slow_rank *a = pa, *b = pb;
    return MS_ORDER(b->cost_ns, a->cost_ns, MS_ORDER(a->pair, b->pair, 0));
}

static bool explain_rank(struct explaining *e, const struct slow_rank *slow)
{
    struct mstx_change *change = mstx__difference_of_rank(e->d, slow->pair);
    if (change == NULL)
        return false;
    struct explaining own = *e;
    own.change = change;
    own.common = e->d->change;
    own.pair = (int64_t)slow->pair;
    own.scale = slow->cost_ns / e->d->pair.p[slow->pair].own_ns;
    double left;
    const bool ok = explain(&own, MSTX_ROOT, &left);
    ms_free(change);
    return ok;
}

/* Ranks that work longer than the others do, beyond the time for which they waited before. */
static bool explain_ranks(struct explaining *e)
{
    const size_t n = e->d->pair.n;
    struct slow_rank *slow = ms_calloc(n + 1, sizeof *slow);
    size_t found = 0;
    bool ok = slow != NULL;
    for (size_t i = 0; i < n && ok && n > 1; i++) {
        const double cost = e->d->pair.p[i].own_ns - e->d->pair.p[i].slack_ns;
        if (cost >= e->least)
            slow[found++] = (struct slow_rank){i, cost};
    }
    if (found > 1)
        qsort(slow, found, sizeof *slow, by_cost);
    for (size_t i = 0; i < found && i < RANKS_MAX && ok; i++)
        ok = explain_rank(e, &slow[i]);
    ms_free(slow);
    return ok;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool explain_host(struct explaining *e)
{
    const struct mstx_difference *d = e->d;
    const double before = d->old_step_ns - d->old_quiet_ns,
                 after = d->new_step_ns - d->new_quiet_ns;
    if (after <= HOST_MORE * (before + HOST_USUAL * d->old_quiet_ns))
        return true;
    struct mstx_cause *slot = ms_vec_push(&e->to->list);
    if (slot != NULL)
        *slot = (struct mstx_cause){.kind = MSTX_CAUSE_HOST,
                                    .pair = -1,
                                    .cost_ns = after - before,
                                    .low_ns = after - HOST_MORE * before,
                                    .high_ns = after,
                                    .old_ns = before,
                                    .new_ns = after};
    return slot != NULL;
}

static int worst_first(const void *pa, const void *pb)
{
    const struct mstx_cause *a = pa, *b = pb;
    return MS_ORDER(b->cost_ns, a->cost_ns,
                    MS_ORDER(a->place, b->place, MS_ORDER(a->pair, b->pair, 0)));
}

/* Links the children of each place, in the order of their numbers. */
static void link_places(const struct mstx_places *p, uint32_t *first, uint32_t *next)
{
    for (size_t i = 0; i < p->list.n; i++)
        first[i] = next[i] = MSTX_NO_PLACE;
    for (size_t i = p->list.n; i-- > 1;) {
        next[i] = first[p->list.p[i].parent];
        first[p->list.p[i].parent] = (uint32_t)i;
    }
}

bool mstx__causes_find(struct mstx_causes *c, const struct mstx_difference *d)
{
    *c = (struct mstx_causes){0};
    const size_t n = d->places->list.n;
    uint32_t *first = ms_calloc(n, sizeof *first), *next = ms_calloc(n, sizeof *next);
    struct explaining e = {.to = c,
                           .d = d,
                           .change = d->change,
                           .first = first,
                           .next = next,
                           .pair = -1,
                           .least = SHARE_MIN * d->old_quiet_ns,
                           .scale = 1};
    bool ok = first != NULL && next != NULL;
    if (ok) {
        link_places(d->places, first, next);
        double left;
        ok = explain(&e, MSTX_ROOT, &left) && explain_ranks(&e) && explain_host(&e);
    }
    ms_vec_sort(&c->list, worst_first);
    ms_free(first);
    ms_free(next);
    return ok;
}

void mstx__causes_free(struct mstx_causes *c)
{
    ms_vec_free(&c->list);
}
