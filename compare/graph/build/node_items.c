/* SPDX-License-Identifier: MIT
 *
 * node_items: input_data and output_data of a node.
 *
 *     {"Torch.matmul.0.forward.output.0": {"type": "torch.Tensor", "Max": "2.0", ...}, ...}
 *
 * Every value is text: Python's str() of the dump's value, with quotes ' left out and
 * None written as null. A leaf's own keys come first, then keys that the official parser
 * adds, then figures and verdict of a comparison.
 */
#include "compare/graph/build/node_items.h"

#include "compare/graph/build/json_text.h"
#include "compare/graph/build/node_judge.h"

#include "compare/read/pytext.h"
#include "compare/write/table.h"
#include "probe/base/assert.h"
#include "probe/base/num.h"
#include "probe/base/scan.h"

enum { TEXT_MAX = 1 << 28, RENEW_EVERY = 256 };

/* ---- one member: "key": "text" ---------------------------------------------- */

static void put_key(struct ms_buf *out, const char *key)
{
    ms_buf_puts(out, ", \"");
    ms_buf_puts(out, key);
    ms_buf_puts(out, "\": \"");
}

/* Returns true for a plain decimal number with more than six decimals, which are rounded to six. */
static bool is_long_decimal(struct ms_str s)
{
    if (s.n > 0 && s.p[s.n - 1] == '%')
        s.n--;
    int64_t dot = ms_str_find(s, '.');
    if (dot < 1 || dot > 20 || s.n - (uint32_t)dot - 1 > 20 || s.n - (uint32_t)dot - 1 <= 6)
        return false;
    return ms_str_all_digits(ms_str_sub(s, 0, (uint32_t)dot)) &&
           ms_str_all_digits(ms_str_sub(s, (uint32_t)dot + 1, s.n));
}

static void put_rounded(struct ms_buf *out, struct ms_str s)
{
    bool percent = s.p[s.n - 1] == '%';
    double v = 0;
    ms_num_parse_f64(s.p, percent ? s.n - 1 : s.n, &v);
    ms_buf_printf(out, "%.6f%s", v, percent ? "%" : "");
}

/* Writes text printed by Python with the two changes: quotes ' left out, None as null. */
static void put_changed(struct ms_buf *out, struct ms_str s)
{
    uint32_t from = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        bool none = s.p[i] == 'N' && s.n - i >= 4 && memcmp(s.p + i, "None", 4) == 0;
        if (s.p[i] != '\'' && !none)
            continue;
        graph__put_json_inside(out, ms_str_sub(s, from, i));
        if (none)
            ms_buf_puts(out, "null");
        i += none ? 3 : 0;
        from = i + 1;
    }
    graph__put_json_inside(out, ms_str_sub(s, from, s.n));
}

static bool needs_change(struct ms_str s)
{
    return memchr(s.p, '\'', s.n) != NULL || memchr(s.p, 'N', s.n) != NULL;
}

static void put_text(struct ms_buf *out, struct ms_str s)
{
    if (s.n == 0)
        return;
    if (s.p[0] >= '0' && s.p[0] <= '9' && is_long_decimal(s))
        put_rounded(out, s);
    else if (needs_change(s))
        put_changed(out, s);
    else
        graph__put_json_inside(out, s);
}

/* Writes a number as Python prints it, without rounding. */
static void put_number_member(struct ms_buf *out, const char *key, struct ms_str text)
{
    put_key(out, key);
    graph__put_json_inside(out, text);
    ms_buf_putc(out, '"');
}

static void put_member(struct ms_buf *out, const char *key, struct ms_str text)
{
    put_key(out, key);
    put_text(out, text);
    ms_buf_putc(out, '"');
}

/* ---- a leaf's own values ------------------------------------------------------ */

/* Returns true for a number written as Python would print it, so that it need not be parsed. */
static bool is_plain_float(struct ms_str s)
{
    int64_t dot = ms_str_find(s, '.');
    if (dot < 1 || dot > 16 || s.n > 24 || s.p[s.n - 1] == '.' ||
        (s.p[s.n - 1] == '0' && s.p[s.n - 2] != '.'))
        return false;
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.p[i] > '9')
            return false;
    }
    /* Python prints numbers below 1e-4 in exponent form. */
    uint32_t digit = s.p[0] == '-';
    return s.p[digit] != '0' || (s.n - digit == 3) ||
           memcmp(s.p + digit, "0.0000", s.n - digit < 6 ? s.n - digit : 6) != 0;
}

