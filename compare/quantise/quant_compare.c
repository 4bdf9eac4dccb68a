/* SPDX-License-Identifier: MIT
 *
 * quant_compare: see the header.
 */
#include "compare/quantise/quant_compare.h"

#include "compare/quantise/quant_explain.h"
#include "compare/quantise/quant_unfuse.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"
#include "probe/quantise/quant_tensor.h"

#include <math.h>

#define NAMES_MAX ((size_t)1 << 28)

/* ---- a pair of layers -------------------------------------------------------------------- */

/* Errors of the layers of a run, in order of execution. */
struct traces {
    MS_VEC(struct quant_trace) of;
};

struct pairing {
    struct quant_comparison *c;
    const struct quant_run *t, *g;
    int64_t step, rank;
    struct traces *traces;
    struct quant_watch *watch;
};

/* The tensors of a pair of layers. */
struct loaded {
    struct quant_values x, w, y, bias, qx, qw, qy, qbias, module_x, module_w, node_w;
};

static void free_loaded(struct loaded *l)
{
    struct quant_values *const all[] = {&l->x,        &l->w,        &l->y,     &l->bias,
                                        &l->qx,       &l->qw,       &l->qy,    &l->qbias,
                                        &l->module_x, &l->module_w, &l->node_w};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        quant_values_free(all[i]);
}

/* Returns the row of what a layer's weight or input was before a node quantised it. */
static uint32_t node_before(const struct quant_run *r, const struct quant_layer *l, bool weight)
{
    for (size_t i = 0; i < r->quantisers.n; i++) {
        const struct quantiser *q = &r->quantisers.p[i];
        if (q->is_weight == weight && l->kind != QUANT_MATMUL && ms_str_starts(q->name, l->name) &&
            (q->name.n == l->name.n || q->name.p[l->name.n] == '.'))
            return q->before;
    }
    return MS_MAP_NONE;
}

static enum ms_rc load_pair(const struct pairing *p, const struct quant_layer *t,
                            const struct quant_layer *g, struct loaded *l, struct ms_err *err)
{
    MS_TRY(quant_load(p->g, g->x, &l->x, err));
    MS_TRY(quant_load(p->g, g->w, &l->w, err));
    MS_TRY(quant_load(p->g, g->y, &l->y, err));
    MS_TRY(quant_load(p->g, g->bias, &l->bias, err));
    MS_TRY(quant_load(p->t, t->x, &l->qx, err));
    MS_TRY(quant_load(p->t, t->w, &l->qw, err));
    MS_TRY(quant_load(p->t, t->y, &l->qy, err));
    MS_TRY(quant_load(p->t, t->bias, &l->qbias, err));
    MS_TRY(quant_load(p->t, t->module_x, &l->module_x, err));
    MS_TRY(quant_load(p->t, t->module_w, &l->module_w, err));
    return quant_load(p->t, node_before(p->t, t, true), &l->node_w, err);
}

static bool same_count(const struct quant_values *a, const struct quant_values *b)
{
    return a->v != NULL && b->v != NULL && a->count == b->count;
}
static bool is_other(const struct quant_values *a, const struct quant_values *b)
{
    return same_count(a, b) && memcmp(a->v, b->v, (size_t)a->count * sizeof *a->v) != 0;
}

static enum ms_rc judge_tensor(const struct pairing *p, const struct quant_layer *l,
                               enum quant_role role, const struct quant_values *before,
                               const struct quant_values *after, struct ms_err *err)
{
    struct quant_tensor_result r = {.name = l->name,
                                    .node = l->node,
                                    .role = role,
                                    .kind = l->kind,
                                    .step = p->step,
                                    .rank = p->rank};
    if (!same_count(before, after) || ms_dtype_kind(after->dtype) != MS_DTK_FLOAT)
        return MS_OK;
    const bool weight = role == QUANT_WEIGHT && l->kind != QUANT_MATMUL;
    const struct quant_table f =
        quant__fold(before->v, after->shape, after->ndim, before->dtype, weight);
    const struct quant_table q =
        quant__fold(after->v, after->shape, after->ndim, after->dtype, weight);
    MS_TRY(quant_judge(&r.v, &f, &q, weight, err));
    return quant__add_tensor(p->c, &r, err);
}

