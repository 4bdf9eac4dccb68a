/* SPDX-License-Identifier: MIT
 *
 * leaf_distance: measures how far two leaves are apart.
 *
 * For the four statistics, the larger side is the denominator, and the difference of
 * means is relative to the root mean square: two means near zero would otherwise be far
 * apart without significance. For tensor files the distance is the relative L2 distance
 * of all elements.
 */
#include "compare/observe/leaf_distance.h"
#include "compare/measure/tensor_file.h"
#include "compare/table/comparison.h"
#include "probe/base/assert.h"

#include <math.h>

static bool is_known(const struct read__value *v, unsigned stat)
{
    return (v->known >> stat & 1) && isfinite(v->stat[stat]);
}

static bool both_known(const struct read__value *g, const struct read__value *t, unsigned stat)
{
    return is_known(g, stat) && is_known(t, stat);
}

static double stat_gap(const struct read__value *g, const struct read__value *t, unsigned stat)
{
    return both_known(g, t, stat) ? fabs(t->stat[stat] - g->stat[stat]) : 0;
}

static double peak_of(const struct read__value *v)
{
    double max = is_known(v, PROBE_STAT_MAX) ? fabs(v->stat[PROBE_STAT_MAX]) : 0;
    double min = is_known(v, PROBE_STAT_MIN) ? fabs(v->stat[PROBE_STAT_MIN]) : 0;
    return fmax(max, min);
}

/* The recorded norm of a single number is the number itself, with its sign. */
static double norm_of(const struct read__value *v)
{
    return is_known(v, PROBE_STAT_NORM) ? fabs(v->stat[PROBE_STAT_NORM]) : 0;
}

static double ratio_of(double part, double whole)
{
    return part == 0 ? 0 : whole > 0 ? part / whole : 1;
}

/* Tells whether the minimum comes from a mask that excludes positions from a softmax: minus
 * infinity, the lowest number of a type, or a constant in place of them, which is -1e4 or lower. */
static bool has_mask(const struct read__value *v)
{
    static const double least = -1e4;
    bool known = is_known(v, PROBE_STAT_MAX) && (v->known >> PROBE_STAT_MIN & 1);
    double max = fabs(v->stat[PROBE_STAT_MAX]), min = v->stat[PROBE_STAT_MIN];
    return known && min <= least && min <= 100 * -max;
}

/* Tells whether the values are masked with different constants. Only their maxima can then be
 * compared. */
static bool mask_differs(const struct read__value *g, const struct read__value *t)
{
    return has_mask(g) && has_mask(t) && g->stat[PROBE_STAT_MIN] != t->stat[PROBE_STAT_MIN];
}

/* Tells whether one value is the other, repeated: a batch of equal rows for one row that is
 * broadcast later. */
static bool is_repeated(const struct read__value *g, const struct read__value *t)
{
    enum { ALL = (1 << PROBE_STATS) - 1 };
    const struct read__value *few = g->n < t->n ? g : t, *many = g->n < t->n ? t : g;
    if (g->known != ALL || t->known != ALL || few->n == 0 || many->n % few->n != 0)
        return false;
    double times = (double)(many->n / few->n), norm = few->stat[PROBE_STAT_NORM] * sqrt(times);
    return few->n != many->n && stat_gap(g, t, PROBE_STAT_MAX) == 0 &&
           stat_gap(g, t, PROBE_STAT_MIN) == 0 &&
           fabs(many->stat[PROBE_STAT_NORM] - norm) <= 1e-6 * norm && norm > 0;
}

/* Tells whether one value is a mask of minus infinities and the other a mask of truth values. */
static bool is_mask_of_truths(const struct read__value *g, const struct read__value *t)
{
    const struct read__value *mask = read__is_finite(g) ? t : g, *truths = mask == g ? t : g;
    return truths->kind != READ__FLOAT && (mask->known >> PROBE_STAT_MAX & 1) &&
           mask->stat[PROBE_STAT_MAX] < INFINITY && mask->stat[PROBE_STAT_MIN] == -INFINITY;
}

