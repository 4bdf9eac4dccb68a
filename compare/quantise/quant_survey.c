/* SPDX-License-Identifier: MIT
 *
 * quant_survey: see the header.
 */
#include "compare/quantise/quant_survey.h"

#include "compare/quantise/quant_ckpt.h"
#include "compare/quantise/quant_terms.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>

#define NAMES_MAX ((size_t)1 << 28)

struct surveying {
    struct quant_survey *s;
    const struct quant_plan *plan;
    int64_t step, rank;
    struct quant_watch watch;
};

/* Adds a loss to the sums of all. */
static void add_loss(struct quant_loss *all, const struct quant_loss *l)
{
    if (l->groups != 0) {
        all->scale_min = all->groups == 0 ? l->scale_min : fmin(all->scale_min, l->scale_min);
        all->scale_max = all->groups == 0 ? l->scale_max : fmax(all->scale_max, l->scale_max);
    }
    all->count += l->count;
    all->special += l->special;
    all->nonzero += l->nonzero;
    all->underflow += l->underflow;
    all->overflow += l->overflow;
    all->clipped += l->clipped;
    all->groups += l->groups;
    all->unused += l->unused;
    all->signal += l->signal;
    all->noise += l->noise;
    all->most = fmax(all->most, l->most);
}

/* ---- one tensor ------------------------------------------------------------------------ */

/* Folds a tensor so that blocks lie along the axis over which the product sums. A convolution's weight sums
 * over all axes but the first. */
static enum ms_rc fold(struct quant_shape *out, const struct quant_plan *plan,
                       const struct quant_scheme *s, const struct quant_values *v,
                       enum quant_kind kind, bool second, struct ms_err *err)
{
    if (s->by != QUANT_BY_GROUP || plan->axis_given || v->ndim < 2)
        return quant_shape_of(out, v->shape, v->ndim, s->axis, err);
    if (kind == QUANT_CONV && second) {
        *out = (struct quant_shape){v->shape[0], v->shape[0] != 0 ? v->count / v->shape[0] : 0, 1};
        return MS_OK;
    }
    const int axis = kind == QUANT_CONV ? 1 : kind == QUANT_MATMUL && second ? -2 : -1;
    return quant_shape_of(out, v->shape, v->ndim, axis, err);
}

/* Quantises a copy of the values. */
static enum ms_rc quantise(struct quant_values *out, const struct quant_plan *plan,
                           const struct quant_scheme *s, const struct quant_values *v,
                           enum quant_kind kind, bool second, struct quant_loss *loss,
                           struct ms_err *err)
{
    struct quant_shape shape;
    *out = *v;
    out->v = NULL;
    MS_TRY(fold(&shape, plan, s, v, kind, second, err));
    out->v = ms_alloc((size_t)v->count * sizeof *out->v + 1);
    if (out->v == NULL)
        return ms_no_memory(err);
    quant_tensor(s, &shape, v->v, out->v, loss);
    return MS_OK;
}

/* ---- one layer ------------------------------------------------------------------------- */

struct operands {
    struct quant_values x, w, y, qx, qw;
};

static void free_operands(struct operands *o)
{
    quant_values_free(&o->x);
    quant_values_free(&o->w);
    quant_values_free(&o->y);
    quant_values_free(&o->qx);
    quant_values_free(&o->qw);
}

static bool is_float(const struct quant_values *v)
{
    return v->v != NULL && v->count != 0 && ms_dtype_kind(v->dtype) == MS_DTK_FLOAT;
}

static enum ms_rc quantise_operands(const struct surveying *s, enum quant_kind kind,
                                    struct operands *o, struct quant_survey_row *row,
                                    struct ms_err *err)
{
    const struct quant_plan *plan = s->plan;
    const bool second_is_weight = kind != QUANT_MATMUL;
    if (is_float(&o->w) && (second_is_weight ? plan->weights : plan->inputs))
        MS_TRY(quantise(&o->qw, plan, second_is_weight ? &plan->weight : &plan->input, &o->w, kind,
                        true, &row->weight, err));
    if (is_float(&o->x) && plan->inputs)
        MS_TRY(quantise(&o->qx, plan, &plan->input, &o->x, kind, false, &row->input, err));
    return MS_OK;
}

static void multiply(const struct quant_run *r, const struct quant_layer *l,
                     const struct operands *o, struct quant_survey_row *row)
{
    static const struct quant_values nothing = {0};
    struct quant_terms t;
    struct quant_operands all = {l->kind,
                                 &o->x,
                                 &o->w,
                                 &o->y,
                                 &nothing,
                                 o->qx.v != NULL ? &o->qx : &o->x,
                                 o->qw.v != NULL ? &o->qw : &o->w,
                                 &o->y,
                                 &nothing,
                                 .qx_before = &o->x};
    if (l->kind == QUANT_CONV)
        quant_set_arguments(r, l, &all);
    quant_terms_find(&t, &all);
    row->signal = t.signal;
    row->noise = t.sampled != 0 ? t.product : 0;
}

