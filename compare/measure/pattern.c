/* SPDX-License-Identifier: MIT
 *
 * pattern: the columns of --ext.
 *
 * Rounding a random tensor once to a type with unit roundoff u moves the tensor by 0.425 u
 * of its norm; two sides that are rounded independently differ by the square root of two
 * times that. For a pair of statistics only a lower bound of the difference is known:
 *
 *     |d|2 >= max(|dNorm|, sqrt(N) |dMean|, |dMax|, |dMin|)
 */
#include "compare/measure/pattern.h"

#include <math.h>

static double unit_roundoff(enum ms_dtype t)
{
    const double unit = ms_dtype_unit(t);
    return unit > 0 ? unit : NAN;
}

/* Returns the expected relative difference: the noise measured with a second run, else that of
 * rounding. */
static double expected_of(const struct cmp_rows *c, const struct cmp_measured *m,
                          const struct cmp_row *row)
{
    double noise = m->noise.n != 0 ? m->noise.p[c->pairs.p[row->pair].b] : NAN;
    if (noise > 0)
        return noise;
    double u = 0.425 * unit_roundoff(row->t.type), w = 0.425 * unit_roundoff(row->b.type);
    return sqrt(u * u + w * w);
}

static double count_of(struct ms_str shape)
{
    double n = 1;
    struct ms_str part, inner = ms_str_sub(shape, 1, shape.n == 0 ? 0 : shape.n - 1);
    while (inner.n != 0 && ms_str_split(&inner, ',', &part)) {
        uint64_t dim;
        while (part.n != 0 && part.p[0] == ' ')
            part = ms_str_sub(part, 1, part.n);
        if (!ms_str_u64(part, &dim))
            return NAN;
        n *= (double)dim;
    }
    return n;
}

/* ---- statistics ----------------------------------------------------------- */

static bool all_numbers(const struct cmp_row *row)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (row->t.stat[i].kind != CMP_VALUE_NUMBER || row->b.stat[i].kind != CMP_VALUE_NUMBER)
            return false;
    }
    return true;
}

static double delta_of(const struct cmp_row *row, unsigned i)
{
    return fabs(row->t.stat[i].v - row->b.stat[i].v);
}

/* Returns the factor that all four statistics have in common, or NaN. */
static double common_scale(const struct cmp_row *row)
{
    double norm = row->b.stat[PROBE_STAT_NORM].v, scale = row->t.stat[PROBE_STAT_NORM].v / norm;
    const double close = 1e-5;
    if (!(norm > 0))
        return NAN;
    for (unsigned sign = 0; sign < 2; sign++, scale = -scale) {
        bool fits = true;
        for (unsigned i = 0; i < PROBE_STAT_NORM; i++) {
            /* a negative factor swaps maximum and minimum */
            unsigned k = scale < 0 && i < PROBE_STAT_MEAN ? 1 - i : i;
            double want = scale * row->b.stat[k].v;
            fits &= fabs(row->t.stat[i].v - want) <= close * fabs(scale) * norm;
        }
        if (fits)
            return scale;
    }
    return NAN;
}

static struct cmp_ext ext_of_stats(const struct cmp_row *row)
{
    struct cmp_ext e = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (!all_numbers(row))
        return e;
    double n = count_of(row->b.shape), norm = row->b.stat[PROBE_STAT_NORM].v;
    double bound = delta_of(row, PROBE_STAT_NORM);
    bound = fmax(bound, delta_of(row, PROBE_STAT_MAX));
    bound = fmax(bound, delta_of(row, PROBE_STAT_MIN));
    bound = fmax(bound, sqrt(n) * delta_of(row, PROBE_STAT_MEAN));
    e.rel_l2_bound = bound == 0 ? 0 : norm > 0 ? bound / norm : HUGE_VAL;
    e.scale = common_scale(row);
    return e;
}

/* ---- names ------------------------------------------------------------------ */

static const char *name_of(const struct cmp_pattern *p, bool measured)
{
    double size = measured ? p->ext.rel_l2 : p->ext.rel_l2_bound, scale = p->ext.scale;
    double limit = isnan(p->expected) ? 1e-6 : 3 * p->expected;
    if (size == 0 && (!measured || p->ext.bit_equal == 1))
        return measured ? "identical" : "same figures";
    if (size <= limit)
        return measured ? "rounding" : "small";
    double rest = measured ? sqrt(fmax(0, size * size - (scale - 1) * (scale - 1))) : 0;
    bool scaled = !isnan(scale) && rest <= fmax(limit, 1e-4 * fabs(scale - 1));
    if (scaled)
        return fabs(scale + 1) < 1e-3 ? "sign flip" : "scaled";
    if (measured && p->ext.bit_equal > 0.999)
        return "outliers";
    if (measured && p->ext.bias > 0.999)
        return "shifted";
    return "different";
}

struct cmp_pattern cmp__pattern(const struct cmp_rows *c, const struct cmp_measured *m,
                                const struct cmp_row *row)
{
    struct cmp_pattern p = {
        .ext = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}, .expected = NAN, .z = NAN, .name = "N/A"};
    bool measured = c->set->mode == PROBE_MODE_TENSOR;
    if (!row->t.present || !row->b.present || row->t.type == MS_DT_NONE ||
        row->b.type == MS_DT_NONE)
        return p;
    if (c->set->mode == PROBE_MODE_MD5) {
        p.name = ms_str_eq(row->t.md5, row->b.md5) ? "identical" : "different";
        return p;
    }
    if (measured && row->fig.state != CMP_STATE_OK)
        return p;
    p.ext = measured ? row->fig.ext : ext_of_stats(row);
    p.expected = expected_of(c, m, row);
    double size = measured ? p.ext.rel_l2 : p.ext.rel_l2_bound;
    if (isnan(size))
        return p;
    p.z = size / p.expected;
    p.name = name_of(&p, measured);
    return p;
}
