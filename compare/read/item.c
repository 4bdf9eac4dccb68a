/* SPDX-License-Identifier: MIT
 *
 * item: the cells of one row on one side, by the rules of the official tables:
 *
 *     tensor       dtype and shape as written, its statistics
 *     null         None in all of them, no data file
 *     torch.Size   type and value, no statistics
 *     plain value  <class 'int'>, [], the value as maximum, minimum, mean and norm
 */
#include "compare/read/item.h"
#include "compare/read/pytext.h"
#include "probe/base/crc.h"
#include "probe/base/csv.h"
#include "probe/base/num.h"
#include "probe/base/scan.h"

#include <math.h>
#include <strings.h>

#define NONE_TEXT MS_STR("None")
#define NA_TEXT   MS_STR("N/A")

const struct cmp_item cmp__item_none = {
    .name = {"N/A", 3},
    .dtype = {"N/A", 3},
    .shape = {"N/A", 3},
    .requires_grad = {"N/A", 3},
    .stat = {{.text = {"N/A", 3}},
             {.text = {"N/A", 3}},
             {.text = {"N/A", 3}},
             {.text = {"N/A", 3}}},
    .md5 = {"N/A", 3},
    .data_name = {"N/A", 3},
};

enum ms_rc cmp__keep(struct cmp_view *v, struct ms_str *out, struct ms_err *err)
{
    MS_TRY(ms_buf_check(&v->scratch, err));
    *out = ms_arena_str(v->arena, ms_buf_slice(&v->scratch));
    ms_buf_clear(&v->scratch);
    return out->p != NULL ? MS_OK : ms_arena_fail(v->arena, err);
}

/* ---- values -------------------------------------------------------------- */

static struct cmp_value value_of_number(const struct probe_num *n)
{
    struct cmp_value v = {.kind = CMP_VALUE_NUMBER, .v = n->v, .text = n->text};
    v.is_int = n->kind == PROBE_NUM_INT;
    if (isnan(n->v))
        v.kind = CMP_VALUE_NAN, v.text = MS_STR("Nan");
    else if (isinf(n->v) && !v.is_int)
        v.kind = n->v > 0 ? CMP_VALUE_INF : CMP_VALUE_NINF,
        v.text = n->v > 0 ? MS_STR("inf") : MS_STR("-inf");
    return v;
}

struct cmp_value cmp__value_of(const struct probe_num *n)
{
    switch (n->kind) {
    case PROBE_NUM_INT:
    case PROBE_NUM_FLOAT:
        return value_of_number(n);
    case PROBE_NUM_BOOL:
        return (struct cmp_value){.kind = CMP_VALUE_TEXT,
                                  .v = n->v,
                                  .text = n->v != 0 ? MS_STR("True") : MS_STR("False")};
    default:
        return (struct cmp_value){.kind = CMP_VALUE_TEXT, .text = NONE_TEXT};
    }
}

/* Classifies a text. A text that is a number is subtracted as a number: a communication writes its
 * ranks like this. */
static struct cmp_value value_of_text(struct ms_str text)
{
    double x;
    if (ms_str_is_folded(text, "nan"))
        return (struct cmp_value){
            .kind = CMP_VALUE_NAN, .is_text = true, .v = NAN, .text = MS_STR("Nan")};
    if (ms_str_is_folded(text, "inf"))
        return (struct cmp_value){
            .kind = CMP_VALUE_INF, .is_text = true, .v = HUGE_VAL, .text = text};
    if (ms_str_is(text, "N/A"))
        return (struct cmp_value){.kind = CMP_VALUE_NA, .is_text = true, .text = text};
    if (ms_str_is_folded(text,
                         "infinity")) /* pandas parses "infinity" as a number; "inf" stays text */
        return (struct cmp_value){
            .kind = CMP_VALUE_NUMBER, .is_text = true, .v = HUGE_VAL, .text = text};
    if (ms_csv_number(text, &x) && isfinite(x))
        return (struct cmp_value){.kind = CMP_VALUE_NUMBER, .is_text = true, .v = x, .text = text};
    const bool device =
        ms_str_has(text, "npu") || ms_str_has(text, "cpu") || ms_str_has(text, "cuda");
    return (struct cmp_value){.kind = device ? CMP_VALUE_DEVICE : CMP_VALUE_TEXT, .text = text};
}

