/* SPDX-License-Identifier: MIT
 *
 * leaf: recognises and reads the description of one tensor or value.
 *
 * A leaf is an object with a string `type`, or with `class_type`; the key may be anywhere in the
 * object. A dict of the user with a key `type` that holds another leaf is a container.
 */
#include "probe/dump/leaf.h"

#include <math.h>

#include "probe/base/scan.h"

#include <assert.h>

const char *const probe_stat_names[PROBE_STATS] = {"Max", "Min", "Mean", "Norm"};

static bool key_is(struct ms_str key, struct ms_str name)
{
    return ms_str_eq(key, name);
}

static void note_type(struct probe_leaf_scan *s, struct ms_str type, bool class_type)
{
    s->typed = true;
    s->class_type |= class_type;
    s->type = type;
}

static bool is_stat(struct ms_str key, unsigned *which)
{
    if (key.n != 3 && key.n != 4)
        return false;
    *which = ms_str_is(key, "Max")    ? PROBE_STAT_MAX
             : ms_str_is(key, "Min")  ? PROBE_STAT_MIN
             : ms_str_is(key, "Mean") ? PROBE_STAT_MEAN
             : ms_str_is(key, "Norm") ? PROBE_STAT_NORM
                                      : PROBE_STATS;
    return *which != PROBE_STATS;
}

/* Notes a statistic. Where a key is there twice the last one counts, as in probe_leaf_parse. */
static void note_stat(struct probe_leaf_scan *s, struct ms_str key, enum ms_jtok value,
                      const struct ms_jread *r)
{
    unsigned which;
    if (!is_stat(key, &which))
        return;
    bool finite = value == MS_J_NUM && ms_is_digit(r->text.p[r->text.n - 1]);
    unsigned bit = 1U << which;
    unsigned reals = finite && !ms_jread_is_int(r) ? s->reals | bit : s->reals & ~bit;
    s->reals = (uint8_t)reals;
}

void probe_leaf_note(struct probe_leaf_scan *s, struct ms_str key, enum ms_jtok value,
                     const struct ms_jread *r)
{
    switch (key.n) {
    case 3:
        if (key_is(key, MS_STR("md5")))
            s->flags |= PROBE_LEAF_HAS_MD5;
        else
            note_stat(s, key, value, r);
        break;
    case 4:
        if (value == MS_J_STR && key_is(key, MS_STR("type")))
            note_type(s, r->text, false);
        else
            note_stat(s, key, value, r);
        break;
    case 5:
        s->dtype |= value == MS_J_STR && key_is(key, MS_STR("dtype"));
        s->shape |= value == MS_J_ARR && key_is(key, MS_STR("shape"));
        s->value |= key_is(key, MS_STR("value"));
        break;
    case 6:
        s->value |= key_is(key, MS_STR("format"));
        break;
    case 9:
        if (value == MS_J_STR && key_is(key, MS_STR("data_name")))
            s->flags |= PROBE_LEAF_HAS_DATA_NAME;
        break;
    case 10:
        if (value == MS_J_STR && key_is(key, MS_STR("class_type")))
            note_type(s, r->text, true);
        break;
    case 11:
        s->group |= value == MS_J_ARR && key_is(key, MS_STR("group_ranks"));
        break;
    default:
        break;
    }
}

static bool is_tensor_type(struct ms_str type)
{
    return ms_str_starts(type, MS_STR("torch.")) || ms_str_starts(type, MS_STR("mindspore.")) ||
           ms_str_starts(type, MS_STR("mindtorch.")) || ms_str_is(type, "numpy.ndarray");
}

enum probe_leaf_kind probe_leaf_kind_of(const struct probe_leaf_scan *s)
{
    assert(s->typed);
    if (s->class_type)
        return PROBE_LEAF_P2P;
    if (s->dtype && s->shape && is_tensor_type(s->type))
        return PROBE_LEAF_TENSOR;
    if (s->group)
        return PROBE_LEAF_GROUP;
    return s->value ? PROBE_LEAF_VALUE : PROBE_LEAF_OTHER;
}

