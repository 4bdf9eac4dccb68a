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
/* Bytes of lists: for each node, and for each class. */
enum { NODE_BYTES = 64, CLASS_BYTES = 4096 };

/* When a node is over, in every scenario. */
struct moment {
    double base;
    const struct mstx_delays *own; /* NULL: none */
    double self_ns;
    uint32_t self; /* MSTX_NO_OP: no class */
    uint32_t profile;
};

/* A node that others wait for at a meeting. */
struct source {
    struct moment m;
    uint32_t has; /* the class that is looked at, if the source has a delay of its own for it */
};
/* Sources with one profile, the latest first. */
struct group {
    uint32_t first, n, profile;
    double base;  /* of its latest source */
    double bound; /* the meeting is never earlier than this and a delay of the profile */
};
/* An own delay of a source. */
struct heard {
    uint32_t class, source;
    double at;
};

struct mstx_class_replay {
    const struct mstx_deps *d;
    struct moment *node; /* of a step */
    bool *is_waited_for; /* by node */
    struct mstx_profiles profiles;
    /* The current meeting. */
    MS_VEC(struct source) source;
    MS_VEC(struct group) group, joining;
    MS_VEC(struct heard) heard;
    MS_VEC(struct mstx_delay) own;
    MS_VEC(struct mstx_behind) behind;
};

struct mstx_class_replay *mstx__class_replay_new(const struct mstx_deps *d, size_t most)
{
    struct mstx_class_replay *r = ms_calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->d = d;
    r->node = ms_calloc(most + 1, sizeof *r->node);
    r->is_waited_for = ms_calloc(most + 1, sizeof *r->is_waited_for);
    if (r->node != NULL && r->is_waited_for != NULL)
        return r;
    mstx__class_replay_free(r);
    return NULL;
}

void mstx__class_replay_free(struct mstx_class_replay *r)
{
    if (r == NULL)
        return;
    ms_free(r->node);
    ms_free(r->is_waited_for);
    ms_vec_free(&r->source);
    ms_vec_free(&r->group);
    ms_vec_free(&r->joining);
    ms_vec_free(&r->heard);
    ms_vec_free(&r->own);
    ms_vec_free(&r->behind);
    ms_free(r);
}

static const struct mstx_delays *delays_of(const struct mstx_class_replay *r, uint32_t profile)
{
    return r->profiles.all.p[profile].delays;
}

static double delay_in(const struct mstx_class_replay *r, uint32_t profile, uint32_t class)
{
    const struct mstx_delay *found = mstx__delays_find(delays_of(r, profile), class);
    return found != NULL ? found->ns : 0;
}

static double delay_at(const struct mstx_class_replay *r, const struct moment *m, uint32_t class)
{
    if (m->self == class)
        return m->self_ns;
    const struct mstx_delay *found = mstx__delays_find(m->own, class);
    return found != NULL ? found->ns : delay_in(r, m->profile, class);
}

/* ---- sources of a meeting -------------------------------------------------------------- */

static bool add_source(struct mstx_class_replay *r, const struct moment *m)
{
    struct source *slot = ms_vec_push(&r->source);
    if (slot != NULL)
        *slot = (struct source){*m, MSTX_NO_OP};
    return slot != NULL;
}

static int by_profile_latest_first(const void *pa, const void *pb)
{
    const struct source *a = pa, *b = pb;
    return MS_ORDER(a->m.profile, b->m.profile, MS_ORDER(b->m.base, a->m.base, 0));
}

static bool find_groups(struct mstx_class_replay *r)
{
    ms_vec_sort(&r->source, by_profile_latest_first);
    r->group.n = 0;
    for (uint32_t i = 0; i < r->source.n; i++) {
        const struct moment *m = &r->source.p[i].m;
        if (r->group.n != 0 && r->group.p[r->group.n - 1].profile == m->profile) {
            r->group.p[r->group.n - 1].n++;
            continue;
        }
        struct group *g = ms_vec_push(&r->group);
        if (g == NULL)
            return false;
        *g = (struct group){i, 1, m->profile, m->base, m->base};
    }
    return true;
}

/* Joins the profiles of the groups in pairs, and the results again, as if no source had delays of
 * its own. */
