/* SPDX-License-Identifier: MIT
 *
 * node_judge: figures and state of a matched node.
 *
 * Rows are paired by position: inputs with inputs, parameters with parameters and so on.
 * Rules and figures are those of the `compare` tables, except that integers are
 * subtracted as integers and that a golden 0 has no relative error.
 */
#include "compare/graph/build/node_judge.h"

#include "compare/graph/graph_rules.h"
#include "compare/judge/judge.h"
#include "compare/measure/measure_stat.h"
#include "probe/base/assert.h"
#include "probe/base/num.h"

#include <math.h>

/* ---- rows paired by the alignment ---------------------------------------- */

/* Maps rows of the target to the golden rows with which the alignment pairs them. */
struct row_pairs {
    const struct graph__pair *p;
    uint32_t *place;   /* index of a golden row in the order of its side, by row of the dump */
    uint32_t *partner; /* index of the golden partner as in `place`, by row of the target dump */
    MS_VEC(struct cmp_align_row) rows;
};

/* Returns an array that maps a row of the golden dump to its index in the order of the side. */
static uint32_t *places_of_rows(const struct cmp__side *s)
{
    size_t n = s->dump->rows.n;
    uint32_t *list = ms_alloc((n + 1) * sizeof *list);
    if (list == NULL)
        return NULL;
    memset(list, 0xff, (n + 1) * sizeof *list);
    for (uint32_t i = 0; i < s->order.n; i++)
        list[s->order.p[i]] = i;
    return list;
}

static enum ms_rc row_pairs_init(struct row_pairs *r, const struct graph__pair *p,
                                 struct ms_err *err)
{
    *r = (struct row_pairs){.p = p};
    if (p->rows.al == NULL)
        return MS_OK;
    r->place = places_of_rows(&p->b.side);
    r->partner = ms_alloc((p->t.side.dump->rows.n + 1) * sizeof *r->partner);
    return r->place != NULL && r->partner != NULL ? MS_OK : ms_no_memory(err);
}

static void row_pairs_free(struct row_pairs *r)
{
    ms_free(r->place);
    ms_free(r->partner);
    ms_vec_free(&r->rows);
}

static const struct cmp_align_pair *pair_of(const struct cmp_align *al, uint32_t t, uint32_t b)
{
    const struct cmp_align_pair *pairs;
    size_t n = cmp_align_of(al, t, &pairs);
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].golden == b)
            return &pairs[i];
    }
    return NULL;
}

/* Fills r->partner for the rows of t; sets *known to false when the alignment does not pair t and
 * b. */
static enum ms_rc find_row_pairs(struct row_pairs *r, const struct cmp__op *t,
                                 const struct cmp__op *b, bool *known, struct ms_err *err)
{
    const struct cmp_align *al = r->p->rows.al;
    const struct cmp_align_pair *pair =
        al != NULL && b != NULL ? pair_of(al, t->node, b->node) : NULL;
    *known = pair != NULL;
    if (pair == NULL)
        return MS_OK;
    if (!ms_vec_reserve(&r->rows, (size_t)t->n + b->n + 1))
        return ms_no_memory(err);
    size_t n = cmp_align_rows(al, pair, r->rows.p);
    for (size_t i = 0; i < n; i++) {
        if (r->rows.p[i].target != CMP_ALIGN_NONE)
            r->partner[r->rows.p[i].target] =
                r->rows.p[i].golden != CMP_ALIGN_NONE ? r->place[r->rows.p[i].golden] : GRAPH_NO;
    }
    return MS_OK;
}

/* ---- pairs ---------------------------------------------------------------- */

static enum graph__place_of_row place_of(const struct cmp__side *s, uint32_t row)
{
    switch (cmp__side_row(s, row)->section) {
    case PROBE_SEC_PARAMETERS:
        return GRAPH_ROW_PARAMETERS;
    case PROBE_SEC_OUTPUT:
        return GRAPH_ROW_OUTPUT;
    case PROBE_SEC_PGRAD:
        return GRAPH_ROW_GRADIENT;
    default:
        return GRAPH_ROW_INPUT;
    }
}

/* Returns the first row of the operator, from `row` on, whose place is `place` or later. */
static uint32_t skip_to(const struct cmp__side *s, const struct cmp__op *op, uint32_t row,
                        enum graph__place_of_row place)
{
    while (row < op->first + op->n && place_of(s, row) < place)
        row++;
    return row;
}

