/* SPDX-License-Identifier: MIT
 *
 * kernels: writes the table of a rank and step from two sorted lists.
 */
#include "compare/official/kernels.h"

#include "compare/official/file_pair.h"
#include "compare/official/kernel_list.h"
#include "probe/base/num.h"

#include <math.h>

static const char *const basic[] = {
    "NPU Name",           "Bench Name", "NPU Dtype",  "Bench Dtype",  "NPU Tensor Shape",
    "Bench Tensor Shape", "NPU max",    "NPU min",    "NPU mean",     "NPU l2norm",
    "Bench max",          "Bench min",  "Bench mean", "Bench l2norm", "Accuracy Reached or Not",
    "Err_message",        NULL};
static const char *const of_files[] = {"Cosine",
                                       "EucDist",
                                       "MaxAbsErr",
                                       "MaxRelativeErr",
                                       "One Thousandth Err Ratio",
                                       "Five Thousandths Err Ratio",
                                       NULL};
static const char *const of_lines[] = {"Max diff",
                                       "Min diff",
                                       "Mean diff",
                                       "L2norm diff",
                                       "MaxRelativeErr",
                                       "MinRelativeErr",
                                       "MeanRelativeErr",
                                       "NormRelativeErr",
                                       "NPU CSV File",
                                       "Bench CSV File",
                                       NULL};

/* ---- two files ----------------------------------------------------------------- */

/* Shapes are written in brackets, since a spreadsheet reads (2) as a negative number. */
static enum ms_rc put_files(struct cmp__sheet *s, struct cmp_sheet_sum *sum,
                            const struct cmp__kernel *t, const struct cmp__kernel *b, bool strict)
{
    struct cmp__file_pair p;
    const char *n = t != NULL ? t->path : NULL, *m = b != NULL ? b->path : NULL;
    enum ms_rc rc = cmp__file_pair_open(&p, n, m, true, strict, s->err);
    cmp__sheet_text(s, ms_str_of(n != NULL ? n : ""));
    cmp__sheet_text(s, ms_str_of(m != NULL ? m : ""));
    cmp__sheet_word(s, p.has_n ? ms_dtype_torch(p.n.dtype) : "");
    cmp__sheet_word(s, p.has_b ? ms_dtype_torch(p.b.dtype) : "");
    cmp__sheet_text(s, p.has_n ? cmp__file_shape(s, &p.n, '[', ']') : MS_STR("None"));
    cmp__sheet_text(s, p.has_b ? cmp__file_shape(s, &p.b, '[', ']') : MS_STR("None"));
    cmp__file_stats(s, &p.n, p.has_n, "", strict);
    cmp__file_stats(s, &p.b, p.has_b, "", strict);
    const char *verdict = cmp__file_pair_verdict(&p, strict);
    cmp__sheet_count(sum, verdict);
    cmp__sheet_word(s, verdict);
    cmp__sheet_text(s, cmp__sheet_keep(s, ms_buf_slice(&p.why)));
    cmp__file_figures(s, &p, "", "Nan");
    cmp__file_pair_close(&p);
    return rc;
}

/* ---- two lines of statistics ------------------------------------------------------ */

/* Returns the value with the fewest digits that still round to the same float32. */
static double shown_of(double stat)
{
    const float single = (float)stat;
    char text[32];
    double v = (double)single;
    for (int digits = 6; digits <= 9 && isfinite(v); digits++) {
        int n = snprintf(text, sizeof text, "%.*g", digits, (double)single);
        if (!ms_num_parse_f64(text, (size_t)n, &v) || (float)v == single)
            break;
    }
    return v;
}

/* Number format of a table. The official tool writes float32 columns with few digits, but as
 * doubles in three cases: all columns of a workbook, columns that contain an infinity, and the
 * differences of a table in which a row has none. */
struct style {
    bool strict;
    /* write as double, for the target, the golden side, and their differences */
    bool wide[3][PROBE_STATS];
};
enum { OF_TARGET, OF_GOLDEN, OF_BOTH };

static void put_figure(struct cmp__sheet *w, const struct style *style, double v, bool wide)
{
    if (isnan(v) && style->strict)
        cmp__sheet_word(w, "");
    else
        cmp__sheet_number(w, wide ? v : shown_of(v));
}

static void put_line_stats(struct cmp__sheet *w, const struct style *style,
                           const struct cmp__kernel *k, const bool *wide)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (k != NULL)
            put_figure(w, style, k->stat[i], wide[i]);
        else
            cmp__sheet_word(w, "");
    }
}

