/* SPDX-License-Identifier: MIT
 *
 * show_quantise: see the header.
 */
#include "compare/cmd/show_quantise.h"

#include "probe/base/human.h"
#include "probe/base/jprint.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/base/order.h"

#include <math.h>
#include <stdio.h>

enum { DECIBELS = 16, NAME_WIDTH = 44 };

/* "23.4", "exact" without noise, "-" without a figure. */
static const char *decibels(char out[DECIBELS], bool has, double signal, double noise)
{
    const double v = quant_sqnr(signal, noise);
    if (!has || isnan(v))
        snprintf(out, DECIBELS, "-");
    else if (isinf(v))
        snprintf(out, DECIBELS, "exact");
    else
        snprintf(out, DECIBELS, "%.1f", v);
    return out;
}

static void print_name(struct ms_str name)
{
    struct ms_buf b = {.max = 1 << 16};
    ms_human_cell(&b, name, NAME_WIDTH);
    printf("%.*s", (int)b.n, b.n != 0 ? b.p : "");
    ms_buf_free(&b);
}

static double per_cent(uint64_t part, uint64_t all)
{
    return all != 0 ? 100 * (double)part / (double)all : 0;
}

/* ---- what a format would cost ------------------------------------------------------------ */

static void print_losses(const char *what, const struct quant_loss *l)
{
    char db[DECIBELS], n[MS_HUMAN_MAX];
    if (l->count == 0)
        return;
    printf("%-8s SQNR %s dB over %s values: underflow %.3g %%, overflow %.3g %%, clipped %.3g %%, "
           "scales %.3g to %.3g, unused range %.3g %%\n",
           what, decibels(db, true, l->signal, l->noise), ms_human_count(n, l->count),
           per_cent(l->underflow, l->count), per_cent(l->overflow, l->count),
           per_cent(l->clipped, l->count), l->scale_min, l->scale_max,
           l->groups != 0 ? 100 * l->unused / (double)l->groups : 0);
    if (l->special != 0)
        printf("%-8s %s of them are NaN or infinite, or share a scale with one\n", "",
               ms_human_count(n, l->special));
}

static void print_survey_row(const struct quant_survey_row *r)
{
    char a[DECIBELS], b[DECIBELS], c[DECIBELS];
    const struct quant_loss *w = &r->weight, *x = &r->input;
    print_name(r->name);
    printf(" %8s %8s %8s %9.3g %9.3g\n", decibels(a, r->signal > 0, r->signal, r->noise),
           decibels(b, w->count != 0, w->signal, w->noise),
           decibels(c, x->count != 0, x->signal, x->noise),
           per_cent(w->underflow + x->underflow, w->count + x->count),
           per_cent(w->clipped + x->clipped, w->count + x->count));
}

void quantise_show_survey(const struct quant_survey *s, const struct quant_plan *plan, size_t most)
{
    char text[160];
    if (plan->weights) {
        quant_scheme_text(&plan->weight, text, sizeof text);
        printf("weights  %s\n", text);
    }
    if (plan->inputs && s->inputs.count != 0) {
        quant_scheme_text(&plan->input, text, sizeof text);
        printf("inputs   %s\n", text);
    }
    print_losses("weights", &s->weights);
    print_losses("inputs", &s->inputs);
    printf("\n%-*s %8s %8s %8s %9s %9s\n", NAME_WIDTH, "layers that lose most, SQNR in dB",
           "output", "weight", "input", "underfl %", "clipped %");
    const size_t shown = ms_cmd_listed(s->rows.n, most);
    for (size_t i = 0; i < shown; i++)
        print_survey_row(&s->rows.p[i]);
    ms_cmd_more(stdout, s->rows.n - shown, "layers");
    if (s->left_out != 0)
        printf("note: %zu layers without recorded tensors of floats are left out\n", s->left_out);
}

/* ---- JSON of it ----------------------------------------------------------------------------- */

static void put_decibels(struct ms_jwrite *w, const char *key, bool has, double signal,
                         double noise)
{
    const double v = quant_sqnr(signal, noise);
    ms_jwrite_key(w, ms_str_of(key));
    if (has && isfinite(v))
        ms_jwrite_f64(w, v);
    else
        ms_jwrite_null(w);
}