static bool join_groups(struct mstx_class_replay *r, struct moment *out)
{
    if (!ms_vec_reserve(&r->joining, r->group.n))
        return false;
    struct group *g = r->joining.p;
    memcpy(g, r->group.p, r->group.n * sizeof *g);
    size_t n = r->group.n;
    for (; n > 1; n = (n + 1) / 2) {
        for (size_t i = 0; i + 1 < n; i += 2) {
            const struct group *a = &g[i], *b = &g[i + 1];
            const uint32_t joined =
                mstx__profiles_join(&r->profiles, a->profile, a->base, b->profile, b->base);
            if (joined == MSTX_NO_PROFILE)
                return false;
            g[i / 2] = (struct group){.profile = joined, .base = fmax(a->base, b->base)};
        }
        if (n % 2 != 0)
            g[n / 2] = g[n - 1];
    }
    *out = (struct moment){.base = g[0].base, .profile = g[0].profile, .self = MSTX_NO_OP};
    return true;
}

/* ---- own delays of the sources ------------------------------------------------------------ */

static bool hear(struct mstx_class_replay *r, uint32_t class, uint32_t source, double at)
{
    struct heard *slot = ms_vec_push(&r->heard);
    if (slot != NULL)
        *slot = (struct heard){class, source, at};
    return slot != NULL;
}

static int by_class(const void *pa, const void *pb)
{
    const struct heard *a = pa, *b = pb;
    return MS_ORDER(a->class, b->class, MS_ORDER(a->source, b->source, 0));
}

static bool hear_sources(struct mstx_class_replay *r)
{
    bool ok = true;
    r->heard.n = 0;
    for (uint32_t i = 0; i < r->source.n && ok; i++) {
        const struct moment *m = &r->source.p[i].m;
        for (uint32_t k = 0; m->own != NULL && k < m->own->n && ok; k++) {
            if (m->own->at[k].class != m->self)
                ok = hear(r, m->own->at[k].class, i, m->base + m->own->at[k].ns);
        }
        if (ok && m->self != MSTX_NO_OP)
            ok = hear(r, m->self, i, m->base + m->self_ns);
    }
    ms_vec_sort(&r->heard, by_class);
    return ok;
}

/* Tells whether one of the sources is the latest of its group in the base, but not in the scenario
 * of the class: then the join of the groups is too late for that class. */
static bool is_join_late(const struct mstx_class_replay *r, const struct heard *h, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct source *s = &r->source.p[h[i].source];
        const bool is_latest =
            h[i].source == 0 || r->source.p[h[i].source - 1].m.profile != s->m.profile;
        if (is_latest && h[i].at < s->m.base + delay_in(r, s->m.profile, h[i].class))
            return true;
    }
    return false;
}

/* Returns the latest of the sources that have no own delay of the class. */
static double latest_of_others(struct mstx_class_replay *r, const struct heard *h, size_t n)
{
    const uint32_t class = h[0].class;
    double latest = 0;
    for (size_t i = 0; i < n; i++)
        r->source.p[h[i].source].has = class;
    for (size_t k = 0; k < r->group.n; k++) {
        const struct group *g = &r->group.p[k];
        uint32_t i = g->first;
        while (i < g->first + g->n && r->source.p[i].has == class)
            i++;
        if (i < g->first + g->n)
            latest = fmax(latest, r->source.p[i].m.base + delay_in(r, g->profile, class));
    }
    r->profiles.work += r->group.n;
    return latest;
}

/* Lowers the bounds of groups to the time of the class. */
static void lower_bounds(struct mstx_class_replay *r, uint32_t class, double at)
{
    for (size_t k = 0; k < r->group.n; k++) {
        struct group *g = &r->group.p[k];
        g->bound = fmin(g->bound, at - delay_in(r, g->profile, class));
    }
}

/* Decides when the meeting is in the scenario of a class that sources have own delays for. */
static bool settle_class(struct mstx_class_replay *r, const struct heard *h, size_t n,
                         const struct moment *out)
{
    const double joined = delay_in(r, out->profile, h[0].class);
    const bool is_late = is_join_late(r, h, n);
    double at = is_late ? latest_of_others(r, h, n) : out->base + joined;
    for (size_t i = 0; i < n; i++)
        at = fmax(at, h[i].at);
    if (is_late)
        lower_bounds(r, h[0].class, at);
    if (at - out->base == joined)
        return true;
    struct mstx_delay *slot = ms_vec_push(&r->own);
    if (slot != NULL)
        *slot = (struct mstx_delay){at - out->base, h[0].class};
    return slot != NULL;
}

static bool settle_classes(struct mstx_class_replay *r, const struct moment *out)
{
    bool ok = true;
    r->own.n = 0;
    for (size_t i = 0, n; i < r->heard.n && ok; i += n) {
        n = 1;
        while (i + n < r->heard.n && r->heard.p[i + n].class == r->heard.p[i].class)
            n++;
        ok = settle_class(r, &r->heard.p[i], n, out);
    }
    return ok;
}

