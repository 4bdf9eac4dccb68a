/* SPDX-License-Identifier: MIT
 *
 * judge: gives the rows of an operator their verdicts, from the figures of the whole
 * operator.
 *
 * The rules and their order are the official ones. With the default rules (--compat cur) the
 * differences are those that the man page lists: a row without a partner is "unmatched", an
 * unreadable file is an error, dtypes of two frameworks are compared by meaning, shapes of
 * aligned rows may differ in layout, a scalar argument does not count when the accuracy of
 * the inputs is judged, and the output limit of the one-thousandth rule is the 0.6 that its
 * message names.
 */
#include "compare/judge/judge.h"

#include "compare/measure/fold.h"
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

/* Removes the rank from the name of an operator merged from another rank: add_rank1 becomes add. */
static struct ms_str without_rank(const struct cmp_setup *set, struct ms_str api)
{
    uint32_t n = api.n;
    while (set->merged && n > 0 && ms_is_digit(api.p[n - 1]))
        n--;
    struct ms_str head = ms_str_sub(api, 0, n);
    bool ranked = n < api.n && ms_str_ends(head, MS_STR("_rank"));
    return ranked ? ms_str_sub(api, 0, n - 5) : api;
}

/* Tells whether an operator has no rules, because its output is uninitialized memory or a copy that
 * may change precision. */
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

/* Tells whether only outputs are judged, because inputs are buffers to be filled. */
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

static bool has_special(const struct cmp_item *item)
{
    return cmp_value_is_special(&item->stat[PROBE_STAT_MAX]) ||
           cmp_value_is_special(&item->stat[PROBE_STAT_MIN]);
}

static bool is_consistent(const struct cmp_setup *set)
{
    return set->conf.consistent != CMP_CONSISTENT_NO;
}

static bool dtype_differs(const struct cmp_setup *set, const struct cmp_row *row)
{
    if (ms_str_eq(row->t.dtype, row->b.dtype))
        return false;
    if (set->conf.rules->compares_dtype_text)
        return ms_str_find_str(row->b.name, MS_STR("qkv")) < 0 &&
               ms_str_find_str(row->b.name, MS_STR("gate_up")) < 0;
    return row->t.type == MS_DT_NONE || row->t.type != row->b.type;
}

static bool grad_differs(const struct cmp_setup *set, const struct cmp_row *row)
{
    if (is_consistent(set) &&
        (!set->conf.rules->judges_gradients || set->mode == PROBE_MODE_TENSOR))
        return false; /* inference has no gradients */
    bool is_stated = row->t.requires_grad.p[0] != 'N' && row->b.requires_grad.p[0] != 'N';
    return !row->grad_same && (is_stated || set->conf.rules->none_differs);
}

/* Reads the value of a scalar argument; as in Python, True is 1. */
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
    bool whole = n->is_int && b->is_int; /* large integers that a double cannot distinguish */
    if (!whole && has_number(&row->t, &x) && has_number(&row->b, &y))
        return !(x == y);
    return n->kind != b->kind || !ms_str_eq(n->text, b->text);
}

/* Tells whether shapes differ in a way that matters. Frameworks may store the same elements with
 * different shapes, which does not affect statistics. */
static bool shape_differs(const struct cmp_setup *set, const struct cmp_row *row)
{
    if (ms_str_eq(row->t.shape, row->b.shape))
        return false;
    if (is_consistent(set) &&
        (!set->conf.rules->judges_gradients || set->mode == PROBE_MODE_TENSOR))
        return !cmp__consistent_shapes(set, row);
    return !set->aligned || set->mode == PROBE_MODE_TENSOR ||
           cmp__shape_count(row->t.shape) != cmp__shape_count(row->b.shape);
}

