/* SPDX-License-Identifier: MIT
 *
 * class_replay: see the header.
 */
#include "mstx/cluster/class_replay.h"

#include "mstx/cluster/delays.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <string.h>

/* A replay gives up after this share of the work of whole replays, which look at a node in eight
 * scenarios in the time of two delays here. */
enum { WORK_SHARE = 16 };
/* An own list grows up to OWN_MOST delays and 1 / OWN_SHARE of its profile. */
enum { OWN_MOST = 32, OWN_SHARE = 16 };
/* A node with more predecessors does not look which of them have waited for others. */
enum { FEW = 4 };
/* More profiles than these behind a node become one. */
enum { SHIFTS_MOST = 16 };
/* Bytes of lists: for each node, and for each class. */
enum { NODE_BYTES = 32, CLASS_BYTES = 4096 };
#define NOBODY UINT32_MAX

/* When a node ends, in every scenario. */
struct node_time {
    double base;
    struct mstx_delays *own; /* NULL: none */
    double self_ns;
    uint32_t self; /* MSTX_NO_OP: no class */
    uint32_t shifts;
};

/* Sources with the same shifts, the latest first. */
struct group {
    uint32_t first, n, shifts;
};
/* A profile that a merged source has. */
struct bound {
    uint64_t profile;
    double at;    /* when it begins, by the latest source */
    double bound; /* the result is never earlier than this plus a delay of the profile */
};
/* An own delay of a source, as a time. */
struct candidate {
    uint32_t class, source;
    double at;
};

struct mstx_class_replay {
    const struct mstx_deps *d;
    struct node_time *node; /* of a step */
    uint32_t *waiting;      /* by node: how many nodes still wait for it; NOBODY: none ever did */
    uint32_t *behind;       /* by node: the last one that waited for it */
    struct mstx_profiles profiles;
    uint64_t merge;                  /* number of the current merge, to which the rest belongs */
    MS_VEC(struct node_time) source; /* what meets */
    MS_VEC(struct group) group;
    MS_VEC(struct bound) bound;
    MS_VEC(struct candidate) candidate;
    MS_VEC(struct mstx_delay) own;
    MS_VEC(struct mstx_shift) shift;
};

struct mstx_class_replay *mstx__class_replay_new(const struct mstx_deps *d, size_t most)
{
    struct mstx_class_replay *r = ms_calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->d = d;
    r->node = ms_calloc(most + 1, sizeof *r->node);
    r->waiting = ms_calloc(most + 1, sizeof *r->waiting);
    r->behind = ms_calloc(most + 1, sizeof *r->behind);
    if (r->node != NULL && r->waiting != NULL && r->behind != NULL)
        return r;
    mstx__class_replay_free(r);
    return NULL;
}

void mstx__class_replay_free(struct mstx_class_replay *r)
{
    if (r == NULL)
        return;
    ms_free(r->node);
    ms_free(r->waiting);
    ms_free(r->behind);
    ms_vec_free(&r->source);
    ms_vec_free(&r->group);
    ms_vec_free(&r->bound);
    ms_vec_free(&r->candidate);
    ms_vec_free(&r->own);
    ms_vec_free(&r->shift);
    ms_free(r);
}

static double delay_in(const struct mstx_class_replay *r, uint32_t shifts, uint32_t class)
{
    return mstx__shifts_delay(&r->profiles, shifts, class);
}

static double delay_at(const struct mstx_class_replay *r, const struct node_time *m, uint32_t class)
{
    if (m->self == class)
        return m->self_ns;
    const struct mstx_delay *found = mstx__delays_find(m->own, class);
    return found != NULL ? found->ns : delay_in(r, m->shifts, class);
}

/* ---- sources --------------------------------------------------------------------------- */

static bool add_source(struct mstx_class_replay *r, const struct node_time *m)
{
    struct node_time *slot = ms_vec_push(&r->source);
    if (slot != NULL)
        *slot = *m;
    return slot != NULL;
}

static int by_shifts_latest_first(const void *pa, const void *pb)
{
    const struct node_time *a = pa, *b = pb;
    return MS_ORDER(a->shifts, b->shifts, MS_ORDER(b->base, a->base, 0));
}

