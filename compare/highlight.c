/* SPDX-License-Identifier: MIT
 *
 * highlight: a row is coloured for its own figures, and an output row for how it
 * compares with each input or parameter of its op.
 *
 * A reason is given once for every input that it holds for, as the official tool does.
 */
#include "compare/highlight.h"

#include "compare/cmp_int.h"

#include <math.h>

/* What is collected about a row. */
struct mark {
    enum cmp_colour colour;
    struct ms_buf *reasons;
};

/* Red takes the place of yellow, reasons and all. */
static void put(struct mark *m, enum cmp_colour colour, const char *reason)
{
    if (colour < m->colour)
        return;
    if (m->reasons != NULL && colour > m->colour)
        ms_buf_clear(m->reasons);
    if (m->reasons != NULL && m->reasons->n != 0)
        ms_buf_putc(m->reasons, '\n');
    if (m->reasons != NULL)
        ms_buf_puts(m->reasons, reason);
    m->colour = colour;
}

static bool is_special(const struct cmp_value *x)
{
    return x->kind == CMP_VALUE_NAN || x->kind == CMP_VALUE_INF || x->kind == CMP_VALUE_NINF;
}

static double max_of(const struct cmp_item *item)
{
    return cmp__value_number(&item->stat[PROBE_STAT_MAX]);
}

/* How far the maxima are apart, or of tensors the elements; NaN where that is not a number. */
static double max_diff(const struct cmp *c, const struct cmp_row *row)
{
    if (c->mode != PROBE_MODE_TENSOR)
        return fabs(max_of(&row->t) - max_of(&row->b));
    bool known = row->fig.state == CMP_STATE_OK || row->fig.state == CMP_STATE_SCALAR;
    return known ? row->fig.metric[CMP_MAX_ABS] : NAN;
}

static bool is_number(const struct cmp_value *x)
{
    return !x->is_text && !isnan(cmp__value_number(x));
}

static bool is_numeric(const struct cmp *c, const struct cmp_row *row)
{
    return is_number(&row->t.stat[PROBE_STAT_MAX]) && is_number(&row->b.stat[PROBE_STAT_MAX]) &&
           !isnan(max_diff(c, row));
}

/* ---- a row by itself -------------------------------------------------------- */

static void judge_alone(const struct cmp *c, const struct cmp_row *row, struct mark *m)
{
    if (is_special(&row->t.stat[PROBE_STAT_MAX]) || is_special(&row->t.stat[PROBE_STAT_MIN]))
        put(m, CMP_RED, "maximum or minimum is nan, -inf, or inf");
    else if (max_diff(c, row) > 1e10)
        put(m, CMP_RED, "maximum absolute error exceeds 1e+10");
}

/* ---- an output against an input ------------------------------------------------ */

static void judge_magnitude(double in, double out, struct mark *m)
{
    if (in > 1 && out > 1 && out >= in && log10(out) - log10(in) >= 1)
        put(m, CMP_YELLOW,
            "maximum absolute error of both input/parameters and output exceed 1, with the output "
            "larger by an order of magnitude");
}

/* A figure of a tensor; NaN where the tool has a word instead, as for the cosine of one element. */
static double figure(const struct cmp_row *row, unsigned which)
{
    double x = row->fig.state == CMP_STATE_OK ? row->fig.metric[which] : NAN;
    return x != HUGE_VAL ? x : NAN;
}

static void judge_tensors(const struct cmp_row *in, const struct cmp_row *out, struct mark *m)
{
    double ratio_in = figure(in, CMP_THOUSANDTH), ratio_out = figure(out, CMP_THOUSANDTH);
    if (ratio_in > 0.9 && ratio_out < 0.6)
        put(m, CMP_RED,
            "The input/parameter's one thousandth err ratio exceeds 0.9, while the output's is "
            "below 0.6");
    else if (ratio_in - ratio_out > 0.1)
        put(m, CMP_YELLOW,
            "The output's one thousandth err ratio decreases by more than 0.1 compared to the "
            "input/parameter's");
    if (figure(in, CMP_COSINE) - figure(out, CMP_COSINE) > 0.1)
        put(m, CMP_YELLOW,
            "The output's cosine decreases by more than 0.1 compared to the input/parameter's");
}

static double relative(const struct cmp_row *row)
{
    double n = max_of(&row->t), b = max_of(&row->b);
    return b != 0 ? fabs((n - b) / b) : NAN;
}

static void judge_statistics(const struct cmp_row *in, const struct cmp_row *out, struct mark *m)
{
    double rel_in = relative(in), rel_out = relative(out);
    if (rel_out > 0.5)
        put(m, CMP_RED, "maximum relative error exceeds 0.5");
    else if (rel_out > 0.1 && rel_in < 0.01)
        put(m, CMP_YELLOW,
            "The output's maximum relative error exceeds 0.1, while the input/parameter's is below "
            "0.01");
}

static void judge_pair(const struct cmp *c, const struct cmp_row *in, const struct cmp_row *out,
                       struct mark *m)
{
    judge_magnitude(max_diff(c, in), max_diff(c, out), m);
    if (c->mode == PROBE_MODE_TENSOR)
        judge_tensors(in, out, m);
    else
        judge_statistics(in, out, m);
}

/* The first row of an op counts as an input, whatever it is. */
static bool is_output(const struct cmp_view *v, const struct cmp_row *row)
{
    return row->is_output && row != v->rows.p;
}

static void judge_output(const struct cmp *c, const struct cmp_view *v, const struct cmp_row *row,
                         struct mark *m)
{
    if (!is_output(v, row) || !is_numeric(c, row))
        return;
    for (size_t i = 0; i < v->rows.n; i++) {
        const struct cmp_row *in = &v->rows.p[i];
        if (!is_output(v, in) && is_numeric(c, in))
            judge_pair(c, in, row, m);
    }
}

enum cmp_colour cmp__highlight(const struct cmp *c, const struct cmp_view *v,
                               const struct cmp_row *row, struct ms_buf *reasons)
{
    struct mark m = {.reasons = reasons};
    if (c->mode == PROBE_MODE_MD5 || cmp_is_debug(c))
        return CMP_PLAIN;
    judge_alone(c, row, &m);
    judge_output(c, v, row, &m);
    if (!row->grad_same)
        put(&m, CMP_YELLOW, "requires_grad is inconsistent");
    return m.colour;
}
