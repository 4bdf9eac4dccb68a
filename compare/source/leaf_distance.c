/* SPDX-License-Identifier: MIT
 *
 * source_leaf: how far two values are apart, as far as four statistics tell.
 *
 * The larger side is the denominator, and the mean is held against the root mean
 * square: means near zero would be far apart otherwise without meaning anything.
 */
#include "compare/source_int.h"

#include <math.h>

static bool is_known(const struct source__value *v, unsigned stat)
{
    return (v->known >> stat & 1) && isfinite(v->stat[stat]);
}

static bool both_known(const struct source__value *g, const struct source__value *t, unsigned stat)
{
    return is_known(g, stat) && is_known(t, stat);
}

static double gap(const struct source__value *g, const struct source__value *t, unsigned stat)
{
    return both_known(g, t, stat) ? fabs(t->stat[stat] - g->stat[stat]) : 0;
}

static double peak_of(const struct source__value *v)
{
    double max = is_known(v, PROBE_STAT_MAX) ? fabs(v->stat[PROBE_STAT_MAX]) : 0;
    double min = is_known(v, PROBE_STAT_MIN) ? fabs(v->stat[PROBE_STAT_MIN]) : 0;
    return fmax(max, min);
}

static double norm_of(const struct source__value *v)
{
    return is_known(v, PROBE_STAT_NORM) ? v->stat[PROBE_STAT_NORM] : 0;
}

static double ratio(double part, double whole)
{
    return part == 0 ? 0 : whole > 0 ? part / whole : 1;
}

static double norm_gap(const struct source__value *g, const struct source__value *t)
{
    return ratio(gap(g, t, PROBE_STAT_NORM), fmax(norm_of(g), norm_of(t)));
}

static double distance(const struct source__value *g, const struct source__value *t)
{
    double peak = fmax(gap(g, t, PROBE_STAT_MAX), gap(g, t, PROBE_STAT_MIN));
    double e = fmax(norm_gap(g, t), ratio(peak, fmax(peak_of(g), peak_of(t))));
    double rms = fmax(norm_of(g), norm_of(t)) / sqrt((double)t->n);
    if (rms > 0)
        e = fmax(e, gap(g, t, PROBE_STAT_MEAN) / rms);
    return fmin(e, 2);
}

/* ---- patterns ----------------------------------------------------------------- */

static bool close_to(double a, double b, double scale)
{
    return fabs(a - b) <= scale;
}

/* All four figures of t are those of `factor` times g. */
static bool fits(const struct source__value *g, const struct source__value *t, double factor,
                 double slack)
{
    double peak = slack * peak_of(t), norm = slack * norm_of(t);
    double max = factor * g->stat[factor < 0 ? PROBE_STAT_MIN : PROBE_STAT_MAX];
    double min = factor * g->stat[factor < 0 ? PROBE_STAT_MAX : PROBE_STAT_MIN];
    return close_to(t->stat[PROBE_STAT_MAX], max, peak) &&
           close_to(t->stat[PROBE_STAT_MIN], min, peak) &&
           close_to(t->stat[PROBE_STAT_MEAN], factor * g->stat[PROBE_STAT_MEAN],
                    norm / sqrt((double)t->n)) &&
           close_to(t->stat[PROBE_STAT_NORM], fabs(factor) * g->stat[PROBE_STAT_NORM], norm);
}

/* Noise may hide that the signs are turned from a close look, but not that t is much nearer to the
 * negative of g. */
static bool is_nearer_negative(const struct source__value *g, const struct source__value *t,
                               double e)
{
    enum { COUNT_MIN = 16 };
    struct source__value minus = *g;
    minus.stat[PROBE_STAT_MAX] = -g->stat[PROBE_STAT_MIN];
    minus.stat[PROBE_STAT_MIN] = -g->stat[PROBE_STAT_MAX];
    minus.stat[PROBE_STAT_MEAN] = -g->stat[PROBE_STAT_MEAN];
    return t->n >= COUNT_MIN && e > 0.05 && 3 * distance(&minus, t) < e;
}

static void look_for_patterns(const struct source__value *g, const struct source__value *t,
                              struct source__leaf *l)
{
    enum { ALL = (1 << PROBE_STATS) - 1 };
    bool whole = g->known == ALL && t->known == ALL && source__is_finite(g) && source__is_finite(t);
    if (!whole || !(norm_of(g) > 0) || !(norm_of(t) > 0) || l->e < 1e-5F)
        return;
    double factor = norm_of(t) / norm_of(g);
    double slack = fmin(1e-2, fmax(1e-5, 0.05 * fabs(factor - 1)));
    double shift = t->stat[PROBE_STAT_MEAN] - g->stat[PROBE_STAT_MEAN], peak = peak_of(g);
    double up = t->stat[PROBE_STAT_MAX] - g->stat[PROBE_STAT_MAX];
    double down = t->stat[PROBE_STAT_MIN] - g->stat[PROBE_STAT_MIN];
    if (fits(g, t, factor, slack) && fabs(factor - 1) > 1e-6) {
        l->scale = (float)factor;
    } else if ((l->e > 0.2F && fits(g, t, -factor, fmax(slack, 2e-2))) ||
               is_nearer_negative(g, t, l->e)) {
        l->scale = (float)-factor;
        l->flags |= SOURCE__OPPOSITE;
    } else if (fabs(down) < 1e-4 * peak && up < -0.02 * peak) {
        l->flags |= SOURCE__CLIPPED;
    } else if (t->n > 1 && close_to(up, shift, 0.02 * fabs(shift)) &&
               close_to(down, shift, 0.02 * fabs(shift))) {
        l->flags |= SOURCE__SHIFTED;
    }
}

