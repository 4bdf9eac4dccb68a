/* SPDX-License-Identifier: MIT
 *
 * file_pair: two tensor files, measured.
 */
#include "compare/file_pair.h"

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

/* Why two tensors cannot be compared, in the official words. */
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

enum ms_rc cmp__file_pair_open(struct cmp__file_pair *p, const char *n, const char *b,
                               bool same_type, struct ms_err *err)
{
    const struct cmp_conf conf = {.compat = CMP_CUR};
    *p = (struct cmp__file_pair){.why.max = 1 << 16, .fig.state = CMP_STATE_NO_DATA};
    p->has_n = open_file(&p->n, n, &p->why);
    p->has_b = open_file(&p->b, b, &p->why);
    if (p->has_n && p->has_b)
        say_why_not(p, same_type);
    if (p->why.n == 0)
        MS_TRY(cmp__measure_two(&conf, &p->n, &p->b, &p->fig, err));
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

const char *cmp__file_pair_verdict(const struct cmp__file_pair *p)
{
    double cosine = p->fig.state == CMP_STATE_OK ? p->fig.metric[CMP_COSINE] : NAN;
    double error = p->fig.metric[CMP_MAX_ABS];
    if (p->fig.state != CMP_STATE_OK || isnan(cosine))
        return "";
    return (cosine < 0.99 && error > 0.001) || cosine < 0.9 || error > 1 ? "No" : "Yes";
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

void cmp__file_stats(struct cmp__sheet *s, const struct probe_tensor *t, bool open,
                     const char *none)
{
    struct ms_stats stats;
    if (!open || t->count == 0) {
        cmp__sheet_blanks(s, PROBE_STATS, none);
        return;
    }
    probe_tensor_stats(t, &stats);
    cmp__sheet_number(s, stats.max);
    cmp__sheet_number(s, stats.min);
    cmp__sheet_number(s, ms_stats_mean(&stats));
    cmp__sheet_number(s, ms_stats_norm(&stats));
}

void cmp__file_figures(struct cmp__sheet *s, const struct cmp__file_pair *p, const char *none)
{
    for (unsigned i = 0; i < CMP_METRICS; i++) {
        bool scalar = p->fig.state == CMP_STATE_SCALAR;
        bool known =
            p->fig.state == CMP_STATE_OK || (scalar && (i == CMP_MAX_ABS || i == CMP_MAX_REL));
        if (known)
            cmp__sheet_number(s, p->fig.metric[i]);
        else
            cmp__sheet_word(s, scalar ? "unsupported" : none);
    }
}
