/* SPDX-License-Identifier: MIT
 *
 * notable: rules over curves.
 *
 * The usual value of a curve is the median of the logarithms of WINDOW values; a value is unusual when it is further
 * from it than six times their spread (median of the distances) and than a least factor. The window of a signal ends
 * LAG steps before, so that a rise of some steps does not hide itself.
 */
#include "probe/trend/notable.h"

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/mem.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOW = 16, LAG = 8, LEAST = 5, LEAD_MAX = 10, SPIKES_MAX = 20 };
static const double SPREADS = 6 * 1.4826, SPIKE = 2.0, MOVE = 1.4;

static enum ms_rc add(struct probe_notables *f, struct probe_notable one, struct ms_err *err)
{
    struct probe_notable *slot = ms_vec_push(&f->all);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = one;
    return MS_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Returns the logarithm of value i over the usual one before value `end` <= i where that is unusual, else 0. */
static double unusual(const struct probe_point *p, size_t end, size_t i, double least)
{
    double logs[WINDOW], far[WINDOW];
    size_t n = 0;
    for (size_t k = end; k-- > 0 && n < WINDOW;) {
        if (p[k].value > 0)
            logs[n++] = log(p[k].value);
    }
    if (n < LEAST || !(p[i].value > 0))
        return 0;
    const double usual = median(logs, n), distance = log(p[i].value) - usual;
    for (size_t k = 0; k < n; k++)
        far[k] = fabs(logs[k] - usual);
    return fabs(distance) > SPREADS * median(far, n) && fabs(distance) > log(least) ? distance : 0;
}

/* ---- order within a step ------------------------------------------------- */

static bool is_earlier(const struct probe_curve *a, const struct probe_curve *b)
{
    const unsigned x = probe_metric_order(a->metric), y = probe_metric_order(b->metric);
    if (x != y)
        return x < y;
    if (a->target != b->target) /* a backward runs from the last to the first */
        return (a->target < b->target) !=
               (ms_str_is(a->metric, "actv_grad") || ms_str_is(a->metric, "backward"));
    return a->rank < b->rank;
}

/* ---- numbers that end ---------------------------------------------------- */

/* Returns the first point that is no number behind one that is; n: none. */
static size_t first_gap(const struct probe_curve *c)
{
    bool had = false;
    for (size_t i = 0; i < c->n; i++) {
        if (isnan(c->at[i].value) && had)
            return i;
        had |= !isnan(c->at[i].value);
    }
    return c->n;
}

static enum ms_rc find_gap(struct probe_notables *f, const struct probe_curves *c,
                           struct ms_err *err)
{
    struct probe_notable first = {.kind = PROBE_NOTABLE_NOT_FINITE};
    for (size_t i = 0; i < c->curves.n; i++) {
        const struct probe_curve *curve = &c->curves.p[i];
        const size_t gap = first_gap(curve);
        if (gap == curve->n)
            continue;
        const int64_t step = curve->at[gap].step;
        if (first.curve == NULL || step < first.step)
            first.others = 0;
        else if (step > first.step)
            continue;
        else
            first.others++;
        if (first.curve == NULL || step < first.step || is_earlier(curve, first.curve)) {
            first.curve = curve;
            first.step = step;
            first.rank = curve->rank;
            first.value = curve->at[gap - 1].value;
        }
    }
    return first.curve != NULL ? add(f, first, err) : MS_OK;
}

/* ---- spikes --------------------------------------------------------------- */

/* Returns the place of a step in a curve; n: none. */
static size_t place_of(const struct probe_curve *c, int64_t step)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (c->at[mid].step < step)
            low = mid + 1;
        else
            high = mid;
    }
    return low < c->n && c->at[low].step == step ? low : c->n;
}

/* Returns how many steps before place `at` a curve has begun to be unusual without a break; -1: it is not, at `at`. */
static int64_t lead_of(const struct probe_curve *c, size_t at, double *moved)
{
    int64_t lead = -1;
    for (size_t back = 0; back <= LEAD_MAX && back <= at; back++) {
        const size_t begin = at - back;
        for (size_t i = begin; i <= at; i++) {
            const double distance = unusual(c->at, begin, i, MOVE);
            if (distance == 0)
                return lead;
            *moved = i == begin ? exp(distance) : *moved;
        }
        lead = (int64_t)back;
    }
    return lead;
}