static enum ms_rc judge_pair(const struct pairing *p, const struct quant_layer *t,
                             const struct loaded *l, struct ms_err *err)
{
    if (l->node_w.v == NULL && t->kind != QUANT_MATMUL)
        MS_TRY(judge_tensor(p, t, QUANT_WEIGHT,
                            is_other(&l->module_w, &l->qw) ? &l->module_w : &l->w, &l->qw, err));
    if (is_other(&l->module_x, &l->qx) && node_before(p->t, t, false) == MS_MAP_NONE)
        MS_TRY(judge_tensor(p, t, QUANT_INPUT, &l->module_x, &l->qx, err));
    return MS_OK;
}

static void measure_output(struct quant_layer_result *r, const struct quant_values *y,
                           const struct quant_values *qy)
{
    r->has_output = same_count(y, qy);
    for (uint64_t i = 0; r->has_output && i < y->count; i++) {
        const double v = (double)y->v[i], d = (double)qy->v[i] - v;
        if (isfinite(d)) {
            r->signal += v * v;
            r->noise += d * d;
        }
    }
}

static enum ms_rc add_pair(const struct pairing *p, const struct quant_layer *t,
                           const struct quant_layer *g, const struct loaded *l,
                           enum quant_fusion fused, struct ms_err *err)
{
    static const struct quant_values nothing = {0};
    struct quant_layer_result r = {.kind = t->kind, .step = p->step, .rank = p->rank};
    struct quant_operands o = {
        t->kind,   &l->x,
        &l->w,     &l->y,
        &l->bias,  &l->qx,
        &l->qw,    &l->qy,
        &l->qbias, .qx_before = is_other(&l->module_x, &l->qx) ? &l->module_x : &nothing};
    measure_output(&r, &l->y, &l->qy);
    if (t->kind == QUANT_CONV)
        quant_set_arguments(p->g, g, &o);
    quant_terms_find(&r.terms, &o);
    if (r.terms.sampled != 0 && r.terms.signal > 0)
        r.introduced = (r.terms.weight + r.terms.input + r.terms.sums) / r.terms.signal;
    if (fused == QUANT_FUSED_ROWS && r.terms.sampled != 0) { /* the norm has the bias, too */
        r.signal = r.terms.signal;
        r.noise = r.terms.total;
    }
    r.name = ms_arena_str(p->c->arena, t->name);
    r.node = ms_arena_str(p->c->arena, t->node);
    r.golden = ms_arena_str(p->c->arena, g->node);
    struct quant_layer_result *slot = ms_vec_push(&p->c->layers);
    if (slot == NULL || r.name.p == NULL || r.node.p == NULL || r.golden.p == NULL)
        return ms_no_memory(err);
    *slot = r;
    return MS_OK;
}

static enum ms_rc trace_pair(const struct pairing *p, const struct loaded *l,
                             const struct quant_terms *t, struct ms_err *err)
{
    struct quant_trace *slot = ms_vec_push(&p->traces->of);
    if (slot == NULL)
        return ms_no_memory(err);
    const struct quant_values *before = same_count(&l->module_x, &l->qx) ? &l->module_x : &l->qx;
    const enum ms_rc rc = quant_trace_take(slot, &l->x, before, &l->y, &l->qy, err);
    const double own = t->weight + t->input + t->sums, all = own + t->inherited;
    slot->own = t->sampled == 0 ? 0.5 : all > 0 ? own / all : 0;
    return rc;
}

static enum ms_rc unfuse(enum quant_kind kind, struct loaded *l, enum quant_fusion *found,
                         struct ms_err *err)
{
    struct quant_values *before = l->node_w.v != NULL              ? &l->node_w
                                  : is_other(&l->module_w, &l->qw) ? &l->module_w
                                                                   : &l->qw;
    return quant_unfuse(
        &(struct quant_fused){kind, &l->w, before, &l->qw, &l->qx, &l->module_x, &l->qy, &l->qbias},
        found, err);
}

/* Adds what the run returns, which adds no noise of its own. */
static enum ms_rc trace_result(const struct pairing *p, struct ms_err *err)
{
    static const struct quant_values nothing = {0};
    struct quant_values y = {0}, qy = {0};
    struct quant_trace *slot = ms_vec_push(&p->traces->of);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct quant_trace){0};
    enum ms_rc rc = quant_load(p->g, p->g->result, &y, err);
    if (rc == MS_OK)
        rc = quant_load(p->t, p->t->result, &qy, err);
    if (rc == MS_OK)
        rc = quant_trace_take(slot, &y, &qy, &nothing, &nothing, err);
    quant_values_free(&y);
    quant_values_free(&qy);
    return rc;
}