/* Tells whether a number is written as Python writes it: with the fewest digits. Nearly all numbers
 * of a dump are, and are shown unchanged. */
static bool is_python_float(struct ms_str s)
{
    uint32_t n = s.n;
    bool dot = memchr(s.p, '.', n) != NULL;
    if (memchr(s.p, 'E', n) != NULL)
        return false;
    if (memchr(s.p, 'e', n) != NULL)
        return n > 3 && s.p[n - 1] >= '0' && (s.p[n - 3] == '-' || s.p[n - 3] == '+' || n > 4);
    return dot && n <= 24 && (s.p[n - 1] != '0' || s.p[n - 2] == '.');
}

static enum ms_rc show_number(struct cmp_view *v, struct cmp_value *x, bool as_float,
                              struct ms_err *err)
{
    if (x->kind != CMP_VALUE_NUMBER || x->is_text || (x->is_int && !as_float) ||
        (!x->is_int && is_python_float(x->text)))
        return MS_OK;
    char text[MS_NUM_MAX];
    ms_buf_put(&v->scratch, text, ms_num_f64(text, x->v));
    x->is_int = false;
    return cmp__keep(v, &x->text, err);
}

enum ms_rc cmp__item_show_floats(struct cmp_view *v, struct cmp_item *item,
                                 const bool as_float[PROBE_STATS], struct ms_err *err)
{
    for (unsigned i = 0; i < PROBE_STATS; i++)
        MS_TRY(show_number(v, &item->stat[i], as_float[i], err));
    return MS_OK;
}

/* ---- the kinds of leaves ------------------------------------------------- */

static enum ms_rc keep_str(struct cmp_view *v, struct ms_str json, struct ms_str *out,
                           struct ms_err *err)
{
    struct ms_buf text = {.max = 1 << 20};
    cmp__py_str(&v->scratch, json, &text);
    ms_buf_free(&text);
    return cmp__keep(v, out, err);
}

/* Keeps a shape without the white space of the file. A shape is a list of integers, so no string
 * can contain the white space. */
static enum ms_rc keep_shape(struct cmp_view *v, struct ms_str json, struct ms_str *out,
                             struct ms_err *err)
{
    const char *end = json.p + json.n;
    for (const char *p = ms_scan_space(json.p, end); p != end; p = ms_scan_space(p, end)) {
        bool comma = *p == ',';
        ms_buf_putc(&v->scratch, *p++);
        if (comma)
            ms_buf_putc(&v->scratch, ' ');
    }
    return cmp__keep(v, out, err);
}

static struct ms_str class_of(enum ms_jtok tok, bool is_int)
{
    switch (tok) {
    case MS_J_NUM:
        return is_int ? MS_STR("<class 'int'>") : MS_STR("<class 'float'>");
    case MS_J_STR:
        return MS_STR("<class 'str'>");
    case MS_J_TRUE:
    case MS_J_FALSE:
        return MS_STR("<class 'bool'>");
    case MS_J_ARR:
        return MS_STR("<class 'list'>");
    case MS_J_OBJ:
        return MS_STR("<class 'dict'>");
    default:
        return MS_STR("<class 'NoneType'>");
    }
}

static void set_stats(struct cmp_item *item, struct cmp_value x)
{
    for (unsigned i = 0; i < PROBE_STATS; i++)
        item->stat[i] = x;
}

static struct probe_num number_of(const struct ms_jread *r)
{
    struct probe_num n = {.kind = ms_jread_is_int(r) ? PROBE_NUM_INT : PROBE_NUM_FLOAT,
                          .text = r->text};
    ms_jread_f64(r, &n.v);
    return n;
}

