/* SPDX-License-Identifier: MIT
 *
 * stored_items: reads items of a database back into rows of a comparison, and rewrites
 * them with new figures.
 *
 * The text has the format of node_items or of the official tool: every value is a
 * string.
 */
#include "compare/graph/view/stored_items.h"

#include "compare/graph/build/node_items.h"
#include "compare/graph/build/node_judge.h"
#include "compare/graph/graph_rules.h"
#include "compare/measure/tensor_file.h"
#include "probe/base/assert.h"
#include "probe/base/jread.h"
#include "probe/tensor/tensor.h"

#include <math.h>

/* ---- items as rows -------------------------------------------------------------- */

static enum graph__place_of_row place_of(struct ms_str name, bool output)
{
    if (ms_str_find_str(name, MS_STR(".parameters_grad")) >= 0)
        return GRAPH_ROW_GRADIENT;
    if (output)
        return GRAPH_ROW_OUTPUT;
    return ms_str_find_str(name, MS_STR(".parameters.")) >= 0 ? GRAPH_ROW_PARAMETERS
                                                              : GRAPH_ROW_INPUT;
}

static struct cmp_value value_of(struct ms_str text)
{
    struct probe_num n = {.kind = PROBE_NUM_FLOAT, .text = text};
    struct ms_jread r;
    ms_jread_init(&r, text.p, text.n, 0);
    if (ms_str_is(text, "nan"))
        n.v = NAN;
    else if (ms_str_is(text, "inf") || ms_str_is(text, "-inf"))
        n.v = text.n == 3 ? HUGE_VAL : -HUGE_VAL;
    else if (text.n != 0 && ms_jread_next(&r) == MS_J_NUM && ms_jread_f64(&r, &n.v))
        n.kind = ms_jread_is_int(&r) ? PROBE_NUM_INT : PROBE_NUM_FLOAT;
    else if (ms_str_is(text, "null"))
        n.kind = PROBE_NUM_NULL;
    else
        return (struct cmp_value){.kind = CMP_VALUE_TEXT, .text = text};
    return cmp__value_of(&n);
}

static void take_field(struct cmp_item *item, struct ms_str key, struct ms_str text)
{
    if (ms_str_is(key, "dtype"))
        item->dtype = text, item->type = ms_dtype_parse(text);
    else if (ms_str_is(key, "shape"))
        item->shape = text;
    else if (ms_str_is(key, "requires_grad") && !ms_str_is(text, "null"))
        item->requires_grad = text;
    else if (ms_str_is(key, "md5"))
        item->md5 = text;
    else if (ms_str_is(key, "data_name"))
        item->data_name = text;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        if (ms_str_is(key, probe_stat_names[i]))
            item->stat[i] = value_of(text);
    }
}

/* Reads the item whose name was the last token; texts are borrowed from the row of the database. */
static void read_item(struct ms_jread *r, struct cmp_item *item)
{
    *item = cmp__item_none;
    item->present = true;
    item->name = r->text;
    enum ms_jtok tok = ms_jread_next(r);
    if (tok != MS_J_OBJ) {
        ms_jread_skip(r, tok);
        return;
    }
    while (ms_jread_next(r) == MS_J_KEY) {
        struct ms_str key = r->text;
        tok = ms_jread_next(r);
        if (tok == MS_J_STR)
            take_field(item, key, r->text);
        else
            ms_jread_skip(r, tok);
    }
}

struct item {
    struct cmp_item cells;
    enum graph__place_of_row place;
};
struct items {
    MS_VEC(struct item) list;
};

static enum ms_rc read_items(struct items *all, struct ms_str json, bool output, struct ms_err *err)
{
    struct ms_jread r;
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return MS_OK;
    while (ms_jread_next(&r) == MS_J_KEY) {
        struct item *slot = ms_vec_push(&all->list);
        if (slot == NULL)
            return ms_no_memory(err);
        slot->place = place_of(r.text, output);
        read_item(&r, &slot->cells);
    }
    return MS_OK;
}

/* ---- tensors --------------------------------------------------------------------- */

static bool has_file(const struct cmp_item *item)
{
    return item->present && item->data_name.n != 0 && !ms_str_is(item->data_name, "-1") &&
           !ms_str_is(item->data_name, "null");
}

static enum ms_rc open_file(const char *dir, const struct cmp_item *item, struct probe_tensor *t,
                            enum cmp_state *state, struct ms_err *err)
{
    /* no data directory other than dir */
    const struct probe_dump nowhere = {.data_dir = {NULL, 0}};
    struct ms_err why = {0};
    if (cmp__open_tensor(&nowhere, dir, item->data_name, t, &why) == MS_OK)
        return MS_OK;
    *state = CMP_STATE_UNREADABLE;
    return why.rc == MS_E_NOMEM ? ms_no_memory(err) : MS_OK;
}

/* Measures two tensor files. A missing file gives a row without figures, as when the graph was
 * built. */
static enum ms_rc measure_files(const struct cmp_setup *c, struct cmp_row *row, const char *t_dir,
                                const char *b_dir, struct ms_err *err)
{
    struct probe_tensor t = {0}, b = {0};
    row->fig.state = row->b.present ? CMP_STATE_NO_DATA : CMP_STATE_UNMATCHED;
    if (!has_file(&row->t) || !has_file(&row->b))
        return MS_OK;
    row->fig.state = CMP_STATE_OK;
    enum ms_rc rc = open_file(t_dir, &row->t, &t, &row->fig.state, err);
    if (rc == MS_OK && row->fig.state == CMP_STATE_OK)
        rc = open_file(b_dir, &row->b, &b, &row->fig.state, err);
    if (rc == MS_OK && row->fig.state == CMP_STATE_OK)
        rc = cmp__measure_two(c->conf.rules, c->conf.ext, &t, &b, &row->fig, err);
    probe_tensor_close(&t);
    probe_tensor_close(&b);
    return rc;
}

