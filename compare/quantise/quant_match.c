/* SPDX-License-Identifier: MIT
 *
 * quant_match: see the header.
 */
#include "compare/quantise/quant_match.h"

#include "probe/base/mem.h"

#include <math.h>

/* Elements that are looked at before all are. */
enum { FIRST_ELEMENTS = 2048 };
/* Share of elements that has to match: by scales that were divided, the last bit of which may be another, and
 * by powers of two, with which the arithmetic is exact. */
static const double nearly_all = 0.998, all_but_few = 0.9998;

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
    const struct quant_table *f, *q;
    struct quant_layout layout;
    uint64_t groups;
    float *low, *high; /* by group of the layout */
    float largest;     /* of the tensor */
};

static bool is_usable(enum quant_number n, enum rule rule)
{
    const struct quant_facts *f = quant_facts(n);
    switch (rule) {
    case BY_HALF_STEP:
    case BY_STEP:
    case BY_RANGE:
        return f->is_integer;
    case BY_LARGEST:
        return true;
    case BY_E4M3:
        return n == QUANT_E2M1;
    default:
        return !f->is_integer;
    }
}

static double nested(const struct matching *m, enum quant_number n, float largest)
{
    const float whole = m->largest / (float)(448 * quant_facts(n)->most);
    float block = largest / (float)quant_facts(n)->most / whole;
    block = block < 0x1p-6f ? 0x1p-6f : block;
    return quant_round(QUANT_E4M3, (double)block, QUANT_SATURATES) * (double)whole;
}

/* Returns the scale of a group; 0: the group is all zeros. */
static double scale_by(const struct matching *m, enum quant_number n, enum rule rule,
                       uint64_t group)
{
    const struct quant_facts *f = quant_facts(n);
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
            n, largest, (enum quant_power)(rule - BY_FLOOR + (unsigned)QUANT_FLOOR)));
    case BY_E4M3:
        return nested(m, n, largest);
    default:
        return (double)(largest / (float)f->most);
    }
}

static double quantised(const struct matching *m, enum quant_number n, enum rule rule, double f,
                        double scale, uint64_t group)
{
    const struct quant_facts *facts = quant_facts(n);
    if (rule != BY_RANGE)
        return quant_round(n, f / scale, QUANT_SATURATES) * scale;
    const double zero = facts->from - nearbyint((double)m->low[group] / scale);
    const double code = nearbyint(f / scale) + zero;
    return (fmin(fmax(code, facts->from), facts->to) - zero) * scale;
}

/* Returns what the rule makes of an element. */
static double wanted(const struct matching *m, enum quant_number n, enum rule rule, uint64_t i)
{
    const uint64_t g = quant_layout_group(&m->layout, m->q, i / m->q->cols, i % m->q->cols);
    const double s = scale_by(m, n, rule, g);
    return s > 0 ? quantised(m, n, rule, (double)m->f->v[i], s, g) : 0;
}

/* Returns the share of elements, every `step`th, that the rule does not give. */
static double mismatch(const struct matching *m, enum quant_number n, enum rule rule, uint64_t step)
{
    const uint64_t count = m->q->rows * m->q->cols;
    uint64_t wrong = 0, seen = 0;
    for (uint64_t i = 0; i < count; i += step) {
        const double want = wanted(m, n, rule, i);
        seen++;
        wrong += !(fabs(want - (double)m->q->v[i]) <= 2 * m->q->precision * fabs(want) + 1e-30);
    }
    return (double)wrong / (double)seen;
}

static bool is_power(enum rule rule)
{
    return rule >= BY_FLOOR && rule <= BY_RCEIL;
}

static bool matches_rule(const struct matching *m, enum quant_number n, enum rule rule)
{
    const uint64_t count = m->q->rows * m->q->cols, step = (count / FIRST_ELEMENTS) | 1;
    const double allowed = 1 - (is_power(rule) ? all_but_few : nearly_all);
    return mismatch(m, n, rule, step) <= 4 * allowed &&
           (step == 1 || mismatch(m, n, rule, 1) <= allowed);
}

/* ---- the ranges of a layout's groups ------------------------------------------------------- */

static void add_range(struct matching *m, uint64_t g, const float *row, uint64_t from, uint64_t to)
{
    float low = m->low[g], high = m->high[g];
    for (uint64_t col = from; col < to; col++) {
        low = row[col] < low ? row[col] : low;
        high = row[col] > high ? row[col] : high;
    }
    m->low[g] = low;
    m->high[g] = high;
}