/* A dump of functions records the norm of a single number with its sign, one of a graph without. */
static double norm_gap(const struct read__value *g, const struct read__value *t)
{
    const double gap = both_known(g, t, PROBE_STAT_NORM) ? fabs(norm_of(t) - norm_of(g)) : 0;
    return ratio_of(gap, fmax(norm_of(g), norm_of(t)));
}

double observe__value_gap(const struct read__value *g, const struct read__value *t)
{
    double peak = fmax(stat_gap(g, t, PROBE_STAT_MAX), stat_gap(g, t, PROBE_STAT_MIN));
    double e = fmax(norm_gap(g, t), ratio_of(peak, fmax(peak_of(g), peak_of(t))));
    double rms = fmax(norm_of(g), norm_of(t)) / sqrt((double)t->n);
    if (rms > 0)
        e = fmax(e, stat_gap(g, t, PROBE_STAT_MEAN) / rms);
    ms_assert(e >= 0);
    return fmin(e, 2);
}

/* Elements of values that are alike by their statistics differ by more than these: rounding averages out in a norm
 * and a mean. */
static const double elements_times = 10;

static bool is_sketched(const struct read__value *v)
{
    return v->sketch[0] != 0 || v->sketch[1] != 0;
}

double observe__identity_gap(const struct read__value *g, const struct read__value *t)
{
    const double e = observe__value_gap(g, t), norm = fmax(norm_of(g), norm_of(t));
    double sum = 0;
    if (!is_sketched(g) || !is_sketched(t) || g->n != t->n || !(norm > 0))
        return e;
    for (unsigned k = 0; k < READ__SKETCH; k++)
        sum += ((double)g->sketch[k] - t->sketch[k]) * ((double)g->sketch[k] - t->sketch[k]);
    return fmin(fmax(e, sqrt(sum / READ__SKETCH) / norm / elements_times), 2);
}

/* ---- patterns ------------------------------------------------------------ */

static bool close_to(double a, double b, double scale)
{
    return fabs(a - b) <= scale;
}

