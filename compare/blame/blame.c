/* SPDX-License-Identifier: MIT
 *
 * blame: computes both sides and compares what they recorded with it.
 */
#include "compare/blame/blame.h"

#include <math.h>
#include <stdio.h>

const char *const blame_verdict_names[BLAME_VERDICTS] = {
    "target", "golden", "both", "within_bounds", "inputs_differ", "undecided"};

/* One side while it is computed. */
struct side {
    struct blame_record record, forward; /* the same for a forward record */
    bool is_backward;
    struct tape tape;
    struct blame_operands in;
    struct blame_results seeds; /* gradients that came in */
    struct blame_results out;
    tape_id *exact; /* for each recorded result; TAPE_NONE: not computed */
};

/* ---- forward records ------------------------------------------------------------ */

/* Coarsest unit of rounding among recorded floating point types. */
static enum ms_dtype coarser(enum ms_dtype a, enum ms_dtype b)
{
    return tape_unit_of(b) > tape_unit_of(a) ? b : a;
}

static struct rec_call call_of(struct side *s, const struct blame_results *results)
{
    struct rec_call c = {.tape = &s->tape,
                         .op = blame_operator_of(probe_node_name(s->forward.dump, s->forward.node)),
                         .args = s->in.args,
                         .named = s->in.named,
                         .nargs = s->in.nargs,
                         .nnamed = s->in.nnamed};
    if (results->n != 0) {
        c.result = results->list[0].dtype;
        c.result_shape = results->list[0].shape;
    }
    return c;
}

static bool is_cast(struct ms_str op)
{
    static const char *const casts[] = {"to",    "type", "half", "bfloat16",
                                        "float", "cast", "Cast", "type_as"};
    for (size_t i = 0; i < sizeof casts / sizeof casts[0]; i++)
        if (ms_str_is(op, casts[i]))
            return true;
    return false;
}

/* Under autocast a product rounds its inputs to the type of its result first. */
static void round_inputs(struct side *s, const struct rec_call *c)
{
    const double unit = tape_unit_of(c->result);
    if (is_cast(c->op))
        return;
    for (size_t i = 0; i < s->in.nargs + s->in.nnamed; i++) {
        const struct rec_value *v =
            i < s->in.nargs ? &s->in.args[i] : &s->in.named[i - s->in.nargs];
        if (v->kind == REC_TENSOR && tape_unit_of(v->dtype) > 0 && tape_unit_of(v->dtype) < unit)
            tape_set_error(&s->tape, v->node, unit);
    }
}

static enum ms_rc compute_forward(struct side *s, const struct blame_results *results,
                                  struct rec_call *c, struct blame_side *to, struct ms_err *err)
{
    *c = call_of(s, results);
    round_inputs(s, c);
    MS_TRY(rec_compute(c, err));
    to->assumed = c->assumed;
    return MS_OK;
}

/* ---- backward records --------------------------------------------------------------- */

/* Functions that PyTorch makes of several operators: what it records as their gradients are those of
 * the last of these operators, which may belong to a value between. */
static bool is_composed(struct ms_str op)
{
    static const char *const composed[] = {"matmul",
                                           "linalg.matmul",
                                           "__matmul__",
                                           "scaled_dot_product_attention",
                                           "dot",
                                           "einsum",
                                           "linear",
                                           "max_pool1d",
                                           "avg_pool1d",
                                           "adaptive_avg_pool1d",
                                           "adaptive_max_pool1d",
                                           "instance_norm",
                                           "normalize",
                                           "softsign",
                                           "tanhshrink",
                                           "repeat_interleave",
                                           "cross_entropy",
                                           "l1_loss",
                                           "kl_div",
                                           "poisson_nll_loss",
                                           "margin_ranking_loss",
                                           "cosine_similarity",
                                           "pairwise_distance"};
    for (size_t i = 0; i < sizeof composed / sizeof composed[0]; i++)
        if (ms_str_is(op, composed[i]))
            return true;
    return false;
}

/* Gradients that a recorded one may be. */
struct candidates {
    tape_id *list;
    bool *taken;
    size_t n;
    bool any_shape; /* equal numbers of elements suffice */
};

static double distance_to(const struct tape *t, const struct blame_result *r, tape_id gradient)
{
    double d = 0;
    for (size_t k = 0; k < r->n; k++) {
        const double one = fabs(r->v[k] - tape_at(t, gradient)->v[k]);
        d += isfinite(one) ? one : 0;
    }
    return d;
}

/* Finds the candidate that is nearest to a recorded gradient: the order of an autograd node's
 * gradients is not that of the operator's arguments. */
static tape_id nearest_gradient(const struct tape *t, const struct blame_result *r,
                                struct candidates *c)
{
    size_t best = SIZE_MAX;
    double least = INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        if (c->list[i] == TAPE_NONE || c->taken[i])
            continue;
        const struct tape_node *g = tape_at(t, c->list[i]);
        if (g->n != r->n || (!c->any_shape && !tape_shape_eq(&g->shape, &r->shape)))
            continue;
        const double d = distance_to(t, r, c->list[i]);
        if (best == SIZE_MAX || d < least) {
            best = i;
            least = d;
        }
    }
    if (best == SIZE_MAX)
        return TAPE_NONE;
    c->taken[best] = true;
    return c->list[best];
}

