/* SPDX-License-Identifier: MIT
 *
 * quant_explain: see the header.
 */
#include "compare/quantise/quant_explain.h"

#include "probe/base/mem.h"

#include <math.h>

/* Earlier layers that are held against an input: of a residual stream those that wrote to it last. */
enum { CANDIDATES = 24 };

/* ---- errors ---------------------------------------------------------------------------- */

static enum ms_rc take(const struct quant_values *a, const struct quant_values *b, float **out,
                       uint64_t *count, uint32_t *n, struct ms_err *err)
{
    *out = NULL;
    *n = 0;
    if (a->v == NULL || b->v == NULL || a->count != b->count || a->count == 0)
        return MS_OK;
    const uint64_t step = (a->count / QUANT_SAMPLE + 1) | 1;
    *count = a->count;
    *out = ms_alloc((size_t)(a->count / step + 1) * sizeof **out);
    if (*out == NULL)
        return ms_no_memory(err);
    for (uint64_t i = 0; i < a->count; i += step) {
        const float d = b->v[i] - a->v[i];
        (*out)[(*n)++] = isfinite(d) ? d : 0;
    }
    return MS_OK;
}

enum ms_rc quant_trace_take(struct quant_trace *t, const struct quant_values *x,
                            const struct quant_values *qx, const struct quant_values *y,
                            const struct quant_values *qy, struct ms_err *err)
{
    *t = (struct quant_trace){0};
    MS_TRY(take(x, qx, &t->input, &t->inputs, &t->n_input, err));
    const enum ms_rc rc = take(y, qy, &t->output, &t->outputs, &t->n_output, err);
    if (rc != MS_OK)
        quant_trace_free(t);
    return rc;
}

void quant_trace_free(struct quant_trace *t)
{
    ms_free(t->input);
    ms_free(t->output);
    *t = (struct quant_trace){0};
}

static double dot(const float *a, const float *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ---- where the error of an input comes from ------------------------------------------------ */

/* A system of normal equations, solved in place. */
struct normal {
    double a[CANDIDATES][CANDIDATES], b[CANDIDATES], x[CANDIDATES];
    size_t layer[CANDIDATES];
    unsigned n;
};

/* Solves by Cholesky's method; a little is added to the diagonal, since errors can depend on each other. */
static void solve(struct normal *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        s->a[i][i] *= 1 + 1e-6;
        for (unsigned k = 0; k <= i; k++) {
            double sum = s->a[i][k];
            for (unsigned m = 0; m < k; m++)
                sum -= s->a[i][m] * s->a[k][m];
            if (i == k)
                s->a[i][i] = sum > 0 ? sqrt(sum) : (double)INFINITY;
            else
                s->a[i][k] = sum / s->a[k][k];
        }
    }
    for (unsigned i = 0; i < s->n; i++) {
        double sum = s->b[i];
        for (unsigned m = 0; m < i; m++)
            sum -= s->a[i][m] * s->x[m];
        s->x[i] = sum / s->a[i][i];
    }
    for (unsigned i = s->n; i-- > 0;) {
        double sum = s->x[i];
        for (unsigned m = i + 1; m < s->n; m++)
            sum -= s->a[m][i] * s->x[m];
        s->x[i] = sum / s->a[i][i];
    }
}

/* Collects earlier outputs with as many elements as the input, the latest first. */
static void collect(struct normal *s, const struct quant_trace *t, size_t layer)
{
    const struct quant_trace *to = &t[layer];
    s->n = 0;
    for (size_t k = layer; k-- > 0 && s->n < CANDIDATES && to->input != NULL;) {
        if (t[k].output == NULL || t[k].outputs != to->inputs)
            continue;
        s->layer[s->n] = k;
        s->b[s->n] = dot(to->input, t[k].output, to->n_input);
        for (unsigned m = 0; m <= s->n; m++)
            s->a[s->n][m] = dot(t[k].output, t[s->layer[m]].output, to->n_input);
        s->n += s->a[s->n][s->n] > 0;
    }
}

/* Hands the weight of a layer's input on to earlier layers. */
static void hand_on(struct normal *s, const struct quant_trace *t, size_t layer, double weight,
                    double *weights)
{
    double explained = 0, part[CANDIDATES];
    const double all =
        t[layer].input != NULL ? dot(t[layer].input, t[layer].input, t[layer].n_input) : 0;
    collect(s, t, layer);
    for (unsigned i = 0; i < s->n; i++)
        part[i] = s->b[i];
    solve(s);
    for (unsigned i = 0; i < s->n; i++) {
        part[i] = all > 0 ? part[i] * s->x[i] / all : 0;
        part[i] = part[i] > 0 ? part[i] : 0;
        explained += part[i];
    }
    const double scale = explained > 1 ? 1 / explained : 1;
    for (unsigned i = 0; i < s->n; i++)
        weights[s->layer[i]] += weight * scale * part[i];
    if (layer > 0)
        weights[layer - 1] += weight * (1 - scale * explained);
}

enum ms_rc quant_explain(const struct quant_trace *t, size_t n, double *shares, struct ms_err *err)
{
    struct normal *s = ms_alloc(sizeof *s);
    double *weights = ms_calloc(n + 1, sizeof *weights);
    const bool ok = s != NULL && weights != NULL;
    if (ok && n != 0)
        weights[n - 1] = 1;
    for (size_t i = ok ? n : 0; i-- > 0;) {
        const double own = i == 0 ? 1 : t[i].own;
        shares[i] = weights[i] * own;
        if (own < 1 && weights[i] > 0)
            hand_on(s, t, i, weights[i] * (1 - own), weights);
    }
    ms_free(s);
    ms_free(weights);
    return ok ? MS_OK : ms_no_memory(err);
}