static void put_number(struct ms_buf *out, const struct ms_jread *r)
{
    char text[MS_NUM_MAX];
    double v = 0;
    if (ms_jread_is_int(r) || is_plain_float(r->text)) {
        ms_buf_str(out, r->text);
        return;
    }
    ms_jread_f64(r, &v);
    if (v != v)
        ms_buf_puts(out, "nan");
    else if (v - v != 0)
        ms_buf_puts(out, v > 0 ? "inf" : "-inf");
    else
        ms_buf_put(out, text, ms_num_f64(text, v));
}

static void put_python(struct graph__items *it, struct ms_buf *out, struct ms_str json)
{
    ms_buf_clear(&it->text);
    cmp__py_str(&it->text, json, &it->scratch);
    put_text(out, ms_buf_slice(&it->text));
}

/* Fast path for shapes, which are lists of integers and occur in every item. */
static bool put_short_list(struct ms_buf *out, struct ms_str json)
{
    for (uint32_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        if (c == '"' || c > ']' || (c == '[' && i != 0))
            return false;
    }
    for (uint32_t i = 0; i < json.n; i++) {
        if (!ms_is_space(json.p[i]))
            ms_buf_putc(out, json.p[i]);
        if (json.p[i] == ',')
            ms_buf_putc(out, ' ');
    }
    return true;
}

static void put_container(struct graph__items *it, struct ms_buf *out, struct ms_jread *r,
                          enum ms_jtok tok)
{
    const char *from = r->tok;
    ms_jread_skip(r, tok);
    struct ms_str json = {from, (uint32_t)(r->at - from)};
    if (tok != MS_J_ARR || !put_short_list(out, json))
        put_python(it, out, json);
}

static void put_string(struct graph__items *it, struct ms_buf *out, const struct ms_jread *r)
{
    struct ms_str text = r->text;
    if (r->escaped && ms_jread_text(r, &it->scratch, &text, NULL) != MS_OK)
        return;
    put_text(out, text);
}

static void put_value(struct graph__items *it, struct ms_buf *out, struct ms_jread *r,
                      enum ms_jtok tok)
{
    switch (tok) {
    case MS_J_STR:
        put_string(it, out, r);
        break;
    case MS_J_NUM:
        put_number(out, r);
        break;
    case MS_J_TRUE:
        ms_buf_puts(out, "True");
        break;
    case MS_J_FALSE:
        ms_buf_puts(out, "False");
        break;
    case MS_J_NULL:
        ms_buf_puts(out, "null");
        break;
    default:
        put_container(it, out, r, tok);
        break;
    }
}

/* ---- which keys --------------------------------------------------------------- */

/* Keys that a leaf contains, so that they are not added again. */
struct seen {
    bool data_name, requires_grad, dtype, shape, md5, stat[PROBE_STATS];
    bool null_max; /* "Max" is present and null */
};

static void note_key(struct seen *s, struct ms_str key, enum ms_jtok tok)
{
    switch (key.n) {
    case 3:
        s->stat[PROBE_STAT_MAX] |= ms_str_is(key, "Max");
        s->null_max |= tok == MS_J_NULL && ms_str_is(key, "Max");
        s->stat[PROBE_STAT_MIN] |= ms_str_is(key, "Min");
        s->md5 |= ms_str_is(key, "md5");
        break;
    case 4:
        s->stat[PROBE_STAT_MEAN] |= ms_str_is(key, "Mean");
        s->stat[PROBE_STAT_NORM] |= ms_str_is(key, "Norm");
        break;
    case 5:
        s->dtype |= ms_str_is(key, "dtype");
        s->shape |= ms_str_is(key, "shape");
        break;
    case 9:
        s->data_name |= ms_str_is(key, "data_name");
        break;
    case 13:
        s->requires_grad |= ms_str_is(key, "requires_grad");
        break;
    default:
        break;
    }
}

struct shape {     /* of the item being made */
    bool compared; /* the node has a partner */
    bool digests;  /* write md5 */
    bool batch;    /* item of a batch of point-to-point operations */
    bool group;    /* item is a process group */
};