static enum ms_rc compare_pair(const struct pairing *p, const struct quant_layer *t,
                               const struct quant_layer *g, struct ms_err *err)
{
    struct loaded l = {0};
    enum quant_fusion fused = QUANT_FUSED_NOTHING;
    enum ms_rc rc = load_pair(p, t, g, &l, err);
    if (rc == MS_OK)
        rc = judge_pair(p, t, &l, err);
    if (rc == MS_OK)
        rc = unfuse(t->kind, &l, &fused, err);
    if (rc == MS_OK)
        rc = add_pair(p, t, g, &l, fused, err);
    if (rc == MS_OK)
        rc = trace_pair(p, &l, &p->c->layers.p[p->c->layers.n - 1].terms, err);
    free_loaded(&l);
    return rc;
}

/* ---- nodes that quantise --------------------------------------------------------------- */

static enum ms_rc judge_node(const struct pairing *p, const struct quantiser *q, struct ms_err *err)
{
    struct quant_layer l = {.name = q->name, .node = q->node, .kind = QUANT_LINEAR};
    struct quant_values before = {0}, after = {0};
    const int64_t dot = ms_str_rfind(q->name, '.');
    if (dot > 0 && !ms_str_eq(q->name, q->node))
        l.name = ms_str_sub(q->name, 0, (uint32_t)dot);
    enum ms_rc rc = quant_load(p->t, q->before, &before, err);
    if (rc == MS_OK)
        rc = quant_load(p->t, q->after, &after, err);
    if (rc == MS_OK && after.ndim > 2)
        l.kind = QUANT_CONV;
    if (rc == MS_OK)
        rc = judge_tensor(p, &l, q->is_weight ? QUANT_WEIGHT : QUANT_INPUT, &before, &after, err);
    quant_values_free(&before);
    quant_values_free(&after);
    return rc;
}

/* ---- pairs of layers ---------------------------------------------------------------------- */

static bool same_shape(const struct quant_run *t, uint32_t a, const struct quant_run *g, uint32_t b)
{
    struct probe_leaf x, y;
    if (a == MS_MAP_NONE || b == MS_MAP_NONE)
        return false;
    probe_row_leaf(t->dump, &t->dump->rows.p[a], &x);
    probe_row_leaf(g->dump, &g->dump->rows.p[b], &y);
    uint64_t dims[2][PROBE_MAX_DIMS];
    unsigned n[2];
    return probe_leaf_shape(&x, dims[0], PROBE_MAX_DIMS, &n[0]) &&
           probe_leaf_shape(&y, dims[1], PROBE_MAX_DIMS, &n[1]) && n[0] == n[1] &&
           memcmp(dims[0], dims[1], n[0] * sizeof **dims) == 0;
}

/* Pairs what keys leave over in order of execution, where kinds and shapes are the same. */
static void pair_in_order(const struct pairing *p, uint32_t *golden_of, bool *taken)
{
    size_t from = 0;
    for (size_t i = 0; i < p->t->layers.n; i++) {
        const struct quant_layer *t = &p->t->layers.p[i];
        for (size_t k = from; golden_of[i] == MS_MAP_NONE && k < p->g->layers.n; k++) {
            const struct quant_layer *g = &p->g->layers.p[k];
            if (!taken[k] && g->kind == t->kind && same_shape(p->t, t->y, p->g, g->y)) {
                golden_of[i] = (uint32_t)k;
                taken[k] = true;
                from = k + 1;
            }
        }
    }
}

static void pair_layers(const struct pairing *p, uint32_t *golden_of, bool *taken)
{
    for (size_t i = 0; i < p->t->layers.n; i++) {
        golden_of[i] = ms_map_get(&p->g->keys, p->t->layers.p[i].key);
        if (golden_of[i] != MS_MAP_NONE &&
            !same_shape(p->t, p->t->layers.p[i].y, p->g, p->g->layers.p[golden_of[i]].y))
            golden_of[i] = MS_MAP_NONE;
        if (golden_of[i] != MS_MAP_NONE)
            taken[golden_of[i]] = true;
    }
    pair_in_order(p, golden_of, taken);
}