static bool find_ranges(struct matching *m, const struct quant_layout *l)
{
    m->layout = *l;
    m->groups = quant_layout_count(l, m->q);
    m->low = ms_calloc((size_t)m->groups, sizeof *m->low);
    m->high = ms_calloc((size_t)m->groups, sizeof *m->high);
    if (m->low == NULL || m->high == NULL)
        return false;
    for (uint64_t g = 0; g < m->groups; g++) {
        const struct quant_box b = quant_layout_box(l, m->q, g);
        for (uint64_t row = b.row; row < b.rows_end; row++)
            add_range(m, g, m->f->v + row * m->q->cols, b.col, b.cols_end);
        m->largest = fmaxf(m->largest, fmaxf(-m->low[g], m->high[g]));
    }
    return true;
}

static void free_ranges(struct matching *m)
{
    ms_free(m->low);
    ms_free(m->high);
}

/* Types from the fewest bits on: values of one type are values of wider ones, too. */
static const enum quant_number numbers[] = {QUANT_E2M1, QUANT_INT4, QUANT_E2M3, QUANT_E3M2,
                                            QUANT_E5M2, QUANT_E4M3, QUANT_INT8};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Finds a rule for a type; RULES: there is none. */
static enum rule find_rule(const struct matching *m, enum quant_number n)
{
    unsigned rule = 0;
    while (rule < RULES && !(is_usable(n, (enum rule)rule) && matches_rule(m, n, (enum rule)rule)))
        rule++;
    return (enum rule)rule;
}

/* ---- an exact match --------------------------------------------------------------------------- */

static void note_scales(struct quant_match *out, const struct matching *m, enum rule rule)
{
    out->powers = is_power(rule);
    out->scale_min = (double)INFINITY;
    for (uint64_t g = 0; g < m->groups; g++) {
        const double s = scale_by(m, out->number, rule, g);
        out->scale_max = fmax(out->scale_max, s);
        out->scale_min = s > 0 ? fmin(out->scale_min, s) : out->scale_min;
    }
}

/* Tries the types that can still be the one: all, or the one of a coarser layout. */
static void match_layout(struct quant_match *out, const struct matching *m)
{
    for (unsigned k = 0; k < NUMBERS; k++) {
        if (out->n != 0 && numbers[k] != out->number)
            continue;
        const enum rule rule = find_rule(m, numbers[k]);
        if (rule == RULES)
            continue;
        out->number = numbers[k];
        if (out->n == 0)
            note_scales(out, m, rule);
        out->layouts[out->n++] = m->layout;
        return;
    }
}

enum ms_rc quant_match_find(struct quant_match *out, const struct quant_table *f,
                            const struct quant_table *q, struct ms_err *err)
{
    *out = (struct quant_match){0};
    for (unsigned i = 0; i < QUANT_LAYOUTS; i++) {
        struct matching m = {.f = f, .q = q};
        if (!quant_layout_divides(&quant_layouts[i], q))
            continue;
        const bool ok = find_ranges(&m, &quant_layouts[i]);
        if (ok)
            match_layout(out, &m);
        free_ranges(&m);
        if (!ok)
            return ms_no_memory(err);
    }
    return MS_OK;
}

/* ---- a match but for factors ---------------------------------------------------------------------- */

struct scaling {
    const struct quant_grid *g;
    double *qw, *ww; /* by group of the grid */
};

static uint64_t decode_group(const struct scaling *s, const struct matching *m, uint64_t i)
{
    return quant_layout_group(&s->g->fits[0].layout, m->q, i / m->q->cols, i % m->q->cols);
}

static void find_factors(const struct scaling *s, const struct matching *m, enum rule rule)
{
    memset(s->qw, 0, (size_t)s->g->groups * sizeof *s->qw);
    memset(s->ww, 0, (size_t)s->g->groups * sizeof *s->ww);
    for (uint64_t i = 0; i < m->q->rows * m->q->cols; i++) {
        const double w = wanted(m, s->g->number, rule, i);
        const uint64_t g = decode_group(s, m, i);
        s->qw[g] += w * (double)m->q->v[i];
        s->ww[g] += w * w;
    }
}

static bool matches_scaled(const struct scaling *s, const struct matching *m, enum rule rule)
{
    const uint64_t count = m->q->rows * m->q->cols;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t g = decode_group(s, m, i);
        const double a = s->ww[g] > 0 ? s->qw[g] / s->ww[g] : 0;
        const double want = a * wanted(m, s->g->number, rule, i);
        wrong +=
            !(fabs(want - (double)m->q->v[i]) <= (1e-4 + 2 * m->q->precision) * fabs(want) + 1e-30);
    }
    return (double)wrong <= (1 - nearly_all) * (double)count;
}