static bool is_left_out(const struct shape *f, struct ms_str key)
{
    if (f->group)
        return !ms_str_is(key, "type") && !ms_str_is(key, "group_ranks") &&
               !ms_str_is(key, "group_id") && !ms_str_is(key, "data_name");
    if (ms_str_is(key, "md5"))
        return !f->digests;
    if (f->batch && (ms_str_is(key, "op") || ms_str_is(key, "peer") || ms_str_is(key, "tag") ||
                     ms_str_is(key, "group_id") || ms_str_is(key, "tensor")))
        return true;
    return ms_str_is(key, "state") || ms_str_is(key, "full_op_name");
}

/* Returns true for values that need no change, which are most: numbers as Python prints them, names
 * of types. */
static bool is_shown_as_written(const struct ms_jread *r, enum ms_jtok tok)
{
    if (tok == MS_J_NUM)
        return ms_jread_is_int(r) || is_plain_float(r->text);
    return tok == MS_J_STR && !r->escaped && r->text.n != 0 && !ms_is_digit(r->text.p[0]) &&
           !needs_change(r->text) &&
           ms_scan_plain(r->text.p, r->text.p + r->text.n) == r->text.p + r->text.n;
}

/* Writes , "KEY": "TEXT" */
static void put_pair(struct ms_buf *out, struct ms_str key, struct ms_str text)
{
    char *p = ms_buf_room(out, (size_t)key.n + text.n + 8);
    if (p == NULL)
        return;
    out->n += (size_t)key.n + text.n + 8;
    memcpy(p, ", \"", 3);
    memcpy(p + 3, key.p, key.n);
    p += 3 + key.n;
    memcpy(p, "\": \"", 4);
    memcpy(p + 4, text.p, text.n);
    p[4 + text.n] = '"';
}

/* Copies the members of a leaf. The members of a P2P operation's "tensor" replace that key. */
static void put_members(struct graph__items *it, struct ms_buf *out, struct ms_jread *r,
                        const struct shape *f, struct seen *seen)
{
    while (ms_jread_next(r) == MS_J_KEY) {
        struct ms_str key = r->text;
        enum ms_jtok tok = ms_jread_next(r);
        if (tok == MS_J_OBJ && ms_str_is(key, "tensor")) {
            put_members(it, out, r, f, seen);
            continue;
        }
        if (is_left_out(f, key)) {
            ms_jread_skip(r, tok);
            continue;
        }
        note_key(seen, key, tok);
        if (is_shown_as_written(r, tok)) {
            put_pair(out, key, r->text);
            continue;
        }
        ms_buf_puts(out, ", \"");
        ms_buf_str(out, key);
        ms_buf_puts(out, "\": \"");
        put_value(it, out, r, tok);
        ms_buf_putc(out, '"');
    }
}

/* Adds the keys that the official parser adds to a leaf. */
static void put_additions(struct ms_buf *out, const struct cmp_item *item, const struct seen *seen,
                          bool scalar, bool digests)
{
    if (!seen->data_name)
        put_member(out, "data_name", MS_STR("-1"));
    if (!seen->requires_grad)
        put_member(out, "requires_grad", MS_STR("null"));
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (seen->stat[i])
            continue;
        const struct cmp_value *x = &item->stat[i];
        if (scalar && x->kind == CMP_VALUE_NUMBER && !x->is_text)
            put_number_member(out, probe_stat_names[i], x->text);
        else if (scalar && x->kind == CMP_VALUE_NAN && !x->is_text)
            put_number_member(out, probe_stat_names[i], MS_STR("nan"));
        else
            put_member(out, probe_stat_names[i], scalar ? x->text : MS_STR("null"));
    }
    if (!seen->dtype)
        put_member(out, "dtype", item->dtype);
    if (!seen->shape)
        put_member(out, "shape", item->shape);
    if (!seen->md5 && digests)
        put_member(out, "md5", item->md5);
}

/* ---- figures ---------------------------------------------------------------- */

enum { FIRST_FIGURE = 8 }; /* the columns before describe both sides, as the item already does */

/* Returns false for columns that describe a side or its files. */
static bool is_figure(const char *column)
{
    struct ms_str s = ms_str_of(column);
    return !ms_str_starts(s, MS_STR("NPU ")) && !ms_str_starts(s, MS_STR("B")) &&
           !ms_str_is(s, "Data_name");
}

