/* SPDX-License-Identifier: MIT
 *
 * graph_judge: figures and state of a matched node.
 *
 * Rows meet by position: inputs with inputs, parameters with parameters and so on.
 * Rules and figures are those of the table compare, except that whole numbers are
 * subtracted as such and that a golden 0 has no relative error.
 */
#include "compare/graph_int.h"
#include "probe/base/num.h"

#include <math.h>

/* ---- pairs ---------------------------------------------------------------- */

/* Rows of one op are sorted by these. */
enum place { PLACE_INPUT, PLACE_PARAMETERS, PLACE_OUTPUT, PLACE_GRADIENT };

static enum place place_of(const struct cmp__side *s, uint32_t row)
{
    switch (cmp__side_row(s, row)->section) {
    case PROBE_SEC_PARAMETERS:
        return PLACE_PARAMETERS;
    case PROBE_SEC_OUTPUT:
        return PLACE_OUTPUT;
    case PROBE_SEC_PGRAD:
        return PLACE_GRADIENT;
    default:
        return PLACE_INPUT;
    }
}

/* The first row of the op from `row` on that is not at an earlier place. */
static uint32_t skip_to(const struct cmp__side *s, const struct cmp__op *op, uint32_t row,
                        enum place place)
{
    while (row < op->first + op->n && place_of(s, row) < place)
        row++;
    return row;
}

static enum ms_rc pair_rows(struct graph__pair *p, struct graph__row_pairs *known,
                            const struct cmp__op *t, const struct cmp__op *b, struct ms_err *err)
{
    uint32_t other = b != NULL ? b->first : 0;
    bool aligned;
    MS_TRY(graph__row_pairs_of(known, t, b, &aligned, err));
    if (!ms_vec_reserve(&p->cmp.pairs, p->cmp.pairs.n + t->n))
        return ms_no_memory(err);
    for (uint32_t row = t->first; row < t->first + t->n; row++) {
        struct cmp__pair *pair = &p->cmp.pairs.p[p->cmp.pairs.n++];
        *pair = (struct cmp__pair){row, GRAPH_NO};
        if (aligned)
            pair->b = known->partner[p->t.side.order.p[row]];
        if (b == NULL || aligned)
            continue;
        enum place place = place_of(&p->t.side, row);
        other = skip_to(&p->b.side, b, other, place);
        if (other < b->first + b->n && place_of(&p->b.side, other) == place)
            pair->b = other++;
    }
    return MS_OK;
}

static const struct cmp__op *op_of(const struct graph__tree *g, uint32_t node)
{
    uint32_t op = node != GRAPH_NO ? g->nodes.p[node].op : GRAPH_NO;
    return op != GRAPH_NO ? &g->side.ops.p[op] : NULL;
}

static enum ms_rc pair_all(struct graph__pair *p, struct graph__row_pairs *known,
                           struct ms_err *err)
{
    size_t n = p->t.nodes.n;
    if (!ms_vec_reserve(&p->first_pair, n + 1))
        return ms_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct cmp__op *t = op_of(&p->t, i);
        p->first_pair.p[i] = (uint32_t)p->cmp.pairs.n;
        if (t != NULL && p->t.nodes.p[i].match != GRAPH_NO)
            MS_TRY(pair_rows(p, known, t, op_of(&p->b, p->t.nodes.p[i].match), err));
    }
    p->first_pair.p[n] = (uint32_t)p->cmp.pairs.n;
    return MS_OK;
}

