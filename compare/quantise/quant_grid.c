/* SPDX-License-Identifier: MIT
 *
 * quant_grid: see the header.
 */
#include "compare/quantise/quant_grid.h"

#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdio.h>

/* Share of groups that a scale has to explain: a group of few elements that are not 0 can be on no grid by
 * the rounding of its storage. */
static const double enough = 0.98;
/* Groups that are looked at before a layout is tried on all. */
enum { FIRST_GROUPS = 48 };
/* Elements of a group that are looked at; a scale that explains so many explains all. */
enum { GROUP_MOST = 2048, GROUP_LEAST = 8 };

/* ---- layouts ------------------------------------------------------------------------- */

const struct quant_layout quant_layouts[QUANT_LAYOUTS] = {
    {QUANT_WHOLE, 0},    {QUANT_ROWS, 0},     {QUANT_COLUMNS, 0},  {QUANT_TILES, 128},
    {QUANT_BLOCKS, 256}, {QUANT_BLOCKS, 128}, {QUANT_BLOCKS, 64},  {QUANT_BLOCKS, 32},
    {QUANT_BLOCKS, 16},  {QUANT_BLOCKS, 8},   {QUANT_STACKS, 256}, {QUANT_STACKS, 128},
    {QUANT_STACKS, 64},  {QUANT_STACKS, 32},  {QUANT_STACKS, 16},  {QUANT_STACKS, 8}};

uint64_t quant_layout_count(const struct quant_layout *l, const struct quant_table *t)
{
    switch (l->sharing) {
    case QUANT_WHOLE:
        return 1;
    case QUANT_ROWS:
        return t->rows;
    case QUANT_COLUMNS:
        return t->cols;
    case QUANT_BLOCKS:
        return t->rows * ((t->cols + l->n - 1) / l->n);
    case QUANT_STACKS:
        return t->cols * ((t->rows + l->n - 1) / l->n);
    case QUANT_TILES:
        break;
    }
    return ((t->rows + l->n - 1) / l->n) * ((t->cols + l->n - 1) / l->n);
}

uint64_t quant_layout_group(const struct quant_layout *l, const struct quant_table *t, uint64_t row,
                            uint64_t col)
{
    switch (l->sharing) {
    case QUANT_WHOLE:
        return 0;
    case QUANT_ROWS:
        return row;
    case QUANT_COLUMNS:
        return col;
    case QUANT_BLOCKS:
        return row * ((t->cols + l->n - 1) / l->n) + col / l->n;
    case QUANT_STACKS:
        return row / l->n * t->cols + col;
    case QUANT_TILES:
        break;
    }
    return row / l->n * ((t->cols + l->n - 1) / l->n) + col / l->n;
}

struct quant_layout quant_layout_plain(struct quant_layout l, const struct quant_table *t)
{
    if (l.sharing == QUANT_BLOCKS && l.n >= t->cols)
        l = (struct quant_layout){QUANT_ROWS, 0};
    if (l.sharing == QUANT_STACKS && l.n >= t->rows)
        l = (struct quant_layout){QUANT_COLUMNS, 0};
    if ((l.sharing == QUANT_ROWS && t->rows == 1) || (l.sharing == QUANT_COLUMNS && t->cols == 1))
        l = (struct quant_layout){QUANT_WHOLE, 0};
    return l;
}