static enum ms_rc pair_rows(struct graph__pair *p, struct row_pairs *known, const struct cmp__op *t,
                            const struct cmp__op *b, struct ms_err *err)
{
    uint32_t other = b != NULL ? b->first : 0;
    bool aligned;
    MS_TRY(find_row_pairs(known, t, b, &aligned, err));
    if (!ms_vec_reserve(&p->rows.pairs, p->rows.pairs.n + t->n))
        return ms_no_memory(err);
    for (uint32_t row = t->first; row < t->first + t->n; row++) {
        struct cmp__pair *pair = &p->rows.pairs.p[p->rows.pairs.n++];
        *pair = (struct cmp__pair){row, GRAPH_NO};
        if (aligned)
            pair->b = known->partner[p->t.side.order.p[row]];
        if (b == NULL || aligned)
            continue;
        enum graph__place_of_row place = place_of(&p->t.side, row);
        other = skip_to(&p->b.side, b, other, place);
        if (other < b->first + b->n && place_of(&p->b.side, other) == place)
            pair->b = other++;
    }
    return MS_OK;
}

static enum ms_rc pair_all(struct graph__pair *p, struct row_pairs *known, struct ms_err *err)
{
    size_t n = p->t.nodes.n;
    if (!ms_vec_reserve(&p->first_pair, n + 1))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct cmp__op *t = graph__op(&p->t, i);
        p->first_pair.p[i] = (uint32_t)p->rows.pairs.n;
        if (t != NULL && p->t.nodes.p[i].match != GRAPH_NO)
            MS_TRY(pair_rows(p, known, t, graph__op(&p->b, p->t.nodes.p[i].match), err));
    }
    p->first_pair.p[n] = (uint32_t)p->rows.pairs.n;
    p->first_pair.n = n + 1;
    return MS_OK;
}

enum ms_rc graph__measure(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp_rows *c = &p->rows;
    ms_assert(p->dual && c->pairs.n == 0);
    c->set = &p->set;
    c->t = p->t.side;
    c->b = p->b.side;
    c->t_dir = p->t.data_dir;
    c->b_dir = p->b.data_dir;
    p->set.cross = p->t.side.dump->framework != p->b.side.dump->framework;
    struct row_pairs known;
    enum ms_rc rc = row_pairs_init(&known, p, err);
    if (rc == MS_OK)
        rc = pair_all(p, &known, err);
    row_pairs_free(&known);
    MS_TRY(rc);
    return p->set.mode == PROBE_MODE_TENSOR ? cmp__measure_tensors(c, &p->measured, pool, err)
                                            : MS_OK;
}

/* ---- figures ---------------------------------------------------------------- */

static enum ms_rc subtract_whole(struct cmp_view *v, const struct cmp_value *n,
                                 const struct cmp_value *b, struct cmp_delta *d, struct ms_err *err)
{
    int64_t x, y, diff;
    char text[MS_NUM_MAX];
    if (!ms_str_i64(n->text, &x) || !ms_str_i64(b->text, &y) || __builtin_sub_overflow(x, y, &diff))
        return MS_OK;
    ms_buf_put(&v->scratch, text, ms_num_i64(text, diff));
    return cmp__keep(v, &d->diff, err);
}

static bool is_infinite(const struct cmp_value *x)
{
    return x->kind == CMP_VALUE_INF || x->kind == CMP_VALUE_NINF;
}

/* Subtracts values of which one is infinite: graphs treat infinities as numbers, tables do not. */
static enum ms_rc subtract_infinite(struct cmp_view *v, const struct cmp_value *n,
                                    const struct cmp_value *b, const char *end, struct cmp_delta *d,
                                    struct ms_err *err)
{
    double diff = n->v - b->v;
    double rel = fabs(diff / b->v);
    d->rel = isnan(rel) ? MS_STR("Nan") : MS_STR("inf%");
    d->rel_value = rel;
    d->diff = MS_STR("Nan");
    if (isnan(diff))
        return MS_OK;
    ms_buf_puts(&v->scratch, diff > 0 ? "inf" : "-inf");
    ms_buf_puts(&v->scratch, end);
    return cmp__keep(v, &d->diff, err);
}

enum ms_rc graph__measure_row(const struct cmp_rules *rules, struct cmp_view *v,
                              struct cmp_row *row, struct ms_err *err)
{
    MS_TRY(cmp__measure_stats_old(v, row, err));
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct cmp_value *n = &row->t.stat[i], *b = &row->b.stat[i];
        if (n->is_text || b->is_text) { /* even if it looks like a number */
            row->delta[i] =
                (struct cmp_delta){.diff = MS_STR("N/A"), .rel = MS_STR("N/A"), .rel_value = NAN};
            continue;
        }
        bool numbers = (n->kind == CMP_VALUE_NUMBER || is_infinite(n)) &&
                       (b->kind == CMP_VALUE_NUMBER || is_infinite(b));
        if (!numbers)
            continue;
        if (is_infinite(n) || is_infinite(b))
            MS_TRY(subtract_infinite(v, n, b, rules->tabs_infinities ? "\t" : "", &row->delta[i],
                                     err));
        if (b->v == 0) {
            row->delta[i].rel = MS_STR("N/A");
            row->delta[i].rel_value = NAN;
        }
        if (n->is_int && b->is_int)
            MS_TRY(subtract_whole(v, n, b, &row->delta[i], err));
    }
    return MS_OK;
}