static void put_loss(struct ms_jwrite *w, const char *key, const struct quant_loss *l)
{
    const double n = l->count != 0 ? (double)l->count : 1;
    ms_jwrite_key(w, ms_str_of(key));
    if (l->count == 0) {
        ms_jwrite_null(w);
        return;
    }
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "values", (int64_t)l->count);
    ms_jwrite_ki64(w, "special", (int64_t)l->special);
    put_decibels(w, "sqnr_db", true, l->signal, l->noise);
    ms_jwrite_kf64(w, "mse", l->noise / n);
    ms_jwrite_kf64(w, "largest_error", l->most);
    ms_jwrite_kf64(w, "underflow", (double)l->underflow / n);
    ms_jwrite_kf64(w, "overflow", (double)l->overflow / n);
    ms_jwrite_kf64(w, "clipped", (double)l->clipped / n);
    ms_jwrite_kf64(w, "scale_min", l->scale_min);
    ms_jwrite_kf64(w, "scale_max", l->scale_max);
    ms_jwrite_kf64(w, "unused_range", l->groups != 0 ? l->unused / (double)l->groups : 0);
    ms_jwrite_obj_end(w);
}

static void put_survey_row(struct ms_jwrite *w, const struct quant_survey_row *r)
{
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "layer", r->name);
    ms_jwrite_ktext(w, "node", r->node);
    ms_jwrite_kmaybe(w, "rank", r->rank);
    ms_jwrite_kmaybe(w, "step", r->step);
    put_decibels(w, "output_sqnr_db", r->signal > 0, r->signal, r->noise);
    put_loss(w, "weight", &r->weight);
    put_loss(w, "input", &r->input);
    ms_jwrite_obj_end(w);
}

