/* SPDX-License-Identifier: MIT
 *
 * config_value: JSON, Python's equality, and Python's texts of plain values.
 */
#include "compare/config/config_value.h"

#include "compare/read/pytext.h"
#include "probe/base/jread.h"
#include "probe/base/num.h"

#include <math.h>

enum { DEPTH = 64, MAX_TEXT = 64 << 20 };

/* ---- making values ------------------------------------------------------------------------- */

struct ms_plain *cfg_text(struct ms_arena *a, struct ms_str s)
{
    struct ms_plain *v = ms_plain_new(a, MS_PLAIN_TEXT);
    if (v == NULL)
        return NULL;
    v->s = ms_arena_str(a, s);
    return v->s.p != NULL ? v : NULL;
}

struct ms_plain *cfg_real(struct ms_arena *a, double f)
{
    struct ms_plain *v = ms_plain_new(a, MS_PLAIN_REAL);
    if (v != NULL)
        v->f = f;
    return v;
}

struct ms_plain *cfg_int(struct ms_arena *a, int64_t i)
{
    struct ms_plain *v = ms_plain_new(a, MS_PLAIN_INT);
    if (v != NULL)
        v->i = i;
    return v;
}

struct ms_plain *cfg_bool(struct ms_arena *a, bool b)
{
    struct ms_plain *v = ms_plain_new(a, MS_PLAIN_BOOL);
    if (v != NULL)
        v->i = b;
    return v;
}

static struct ms_plain **place_of(const struct ms_plain *dict, struct ms_str key)
{
    for (uint32_t i = 0; dict != NULL && dict->kind == MS_PLAIN_DICT && i + 1 < dict->n; i += 2) {
        if (dict->item[i]->kind == MS_PLAIN_TEXT && ms_str_eq(dict->item[i]->s, key))
            return &dict->item[i + 1];
    }
    return NULL;
}

struct ms_plain *cfg_get(const struct ms_plain *dict, struct ms_str key)
{
    struct ms_plain **place = place_of(dict, key);
    return place != NULL ? *place : NULL;
}