/* Writes (2,3) as [2,3], see put_files. */
static void put_line_shape(struct cmp__sheet *w, const struct style *style,
                           const struct cmp__kernel *k)
{
    struct ms_str shape = k != NULL ? k->shape : style->strict ? MS_STR("nan") : MS_STR("None");
    ms_buf_clear(&w->text);
    for (uint32_t i = 0; i < shape.n; i++)
        ms_buf_putc(&w->text, shape.p[i] == '(' ? '[' : shape.p[i] == ')' ? ']' : shape.p[i]);
    cmp__sheet_text(w, cmp__sheet_keep(w, ms_buf_slice(&w->text)));
}

static double diff_of(const struct cmp__kernel *t, const struct cmp__kernel *b, unsigned i)
{
    return (double)((float)t->stat[i] - (float)b->stat[i]);
}

static const char *verdict_of_lines(const struct cmp__kernel *t, const struct cmp__kernel *b)
{
    double n = t->stat[PROBE_STAT_MAX], m = b->stat[PROBE_STAT_MAX];
    if (isnan(n) && isnan(m))
        return "Yes";
    return diff_of(t, b, PROBE_STAT_MAX) / (fmax(n, m) + 1e-10) <= 0.5 ? "Yes" : "No";
}

/* Writes the relative error, computed in float32 like the difference. */
static void put_relative(struct cmp__sheet *w, double diff, double bench)
{
    double rel = fabs((double)((float)diff / (float)bench) * 100);
    char *text = ms_arena_text(w->arena, MS_NUM_MAX + 1);
    if (bench == 0 || text == NULL) {
        cmp__sheet_word(w, "N/A");
        return;
    }
    if (!isfinite(rel)) {
        cmp__sheet_word(w, isnan(rel) ? "Nan" : "inf%");
        return;
    }
    unsigned n = ms_num_f64(text, rel);
    text[n] = '%';
    cmp__sheet_text(w, (struct ms_str){text, n + 1});
}

/* Writes why two lines cannot be compared. For the official tool (strict), a missing partner has a
 * different shape and type. */
static void say_why_not_lines(const struct cmp__kernel *t, const struct cmp__kernel *b, bool strict,
                              struct ms_buf *why)
{
    bool alone = t == NULL || b == NULL;
    if (alone && !strict) {
        ms_buf_puts(why, "Dump file not found.\n");
        return;
    }
    if ((t != NULL && t->shape.n == 0) || (b != NULL && b->shape.n == 0))
        ms_buf_puts(why, "This is type of scalar data, can not compare.\n");
    else if (alone || !ms_str_eq(t->shape, b->shape))
        ms_buf_puts(why, "Tensor shapes do not match.\n");
    if (alone || !ms_str_eq(t->dtype, b->dtype))
        ms_buf_puts(why, "Dtype of NPU and bench Tensor do not match. Skipped.\n");
}

static void put_line_figures(struct cmp__sheet *w, const struct style *style,
                             const struct cmp__kernel *t, const struct cmp__kernel *b, bool fine)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (fine)
            put_figure(w, style, diff_of(t, b, i), style->wide[OF_BOTH][i]);
        else
            cmp__sheet_word(w, "");
    }
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (fine)
            put_relative(w, diff_of(t, b, i), b->stat[i]);
        else
            cmp__sheet_word(w, "");
    }
}

static void put_lines(struct cmp__sheet *w, struct cmp_sheet_sum *sum, const struct style *style,
                      const struct cmp__kernel *t, const struct cmp__kernel *b)
{
    struct ms_buf why = {.max = 1 << 16};
    say_why_not_lines(t, b, style->strict, &why);
    bool fine = why.n == 0;
    cmp__sheet_text(w, t != NULL ? t->key : MS_STR(""));
    cmp__sheet_text(w, b != NULL ? b->key : MS_STR(""));
    cmp__sheet_text(w, t != NULL ? t->dtype : MS_STR(""));
    cmp__sheet_text(w, b != NULL ? b->dtype : MS_STR(""));
    put_line_shape(w, style, t);
    put_line_shape(w, style, b);
    put_line_stats(w, style, t, style->wide[OF_TARGET]);
    put_line_stats(w, style, b, style->wide[OF_GOLDEN]);
    const char *verdict = fine ? verdict_of_lines(t, b) : "";
    cmp__sheet_count(sum, verdict);
    cmp__sheet_word(w, verdict);
    cmp__sheet_text(w, cmp__sheet_keep(w, ms_buf_slice(&why)));
    put_line_figures(w, style, t, b, fine);
    cmp__sheet_text(w, ms_str_of(t != NULL ? t->path : ""));
    cmp__sheet_text(w, ms_str_of(b != NULL ? b->path : ""));
    ms_buf_free(&why);
}

/* ---- a rank and step ----------------------------------------------------------------- */