void quant_layout_text(const struct quant_layout *l, char *out, size_t n)
{
    static const char *const words[] = {"one scale",
                                        "a scale for each row",
                                        "a scale for each column",
                                        "blocks of %llu in a row",
                                        "blocks of %llu in a column",
                                        "tiles of %llu x %llu"};
    if (l->sharing <= QUANT_COLUMNS)
        snprintf(out, n, "%s", words[l->sharing]);
    else if (l->sharing == QUANT_TILES)
        snprintf(out, n, "tiles of %llu x %llu", (unsigned long long)l->n,
                 (unsigned long long)l->n);
    else
        snprintf(out, n, "blocks of %llu in a %s", (unsigned long long)l->n,
                 l->sharing == QUANT_BLOCKS ? "row" : "column");
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct quant_box quant_layout_box(const struct quant_layout *l, const struct quant_table *t,
                                  uint64_t g)
{
    const uint64_t n = l->n, across = n != 0 ? (t->cols + n - 1) / n : 1;
    struct quant_box b = {0, t->rows, 0, t->cols};
    if (l->sharing == QUANT_ROWS || l->sharing == QUANT_BLOCKS) {
        b.row = l->sharing == QUANT_ROWS ? g : g / across;
        b.rows_end = b.row + 1;
    }
    if (l->sharing == QUANT_COLUMNS || l->sharing == QUANT_STACKS) {
        b.col = g % t->cols;
        b.cols_end = b.col + 1;
    }
    if (l->sharing == QUANT_BLOCKS || l->sharing == QUANT_TILES) {
        b.col = g % across * n;
        b.cols_end = at_most(b.col + n, t->cols);
    }
    if (l->sharing == QUANT_STACKS || l->sharing == QUANT_TILES) {
        b.row = (l->sharing == QUANT_STACKS ? g / t->cols : g / across) * n;
        b.rows_end = at_most(b.row + n, t->rows);
    }
    return b;
}

/* ---- one group ----------------------------------------------------------------------- */

/* Magnitudes of a group above 0, sorted and each once. */
struct group {
    double v[GROUP_MOST];
    unsigned n;
    double low, high; /* of all its elements, with their signs */
    double precision;
};

static int order_magnitudes(const void *a, const void *b)
{
    return ms_order_f64(a, b);
}

static void gather(struct group *g, const struct quant_table *t, const struct quant_box *b)
{
    const uint64_t step = (b->rows_end - b->row) * (b->cols_end - b->col) / GROUP_MOST + 1;
    uint64_t seen = 0;
    g->n = 0;
    g->low = g->high = 0;
    g->precision = t->precision;
    for (uint64_t row = b->row; row < b->rows_end; row++) {
        for (uint64_t col = b->col; col < b->cols_end; col++, seen++) {
            const double v = (double)t->v[row * t->cols + col];
            g->low = v < g->low ? v : g->low;
            g->high = v > g->high ? v : g->high;
            if (v != 0 && isfinite(v) && seen % step == 0)
                g->v[g->n++] = fabs(v);
        }
    }
    const double largest = fmax(-g->low, g->high);
    if (largest > 0 && isfinite(largest) && g->n < GROUP_MOST)
        g->v[g->n++] = largest;
    qsort(g->v, g->n, sizeof *g->v, order_magnitudes);
    unsigned kept = 0;
    for (unsigned i = 0; i < g->n; i++) {
        if (kept == 0 || g->v[i] > g->v[kept - 1] * (1 + 2 * g->precision))
            g->v[kept++] = g->v[i];
    }
    g->n = kept;
}

/* Tells whether a multiple of the smallest value is a value of the type. */
static bool is_multiple(enum quant_number n, double m)
{
    const struct quant_facts *f = quant_facts(n);
    if (f->is_integer)
        return true; /* their range is that of the whole group */
    const double v = m * f->least;
    return v <= f->most && quant_round(n, v, QUANT_SATURATES) == v;
}

/* Tells whether the unit explains the group, and improves it by what it explains. */
static bool explains(enum quant_number n, const struct group *g, double *unit)
{
    const struct quant_facts *f = quant_facts(n);
    double vm = 0, mm = 0, u = *unit;
    for (unsigned i = 0; i < g->n; i++) {
        const double m = nearbyint(g->v[i] / u);
        const double allowed = 0.01 + 2 * g->precision * m;
        if (m == 0 || fabs(g->v[i] / u - m) > (allowed < 0.5 ? allowed : 0.5) || !is_multiple(n, m))
            return false;
        vm += g->v[i] * m;
        mm += m * m;
        u = vm / mm;
    }
    *unit = u;
    return !f->is_integer || (g->high - g->low) / u <= f->to - f->from + 0.5;
}

/* Returns the largest power of two that is not above v. */
static double power_below(double v)
{
    int e;
    (void)frexp(v, &e);
    return ldexp(1, e - 1);
}

/* Returns the scale of a type with few multiples of its smallest value; 0: none explains the group. */
static double scale_of_multiples(enum quant_number n, const struct group *g)
{
    enum { MOST_DIVISOR = 16, MOST_POWER = 12 };
    double gap = g->v[0], power = power_below(g->v[0]);
    for (unsigned k = 0; k <= MOST_POWER; k++, power /= 2) {
        double unit = power;
        if (explains(n, g, &unit))
            return power / quant_facts(n)->least;
    }
    for (unsigned i = 1; i < g->n; i++) {
        const double d = g->v[i] - g->v[i - 1];
        gap = d < gap && d > 8 * g->precision * g->v[i] ? d : gap;
    }
    for (unsigned k = 1; k <= MOST_DIVISOR; k++) {
        double unit = g->v[0] / k;
        if (explains(n, g, &unit))
            return unit / quant_facts(n)->least;
        unit = gap / k;
        if (gap < g->v[0] && k <= 4 && explains(n, g, &unit))
            return unit / quant_facts(n)->least;
    }
    return 0;
}

/* Tells whether v / s has no more bits than the type's fraction. */
static bool has_few_bits(double v, double s, int fraction, double precision)
{
    int e;
    const double bits = ldexp(frexp(v / s, &e), fraction + 1);
    return fabs(bits - nearbyint(bits)) <= 0.004 + 2 * precision * ldexp(1, fraction + 1);
}

static bool all_few_bits(const struct group *g, double s, int fraction)
{
    const double largest = g->v[g->n - 1];
    unsigned i = 0;
    while (i < g->n &&
           (g->v[i] < largest * 0x1p-10 || has_few_bits(g->v[i], s, fraction, g->precision)))
        i++;
    return i == g->n;
}

/* Returns the scale of a float of 8 bits, whose power of two puts the largest value into the type's upper
 * half; 0: none explains the group. */
static double scale_of_fractions(enum quant_number n, const struct group *g)
{
    const struct quant_facts *f = quant_facts(n);
    const double largest = g->v[g->n - 1], power = power_below(largest);
    double s = all_few_bits(g, power, f->fraction) ? ldexp(power, -f->most_exponent) : 0;
    for (int c = 1 << f->fraction; s == 0 && c < 2 << f->fraction; c++) {
        if (all_few_bits(g, largest / c, f->fraction))
            s = ldexp(largest / c, f->fraction - f->most_exponent);
    }
    return largest > s * f->most ? 2 * s : s;
}

static double group_scale(enum quant_number n, const struct group *g)
{
    return quant_facts(n)->bits == 8 && !quant_facts(n)->is_integer ? scale_of_fractions(n, g)
                                                                    : scale_of_multiples(n, g);
}

/* Tells whether a group uses the upper half of the type, or of integers, half of the range. */
static bool is_covered(enum quant_number n, const struct group *g, double scale)
{
    const struct quant_facts *f = quant_facts(n);
    const double most = fmax(-g->low, g->high) / scale;
    if (f->is_integer)
        return most >= 0.85 * f->most || (g->high - g->low) / scale >= 0.9 * (f->to - f->from);
    return most >= 0.99 * ldexp(1, f->most_exponent);
}

/* ---- a layout ------------------------------------------------------------------------- */

struct trial {
    const struct quant_table *t;
    enum quant_number number;
    struct quant_layout layout;
    uint64_t groups;
    struct group *g; /* scratch */
    double *scale;   /* by group */
    uint64_t seen, explained, covered;
};

static void try_group(struct trial *t, uint64_t i)
{
    const struct quant_box box = quant_layout_box(&t->layout, t->t, i);
    gather(t->g, t->t, &box);
    t->scale[i] = 0;
    if (t->g->n == 0)
        return;
    t->seen++;
    const double scale = group_scale(t->number, t->g);
    t->scale[i] = scale;
    t->explained += scale > 0;
    t->covered += scale > 0 && is_covered(t->number, t->g, scale);
}

static bool try_groups(struct trial *t, uint64_t step)
{
    t->seen = t->explained = t->covered = 0;
    for (uint64_t i = 0; i < t->groups; i += step)
        try_group(t, i);
    return t->seen != 0 && (double)t->explained >= enough * (double)t->seen;
}

static bool all_powers(const struct trial *t)
{
    for (uint64_t i = 0; i < t->groups; i++) {
        int e;
        if (t->scale[i] != 0 && fabs(frexp(t->scale[i], &e) - 0.5) > 1e-6 + 2 * t->t->precision &&
            fabs(frexp(t->scale[i], &e) - 1) > 1e-6 + 2 * t->t->precision)
            return false;
    }
    return true;
}

/* Adds the layout to the grid when it explains the tensor. */
static enum ms_rc try_layout(struct quant_grid *grid, struct trial *t,
                             const struct quant_layout *layout, struct ms_err *err)
{
    t->groups = quant_layout_count(layout, t->t);
    t->layout = *layout;
    t->scale = ms_alloc(((size_t)t->groups + 1) * sizeof *t->scale);
    if (t->scale == NULL)
        return ms_no_memory(err);
    const uint64_t step = t->groups / FIRST_GROUPS + 1;
    const bool fits = (step == 1 || try_groups(t, step)) && try_groups(t, 1);
    if (fits) {
        grid->fits[grid->n++] = (struct quant_fit){*layout, (double)t->covered / (double)t->seen};
        if (grid->n == 1) {
            grid->powers = all_powers(t);
            grid->groups = t->groups;
            grid->scale = t->scale;
            t->scale = NULL;
        }
    }
    ms_free(t->scale);
    return MS_OK;
}

/* ---- the grid ---------------------------------------------------------------------------- */

bool quant_layout_divides(const struct quant_layout *l, const struct quant_table *t)
{
    return l->sharing == QUANT_BLOCKS    ? l->n < t->cols
           : l->sharing == QUANT_STACKS  ? l->n < t->rows
           : l->sharing == QUANT_TILES   ? l->n < t->rows && l->n < t->cols
           : l->sharing == QUANT_ROWS    ? t->rows > 1
           : l->sharing == QUANT_COLUMNS ? t->cols > 1
                                         : true;
}

static uint64_t group_size(const struct quant_layout *l, const struct quant_table *t)
{
    return t->rows * t->cols / quant_layout_count(l, t);
}

static enum ms_rc try_number(struct quant_grid *grid, struct trial *t, struct ms_err *err)
{
    const uint64_t least = quant_facts(t->number)->bits == 4 ? GROUP_LEAST : 2 * GROUP_LEAST;
    for (size_t i = 0; i < QUANT_LAYOUTS; i++) {
        if (quant_layout_divides(&quant_layouts[i], t->t) &&
            group_size(&quant_layouts[i], t->t) >= least)
            MS_TRY(try_layout(grid, t, &quant_layouts[i], err));
    }
    return MS_OK;
}

enum ms_rc quant_grid_find(struct quant_grid *g, const struct quant_table *t, struct ms_err *err)
{
    static const enum quant_number numbers[] = {QUANT_E2M1, QUANT_INT4, QUANT_E2M3, QUANT_E3M2,
                                                QUANT_E5M2, QUANT_E4M3, QUANT_INT8};
    struct trial trial = {.t = t, .g = ms_alloc(sizeof *trial.g)};
    *g = (struct quant_grid){0};
    if (trial.g == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && g->n == 0 && i < sizeof numbers / sizeof *numbers; i++) {
        trial.number = g->number = numbers[i];
        rc = try_number(g, &trial, err);
    }
    ms_free(trial.g);
    if (rc != MS_OK)
        quant_grid_free(g);
    return rc;
}

void quant_grid_free(struct quant_grid *g)
{
    ms_free(g->scale);
    *g = (struct quant_grid){0};
}