static bool find_groups(struct mstx_class_replay *r)
{
    ms_vec_sort(&r->source, by_shifts_latest_first);
    r->group.n = 0;
    for (uint32_t i = 0; i < r->source.n; i++) {
        const struct node_time *m = &r->source.p[i];
        if (r->group.n != 0 && r->group.p[r->group.n - 1].shifts == m->shifts) {
            r->group.p[r->group.n - 1].n++;
            continue;
        }
        struct group *g = ms_vec_push(&r->group);
        if (g == NULL)
            return false;
        *g = (struct group){i, 1, m->shifts};
    }
    return true;
}

static int by_profile_latest_bound_first(const void *pa, const void *pb)
{
    const struct bound *a = pa, *b = pb;
    return MS_ORDER(a->profile, b->profile, MS_ORDER(b->at, a->at, 0));
}

/* Lists the profiles behind the groups, each with the latest time at which it begins. */
static bool find_bounds(struct mstx_class_replay *r)
{
    size_t n = 0;
    r->bound.n = 0;
    for (size_t k = 0; k < r->group.n; k++) {
        const struct mstx_shifts *s = &r->profiles.shifts.p[r->group.p[k].shifts];
        const double base = r->source.p[r->group.p[k].first].base;
        for (uint32_t i = 0; i < s->n; i++) {
            struct bound *slot = ms_vec_push(&r->bound);
            if (slot == NULL)
                return false;
            *slot = (struct bound){s->at[i].profile, base + s->at[i].ns, base + s->at[i].ns};
        }
    }
    ms_vec_sort(&r->bound, by_profile_latest_bound_first);
    for (size_t i = 0; i < r->bound.n; i++) {
        if (i == 0 || r->bound.p[i].profile != r->bound.p[n - 1].profile)
            r->bound.p[n++] = r->bound.p[i];
    }
    r->profiles.work += r->bound.n;
    r->bound.n = n;
    return true;
}

/* Writes the profiles of the sources as shifts: when they begin, or their lower bounds. */
static bool list_shifts(struct mstx_class_replay *r, double base, bool bounds)
{
    if (!ms_vec_reserve(&r->shift, r->bound.n))
        return false;
    r->shift.n = r->bound.n;
    for (size_t i = 0; i < r->bound.n; i++) {
        const struct bound *b = &r->bound.p[i];
        r->shift.p[i] = (struct mstx_shift){(bounds ? b->bound : b->at) - base, b->profile};
    }
    return true;
}

/* Sets out to the latest of the sources, as if none had delays of its own. */
static bool join_groups(struct mstx_class_replay *r, struct node_time *out)
{
    *out = (struct node_time){.self = MSTX_NO_OP};
    for (size_t i = 0; i < r->bound.n; i++)
        out->base = fmax(out->base, r->bound.p[i].at);
    if (!list_shifts(r, out->base, false))
        return false;
    r->shift.n = mstx__shifts_prune(&r->profiles, r->shift.p, r->shift.n);
    out->shifts = mstx__shifts_number(&r->profiles, r->shift.p, r->shift.n);
    if (out->shifts == MSTX_NO_PROFILE || r->shift.n <= SHIFTS_MOST)
        return out->shifts != MSTX_NO_PROFILE;
    const struct mstx_shift flat = {0, mstx__shifts_flatten(&r->profiles, out->shifts)};
    if (flat.profile != MSTX_NO_PROFILE)
        out->shifts = mstx__shifts_number(&r->profiles, &flat, 1);
    return flat.profile != MSTX_NO_PROFILE && out->shifts != MSTX_NO_PROFILE;
}

/* ---- own delays of the sources ------------------------------------------------------------ */

static bool add_candidate(struct mstx_class_replay *r, uint32_t class, uint32_t source, double at)
{
    struct candidate *slot = ms_vec_push(&r->candidate);
    if (slot != NULL)
        *slot = (struct candidate){class, source, at};
    return slot != NULL;
}

static int by_class(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    return MS_ORDER(a->class, b->class, MS_ORDER(a->source, b->source, 0));
}

