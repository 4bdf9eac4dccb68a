/* SPDX-License-Identifier: MIT
 *
 * show_judge: verdicts as text and as JSON.
 */
#include "compare/cmd/show_judge.h"

#include "probe/base/human.h"

#include <math.h>
#include <stdio.h>

static const char *const sentences[BLAME_VERDICTS] = {
    [BLAME_TARGET] = "the target errs",
    [BLAME_GOLDEN] = "the golden side errs",
    [BLAME_BOTH] = "both sides err",
    [BLAME_NEITHER] = "both sides are within the bounds of their type",
    [BLAME_INPUTS] = "the inputs already differ; both sides are within the bounds of their type",
    [BLAME_UNDECIDED] = "undecided"};

const char *judge_state_name(enum blame_state state)
{
    static const char *const names[] = {"within", "errs", "unknown"};
    return names[state];
}

const char *judge_state_text(enum blame_state state)
{
    static const char *const texts[] = {"within its bound", "errs", "unknown"};
    return texts[state];
}

/* ---- text ------------------------------------------------------------------------- */

static void print_tensor(const struct blame_tensor *x)
{
    const struct blame_outcome *o = &x->outcome;
    char rel[MS_HUMAN_MAX], l2[MS_HUMAN_MAX], n[MS_HUMAN_MAX], of[MS_HUMAN_MAX];
    printf("    %s %s: %.3g ulp at most, %.3g on average; relative error %s, of the norm %s\n",
           x->path, ms_dtype_torch(x->dtype), o->max_ulp, o->mean_ulp,
           ms_human_error(rel, o->max_rel), ms_human_error(l2, o->rel_l2));
    if (o->beyond != 0)
        printf(
            "      %s of %s elements beyond the bound; worst is element %zu: recorded %.9g, exact "
            "%.9g, allowed +-%.2g\n",
            ms_human_count(n, o->beyond), ms_human_count(of, o->n), o->worst_at, o->recorded,
            o->exact, o->allowed);
    if (o->unclear != 0)
        printf("      %s elements have no exact value (NaN)\n", ms_human_count(n, o->unclear));
}

static void print_side(const char *side, const struct blame_side *s)
{
    printf("  %-7s %s", side, judge_state_text(s->state));
    if (s->state == BLAME_UNKNOWN)
        printf(": %s", s->why.msg);
    printf("\n");
    for (size_t i = 0; i < s->n && i < 3; i++)
        print_tensor(&s->tensors[i]);
    if (s->assumed != NULL)
        printf("    assumed, as a module does not record it: %s\n", s->assumed);
}

void judge_show_text(const struct blame_pick *pick, const struct blame *b)
{
    char d[MS_HUMAN_MAX];
    if (pick->place != 0)
        printf("suspect %u  ", pick->place);
    printf("%.*s: %s\n", MS_STR_ARG(pick->target), sentences[b->verdict]);
    if (!ms_str_eq(pick->target, pick->golden))
        printf("  golden operator %.*s\n", MS_STR_ARG(pick->golden));
    if (pick->rank >= 0 || pick->step >= 0)
        printf("  rank %lld, step %lld\n", (long long)pick->rank, (long long)pick->step);
    if (b->inputs_differ && isfinite(b->input_rel_l2))
        printf("  inputs differ, most of all %s: relative error of the norm %s\n", b->input_path,
               ms_human_error(d, b->input_rel_l2));
    else if (b->inputs_differ)
        printf("  inputs differ: %s\n", b->input_path);
    else
        printf("  inputs are equal%s\n", b->results_equal ? ", and so are the results" : "");
    print_side("target", &b->target);
    print_side("golden", &b->golden);
    if (b->verdict == BLAME_UNDECIDED && b->target.state == BLAME_ERRS && b->results_equal)
        printf(
            "  both sides have the same result; the operator may be defined in another way here\n");
}

/* ---- JSON ---------------------------------------------------------------------------- */

/* A number that JSON can hold, else null. */
static void write_number(struct ms_jwrite *w, const char *key, double v)
{
    ms_jwrite_key(w, ms_str_of(key));
    if (isfinite(v))
        ms_jwrite_f64(w, v);
    else
        ms_jwrite_null(w);
}

static void write_tensor(struct ms_jwrite *w, const struct blame_tensor *x)
{
    const struct blame_outcome *o = &x->outcome;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "path", x->path);
    ms_jwrite_kstr(w, "dtype", ms_dtype_torch(x->dtype));
    ms_jwrite_ki64(w, "elements", (int64_t)o->n);
    ms_jwrite_ki64(w, "beyond", (int64_t)o->beyond);
    write_number(w, "worst", o->worst);
    ms_jwrite_ki64(w, "worst_at", (int64_t)o->worst_at);
    write_number(w, "recorded", o->recorded);
    write_number(w, "exact", o->exact);
    write_number(w, "allowed", o->allowed);
    write_number(w, "max_ulp", o->max_ulp);
    write_number(w, "mean_ulp", o->mean_ulp);
    write_number(w, "max_relative", o->max_rel);
    write_number(w, "relative_l2", o->rel_l2);
    ms_jwrite_obj_end(w);
}

static void write_side(struct ms_jwrite *w, const char *key, const struct blame_side *s)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "state", judge_state_name(s->state));
    ms_jwrite_key(w, MS_STR("why"));
    if (s->state == BLAME_UNKNOWN)
        ms_jwrite_str(w, ms_str_of(s->why.msg));
    else
        ms_jwrite_null(w);
    ms_jwrite_key(w, MS_STR("assumed"));
    if (s->assumed != NULL)
        ms_jwrite_str(w, ms_str_of(s->assumed));
    else
        ms_jwrite_null(w);
    ms_jwrite_key(w, MS_STR("tensors"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < s->n; i++)
        write_tensor(w, &s->tensors[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

void judge_show_json(struct ms_jwrite *w, const struct blame_pick *pick, const struct blame *b)
{
    ms_jwrite_obj(w);
    ms_jwrite_kmaybe(w, "suspect", pick->place != 0 ? (int64_t)pick->place : -1);
    ms_jwrite_ktext(w, "target_operator", pick->target);
    ms_jwrite_ktext(w, "golden_operator", pick->golden);
    ms_jwrite_kmaybe(w, "rank", pick->rank);
    ms_jwrite_kmaybe(w, "step", pick->step);
    ms_jwrite_kstr(w, "verdict", blame_verdict_names[b->verdict]);
    ms_jwrite_kstr(w, "text", sentences[b->verdict]);
    ms_jwrite_kbool(w, "inputs_differ", b->inputs_differ);
    write_number(w, "input_relative_l2", b->input_rel_l2);
    ms_jwrite_kbool(w, "results_equal", b->results_equal);
    write_side(w, "target", &b->target);
    write_side(w, "golden", &b->golden);
    ms_jwrite_obj_end(w);
}
