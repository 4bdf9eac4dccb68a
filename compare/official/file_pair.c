/* SPDX-License-Identifier: MIT
 *
 * file_pair: measures two tensor files.
 */
#include "compare/official/file_pair.h"
#include "compare/official/rules_official.h"

#include <float.h>
#include <math.h>

#define FILE_MAX ((size_t)10 << 30)

static bool open_file(struct probe_tensor *t, const char *path, struct ms_buf *why)
{
    struct ms_err err = {0};
    *t = (struct probe_tensor){0};
    if (path == NULL) {
        ms_buf_puts(why, "Dump file is not ndarray.\n");
        return false;
    }
    if (probe_tensor_open(t, path, FILE_MAX, &err) == MS_OK)
        return true;
    ms_buf_printf(why, "%s\n", err.msg);
    return false;
}

/* Writes why two tensors cannot be compared, in the official wording. */
static void say_why_not(struct cmp__file_pair *p, bool same_type)
{
    const struct probe_tensor *n = &p->n, *b = &p->b;
    if (n->count == 0 || b->count == 0) {
        ms_buf_puts(&p->why, "This is empty data, can not compare.\n");
        return;
    }
    if (same_type && (n->ndim == 0 || b->ndim == 0))
        ms_buf_puts(&p->why, "This is type of scalar data, can not compare.\n");
    if (n->ndim != b->ndim || memcmp(n->shape, b->shape, n->ndim * sizeof *n->shape) != 0)
        ms_buf_puts(&p->why, "Shape of NPU and bench Tensor do not match.\n");
    if (same_type && n->dtype != b->dtype)
        ms_buf_puts(&p->why, "Dtype of NPU and bench Tensor do not match. Skipped.\n");
}

/* Computes the relative error as NumPy does, which divides arrays of 16-bit and 32-bit floats in
 * float32, even with one element. */
static double relative_of(const struct probe_tensor *t, double n, double b)
{
    const bool wide = t->dtype == MS_DT_F64 || ms_dtype_kind(t->dtype) != MS_DTK_FLOAT;
    const double least = wide ? DBL_EPSILON : (double)FLT_EPSILON;
    if (b == 0)
        n += least, b += least;
    return wide ? fabs((n - b) / b) : (double)fabsf(((float)n - (float)b) / (float)b);
}

/* Measures tensors of one element that are not scalars: NaN and infinity are equal when both sides
 * have them, as in longer tensors. */
static void measure_single(struct cmp__file_pair *p, bool strict)
{
    struct ms_stats n, b;
    double *metric = p->fig.metric;
    probe_tensor_stats(&p->n, &n);
    probe_tensor_stats(&p->b, &b);
    const bool finite = isfinite(n.max) && isfinite(b.max);
    const bool alike = n.max == b.max || (isnan(n.max) && isnan(b.max));
    if (!alike && !finite) {
        p->fig.state = CMP_STATE_MASKS;
        return;
    }
    if (alike)
        metric[CMP_MAX_ABS] = metric[CMP_MAX_REL] = 0;
    if (finite && strict)
        metric[CMP_MAX_REL] = cmp__round12(relative_of(&p->n, n.max, b.max));
    metric[CMP_EUCLID] = alike ? 0 : fabs(n.max - b.max);
    metric[CMP_THOUSANDTH] = metric[CMP_MAX_REL] < 0.001;
    metric[CMP_FIVE] = metric[CMP_MAX_REL] < 0.005;
    ms_buf_puts(&p->why, "This is a 1-d tensor of length 1.");
}

/* Completes figures without a cosine: tensors of one element have a difference but no direction,
 * and tensors of zeros have no direction. */
static void say_of_cosine(struct cmp__file_pair *p, bool strict)
{
    struct ms_stats n;
    if (p->fig.state == CMP_STATE_SCALAR && p->n.ndim != 0) {
        measure_single(p, strict);
    } else if (p->fig.state == CMP_STATE_OK && isnan(p->fig.metric[CMP_COSINE])) {
        probe_tensor_stats(&p->n, &n);
        ms_buf_printf(&p->why,
                      "Cannot compare by Cosine Similarity, All the data is Zero in %s "
                      "dump data.",
                      ms_stats_norm(&n) == 0 ? "npu" : "Bench");
    }
}