/* Returns true for measured columns, false for columns that hold a verdict. */
static bool is_measure(const char *column)
{
    struct ms_str s = ms_str_of(column);
    return !ms_str_is(s, "Requires_grad Consistent") && !ms_str_is(s, "Result") &&
           !ms_str_is(s, "Err_message");
}

/* Writes the cells of the official table between the descriptions of both sides and the stack,
 * under the names of their columns. */
enum ms_rc graph__put_figures(struct ms_buf *out, const struct cmp_setup *c, struct cmp_view *v,
                              size_t row, struct ms_err *err)
{
    const char *names[CMP_COLUMNS];
    struct cmp_cell cells[CMP_COLUMNS];
    unsigned n = cmp_table_columns(c, false, names);
    MS_TRY(cmp_table_cells(c, NULL, v, row, cells, err));
    for (unsigned i = FIRST_FIGURE; i < n; i++) {
        if (!is_figure(names[i]))
            continue;
        if (!v->rows.p[row].b.present && is_measure(names[i]))
            put_member(out, names[i], MS_STR(" "));
        else if (cells[i].number || ms_str_ends(ms_str_of(names[i]), MS_STR(" diff")))
            put_number_member(out, names[i], cells[i].text);
        else
            put_member(out, names[i], cells[i].text);
    }
    return MS_OK;
}

void graph__drop_comma(struct ms_buf *out, size_t at)
{
    if (out->bad != MS_OK || out->n <= at + 2)
        return;
    ms_assert(memcmp(out->p + at, ", ", 2) == 0);
    memmove(out->p + at, out->p + at + 2, out->n - at - 2);
    out->n -= 2;
}

bool graph__is_figure(const struct cmp_setup *c, struct ms_str key)
{
    const char *names[CMP_COLUMNS];
    unsigned n = cmp_table_columns(c, false, names);
    for (unsigned i = FIRST_FIGURE; i < n; i++) {
        if (ms_str_is(key, names[i]) && is_figure(names[i]))
            return true;
    }
    return false;
}

/* ---- one item ----------------------------------------------------------------- */

static bool is_maximum_missing(const struct cmp_item *item)
{
    return ms_str_is(item->stat[PROBE_STAT_MAX].text, "None");
}

static bool is_output(struct ms_str name)
{
    return ms_str_find_str(name, MS_STR(".output.")) >= 0 &&
           ms_str_find_str(name, MS_STR(".input.")) < 0;
}

static enum ms_rc put_fields(struct graph__items *it, struct ms_buf *out, const struct shape *f,
                             size_t index, const struct cmp_setup *c, struct ms_err *err)
{
    const struct cmp_row *row = &it->view.rows.p[index];
    struct seen seen = {.dtype = false};
    struct ms_jread r;
    size_t at = out->n;
    ms_jread_init(&r, row->t.json.p, row->t.json.n, 0);
    if (ms_jread_next(&r) == MS_J_OBJ)
        put_members(it, out, &r, f, &seen);
    if (seen.null_max) {
        out->n = at;
        ms_buf_puts(out, ", \"value\": \"null\"");
    } else if (!f->group) {
        put_additions(out, &row->t, &seen, !seen.dtype, f->digests);
    }
    if (f->group && !seen.data_name)
        put_member(out, "data_name", MS_STR("-1"));
    if (f->compared && !f->group && !seen.null_max)
        MS_TRY(graph__put_figures(out, c, &it->view, index, err));
    graph__drop_comma(out, at); /* each member begins with a comma */
    return MS_OK;
}

static enum ms_rc put_item(struct graph__items *it, const struct graph__pair *p, size_t index,
                           bool batch, struct ms_err *err)
{
    const struct cmp_row *row = &it->view.rows.p[index];
    struct ms_buf *out = is_output(row->t.name) ? &it->out : &it->in;
    struct shape f = {.compared = it->compared,
                      .digests = p->set.mode == PROBE_MODE_MD5,
                      .batch = batch,
                      .group = ms_str_is(row->t.dtype, "torch.ProcessGroup")};
    ms_buf_puts(out, out->n > 1 ? ", " : "");
    graph__put_json(out, row->t.name);
    ms_buf_puts(out, ": {");
    if (is_maximum_missing(&row->t))
        ms_buf_puts(out, "\"value\": \"null\"");
    else
        MS_TRY(put_fields(it, out, &f, index, &p->set, err));
    ms_buf_putc(out, '}');
    return MS_OK;
}

