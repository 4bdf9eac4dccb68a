/* SPDX-License-Identifier: MIT
 *
 * table: the official columns, followed by those of --ext.
 *
 *     basic | tensor: metrics  statistics: differences  md5: digests | values | verdict
 *     | stack, where there is a stack.json | data files, in tensor mode
 */
#include "compare/write/table.h"

#include "compare/measure/pattern.h"
#include "compare/read/pytext.h"
#include "compare/table/comparison.h"
#include "probe/base/num.h"

#include <math.h>

static const char *const basic[] = {
    "NPU Name",          "Bench Name",          "NPU Dtype",
    "Bench Dtype",       "NPU Tensor Shape",    "Bench Tensor Shape",
    "NPU Requires_grad", "Bench Requires_grad", NULL};
static const char *const metrics[] = {"Cosine",
                                      "EucDist",
                                      "MaxAbsErr",
                                      "MaxRelativeErr",
                                      "One Thousandth Err Ratio",
                                      "Five Thousandths Err Ratio",
                                      NULL};
static const char *const deltas[] = {"Max diff",        "Min diff",        "Mean diff",
                                     "L2norm diff",     "MaxRelativeErr",  "MinRelativeErr",
                                     "MeanRelativeErr", "NormRelativeErr", NULL};
static const char *const values[] = {"NPU max",    "NPU min",      "NPU mean",
                                     "NPU l2norm", "Bench max",    "Bench min",
                                     "Bench mean", "Bench l2norm", NULL};
static const char *const digests[] = {"NPU MD5", "BENCH MD5", NULL};
static const char *const ext[] = {
    "RelL2", "RelL2 lower bound", "SQNR dB", "Mean ULP", "Max ULP", "Bit-equal ratio",  "Bias",
    "Scale", "Expected RelL2",    "Z",       "Pattern",  "Match",   "Match confidence", NULL};

static void add(const char *names[CMP_COLUMNS], unsigned *n, const char *const *list)
{
    for (; *list != NULL; list++)
        names[(*n)++] = *list;
}

static void add_verdict(const struct cmp_setup *set, const char *names[CMP_COLUMNS], unsigned *n)
{
    const struct cmp_rules *rules = set->conf.rules;
    names[(*n)++] = "Requires_grad Consistent";
    names[(*n)++] = set->mode == PROBE_MODE_TENSOR ? rules->tensor_title : "Result";
    if (!rules->no_digest_message || set->mode != PROBE_MODE_MD5)
        names[(*n)++] = "Err_message";
}

unsigned cmp_table_columns(const struct cmp_setup *set, bool has_stack,
                           const char *names[CMP_COLUMNS])
{
    unsigned n = 0;
    enum probe_mode mode = set->mode;
    add(names, &n, basic);
    add(names, &n, mode == PROBE_MODE_TENSOR ? metrics : mode == PROBE_MODE_MD5 ? digests : deltas);
    if (mode != PROBE_MODE_MD5)
        add(names, &n, values);
    add_verdict(set, names, &n);
    if (has_stack)
        names[n++] = "NPU_Stack_Info";
    if (mode == PROBE_MODE_TENSOR)
        names[n++] = "Data_name";
    if (set->conf.ext)
        add(names, &n, ext);
    return n;
}

/* ---- cells ------------------------------------------------------------ */

struct writer {
    const struct cmp_setup *set;
    /* NULL: rows without a comparison, which have no stacks and no extended columns */
    const struct cmp *c;
    struct cmp_view *v;
    struct cmp_cell *at;
    struct ms_err *err;
    enum ms_rc rc;
};

static void put_text(struct writer *w, struct ms_str text)
{
    *w->at++ = (struct cmp_cell){.text = text};
}

static void put_foreign(struct writer *w, struct ms_str text)
{
    *w->at++ = (struct cmp_cell){.text = text, .foreign = true};
}

