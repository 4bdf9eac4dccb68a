/* SPDX-License-Identifier: MIT
 *
 * quant_judge: see the header.
 */
#include "compare/quantise/quant_judge.h"

#include "compare/quantise/quant_match.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const quant_fault_text[QUANT_FAULTS] = {
    "no fault",          "wrong scale axis",   "wrong block size",
    "stale scale",       "saturated outliers", "zero point dropped",
    "dequantised twice", "not dequantised",    "wrong rounding"};
const char *const quant_fault_key[QUANT_FAULTS] = {
    "none",       "wrong_axis",        "wrong_block",     "stale_scale",   "saturated_outliers",
    "zero_point", "dequantised_twice", "not_dequantised", "wrong_rounding"};

static const char twice[] = "the values are once more multiplied by their scale",
                  not_done[] = "the codes are not multiplied by their scale",
                  differ[] = "scales of quantising and dequantising differ";

/* Share of elements that a hypothesis has to explain. */
static const double nearly_all = 0.995;
/* How far from half a step an error may be: the last bit of a value divided by its scale. */
static const double slack = 0.02;

struct judging {
    struct quant_verdict *v;
    const struct quant_table *f, *q;
    const struct quant_grid *g;
    uint64_t count;
    double *low, *high; /* by group: ends of the range after */
};

static uint64_t group_at(const struct judging *j, uint64_t i)
{
    return quant_layout_group(&j->g->fits[0].layout, j->q, i / j->q->cols, i % j->q->cols);
}
static double scale_at(const struct judging *j, uint64_t i)
{
    return j->g->scale[group_at(j, i)];
}
static double largest_of(const struct judging *j, uint64_t group)
{
    return fmax(-j->low[group], j->high[group]);
}
static double largest_at(const struct judging *j, uint64_t i)
{
    return largest_of(j, group_at(j, i));
}

/* Distance of values around an element: the coarser of those around both values. */
static double step_of(const struct judging *j, double scale, double a, double b)
{
    const double m = fmax(fabs(a), fabs(b)) / scale, most = quant_facts(j->g->number)->most;
    return quant_step(j->g->number, m < most ? m : most) * scale;
}

static bool fill_ends(struct judging *j)
{
    j->low = ms_calloc((size_t)j->g->groups + 1, sizeof *j->low);
    j->high = ms_calloc((size_t)j->g->groups + 1, sizeof *j->high);
    for (uint64_t i = 0; j->low != NULL && j->high != NULL && i < j->count; i++) {
        const uint64_t g = group_at(j, i);
        j->low[g] = fmin(j->low[g], (double)j->q->v[i]);
        j->high[g] = fmax(j->high[g], (double)j->q->v[i]);
    }
    return j->low != NULL && j->high != NULL;
}

/* Tells whether an element lies at the end of its group's range, and its value before beyond. */
static bool is_clipped(const struct judging *j, uint64_t i)
{
    const double f = (double)j->f->v[i], q = (double)j->q->v[i], at = 1 - 4 * j->q->precision;
    const uint64_t g = group_at(j, i);
    return (q > 0 && q >= j->high[g] * at && f > q) || (q < 0 && q <= j->low[g] * at && f < q);
}

/* ---- nearest value, or cut off ---------------------------------------------------------- */

/* Errors by size and direction, in steps. */
struct errors {
    uint64_t seen, near, within; /* at most half a step, at most one */
    uint64_t clipped;
    uint64_t down, up, in,
        out; /* of the errors above half a step: sign, and towards or away from 0 */
    double clipped_noise, noise;
};

/* Values far below the largest of a float of 8 bits may lie below its smallest normal value, which its
 * values alone do not tell. */
static bool is_tiny(const struct judging *j, double f, double largest)
{
    const struct quant_facts *facts = quant_facts(j->g->number);
    return !facts->is_integer && facts->bits == 8 && fabs(f) < largest * 0x1p-9;
}

static void add_error(const struct judging *j, struct errors *e, uint64_t i)
{
    const double f = (double)j->f->v[i], q = (double)j->q->v[i], s = scale_at(j, i);
    const double d = q - f, largest = largest_at(j, i);
    e->noise += d * d;
    if (s == 0 || is_tiny(j, f, largest) || !isfinite(d))
        return;
    e->seen++;
    const double steps = fabs(d) / (step_of(j, s, f, q)),
                 stored = slack + 2 * j->q->precision * fabs(q) / step_of(j, s, f, q);
    if (steps <= 0.5 + stored) {
        e->near++;
        e->within++;
        return;
    }
    if (is_clipped(j, i)) {
        e->clipped++;
        e->clipped_noise += d * d;
        return;
    }
    e->within += steps <= 1 + stored;
    e->down += d < 0;
    e->up += d > 0;
    e->in += fabs(q) < fabs(f);
    e->out += fabs(q) > fabs(f);
}