/* Makes leaves of the gradients that came in; returns how many belong to computed results. */
static size_t read_seeds(struct side *s, const struct rec_call *c, tape_id *y, tape_id *seed)
{
    struct tape *t = &s->tape;
    size_t n = 0;
    for (size_t i = 0; i < s->seeds.n; i++) {
        const struct blame_result *r = &s->seeds.list[i];
        if (r->place >= c->nout || c->out[r->place] == TAPE_NONE)
            continue;
        const tape_id leaf = tape_leaf(t, &r->shape);
        if (leaf == TAPE_NONE)
            return 0;
        memcpy(tape_at(t, leaf)->v, r->v, r->n * sizeof *r->v);
        y[n] = c->out[r->place];
        seed[n++] = tape_reshape(t, leaf, &tape_at(t, c->out[r->place])->shape);
    }
    if (n == 0)
        tape_fail(t, MS_E_UNSUPPORTED, "no gradient of a result that is computed is in the dump");
    return n;
}

/* Lists the gradients of all arguments, or of all values of a composed function. */
static void find_candidates(struct side *s, const tape_id *y, const tape_id *seed, size_t ny,
                            struct candidates *c)
{
    struct tape *t = &s->tape;
    const size_t values = t->nodes.n, wanted = c->any_shape ? values : s->in.nleaves;
    tape_id *of = ms_arena_calloc(t->arena, wanted + 1, sizeof *of);
    c->list = ms_arena_calloc(t->arena, wanted + ny + 1, sizeof *c->list);
    c->taken = ms_arena_calloc(t->arena, wanted + ny + 1, sizeof *c->taken);
    if (of == NULL || c->list == NULL || c->taken == NULL) {
        tape_fail(t, MS_E_LIMIT, "recomputing this needs more memory than the limit");
        return;
    }
    for (size_t i = 0; i < wanted; i++)
        of[i] = c->any_shape ? (tape_id)i : s->in.leaves[i];
    tape_gradients(t, y, seed, ny, of, wanted, c->list);
    c->n = wanted;
    for (size_t i = 0; c->any_shape && i < ny; i++)
        c->list[c->n++] = seed[i];
}

static void compute_backward(struct side *s, const struct rec_call *call)
{
    struct tape *t = &s->tape;
    tape_id y[REC_OUTPUTS], seed[REC_OUTPUTS];
    struct candidates c = {.any_shape = is_composed(call->op)};
    const size_t ny = read_seeds(s, call, y, seed);
    if (ny != 0)
        find_candidates(s, y, seed, ny, &c);
    for (size_t i = 0; i < s->out.n && !tape_failed(t); i++)
        s->exact[i] = nearest_gradient(t, &s->out.list[i], &c);
}

/* ---- one side --------------------------------------------------------------------------- */

/* Finds the forward record that belongs to a backward one. */
static enum ms_rc find_forward(struct side *s, struct ms_err *err)
{
    const struct ms_str name = probe_node_name(s->record.dump, s->record.node);
    s->forward = s->record;
    s->is_backward = s->record.dump->nodes.p[s->record.node].dir == PROBE_BACKWARD;
    if (!s->is_backward)
        return MS_OK;
    struct ms_buf b = {.max = 4096};
    const bool has = probe_name_put_forward(&b, name);
    s->forward.node = has ? probe_node_find(s->record.dump, ms_buf_slice(&b)) : MS_MAP_NONE;
    ms_buf_free(&b);
    return s->forward.node != MS_MAP_NONE
               ? MS_OK
               : ms_fail(err, MS_E_NOTFOUND, "the forward record of %.*s is not in the dump",
                         MS_STR_ARG(name));
}

static enum ms_rc read_side(struct side *s, struct blame_results *results, struct ms_err *err)
{
    MS_TRY(find_forward(s, err));
    MS_TRY(blame_read_operands(&s->forward, &s->tape, &s->in, err));
    MS_TRY(blame_read_results(&s->record, PROBE_SEC_OUTPUT, &s->tape, &s->out, err));
    if (s->is_backward) {
        MS_TRY(blame_read_results(&s->record, PROBE_SEC_INPUT, &s->tape, &s->seeds, err));
        MS_TRY(blame_read_results(&s->forward, PROBE_SEC_OUTPUT, &s->tape, results, err));
    } else {
        *results = s->out;
    }
    s->exact = ms_arena_alloc(s->tape.arena, (s->out.n + 1) * sizeof *s->exact);
    if (s->exact == NULL)
        return ms_arena_fail(s->tape.arena, err);
    for (size_t i = 0; i < s->out.n; i++)
        s->exact[i] = TAPE_NONE;
    return s->out.n != 0 ? MS_OK : ms_fail(err, MS_E_NOTFOUND, "no result is in the dump");
}