/* ---- what is kept of a meeting ------------------------------------------------------------- */

static bool make_profile(struct mstx_class_replay *r, struct moment *out)
{
    r->behind.n = 0;
    if (!ms_vec_reserve(&r->behind, r->group.n))
        return false;
    for (size_t k = 0; k < r->group.n; k++) {
        const struct group *g = &r->group.p[k];
        r->behind.p[r->behind.n++] = (struct mstx_behind){g->profile, g->bound - out->base};
    }
    out->profile = mstx__profiles_overlay(&r->profiles, out->profile, r->own.p, r->own.n,
                                          r->behind.p, r->behind.n);
    return out->profile != MSTX_NO_PROFILE;
}

static bool keep_own(struct mstx_class_replay *r, struct moment *out)
{
    const struct mstx_delays *profile = delays_of(r, out->profile);
    const size_t most = OWN_MOST + (profile != NULL ? profile->n : 0) / OWN_SHARE;
    if (r->own.n == 0)
        return true;
    if (r->own.n > most)
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
static bool meet(struct mstx_class_replay *r, struct moment *out)
{
    const bool ok = find_groups(r) && join_groups(r, out) && hear_sources(r) &&
                    settle_classes(r, out) && keep_own(r, out);
    r->profiles.work += r->source.n + r->heard.n;
    return ok;
}

/* ---- nodes ------------------------------------------------------------------------------- */

/* Makes room for another class as the self of a node: its self becomes one of its own delays. */
static bool put_self_away(struct mstx_class_replay *r, struct moment *m)
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
    m->own = l;
    r->profiles.work += n;
    return true;
}

/* Adds the duration of an operation, which in the scenario of its class is another. */
static bool add_duration(struct mstx_class_replay *r, struct moment *m,
                         const struct mstx_scenarios *x, uint32_t op)
{
    const uint32_t class = x->class_of[op];
    const double more = x->other[op] - x->base[op];
    ms_assert(x->base[op] >= 0 && x->other[op] >= 0);
    m->base += x->base[op];
    if (class == UINT32_MAX || more == 0)
        return true;
    const double before = delay_at(r, m, class);
    if (m->self != MSTX_NO_OP && m->self != class && !put_self_away(r, m))
        return false;
    m->self = class;
    m->self_ns = before + more;
    return true;
}

static bool replay_node(struct mstx_class_replay *r, size_t from, size_t v,
                        const struct mstx_scenarios *x)
{
    const struct mstx_deps *d = r->d;
    const uint32_t first = d->first.p[v], end = d->first.p[v + 1], op = d->op.p[v];
    struct moment *m = &r->node[v - from];
    *m = (struct moment){.self = MSTX_NO_OP};
    r->source.n = 0;
    for (uint32_t i = first; i < end; i++) {
        r->is_waited_for[d->pred.p[i] - from] = true;
        if (end - first > 1 && !add_source(r, &r->node[d->pred.p[i] - from]))
            return false;
    }
    if (end - first == 1)
        *m = r->node[d->pred.p[first] - from];
    if (end - first > 1 && !meet(r, m))
        return false;
    return op == MSTX_NO_OP || add_duration(r, m, x, op);
}

/* Sets out to the end of a step: the latest of the nodes that no other waits for. */
static bool find_end(struct mstx_class_replay *r, size_t n, struct moment *out)
{
    r->source.n = 0;
    for (size_t v = 0; v < n; v++) {
        if (!r->is_waited_for[v] && !add_source(r, &r->node[v]))
            return false;
    }
    return meet(r, out);
}

static bool replay_nodes(struct mstx_class_replay *r, size_t from, size_t to,
                         const struct mstx_scenarios *x, uint32_t classes, struct moment *end)
{
    const size_t most = (to - from) * classes / WORK_SHARE;
    memset(r->is_waited_for, 0, (to - from) * sizeof *r->is_waited_for);
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
    struct moment end;
    const size_t limit = (to - from) * NODE_BYTES + (size_t)classes * CLASS_BYTES;
    bool ok = mstx__profiles_begin(&r->profiles, limit);
    ok = ok && replay_nodes(r, from, to, x, classes, &end);
    for (uint32_t k = 0; k < classes && ok; k++)
        sum[k] += end.base + delay_at(r, &end, k);
    mstx__profiles_end(&r->profiles);
    return ok;
}