static struct errors count_errors(const struct judging *j)
{
    struct errors e = {0};
    for (uint64_t i = 0; i < j->count; i++)
        add_error(j, &e, i);
    return e;
}

/* Returns the sum of squared errors that scales taken from the largest value of each group would make. */
static bool reference_noise(const struct judging *j, double *noise)
{
    const struct quant_facts *facts = quant_facts(j->g->number);
    double *most = ms_calloc((size_t)j->g->groups + 1, sizeof *most);
    if (most == NULL)
        return false;
    *noise = 0;
    for (uint64_t i = 0; i < j->count; i++) {
        double *m = &most[group_at(j, i)];
        *m = fmax(*m, fabs((double)j->f->v[i]));
    }
    for (uint64_t i = 0; i < j->count; i++) {
        const double f = (double)j->f->v[i];
        const double s = most[group_at(j, i)] / facts->most;
        const double d = s > 0 ? quant_round(j->g->number, f / s, QUANT_SATURATES) * s - f : 0;
        *noise += d * d;
    }
    ms_free(most);
    return true;
}

/* Share of elements cut off from which on a scale is another tensor's rather than one that leaves out
 * outliers: quantiles that are used for this are 99 % and more. */
static const double few_clipped = 0.02;
/* How much more noise than with a scale from the data is a fault. Scales that are searched for clip, too, but
 * make less noise; the quantile 99.99 % made up to 3 times as much on the models of tests/gen. */
static const double more_noise = 4.0;

static enum ms_rc judge_clipping(const struct judging *j, const struct errors *e,
                                 struct ms_err *err)
{
    double reference;
    if (e->clipped == 0)
        return MS_OK;
    if (!reference_noise(j, &reference))
        return ms_no_memory(err);
    if (e->noise <= more_noise * reference || e->clipped_noise < 0.5 * e->noise)
        return MS_OK;
    const double share = (double)e->clipped / (double)e->seen;
    j->v->fault = share >= few_clipped ? QUANT_STALE_SCALE : QUANT_OUTLIERS;
    snprintf(j->v->text, sizeof j->v->text,
             "%.3g %% of the values are cut off, which makes %.3g times the error of a scale taken "
             "from them",
             100 * share, e->noise / reference);
    return MS_OK;
}

/* ---- a range that is not used ---------------------------------------------------------- */

/* Below this share of the range a whole bit is lost. The range of inputs may come from a calibration with larger
 * ones. */
static const double half_used = 0.45;

static void judge_range(const struct judging *j)
{
    struct quant_verdict *v = j->v;
    const struct quant_facts *facts = quant_facts(j->g->number);
    if (v->used >= half_used || (facts->bits == 8 && !facts->is_integer) || !v->is_weight)
        return;
    v->fault = QUANT_STALE_SCALE;
    snprintf(
        v->text, sizeof v->text,
        "the largest values use %.3g %% of the range of %s: the scale is that of larger values",
        100 * v->used, facts->name);
}

/* ---- rounding ------------------------------------------------------------------------- */

static bool judge_rounding(const struct judging *j, const struct errors *e)
{
    const uint64_t far = e->within - e->near, rest = e->seen - e->near - e->clipped;
    if ((double)(e->within + e->clipped) < nearly_all * (double)e->seen ||
        (double)far < 0.02 * (double)e->seen)
        return false;
    const double all = 0.98 * (double)rest;
    const char *how = (double)e->in >= all     ? "towards zero"
                      : (double)e->down >= all ? "down"
                      : (double)e->up >= all   ? "up"
                      : (double)e->out >= all  ? "away from zero"
                                               : NULL;
    if (how == NULL)
        return true; /* at random, as trainings round on purpose */
    j->v->fault = QUANT_ROUNDING;
    snprintf(j->v->text, sizeof j->v->text,
             "%.3g %% of the values are rounded %s where the nearest value lies on the other side",
             100 * (double)far / (double)e->seen, how);
    return true;
}