uint8_t probe_leaf_flags_of(const struct probe_leaf_scan *s, enum probe_leaf_kind kind)
{
    bool real = kind == PROBE_LEAF_TENSOR && s->reals == (1U << PROBE_STATS) - 1;
    return (uint8_t)(s->flags | (real ? PROBE_LEAF_REAL_STATS : 0));
}

/* ---- reading ---------------------------------------------------------- */

static struct probe_num num_of(const struct ms_jread *r, enum ms_jtok tok)
{
    struct probe_num n = {.kind = PROBE_NUM_OTHER};
    switch (tok) {
    case MS_J_NUM:
        n.kind = ms_jread_is_int(r) ? PROBE_NUM_INT : PROBE_NUM_FLOAT;
        n.text = r->text;
        ms_jread_f64(r, &n.v);
        break;
    case MS_J_TRUE:
    case MS_J_FALSE:
        n.kind = PROBE_NUM_BOOL;
        n.v = tok == MS_J_TRUE;
        n.text = tok == MS_J_TRUE ? MS_STR("true") : MS_STR("false");
        break;
    case MS_J_NULL:
        n.kind = PROBE_NUM_NULL;
        n.text = MS_STR("null");
        break;
    default:
        break;
    }
    return n;
}

/* Returns the text of a string, or of a number as written (a 0-dim xor digest is one). */
static struct ms_str scalar_text(const struct ms_jread *r, enum ms_jtok tok)
{
    return tok == MS_J_STR || tok == MS_J_NUM ? r->text : MS_STR("");
}

static bool is_placeholder(struct ms_str key)
{
    return ms_str_is(key, "tensor_stat_index") || ms_str_is(key, "md5_index") ||
           ms_str_is(key, "is_nan_index");
}

static void take_text(struct probe_leaf *leaf, struct ms_str key, const struct ms_jread *r,
                      enum ms_jtok tok)
{
    if (tok == MS_J_STR && (ms_str_is(key, "type") || ms_str_is(key, "class_type"))) {
        leaf->type = r->text;
    } else if (tok == MS_J_STR && ms_str_is(key, "dtype")) {
        leaf->dtype_text = r->text;
        leaf->dtype = ms_dtype_parse(leaf->dtype_text);
    } else if (ms_str_is(key, "md5")) {
        leaf->md5 = scalar_text(r, tok);
    } else if (tok == MS_J_STR && ms_str_is(key, "data_name")) {
        leaf->data_name = r->text;
    } else if (ms_str_is(key, "requires_grad")) {
        leaf->requires_grad = tok == MS_J_TRUE ? 1 : tok == MS_J_FALSE ? 0 : -1;
    } else if (is_placeholder(key)) {
        leaf->unfinished |= tok == MS_J_NUM;
    }
}

static void take_json(struct probe_leaf *leaf, struct ms_str key, struct ms_str json)
{
    if (key.n < 5)
        return;
    if (ms_str_is(key, "shape") && json.p[0] == '[')
        leaf->shape_json = json;
    else if (ms_str_is(key, "value") || ms_str_is(key, "format") || ms_str_is(key, "group_ranks"))
        leaf->value_json = json;
}

/* Takes file and shape of a point-to-point operation from its tensor. */
static void take_tensor(struct probe_leaf *leaf, struct ms_str key, struct ms_str json)
{
    struct probe_leaf tensor;
    if (leaf->kind != PROBE_LEAF_P2P || !ms_str_is(key, "tensor"))
        return;
    probe_leaf_parse(&tensor, json, PROBE_LEAF_TENSOR);
    leaf->data_name = tensor.data_name;
    leaf->shape_json = tensor.shape_json;
    leaf->escaped |= tensor.escaped;
}