/* Tries a few groups, and of each so many elements, before all are tried. */
enum { FIRST_GROUPS = 12, GROUP_MOST = 1024 };

/* Tells whether one factor makes what the rule gives in a box what it became. */
static bool box_matches(const struct scaling *s, const struct matching *m, enum rule rule,
                        const struct quant_box *b)
{
    double qw = 0, ww = 0;
    unsigned wrong = 0, n = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double a = ww > 0 ? qw / ww : 0;
        n = 0;
        for (uint64_t row = b->row; row < b->rows_end && n < GROUP_MOST; row++) {
            for (uint64_t col = b->col; col < b->cols_end && n < GROUP_MOST; col++, n++) {
                const double q = (double)m->q->v[row * m->q->cols + col];
                const double w = wanted(m, s->g->number, rule, row * m->q->cols + col);
                if (pass == 0) {
                    qw += w * q;
                    ww += w * w;
                } else {
                    wrong +=
                        !(fabs(a * w - q) <= (1e-3 + 2 * m->q->precision) * fabs(a * w) + 1e-30);
                }
            }
        }
    }
    return wrong <= n / 20;
}

static bool may_match(const struct scaling *s, const struct matching *m, enum rule rule)
{
    const uint64_t step = s->g->groups / FIRST_GROUPS + 1;
    unsigned tried = 0, good = 0;
    for (uint64_t g = 0; g < s->g->groups; g += step, tried++) {
        const struct quant_box b = quant_layout_box(&s->g->fits[0].layout, m->q, g);
        good += box_matches(s, m, rule, &b);
    }
    return 4 * good >= 3 * tried;
}

static bool is_equal(double a, double b)
{
    return fabs(a - b) <= 0.01 * fabs(b);
}

static void relate(struct quant_scaled *out, const struct scaling *s, const struct matching *m,
                   enum rule rule)
{
    const uint64_t count = m->q->rows * m->q->cols;
    uint64_t own = 0, inverse = 0, seen = 0;
    *out = (struct quant_scaled){.found = true, .from = m->layout, .least = (double)INFINITY};
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t g = decode_group(s, m, i);
        const double a = s->ww[g] > 0 ? s->qw[g] / s->ww[g] : 0;
        const double scale =
            scale_by(m, s->g->number, rule,
                     quant_layout_group(&m->layout, m->q, i / m->q->cols, i % m->q->cols));
        if (!(a > 0) || !(scale > 0))
            continue;
        seen++;
        own += is_equal(a, scale);
        inverse += is_equal(a * scale, 1);
        out->least = fmin(out->least, a);
        out->most = fmax(out->most, a);
    }
    if (seen != 0 && 100 * own >= 95 * seen)
        out->factor = QUANT_FACTOR_SCALE;
    else if (seen != 0 && 100 * inverse >= 95 * seen)
        out->factor = QUANT_FACTOR_INVERSE;
}

static void match_scaled(struct quant_scaled *out, const struct scaling *s,
                         const struct matching *m)
{
    for (unsigned rule = 0; !out->found && rule < RULES; rule++) {
        if (!is_usable(s->g->number, (enum rule)rule) || !may_match(s, m, (enum rule)rule))
            continue;
        find_factors(s, m, (enum rule)rule);
        if (matches_scaled(s, m, (enum rule)rule))
            relate(out, s, m, (enum rule)rule);
    }
}

enum ms_rc quant_match_scaled(struct quant_scaled *out, const struct quant_grid *g,
                              const struct quant_table *f, const struct quant_table *q,
                              struct ms_err *err)
{
    struct scaling s = {g, ms_alloc((size_t)g->groups * sizeof *s.qw),
                        ms_alloc((size_t)g->groups * sizeof *s.ww)};
    bool ok = s.qw != NULL && s.ww != NULL;
    *out = (struct quant_scaled){0};
    for (unsigned i = 0; ok && !out->found && i < QUANT_LAYOUTS; i++) {
        struct matching m = {.f = f, .q = q};
        if (!quant_layout_divides(&quant_layouts[i], q))
            continue;
        ok = find_ranges(&m, &quant_layouts[i]);
        if (ok)
            match_scaled(out, &s, &m);
        free_ranges(&m);
    }
    ms_free(s.qw);
    ms_free(s.ww);
    return ok ? MS_OK : ms_no_memory(err);
}