/* ---- rows ------------------------------------------------------------------------ */

/* Makes a row of each target item, paired with the golden item of the same section and index. */
static enum ms_rc make_rows(const struct cmp_setup *c, struct cmp_view *v, const struct items *t,
                            const struct items *b, const char *t_dir, const char *b_dir,
                            struct ms_err *err)
{
    size_t next[GRAPH_ROW_PLACES] = {0};
    v->rows.n = 0;
    if (!ms_vec_reserve(&v->rows, t->list.n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < t->list.n; i++) {
        enum graph__place_of_row place = t->list.p[i].place;
        struct cmp_row *row = &v->rows.p[v->rows.n++];
        *row = (struct cmp_row){.t = t->list.p[i].cells, .b = cmp__item_none};
        while (next[place] < b->list.n && b->list.p[next[place]].place != place)
            next[place]++;
        if (next[place] < b->list.n)
            row->b = b->list.p[next[place]++].cells;
        row->grad_same = ms_str_eq(row->t.requires_grad, row->b.requires_grad);
        if (c->mode == PROBE_MODE_SUMMARY)
            MS_TRY(graph__measure_row(c->conf.rules, v, row, err));
        else if (c->mode == PROBE_MODE_TENSOR)
            MS_TRY(measure_files(c, row, t_dir, b_dir, err));
    }
    return MS_OK;
}

static enum ms_rc read_side(struct items *all, const struct graph__stored *s, struct ms_err *err)
{
    MS_TRY(read_items(all, s->in, false, err));
    return read_items(all, s->out, true, err);
}

static enum ms_rc read_rows(struct graph__stored_judge *j, const struct graph__stored *target,
                            const struct graph__stored *golden, struct ms_err *err)
{
    struct items t = {.list = {0}}, b = {.list = {0}};
    enum ms_rc rc = read_side(&t, target, err);
    if (rc == MS_OK)
        rc = read_side(&b, golden, err);
    if (rc == MS_OK)
        rc = make_rows(&j->set, &j->view, &t, &b, target->dir, golden->dir, err);
    ms_vec_free(&t.list);
    ms_vec_free(&b.list);
    return rc;
}

enum ms_rc graph__stored_init(struct graph__stored_judge *j, enum probe_mode mode,
                              struct ms_err *err)
{
    *j = (struct graph__stored_judge){.set = {.mode = mode, .conf.rules = &cmp_rules_ours}};
    return cmp_view_init(&j->view, err);
}

void graph__stored_free(struct graph__stored_judge *j)
{
    cmp_view_free(&j->view);
}

enum ms_rc graph__judge_stored(struct graph__stored_judge *j, struct ms_str name,
                               const struct graph__stored *target,
                               const struct graph__stored *golden, enum graph_state *state,
                               struct ms_err *err)
{
    MS_TRY(read_rows(j, target, golden, err));
    j->view.op = name;
    *state = (enum graph_state)graph__judge_rows(&j->set, false, &j->view);
    return MS_OK;
}

/* ---- items with other figures ------------------------------------------------------ */

/* Writes one item with its own members, and the figures of a row of the view unless row is -1. */
static enum ms_rc put_item(struct ms_buf *out, struct graph__stored_judge *j, struct ms_jread *r,
                           int64_t row, struct ms_err *err)
{
    const char *between = "";
    bool blank = false;
    ms_assert(row >= -1 && row < (int64_t)j->view.rows.n);
    ms_buf_puts(out, out->n > 1 ? ", \"" : "\"");
    ms_buf_str(out, r->text);
    ms_buf_puts(out, "\": {");
    if (ms_jread_next(r) != MS_J_OBJ)
        return ms_jread_reject(r, err, "expected an object of an item's values");
    size_t at = out->n;
    while (ms_jread_next(r) == MS_J_KEY) {
        struct ms_str key = r->text;
        enum ms_jtok tok = ms_jread_next(r);
        const char *from = r->tok;
        ms_jread_skip(r, tok);
        if (graph__is_figure(&j->set, key))
            continue;
        ms_buf_printf(out, "%s\"%.*s\": ", between, MS_STR_ARG(key));
        ms_buf_put(out, from, (size_t)(r->at - from));
        /* the item is only a missing value */
        blank = between[0] == '\0' && ms_str_is(key, "value");
        between = ", ";
    }
    if (row >= 0 && !blank)
        MS_TRY(graph__put_figures(out, &j->set, &j->view, (size_t)row, err));
    if (between[0] == '\0')
        graph__drop_comma(out, at); /* figures begin with a comma */
    ms_buf_putc(out, '}');
    return MS_OK;
}

enum ms_rc graph__put_stored(struct ms_buf *out, struct graph__stored_judge *j, struct ms_str json,
                             int64_t *row, struct ms_err *err)
{
    struct ms_jread r;
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    ms_buf_clear(out);
    ms_buf_putc(out, '{');
    if (ms_jread_next(&r) == MS_J_OBJ) {
        while (ms_jread_next(&r) == MS_J_KEY) {
            MS_TRY(put_item(out, j, &r, *row, err));
            *row += *row >= 0;
        }
    }
    if (ms_jread_next(&r) != MS_J_END)
        return ms_fail(err, MS_E_FORMAT, "items of a node are no JSON object");
    ms_buf_putc(out, '}');
    return ms_buf_check(out, err);
}
