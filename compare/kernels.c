/* SPDX-License-Identifier: MIT
 *
 * kernels: the table of a rank and step, from two sorted lists.
 */
#include "compare/kernels.h"

#include "compare/cmp_int.h"
#include "compare/kernel_list.h"
#include "compare/table.h"
#include "compare/workbook.h"
#include "probe/base/num.h"
#include "probe/tensor.h"

#include <math.h>

#define FILE_MAX ((size_t)10 << 30)
enum { COLUMNS = 26, FLUSH = 1 << 16 };

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

/* ---- the table -------------------------------------------------------------- */

struct writer {
    const struct cmp_kernel_conf *conf;
    struct cmp_kernel_sum *sum;
    struct cmp_cell cell[COLUMNS];
    unsigned n;
    struct ms_arena *arena; /* text of the row */
    struct ms_buf text;
    struct ms_out *csv;
    struct cmp__workbook book;
    lxw_worksheet *sheet;
    lxw_row_t row;
    struct ms_err *err;
};

static void put(struct writer *w, struct ms_str text)
{
    w->cell[w->n++] =
        (struct cmp_cell){.text = text.p != NULL ? text : MS_STR(""), .foreign = true};
}

static void put_z(struct writer *w, const char *text)
{
    w->cell[w->n++] = (struct cmp_cell){.text = ms_str_of(text)};
}

static void put_number(struct writer *w, double v)
{
    struct cmp_cell *cell = &w->cell[w->n++];
    *cell = (struct cmp_cell){.text = MS_STR("nan"), .v = v};
    if (isinf(v)) {
        cell->infinite = true;
        cell->text = v > 0 ? MS_STR("inf") : MS_STR("-inf");
    } else if (!isnan(v)) {
        char *text = ms_arena_text(w->arena, MS_NUM_MAX);
        cell->number = text != NULL;
        if (text != NULL)
            cell->text = (struct ms_str){text, ms_num_f64(text, v)};
    }
}

static enum ms_rc end_csv_row(struct writer *w)
{
    ms_buf_clear(&w->text);
    for (unsigned i = 0; i < w->n; i++) {
        if (i != 0)
            ms_buf_putc(&w->text, ',');
        cmp_csv_cell(&w->text, &w->cell[i]);
    }
    ms_buf_putc(&w->text, '\n');
    ms_out_str(w->csv, ms_buf_slice(&w->text));
    return ms_buf_check(&w->text, w->err);
}

static enum ms_rc end_sheet_row(struct writer *w)
{
    lxw_error e = LXW_NO_ERROR;
    for (unsigned i = 0; i < w->n && e == LXW_NO_ERROR; i++)
        e = w->cell[i].number
                ? worksheet_write_number(w->sheet, w->row, (lxw_col_t)i, w->cell[i].v, NULL)
                : cmp__workbook_text(w->sheet, w->row, (lxw_col_t)i, w->cell[i].text, NULL,
                                     &w->text);
    w->row++;
    return e == LXW_NO_ERROR ? MS_OK : ms_fail(w->err, MS_E_IO, "xlsx: %s", lxw_strerror(e));
}

static enum ms_rc end_row(struct writer *w)
{
    enum ms_rc rc = w->csv != NULL ? end_csv_row(w) : end_sheet_row(w);
    w->n = 0;
    return rc;
}

static enum ms_rc put_header(struct writer *w, const char *const *figures)
{
    for (const char *const *name = basic; *name != NULL; name++)
        put_z(w, *name);
    for (; *figures != NULL; figures++)
        put_z(w, *figures);
    return end_row(w);
}

/* ---- two files ----------------------------------------------------------------- */

/* Python's words for a shape, in brackets so that a spreadsheet does not read a negative number. */
static struct ms_str shape_text(struct writer *w, const struct probe_tensor *t)
{
    ms_buf_clear(&w->text);
    ms_buf_putc(&w->text, '[');
    for (uint32_t i = 0; i < t->ndim; i++)
        ms_buf_printf(&w->text, "%s%llu%s", i != 0 ? ", " : "", (unsigned long long)t->shape[i],
                      t->ndim == 1 ? "," : "");
    ms_buf_putc(&w->text, ']');
    return ms_arena_str(w->arena, ms_buf_slice(&w->text));
}

static bool open_file(const struct cmp__kernel *k, struct probe_tensor *t, struct ms_buf *why)
{
    struct ms_err err = {0};
    *t = (struct probe_tensor){0};
    if (k == NULL) {
        ms_buf_puts(why, "Dump file is not ndarray.\n");
        return false;
    }
    if (probe_tensor_open(t, k->path, FILE_MAX, &err) == MS_OK)
        return true;
    ms_buf_printf(why, "%s\n", err.msg);
    return false;
}