static void find_leader(struct probe_notable *one, const struct probe_curves *c)
{
    for (size_t i = 0; i < c->curves.n; i++) {
        const struct probe_curve *curve = &c->curves.p[i];
        const size_t at = place_of(curve, one->step);
        double moved = 1;
        if (curve->rank != one->rank || at == curve->n)
            continue;
        const int64_t lead = lead_of(curve, at, &moved);
        if (lead < 0)
            continue;
        one->others++;
        if (one->curve == NULL || lead > one->lead ||
            (lead == one->lead && is_earlier(curve, one->curve))) {
            one->curve = curve;
            one->lead = lead;
            one->moved = moved;
        }
    }
    one->others -= one->curve != NULL;
}

/* The norm of all gradients of one rank: the root of the sum of squares over its curves of one metric. */
struct total {
    MS_VEC(struct probe_point) points;
};

static enum ms_rc add_curve(struct total *t, const struct probe_curve *c, struct ms_err *err)
{
    size_t k = 0;
    for (size_t i = 0; i < c->n; i++) {
        while (k < t->points.n && t->points.p[k].step < c->at[i].step)
            k++;
        if (k == t->points.n) {
            struct probe_point *p = ms_vec_push(&t->points);
            if (p == NULL)
                return ms_no_memory(err);
            *p = (struct probe_point){c->at[i].step, 0};
        }
        if (t->points.p[k].step == c->at[i].step && !isnan(c->at[i].value))
            t->points.p[k].value += c->at[i].value * c->at[i].value;
    }
    return MS_OK;
}

/* The metric whose sum is the gradient: what the optimizer gets, where that is known. */
static struct ms_str gradient_metric(const struct probe_curves *c)
{
    struct ms_str found = MS_STR_NONE;
    for (size_t i = 0; i < c->curves.n; i++) {
        const struct ms_str metric = c->curves.p[i].metric;
        if (probe_metric_is_gradient(metric) &&
            (found.p == NULL || probe_metric_order(metric) > probe_metric_order(found)))
            found = metric;
    }
    return found;
}

static bool is_signal(const struct probe_curve *c, struct ms_str metric, int64_t rank)
{
    return c->rank == rank && ms_str_eq(c->metric, metric);
}

static enum ms_rc find_spikes_of(struct probe_notables *f, const struct probe_curves *c,
                                 const struct probe_point *p, size_t n, int64_t rank,
                                 struct ms_err *err)
{
    size_t found = 0, last = SIZE_MAX;
    for (size_t i = 0; i < n && found < SPIKES_MAX; i++) {
        const double distance = unusual(p, i > LAG + LEAST ? i - LAG : i, i, SPIKE);
        const bool follows = last != SIZE_MAX && i - last <= 2;
        if (distance <= 0)
            continue;
        last = i;
        if (follows)
            continue;
        struct probe_notable one = {
            .kind = PROBE_NOTABLE_SPIKE, .step = p[i].step, .rank = rank, .value = exp(distance)};
        find_leader(&one, c);
        MS_TRY(add(f, one, err));
        found++;
    }
    return MS_OK;
}

static enum ms_rc find_rank_spikes(struct probe_notables *f, const struct probe_curves *c,
                                   struct ms_str metric, int64_t rank, struct ms_err *err)
{
    struct total t = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < c->curves.n && rc == MS_OK; i++) {
        if (is_signal(&c->curves.p[i], metric, rank))
            rc = add_curve(&t, &c->curves.p[i], err);
    }
    for (size_t i = 0; i < t.points.n; i++)
        t.points.p[i].value = sqrt(t.points.p[i].value);
    if (rc == MS_OK)
        rc = find_spikes_of(f, c, t.points.p, t.points.n, rank, err);
    ms_vec_free(&t.points);
    return rc;
}

/* A curve that is a loss by its name is a signal too. */
static enum ms_rc find_loss_spikes(struct probe_notables *f, const struct probe_curves *c,
                                   struct ms_err *err)
{
    for (size_t i = 0; i < c->curves.n; i++) {
        const struct probe_curve *curve = &c->curves.p[i];
        if (ms_str_has_folded(curve->name, MS_STR("loss")) && ms_str_has(curve->name, "output") &&
            probe_metric_order(curve->metric) <= 1)
            MS_TRY(find_spikes_of(f, c, curve->at, curve->n, curve->rank, err));
    }
    return MS_OK;
}

