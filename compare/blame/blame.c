/* SPDX-License-Identifier: MIT
 *
 * blame: concludes from both sides.
 */
#include "compare/blame/blame.h"

#include "compare/blame/blame_side.h"

#include <math.h>

const char *const blame_verdict_names[BLAME_VERDICTS] = {
    "target", "golden", "both", "within_bounds", "inputs_differ", "undecided"};

/* ---- both sides ---------------------------------------------------------------------------- */

/* Relative distance of two arrays; 0 where they are equal, NaN positions included. */
static double distance(const double *a, const double *b, size_t n)
{
    double d = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
            continue;
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return INFINITY;
        d += (a[i] - b[i]) * (a[i] - b[i]);
    }
    for (size_t i = 0; d > 0 && i < n; i++)
        size += isfinite(b[i]) ? b[i] * b[i] : 0;
    return d > 0 ? (size > 0 ? sqrt(d / size) : INFINITY) : 0;
}

static void note_input(struct blame *b, double d, struct ms_str path)
{
    if (d == 0)
        return;
    if (!b->inputs_differ || d > b->input_rel_l2) {
        b->input_rel_l2 = d;
        blame_put_path(b->input_path, sizeof b->input_path, path);
    }
    b->inputs_differ = true;
}

static bool plain_equal(const struct rec_value *a, const struct rec_value *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!plain_equal(&a->items[i], &b->items[i]))
            return false;
    if (a->kind == REC_TEXT)
        return ms_str_eq(a->text, b->text);
    return a->kind == REC_TENSOR || a->number == b->number;
}

static void compare_plain(struct blame *b, const struct blame_work *t, const struct blame_work *g)
{
    for (size_t i = 0; i < t->in.nargs && i < g->in.nargs; i++)
        if (!plain_equal(&t->in.args[i], &g->in.args[i]))
            note_input(b, INFINITY, MS_STR("a plain argument"));
    for (size_t i = 0; i < t->in.nnamed && i < g->in.nnamed; i++)
        if (ms_str_eq(t->in.named[i].name, g->in.named[i].name) &&
            !plain_equal(&t->in.named[i], &g->in.named[i]))
            note_input(b, INFINITY, t->in.named[i].name);
}

static void compare_inputs(struct blame *b, const struct blame_work *t, const struct blame_work *g)
{
    const size_t n = t->in.nleaves < g->in.nleaves ? t->in.nleaves : g->in.nleaves;
    for (size_t i = 0; i < n; i++) {
        const struct tape_node *x = tape_at(&t->tape, t->in.leaves[i]),
                               *y = tape_at(&g->tape, g->in.leaves[i]);
        note_input(b, x->n == y->n ? distance(x->v, y->v, x->n) : INFINITY, t->in.paths[i]);
    }
    for (size_t i = 0; i < t->seeds.n && i < g->seeds.n; i++) {
        const struct blame_result *x = &t->seeds.list[i], *y = &g->seeds.list[i];
        note_input(b, x->n == y->n ? distance(x->v, y->v, x->n) : INFINITY, x->path);
    }
    compare_plain(b, t, g);
}

static bool same_results(const struct blame_work *t, const struct blame_work *g)
{
    if (t->out.n != g->out.n)
        return false;
    for (size_t i = 0; i < t->out.n; i++)
        if (t->out.list[i].n != g->out.list[i].n || t->out.list[i].dtype != g->out.list[i].dtype ||
            distance(t->out.list[i].v, g->out.list[i].v, t->out.list[i].n) != 0)
            return false;
    return true;
}

static enum blame_verdict conclude(const struct blame *b, bool is_composed_backward)
{
    const enum blame_state t = b->target.state, g = b->golden.state;
    /* What both sides do alike is more likely defined in another way than wrong on both. */
    if (t == BLAME_ERRS && g == BLAME_ERRS)
        return b->results_equal || is_composed_backward ? BLAME_UNDECIDED : BLAME_BOTH;
    if (t == BLAME_ERRS)
        return g == BLAME_WITHIN ? BLAME_TARGET : BLAME_UNDECIDED;
    if (g == BLAME_ERRS)
        return t == BLAME_WITHIN ? BLAME_GOLDEN : BLAME_UNDECIDED;
    if (t == BLAME_UNKNOWN || g == BLAME_UNKNOWN)
        return BLAME_UNDECIDED;
    return b->inputs_differ ? BLAME_INPUTS : BLAME_NEITHER;
}

enum ms_rc blame_judge(struct blame *b, const struct blame_record *target,
                       const struct blame_record *golden, size_t limit, struct ms_err *err)
{
    struct blame_work t, g;
    *b = (struct blame){.input_rel_l2 = 0};
    MS_TRY(blame_work_open(&t, target, limit, err));
    enum ms_rc rc = blame_work_open(&g, golden, limit, err);
    if (rc == MS_OK) {
        blame_work_judge(&t, &b->target);
        blame_work_judge(&g, &b->golden);
        compare_inputs(b, &t, &g);
        b->results_equal = same_results(&t, &g);
        b->verdict = conclude(b, t.is_composed);
    }
    blame_work_free(&t);
    blame_work_free(&g);
    return rc;
}
