/* SPDX-License-Identifier: MIT
 *
 * quant_match: see the header.
 */
#include "compare/quantise/quant_match.h"

#include "probe/base/mem.h"

#include <math.h>

/* Elements that are looked at before all are, and the share that has to match: ties may be broken otherwise,
 * and a scale's last bit may be another. */
enum { FIRST_ELEMENTS = 4096 };
static const double nearly_all = 0.998;

/* How a scale follows from the largest magnitude of a group. */
enum rule {
    BY_LARGEST,   /* largest / the type's largest */
    BY_HALF_STEP, /* integers: / 127.5, / 7.5 */
    BY_STEP,      /* integers: / 128, / 8 */
    BY_RANGE,     /* integers with a zero point: (high - low) / 255 */
    BY_FLOOR,     /* powers of two, as quant_power names them */
    BY_CEIL,
    BY_EVEN,
    BY_RCEIL,
    BY_E4M3, /* a scale of e4m3 below one of the tensor */
    RULES
};

struct matching {
    const struct quant_grid *g;
    const struct quant_table *f, *q;
    float *low, *high; /* by group of the layout */
    float largest;     /* of the tensor */
};

static bool is_usable(const struct quant_grid *g, enum rule rule)
{
    const struct quant_facts *f = quant_facts(g->number);
    switch (rule) {
    case BY_HALF_STEP:
    case BY_STEP:
    case BY_RANGE:
        return f->is_integer;
    case BY_LARGEST:
        return true;
    case BY_E4M3:
        return g->number == QUANT_E2M1;
    default:
        return !f->is_integer;
    }
}

static double nested(const struct matching *m, float largest)
{
    const float whole = m->largest / (float)(448 * quant_facts(m->g->number)->most);
    float block = largest / (float)quant_facts(m->g->number)->most / whole;
    block = block < 0x1p-6f ? 0x1p-6f : block;
    return quant_round(QUANT_E4M3, (double)block, QUANT_SATURATES) * (double)whole;
}

/* Returns the scale of a group; 0: the group is all zeros. */
static double scale_by(const struct matching *m, enum rule rule, uint64_t group)
{
    const struct quant_facts *f = quant_facts(m->g->number);
    const float largest = fmaxf(-m->low[group], m->high[group]);
    if (!(largest > 0) || !isfinite(largest))
        return 0;
    switch (rule) {
    case BY_HALF_STEP:
        return (double)(largest / ((float)f->most + 0.5f));
    case BY_STEP:
        return (double)(largest / (float)-f->from);
    case BY_RANGE:
        return (double)((m->high[group] - m->low[group]) / (float)(f->to - f->from));
    case BY_FLOOR:
    case BY_CEIL:
    case BY_EVEN:
    case BY_RCEIL:
        return (double)quant_power_value(quant_power_code(
            m->g->number, largest, (enum quant_power)(rule - BY_FLOOR + (unsigned)QUANT_FLOOR)));
    case BY_E4M3:
        return nested(m, largest);
    default:
        return (double)(largest / (float)f->most);
    }
}

static double quantised(const struct matching *m, enum rule rule, double f, double scale,
                        uint64_t group)
{
    const struct quant_facts *facts = quant_facts(m->g->number);
    if (rule != BY_RANGE)
        return quant_round(m->g->number, f / scale, QUANT_SATURATES) * scale;
    const double zero = facts->from - nearbyint((double)m->low[group] / scale);
    const double code = nearbyint(f / scale) + zero;
    return (fmin(fmax(code, facts->from), facts->to) - zero) * scale;
}

/* Counts elements, every `step`th, that the rule does not give. */
static double mismatch(const struct matching *m, const struct quant_layout *l, enum rule rule,
                       uint64_t step)
{
    const uint64_t count = m->q->rows * m->q->cols;
    uint64_t wrong = 0, seen = 0;
    for (uint64_t i = 0; i < count; i += step) {
        const uint64_t g = quant_layout_group(l, m->q, i / m->q->cols, i % m->q->cols);
        const double s = scale_by(m, rule, g), q = (double)m->q->v[i];
        const double want = s > 0 ? quantised(m, rule, (double)m->f->v[i], s, g) : 0;
        seen++;
        wrong += !(fabs(want - q) <= 2 * m->q->precision * fabs(want) + 1e-30);
    }
    return (double)wrong / (double)seen;
}

static bool matches_rule(const struct matching *m, const struct quant_layout *l, enum rule rule)
{
    const uint64_t count = m->q->rows * m->q->cols;
    const uint64_t step = (count / FIRST_ELEMENTS) | 1;
    return mismatch(m, l, rule, step) <= 3 * (1 - nearly_all) &&
           (step == 1 || mismatch(m, l, rule, 1) <= 1 - nearly_all);
}

static bool find_ranges(struct matching *m, const struct quant_layout *l)
{
    const size_t groups = (size_t)quant_layout_count(l, m->q);
    m->low = ms_calloc(groups, sizeof *m->low);
    m->high = ms_calloc(groups, sizeof *m->high);
    if (m->low == NULL || m->high == NULL)
        return false;
    for (uint64_t i = 0; i < m->q->rows * m->q->cols; i++) {
        const uint64_t g = quant_layout_group(l, m->q, i / m->q->cols, i % m->q->cols);
        m->low[g] = fminf(m->low[g], m->f->v[i]);
        m->high[g] = fmaxf(m->high[g], m->f->v[i]);
        m->largest = fmaxf(m->largest, fabsf(m->f->v[i]));
    }
    return true;
}

enum ms_rc quant_match_find(const struct quant_grid *g, const struct quant_table *f,
                            const struct quant_table *q, bool matches[QUANT_FITS],
                            struct ms_err *err)
{
    for (unsigned i = 0; i < g->n; i++) {
        struct matching m = {.g = g, .f = f, .q = q};
        const bool ok = find_ranges(&m, &g->fits[i].layout);
        matches[i] = false;
        for (unsigned rule = 0; ok && !matches[i] && rule < RULES; rule++)
            matches[i] = is_usable(g, (enum rule)rule) &&
                         matches_rule(&m, &g->fits[i].layout, (enum rule)rule);
        ms_free(m.low);
        ms_free(m.high);
        if (!ok)
            return ms_no_memory(err);
    }
    return MS_OK;
}