/* ---- the items of a node -------------------------------------------------------- */

/* Makes the item of a tensor without comparison. Its JSON members hold everything else. */
static enum ms_rc make_bare(struct graph__items *it, const struct graph__tree *g, uint32_t row,
                            struct cmp_item *item, struct ms_err *err)
{
    const struct probe_row *r = cmp__side_row(&g->side, row);
    *item = (struct cmp_item){
        .present = true, .dtype = {"", 0}, .json = {g->side.dump->file.p + r->off, r->len}};
    for (unsigned i = 0; i < PROBE_STATS; i++)
        item->stat[i].text = MS_STR("");
    cmp__side_name(&g->side, row, false, &it->view.scratch);
    return cmp__keep(&it->view, &item->name, err);
}

/* Makes the rows of a node without a partner. */
static enum ms_rc make_rows(struct graph__items *it, const struct graph__pair *p,
                            const struct graph__tree *g, const struct cmp__op *op,
                            struct ms_err *err)
{
    it->view.rows.n = 0;
    if (!ms_vec_reserve(&it->view.rows, op->n))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < op->n; i++) {
        struct cmp_row *row = &it->view.rows.p[it->view.rows.n++];
        *row = (struct cmp_row){.b = cmp__item_none};
        uint32_t at = op->first + i;
        if (cmp__side_row(&g->side, at)->kind == PROBE_LEAF_TENSOR && p->set.mode != PROBE_MODE_MD5)
            MS_TRY(make_bare(it, g, at, &row->t, err));
        else
            MS_TRY(cmp__item_make(&g->side, at, p->set.mode, &it->view, &row->t, err));
    }
    return MS_OK;
}

static enum ms_rc put_items(struct graph__items *it, const struct graph__pair *p,
                            const struct graph__tree *g, uint32_t node, uint8_t *state,
                            struct ms_err *err)
{
    bool batch = ms_str_find_str(graph__name(g, node), MS_STR("batch_isend_irecv")) >= 0;
    if (++it->nodes % RENEW_EVERY == 0)
        MS_TRY(cmp_view_renew(&it->view, err));
    it->compared = g == &p->t && g->nodes.p[node].match != GRAPH_NO && p->dual &&
                   p->set.mode != PROBE_MODE_STRUCTURE;
    if (it->compared)
        MS_TRY(graph__judge(p, node, &it->view, state, err));
    else
        MS_TRY(make_rows(it, p, g, &g->side.ops.p[g->nodes.p[node].op], err));
    for (size_t i = 0; i < it->view.rows.n; i++)
        MS_TRY(put_item(it, p, i, batch, err));
    return MS_OK;
}

enum ms_rc graph__items_make(struct graph__items *it, const struct graph__pair *p,
                             const struct graph__tree *g, uint32_t node, uint8_t *state,
                             struct ms_err *err)
{
    ms_assert(node < g->nodes.n);
    *state = GRAPH_NONE;
    ms_buf_clear(&it->in);
    ms_buf_clear(&it->out);
    ms_buf_putc(&it->in, '{');
    ms_buf_putc(&it->out, '{');
    if (g->nodes.p[node].op != GRAPH_NO)
        MS_TRY(put_items(it, p, g, node, state, err));
    ms_buf_putc(&it->in, '}');
    ms_buf_putc(&it->out, '}');
    MS_TRY(ms_buf_check(&it->in, err));
    return ms_buf_check(&it->out, err);
}

enum ms_rc graph__items_init(struct graph__items *it, struct ms_err *err)
{
    *it = (struct graph__items){
        .in.max = TEXT_MAX, .out.max = TEXT_MAX, .text.max = TEXT_MAX, .scratch.max = TEXT_MAX};
    return cmp_view_init(&it->view, err);
}

void graph__items_free(struct graph__items *it)
{
    cmp_view_free(&it->view);
    ms_buf_free(&it->in);
    ms_buf_free(&it->out);
    ms_buf_free(&it->text);
    ms_buf_free(&it->scratch);
}