static void put_value(struct writer *w, const struct cmp_value *x)
{
    *w->at++ = (struct cmp_cell){
        .text = x->text,
        .number = x->kind == CMP_VALUE_NUMBER && !x->is_text,
        .foreign = x->kind == CMP_VALUE_TEXT,
        .infinite = !x->is_text && (x->kind == CMP_VALUE_INF || x->kind == CMP_VALUE_NINF),
        .v = x->v};
}

static void put_f64(struct writer *w, double x)
{
    struct cmp_cell *cell = w->at++;
    *cell = (struct cmp_cell){.text = MS_STR("Nan"), .v = x};
    if (isnan(x))
        return;
    if (isinf(x)) {
        cell->infinite = true;
        cell->text = x > 0 ? MS_STR("inf") : MS_STR("-inf");
        return;
    }
    char *text = ms_arena_text(w->v->arena, MS_NUM_MAX);
    if (text == NULL) {
        w->rc = ms_arena_fail(w->v->arena, w->err);
        return;
    }
    cell->number = true;
    cell->text = (struct ms_str){text, ms_num_f64(text, x)};
}

static void put_basic(struct writer *w, const struct cmp_row *row)
{
    const struct cmp_item *t = &row->t, *b = &row->b;
    put_foreign(w, t->name);
    put_foreign(w, b->name);
    put_foreign(w, t->dtype);
    put_foreign(w, b->dtype);
    put_foreign(w, t->shape);
    put_foreign(w, b->shape);
    put_text(w, t->requires_grad);
    put_text(w, b->requires_grad);
}

/* Writes a difference as text; workbooks of msprobe 1 have a number. */
static void put_difference(struct writer *w, struct ms_str diff)
{
    struct cmp_cell *cell = w->at;
    put_text(w, diff);
    cell->number = w->set->conf.rules->text_numbers && ms_num_parse_f64(diff.p, diff.n, &cell->v);
}

static void put_deltas(struct writer *w, const struct cmp_row *row)
{
    for (unsigned i = 0; i < PROBE_STATS; i++)
        put_difference(w, row->delta[i].diff);
    for (unsigned i = 0; i < PROBE_STATS; i++)
        put_text(w, row->delta[i].rel);
}

/* Writes the metrics of a tensor pair: numbers, or the word for the reason why there is none. */
static void put_metrics(struct writer *w, const struct cmp_row *row)
{
    for (unsigned i = 0; i < CMP_METRICS; i++) {
        switch (row->fig.state) {
        case CMP_STATE_OK:
            /* HUGE_VAL marks a cosine that is not defined */
            if (i == CMP_COSINE && row->fig.metric[i] == HUGE_VAL)
                put_text(w, MS_STR("unsupported"));
            else
                put_f64(w, row->fig.metric[i]);
            break;
        case CMP_STATE_SCALAR:
            if (i == CMP_MAX_ABS || i == CMP_MAX_REL)
                put_f64(w, row->fig.metric[i]);
            else
                put_text(w, MS_STR("unsupported"));
            break;
        case CMP_STATE_SHAPE:
            put_text(w, MS_STR("shape unmatched"));
            break;
        case CMP_STATE_MASKS:
            put_text(w, MS_STR("N/A"));
            break;
        default:
            put_text(w, MS_STR("unsupported"));
            break;
        }
    }
}

static void put_values(struct writer *w, const struct cmp_row *row)
{
    for (unsigned i = 0; i < PROBE_STATS; i++)
        put_value(w, &row->t.stat[i]);
    for (unsigned i = 0; i < PROBE_STATS; i++)
        put_value(w, &row->b.stat[i]);
}

enum ms_rc cmp_table_notes(struct cmp_view *v, const struct cmp_row *row, struct ms_str *out,
                           struct ms_err *err)
{
    *out = MS_STR("[]");
    if (row->notes == 0)
        return MS_OK;
    const char *between = "[\"";
    for (unsigned i = 0; i < CMP_NOTES; i++) {
        if (row->notes & 1U << i) {
            ms_buf_puts(&v->scratch, between);
            ms_buf_puts(&v->scratch, cmp_note_texts[i]);
            between = "\", \"";
        }
    }
    ms_buf_puts(&v->scratch, "\"]");
    return cmp__keep(v, out, err);
}

