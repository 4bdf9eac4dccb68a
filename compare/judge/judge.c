/* SPDX-License-Identifier: MIT
 *
 * judge: verdicts of an op's rows, from the figures of the whole op.
 *
 * The rules and their order are the official ones.  The repaired mode differs in
 * what the man page lists: a row without partner is "unmatched", an unreadable
 * file is an error, dtypes of two frameworks are compared by what they mean, shapes of
 * aligned rows may be laid out differently, a
 * scalar argument has no say in how exact the inputs are, and the output limit of
 * the one-thousandth rule is the 0.6 that its message names.
 */
#include "compare/consistent.h"
#include "probe/base/scan.h"

#include <math.h>

const char *const cmp_level_names[CMP_LEVELS] = {"pass", "warning", "error", "unmatched"};
const char *const cmp_note_texts[CMP_NOTES] = {
#define CMP_NOTE_TEXT(name, text) text,
    CMP_NOTE_MAP(CMP_NOTE_TEXT)
#undef CMP_NOTE_TEXT
};

static bool is_one_of(struct ms_str s, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (ms_str_is(s, *list))
            return true;
    }
    return false;
}

/* The api's name: linear in Functional.linear.0.forward. */
static struct ms_str second_component(struct ms_str name)
{
    struct ms_str part = MS_STR_NONE;
    if (!ms_str_split(&name, '.', &part) || !ms_str_split(&name, '.', &part))
        return MS_STR_NONE;
    return part;
}

/* Merged operators of other ranks: add_rank1. */
static struct ms_str without_rank(const struct cmp *c, struct ms_str api)
{
    uint32_t n = api.n;
    while (c->merged && n > 0 && ms_is_digit(api.p[n - 1]))
        n--;
    struct ms_str head = ms_str_sub(api, 0, n);
    bool ranked = n < api.n && ms_str_ends(head, MS_STR("_rank"));
    return ranked ? ms_str_sub(api, 0, n - 5) : api;
}

/* Their outputs are memory that nobody has written yet, or a copy that may change precision. */
static bool has_no_rules(struct ms_str api)
{
    static const char *const names[] = {"empty",
                                        "empty_like",
                                        "numpy",
                                        "to",
                                        "__setitem__",
                                        "empty_with_format",
                                        "new_empty_strided",
                                        "new_empty",
                                        "empty_strided",
                                        NULL};
    return is_one_of(api, names);
}

/* Their inputs are buffers to be filled. */
static bool has_output_only(struct ms_str api)
{
    static const char *const names[] = {"_reduce_scatter_base", "_all_gather_base",
                                        "all_to_all_single", "batch_isend_irecv", NULL};
    return is_one_of(api, names);
}

static bool is_class(struct ms_str dtype)
{
    return ms_str_find_str(dtype, MS_STR("class")) >= 0;
}

static void mark(struct cmp_row *row, enum cmp_note note)
{
    enum cmp_level level = cmp_note_texts[note][0] == 'w'   ? CMP_WARNING
                           : cmp_note_texts[note][0] == 'e' ? CMP_ERROR
                                                            : CMP_UNMATCHED;
    row->notes |= 1U << note;
    if (level > row->level)
        row->level = level;
}

/* ---- rules for one row ---------------------------------------------------- */

static bool is_special(const struct cmp_value *x)
{
    return x->kind == CMP_VALUE_NAN || x->kind == CMP_VALUE_INF || x->kind == CMP_VALUE_NINF;
}

static bool has_special(const struct cmp_item *item)
{
    return is_special(&item->stat[PROBE_STAT_MAX]) || is_special(&item->stat[PROBE_STAT_MIN]);
}

static bool is_consistent(const struct cmp *c)
{
    return c->conf.consistent != CMP_CONSISTENT_NO;
}

static bool dtype_differs(const struct cmp *c, const struct cmp_row *row)
{
    if (ms_str_eq(row->t.dtype, row->b.dtype))
        return false;
    if (cmp__strict(c))
        return ms_str_find_str(row->b.name, MS_STR("qkv")) < 0 &&
               ms_str_find_str(row->b.name, MS_STR("gate_up")) < 0;
    return row->t.type == MS_DT_NONE || row->t.type != row->b.type;
}

static bool grad_differs(const struct cmp *c, const struct cmp_row *row)
{
    if (is_consistent(c) && (!cmp__strict(c) || c->mode == PROBE_MODE_TENSOR))
        return false; /* inference has no gradients */
    bool said = row->t.requires_grad.p[0] != 'N' && row->b.requires_grad.p[0] != 'N';
    return !row->grad_same && (said || cmp__strict(c));
}

/* To Python True is 1. */
static bool has_number(const struct cmp_item *item, double *v)
{
    const struct cmp_value *x = &item->stat[PROBE_STAT_MAX];
    if (ms_str_is(item->dtype, "<class 'bool'>")) {
        *v = ms_str_is(x->text, "True");
        return true;
    }
    *v = x->v;
    return x->kind == CMP_VALUE_NUMBER && !x->is_text;
}