static int by_step(const void *a, const void *b)
{
    const struct probe_notable *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* One rank speaks for all that have a spike at the same step: the one whose curve leads most. */
static void join_ranks(struct probe_notables *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->all.n; i++) {
        struct probe_notable *before = kept != 0 ? &f->all.p[kept - 1] : NULL;
        const struct probe_notable *one = &f->all.p[i];
        if (before != NULL && before->kind == PROBE_NOTABLE_SPIKE && one->kind == before->kind &&
            one->step == before->step) {
            if (one->curve != NULL && (before->curve == NULL || one->lead > before->lead))
                *before = *one;
        } else {
            f->all.p[kept++] = *one;
        }
    }
    f->all.n = kept;
}

enum ms_rc probe_notables_find(struct probe_notables *f, const struct probe_curves *c,
                               struct ms_err *err)
{
    const struct ms_str metric = gradient_metric(c);
    *f = (struct probe_notables){0};
    enum ms_rc rc = find_gap(f, c, err);
    for (int64_t rank = 0; metric.p != NULL && rank <= c->max_rank && rc == MS_OK; rank++)
        rc = find_rank_spikes(f, c, metric, rank, err);
    if (rc == MS_OK)
        rc = find_loss_spikes(f, c, err);
    if (f->all.n != 0)
        qsort(f->all.p, f->all.n, sizeof *f->all.p, by_step);
    join_ranks(f);
    if (rc != MS_OK)
        probe_notables_free(f);
    return rc;
}

/* ---- two runs -------------------------------------------------------------- */

struct pairs {
    struct ms_map names; /* of the golden run's curves, by what identifies them */
    struct ms_arena *arena;
    struct ms_buf key;
};

static struct ms_str key_of(struct pairs *p, const struct probe_curve *c)
{
    ms_buf_clear(&p->key);
    ms_buf_printf(&p->key, "%lld|%lld|%lld|%.*s|%.*s", (long long)c->rank, (long long)c->stage,
                  (long long)c->micro_step, MS_STR_ARG(c->metric), MS_STR_ARG(c->name));
    return ms_buf_slice(&p->key);
}

static double difference(double a, double b)
{
    const double size = fmax(fabs(a), fabs(b));
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : 1;
    return size > 0 ? fabs(a - b) / size : 0;
}

/* Calls for each point that both runs have. */
typedef void (*pair_fn)(void *ctx, const struct probe_curve *c, int64_t step, double d);

static void each_pair(struct pairs *p, const struct probe_curves *c,
                      const struct probe_curves *golden, pair_fn fn, void *ctx)
{
    for (size_t i = 0; i < c->curves.n; i++) {
        const struct probe_curve *a = &c->curves.p[i];
        const uint32_t at = ms_map_get(&p->names, key_of(p, a));
        if (at == MS_MAP_NONE)
            continue;
        const struct probe_curve *b = &golden->curves.p[at];
        for (size_t x = 0, y = 0; x < a->n && y < b->n;) {
            if (a->at[x].step == b->at[y].step) {
                fn(ctx, a, a->at[x].step, difference(a->at[x].value, b->at[y].value));
                x++, y++;
            } else if (a->at[x].step < b->at[y].step) {
                x++;
            } else {
                y++;
            }
        }
    }
}

struct deviation {
    int64_t first_step; /* that both have */
    bool has_step;
    double *floor; /* differences at that step */
    size_t n, cap, pairs;
    double limit;
    struct probe_notable first;
};

static void find_first_step(void *ctx, const struct probe_curve *c, int64_t step, double d)
{
    struct deviation *v = ctx;
    (void)c, (void)d;
    v->first_step = !v->has_step || step < v->first_step ? step : v->first_step;
    v->has_step = true;
    v->pairs++;
}

static void collect_floor(void *ctx, const struct probe_curve *c, int64_t step, double d)
{
    struct deviation *v = ctx;
    (void)c;
    if (step == v->first_step && v->n < v->cap)
        v->floor[v->n++] = d;
}