static enum ms_rc compare_layers(const struct pairing *p, const uint32_t *golden_of,
                                 struct ms_err *err)
{
    for (size_t i = 0; i < p->t->layers.n; i++) {
        quant_watch_layer(p->watch, i, p->t->layers.n);
        if (golden_of[i] == MS_MAP_NONE)
            p->c->unmatched[0]++;
        else
            MS_TRY(compare_pair(p, &p->t->layers.p[i], &p->g->layers.p[golden_of[i]], err));
    }
    for (size_t i = 0; i < p->t->quantisers.n; i++)
        MS_TRY(judge_node(p, &p->t->quantisers.p[i], err));
    return MS_OK;
}

static enum ms_rc compare_runs(const struct pairing *p, struct ms_err *err)
{
    uint32_t *golden_of = ms_alloc((p->t->layers.n + 1) * sizeof *golden_of);
    bool *taken = ms_calloc(p->g->layers.n + 1, sizeof *taken);
    enum ms_rc rc = golden_of != NULL && taken != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK) {
        pair_layers(p, golden_of, taken);
        rc = compare_layers(p, golden_of, err);
    }
    for (size_t i = 0; rc == MS_OK && i < p->g->layers.n; i++)
        p->c->unmatched[1] += !taken[i];
    ms_free(golden_of);
    ms_free(taken);
    return rc;
}

/* Sets the shares of the layers of a run, which are the last ones of the list. Where many operands are not recorded,
 * parts of errors are not known, and neither are shares. */
static enum ms_rc explain_run(struct quant_comparison *c, const struct traces *t,
                              struct ms_err *err)
{
    const size_t n = t->of.n - 1, first = c->layers.n - n; /* without the result */
    size_t unknown = 0;
    double *shares = ms_calloc(n + 2, sizeof *shares);
    enum ms_rc rc = shares != NULL ? quant_explain(t->of.p, n + 1, shares, err) : ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        unknown += c->layers.p[first + i].terms.sampled == 0;
    for (size_t i = 0; rc == MS_OK && 5 * unknown <= n && i < n; i++)
        c->layers.p[first + i].share = shares[i];
    ms_free(shares);
    return rc;
}

static enum ms_rc compare_places(struct quant_comparison *c, const struct probe_place *t,
                                 const struct probe_place *g, struct quant_watch *watch,
                                 struct ms_err *err)
{
    struct quant_run runs[2];
    MS_TRY(quant_run_open(&runs[0], t, err));
    enum ms_rc rc = quant_run_open(&runs[1], g, err);
    if (rc == MS_OK) {
        struct traces traces = {0};
        const struct pairing p = {c, &runs[0], &runs[1], t->step, t->rank, &traces, watch};
        rc = compare_runs(&p, err);
        if (rc == MS_OK)
            rc = trace_result(&p, err);
        if (rc == MS_OK)
            rc = explain_run(c, &traces, err);
        for (size_t i = 0; i < traces.of.n; i++)
            quant_trace_free(&traces.of.p[i]);
        ms_vec_free(&traces.of);
        quant_run_close(&runs[1]);
    }
    quant_run_close(&runs[0]);
    return rc;
}

/* Returns the dump of the other side with the same rank and step. */
static const struct probe_place *partner(const struct probe_places *all, size_t others,
                                         const struct probe_place *of)
{
    if (all->list.n == 1 && others == 1)
        return &all->list.p[0];
    for (size_t i = 0; i < all->list.n; i++) {
        if (all->list.p[i].step == of->step && all->list.p[i].rank == of->rank)
            return &all->list.p[i];
    }
    return NULL;
}

static enum ms_rc compare_dumps(struct quant_comparison *c, const char *target, const char *golden,
                                struct ms_progress *bar, struct ms_err *err)
{
    struct probe_places t, g;
    size_t pairs = 0;
    MS_TRY(probe_find(&t, target, err));
    enum ms_rc rc = probe_find(&g, golden, err);
    if (rc != MS_OK) {
        probe_places_free(&t);
        return rc;
    }
    struct quant_watch watch = {.bar = bar, .dumps = t.list.n};
    for (size_t i = 0; rc == MS_OK && i < t.list.n; i++) {
        const struct probe_place *other = partner(&g, t.list.n, &t.list.p[i]);
        if (other == NULL)
            continue;
        pairs++;
        watch.dump = i;
        rc = compare_places(c, &t.list.p[i], other, &watch, err);
    }
    if (rc == MS_OK && pairs == 0)
        rc = ms_fail(err, MS_E_NOTFOUND, "%s: no rank and step that %s has, too", target, golden);
    probe_places_free(&t);
    probe_places_free(&g);
    return rc;
}