/* ---- an offset, or a factor ------------------------------------------------------------- */

/* For each group the median of a figure of its elements, over a sample. */
typedef bool figure_fn(const struct judging *j, uint64_t i, double *out);

static bool error_in_scales(const struct judging *j, uint64_t i, double *out)
{
    *out = ((double)j->q->v[i] - (double)j->f->v[i]) / scale_at(j, i);
    return scale_at(j, i) != 0 && isfinite(*out);
}

enum { SAMPLE = 255 };
struct medians {
    double *sample; /* groups x SAMPLE */
    uint32_t *n;
    double *median; /* NaN: no element */
};

static void free_medians(struct medians *m)
{
    ms_free(m->sample);
    ms_free(m->n);
    ms_free(m->median);
}

static bool find_medians(const struct judging *j, figure_fn *figure, struct medians *m)
{
    const size_t groups = (size_t)j->g->groups;
    const size_t most = groups > 4096 ? 16 : SAMPLE;
    *m = (struct medians){ms_alloc(groups * most * sizeof *m->sample),
                          ms_calloc(groups, sizeof *m->n), ms_alloc(groups * sizeof *m->median)};
    if (m->sample == NULL || m->n == NULL || m->median == NULL)
        return false;
    for (uint64_t i = 0; i < j->count; i++) {
        const uint64_t g = group_at(j, i);
        double v;
        if (m->n[g] < most && figure(j, i, &v))
            m->sample[g * most + m->n[g]++] = v;
    }
    for (size_t g = 0; g < groups; g++) {
        qsort(m->sample + g * most, m->n[g], sizeof *m->sample, ms_order_f64);
        m->median[g] = m->n[g] != 0 ? m->sample[g * most + m->n[g] / 2] : (double)NAN;
    }
    return true;
}

/* Tells whether nearly all elements are explained by before * factor + offset, both by group. */
static bool is_explained(const struct judging *j, const double *factor, const double *offset)
{
    uint64_t seen = 0, near = 0;
    for (uint64_t i = 0; i < j->count; i++) {
        const uint64_t g = group_at(j, i);
        const double s = j->g->scale[g], q = (double)j->q->v[i];
        const double a = factor != NULL ? factor[g] : 1, b = offset != NULL ? offset[g] : 0;
        if (s == 0 || isnan(a) || isnan(b))
            continue;
        const double f = (double)j->f->v[i] * a + nearbyint(b) * s;
        /* The factor is a median of values that were rounded. */
        const double allowed = factor != NULL ? 0.7 : 0.55;
        const double step = step_of(j, s, f, q);
        seen++;
        near += is_tiny(j, f, largest_at(j, i)) ||
                fabs(q - f) <= (allowed + slack) * step + 2 * j->q->precision * fabs(q) +
                                   (factor != NULL ? 0.02 * fabs(q) : 0) ||
                is_clipped(j, i);
    }
    return seen != 0 && (double)near >= 0.98 * (double)seen;
}

static bool has_offsets(const struct judging *j, const struct medians *m)
{
    uint64_t seen = 0, moved = 0;
    for (uint64_t g = 0; g < j->g->groups; g++) {
        seen += !isnan(m->median[g]);
        moved += fabs(m->median[g]) >= 0.75;
    }
    return seen != 0 && 2 * moved > seen;
}

static enum ms_rc judge_offset(const struct judging *j, bool *found, struct ms_err *err)
{
    struct medians m = {0};
    *found = false;
    if (!quant_facts(j->g->number)->is_integer)
        return MS_OK;
    if (!find_medians(j, error_in_scales, &m)) {
        free_medians(&m);
        return ms_no_memory(err);
    }
    if (has_offsets(j, &m) && is_explained(j, NULL, m.median)) {
        *found = true;
        j->v->fault = QUANT_ZERO_POINT;
        snprintf(j->v->text, sizeof j->v->text,
                 "all values are moved by a whole number of steps, %.0f in the first group",
                 m.median[0]);
    }
    free_medians(&m);
    return MS_OK;
}