static bool value_differs(const struct cmp_row *row)
{
    const struct cmp_value *n = &row->t.stat[PROBE_STAT_MAX];
    const struct cmp_value *b = &row->b.stat[PROBE_STAT_MAX];
    double x, y;
    bool whole = n->is_int && b->is_int; /* which a double may not tell apart */
    if (!whole && has_number(&row->t, &x) && has_number(&row->b, &y))
        return !(x == y);
    return n->kind != b->kind || !ms_str_eq(n->text, b->text);
}

/* Wrapping does no harm. */
uint64_t cmp__shape_count(struct ms_str shape)
{
    uint64_t all = 1, one = 0;
    bool digits = false;
    for (uint32_t i = 0; i <= shape.n; i++) {
        bool digit = i < shape.n && shape.p[i] >= '0' && shape.p[i] <= '9';
        if (digit)
            one = 10 * one + (uint64_t)(shape.p[i] - '0');
        else if (digits)
            all *= one, one = 0;
        digits = digit;
    }
    return all;
}

/* Two frameworks lay the same numbers out differently; statistics do not see that. */
static bool shape_differs(const struct cmp *c, const struct cmp_row *row)
{
    if (ms_str_eq(row->t.shape, row->b.shape))
        return false;
    if (is_consistent(c) && (!cmp__strict(c) || c->mode == PROBE_MODE_TENSOR))
        return !cmp__consistent_shapes(c, row);
    return c->al == NULL || c->mode == PROBE_MODE_TENSOR ||
           cmp__shape_count(row->t.shape) != cmp__shape_count(row->b.shape);
}

static void judge_attributes(const struct cmp *c, struct cmp_row *row)
{
    if (grad_differs(c, row))
        mark(row, CMP_NOTE_GRAD);
    if (!row->is_output && is_class(row->t.dtype) && is_class(row->b.dtype) &&
        ms_str_is(row->t.shape, "[]") && value_differs(row))
        mark(row, CMP_NOTE_PARAM);
    if (dtype_differs(c, row))
        mark(row, CMP_NOTE_DTYPE);
    if (!c->merged && shape_differs(c, row))
        mark(row, CMP_NOTE_SHAPE);
}

/* What the official tool loses on the way to its file. */
static void judge_reading(const struct cmp *c, struct cmp_row *row)
{
    if (cmp__strict(c) || c->mode != PROBE_MODE_TENSOR)
        return;
    if (row->fig.state == CMP_STATE_UNREADABLE)
        mark(row, CMP_NOTE_NO_FILE);
    else if (row->fig.state == CMP_STATE_NO_DATA &&
             row->t.data_name.p[0] != row->b.data_name.p[0] &&
             (ms_str_is(row->t.data_name, "-1") || ms_str_is(row->b.data_name, "-1")))
        mark(row, CMP_NOTE_NO_DATA);
    else if (row->fig.state == CMP_STATE_MASKS)
        mark(row, CMP_NOTE_MASKS);
}

static void judge_row(const struct cmp *c, struct cmp_row *row)
{
    if (has_special(&row->t) && !has_special(&row->b))
        mark(row, CMP_NOTE_INF_NAN);
    if (!row->b.present)
        return;
    judge_reading(c, row);
    judge_attributes(c, row);
}

/* ---- rules for an op -------------------------------------------------------- */

struct extremes {
    double in, out;
    struct cmp_row *first_out;
};

/* Has the row a say in how far the inputs are apart?  A scalar argument has not, outside of strict. */
static bool counts(const struct cmp *c, const struct cmp_row *row)
{
    bool scalar = is_class(row->t.dtype) || row->t.stat[PROBE_STAT_NORM].is_text;
    return cmp__strict(c) || row->is_output || !scalar;
}

static struct extremes largest_norm_err(const struct cmp *c, struct cmp_view *v)
{
    struct extremes e = {0};
    for (size_t i = 0; i < v->rows.n; i++) {
        struct cmp_row *row = &v->rows.p[i];
        double x = row->delta[PROBE_STAT_NORM].rel_value;
        double *into = row->is_output ? &e.out : &e.in;
        if (row->is_output && e.first_out == NULL)
            e.first_out = row;
        if (counts(c, row) && x > *into)
            *into = x;
    }
    return e;
}

static struct extremes smallest(struct cmp_view *v, unsigned metric)
{
    struct extremes e = {.in = 1, .out = 1};
    for (size_t i = 0; i < v->rows.n; i++) {
        struct cmp_row *row = &v->rows.p[i];
        double x = row->fig.state == CMP_STATE_OK ? row->fig.metric[metric] : NAN;
        double *into = row->is_output ? &e.out : &e.in;
        if (row->is_output && e.first_out == NULL)
            e.first_out = row;
        if (x < *into)
            *into = x;
    }
    return e;
}

static void judge_norms(const struct cmp *c, struct cmp_view *v)
{
    struct extremes e = largest_norm_err(c, v);
    for (size_t i = 0; i < v->rows.n && e.in < 0.1; i++) {
        struct cmp_row *row = &v->rows.p[i];
        const struct cmp_delta *d = &row->delta[PROBE_STAT_NORM];
        if (row->is_output && (d->rel_inf || d->rel_value > 0.5))
            mark(row, CMP_NOTE_NORM_ERR);
    }
    if (e.first_out != NULL && (e.in == 0 ? e.out > 0.1 : e.out / e.in > 10))
        mark(e.first_out, CMP_NOTE_NORM_WARN);
}