static enum ms_rc set_number_value(struct cmp_view *v, const struct cmp__side *s,
                                   const struct ms_jread *r, struct cmp_item *item,
                                   struct ms_err *err)
{
    struct probe_num n = number_of(r);
    set_stats(item, cmp__value_of(&n));
    return cmp__item_show_floats(v, item, s->as_float, err);
}

static bool is_peer(struct ms_str path)
{
    static const char *const names[] = {"src", "dst", "group_src", "group_dst"};
    struct ms_str last = probe_name_last(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ms_str_is(last, names[i]))
            return true;
    }
    return false;
}

/* Tells whether the official tool finds no value: of a torch.memory_format the key is `format`, and
 * for the peer of a communication it reads `value`, not group_ranks. */
static bool has_no_value(const struct probe_leaf *leaf, bool peer)
{
    return leaf->value_json.n == 0 || ms_str_is(leaf->type, "torch.memory_format") ||
           (peer && leaf->kind == PROBE_LEAF_GROUP);
}

/* Fills the cells of a leaf that has a value but no statistics: the value is in all four
 * columns. */
static enum ms_rc set_plain_value(struct cmp_view *v, const struct cmp__side *s,
                                  const struct probe_leaf *leaf, bool peer, struct cmp_item *item,
                                  struct ms_err *err)
{
    struct ms_jread r;
    ms_jread_init(&r, leaf->value_json.p, leaf->value_json.n, 0);
    enum ms_jtok tok = has_no_value(leaf, peer) ? MS_J_NULL : ms_jread_next(&r);
    item->shape = MS_STR("[]");
    if (peer || leaf->kind == PROBE_LEAF_GROUP || ms_str_is(leaf->type, "ellipsis"))
        item->dtype = leaf->type;
    else
        item->dtype = class_of(tok, tok == MS_J_NUM && ms_jread_is_int(&r));
    if (tok == MS_J_NUM && !peer)
        return set_number_value(v, s, &r, item, err);
    struct ms_str text = NONE_TEXT;
    if (tok != MS_J_NULL)
        MS_TRY(keep_str(v, leaf->value_json, &text, err));
    set_stats(item, value_of_text(text));
    return MS_OK;
}

/* Fills the cells of a torch.Size or slice, whose value is in the column of the shape. */
static enum ms_rc set_sized_value(struct cmp_view *v, const struct probe_leaf *leaf,
                                  struct cmp_item *item, struct ms_err *err)
{
    set_stats(item, (struct cmp_value){.kind = CMP_VALUE_TEXT, .text = NONE_TEXT});
    item->dtype = leaf->type;
    if (!ms_str_is(leaf->type, "slice"))
        return keep_str(v, leaf->value_json, &item->shape, err);
    struct ms_jread r;
    unsigned n = 0;
    ms_jread_init(&r, leaf->value_json.p, leaf->value_json.n, 0);
    if (leaf->value_json.n != 0 && ms_jread_next(&r) == MS_J_ARR) {
        for (enum ms_jtok tok; (tok = ms_jread_next(&r)) > MS_J_END && tok != MS_J_ARR_END; n++)
            ms_jread_skip(&r, tok);
    }
    ms_buf_printf(&v->scratch, "(%u,)", n);
    return cmp__keep(v, &item->shape, err);
}

/* Keeps a statistic that is text, as of a tensor on a device without values. */
static enum ms_rc keep_text_value(struct cmp_view *v, struct ms_str json, struct cmp_value *x,
                                  struct ms_err *err)
{
    struct ms_str text;
    MS_TRY(keep_str(v, json, &text, err));
    *x = value_of_text(text);
    return MS_OK;
}