static void put_verdict(struct writer *w, const struct cmp_row *row)
{
    struct ms_str notes;
    *w->at++ = (struct cmp_cell){.text = row->grad_same ? MS_STR("True") : MS_STR("False"),
                                 /* in a workbook with colours this cell is text */
                                 .truth = !w->set->conf.highlight,
                                 .v = row->grad_same};
    if (w->set->conf.rules->judge_row != NULL) {
        struct cmp_row_verdict old;
        if (w->rc == MS_OK)
            w->rc = w->set->conf.rules->judge_row(w->set, w->v, row, &old, w->err);
        if (w->rc != MS_OK)
            return;
        put_text(w, old.result);
        if (!w->set->conf.rules->no_digest_message || w->set->mode != PROBE_MODE_MD5)
            put_text(w, old.message);
        return;
    }
    put_text(w, ms_str_of(cmp_level_names[row->level]));
    if (w->rc == MS_OK)
        w->rc = cmp_table_notes(w->v, row, &notes, w->err);
    if (w->rc == MS_OK)
        put_text(w, notes);
}

/* Writes the list of frames as Python prints it, on the row that shows the stack. */
static void put_stack(struct writer *w, const struct cmp_row *row)
{
    if (!cmp__shows_stack(w->c, w->v, row)) {
        put_text(w, MS_STR("N/A"));
        return;
    }
    struct ms_buf text = {.max = 1 << 20};
    struct ms_str cell = MS_STR("");
    cmp__py_str(&w->v->scratch, w->v->frames, &text);
    ms_buf_free(&text);
    if (w->rc == MS_OK)
        w->rc = cmp__keep(w->v, &cell, w->err);
    put_text(w, cell);
}

static void put_files(struct writer *w, const struct cmp_row *row)
{
    struct ms_str cell = MS_STR("");
    struct ms_buf *b = &w->v->scratch;
    ms_buf_putc(b, '[');
    cmp__py_repr_text(b, row->t.data_name);
    ms_buf_puts(b, ", ");
    cmp__py_repr_text(b, row->b.data_name);
    ms_buf_putc(b, ']');
    if (w->rc == MS_OK)
        w->rc = cmp__keep(w->v, &cell, w->err);
    put_text(w, cell);
}

static void put_ext(struct writer *w, const struct cmp_row *row)
{
    struct cmp_pattern p = cmp__pattern(&w->c->rows, &w->c->measured, row);
    const struct cmp_ext *e = &p.ext;
    const double list[] = {e->rel_l2,    e->rel_l2_bound, e->sqnr_db, e->mean_ulp, e->max_ulp,
                           e->bit_equal, e->bias,         e->scale,   p.expected,  p.z};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (isnan(list[i]))
            put_text(w, MS_STR("N/A"));
        else
            put_f64(w, list[i]);
    }
    put_text(w, ms_str_of(p.name));
    put_text(w, ms_str_of(row->match.how));
    put_f64(w, round(row->match.confidence * 1000) / 1000);
}

enum ms_rc cmp_table_cells(const struct cmp_setup *set, const struct cmp *c, struct cmp_view *v,
                           size_t i, struct cmp_cell cells[CMP_COLUMNS], struct ms_err *err)
{
    struct writer w = {.set = set, .c = c, .v = v, .at = cells, .err = err};
    const struct cmp_row *row = &v->rows.p[i];
    put_basic(&w, row);
    if (set->mode == PROBE_MODE_MD5) {
        put_text(&w, row->t.md5);
        put_text(&w, row->b.md5);
    } else if (set->mode == PROBE_MODE_TENSOR) {
        put_metrics(&w, row);
        put_values(&w, row);
    } else {
        put_deltas(&w, row);
        put_values(&w, row);
    }
    put_verdict(&w, row);
    if (c != NULL && cmp_has_stack(c))
        put_stack(&w, row);
    if (set->mode == PROBE_MODE_TENSOR)
        put_files(&w, row);
    if (c != NULL && set->conf.ext)
        put_ext(&w, row);
    return w.rc;
}