/* Finds the latest of the sources that share a list. */
static void find_latest(struct mstx_class_replay *r)
{
    r->merge++;
    for (uint32_t i = 0; i < r->source.n; i++) {
        struct mstx_delays *l = r->source.p[i].own;
        if (l != NULL &&
            (l->merge != r->merge || r->source.p[l->latest].base < r->source.p[i].base))
            l->latest = i;
        if (l != NULL)
            l->merge = r->merge;
    }
}

/* Adds the delays in the list of a source.  Of the sources that share a list, only the latest counts;
 * but for the class that is the self of the latest one, each of the others does.  is_join_late looks
 * at all delays of the first source of a group. */
static bool add_list(struct mstx_class_replay *r, uint32_t i, bool is_first)
{
    const struct node_time *m = &r->source.p[i];
    const struct mstx_delays *l = m->own;
    if (!is_first && l->latest != i) {
        const uint32_t class = r->source.p[l->latest].self;
        const struct mstx_delay *found = mstx__delays_find(l, class);
        return found == NULL || class == m->self || add_candidate(r, class, i, m->base + found->ns);
    }
    bool ok = true;
    for (uint32_t k = 0; k < l->n && ok; k++) {
        if (l->at[k].class != m->self)
            ok = add_candidate(r, l->at[k].class, i, m->base + l->at[k].ns);
    }
    return ok;
}

static bool collect_candidates(struct mstx_class_replay *r)
{
    bool ok = true;
    r->candidate.n = 0;
    find_latest(r);
    for (uint32_t i = 0; i < r->source.n && ok; i++) {
        const struct node_time *m = &r->source.p[i];
        const bool is_first = i == 0 || r->source.p[i - 1].shifts != m->shifts;
        ok = (m->own == NULL || add_list(r, i, is_first)) &&
             (m->self == MSTX_NO_OP || add_candidate(r, m->self, i, m->base + m->self_ns));
    }
    ms_vec_sort(&r->candidate, by_class);
    return ok;
}

/* Tells whether one of the sources is the latest of its group in the base, but not in the scenario
 * of the class: then the join of the groups is too late for that class. */
static bool is_join_late(const struct mstx_class_replay *r, const struct candidate *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct node_time *s = &r->source.p[c[i].source];
        const bool is_latest = c[i].source == 0 || r->source.p[c[i].source - 1].shifts != s->shifts;
        if (is_latest && c[i].at < s->base + delay_in(r, s->shifts, c[i].class))
            return true;
    }
    return false;
}

static bool has_own(const struct node_time *m, uint32_t class)
{
    return m->self == class || mstx__delays_find(m->own, class) != NULL;
}

/* Returns the latest of the sources that have no own delay of the class. */
static double latest_of_others(struct mstx_class_replay *r, uint32_t class)
{
    double latest = 0;
    for (size_t k = 0; k < r->group.n; k++) {
        const struct group *g = &r->group.p[k];
        uint32_t i = g->first;
        while (i < g->first + g->n && has_own(&r->source.p[i], class))
            i++;
        if (i < g->first + g->n)
            latest = fmax(latest, r->source.p[i].base + delay_in(r, g->shifts, class));
        r->profiles.work += i - g->first + 1;
    }
    return latest;
}

/* Lowers the bounds to the time of the class. */
static void lower_bounds(struct mstx_class_replay *r, uint32_t class, double at)
{
    for (size_t k = 0; k < r->bound.n; k++) {
        struct bound *b = &r->bound.p[k];
        const struct mstx_delay *found =
            mstx__delays_find(r->profiles.all.p[b->profile].delays, class);
        b->bound = fmin(b->bound, at - (found != NULL ? found->ns : 0));
    }
}

/* Finds the latest source in the scenario of a class that sources have own delays for. */
static bool merge_class(struct mstx_class_replay *r, const struct candidate *c, size_t n,
                        const struct node_time *out)
{
    const double joined = delay_in(r, out->shifts, c[0].class);
    const bool is_late = is_join_late(r, c, n);
    double at = is_late ? latest_of_others(r, c[0].class) : out->base + joined;
    for (size_t i = 0; i < n; i++)
        at = fmax(at, c[i].at);
    if (is_late)
        lower_bounds(r, c[0].class, at);
    if (at - out->base == joined)
        return true;
    struct mstx_delay *slot = ms_vec_push(&r->own);
    if (slot != NULL)
        *slot = (struct mstx_delay){at - out->base, c[0].class};
    return slot != NULL;
}