enum ms_rc quantise_show_survey_json(const struct quant_survey *s, const struct quant_plan *plan,
                                     struct ms_err *err)
{
    struct ms_jwrite w;
    char text[160];
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    quant_scheme_text(&plan->weight, text, sizeof text);
    ms_jwrite_kstr(&w, "weight_scheme", text);
    quant_scheme_text(&plan->input, text, sizeof text);
    ms_jwrite_kstr(&w, "input_scheme", text);
    put_loss(&w, "weights", &s->weights);
    put_loss(&w, "inputs", &s->inputs);
    ms_jwrite_key(&w, MS_STR("layers"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < s->rows.n; i++)
        put_survey_row(&w, &s->rows.p[i]);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}

/* ---- quantised beside floats ------------------------------------------------------------------- */

static const char *const role_words[] = {"weight", "input"};

static void print_place(int64_t rank, int64_t step)
{
    if (rank >= 0)
        printf(", rank %lld", (long long)rank);
    if (step >= 0)
        printf(", step %lld", (long long)step);
}

static void print_fault(const struct quant_tensor_result *t, size_t place)
{
    printf("suspect %zu  %.*s  %s: %s", place, MS_STR_ARG(t->name), role_words[t->role],
           quant_fault_text[t->v.fault]);
    print_place(t->rank, t->step);
    printf("\n    %s\n", t->v.text);
}

/* Says with the parts by which names several layers share. */
static void print_explaining(const struct quant_comparison *c, size_t most)
{
    if (c->explain == 0)
        return;
    const struct quant_layer_result **by = ms_alloc((c->layers.n + 1) * sizeof *by);
    size_t n = 0;
    if (by == NULL)
        return;
    for (size_t k = 0; k < c->layers.n; k++) {
        size_t at = n++;
        for (; at > 0 && by[at - 1]->share < c->layers.p[k].share; at--)
            by[at] = by[at - 1];
        by[at] = &c->layers.p[k];
    }
    const size_t shown = ms_cmd_listed(c->explain, most);
    printf("%zu of %zu layers make 80 %% of its noise: ", c->explain, c->layers.n);
    for (size_t i = 0; i < shown; i++)
        printf("%s%.*s %.0f %%", i != 0 ? ", " : "", MS_STR_ARG(by[i]->name), 100 * by[i]->share);
    printf("%s\n", shown < c->explain ? ", ..." : "");
    ms_free(by);
}

static void print_layer(const struct quant_layer_result *r)
{
    char a[DECIBELS], b[DECIBELS], c[DECIBELS], d[DECIBELS], e[DECIBELS];
    const struct quant_terms *t = &r->terms;
    const bool has = t->sampled != 0;
    print_name(r->name);
    printf(" %8s %8s %8s %9s %8s %7.1f\n", decibels(a, r->has_output, r->signal, r->noise),
           decibels(b, has, t->signal, t->weight), decibels(c, has, t->signal, t->input),
           decibels(d, has, t->signal, t->inherited), decibels(e, has, t->signal, t->sums),
           100 * r->share);
}

static void print_layers(const struct quant_comparison *c, size_t most)
{
    if (c->layers.n == 0)
        return;
    printf("\n%-*s %8s %8s %8s %9s %8s %7s\n", NAME_WIDTH, "worst layers first, SQNR in dB",
           "output", "weight", "input", "inherited", "sums", "share %");
    const size_t shown = ms_cmd_listed(c->layers.n, most);
    for (size_t i = 0; i < shown; i++)
        print_layer(&c->layers.p[i]);
    ms_cmd_more(stdout, c->layers.n - shown, "layers");
}

static int order_tensors(const void *pa, const void *pb)
{
    const struct quant_tensor_result *a = *(const struct quant_tensor_result *const *)pa;
    const struct quant_tensor_result *b = *(const struct quant_tensor_result *const *)pb;
    const double x = quant_sqnr(a->v.signal, a->v.noise), y = quant_sqnr(b->v.signal, b->v.noise);
    return MS_ORDER(x, y, (a > b) - (a < b));
}

/* Prints the tensors of a checkpoint, which has no outputs. */
static void print_tensors(const struct quant_comparison *c, size_t most)
{
    const struct quant_tensor_result **by = ms_alloc((c->tensors.n + 1) * sizeof *by);
    char db[DECIBELS], layout[64];
    if (by == NULL || c->layers.n != 0 || c->tensors.n == 0) {
        ms_free(by);
        return;
    }
    for (size_t i = 0; i < c->tensors.n; i++)
        by[i] = &c->tensors.p[i];
    ms_sort(by, c->tensors.n, sizeof *by, order_tensors);
    printf("\n%-*s %8s  %s\n", NAME_WIDTH, "worst weights first", "SQNR dB", "as");
    const size_t shown = ms_cmd_listed(c->tensors.n, most);
    for (size_t i = 0; i < shown; i++) {
        const struct quant_verdict *v = &by[i]->v;
        quant_layout_text(&v->layout, layout, sizeof layout);
        print_name(by[i]->name);
        printf(" %8s  %s%s%s\n", decibels(db, true, v->signal, v->noise),
               v->is_quantised ? quant_facts(v->number)->name
               : v->equal      ? "equal"
                               : "on no grid",
               v->is_quantised ? ", " : "", v->is_quantised ? layout : "");
    }
    ms_cmd_more(stdout, c->tensors.n - shown, "weights");
    ms_free(by);
}

void quantise_show_comparison(const struct quant_comparison *c, size_t most)
{
    const size_t faults = ms_cmd_listed(c->faults, most);
    size_t place = 0;
    for (size_t i = 0; i < c->tensors.n && place < faults; i++) {
        if (c->tensors.p[i].v.fault != QUANT_NO_FAULT)
            print_fault(&c->tensors.p[i], ++place);
    }
    ms_cmd_more(stdout, c->faults - faults, "suspects");
    if (c->faults == 0 && c->quantised != 0)
        printf("no fault of quantisation found in %zu quantised tensors\n", c->quantised);
    if (c->quantised == 0)
        puts("no tensor could be judged: none that was quantised is recorded on both sides");
    if (!isnan(c->output) && isfinite(c->output))
        printf("output of %.*s: SQNR %.1f dB\n", MS_STR_ARG(c->output_name), c->output);
    print_explaining(c, 5);
    print_layers(c, most);
    print_tensors(c, most);
    if (c->unmatched[0] + c->unmatched[1] != 0)
        printf("note: %zu layers of the target and %zu of the golden side have no partner\n",
               c->unmatched[0], c->unmatched[1]);
}

/* ---- JSON of it ------------------------------------------------------------------------------- */

static void put_fault(struct ms_jwrite *w, const struct quant_tensor_result *t, size_t place)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "place", (int64_t)place);
    ms_jwrite_ktext(w, "target", t->node);
    ms_jwrite_ktext(w, "layer", t->name);
    ms_jwrite_kstr(w, "tensor", role_words[t->role]);
    ms_jwrite_kmaybe(w, "rank", t->rank);
    ms_jwrite_kmaybe(w, "step", t->step);
    ms_jwrite_kstr(w, "pattern", quant_fault_key[t->v.fault]);
    ms_jwrite_kstr(w, "text", t->v.text);
    ms_jwrite_obj_end(w);
}