static void judge_attributes(const struct cmp_setup *set, struct cmp_row *row)
{
    if (grad_differs(set, row))
        mark(row, CMP_NOTE_GRAD);
    if (!row->is_output && is_class(row->t.dtype) && is_class(row->b.dtype) &&
        ms_str_is(row->t.shape, "[]") && value_differs(row))
        mark(row, CMP_NOTE_PARAM);
    if (dtype_differs(set, row))
        mark(row, CMP_NOTE_DTYPE);
    if (!set->merged && shape_differs(set, row))
        mark(row, CMP_NOTE_SHAPE);
}

/* Marks files that could not be read; the official tool loses this information while writing its
 * file. */
static void judge_reading(const struct cmp_setup *set, struct cmp_row *row)
{
    if (set->conf.rules->loses_reading || set->mode != PROBE_MODE_TENSOR)
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

static void judge_row(const struct cmp_setup *set, struct cmp_row *row)
{
    if (has_special(&row->t) && !has_special(&row->b))
        mark(row, CMP_NOTE_INF_NAN);
    if (!row->b.present)
        return;
    judge_reading(set, row);
    judge_attributes(set, row);
}

/* ---- rules for an op -------------------------------------------------------- */

struct extremes {
    double in, out;
    struct cmp_row *first_out;
};

/* Tells whether the row counts when the accuracy of inputs is determined; a scalar argument does so
 * only by the official rules. */
static bool is_counted(const struct cmp_setup *set, const struct cmp_row *row)
{
    bool scalar = is_class(row->t.dtype) || row->t.stat[PROBE_STAT_NORM].is_text;
    return set->conf.rules->scalars_count || row->is_output || !scalar;
}

static struct extremes largest_norm_err(const struct cmp_setup *set, struct cmp_view *v)
{
    struct extremes e = {0};
    for (size_t i = 0; i < v->rows.n; i++) {
        struct cmp_row *row = &v->rows.p[i];
        double x = row->delta[PROBE_STAT_NORM].rel_value;
        double *into = row->is_output ? &e.out : &e.in;
        if (row->is_output && e.first_out == NULL)
            e.first_out = row;
        if (is_counted(set, row) && x > *into)
            *into = x;
    }
    return e;
}

static struct extremes find_smallest(struct cmp_view *v, unsigned metric)
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

static void judge_norms(const struct cmp_setup *set, struct cmp_view *v)
{
    struct extremes e = largest_norm_err(set, v);
    for (size_t i = 0; i < v->rows.n && e.in < 0.1; i++) {
        struct cmp_row *row = &v->rows.p[i];
        const struct cmp_delta *d = &row->delta[PROBE_STAT_NORM];
        if (row->is_output && (d->rel_inf || d->rel_value > 0.5))
            mark(row, CMP_NOTE_NORM_ERR);
    }
    if (e.first_out != NULL && (e.in == 0 ? e.out > 0.1 : e.out / e.in > 10))
        mark(e.first_out, CMP_NOTE_NORM_WARN);
}

static void judge_tensors(const struct cmp_setup *set, struct cmp_view *v)
{
    struct extremes ratio = find_smallest(v, CMP_THOUSANDTH);
    struct extremes cosine = find_smallest(v, CMP_COSINE);
    if (ratio.first_out == NULL)
        return;
    if (ratio.in > 0.9 && ratio.out < set->conf.rules->thousandth_limit)
        mark(ratio.first_out, CMP_NOTE_THOUSANDTH);
    if (cosine.in > 0.9 && cosine.in - cosine.out > 0.1)
        mark(cosine.first_out, CMP_NOTE_COSINE_WARN);
}

static bool has_digest(const struct cmp_item *item)
{
    return item->md5.n != 0 && !ms_str_is(item->md5, "N/A") && !ms_str_is(item->md5, "Nan");
}

static void judge_digest(const struct cmp_setup *set, struct cmp_row *row)
{
    /* only folded rows have joined digests; elsewhere a digest is any text */
    const bool folds = is_consistent(set);
    if (folds && (cmp__is_joined(row->t.md5) || cmp__is_joined(row->b.md5)))
        mark(row, CMP_NOTE_CRC_PARTS);
    else if (folds && set->conf.rules->folded_digests_differ && row->b.present)
        mark(row, CMP_NOTE_CRC);
    else if (!ms_str_eq(row->t.md5, row->b.md5))
        mark(row, has_digest(&row->t) && has_digest(&row->b) ? CMP_NOTE_CRC : CMP_NOTE_CRC_NONE);
    if (!set->conf.rules->digests_alone)
        judge_attributes(set, row);
}

/* ---- all rules ----------------------------------------------------------------- */

/* Marks a row without a partner as unmatched, unless the official rules apply; NaN and infinity get
 * a note too. */
static bool judge_unmatched(const struct cmp_setup *set, struct cmp_row *row, bool free_of_rules)
{
    if (!set->conf.rules->has_unmatched || (row->t.present && row->b.present))
        return false;
    mark(row, row->t.present ? CMP_NOTE_NO_BENCH : CMP_NOTE_NO_TARGET);
    if (set->mode != PROBE_MODE_MD5 && !free_of_rules && has_special(&row->t))
        mark(row, CMP_NOTE_INF_NAN);
    return true;
}

/* The official tool judges a row that only inference has by the N/A of the other side. */
static void judge_inference_alone(const struct cmp_setup *set, struct cmp_row *row)
{
    if (!is_consistent(set) || row->t.present || !set->conf.rules->judges_inference_alone)
        return;
    if (set->mode == PROBE_MODE_SUMMARY) {
        mark(row, CMP_NOTE_GRAD);
        mark(row, CMP_NOTE_SHAPE);
    } else if (set->mode == PROBE_MODE_MD5) {
        mark(row, CMP_NOTE_CRC);
    }
}

/* Judges a row of a graph without a golden partner by the official rules, where the fields of the
 * missing side are "Nan" instead of "N/A" and differ from any value. */
static bool judge_alone(const struct cmp_setup *set, struct cmp_row *row)
{
    if (!set->is_graph || !set->conf.rules->missing_is_nan || row->b.present ||
        set->mode == PROBE_MODE_MD5)
        return false;
    if (row->t.requires_grad.p[0] != 'N')
        mark(row, CMP_NOTE_GRAD);
    mark(row, CMP_NOTE_DTYPE);
    if (!set->merged)
        mark(row, CMP_NOTE_SHAPE);
    return true;
}

/* Returns the name that decides whether an operator has rules; the official tool uses that of its
 * first input. */
static struct ms_str name_for_rules(const struct cmp_setup *set, const struct cmp_view *v)
{
    for (size_t i = 0; i < v->rows.n && set->conf.rules->rules_by_first_input; i++) {
        const struct cmp_row *row = &v->rows.p[i];
        if (!row->is_output && row->t.present)
            return row->t.name;
    }
    return set->conf.rules->rules_by_first_input ? MS_STR_NONE : v->op;
}

void cmp__judge(const struct cmp_setup *set, struct cmp_view *v)
{
    struct ms_str api = without_rank(set, probe_name_part(name_for_rules(set, v), 1));
    bool outputs_only = has_output_only(api);
    bool free_of_rules = has_no_rules(api);
    for (size_t i = 0; i < v->rows.n; i++) {
        struct cmp_row *row = &v->rows.p[i];
        if (judge_unmatched(set, row, free_of_rules) || free_of_rules)
            continue;
        judge_inference_alone(set, row);
        if (!row->t.present || (outputs_only && !row->is_output))
            continue;
        if (judge_alone(set, row))
            continue;
        if (set->mode == PROBE_MODE_MD5)
            judge_digest(set, row);
        else
            judge_row(set, row);
    }
    if (free_of_rules || outputs_only || v->op.n == 0)
        return;
    if (set->mode == PROBE_MODE_SUMMARY)
        judge_norms(set, v);
    else if (set->mode == PROBE_MODE_TENSOR)
        judge_tensors(set, v);
}
