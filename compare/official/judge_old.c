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
    if (row->fig.state == CMP_STATE_OK && m[CMP_COSINE] == HUGE_VAL) /* not defined */
        return "None";
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
        double n = cmp__value_number(&row->t.stat[i]), b = cmp__value_number(&row->b.stat[i]);
        if (fabs(n - b) / (fabs(n > b ? n : b) + 1e-10) > 0.5)
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

/* What the types of the files are: those of 16 bits that numpy lacks are widened. */
static struct ms_str type_in_numpy(struct ms_str dtype)
{
    return ms_str_ends(dtype, MS_STR("bfloat16")) || ms_str_is(dtype, "BFloat16")
               ? MS_STR("torch.float32")
               : dtype;
}

/* Where there is nothing to read. */
static void tell_missing(struct ms_buf *out, const struct cmp_row *row)
{
    if (ms_str_is(row->t.data_name, "-1"))
        ms_buf_puts(out, "NPU does not have data file.");
    else if (!row->b.present)
        ms_buf_puts(out, "Bench api/module unmatched.");
    else
        ms_buf_puts(out, "Bench does not have data file.");
}

static void tell_unreadable(struct ms_buf *out, const struct cmp_row *row)
{
    ms_buf_puts(out, "Dump file: [");
    cmp__py_repr_text(out, row->t.data_name);
    ms_buf_puts(out, ", ");
    cmp__py_repr_text(out, row->b.data_name);
    ms_buf_puts(out, "] not found or read failed.");
}

/* What the figures of two tensor files have to say for themselves. */
static void tell_figures(struct ms_buf *out, const struct cmp_row *row)
{
    switch (row->fig.state) {
    case CMP_STATE_SCALAR:
        ms_buf_puts(out, "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One "
                         "Thousandth Err Ratio' and 'Five Thousandths Err Ratio'. ");
        return;
    case CMP_STATE_EMPTY:
        ms_buf_puts(out, "This is empty data, can not compare.");
        return;
    case CMP_STATE_SHAPE:
        ms_buf_puts(out, "Shape of NPU and bench tensor do not match. Skipped.");
        return;
    case CMP_STATE_MASKS:
        ms_buf_puts(out, "The position of inf or nan in NPU and bench Tensor do not match.");
        return;
    case CMP_STATE_UNREADABLE:
        tell_unreadable(out, row);
        return;
    case CMP_STATE_OK:
        if (!ms_str_eq(type_in_numpy(row->t.dtype), type_in_numpy(row->b.dtype)))
            ms_buf_puts(out, "Dtype of NPU and bench tensor do not match.");
        return;
    default:
        tell_missing(out, row);
    }
}

/* A cosine needs two directions.  The best scale is unknown only where the golden side is zero. */
static const char *told_by_cosine(const struct cmp_row *row)
{
    if (row->fig.state != CMP_STATE_OK)
        return "";
    if (row->fig.metric[CMP_COSINE] == HUGE_VAL)
        return "This is a 1-d tensor of length 1.";
    if (!isnan(row->fig.metric[CMP_COSINE]))
        return "";
    return isnan(row->fig.ext.scale)
               ? "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data."
               : "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data.";
}

static void tell_no_error(struct ms_buf *out, const struct cmp_row *row)
{
    static const char why[] = ", the data contains nan/inf/-inf in dump data.";
    if (row->fig.state != CMP_STATE_OK && row->fig.state != CMP_STATE_SCALAR)
        return;
    if (isnan(row->fig.metric[CMP_MAX_ABS]))
        ms_buf_printf(out, "Cannot compare by MaxAbsError%s", why);
    if (isnan(row->fig.metric[CMP_MAX_REL]))
        ms_buf_printf(out, "Cannot compare by MaxRelativeError%s", why);
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

/* Of tensors, the last of the first two counts alone. */
static void tell(const struct cmp *c, const struct cmp_row *row, const char *result,
                 struct ms_buf *out)
{
    bool tensor = c->mode == PROBE_MODE_TENSOR;
    if (!row->b.present && (row->grad_same || !tensor))
        ms_buf_puts(out, "No bench data matched.");
    if (c->mode == PROBE_MODE_SUMMARY && strcmp(result, "Warning") == 0)
        ms_buf_puts(out, "Need double check api accuracy. ");
    if (!row->grad_same)
        ms_buf_puts(out, "Requires_grad inconsistent. ");
    if (tensor) {
        tell_figures(out, row);
        ms_buf_puts(out, told_by_cosine(row));
        tell_no_error(out, row);
    }
}

enum ms_rc cmp__judge_old(const struct cmp *c, struct cmp_view *v, const struct cmp_row *row,
                          struct cmp_old_verdict *out, struct ms_err *err)
{
    const char *result = result_of(c, row);
    *out = (struct cmp_old_verdict){.result = ms_str_of(result)};
    out->failed = strcmp(result, "No") == 0 || strcmp(result, "Different") == 0 ||
                  strcmp(result, "Warning") == 0;
    tell(c, row, result, &v->scratch);
    return c->conf.highlight ? add_reasons(c, v, row, out, err) : cmp__keep(v, &out->message, err);
}