static void put_layer(struct ms_jwrite *w, const struct quant_layer_result *r)
{
    const struct quant_terms *t = &r->terms;
    const bool has = t->sampled != 0;
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "layer", r->name);
    ms_jwrite_ktext(w, "target", r->node);
    ms_jwrite_ktext(w, "golden", r->golden);
    ms_jwrite_kmaybe(w, "rank", r->rank);
    ms_jwrite_kmaybe(w, "step", r->step);
    put_decibels(w, "sqnr_db", r->has_output, r->signal, r->noise);
    put_decibels(w, "weight_db", has, t->signal, t->weight);
    put_decibels(w, "input_db", has, t->signal, t->input);
    put_decibels(w, "inherited_db", has, t->signal, t->inherited);
    put_decibels(w, "sums_db", has, t->signal, t->sums);
    ms_jwrite_kf64(w, "share", r->share);
    ms_jwrite_obj_end(w);
}

static void put_tensor(struct ms_jwrite *w, const struct quant_tensor_result *t)
{
    const struct quant_verdict *v = &t->v;
    char layout[64];
    quant_layout_text(&v->layout, layout, sizeof layout);
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "layer", t->name);
    ms_jwrite_kstr(w, "tensor", role_words[t->role]);
    ms_jwrite_kstr(w, "number", v->is_quantised ? quant_facts(v->number)->name : "");
    ms_jwrite_kstr(w, "layout", v->is_quantised ? layout : "");
    put_decibels(w, "sqnr_db", true, v->signal, v->noise);
    ms_jwrite_kf64(w, "clipped", v->clipped);
    ms_jwrite_kf64(w, "underflow", v->underflow);
    ms_jwrite_kf64(w, "used_range", v->used);
    ms_jwrite_kf64(w, "scale_min", v->is_quantised ? v->scale_min : 0);
    ms_jwrite_kf64(w, "scale_max", v->scale_max);
    ms_jwrite_obj_end(w);
}

static void put_summary(struct ms_jwrite *w, const struct quant_comparison *c)
{
    ms_jwrite_key(w, MS_STR("summary"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "layers", (int64_t)c->layers.n);
    ms_jwrite_ki64(w, "quantised", (int64_t)c->quantised);
    ms_jwrite_ki64(w, "suspects", (int64_t)c->faults);
    ms_jwrite_ki64(w, "unmatched_target", (int64_t)c->unmatched[0]);
    ms_jwrite_ki64(w, "unmatched_golden", (int64_t)c->unmatched[1]);
    ms_jwrite_ki64(w, "layers_of_80_percent", (int64_t)c->explain);
    ms_jwrite_obj_end(w);
}

enum ms_rc quantise_show_comparison_json(const struct quant_comparison *c, struct ms_err *err)
{
    struct ms_jwrite w;
    size_t place = 0;
    ms_jprint_begin(&w);
    ms_jwrite_obj(&w);
    put_summary(&w, c);
    ms_jwrite_key(&w, MS_STR("suspects"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < c->tensors.n; i++) {
        if (c->tensors.p[i].v.fault != QUANT_NO_FAULT)
            put_fault(&w, &c->tensors.p[i], ++place);
    }
    ms_jwrite_arr_end(&w);
    ms_jwrite_key(&w, MS_STR("layers"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < c->layers.n; i++)
        put_layer(&w, &c->layers.p[i]);
    ms_jwrite_arr_end(&w);
    ms_jwrite_key(&w, MS_STR("tensors"));
    ms_jwrite_arr(&w);
    for (size_t i = 0; i < c->tensors.n; i++)
        put_tensor(&w, &c->tensors.p[i]);
    ms_jwrite_arr_end(&w);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, MS_OK, err);
}