static enum ms_rc keep_row(const struct surveying *s, struct quant_survey_row *row,
                           struct ms_str name, struct ms_str node, struct ms_err *err)
{
    if (row->weight.count == 0 && row->input.count == 0) {
        s->s->left_out++;
        return MS_OK;
    }
    row->name = ms_arena_str(s->s->arena, name);
    row->node = ms_arena_str(s->s->arena, node);
    struct quant_survey_row *slot = ms_vec_push(&s->s->rows);
    if (slot == NULL || row->name.p == NULL || row->node.p == NULL)
        return ms_no_memory(err);
    *slot = *row;
    add_loss(&s->s->weights, &row->weight);
    add_loss(&s->s->inputs, &row->input);
    s->s->has_products = s->s->has_products || row->signal > 0;
    return MS_OK;
}

static enum ms_rc survey_layer(const struct surveying *s, const struct quant_run *r,
                               const struct quant_layer *l, struct ms_err *err)
{
    struct operands o = {0};
    struct quant_survey_row row = {.kind = l->kind, .step = s->step, .rank = s->rank};
    enum ms_rc rc = quant_load(r, l->x, &o.x, err);
    if (rc == MS_OK)
        rc = quant_load(r, l->w, &o.w, err);
    if (rc == MS_OK)
        rc = quant_load(r, l->y, &o.y, err);
    if (rc == MS_OK)
        rc = quantise_operands(s, l->kind, &o, &row, err);
    if (rc == MS_OK)
        multiply(r, l, &o, &row);
    free_operands(&o);
    return rc == MS_OK ? keep_row(s, &row, l->name, l->node, err) : rc;
}

static enum ms_rc survey_place(struct surveying *s, const struct probe_place *place,
                               struct ms_err *err)
{
    struct quant_run r;
    s->step = place->step;
    s->rank = place->rank;
    MS_TRY(quant_run_open(&r, place, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; rc == MS_OK && i < r.layers.n; i++) {
        quant_watch_layer(&s->watch, i, r.layers.n);
        rc = survey_layer(s, &r, &r.layers.p[i], err);
    }
    quant_run_close(&r);
    return rc;
}

static enum ms_rc survey_dumps(struct surveying *s, const char *path, struct ms_err *err)
{
    struct probe_places places;
    MS_TRY(probe_find(&places, path, err));
    enum ms_rc rc = MS_OK;
    s->watch.dumps = places.list.n;
    for (size_t i = 0; rc == MS_OK && i < places.list.n; i++) {
        s->watch.dump = i;
        rc = survey_place(s, &places.list.p[i], err);
    }
    probe_places_free(&places);
    return rc;
}

/* ---- a checkpoint ---------------------------------------------------------------------------- */

static enum ms_rc survey_weight(void *ctx, const struct probe_ckpt_entry *e,
                                const struct quant_values *v, struct ms_err *err)
{
    const struct surveying *s = ctx;
    struct quant_values q = {0};
    struct quant_survey_row row = {
        .kind = v->ndim > 2 ? QUANT_CONV : QUANT_LINEAR, .step = -1, .rank = -1};
    enum ms_rc rc = quantise(&q, s->plan, &s->plan->weight, v, row.kind, true, &row.weight, err);
    quant_values_free(&q);
    return rc == MS_OK ? keep_row(s, &row, e->name, e->name, err) : rc;
}

/* ---- all --------------------------------------------------------------------------------------- */

double quant_survey_sqnr(const struct quant_survey_row *r)
{
    if (r->signal > 0)
        return quant_sqnr(r->signal, r->noise);
    const double w =
        r->weight.count != 0 ? quant_sqnr(r->weight.signal, r->weight.noise) : (double)INFINITY;
    const double x =
        r->input.count != 0 ? quant_sqnr(r->input.signal, r->input.noise) : (double)INFINITY;
    return fmin(w, x);
}

static int order_rows(const void *pa, const void *pb)
{
    const struct quant_survey_row *a = pa, *b = pb;
    const double x = quant_survey_sqnr(a), y = quant_survey_sqnr(b);
    return MS_ORDER(x, y, ms_str_cmp(a->node, b->node));
}

enum ms_rc quant_survey_run(struct quant_survey *s, const char *path, const struct quant_plan *plan,
                            struct ms_progress *bar, struct ms_err *err)
{
    struct surveying w = {.s = s, .plan = plan, .step = -1, .rank = -1, .watch = {.bar = bar}};
    *s = (struct quant_survey){.arena = ms_arena_new(NAMES_MAX)};
    if (s->arena == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = quant_is_dump(path) ? survey_dumps(&w, path, err)
                                        : quant_each_weight(path, survey_weight, &w, bar, err);
    if (rc == MS_OK && s->rows.n == 0)
        rc = ms_fail(err, MS_E_NOTFOUND,
                     "%s: no layer with tensor files; record with task \"tensor\", or give a "
                     "checkpoint",
                     path);
    if (rc == MS_OK)
        ms_vec_sort(&s->rows, order_rows);
    else
        quant_survey_free(s);
    return rc;
}

void quant_survey_free(struct quant_survey *s)
{
    ms_vec_free(&s->rows);
    ms_arena_free(s->arena);
    *s = (struct quant_survey){0};
}