static enum ms_rc make_row(const struct graph__pair *p, uint32_t i, struct cmp_view *v,
                           struct ms_err *err)
{
    const struct cmp__pair *pair = &p->rows.pairs.p[i];
    struct cmp_row *row = &v->rows.p[v->rows.n++];
    ms_assert(i < p->rows.pairs.n);
    *row = (struct cmp_row){.b = cmp__item_none, .pair = i, .fig.state = CMP_STATE_UNMATCHED};
    MS_TRY(cmp__item_make(&p->t.side, pair->t, p->set.mode, v, &row->t, err));
    if (pair->b != GRAPH_NO)
        MS_TRY(cmp__item_make(&p->b.side, pair->b, p->set.mode, v, &row->b, err));
    row->grad_same = row->b.present && ms_str_eq(row->t.requires_grad, row->b.requires_grad);
    if (p->set.mode == PROBE_MODE_TENSOR && row->b.present)
        row->fig = p->measured.figures.p[i];
    return p->set.mode == PROBE_MODE_SUMMARY ? graph__measure_row(p->set.conf.rules, v, row, err)
                                             : MS_OK;
}

/* Judges the rows. A missing requires_grad agrees with any value of the other side. Afterwards
 * grad_same is set to the plain comparison, which the table shows. */
static void judge_rows(const struct cmp_setup *c, struct cmp_view *v)
{
    for (size_t i = 0; i < v->rows.n; i++) {
        struct cmp_row *row = &v->rows.p[i];
        row->is_output = ms_str_find_str(row->t.name, MS_STR(".output.")) >= 0;
        row->grad_same |=
            ms_str_is(row->t.requires_grad, "N/A") || ms_str_is(row->b.requires_grad, "N/A");
    }
    cmp__judge(c, v);
    for (size_t i = 0; i < v->rows.n; i++) {
        struct cmp_row *row = &v->rows.p[i];
        row->grad_same = row->b.present && ms_str_eq(row->t.requires_grad, row->b.requires_grad);
    }
}

/* ---- states ------------------------------------------------------------------- */

/* Returns true for operators that allocate memory without writing it. */
static bool makes_empty(struct ms_str name)
{
    static const char *const names[] = {"empty",     "empty_like",    "empty_with_format",
                                        "new_empty", "empty_strided", "new_empty_strided"};
    struct ms_str api = probe_name_part(name, 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ms_str_is(api, names[i]))
            return true;
    }
    return false;
}

static uint8_t worst_of(const struct cmp_view *v)
{
    static const uint8_t states[CMP_LEVELS] = {GRAPH_PASS, GRAPH_WARNING, GRAPH_ERROR,
                                               GRAPH_WARNING};
    uint8_t worst = GRAPH_NONE;
    for (size_t i = 0; i < v->rows.n; i++) {
        uint8_t state = states[v->rows.p[i].level];
        worst = state > worst ? state : worst;
    }
    return worst;
}

uint8_t graph__judge_rows(const struct cmp_setup *c, bool red_empty, struct cmp_view *v)
{
    judge_rows(c, v);
    if (makes_empty(v->op) && v->rows.n != 0)
        return c->mode == PROBE_MODE_MD5 && red_empty ? GRAPH_ERROR : GRAPH_PASS;
    return worst_of(v);
}

enum ms_rc graph__judge(const struct graph__pair *p, uint32_t node, struct cmp_view *v,
                        uint8_t *state, struct ms_err *err)
{
    uint32_t first = p->first_pair.p[node], end = p->first_pair.p[node + 1];
    ms_assert(node + 1 < p->first_pair.n && first <= end);
    v->rows.n = 0;
    v->op = graph__name(&p->t, node);
    v->frames = MS_STR_NONE;
    if (!ms_vec_reserve(&v->rows, end - first))
        return ms_no_memory(err);
    for (uint32_t i = first; i < end; i++)
        MS_TRY(make_row(p, i, v, err));
    *state = graph__judge_rows(&p->set, p->red_empty, v);
    return MS_OK;
}