/* Returns by group the factor that makes most of the values before what they became. */
static double *find_factors(const struct judging *j)
{
    const size_t groups = (size_t)j->g->groups;
    double *qf = ms_calloc(groups, sizeof *qf), *ff = ms_calloc(groups, sizeof *ff);
    for (uint64_t i = 0; qf != NULL && ff != NULL && i < j->count; i++) {
        const uint64_t g = group_at(j, i);
        const double f = (double)j->f->v[i], q = (double)j->q->v[i];
        if (isfinite(f * q)) {
            qf[g] += q * f;
            ff[g] += f * f;
        }
    }
    for (size_t g = 0; qf != NULL && ff != NULL && g < groups; g++)
        qf[g] = ff[g] > 0 ? qf[g] / ff[g] : (double)NAN;
    if (ff == NULL) {
        ms_free(qf);
        qf = NULL;
    }
    ms_free(ff);
    return qf;
}

/* How the factors relate to the scales. */
struct factors {
    uint64_t seen, one;     /* near 1 */
    uint64_t own, doubtful; /* the scale by which it was quantised; that or twice or half of it */
    uint64_t inverse;       /* 1 by that scale */
    double least, most;
};

static bool is_near(double a, double b)
{
    return a / b > 0.88 && a / b < 1 / 0.88;
}
/* The scale of a type of floats is known but for a power of two. */
static bool is_own(const struct judging *j, double factor, double own)
{
    if (quant_facts(j->g->number)->is_integer)
        return is_near(factor, own);
    int e;
    const double m = frexp(factor / own, &e);
    return abs(e) <= 3 && (m > 0.95 || m < 0.53);
}

static struct factors relate(const struct judging *j, const double *factor)
{
    struct factors r = {.least = (double)INFINITY};
    for (uint64_t g = 0; g < j->g->groups; g++) {
        const double a = factor[g];
        if (!(fabs(a) > 0) || j->g->scale[g] == 0)
            continue;
        const double quantised_by = j->g->scale[g] / fabs(a);
        r.seen++;
        r.one += is_near(fabs(a), 1);
        r.own += is_own(j, fabs(a), quantised_by);
        r.doubtful += is_own(j, fabs(a), quantised_by) || is_own(j, fabs(a), quantised_by / 2) ||
                      is_own(j, fabs(a), quantised_by * 2);
        r.inverse += is_near(j->g->scale[g], 1) || is_own(j, 1 / fabs(a), quantised_by);
        r.least = fmin(r.least, fabs(a));
        r.most = fmax(r.most, fabs(a));
    }
    return r;
}

static void name_factor(const struct judging *j, const struct factors *r)
{
    /* A group that uses even codes alone looks as if its scale was twice as large. */
    if (10 * r->doubtful >= 9 * r->seen && 2 * r->own >= r->seen)
        j->v->fault = QUANT_TWICE;
    else if (10 * r->inverse >= 9 * r->seen)
        j->v->fault = QUANT_NOT_DONE;
    else
        j->v->fault = QUANT_STALE_SCALE;
    const char *what = j->v->fault == QUANT_TWICE      ? twice
                       : j->v->fault == QUANT_NOT_DONE ? not_done
                                                       : differ;
    snprintf(j->v->text, sizeof j->v->text, "%s: factors of %.3g to %.3g", what, r->least, r->most);
}

static enum ms_rc judge_factor(const struct judging *j, bool *found, struct ms_err *err)
{
    double *factor = find_factors(j);
    if (factor == NULL)
        return ms_no_memory(err);
    const struct factors r = relate(j, factor);
    *found = r.seen != 0 && 2 * r.one < r.seen && is_explained(j, factor, NULL);
    if (*found)
        name_factor(j, &r);
    ms_free(factor);
    return MS_OK;
}

/* ---- quantised along another axis --------------------------------------------------------- */

/* Sums of codes and values by group of the layout by which it may have been quantised. */
struct refit {
    double *nf, *nn;
};

static double code_at(const struct judging *j, uint64_t i)
{
    const double s = scale_at(j, i);
    return s != 0 ? (double)j->q->v[i] / s : 0;
}

static bool refits(const struct judging *j, const struct quant_layout *l, const struct refit *r)
{
    uint64_t seen = 0, near = 0;
    for (uint64_t i = 0; i < j->count; i++) {
        const uint64_t g = quant_layout_group(l, j->q, i / j->q->cols, i % j->q->cols);
        r->nf[g] += code_at(j, i) * (double)j->f->v[i];
        r->nn[g] += code_at(j, i) * code_at(j, i);
    }
    for (uint64_t i = 0; i < j->count; i++) {
        const uint64_t g = quant_layout_group(l, j->q, i / j->q->cols, i % j->q->cols);
        const double t = r->nn[g] > 0 ? r->nf[g] / r->nn[g] : 0, f = (double)j->f->v[i];
        if (!(t > 0) || scale_at(j, i) == 0 || is_tiny(j, f, largest_at(j, i)))
            continue;
        const double n = code_at(j, i), most = quant_facts(j->g->number)->most;
        const double m = fmax(fabs(n), fabs(f / t));
        seen++;
        near += fabs(n - f / t) <=
                (0.52 + slack) * quant_step(j->g->number, m < most ? m : most) + 0.02 * fabs(n);
    }
    return 10 * seen > 5 * j->count && (double)near >= 0.98 * (double)seen;
}