static int order_of(const struct cmp__kernel *t, const struct cmp__kernel *b)
{
    int order = ms_str_cmp(t->key, b->key);
    return order != 0 ? order : (t->nth > b->nth) - (t->nth < b->nth);
}

struct kernel_pair {
    const struct cmp__kernel *t, *b;
};
struct kernel_pairs {
    MS_VEC(struct kernel_pair) list;
};

/* Orders pairs by time on the target; pairs without a target come last. */
static int by_time(const void *a, const void *b)
{
    const struct kernel_pair *x = a, *y = b;
    const struct cmp__kernel *k = x->t != NULL ? x->t : x->b, *l = y->t != NULL ? y->t : y->b;
    if ((x->t == NULL) != (y->t == NULL))
        return x->t == NULL ? 1 : -1;
    return k->time != l->time ? (k->time > l->time) - (k->time < l->time) : order_of(k, l);
}

/* Orders pairs as the target's dump lists them; pairs without a target come last. */
static int by_place(const void *a, const void *b)
{
    const struct kernel_pair *x = a, *y = b;
    const struct cmp__kernel *k = x->t != NULL ? x->t : x->b, *l = y->t != NULL ? y->t : y->b;
    if ((x->t == NULL) != (y->t == NULL))
        return x->t == NULL ? 1 : -1;
    return (k->listed > l->listed) - (k->listed < l->listed);
}

/* Pairs the kernels of two lists sorted by key (merge join). */
static enum ms_rc pair_up(const struct cmp__kernel_place *t, const struct cmp__kernel_place *b,
                          bool strict, struct kernel_pairs *pairs, struct ms_err *err)
{
    for (size_t i = 0, k = 0; i < t->list.n || k < b->list.n;) {
        int order = i == t->list.n   ? 1
                    : k == b->list.n ? -1
                                     : order_of(&t->list.p[i], &b->list.p[k]);
        struct kernel_pair *pair = ms_vec_push(&pairs->list);
        if (pair == NULL)
            return ms_no_memory(err);
        pair->t = order <= 0 ? &t->list.p[i++] : NULL;
        pair->b = order >= 0 ? &b->list.p[k++] : NULL;
    }
    if (pairs->list.n != 0)
        qsort(pairs->list.p, pairs->list.n, sizeof *pairs->list.p, strict ? by_place : by_time);
    return MS_OK;
}

static bool is_infinite(const struct cmp__kernel *k, unsigned i)
{
    return k != NULL && isinf(k->stat[i]);
}

static void widen(struct style *style, const struct kernel_pair *pair, bool fine)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        style->wide[OF_TARGET][i] |= style->strict && is_infinite(pair->t, i);
        style->wide[OF_GOLDEN][i] |= style->strict && is_infinite(pair->b, i);
        style->wide[OF_BOTH][i] |= !fine || (style->strict && isinf(diff_of(pair->t, pair->b, i)));
    }
}

static struct style style_of(const struct kernel_pairs *pairs, const struct cmp_kernel_conf *conf)
{
    struct style style = {.strict = conf->strict};
    memset(style.wide, conf->strict && conf->xlsx, sizeof style.wide);
    struct ms_buf why = {.max = 1 << 16};
    for (size_t i = 0; i < pairs->list.n; i++) {
        ms_buf_clear(&why);
        say_why_not_lines(pairs->list.p[i].t, pairs->list.p[i].b, conf->strict, &why);
        widen(&style, &pairs->list.p[i], why.n == 0);
    }
    ms_buf_free(&why);
    return style;
}

static enum ms_rc put_rows(struct cmp__sheet *s, struct cmp_sheet_sum *sum,
                           const struct kernel_pairs *pairs, bool files,
                           const struct cmp_kernel_conf *conf)
{
    const struct style style = style_of(pairs, conf);
    cmp__sheet_names(s, basic);
    cmp__sheet_names(s, files ? of_files : of_lines);
    cmp__sheet_end_row(s);
    for (size_t i = 0; i < pairs->list.n; i++) {
        const struct kernel_pair *pair = &pairs->list.p[i];
        if (files)
            MS_TRY(put_files(s, sum, pair->t, pair->b, conf->strict));
        else
            put_lines(s, sum, &style, pair->t, pair->b);
        cmp__sheet_end_row(s);
    }
    return MS_OK;
}

static enum ms_rc put_all(struct cmp__sheet *s, struct cmp_sheet_sum *sum,
                          const struct cmp__kernel_place *t, const struct cmp__kernel_place *b,
                          bool files, const struct cmp_kernel_conf *conf)
{
    struct kernel_pairs pairs = {0};
    enum ms_rc rc = pair_up(t, b, conf->strict, &pairs, s->err);
    if (rc == MS_OK)
        rc = put_rows(s, sum, &pairs, files, conf);
    ms_vec_free(&pairs.list);
    return rc;
}