static void put_tensor_stats(struct writer *w, const struct probe_tensor *t, bool open)
{
    struct ms_stats s;
    if (!open || t->count == 0) {
        for (unsigned i = 0; i < PROBE_STATS; i++)
            put_z(w, "");
        return;
    }
    probe_tensor_stats(t, &s);
    put_number(w, s.max);
    put_number(w, s.min);
    put_number(w, ms_stats_mean(&s));
    put_number(w, ms_stats_norm(&s));
}

/* Why two tensors cannot be compared, in the official words. */
static void say_why_not(const struct probe_tensor *n, const struct probe_tensor *b,
                        struct ms_buf *why)
{
    if (n->count == 0 || b->count == 0) {
        ms_buf_puts(why, "This is empty data, can not compare.\n");
        return;
    }
    if (n->ndim == 0 || b->ndim == 0)
        ms_buf_puts(why, "This is type of scalar data, can not compare.\n");
    if (n->ndim != b->ndim || memcmp(n->shape, b->shape, n->ndim * sizeof *n->shape) != 0)
        ms_buf_puts(why, "Shape of NPU and bench Tensor do not match.\n");
    if (n->dtype != b->dtype)
        ms_buf_puts(why, "Dtype of NPU and bench Tensor do not match. Skipped.\n");
}

static void put_accuracy(struct writer *w, const char *verdict)
{
    w->sum->yes += strcmp(verdict, "Yes") == 0;
    w->sum->no += strcmp(verdict, "No") == 0;
    w->sum->rest += verdict[0] == 0;
    put_z(w, verdict);
}

static const char *verdict_of(const struct cmp_figures *fig)
{
    double cosine = fig->state == CMP_STATE_OK ? fig->metric[CMP_COSINE] : NAN;
    double error = fig->metric[CMP_MAX_ABS];
    if (fig->state != CMP_STATE_OK || isnan(cosine))
        return "";
    return (cosine < 0.99 && error > 0.001) || cosine < 0.9 || error > 1 ? "No" : "Yes";
}

static enum ms_rc put_figures(struct writer *w, const struct probe_tensor *n,
                              const struct probe_tensor *b, struct ms_buf *why, bool fine)
{
    const struct cmp_conf conf = {.compat = CMP_CUR};
    struct cmp_figures fig = {.state = CMP_STATE_NO_DATA};
    if (fine)
        MS_TRY(cmp__measure_two(&conf, n, b, &fig, w->err));
    if (fig.state == CMP_STATE_MASKS)
        ms_buf_puts(why, "The position of inf or nan in NPU and bench Tensor do not match.\n");
    put_accuracy(w, verdict_of(&fig));
    put(w, ms_arena_str(w->arena, ms_buf_slice(why)));
    for (unsigned i = 0; i < CMP_METRICS; i++) {
        bool known = fig.state == CMP_STATE_OK ||
                     (fig.state == CMP_STATE_SCALAR && (i == CMP_MAX_ABS || i == CMP_MAX_REL));
        if (known)
            put_number(w, fig.metric[i]);
        else
            put_z(w, fig.state == CMP_STATE_SCALAR ? "unsupported" : "");
    }
    return MS_OK;
}

static enum ms_rc put_files(struct writer *w, const struct cmp__kernel *t,
                            const struct cmp__kernel *b)
{
    struct probe_tensor n, m;
    struct ms_buf why = {.max = 1 << 16};
    bool has_n = open_file(t, &n, &why), has_m = open_file(b, &m, &why);
    if (has_n && has_m)
        say_why_not(&n, &m, &why);
    put(w, ms_str_of(t != NULL ? t->path : ""));
    put(w, ms_str_of(b != NULL ? b->path : ""));
    put_z(w, has_n ? ms_dtype_torch(n.dtype) : "");
    put_z(w, has_m ? ms_dtype_torch(m.dtype) : "");
    put(w, has_n ? shape_text(w, &n) : MS_STR("None"));
    put(w, has_m ? shape_text(w, &m) : MS_STR("None"));
    put_tensor_stats(w, &n, has_n);
    put_tensor_stats(w, &m, has_m);
    enum ms_rc rc = put_figures(w, &n, &m, &why, why.n == 0);
    probe_tensor_close(&n);
    probe_tensor_close(&m);
    ms_buf_free(&why);
    return rc;
}

/* ---- two lines of statistics ------------------------------------------------------ */

static void put_line_stats(struct writer *w, const struct cmp__kernel *k)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (k != NULL)
            put_number(w, k->stat[i]);
        else
            put_z(w, "");
    }
}