/* ---- conclusions ---------------------------------------------------------------------------- */

static double sqnr_of(const struct quant_layer_result *r)
{
    return r->has_output ? quant_sqnr(r->signal, r->noise) : (double)INFINITY;
}

static int order_layers(const void *pa, const void *pb)
{
    const struct quant_layer_result *a = pa, *b = pb;
    const double x = sqnr_of(a), y = sqnr_of(b);
    return MS_ORDER(x, y, MS_ORDER(b->introduced, a->introduced, ms_str_cmp(a->node, b->node)));
}

static int order_shares(const void *pa, const void *pb)
{
    return -ms_order_f64(pa, pb);
}

/* Counts the layers that make 80 % of the noise; the shares of each run are made those of all. */
static enum ms_rc count_explaining(struct quant_comparison *c, struct ms_err *err)
{
    double all = 0, sum = 0;
    double *shares = ms_alloc((c->layers.n + 1) * sizeof *shares);
    if (shares == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < c->layers.n; i++)
        all += c->layers.p[i].share;
    for (size_t i = 0; i < c->layers.n; i++)
        shares[i] = c->layers.p[i].share = all > 0 ? c->layers.p[i].share / all : 0;
    ms_sort(shares, c->layers.n, sizeof *shares, order_shares);
    while (all > 0 && sum < 0.8 && c->explain < c->layers.n)
        sum += shares[c->explain++];
    ms_free(shares);
    return MS_OK;
}

/* Judges tensors together: weights, whose rows are the outputs of a layer of any kind, or inputs of one kind. */
static enum ms_rc judge_group(struct quant_comparison *c, enum quant_role role,
                              enum quant_kind kind, struct ms_err *err)
{
    struct quant_verdict **v = ms_alloc((c->tensors.n + 1) * sizeof *v);
    size_t n = 0;
    if (v == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < c->tensors.n; i++) {
        struct quant_tensor_result *t = &c->tensors.p[i];
        if (t->role == role && (role == QUANT_WEIGHT || t->kind == kind))
            v[n++] = &t->v;
    }
    quant_judge_together(v, n);
    ms_free(v);
    return MS_OK;
}

static enum ms_rc conclude(struct quant_comparison *c, struct ms_err *err)
{
    c->output = (double)NAN;
    if (c->layers.n != 0) {
        c->output = sqnr_of(&c->layers.p[c->layers.n - 1]);
        c->output_name = c->layers.p[c->layers.n - 1].name;
    }
    MS_TRY(count_explaining(c, err));
    ms_vec_sort(&c->layers, order_layers);
    MS_TRY(judge_group(c, QUANT_WEIGHT, QUANT_LINEAR, err));
    for (int kind = QUANT_LINEAR; kind <= QUANT_MATMUL; kind++)
        MS_TRY(judge_group(c, QUANT_INPUT, (enum quant_kind)kind, err));
    for (size_t i = 0; i < c->tensors.n; i++) {
        c->quantised += c->tensors.p[i].v.is_quantised;
        c->faults += c->tensors.p[i].v.fault != QUANT_NO_FAULT;
    }
    return MS_OK;
}

enum ms_rc quant_compare(struct quant_comparison *c, const char *target, const char *golden,
                         struct ms_progress *bar, struct ms_err *err)
{
    *c = (struct quant_comparison){.arena = ms_arena_new(NAMES_MAX)};
    if (c->arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = quant_is_dump(target) ? compare_dumps(c, target, golden, bar, err)
                                          : quant__checkpoints(c, target, golden, bar, err);
    if (rc == MS_OK)
        rc = conclude(c, err);
    if (rc != MS_OK)
        quant_comparison_free(c);
    return rc;
}

void quant_comparison_free(struct quant_comparison *c)
{
    ms_vec_free(&c->layers);
    ms_vec_free(&c->tensors);
    ms_arena_free(c->arena);
    *c = (struct quant_comparison){0};
}