/* ---- one pair -------------------------------------------------------------------- */

/* Are extremes there that the type could not hold?  Then the values were not rounded to it. */
static bool is_finer(const struct source__value *v)
{
    for (unsigned i = PROBE_STAT_MAX; i <= PROBE_STAT_MIN; i++) {
        double x = v->stat[i];
        if (is_known(v, i) && ms_dtype_round((enum ms_dtype)v->dtype, x) != x)
            return true;
    }
    return false;
}

static bool is_wide(uint8_t dtype)
{
    return dtype == MS_DT_F32 || dtype == MS_DT_F64;
}

static enum ms_dtype held_by(double max, double min)
{
    static const enum ms_dtype low[] = {MS_DT_BF16, MS_DT_F16};
    for (unsigned i = 0; i < 2; i++) {
        if (ms_dtype_round(low[i], max) == max && ms_dtype_round(low[i], min) == min)
            return low[i];
    }
    return MS_DT_NONE;
}

/* Numbers that went through a lower type have only its digits; that the two extremes have no more
 * by chance happens once in 2^26 tensors. */
static void look_at_digits(const struct source__value *g, const struct source__value *t,
                           struct source__leaf *l)
{
    enum { COUNT_MIN = 16 };
    bool whole = both_known(g, t, PROBE_STAT_MAX) && both_known(g, t, PROBE_STAT_MIN);
    if (!whole || !is_wide(g->dtype) || !is_wide(t->dtype) || t->n < COUNT_MIN)
        return;
    double max = g->stat[PROBE_STAT_MAX], min = g->stat[PROBE_STAT_MIN];
    enum ms_dtype low = held_by(t->stat[PROBE_STAT_MAX], t->stat[PROBE_STAT_MIN]);
    if (low == MS_DT_NONE)
        l->flags |= SOURCE__FINE;
    else if (max != min && ms_dtype_round(low, max) != max && ms_dtype_round(low, min) != min)
        l->flags |= SOURCE__COARSE;
}

static void compare_tensors(const struct source__value *g, const struct source__value *t,
                            enum probe_mode mode, bool cross, struct source__leaf *l)
{
    if (g->shape != t->shape && !cross)
        l->attrs |= SOURCE__SHAPE;
    if (g->dtype != t->dtype && !cross)
        l->attrs |= SOURCE__DTYPE;
    if (!cross && g->grad != t->grad && g->grad >= 0 && t->grad >= 0)
        l->attrs |= SOURCE__GRAD;
    l->dtype[0] = g->dtype;
    l->dtype[1] = t->dtype;
    l->count = (float)t->n;
    if (g->kind == SOURCE__FLOAT && t->kind == SOURCE__FLOAT)
        l->flags |= SOURCE__REAL;
    if (mode == PROBE_MODE_MD5) {
        l->e = g->digest != t->digest;
        l->flags |= SOURCE__MEASURED;
        return;
    }
    if (mode == PROBE_MODE_SUMMARY) { /* a file holds no more than its type */
        l->flags |= is_finer(g) ? SOURCE__FINE_GOLDEN : 0;
        l->flags |= is_finer(t) ? SOURCE__FINE_TARGET : 0;
    }
    if (source__is_finite(g) != source__is_finite(t))
        l->flags |= SOURCE__FLAGGED;
    bool any = both_known(g, t, PROBE_STAT_MAX) || both_known(g, t, PROBE_STAT_NORM);
    if (g->n != t->n || !any)
        return;
    l->flags |= SOURCE__MEASURED;
    l->e = (float)distance(g, t);
    if (t->n >= SOURCE__NORM_COUNT && (l->flags & SOURCE__REAL))
        l->en = (float)norm_gap(g, t);
    look_for_patterns(g, t, l);
    look_at_digits(g, t, l);
    if (l->e > 0 && l->e < 1e-6F && gap(g, t, PROBE_STAT_MAX) == 0 &&
        gap(g, t, PROBE_STAT_MIN) == 0)
        l->flags |= SOURCE__RESUMMED;
}

static uint32_t fold(uint64_t h)
{
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t hash_of(const struct source__value *v)
{
    uint64_t words[PROBE_STATS + 2] = {v->n, v->digest};
    memcpy(words + 2, v->stat, sizeof v->stat);
    return fold(ms_str_hash((struct ms_str){(const char *)words, sizeof words}));
}

void source__compare(const struct source__value *golden, const struct source__value *target,
                     enum probe_mode mode, bool cross, struct source__leaf *l)
{
    static const struct source__value nothing = {.kind = SOURCE__NOTHING, .grad = -1};
    const struct source__value *g = golden != NULL ? golden : &nothing;
    const struct source__value *t = target != NULL ? target : &nothing;
    l->scale = NAN;
    if (source__is_tensor(g) && source__is_tensor(t)) {
        compare_tensors(g, t, mode, cross, l);
        l->value = hash_of(g);
        return;
    }
    if (source__is_tensor(t)) {
        l->dtype[0] = l->dtype[1] = t->dtype;
        l->count = (float)t->n;
    }
    bool plain = g->kind == SOURCE__PLAIN || t->kind == SOURCE__PLAIN;
    if (cross || !plain)
        return;
    l->flags |= SOURCE__PLAINLY;
    if (g->kind != t->kind || g->n != t->n)
        l->attrs |= SOURCE__SCALAR;
    l->value = fold(g->n * 3 + t->n);
}