enum ms_rc cfg_set(struct ms_arena *a, struct ms_plain *dict, struct ms_str key,
                   struct ms_plain *value, struct ms_err *err)
{
    struct ms_plain **place = place_of(dict, key);
    if (value == NULL)
        return ms_arena_fail(a, err);
    if (place != NULL) {
        *place = value;
        return MS_OK;
    }
    struct ms_plain *name = cfg_text(a, key);
    if (name == NULL || !ms_plain_add(a, dict, name) || !ms_plain_add(a, dict, value))
        return ms_arena_fail(a, err);
    return MS_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct parsing {
    struct ms_jread r;
    struct ms_arena *a;
    struct ms_buf scratch;
    struct ms_err *err;
};

static enum ms_rc parse_value(struct parsing *p, enum ms_jtok tok, int depth,
                              struct ms_plain **out);

static enum ms_rc parse_text(struct parsing *p, struct ms_plain **out)
{
    struct ms_str text;
    MS_TRY(ms_jread_text(&p->r, &p->scratch, &text, p->err));
    *out = cfg_text(p->a, text);
    return *out != NULL ? MS_OK : ms_arena_fail(p->a, p->err);
}

static enum ms_rc parse_items(struct parsing *p, bool keyed, int depth, struct ms_plain *to)
{
    for (;;) {
        enum ms_jtok tok = ms_jread_next(&p->r);
        struct ms_plain *item;
        if (tok == MS_J_ERR)
            return ms_jread_fail(&p->r, p->err);
        if (tok == (keyed ? MS_J_OBJ_END : MS_J_ARR_END))
            return MS_OK;
        if (keyed) {
            MS_TRY(parse_text(p, &item));
            const struct ms_str key = item->s;
            tok = ms_jread_next(&p->r);
            MS_TRY(parse_value(p, tok, depth - 1, &item));
            MS_TRY(cfg_set(p->a, to, key, item, p->err));
            continue;
        }
        MS_TRY(parse_value(p, tok, depth - 1, &item));
        if (!ms_plain_add(p->a, to, item))
            return ms_arena_fail(p->a, p->err);
    }
}

static enum ms_rc parse_value(struct parsing *p, enum ms_jtok tok, int depth, struct ms_plain **out)
{
    int64_t i;
    double f = 0;
    if (depth == 0)
        return ms_jread_reject(&p->r, p->err, "values are nested more than %d deep", DEPTH);
    switch (tok) {
    case MS_J_ERR:
        return ms_jread_fail(&p->r, p->err);
    case MS_J_OBJ:
    case MS_J_ARR:
        *out = ms_plain_new(p->a, tok == MS_J_OBJ ? MS_PLAIN_DICT : MS_PLAIN_LIST);
        return *out != NULL ? parse_items(p, tok == MS_J_OBJ, depth, *out)
                            : ms_arena_fail(p->a, p->err);
    case MS_J_STR:
        return parse_text(p, out);
    case MS_J_NUM:
        if (ms_jread_is_int(&p->r) && ms_jread_i64(&p->r, &i)) {
            *out = cfg_int(p->a, i);
            break;
        }
        (void)ms_jread_f64(&p->r, &f);
        *out = cfg_real(p->a, f);
        break;
    case MS_J_TRUE:
    case MS_J_FALSE:
        *out = cfg_bool(p->a, tok == MS_J_TRUE);
        break;
    default:
        *out = ms_plain_new(p->a, MS_PLAIN_NONE);
    }
    return *out != NULL ? MS_OK : ms_arena_fail(p->a, p->err);
}

enum ms_rc cfg_value_parse(const struct ms_plain **v, const char *name, struct ms_str json,
                           struct ms_arena *a, struct ms_err *err)
{
    struct parsing p = {.a = a, .scratch = {.max = MAX_TEXT}, .err = err};
    struct ms_plain *root = NULL;
    ms_jread_init(&p.r, json.p, json.n, 0);
    enum ms_jtok tok = ms_jread_next(&p.r);
    enum ms_rc rc = parse_value(&p, tok, DEPTH, &root);
    if (rc == MS_OK && ms_jread_next(&p.r) != MS_J_END)
        rc = ms_jread_fail(&p.r, err);
    ms_buf_free(&p.scratch);
    *v = root;
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", name);
}

void cfg_value_json(struct ms_jwrite *w, const struct ms_plain *v)
{
    switch (v->kind) {
    case MS_PLAIN_BOOL:
        ms_jwrite_bool(w, v->i != 0);
        break;
    case MS_PLAIN_INT:
        ms_jwrite_i64(w, v->i);
        break;
    case MS_PLAIN_REAL:
        ms_jwrite_f64(w, v->f);
        break;
    case MS_PLAIN_TEXT:
        ms_jwrite_str(w, v->s);
        break;
    case MS_PLAIN_DICT:
        ms_jwrite_obj(w);
        for (uint32_t i = 0; i + 1 < v->n; i += 2) {
            ms_jwrite_key(w, v->item[i]->s);
            cfg_value_json(w, v->item[i + 1]);
        }
        ms_jwrite_obj_end(w);
        break;
    case MS_PLAIN_LIST:
    case MS_PLAIN_TUPLE:
        ms_jwrite_arr(w);
        for (uint32_t i = 0; i < v->n; i++)
            cfg_value_json(w, v->item[i]);
        ms_jwrite_arr_end(w);
        break;
    default:
        ms_jwrite_null(w);
    }
}

/* ---- equality ------------------------------------------------------------------------------- */

static bool is_number(const struct ms_plain *v)
{
    return v->kind == MS_PLAIN_BOOL || v->kind == MS_PLAIN_INT || v->kind == MS_PLAIN_REAL;
}

static double number_of(const struct ms_plain *v)
{
    return v->kind == MS_PLAIN_REAL ? v->f : (double)v->i;
}

static bool equal_numbers(const struct ms_plain *x, const struct ms_plain *y)
{
    if (x->kind != MS_PLAIN_REAL && y->kind != MS_PLAIN_REAL)
        return x->i == y->i;
    return number_of(x) == number_of(y);
}

static bool equal_items(const struct ms_plain *x, const struct ms_plain *y)
{
    if (x->n != y->n)
        return false;
    if (x->kind == MS_PLAIN_DICT) {
        for (uint32_t i = 0; i + 1 < x->n; i += 2) {
            const struct ms_plain *other = cfg_get(y, x->item[i]->s);
            if (other == NULL || !cfg_value_equal(x->item[i + 1], other))
                return false;
        }
        return true;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        if (!cfg_value_equal(x->item[i], y->item[i]))
            return false;
    }
    return true;
}

bool cfg_value_equal(const struct ms_plain *x, const struct ms_plain *y)
{
    if (x == NULL || y == NULL)
        return x == y;
    if (is_number(x) && is_number(y))
        return equal_numbers(x, y);
    if (x->kind != y->kind)
        return false;
    if (x->kind == MS_PLAIN_TEXT)
        return ms_str_eq(x->s, y->s);
    return x->kind == MS_PLAIN_NONE || equal_items(x, y);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void put_items(struct ms_buf *out, const struct ms_plain *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        if (i != 0)
            ms_buf_puts(out, v->kind == MS_PLAIN_DICT && i % 2 != 0 ? ": " : ", ");
        cfg_value_repr(out, v->item[i]);
    }
}

static void put_real(struct ms_buf *out, double f)
{
    if (isnan(f) || isinf(f)) {
        ms_buf_puts(out, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
        return;
    }
    char *at = ms_buf_room(out, MS_NUM_MAX);
    if (at != NULL)
        out->n += ms_num_f64(at, f);
}

void cfg_value_repr(struct ms_buf *out, const struct ms_plain *v)
{
    switch (v->kind) {
    case MS_PLAIN_BOOL:
        ms_buf_puts(out, v->i != 0 ? "True" : "False");
        break;
    case MS_PLAIN_INT:
        ms_buf_printf(out, "%lld", (long long)v->i);
        break;
    case MS_PLAIN_REAL:
        put_real(out, v->f);
        break;
    case MS_PLAIN_TEXT:
        cmp__py_repr_text(out, v->s);
        break;
    case MS_PLAIN_TUPLE:
    case MS_PLAIN_LIST:
    case MS_PLAIN_DICT:
        ms_buf_putc(out, "([{"[v->kind - MS_PLAIN_TUPLE]);
        put_items(out, v);
        ms_buf_puts(out, v->kind == MS_PLAIN_TUPLE && v->n == 1 ? "," : "");
        ms_buf_putc(out, ")]}"[v->kind - MS_PLAIN_TUPLE]);
        break;
    default:
        ms_buf_puts(out, "None");
    }
}

void cfg_value_str(struct ms_buf *out, const struct ms_plain *v)
{
    if (v->kind == MS_PLAIN_TEXT)
        ms_buf_str(out, v->s);
    else
        cfg_value_repr(out, v);
}