enum ms_rc graph__measure(struct graph__pair *p, struct ms_pool *pool, struct ms_err *err)
{
    struct cmp *c = &p->cmp;
    c->t = p->t.side;
    c->b = p->b.side;
    c->t_dir = p->t.data_dir;
    c->b_dir = p->b.data_dir;
    c->cross = p->t.side.dump->framework != p->b.side.dump->framework;
    struct graph__row_pairs known;
    enum ms_rc rc = graph__row_pairs_init(&known, p, err);
    if (rc == MS_OK)
        rc = pair_all(p, &known, err);
    graph__row_pairs_free(&known);
    MS_TRY(rc);
    return c->mode == PROBE_MODE_TENSOR ? cmp__measure_tensors(c, pool, err) : MS_OK;
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

/* Infinities are numbers here.  The tab behind them kept a spreadsheet from reading them. */
static void subtract_infinite(const struct cmp_value *n, const struct cmp_value *b, bool strict,
                              struct cmp_delta *d)
{
    double diff = n->v - b->v;
    double rel = fabs(diff / b->v);
    if (isnan(diff))
        d->diff = MS_STR("Nan");
    else if (diff > 0)
        d->diff = strict ? MS_STR("inf\t") : MS_STR("inf");
    else
        d->diff = strict ? MS_STR("-inf\t") : MS_STR("-inf");
    d->rel = isnan(rel) ? MS_STR("Nan") : MS_STR("inf%");
    d->rel_value = rel;
}

enum ms_rc graph__measure_row(const struct cmp *c, struct cmp_view *v, struct cmp_row *row,
                              struct ms_err *err)
{
    MS_TRY(cmp__measure_stats_old(v, row, err));
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        const struct cmp_value *n = &row->t.stat[i], *b = &row->b.stat[i];
        if (n->is_text || b->is_text) { /* whatever it looks like */
            row->delta[i] =
                (struct cmp_delta){.diff = MS_STR("N/A"), .rel = MS_STR("N/A"), .rel_value = NAN};
            continue;
        }
        bool numbers = (n->kind == CMP_VALUE_NUMBER || is_infinite(n)) &&
                       (b->kind == CMP_VALUE_NUMBER || is_infinite(b));
        if (!numbers)
            continue;
        if (is_infinite(n) || is_infinite(b))
            subtract_infinite(n, b, cmp__strict(c), &row->delta[i]);
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
    const struct cmp__pair *pair = &p->cmp.pairs.p[i];
    struct cmp_row *row = &v->rows.p[v->rows.n++];
    *row = (struct cmp_row){.b = cmp__item_none, .pair = i, .fig.state = CMP_STATE_UNMATCHED};
    MS_TRY(cmp__item_make(&p->t.side, pair->t, p->cmp.mode, v, &row->t, err));
    if (pair->b != GRAPH_NO)
        MS_TRY(cmp__item_make(&p->b.side, pair->b, p->cmp.mode, v, &row->b, err));
    row->grad_same = row->b.present && ms_str_eq(row->t.requires_grad, row->b.requires_grad);
    if (p->cmp.mode == PROBE_MODE_TENSOR && row->b.present)
        row->fig = p->cmp.figures.p[i];
    return p->cmp.mode == PROBE_MODE_SUMMARY ? graph__measure_row(&p->cmp, v, row, err) : MS_OK;
}

/* Who does not say requires_grad does not disagree with a side that does. */
static void judge_rows(const struct cmp *c, struct cmp_view *v)
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

/* They hand out memory that nobody has written yet. */
static bool makes_empty(struct ms_str name)
{
    static const char *const names[] = {"empty",     "empty_like",    "empty_with_format",
                                        "new_empty", "empty_strided", "new_empty_strided"};
    struct ms_str api = graph__part(name, 1);
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

uint8_t graph__judge_rows(const struct cmp *c, bool red_empty, struct cmp_view *v)
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
    v->rows.n = 0;
    v->op = graph__name(&p->t, node);
    v->frames = MS_STR_NONE;
    if (!ms_vec_reserve(&v->rows, end - first))
        return ms_no_memory(err);
    for (uint32_t i = first; i < end; i++)
        MS_TRY(make_row(p, i, v, err));
    *state = graph__judge_rows(&p->cmp, p->red_empty, v);
    return MS_OK;
}

/* ---- layer mapping -------------------------------------------------------------- */

/* Rows of the golden side by name. */
static enum ms_rc index_rows(const struct cmp__side *s, struct ms_map *rows, struct ms_arena *arena,
                             struct ms_err *err)
{
    struct ms_buf name = {.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    for (uint32_t i = 0; i < s->order.n && rc == MS_OK; i++) {
        bool added;
        ms_buf_clear(&name);
        cmp__side_name(s, i, false, &name);
        ms_buf_putc(&name, '#'); /* keeps numbers in step where two rows have one name */
        uint32_t id = ms_map_put_copy(rows, ms_buf_slice(&name), arena, &added);
        for (; id != GRAPH_NO && !added;
             id = ms_map_put_copy(rows, ms_buf_slice(&name), arena, &added))
            ms_buf_putc(&name, '#');
        rc = id != GRAPH_NO ? ms_buf_check(&name, err) : ms_no_memory(err);
    }
    ms_buf_free(&name);
    return rc;
}

/* The mapping pairs rows; a node goes where its first paired row goes. */
static enum ms_rc name_node(struct graph__pair *p, const struct cmp__pairs *rows,
                            const struct ms_map *golden, const struct cmp__op *op,
                            struct ms_buf *name, struct cmp__pairs *names, struct ms_err *err)
{
    for (uint32_t i = op->first; i < op->first + op->n; i++) {
        ms_buf_clear(name);
        cmp__side_name(&p->t.side, i, false, name);
        uint32_t at = ms_map_get(&rows->keys, ms_buf_slice(name));
        if (at == GRAPH_NO)
            continue;
        ms_buf_clear(name);
        ms_buf_str(name, rows->values.p[at]);
        ms_buf_putc(name, '#');
        uint32_t row = ms_map_get(golden, ms_buf_slice(name));
        if (row == GRAPH_NO)
            continue;
        const struct cmp__side *b = &p->b.side;
        bool added;
        uint32_t id = ms_map_put(&names->keys, probe_node_name(p->t.side.dump, op->node), &added);
        struct ms_str *slot = id != GRAPH_NO && added ? ms_vec_push(&names->values) : NULL;
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = probe_node_name(b->dump, b->ops.p[b->op_of.p[row]].node);
        return ms_buf_check(name, err);
    }
    return MS_OK;
}

static enum ms_rc name_nodes(struct graph__pair *p, const struct cmp__pairs *rows,
                             struct ms_arena *arena, struct cmp__pairs *names, struct ms_err *err)
{
    struct ms_map golden = {.mask = 0};
    struct ms_buf name = {.max = 1 << 20};
    enum ms_rc rc = index_rows(&p->b.side, &golden, arena, err);
    for (size_t i = 0; i < p->t.side.ops.n && rc == MS_OK; i++)
        rc = name_node(p, rows, &golden, &p->t.side.ops.p[i], &name, names, err);
    ms_map_free(&golden);
    ms_buf_free(&name);
    return rc;
}

enum ms_rc graph__map_layers(struct graph__pair *p, struct cmp__pairs *names, struct ms_err *err)
{
    struct cmp__pairs rows = {.arena = NULL};
    struct cmp *c = &p->cmp;
    *names = (struct cmp__pairs){.arena = NULL};
    c->t = p->t.side;
    c->b = p->b.side;
    c->stacks = p->t.stacks;
    c->has_stack = true;
    c->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = c->arena != NULL ? cmp__layer_pairs(c, &rows, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = name_nodes(p, &rows, c->arena, names, err);
    c->has_stack = false;
    cmp__pairs_free(&rows);
    return rc;
}