static enum ms_rc set_tensor_value(struct cmp_view *v, const struct cmp__side *s,
                                   const struct probe_leaf *leaf, struct cmp_item *item,
                                   struct ms_err *err)
{
    item->dtype = leaf->dtype_text;
    item->type = leaf->dtype;
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        item->stat[i] = cmp__value_of(&leaf->stat[i]);
        if (leaf->stat[i].kind == PROBE_NUM_OTHER)
            MS_TRY(keep_text_value(v, leaf->stat[i].text, &item->stat[i], err));
        MS_TRY(show_number(v, &item->stat[i], s->as_float[i], err));
    }
    if (leaf->shape_json.n == 0) {
        item->shape = NONE_TEXT;
        return MS_OK;
    }
    return keep_shape(v, leaf->shape_json, &item->shape, err);
}

static bool is_tensor(const struct probe_leaf *leaf)
{
    return leaf->kind == PROBE_LEAF_TENSOR || leaf->dtype_text.n != 0;
}

static enum ms_rc set_leaf_value(struct cmp_view *v, const struct cmp__side *s,
                                 const struct probe_row *row, const struct probe_leaf *leaf,
                                 struct cmp_item *item, struct ms_err *err)
{
    bool peer = is_peer(probe_row_path(s->dump, row));
    switch (leaf->kind) {
    case PROBE_LEAF_NULL:
        item->dtype = NONE_TEXT;
        item->shape = NONE_TEXT;
        set_stats(item, (struct cmp_value){.kind = CMP_VALUE_TEXT, .text = NONE_TEXT});
        return MS_OK;
    default:
        if (is_tensor(leaf))
            return set_tensor_value(v, s, leaf, item, err);
        if (ms_str_is(leaf->type, "torch.Size") || ms_str_is(leaf->type, "slice"))
            return set_sized_value(v, leaf, item, err);
        return set_plain_value(v, s, leaf, peer, item, err);
    }
}

/* ---- digests and files --------------------------------------------------- */

/* Tells whether a leaf names ranks: a process group or the peer of a communication. */
static bool names_ranks(const struct probe_leaf *leaf, struct ms_str path)
{
    bool sized = ms_str_is(leaf->type, "torch.Size") || ms_str_is(leaf->type, "slice") ||
                 ms_str_is(leaf->type, "ellipsis");
    return leaf->kind == PROBE_LEAF_GROUP ||
           (leaf->kind != PROBE_LEAF_TENSOR && leaf->dtype_text.n == 0 && !sized && is_peer(path));
}

/* Fills in the digest: the recorded md5, or the CRC of the value's text. The digest of ranks is
 * their text itself. */
static enum ms_rc set_digest(struct cmp_view *v, const struct probe_leaf *leaf, bool ranks,
                             struct cmp_item *item, struct ms_err *err)
{
    if (leaf->kind == PROBE_LEAF_NULL) {
        item->md5 = NA_TEXT;
        return MS_OK;
    }
    const struct cmp_value *value = &item->stat[PROBE_STAT_MAX];
    if (ranks && value->text.n != 0) {
        item->md5 = value->kind == CMP_VALUE_NAN ? MS_STR("nan") : value->text;
        return MS_OK;
    }
    if (leaf->md5.n != 0) {
        item->md5 = leaf->md5;
        return MS_OK;
    }
    struct ms_buf text = {.max = 1 << 20};
    if (!has_no_value(leaf, false))
        cmp__py_str(&v->scratch, leaf->value_json, &text);
    ms_buf_free(&text);
    uint32_t crc = ms_crc32(0, v->scratch.n != 0 ? v->scratch.p : "", v->scratch.n);
    ms_buf_clear(&v->scratch);
    ms_buf_printf(&v->scratch, "%08x", crc);
    return cmp__keep(v, &item->md5, err);
}

/* Replaces a text that contains escapes by its unescaped copy. */
static enum ms_rc unescape_text(struct cmp_view *v, struct ms_str *text, struct ms_err *err)
{
    if (text->n == 0 || ms_str_find(*text, '\\') < 0)
        return MS_OK;
    struct ms_jread r;
    struct ms_str plain;
    struct ms_buf scratch = {.max = 1 << 20};
    ms_jread_init(&r, text->p - 1, (size_t)text->n + 2, 0);
    enum ms_rc rc = MS_OK;
    if (ms_jread_next(&r) == MS_J_STR && ms_jread_text(&r, &scratch, &plain, NULL) == MS_OK) {
        ms_buf_str(&v->scratch, plain);
        rc = cmp__keep(v, text, err);
    }
    ms_buf_free(&scratch);
    return rc;
}