static bool merge_classes(struct mstx_class_replay *r, const struct node_time *out)
{
    bool ok = true;
    r->own.n = 0;
    for (size_t i = 0, n; i < r->candidate.n && ok; i += n) {
        n = 1;
        while (i + n < r->candidate.n && r->candidate.p[i + n].class == r->candidate.p[i].class)
            n++;
        ok = merge_class(r, &r->candidate.p[i], n, out);
    }
    return ok;
}

/* ---- storing the result ------------------------------------------------------------- */

static bool make_profile(struct mstx_class_replay *r, struct node_time *out)
{
    struct mstx_profiles *p = &r->profiles;
    const uint32_t rest = mstx__shifts_flatten(p, out->shifts);
    if (rest == MSTX_NO_PROFILE || !list_shifts(r, out->base, true))
        return false;
    const struct mstx_shift whole = {
        0, mstx__profiles_overlay(p, rest, r->own.p, r->own.n, r->shift.p, r->shift.n)};
    if (whole.profile == MSTX_NO_PROFILE)
        return false;
    out->shifts = mstx__shifts_number(p, &whole, 1);
    return out->shifts != MSTX_NO_PROFILE;
}

static size_t most_own(const struct mstx_class_replay *r, uint32_t shifts)
{
    const struct mstx_shifts *s = &r->profiles.shifts.p[shifts];
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct mstx_delays *l = r->profiles.all.p[s->at[i].profile].delays;
        most = l != NULL && l->n > most ? l->n : most;
    }
    return OWN_MOST + most / OWN_SHARE;
}

static bool store_own(struct mstx_class_replay *r, struct node_time *out)
{
    if (r->own.n == 0)
        return true;
    if (r->own.n > most_own(r, out->shifts))
        return make_profile(r, out);
    struct mstx_delays *l = mstx__delays_new(&r->profiles, r->own.n);
    if (l == NULL)
        return false;
    memcpy(l->at, r->own.p, r->own.n * sizeof *l->at);
    l->n = (uint32_t)r->own.n;
    out->own = l;
    return true;
}

/* Sets out to the latest of the sources in each scenario. */
static bool merge_sources(struct mstx_class_replay *r, struct node_time *out)
{
    const bool ok = find_groups(r) && find_bounds(r) && join_groups(r, out) &&
                    collect_candidates(r) && merge_classes(r, out) && store_own(r, out);
    r->profiles.work += r->source.n + r->candidate.n;
    return ok;
}

/* ---- nodes ------------------------------------------------------------------------------- */

/* Makes room for another class as the self of a node: its self becomes one of its own delays. */
static bool push_self(struct mstx_class_replay *r, struct node_time *m)
{
    const uint32_t n = m->own != NULL ? m->own->n : 0;
    struct mstx_delays *l = mstx__delays_new(&r->profiles, n + 1);
    if (l == NULL)
        return false;
    uint32_t i = 0;
    for (; i < n && m->own->at[i].class < m->self; i++)
        l->at[l->n++] = m->own->at[i];
    l->at[l->n++] = (struct mstx_delay){m->self_ns, m->self};
    for (i += i < n && m->own->at[i].class == m->self; i < n; i++)
        l->at[l->n++] = m->own->at[i];
    mstx__delays_release(&r->profiles, m->own);
    m->own = l;
    r->profiles.work += n;
    return true;
}

/* Adds the duration of an operation, which in the scenario of its class is another. */
static bool add_duration(struct mstx_class_replay *r, struct node_time *m,
                         const struct mstx_scenarios *x, uint32_t op)
{
    const uint32_t class = x->class_of[op];
    const double more = x->other[op] - x->base[op];
    ms_assert(x->base[op] >= 0 && x->other[op] >= 0);
    m->base += x->base[op];
    if (class == UINT32_MAX || more == 0)
        return true;
    const double before = delay_at(r, m, class);
    if (m->self != MSTX_NO_OP && m->self != class && !push_self(r, m))
        return false;
    m->self = class;
    m->self_ns = before + more;
    return true;
}