static void set_units(struct side *s, const struct blame_results *results)
{
    enum ms_dtype type = MS_DT_NONE;
    for (size_t i = 0; i < s->out.n; i++)
        type = coarser(type, s->out.list[i].dtype);
    for (size_t i = 0; i < results->n; i++)
        type = coarser(type, results->list[i].dtype);
    for (size_t i = 0; i < s->seeds.n; i++)
        type = coarser(type, s->seeds.list[i].dtype);
    s->tape.unit = tape_unit_of(type);
    s->tape.sum_unit = fmin(s->tape.unit, 0x1p-24);
}

static enum ms_rc compute_side(struct side *s, struct blame_side *to, struct ms_err *err)
{
    struct blame_results results;
    struct rec_call c;
    MS_TRY(read_side(s, &results, err));
    set_units(s, &results);
    MS_TRY(compute_forward(s, &results, &c, to, err));
    if (s->is_backward) {
        compute_backward(s, &c);
        return tape_failed(&s->tape) ? ms_fail(err, s->tape.err.rc, "%s", s->tape.err.msg) : MS_OK;
    }
    for (size_t i = 0; i < s->out.n; i++)
        if (s->out.list[i].place < c.nout)
            s->exact[i] = c.out[s->out.list[i].place];
    return MS_OK;
}

static void put_path(char *to, size_t cap, struct ms_str path)
{
    snprintf(to, cap, "%.*s", MS_STR_ARG(path));
}

static bool same_count(const struct side *s, size_t i)
{
    return s->exact[i] != TAPE_NONE && tape_at(&s->tape, s->exact[i])->n == s->out.list[i].n;
}

static void keep_outcome(struct blame_side *to, const struct blame_result *r,
                         const struct tape_node *exact)
{
    struct blame_tensor one = {.dtype = r->dtype};
    put_path(one.path, sizeof one.path, r->path);
    blame_measure(&one.outcome, r->dtype, r->v, exact->v, exact->e, r->n);
    if (one.outcome.beyond != 0)
        to->state = BLAME_ERRS;
    const bool is_worst = to->n != 0 && one.outcome.worst > to->tensors[0].outcome.worst;
    if (to->n < BLAME_TENSORS)
        to->tensors[to->n++] = one;
    if (is_worst) {
        struct blame_tensor first = to->tensors[0];
        to->tensors[0] = one;
        to->tensors[to->n - 1] = first;
    }
}

static void measure_side(struct side *s, struct blame_side *to)
{
    to->state = BLAME_WITHIN;
    for (size_t i = 0; i < s->out.n; i++) {
        if (s->exact[i] == TAPE_NONE) {
            to->skipped++;
        } else if (!same_count(s, i)) {
            to->state = BLAME_UNKNOWN;
            ms_fail(&to->why, MS_E_UNSUPPORTED, "%.*s has another shape than its inputs give",
                    MS_STR_ARG(s->out.list[i].path));
            return;
        } else {
            keep_outcome(to, &s->out.list[i], tape_at(&s->tape, s->exact[i]));
        }
    }
    if (to->n == 0) {
        to->state = BLAME_UNKNOWN;
        ms_fail(&to->why, MS_E_UNSUPPORTED, "none of the recorded results can be computed again");
    }
}

static void judge_side(struct side *s, struct blame_side *to)
{
    *to = (struct blame_side){.state = BLAME_UNKNOWN};
    if (compute_side(s, to, &to->why) == MS_OK)
        measure_side(s, to);
}

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
        put_path(b->input_path, sizeof b->input_path, path);
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

static void compare_plain(struct blame *b, const struct side *t, const struct side *g)
{
    for (size_t i = 0; i < t->in.nargs && i < g->in.nargs; i++)
        if (!plain_equal(&t->in.args[i], &g->in.args[i]))
            note_input(b, INFINITY, MS_STR("a plain argument"));
    for (size_t i = 0; i < t->in.nnamed && i < g->in.nnamed; i++)
        if (ms_str_eq(t->in.named[i].name, g->in.named[i].name) &&
            !plain_equal(&t->in.named[i], &g->in.named[i]))
            note_input(b, INFINITY, t->in.named[i].name);
}

static void compare_inputs(struct blame *b, const struct side *t, const struct side *g)
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

static bool same_results(const struct side *t, const struct side *g)
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
    struct side t = {.record = *target}, g = {.record = *golden};
    *b = (struct blame){.input_rel_l2 = 0};
    MS_TRY(tape_new(&t.tape, MS_DT_F32, limit, err));
    enum ms_rc rc = tape_new(&g.tape, MS_DT_F32, limit, err);
    if (rc == MS_OK) {
        judge_side(&t, &b->target);
        judge_side(&g, &b->golden);
        compare_inputs(b, &t, &g);
        b->results_equal = same_results(&t, &g);
        b->verdict = conclude(b, t.is_backward && is_composed(blame_operator_of(probe_node_name(
                                                      t.forward.dump, t.forward.node))));
    }
    tape_free(&t.tape);
    tape_free(&g.tape);
    return rc;
}