enum ms_rc cmp__file_pair_open(struct cmp__file_pair *p, const char *n, const char *b,
                               bool same_type, bool strict, struct ms_err *err)
{
    const struct cmp_rules *rules = cmp_rules_of(strict ? CMP_STRICT : CMP_CUR);
    *p = (struct cmp__file_pair){.why.max = 1 << 16, .fig.state = CMP_STATE_NO_DATA};
    p->has_n = open_file(&p->n, n, &p->why);
    p->has_b = open_file(&p->b, b, &p->why);
    if (p->has_n && p->has_b)
        say_why_not(p, same_type);
    if (p->why.n == 0)
        MS_TRY(cmp__measure_two(rules, false, &p->n, &p->b, &p->fig, err));
    say_of_cosine(p, strict);
    if (p->fig.state == CMP_STATE_MASKS)
        ms_buf_puts(&p->why, "The position of inf or nan in NPU and bench Tensor do not match.\n");
    return ms_buf_check(&p->why, err);
}

void cmp__file_pair_close(struct cmp__file_pair *p)
{
    probe_tensor_close(&p->n);
    probe_tensor_close(&p->b);
    ms_buf_free(&p->why);
}

const char *cmp__file_pair_verdict(const struct cmp__file_pair *p, bool strict)
{
    double cosine = p->fig.metric[CMP_COSINE], error = p->fig.metric[CMP_MAX_ABS];
    if (p->fig.state != CMP_STATE_OK)
        return p->fig.state == CMP_STATE_SCALAR ? "None" : "";
    /* a tensor of zeros has no cosine and is not near */
    const bool is_near = cosine >= 0.99 || (strict && isnan(cosine));
    return (!is_near && error > 0.001) || cosine < 0.9 || error > 1 ? "No" : "Yes";
}

struct ms_str cmp__file_shape(struct cmp__sheet *s, const struct probe_tensor *t, char open,
                              char close)
{
    ms_buf_clear(&s->text);
    ms_buf_putc(&s->text, open);
    for (uint32_t i = 0; i < t->ndim; i++)
        ms_buf_printf(&s->text, "%s%llu%s", i != 0 ? ", " : "", (unsigned long long)t->shape[i],
                      t->ndim == 1 ? "," : "");
    ms_buf_putc(&s->text, close);
    return cmp__sheet_keep(s, ms_buf_slice(&s->text));
}

static void put_extreme(struct cmp__sheet *s, double x, bool truth)
{
    if (truth)
        cmp__sheet_word(s, x != 0 ? "True" : "False");
    else
        cmp__sheet_number(s, x);
}

static double as_half(double x, bool half)
{
    return half ? ms_dtype_round(MS_DT_F16, x) : x;
}

/* Returns the norm as NumPy computes it: squares are summed in the type of the array, and in
 * float16 they soon overflow. */
static double norm_of(const struct ms_stats *stats, bool half)
{
    double norm = ms_stats_norm(stats);
    return half ? as_half(sqrt(as_half(norm * norm, true)), true) : norm;
}

void cmp__file_stats(struct cmp__sheet *s, const struct probe_tensor *t, bool open,
                     const char *none, bool strict)
{
    const bool truth = strict && t->dtype == MS_DT_BOOL;
    const bool half = strict && t->dtype == MS_DT_F16;

    struct ms_stats stats;
    if (!open || t->count == 0) {
        cmp__sheet_blanks(s, PROBE_STATS, none);
        return;
    }
    probe_tensor_stats(t, &stats);
    if (strict && stats.nan != 0) {
        cmp__sheet_blanks(s, PROBE_STATS, "");
        return;
    }
    put_extreme(s, stats.max, truth);
    put_extreme(s, stats.min, truth);
    cmp__sheet_number(s, as_half(ms_stats_mean(&stats), half));
    cmp__sheet_number(s, norm_of(&stats, half));
}

/* Tells whether a metric is defined: a tensor of one element has all but the cosine, a tensor
 * without dimensions only the largest errors. */
static bool is_known(const struct cmp__file_pair *p, unsigned metric)
{
    if (p->fig.state != CMP_STATE_SCALAR)
        return p->fig.state == CMP_STATE_OK;
    bool largest = metric == CMP_MAX_ABS || metric == CMP_MAX_REL;
    return largest || (metric != CMP_COSINE && p->n.ndim != 0);
}

void cmp__file_figures(struct cmp__sheet *s, const struct cmp__file_pair *p, const char *none,
                       const char *nan)
{
    for (unsigned i = 0; i < CMP_METRICS; i++) {
        if (!is_known(p, i))
            cmp__sheet_word(s, p->fig.state == CMP_STATE_SCALAR ? "unsupported" : none);
        else if (isnan(p->fig.metric[i]))
            cmp__sheet_word(s, nan);
        else
            cmp__sheet_number(s, p->fig.metric[i]);
    }
}