static enum ms_rc try_refit(const struct judging *j, const struct quant_layout *l, bool *fits,
                            struct ms_err *err)
{
    const size_t groups = (size_t)quant_layout_count(l, j->q);
    struct refit r = {ms_calloc(groups, sizeof(double)), ms_calloc(groups, sizeof(double))};
    if (r.nf == NULL || r.nn == NULL) {
        ms_free(r.nf);
        ms_free(r.nn);
        return ms_no_memory(err);
    }
    *fits = refits(j, l, &r);
    ms_free(r.nf);
    ms_free(r.nn);
    return MS_OK;
}

static bool is_not_scaled(const struct judging *j)
{
    uint64_t g = 0;
    while (g < j->g->groups && (j->g->scale[g] == 0 || j->g->scale[g] == 1))
        g++;
    return g == j->g->groups;
}

static void name_refit(const struct judging *j, const struct quant_layout *from)
{
    if (is_not_scaled(j)) {
        j->v->fault = QUANT_NOT_DONE;
        snprintf(j->v->text, sizeof j->v->text, "%s", not_done);
        return;
    }
    char a[64], b[64];
    const struct quant_layout *to = &j->v->layout;
    const bool same = quant_layout_same(*from, *to);
    const bool blocks = (from->sharing == QUANT_BLOCKS || from->sharing == QUANT_STACKS) &&
                        quant_layout_is_across(from) == quant_layout_is_across(to);
    quant_layout_text(from, a, sizeof a);
    quant_layout_text(to, b, sizeof b);
    j->v->fault = same ? QUANT_STALE_SCALE : blocks ? QUANT_WRONG_BLOCK : QUANT_WRONG_AXIS;
    if (same)
        snprintf(j->v->text, sizeof j->v->text, "%s", differ);
    else
        snprintf(j->v->text, sizeof j->v->text, "quantised with %s, dequantised with %s", a, b);
}

static enum ms_rc judge_layout(const struct judging *j, bool *found, struct ms_err *err)
{
    static const struct quant_layout layouts[] = {
        {QUANT_WHOLE, 0},    {QUANT_ROWS, 0},    {QUANT_COLUMNS, 0}, {QUANT_TILES, 128},
        {QUANT_BLOCKS, 128}, {QUANT_BLOCKS, 64}, {QUANT_BLOCKS, 32}, {QUANT_BLOCKS, 16},
        {QUANT_STACKS, 128}, {QUANT_STACKS, 64}, {QUANT_STACKS, 32}, {QUANT_STACKS, 16}};
    *found = false;
    for (size_t i = 0; !*found && i < sizeof layouts / sizeof *layouts; i++) {
        const struct quant_layout l = quant_layout_plain(layouts[i], j->q);
        if (!quant_layout_same(l, layouts[i]))
            continue;
        MS_TRY(try_refit(j, &l, found, err));
        if (*found)
            name_refit(j, &l);
    }
    return MS_OK;
}

/* ---- known but for factors ----------------------------------------------------------------- */

static enum ms_rc judge_scaled(const struct judging *j, bool *found, struct ms_err *err)
{
    struct quant_scaled s;
    MS_TRY(quant_match_scaled(&s, j->g, j->f, j->q, err));
    *found = s.found;
    if (!s.found)
        return MS_OK;
    if (s.factor == QUANT_FACTOR_OTHER) {
        name_refit(j, &s.from);
        return MS_OK;
    }
    j->v->fault = s.factor == QUANT_FACTOR_SCALE ? QUANT_TWICE : QUANT_NOT_DONE;
    snprintf(j->v->text, sizeof j->v->text, "%s: factors of %.3g to %.3g",
             s.factor == QUANT_FACTOR_SCALE ? twice : not_done, s.least, s.most);
    return MS_OK;
}