/* (2,3) becomes [2,3], as above. */
static void put_line_shape(struct writer *w, const struct cmp__kernel *k)
{
    struct ms_str shape = k != NULL ? k->shape : MS_STR("None");
    ms_buf_clear(&w->text);
    for (uint32_t i = 0; i < shape.n; i++)
        ms_buf_putc(&w->text, shape.p[i] == '(' ? '[' : shape.p[i] == ')' ? ']' : shape.p[i]);
    put(w, ms_arena_str(w->arena, ms_buf_slice(&w->text)));
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

static void put_relative(struct writer *w, double diff, double bench)
{
    double rel = fabs(diff / bench * 100);
    char *text = ms_arena_text(w->arena, MS_NUM_MAX + 1);
    if (bench == 0 || text == NULL) {
        put_z(w, "N/A");
        return;
    }
    if (isnan(rel)) {
        put_z(w, "Nan");
        return;
    }
    unsigned n = ms_num_f64(text, rel);
    text[n] = '%';
    put(w, (struct ms_str){text, n + 1});
}

static void say_why_not_lines(const struct cmp__kernel *t, const struct cmp__kernel *b,
                              struct ms_buf *why)
{
    if (t == NULL || b == NULL) {
        ms_buf_puts(why, "Dump file not found.\n");
        return;
    }
    if (t->shape.n == 0 || b->shape.n == 0)
        ms_buf_puts(why, "This is type of scalar data, can not compare.\n");
    else if (!ms_str_eq(t->shape, b->shape))
        ms_buf_puts(why, "Tensor shapes do not match.\n");
    if (!ms_str_eq(t->dtype, b->dtype))
        ms_buf_puts(why, "Dtype of NPU and bench Tensor do not match. Skipped.\n");
}

static void put_line_figures(struct writer *w, const struct cmp__kernel *t,
                             const struct cmp__kernel *b, bool fine)
{
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (fine)
            put_number(w, diff_of(t, b, i));
        else
            put_z(w, "");
    }
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (fine)
            put_relative(w, diff_of(t, b, i), b->stat[i]);
        else
            put_z(w, "");
    }
}

static enum ms_rc put_lines(struct writer *w, const struct cmp__kernel *t,
                            const struct cmp__kernel *b)
{
    struct ms_buf why = {.max = 1 << 16};
    say_why_not_lines(t, b, &why);
    bool fine = why.n == 0;
    put(w, t != NULL ? t->key : MS_STR(""));
    put(w, b != NULL ? b->key : MS_STR(""));
    put(w, t != NULL ? t->dtype : MS_STR(""));
    put(w, b != NULL ? b->dtype : MS_STR(""));
    put_line_shape(w, t);
    put_line_shape(w, b);
    put_line_stats(w, t);
    put_line_stats(w, b);
    put_accuracy(w, fine ? verdict_of_lines(t, b) : "");
    put(w, ms_arena_str(w->arena, ms_buf_slice(&why)));
    put_line_figures(w, t, b, fine);
    put(w, ms_str_of(t != NULL ? t->path : ""));
    put(w, ms_str_of(b != NULL ? b->path : ""));
    ms_buf_free(&why);
    return MS_OK;
}

/* ---- a rank and step ----------------------------------------------------------------- */

static int order_of(const struct cmp__kernel *t, const struct cmp__kernel *b)
{
    int order = ms_str_cmp(t->key, b->key);
    return order != 0 ? order : (t->nth > b->nth) - (t->nth < b->nth);
}

static enum ms_rc put_pair(struct writer *w, const struct cmp__kernel *t,
                           const struct cmp__kernel *b, bool files)
{
    w->arena = ms_arena_new(1 << 24);
    if (w->arena == NULL)
        return ms_no_memory(w->err);
    w->sum->rows++;
    enum ms_rc rc = files ? put_files(w, t, b) : put_lines(w, t, b);
    if (rc == MS_OK)
        rc = end_row(w);
    ms_arena_free(w->arena);
    w->arena = NULL;
    return rc;
}

static enum ms_rc put_all(struct writer *w, const struct cmp__kernel_place *t,
                          const struct cmp__kernel_place *b, bool files)
{
    size_t i = 0, k = 0;
    MS_TRY(put_header(w, files ? of_files : of_lines));
    while (i < t->list.n || k < b->list.n) {
        int order = i == t->list.n   ? 1
                    : k == b->list.n ? -1
                                     : order_of(&t->list.p[i], &b->list.p[k]);
        const struct cmp__kernel *x = order <= 0 ? &t->list.p[i++] : NULL;
        const struct cmp__kernel *y = order >= 0 ? &b->list.p[k++] : NULL;
        MS_TRY(put_pair(w, x, y, files));
    }
    return MS_OK;
}

