/* SPDX-License-Identifier: MIT
 *
 * judge_old: a row of 1.x is judged by its own figures alone.
 */
#include "compare/judge_old.h"

#include "compare/cmp_int.h"

#include <math.h>

static const char *reached(const struct cmp_row *row)
{
    const double *m = row->fig.metric;
    switch (row->fig.state) {
    case CMP_STATE_SHAPE:
        return "Unmatched";
    case CMP_STATE_MASKS:
        return "No";
    case CMP_STATE_OK:
        break;
    default:
        return "None";
    }
    if ((m[CMP_COSINE] < 0.99 && m[CMP_MAX_ABS] > 0.001) || m[CMP_COSINE] < 0.9 ||
        m[CMP_MAX_ABS] > 1)
        return "No";
    return "Yes";
}

/* Some figure is off by more than half of the larger side. */
static bool needs_check(const struct cmp_row *row)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct cmp_value *n = &row->t.stat[i], *b = &row->b.stat[i];
        if (n->kind != CMP_VALUE_NUMBER || b->kind != CMP_VALUE_NUMBER)
            continue;
        if (fabs(n->v - b->v) / (fabs(fmax(n->v, b->v)) + 1e-10) > 0.5)
            return true;
    }
    return false;
}

static const char *result_of(const struct cmp *c, const struct cmp_row *row)
{
    if (c->mode == PROBE_MODE_TENSOR)
        return reached(row);
    if (!row->b.present)
        return "N/A";
    if (c->mode == PROBE_MODE_MD5)
        return ms_str_eq(row->t.md5, row->b.md5) ? "pass" : "Different";
    return needs_check(row) ? "Warning" : "";
}

/* What the figures of two tensor files have to say for themselves. */
static const char *told_by_figures(const struct cmp_row *row)
{
    switch (row->fig.state) {
    case CMP_STATE_SCALAR:
        return ms_str_is(row->t.shape, "[]")
                   ? "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One "
                     "Thousandth Err Ratio' and 'Five Thousandths Err Ratio'. "
                   : "";
    case CMP_STATE_EMPTY:
        return "This is empty data, can not compare.";
    case CMP_STATE_SHAPE:
        return "Shape of NPU and bench tensor do not match. Skipped.";
    case CMP_STATE_MASKS:
        return "The position of inf or nan in NPU and bench Tensor do not match.";
    case CMP_STATE_UNREADABLE:
        return "Data is unreadable.";
    default:
        return ms_str_eq(row->t.dtype, row->b.dtype) || row->fig.state != CMP_STATE_OK
                   ? ""
                   : "Dtype of NPU and bench tensor do not match.";
    }
}

/* A cosine needs two directions.  The best scale is unknown only where the golden side is zero. */
static const char *told_by_cosine(const struct cmp_row *row)
{
    if (row->fig.state != CMP_STATE_OK || !isnan(row->fig.metric[CMP_COSINE]))
        return "";
    return isnan(row->fig.ext.scale)
               ? "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data."
               : "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data.";
}

/* Why the row has a colour, on lines behind what else is said of it. */
static enum ms_rc add_reasons(const struct cmp *c, struct cmp_view *v, const struct cmp_row *row,
                              struct cmp_old_verdict *out, struct ms_err *err)
{
    struct ms_buf reasons = {.max = 1 << 24};
    out->colour = cmp__highlight(c, v, row, &reasons);
    if (reasons.n != 0 && v->scratch.n != 0)
        ms_buf_putc(&v->scratch, '\n');
    ms_buf_str(&v->scratch, ms_buf_slice(&reasons));
    ms_buf_free(&reasons);
    return cmp__keep(v, &out->message, err);
}

enum ms_rc cmp__judge_old(const struct cmp *c, struct cmp_view *v, const struct cmp_row *row,
                          struct cmp_old_verdict *out, struct ms_err *err)
{
    const char *result = result_of(c, row);
    *out = (struct cmp_old_verdict){.result = ms_str_of(result)};
    out->failed = strcmp(result, "No") == 0 || strcmp(result, "Different") == 0 ||
                  strcmp(result, "Warning") == 0;
    if (!row->b.present)
        ms_buf_puts(&v->scratch, "No bench data matched.");
    if (!row->grad_same)
        ms_buf_puts(&v->scratch, "Requires_grad inconsistent. ");
    if (c->mode == PROBE_MODE_SUMMARY && strcmp(result, "Warning") == 0)
        ms_buf_puts(&v->scratch, "Need double check api accuracy. ");
    if (c->mode == PROBE_MODE_TENSOR && row->b.present) {
        ms_buf_puts(&v->scratch, told_by_figures(row));
        ms_buf_puts(&v->scratch, told_by_cosine(row));
    }
    return c->conf.highlight ? add_reasons(c, v, row, out, err) : cmp__keep(v, &out->message, err);
}