static void find_deviation(void *ctx, const struct probe_curve *c, int64_t step, double d)
{
    struct deviation *v = ctx;
    struct probe_notable *first = &v->first;
    if (!(d > v->limit) || (first->curve != NULL && step > first->step))
        return;
    first->others = first->curve != NULL && step == first->step ? first->others + 1 : 0;
    if (first->curve == NULL || step < first->step || is_earlier(c, first->curve)) {
        first->curve = c;
        first->step = step;
        first->rank = c->rank;
        first->value = d;
    }
}

static enum ms_rc compare_named(struct probe_notables *f, struct pairs *p,
                                const struct probe_curves *c, const struct probe_curves *golden,
                                double tolerance, struct ms_err *err)
{
    struct deviation v = {.first = {.kind = PROBE_NOTABLE_DEVIATION}, .cap = c->curves.n};
    each_pair(p, c, golden, find_first_step, &v);
    if (!v.has_step)
        return ms_fail(err, MS_E_NOTFOUND, "the two runs have no name with the same step and rank");
    v.floor = ms_calloc(v.cap + 1, sizeof *v.floor);
    if (v.floor == NULL)
        return ms_no_memory(err);
    each_pair(p, c, golden, collect_floor, &v);
    f->floor = v.n != 0 ? median(v.floor, v.n) : 0;
    ms_free(v.floor);
    v.limit = fmax(tolerance, 10 * f->floor);
    each_pair(p, c, golden, find_deviation, &v);
    return v.first.curve != NULL ? add(f, v.first, err) : MS_OK;
}

enum ms_rc probe_notables_compare(struct probe_notables *f, const struct probe_curves *c,
                                  const struct probe_curves *golden, double tolerance,
                                  struct ms_err *err)
{
    struct pairs p = {.arena = ms_arena_new(SIZE_MAX), .key.max = 1 << 20};
    *f = (struct probe_notables){0};
    enum ms_rc rc = p.arena != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = 0; i < golden->curves.n && rc == MS_OK; i++) {
        if (ms_map_put_copy(&p.names, key_of(&p, &golden->curves.p[i]), p.arena, NULL) ==
            MS_MAP_NONE)
            rc = ms_no_memory(err);
    }
    if (rc == MS_OK)
        rc = compare_named(f, &p, c, golden, tolerance, err);
    ms_map_free(&p.names);
    ms_buf_free(&p.key);
    ms_arena_free(p.arena);
    if (rc != MS_OK)
        probe_notables_free(f);
    return rc;
}

void probe_notables_free(struct probe_notables *f)
{
    ms_vec_free(&f->all);
}

/* ---- words ------------------------------------------------------------------------------ */

#define NOTABLE_KIND(name, args) static const struct ms_message_kind say_##name = {#name, args};
PROBE_NOTABLE_KINDS(NOTABLE_KIND)

/* How long before the jump the curve moved, and how far. */
static void tell_lead(const struct probe_notable *n, struct ms_message *m)
{
    if (n->lead > 0)
        ms_message_i64(m, "lead", n->lead);
    ms_message_f64(m, "moved", n->moved);
}

void probe_notable_tell(const struct probe_notable *n, const char *stat, struct ms_message *m)
{
    static const struct ms_message_kind *const kinds[] = {
        [PROBE_NOTABLE_NOT_FINITE] = &say_trend_end,
        [PROBE_NOTABLE_SPIKE] = &say_trend_spike,
        [PROBE_NOTABLE_DEVIATION] = &say_trend_deviation};
    ms_message_begin(m, kinds[n->kind]);
    ms_message_i64(m, "step", n->step);
    ms_message_i64(m, "rank", n->rank);
    ms_message_f64(m, n->kind == PROBE_NOTABLE_SPIKE ? "times" : "value", n->value);
    if (n->curve == NULL)
        return;
    ms_message_str(m, "curve", n->curve->name);
    ms_message_str(m, "metric", n->curve->metric);
    ms_message_str(m, "stat", ms_str_of(stat));
    if (n->kind == PROBE_NOTABLE_SPIKE)
        tell_lead(n, m);
    if (n->others != 0)
        ms_message_i64(m, "others", (int64_t)n->others);
}