/* Replaces the leaf of a P2P operation by the leaf of its tensor. */
static void look_into_p2p(struct probe_leaf *leaf)
{
    struct ms_jread r;
    struct ms_str json = leaf->json;
    ms_jread_init(&r, json.p, json.n, 0);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return;
    while (ms_jread_next(&r) == MS_J_KEY) {
        bool here = ms_str_is(r.text, "tensor");
        enum ms_jtok tok = ms_jread_next(&r);
        const char *from = r.tok;
        ms_jread_skip(&r, tok);
        if (here && tok == MS_J_OBJ) {
            struct ms_str inner = {from, (uint32_t)(r.at - from)};
            probe_leaf_parse(leaf, inner, PROBE_LEAF_TENSOR);
            leaf->json = json;
            return;
        }
    }
}

void cmp__item_leaf(const struct cmp__side *s, uint32_t row, struct probe_leaf *leaf)
{
    probe_row_leaf(s->dump, cmp__side_row(s, row), leaf);
    if (leaf->kind == PROBE_LEAF_P2P)
        look_into_p2p(leaf);
}

void cmp__item_numbers(const struct cmp__side *s, uint32_t row, const struct probe_leaf *leaf,
                       struct probe_num stat[PROBE_STATS])
{
    struct ms_jread r;
    struct probe_num value = {.kind = PROBE_NUM_OTHER};
    ms_jread_init(&r, leaf->value_json.p, leaf->value_json.n, 0);
    bool told = !is_tensor(leaf) && leaf->value_json.n != 0 && ms_jread_next(&r) == MS_J_NUM;
    if (told && !is_peer(probe_row_path(s->dump, cmp__side_row(s, row))))
        value = number_of(&r);
    for (unsigned i = 0; i < PROBE_STATS; i++)
        stat[i] = is_tensor(leaf) ? leaf->stat[i] : value;
}

enum ms_rc cmp__item_of_leaf(const struct cmp__side *s, uint32_t row,
                             const struct probe_leaf *parsed, enum probe_mode mode,
                             struct cmp_view *v, struct cmp_item *item, struct ms_err *err)
{
    const struct probe_row *r = cmp__side_row(s, row);
    struct probe_leaf tensor;
    const struct probe_leaf *leaf = parsed;
    *item = (struct cmp_item){.present = true, .section = r->section, .json = leaf->json};
    if (leaf->kind == PROBE_LEAF_P2P) {
        tensor = *leaf;
        look_into_p2p(&tensor);
        leaf = &tensor;
    }
    cmp__side_name(s, row, false, &v->scratch);
    MS_TRY(cmp__keep(v, &item->name, err));
    MS_TRY(set_leaf_value(v, s, r, leaf, item, err));
    item->requires_grad = leaf->requires_grad < 0    ? NA_TEXT
                          : leaf->requires_grad != 0 ? MS_STR("True")
                                                     : MS_STR("False");
    item->data_name = leaf->data_name.n != 0 ? leaf->data_name : MS_STR("-1");
    if (mode == PROBE_MODE_MD5)
        MS_TRY(set_digest(v, leaf, names_ranks(leaf, probe_row_path(s->dump, r)), item, err));
    MS_TRY(unescape_text(v, &item->dtype, err));
    return unescape_text(v, &item->data_name, err);
}

enum ms_rc cmp__item_make(const struct cmp__side *s, uint32_t row, enum probe_mode mode,
                          struct cmp_view *v, struct cmp_item *item, struct ms_err *err)
{
    struct probe_leaf leaf;
    probe_row_leaf(s->dump, cmp__side_row(s, row), &leaf);
    return cmp__item_of_leaf(s, row, &leaf, mode, v, item, err);
}