static void judge_tensors(const struct cmp *c, struct cmp_view *v)
{
    struct extremes ratio = smallest(v, CMP_THOUSANDTH);
    struct extremes cosine = smallest(v, CMP_COSINE);
    if (ratio.first_out == NULL)
        return;
    if (ratio.in > 0.9 && ratio.out < (cmp__strict(c) ? 0.1 : 0.6))
        mark(ratio.first_out, CMP_NOTE_THOUSANDTH);
    if (cosine.in > 0.9 && cosine.in - cosine.out > 0.1)
        mark(cosine.first_out, CMP_NOTE_COSINE_WARN);
}

static bool has_digest(const struct cmp_item *item)
{
    return item->md5.n != 0 && !ms_str_is(item->md5, "N/A") && !ms_str_is(item->md5, "Nan");
}

static void judge_digest(const struct cmp *c, struct cmp_row *row)
{
    const bool folds = is_consistent(c); /* without, a checksum is whatever text a dump has */
    if (folds && (cmp__is_joined(row->t.md5) || cmp__is_joined(row->b.md5)))
        mark(row, CMP_NOTE_CRC_PARTS);
    else if (folds && cmp__strict(c) && row->b.present)
        mark(row, CMP_NOTE_CRC);
    else if (!ms_str_eq(row->t.md5, row->b.md5))
        mark(row, has_digest(&row->t) && has_digest(&row->b) ? CMP_NOTE_CRC : CMP_NOTE_CRC_NONE);
    if (!cmp__strict(c))
        judge_attributes(c, row);
}

/* ---- all of them -------------------------------------------------------------- */

/* Rows without a partner are unmatched in the repaired mode, whatever else is wrong with them; NaN
 * and infinity are worth a word all the same. */
static bool judge_unmatched(const struct cmp *c, struct cmp_row *row, bool free_of_rules)
{
    if (cmp__strict(c) || (row->t.present && row->b.present))
        return false;
    mark(row, row->t.present ? CMP_NOTE_NO_BENCH : CMP_NOTE_NO_TARGET);
    if (c->mode != PROBE_MODE_MD5 && !free_of_rules && has_special(&row->t))
        mark(row, CMP_NOTE_INF_NAN);
    return true;
}

/* The official tool judges what inference alone has by the N/A of the other side. */
static void judge_inference_alone(const struct cmp *c, struct cmp_row *row)
{
    if (!is_consistent(c) || row->t.present || !cmp__strict(c))
        return;
    if (c->mode == PROBE_MODE_SUMMARY) {
        mark(row, CMP_NOTE_GRAD);
        mark(row, CMP_NOTE_SHAPE);
    } else if (c->mode == PROBE_MODE_MD5) {
        mark(row, CMP_NOTE_CRC);
    }
}

/* In a graph of the official tool the fields of the side that is missing are "Nan", not "N/A", and so
 * differ from all there is. */
static bool judge_alone(const struct cmp *c, struct cmp_row *row)
{
    if (!c->is_graph || !cmp__strict(c) || row->b.present || c->mode == PROBE_MODE_MD5)
        return false;
    if (row->t.requires_grad.p[0] != 'N')
        mark(row, CMP_NOTE_GRAD);
    mark(row, CMP_NOTE_DTYPE);
    if (!c->merged)
        mark(row, CMP_NOTE_SHAPE);
    return true;
}

/* By which name an op is freed from rules: the official tool asks its first input. */
static struct ms_str name_for_rules(const struct cmp *c, const struct cmp_view *v)
{
    for (size_t i = 0; i < v->rows.n && cmp__strict(c); i++) {
        const struct cmp_row *row = &v->rows.p[i];
        if (!row->is_output && row->t.present)
            return row->t.name;
    }
    return cmp__strict(c) ? MS_STR_NONE : v->op;
}

void cmp__judge(const struct cmp *c, struct cmp_view *v)
{
    struct ms_str api = without_rank(c, second_component(name_for_rules(c, v)));
    bool outputs_only = has_output_only(api);
    bool free_of_rules = has_no_rules(api);
    for (size_t i = 0; i < v->rows.n; i++) {
        struct cmp_row *row = &v->rows.p[i];
        if (judge_unmatched(c, row, free_of_rules) || free_of_rules)
            continue;
        judge_inference_alone(c, row);
        if (!row->t.present || (outputs_only && !row->is_output))
            continue;
        if (judge_alone(c, row))
            continue;
        if (c->mode == PROBE_MODE_MD5)
            judge_digest(c, row);
        else
            judge_row(c, row);
    }
    if (free_of_rules || outputs_only || v->op.n == 0)
        return;
    if (c->mode == PROBE_MODE_SUMMARY)
        judge_norms(c, v);
    else if (c->mode == PROBE_MODE_TENSOR)
        judge_tensors(c, v);
}