/* Counts for each node how many others wait for it. */
static void count_waiting(struct mstx_class_replay *r, size_t from, size_t to)
{
    const struct mstx_deps *d = r->d;
    memset(r->waiting, 0, (to - from) * sizeof *r->waiting);
    memset(r->behind, 0xFF, (to - from) * sizeof *r->behind);
    for (uint32_t i = d->first.p[from]; i < d->first.p[to]; i++)
        r->waiting[d->pred.p[i] - from]++;
    for (size_t v = 0; v < to - from; v++)
        r->waiting[v] = r->waiting[v] != 0 ? r->waiting[v] : NOBODY;
}

/* Tells whether another predecessor of v has waited for this one, and so is never earlier. */
static bool is_needless(const struct mstx_class_replay *r, size_t from, size_t v, uint32_t pred)
{
    const struct mstx_deps *d = r->d;
    const uint32_t first = d->first.p[v], end = d->first.p[v + 1];
    for (uint32_t i = first; i < end && end - first <= FEW; i++) {
        if (d->pred.p[i] == r->behind[pred - from])
            return true;
    }
    return false;
}

/* Sets m to the latest of the nodes that v waits for. */
static bool wait_for_all(struct mstx_class_replay *r, size_t from, size_t v, struct node_time *m)
{
    const struct mstx_deps *d = r->d;
    *m = (struct node_time){.self = MSTX_NO_OP};
    r->source.n = 0;
    for (uint32_t i = d->first.p[v]; i < d->first.p[v + 1]; i++) {
        const uint32_t pred = d->pred.p[i];
        if (!is_needless(r, from, v, pred) && !add_source(r, &r->node[pred - from]))
            return false;
    }
    if (r->source.n > 1)
        return merge_sources(r, m);
    if (r->source.n == 1) {
        *m = r->source.p[0];
        mstx__delays_share(m->own);
    }
    return true;
}

/* The own delays of a node are needed until the last other has waited for it. */
static void forget_waited(struct mstx_class_replay *r, size_t from, size_t v)
{
    for (uint32_t i = r->d->first.p[v]; i < r->d->first.p[v + 1]; i++) {
        const size_t pred = r->d->pred.p[i] - from;
        r->behind[pred] = (uint32_t)v;
        if (--r->waiting[pred] == 0)
            mstx__delays_release(&r->profiles, r->node[pred].own);
    }
}

static bool replay_node(struct mstx_class_replay *r, size_t from, size_t v,
                        const struct mstx_scenarios *x)
{
    const uint32_t op = r->d->op.p[v];
    struct node_time *m = &r->node[v - from];
    const bool ok = wait_for_all(r, from, v, m) && (op == MSTX_NO_OP || add_duration(r, m, x, op));
    if (ok)
        forget_waited(r, from, v);
    return ok;
}

/* Sets out to the end of a step: the latest of the nodes that no other waits for. */
static bool find_end(struct mstx_class_replay *r, size_t n, struct node_time *out)
{
    r->source.n = 0;
    for (size_t v = 0; v < n; v++) {
        if (r->waiting[v] == NOBODY && !add_source(r, &r->node[v]))
            return false;
    }
    return merge_sources(r, out);
}

static bool replay_nodes(struct mstx_class_replay *r, size_t from, size_t to,
                         const struct mstx_scenarios *x, uint32_t classes, struct node_time *end)
{
    const size_t most = (to - from) * classes / WORK_SHARE;
    count_waiting(r, from, to);
    for (size_t v = from; v < to; v++) {
        if (!replay_node(r, from, v, x) || r->profiles.work > most)
            return false;
    }
    return find_end(r, to - from, end);
}

bool mstx__class_replay(struct mstx_class_replay *r, size_t from, size_t to,
                        const struct mstx_scenarios *x, uint32_t classes, double *sum)
{
    ms_assert(from <= to && to <= r->d->op.n && x->first == 0);
    if (from == to)
        return true;
    struct node_time end;
    const size_t limit = (to - from) * NODE_BYTES + (size_t)classes * CLASS_BYTES;
    bool ok = mstx__profiles_begin(&r->profiles, limit);
    ok = ok && replay_nodes(r, from, to, x, classes, &end);
    for (uint32_t k = 0; k < classes && ok; k++)
        sum[k] += end.base + delay_at(r, &end, k);
    mstx__profiles_end(&r->profiles);
    return ok;
}
