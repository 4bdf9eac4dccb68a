/* SPDX-License-Identifier: MIT
 *
 * monitor_text: lines of csv, byte for byte as pandas writes a table of the same figures.
 */
#include "probe/monitor/monitor_int.h"

#include "probe/base/num.h"

#include <math.h>

/* How pandas holds a column: whole numbers, numbers, booleans, or each value as it is. */
enum column { WHOLE, NUMBERS, BOOLEANS, MIXED };

/* Tells whether a tensor was MindSpore's, whose names of dtypes begin with a capital. Its monitor turns all figures
 * into float32, and its shapes are tuples. */
static bool is_mindspore(const struct probe_mon_row *row)
{
    return row->dtype[0] >= 'A' && row->dtype[0] <= 'Z';
}

static bool is_counted(enum probe_mon_op op, const struct probe_mon_row *row)
{
    return op == PROBE_MON_NANS && row->kind != PROBE_MON_NOTHING;
}

/* How Python holds one figure. */
static enum column figure_kind(enum probe_mon_op op, const struct probe_mon_row *row)
{
    if (is_mindspore(row))
        return NUMBERS;
    if (is_counted(op, row))
        return WHOLE;
    if (op != PROBE_MON_MIN && op != PROBE_MON_MAX && op != PROBE_MON_ID)
        return NUMBERS;
    return row->kind == PROBE_MON_INTS ? WHOLE : row->kind == PROBE_MON_BOOLS ? BOOLEANS : NUMBERS;
}

static enum column column_kind(enum probe_mon_op op, const struct probe__mon_line *lines, size_t n)
{
    unsigned seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (op != PROBE_MON_ID || lines[i].row->has_id)
            seen |= 1U << figure_kind(op, lines[i].row);
    }
    if ((seen & 1U << BOOLEANS) != 0)
        return seen == 1U << BOOLEANS ? BOOLEANS : MIXED;
    return seen == 1U << WHOLE ? WHOLE : NUMBERS;
}

static void put_number(struct ms_buf *out, double v)
{
    char text[MS_NUM_MAX];
    if (isnan(v))
        ms_buf_puts(out, "nan");
    else if (isinf(v))
        ms_buf_puts(out, v < 0 ? "-inf" : "inf");
    else
        ms_buf_put(out, text, ms_num_f64(text, v));
}

static void put_whole(struct ms_buf *out, double v)
{
    char text[MS_NUM_MAX];
    ms_buf_put(out, text, ms_num_i64(text, (int64_t)v));
}

/* As numpy's round: scaled, to the nearest whole number, ties to even, and back. */
static double rounded(double v, double scale)
{
    const double scaled = v * scale;
    return isfinite(scaled) ? rint(scaled) / scale : v;
}

static void put_figure(struct ms_buf *out, enum probe_mon_op op, const struct probe_mon_row *row,
                       enum column column, double scale)
{
    const double v = row->figures[op];
    const enum column kind = column == MIXED ? figure_kind(op, row) : column;
    if (op == PROBE_MON_ID && !row->has_id)
        ms_buf_puts(out, "nan");
    else if (kind == WHOLE)
        put_whole(out, v);
    else if (kind == BOOLEANS)
        ms_buf_puts(out, v != 0 ? "True" : "False");
    else
        put_number(out, column == MIXED ? v : rounded(v, scale));
}

static void put_shape(struct ms_buf *out, const struct probe_mon_row *row)
{
    const bool is_tuple = is_mindspore(row);
    const char *quote = row->ndim > 1 || (is_tuple && row->ndim == 1) ? "\"" : "";
    ms_buf_printf(out, "%s%c", quote, is_tuple ? '(' : '[');
    for (uint32_t i = 0; i < row->ndim; i++) {
        ms_buf_puts(out, i != 0 ? ", " : "");
        put_whole(out, (double)row->shape[i]);
    }
    ms_buf_printf(out, "%s%c%s", is_tuple && row->ndim == 1 ? "," : "", is_tuple ? ')' : ']',
                  quote);
}

/* Appends a text, in quotes where it holds what separates fields. */
static void put_text(struct ms_buf *out, struct ms_str s)
{
    if (ms_str_find(s, ',') < 0 && ms_str_find(s, '"') < 0 && ms_str_find(s, '\n') < 0) {
        ms_buf_str(out, s);
        return;
    }
    ms_buf_putc(out, '"');
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"')
            ms_buf_putc(out, '"');
        ms_buf_putc(out, s.p[i]);
    }
    ms_buf_putc(out, '"');
}

/* Appends "STAGE,NAME,STEP" of "STAGE:NAME", and what follows a second colon as a column more. */
static void put_name(struct ms_buf *out, struct ms_str name, int64_t step)
{
    struct ms_str part;
    for (int i = 0; ms_str_split(&name, ':', &part); i++) {
        if (i != 0)
            ms_buf_putc(out, ',');
        put_text(out, part);
        if (i == 1)
            ms_buf_printf(out, ",%lld", (long long)step);
    }
}

static void put_cell(struct ms_buf *out, enum probe_mon_op op, const struct probe_mon_row *row,
                     enum column column, double scale)
{
    ms_buf_putc(out, ',');
    if (row->kind == PROBE_MON_NOTHING)
        ms_buf_puts(out, "nan");
    else if (op == PROBE_MON_SHAPE)
        put_shape(out, row);
    else if (op == PROBE_MON_DTYPE)
        ms_buf_puts(out, row->dtype);
    else
        put_figure(out, op, row, column, scale);
}

void probe__mon_lines(struct ms_buf *out, const struct probe__mon_line *lines, size_t n,
                      const struct probe_monitor_settings *s, int64_t step)
{
    enum column columns[PROBE_MON_OPS];
    const double scale = pow(10, (double)s->ndigits);
    for (uint32_t k = 0; k < s->nops; k++)
        columns[k] = column_kind(s->ops[k], lines, n);
    for (size_t i = 0; i < n; i++) {
        put_name(out, lines[i].name, step);
        for (uint32_t k = 0; k < s->nops; k++)
            put_cell(out, s->ops[k], lines[i].row, columns[k], scale);
        ms_buf_putc(out, '\n');
    }
}

void probe__mon_header(struct ms_buf *out, const struct probe_monitor_settings *s, bool with_micro)
{
    ms_buf_puts(out, with_micro ? "vpp_stage,name,step,micro_step" : "vpp_stage,name,step");
    for (uint32_t k = 0; k < s->nops; k++)
        ms_buf_printf(out, ",%s", probe_monitor_op_name(s->ops[k]));
    ms_buf_putc(out, '\n');
}