/* Tells whether all four statistics of t are `factor` times those of g. */
static bool fits_factor(const struct read__value *g, const struct read__value *t, double factor,
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

/* Tells whether t is much nearer to the negative of g than to g, where noise hides an exact
 * match. */
static bool is_nearer_negative(const struct read__value *g, const struct read__value *t, double e)
{
    enum { COUNT_MIN = 16 };
    struct read__value minus = *g;
    minus.stat[PROBE_STAT_MAX] = -g->stat[PROBE_STAT_MIN];
    minus.stat[PROBE_STAT_MIN] = -g->stat[PROBE_STAT_MAX];
    minus.stat[PROBE_STAT_MEAN] = -g->stat[PROBE_STAT_MEAN];
    return t->n >= COUNT_MIN && e > 0.05 && 3 * observe__value_gap(&minus, t) < e;
}

static void look_for_patterns(const struct read__value *g, const struct read__value *t,
                              struct observe__leaf *l)
{
    enum { ALL = (1 << PROBE_STATS) - 1 };
    bool whole = g->known == ALL && t->known == ALL && read__is_finite(g) && read__is_finite(t);
    if (!whole || !(norm_of(g) > 0) || !(norm_of(t) > 0) || l->e < 1e-5F)
        return;
    double factor = norm_of(t) / norm_of(g);
    double slack = fmin(1e-2, fmax(1e-5, 0.05 * fabs(factor - 1)));
    double shift = t->stat[PROBE_STAT_MEAN] - g->stat[PROBE_STAT_MEAN], peak = peak_of(g);
    double up = t->stat[PROBE_STAT_MAX] - g->stat[PROBE_STAT_MAX];
    double down = t->stat[PROBE_STAT_MIN] - g->stat[PROBE_STAT_MIN];
    if (fits_factor(g, t, factor, slack) && fabs(factor - 1) > 1e-6) {
        l->scale = (float)factor;
    } else if ((l->e > 0.2F && fits_factor(g, t, -factor, fmax(slack, 2e-2))) ||
               is_nearer_negative(g, t, l->e)) {
        l->scale = (float)-factor;
        l->flags |= OBSERVE__OPPOSITE;
    } else if (fabs(down) < 1e-4 * peak && up < -0.02 * peak) {
        l->flags |= OBSERVE__CLIPPED;
    } else if (t->n > 1 && close_to(up, shift, 0.02 * fabs(shift)) &&
               close_to(down, shift, 0.02 * fabs(shift))) {
        l->flags |= OBSERVE__SHIFTED;
    }
}

/* ---- one pair ------------------------------------------------------------ */

/* Tells whether the extremes have more digits than the type can hold; then the statistics were not
 * rounded to the type. */
static bool is_finer(const struct read__value *v)
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

/* Compares the digits of the extremes. Values that passed through a lower type have only its
 * digits; that both extremes have no more by chance happens once in 2^26 tensors. */
static void look_at_digits(const struct read__value *g, const struct read__value *t,
                           struct observe__leaf *l)
{
    enum { COUNT_MIN = 16 };
    bool whole = both_known(g, t, PROBE_STAT_MAX) && both_known(g, t, PROBE_STAT_MIN);
    if (!whole || !is_wide(g->dtype) || !is_wide(t->dtype) || t->n < COUNT_MIN)
        return;
    double max = g->stat[PROBE_STAT_MAX], min = g->stat[PROBE_STAT_MIN];
    enum ms_dtype low = held_by(t->stat[PROBE_STAT_MAX], t->stat[PROBE_STAT_MIN]);
    if (low == MS_DT_NONE)
        l->flags |= OBSERVE__FINE;
    else if (max != min && ms_dtype_round(low, max) != max && ms_dtype_round(low, min) != min)
        l->flags |= OBSERVE__COARSE;
}

/* Returns how far the maxima of two masked tensors are apart: their other statistics are those of the mask. */
static float unmasked_gap(const struct read__value *g, const struct read__value *t)
{
    static const double least =
        1e-2; /* of scores, which are near one; smaller ones may be rounding */
    if (!has_mask(g) || !has_mask(t))
        return 0;
    const double whole = fmax(fabs(g->stat[PROBE_STAT_MAX]), fabs(t->stat[PROBE_STAT_MAX]));
    return (float)fmin(ratio_of(stat_gap(g, t, PROBE_STAT_MAX), fmax(whole, least)), 2);
}

static void compare_tensors(const struct read__value *g, const struct read__value *t,
                            enum probe_mode mode, bool cross, struct observe__leaf *l)
{
    if (g->shape != t->shape && !cross)
        l->attrs |= OBSERVE__SHAPE;
    if (g->dtype != t->dtype && !cross)
        l->attrs |= OBSERVE__DTYPE;
    if (!cross && g->grad != t->grad && g->grad >= 0 && t->grad >= 0)
        l->attrs |= OBSERVE__GRAD;
    l->dtype[0] = g->dtype;
    l->dtype[1] = t->dtype;
    l->count = (float)t->n;
    l->norm = (float)fmax(norm_of(g), norm_of(t));
    if (g->kind == READ__FLOAT && t->kind == READ__FLOAT)
        l->flags |= OBSERVE__REAL;
    if (mode == PROBE_MODE_MD5) {
        l->e = g->digest != t->digest;
        l->flags |= OBSERVE__MEASURED;
        return;
    }
    if (mode == PROBE_MODE_SUMMARY) { /* the values of a file have the precision of its type */
        l->flags |= is_finer(g) ? OBSERVE__FINE_GOLDEN : 0;
        l->flags |= is_finer(t) ? OBSERVE__FINE_TARGET : 0;
    }
    if (is_mask_of_truths(g, t))
        return; /* both exclude places, each in its own way; what reads them is compared */
    if (mask_differs(g, t)) {
        if (g->n != t->n)
            return;
        l->flags |= OBSERVE__MEASURED;
        l->e = (float)fmin(
            ratio_of(stat_gap(g, t, PROBE_STAT_MAX),
                     fmax(fabs(g->stat[PROBE_STAT_MAX]), fabs(t->stat[PROBE_STAT_MAX]))),
            2);
        return;
    }
    if (read__is_finite(g) != read__is_finite(t))
        l->flags |= OBSERVE__FLAGGED;
    bool any = both_known(g, t, PROBE_STAT_MAX) || both_known(g, t, PROBE_STAT_NORM);
    if (is_repeated(g, t)) {
        l->attrs &= (uint8_t)~OBSERVE__SHAPE;
        l->flags |= OBSERVE__MEASURED;
    }
    if (g->n != t->n || !any)
        return;
    l->flags |= OBSERVE__MEASURED;
    l->e = fmaxf((float)observe__value_gap(g, t), unmasked_gap(g, t));
    if (t->n >= OBSERVE__NORM_COUNT && (l->flags & OBSERVE__REAL))
        l->en = (float)norm_gap(g, t);
    look_for_patterns(g, t, l);
    look_at_digits(g, t, l);
    if (l->e > 0 && l->e < 1e-6F && stat_gap(g, t, PROBE_STAT_MAX) == 0 &&
        stat_gap(g, t, PROBE_STAT_MIN) == 0)
        l->flags |= OBSERVE__RESUMMED;
}

static uint32_t fold_hash(uint64_t h)
{
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t hash_of(const struct read__value *v)
{
    uint64_t words[PROBE_STATS + 2] = {v->n, v->digest};
    memcpy(words + 2, v->stat, sizeof v->stat);
    return fold_hash(ms_str_hash((struct ms_str){(const char *)words, sizeof words}));
}

void observe__compare_values(const struct read__value *golden, const struct read__value *target,
                             enum probe_mode mode, bool cross, struct observe__leaf *l)
{
    static const struct read__value nothing = {.kind = READ__NOTHING, .grad = -1};
    const struct read__value *g = golden != NULL ? golden : &nothing;
    const struct read__value *t = target != NULL ? target : &nothing;
    ms_assert(golden != NULL || target != NULL);
    ms_assert(l->e == 0 && l->flags == 0);
    l->scale = NAN;
    if (read__is_tensor(g) && read__is_tensor(t)) {
        compare_tensors(g, t, mode, cross, l);
        ms_assert(l->e >= 0 && l->e <= 2 && l->en >= 0);
        l->value = hash_of(g);
        l->target = hash_of(t);
        return;
    }
    if (read__is_tensor(g) || read__is_tensor(t)) {
        const struct read__value *one = read__is_tensor(t) ? t : g;
        l->dtype[0] = l->dtype[1] = one->dtype;
        l->count = (float)one->n;
        l->norm = (float)norm_of(one);
    }
    bool plain = g->kind == READ__PLAIN || t->kind == READ__PLAIN;
    if (cross || !plain)
        return;
    l->flags |= OBSERVE__PLAINLY;
    if (g->kind != t->kind || g->n != t->n)
        l->attrs |= OBSERVE__SCALAR;
    l->value = fold_hash(g->n * 3 + t->n);
}

/* ---- tensor files -------------------------------------------------------- */

enum { BLOCK = 4096 };

struct pair {
    struct probe_tensor t[2];
    void *room[2];
    double *x[2];
};

enum ms_rc observe__open_tensor(const struct probe_dump *d, const char *dir, uint32_t row,
                                struct probe_tensor *t, struct ms_err *err)
{
    struct probe_leaf leaf;
    probe_row_leaf(d, &d->rows.p[row], &leaf);
    return cmp__open_tensor(d, dir, leaf.data_name, t, err);
}

static void close_pair(struct pair *p)
{
    for (unsigned s = 0; s < 2; s++) {
        probe_tensor_close(&p->t[s]);
        ms_free(p->room[s]);
        ms_free(p->x[s]);
    }
}

static enum ms_rc allocate_blocks(struct pair *p, struct ms_err *err)
{
    for (unsigned s = 0; s < 2; s++) {
        p->room[s] = ms_alloc(BLOCK * ms_dtype_size(p->t[s].dtype));
        p->x[s] = ms_alloc(BLOCK * sizeof *p->x[s]);
        if (p->room[s] == NULL || p->x[s] == NULL)
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* Loads elements from `at` on as doubles and returns their number. */
static size_t load_block(struct pair *p, uint64_t at)
{
    ms_assert(at < p->t[0].count && p->t[0].count == p->t[1].count);
    uint64_t left = p->t[0].count - at;
    size_t n = left < BLOCK ? (size_t)left : BLOCK;
    for (unsigned s = 0; s < 2; s++) {
        const void *raw = probe_tensor_elements(&p->t[s], at, n, p->room[s]);
        ms_dtype_to_f64(p->t[s].dtype, raw, n, p->x[s]);
    }
    return n;
}

struct sums {
    double dd, dd_nz, gg;
    uint64_t unequal, masks;
};

static void add_block(struct sums *a, const double *g, const double *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool fg = isfinite(g[i]), ft = isfinite(t[i]);
        a->unequal += g[i] != t[i] && !(isnan(g[i]) && isnan(t[i]));
        a->masks += fg != ft;
        if (!fg || !ft)
            continue;
        double d = t[i] - g[i];
        a->dd += d * d;
        a->gg += g[i] * g[i];
        if ((g[i] != 0) == (t[i] != 0))
            a->dd_nz += d * d;
    }
}

static double relative_norm(double dd, double gg)
{
    return dd == 0 ? 0 : gg > 0 ? sqrt(dd / gg) : 1;
}

static enum ms_rc measure_pair(struct pair *p, struct observe__facts *f, struct ms_err *err)
{
    struct sums a = {0};
    if (!cmp__same_shape(&p->t[0], &p->t[1]) || p->t[0].count != p->t[1].count ||
        p->t[0].count == 0)
        return MS_OK;
    MS_TRY(allocate_blocks(p, err));
    for (uint64_t at = 0; at < p->t[0].count; at += BLOCK) {
        size_t n = load_block(p, at);
        add_block(&a, p->x[0], p->x[1], n);
    }
    bool real = ms_dtype_kind(p->t[0].dtype) >= MS_DTK_FLOAT;
    f->e = real ? relative_norm(a.dd, a.gg) : sqrt((double)a.unequal / (double)p->t[0].count);
    f->e_nz = real ? relative_norm(a.dd_nz, a.gg) : f->e;
    f->flagged = a.masks != 0;
    f->measured = true;
    return MS_OK;
}

enum ms_rc observe__measure_files(const struct cmp *c, uint32_t golden_row, uint32_t target_row,
                                  struct observe__facts *facts, struct ms_err *err)
{
    struct pair p = {0};
    struct ms_err why = {0};
    *facts = (struct observe__facts){0};
    ms_assert(golden_row < c->rows.b.dump->rows.n && target_row < c->rows.t.dump->rows.n);
    enum ms_rc rc = observe__open_tensor(c->rows.b.dump, c->rows.b_dir, golden_row, &p.t[0], &why);
    if (rc == MS_OK)
        rc = observe__open_tensor(c->rows.t.dump, c->rows.t_dir, target_row, &p.t[1], &why);
    if (rc == MS_OK)
        rc = measure_pair(&p, facts, err);
    else if (rc != MS_E_NOMEM)
        rc = MS_OK; /* fall back to the statistics; the stage measure/ has reported the file */
    else
        ms_no_memory(err);
    close_pair(&p);
    return rc;
}