void probe_leaf_parse(struct probe_leaf *leaf, struct ms_str json, enum probe_leaf_kind kind)
{
    *leaf = (struct probe_leaf){.kind = kind, .json = json, .requires_grad = -1};
    struct ms_jread r;
    ms_jread_init(&r, json.p, json.n, MS_JREAD_KNOWN);
    if (ms_jread_next(&r) != MS_J_OBJ)
        return;
    while (ms_jread_next(&r) == MS_J_KEY) {
        struct ms_str key = r.text;
        unsigned which;
        enum ms_jtok tok = ms_jread_next(&r);
        const char *from = r.tok;
        leaf->escaped |= tok == MS_J_STR && r.escaped;
        const bool stat = is_stat(key, &which);
        if (stat)
            leaf->stat[which] = num_of(&r, tok);
        else
            take_text(leaf, key, &r, tok);
        if (ms_jread_skip(&r, tok) == MS_J_ERR)
            return;
        const struct ms_str value = {from, (uint32_t)(r.at - from)};
        if (stat && leaf->stat[which].kind == PROBE_NUM_OTHER)
            leaf->stat[which].text = value;
        take_json(leaf, key, value);
        take_tensor(leaf, key, value);
    }
}

/* Reads the number at *p and the separator behind it. */
static bool plain_dim(const char **p, const char *end, uint64_t *dim)
{
    enum { DIGITS = 18 };
    const char *from = *p = ms_scan_space(*p, end);
    uint64_t v = 0;
    for (; *p < end && ms_is_digit(**p) && *p - from <= DIGITS; ++*p)
        v = 10 * v + (uint64_t)(**p - '0');
    ptrdiff_t digits = *p - from;
    *dim = v;
    *p = ms_scan_space(*p, end);
    return digits != 0 && digits <= DIGITS && (digits == 1 || *from != '0') && *p < end;
}

/* Fast path for a list of whole numbers as every dump writes it; false: parse the list with the
 * JSON reader. */
static bool plain_shape(struct ms_str json, uint64_t *dim, unsigned max, unsigned *ndim)
{
    if (json.n == 0 || json.p[0] != '[')
        return false;
    const char *p = json.p, *end = json.p + json.n;
    char c = ',';
    for (*ndim = 0; c == ',' && *ndim < max; ++*ndim) {
        p++;
        if (!plain_dim(&p, end, &dim[*ndim]))
            return false;
        c = *p;
    }
    return c == ']' && p + 1 == end;
}

bool probe_leaf_shape(const struct probe_leaf *leaf, uint64_t *dim, unsigned max, unsigned *ndim)
{
    if (plain_shape(leaf->shape_json, dim, max, ndim))
        return true;
    struct ms_jread r;
    enum ms_jtok tok;
    int64_t v;
    *ndim = 0;
    ms_jread_init(&r, leaf->shape_json.p, leaf->shape_json.n, 0);
    if (leaf->shape_json.n == 0 || ms_jread_next(&r) != MS_J_ARR)
        return false;
    while ((tok = ms_jread_next(&r)) == MS_J_NUM) {
        if (*ndim == max || !ms_jread_i64(&r, &v) || v < 0)
            return false;
        dim[(*ndim)++] = (uint64_t)v;
    }
    return tok == MS_J_ARR_END;
}

bool probe_leaf_is_masked(const struct probe_leaf *leaf)
{
    const struct probe_num *max = &leaf->stat[PROBE_STAT_MAX], *min = &leaf->stat[PROBE_STAT_MIN];
    const struct probe_num *mean = &leaf->stat[PROBE_STAT_MEAN];
    bool known =
        leaf->kind == PROBE_LEAF_TENSOR && max->kind >= PROBE_NUM_INT && min->kind >= PROBE_NUM_INT;
    bool more = mean->kind == PROBE_NUM_FLOAT && (isnan(mean->v) || mean->v == HUGE_VAL);
    return known && min->v == -HUGE_VAL && !isnan(max->v) && max->v != HUGE_VAL && !more;
}
