/* SPDX-License-Identifier: MIT
 *
 * quant_unfuse: see the header.
 */
#include "compare/quantise/quant_unfuse.h"

#include "probe/base/mem.h"

#include <math.h>

/* Factors are those of float32 arithmetic in another order. */
static const double precision = 1e-4;

/* Rows are the outputs of a layer; columns, all other axes of its weight. */
struct factors {
    uint64_t rows, cols;
    bool by_row;
    double *wb, *ww; /* by row or column: sums of products and squares; wb becomes the factor */
};

static uint64_t place(const struct factors *s, uint64_t i)
{
    return s->by_row ? i / s->cols : i % s->cols;
}

/* Tells whether factors explain the weight, and at least one of them is not 1. */
static bool find_factors(struct factors *s, const struct quant_values *golden,
                         const struct quant_values *before)
{
    const uint64_t n = s->by_row ? s->rows : s->cols;
    double noise = 0, signal = 0;
    bool changed = false;
    memset(s->wb, 0, (size_t)n * sizeof *s->wb);
    memset(s->ww, 0, (size_t)n * sizeof *s->ww);
    for (uint64_t i = 0; i < golden->count; i++) {
        const double w = (double)golden->v[i];
        s->wb[place(s, i)] += w * (double)before->v[i];
        s->ww[place(s, i)] += w * w;
    }
    for (uint64_t k = 0; k < n; k++) {
        s->wb[k] = s->ww[k] > 0 ? s->wb[k] / s->ww[k] : 1;
        changed = changed || fabs(s->wb[k] - 1) > 10 * precision;
        if (!(fabs(s->wb[k]) > 1e-12))
            return false;
    }
    for (uint64_t i = 0; i < golden->count; i++) {
        const double b = (double)before->v[i], d = b - s->wb[place(s, i)] * (double)golden->v[i];
        noise += d * d;
        signal += b * b;
    }
    return changed && noise <= precision * precision * signal;
}

/* Divides, or with `multiply` multiplies, elements by the factor of their index on an axis. */
static void scale(struct quant_values *v, uint64_t inner, const double *factor, uint64_t n,
                  bool multiply)
{
    if (v->v == NULL || inner == 0 || v->count % (n * inner) != 0)
        return;
    for (uint64_t i = 0; i < v->count; i++) {
        const double a = factor[i / inner % n];
        v->v[i] = (float)((double)v->v[i] * (multiply ? a : 1 / a));
    }
}

static void take_out(const struct quant_fused *f, const struct factors *s)
{
    if (!s->by_row) {
        scale(f->w, 1, s->wb, s->cols, false);
        scale(f->x, 1, s->wb, s->cols, true);
        scale(f->x_before, 1, s->wb, s->cols, true);
        return;
    }
    uint64_t space = 1;
    for (uint32_t d = 2; f->kind == QUANT_CONV && d < f->y->ndim; d++)
        space *= f->y->shape[d];
    scale(f->w, s->cols, s->wb, s->rows, false);
    scale(f->y, space, s->wb, s->rows, false);
    scale(f->bias, 1, s->wb, s->rows, false);
}

enum ms_rc quant_unfuse(const struct quant_fused *f, enum quant_fusion *found, struct ms_err *err)
{
    *found = QUANT_FUSED_NOTHING;
    const struct quant_values *g = f->golden, *b = f->before;
    if (f->kind == QUANT_MATMUL || g->v == NULL || b->v == NULL || g->count != b->count ||
        g->ndim < 2 || g->count == 0 || f->w->count != g->count)
        return MS_OK;
    struct factors s = {.rows = g->shape[0], .cols = g->count / g->shape[0], .by_row = true};
    const size_t most = (size_t)(s.rows > s.cols ? s.rows : s.cols);
    s.wb = ms_alloc(most * sizeof *s.wb);
    s.ww = ms_alloc(most * sizeof *s.ww);
    const bool ok = s.wb != NULL && s.ww != NULL;
    if (ok && find_factors(&s, g, b))
        *found = QUANT_FUSED_ROWS;
    s.by_row = *found == QUANT_FUSED_ROWS;
    if (ok && !s.by_row && f->kind == QUANT_LINEAR && find_factors(&s, g, b))
        *found = QUANT_FUSED_COLUMNS;
    if (*found != QUANT_FUSED_NOTHING)
        take_out(f, &s);
    ms_free(s.wb);
    ms_free(s.ww);
    return ok ? MS_OK : ms_no_memory(err);
}