/* ---- a tensor ---------------------------------------------------------------------------- */

static void describe(const struct judging *j, const struct errors *e)
{
    struct quant_verdict *v = j->v;
    uint64_t groups = 0;
    v->scale_min = (double)INFINITY;
    for (uint64_t g = 0; g < j->g->groups; g++) {
        const double s = j->g->scale[g];
        if (s == 0)
            continue;
        groups++;
        v->scale_min = fmin(v->scale_min, s);
        v->scale_max = fmax(v->scale_max, s);
        v->used += fmin(1, largest_of(j, g) / s / quant_facts(j->g->number)->most);
    }
    v->used = groups != 0 ? v->used / (double)groups : 1;
    v->clipped = e->seen != 0 ? (double)e->clipped / (double)e->seen : 0;
    v->clipped_noise = e->noise > 0 ? e->clipped_noise / e->noise : 0;
}

static enum ms_rc judge_grid(const struct judging *j, struct ms_err *err)
{
    const struct errors e = count_errors(j);
    bool found = false;
    describe(j, &e);
    if ((double)(e.near + e.clipped) >= nearly_all * (double)e.seen) {
        MS_TRY(judge_clipping(j, &e, err));
        if (j->v->fault == QUANT_NO_FAULT)
            judge_range(j);
        return MS_OK;
    }
    if (judge_rounding(j, &e))
        return MS_OK;
    MS_TRY(judge_scaled(j, &found, err));
    if (found)
        return MS_OK;
    MS_TRY(judge_offset(j, &found, err));
    if (!found)
        MS_TRY(judge_factor(j, &found, err));
    if (!found)
        MS_TRY(judge_layout(j, &found, err));
    return found ? MS_OK : judge_clipping(j, &e, err);
}

static void add_sums(struct quant_verdict *v, const struct quant_table *f,
                     const struct quant_table *q)
{
    uint64_t equal = 0, under = 0;
    const uint64_t count = f->rows * f->cols;
    for (uint64_t i = 0; i < count; i++) {
        const double a = (double)f->v[i], d = (double)q->v[i] - a;
        equal += d == 0;
        under += a != 0 && q->v[i] == 0;
        if (isfinite(d)) {
            v->signal += a * a;
            v->noise += d * d;
        }
    }
    v->equal = equal == count;
    v->underflow = count != 0 ? (double)under / (double)count : 0;
}

/* Notes what is known of a tensor that a rule explains. */
static void accept(struct quant_verdict *v, const struct quant_match *m)
{
    v->is_quantised = v->matched = true;
    v->number = m->number;
    v->layout = m->layouts[0];
    v->powers = m->powers;
    v->scale_min = m->scale_min;
    v->scale_max = m->scale_max;
    v->used = 1;
    v->n = m->n;
    for (unsigned i = 0; i < m->n; i++)
        v->fits[i] = (struct quant_fit){m->layouts[i], 1};
}

static enum ms_rc judge_by_grid(struct judging *j, struct ms_err *err)
{
    struct quant_verdict *v = j->v;
    v->is_quantised = true;
    v->number = j->g->number;
    v->layout = j->g->fits[0].layout;
    v->powers = j->g->powers;
    v->n = j->g->n;
    memcpy(v->fits, j->g->fits, sizeof v->fits);
    const enum ms_rc rc = fill_ends(j) ? judge_grid(j, err) : ms_no_memory(err);
    ms_free(j->low);
    ms_free(j->high);
    return rc;
}

enum ms_rc quant_judge(struct quant_verdict *v, const struct quant_table *f,
                       const struct quant_table *q, bool is_weight, struct ms_err *err)
{
    struct quant_match m;
    struct quant_grid g;
    *v = (struct quant_verdict){.rows = q->rows, .cols = q->cols, .is_weight = is_weight};
    add_sums(v, f, q);
    if (v->equal || q->rows * q->cols == 0)
        return MS_OK;
    MS_TRY(quant_match_find(&m, f, q, err));
    if (m.n != 0) {
        accept(v, &m);
        return MS_OK;
    }
    MS_TRY(quant_grid_find(&g, q, err));
    struct judging j = {
        .v = v,
        .f = f,
        .q = q,
        .g = &g,
        .count = q->rows * q->cols,
    };
    const enum ms_rc rc = g.n != 0 ? judge_by_grid(&j, err) : MS_OK;
    quant_grid_free(&g);
    return rc;
}