static enum ms_rc write_csv(struct writer *w, const char *path, const struct cmp__kernel_place *t,
                            const struct cmp__kernel_place *b, bool files)
{
    MS_TRY(ms_out_create(&w->csv, path, w->err));
    enum ms_rc rc = put_all(w, t, b, files);
    if (rc == MS_OK)
        return ms_out_commit(w->csv, w->err);
    ms_out_abort(w->csv);
    return rc;
}

static enum ms_rc write_xlsx(struct writer *w, const char *path, const struct cmp__kernel_place *t,
                             const struct cmp__kernel_place *b, bool files)
{
    MS_TRY(cmp__workbook_open(&w->book, path, w->err));
    w->sheet = workbook_add_worksheet(w->book.book, "Sheet1");
    enum ms_rc rc = w->sheet != NULL ? put_all(w, t, b, files) : ms_no_memory(w->err);
    return cmp__workbook_close(&w->book, rc, w->err);
}

static enum ms_rc compare_place(const struct cmp__kernel_place *t,
                                const struct cmp__kernel_place *b, const char *dir,
                                const struct cmp_kernel_conf *conf, struct cmp_kernel_sum *sum,
                                struct cmp_files *out, struct ms_err *err)
{
    struct writer w = {.conf = conf, .sum = sum, .text.max = 1 << 24, .err = err};
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
        rc = conf->xlsx ? write_xlsx(&w, ms_buf_z(&path), t, b, files)
                        : write_csv(&w, ms_buf_z(&path), t, b, files);
    ms_buf_free(&w.text);
    ms_buf_free(&path);
    sum->tables += rc == MS_OK;
    return rc;
}

static enum ms_rc note(struct cmp_kernel_sum *sum, const char *side,
                       const struct cmp__kernel_place *p, struct ms_err *err)
{
    struct ms_buf b = {.max = 256};
    ms_buf_printf(&b, "rank %lld step %lld is on the %s side alone", (long long)p->rank,
                  (long long)p->step, side);
    char **slot = ms_vec_push(&sum->notes);
    if (slot != NULL)
        *slot = ms_str_dup(ms_buf_slice(&b));
    ms_buf_free(&b);
    return slot != NULL && *slot != NULL ? MS_OK : ms_no_memory(err);
}

static int place_order(const struct cmp__kernel_place *a, const struct cmp__kernel_place *b)
{
    return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank)
                              : (a->step > b->step) - (a->step < b->step);
}

static enum ms_rc compare_sides(const struct cmp__kernel_side *t, const struct cmp__kernel_side *b,
                                const char *dir, const struct cmp_kernel_conf *conf,
                                struct cmp_kernel_sum *sum, struct cmp_files *out,
                                struct ms_err *err)
{
    size_t i = 0, k = 0;
    while (i < t->places.n || k < b->places.n) {
        int order = i == t->places.n   ? 1
                    : k == b->places.n ? -1
                                       : place_order(&t->places.p[i], &b->places.p[k]);
        if (order < 0)
            MS_TRY(note(sum, "target", &t->places.p[i++], err));
        else if (order > 0)
            MS_TRY(note(sum, "golden", &b->places.p[k++], err));
        else
            MS_TRY(compare_place(&t->places.p[i++], &b->places.p[k++], dir, conf, sum, out, err));
    }
    return sum->tables != 0 ? MS_OK
                            : ms_fail(err, MS_E_NOTFOUND, "no rank and step is on both sides");
}

enum ms_rc cmp_compare_kernels(const char *target, const char *golden, const char *dir,
                               const struct cmp_kernel_conf *conf, struct cmp_kernel_sum *sum,
                               struct cmp_files *files, struct ms_err *err)
{
    struct cmp__kernel_side t = {0}, b = {0};
    *sum = (struct cmp_kernel_sum){0};
    enum ms_rc rc = cmp__kernels_find(&t, target, conf->ranks, conf->steps, err);
    if (rc == MS_OK)
        rc = cmp__kernels_find(&b, golden, conf->ranks, conf->steps, err);
    if (rc == MS_OK)
        rc = compare_sides(&t, &b, dir, conf, sum, files, err);
    cmp__kernels_free(&t);
    cmp__kernels_free(&b);
    return rc;
}

void cmp_kernel_sum_free(struct cmp_kernel_sum *sum)
{
    for (size_t i = 0; i < sum->notes.n; i++)
        ms_free(sum->notes.p[i]);
    ms_vec_free(&sum->notes);
}