static enum ms_rc compare_place(const struct cmp__kernel_place *t,
                                const struct cmp__kernel_place *b, const char *dir,
                                const struct cmp_kernel_conf *conf, struct cmp_sheet_sum *sum,
                                struct cmp_files *out, struct ms_err *err)
{
    struct cmp__sheet s;
    struct ms_buf path = {.max = 1 << 16};
    bool files = t->list.n != 0 && t->list.p[0].is_file;
    bool others = b->list.n != 0 && b->list.p[0].is_file;
    if (files != others && t->list.n != 0 && b->list.n != 0)
        return ms_fail(err, MS_E_ARG,
                       "rank %lld step %lld: files on one side, statistics on the "
                       "other",
                       (long long)t->rank, (long long)t->step);
    ms_buf_printf(&path, "%s/compare_result_%lld_%lld_%s.%s", dir, (long long)t->rank,
                  (long long)t->step, conf->stamp, conf->xlsx ? "xlsx" : "csv");
    enum ms_rc rc = cmp_files_add(out, ms_buf_slice(&path), err);
    if (rc == MS_OK)
        rc = cmp__sheet_open(&s, ms_buf_z(&path), conf->xlsx, err);
    if (rc == MS_OK)
        rc = cmp__sheet_close(&s, put_all(&s, sum, t, b, files, conf));
    ms_buf_free(&path);
    sum->tables += rc == MS_OK;
    return rc;
}

static enum ms_rc note_problem(struct cmp_sheet_sum *sum, const char *side,
                               const struct cmp__kernel_place *p, struct ms_err *err)
{
    struct ms_buf b = {.max = 256};
    ms_buf_printf(&b, "rank %lld step %lld is on the %s side alone", (long long)p->rank,
                  (long long)p->step, side);
    enum ms_rc rc = cmp__sheet_note(sum, &b, err);
    ms_buf_free(&b);
    return rc;
}

static int place_order(const struct cmp__kernel_place *a, const struct cmp__kernel_place *b)
{
    return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank)
                              : (a->step > b->step) - (a->step < b->step);
}

/* Tells whether there is no table to write: both sides are empty, or the official tool (strict)
 * skips it because one side has files and the other nothing. */
static bool lacks_files(const struct cmp__kernel_place *t, const struct cmp__kernel_place *b)
{
    const struct cmp__kernel_place *there = t->list.n != 0 ? t : b;
    if (there->list.n == 0)
        return true;
    return (t->list.n == 0 || b->list.n == 0) && there->list.p[0].is_file;
}

static enum ms_rc compare_sides(const struct cmp__kernel_side *t, const struct cmp__kernel_side *b,
                                const char *dir, const struct cmp_kernel_conf *conf,
                                struct cmp_sheet_sum *sum, struct cmp_files *out,
                                struct ms_err *err)
{
    size_t i = 0, k = 0;
    while (i < t->places.n || k < b->places.n) {
        int order = i == t->places.n   ? 1
                    : k == b->places.n ? -1
                                       : place_order(&t->places.p[i], &b->places.p[k]);
        if (order < 0)
            MS_TRY(note_problem(sum, "target", &t->places.p[i++], err));
        else if (order > 0)
            MS_TRY(note_problem(sum, "golden", &b->places.p[k++], err));
        else if (conf->strict && lacks_files(&t->places.p[i], &b->places.p[k]))
            MS_TRY(note_problem(sum, t->places.p[i++].list.n != 0 ? "target" : "golden",
                                &b->places.p[k++], err));
        else
            MS_TRY(compare_place(&t->places.p[i++], &b->places.p[k++], dir, conf, sum, out, err));
    }
    return sum->tables != 0 ? MS_OK
                            : ms_fail(err, MS_E_NOTFOUND, "no rank and step is on both sides");
}

enum ms_rc cmp_compare_kernels(const char *target, const char *golden, const char *dir,
                               const struct cmp_kernel_conf *conf, struct cmp_sheet_sum *sum,
                               struct cmp_files *files, struct ms_err *err)
{
    struct cmp__kernel_side t = {0}, b = {0};
    *sum = (struct cmp_sheet_sum){0};
    enum ms_rc rc = cmp__kernels_find(&t, target, conf->ranks, conf->steps, err);
    if (rc == MS_OK)
        rc = cmp__kernels_find(&b, golden, conf->ranks, conf->steps, err);
    if (rc == MS_OK)
        rc = compare_sides(&t, &b, dir, conf, sum, files, err);
    cmp__kernels_free(&t);
    cmp__kernels_free(&b);
    return rc;
}
