/* SPDX-License-Identifier: MIT
 *
 * blame_side: forward and backward records.
 */
#include "compare/blame/blame_side.h"

#include <math.h>
#include <stdio.h>

enum ms_rc blame_work_open(struct blame_work *s, const struct blame_record *record, size_t limit,
                           struct ms_err *err)
{
    *s = (struct blame_work){.record = *record};
    return tape_new(&s->tape, MS_DT_F32, limit, err);
}

void blame_work_free(struct blame_work *s)
{
    tape_free(&s->tape);
}

/* ---- forward records ------------------------------------------------------------ */

/* Coarsest unit of rounding among recorded floating point types. */
static enum ms_dtype coarser(enum ms_dtype a, enum ms_dtype b)
{
    return tape_unit_of(b) > tape_unit_of(a) ? b : a;
}

static struct rec_call call_of(struct blame_work *s, const struct blame_results *results)
{
    struct rec_call c = {.tape = &s->tape,
                         .op = blame_operator_of(probe_node_name(s->forward.dump, s->forward.node)),
                         .args = s->in.args,
                         .named = s->in.named,
                         .nargs = s->in.nargs,
                         .nnamed = s->in.nnamed};
    c.is_mindspore = s->forward.dump->framework == PROBE_FW_MINDSPORE;
    c.is_primitive =
        ms_str_starts(probe_node_name(s->forward.dump, s->forward.node), MS_STR("Primitive."));
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
static void round_inputs(struct blame_work *s, const struct rec_call *c)
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

static enum ms_rc compute_forward(struct blame_work *s, const struct blame_results *results,
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
static size_t read_seeds(struct blame_work *s, const struct rec_call *c, tape_id *y, tape_id *seed)
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
static void find_candidates(struct blame_work *s, const tape_id *y, const tape_id *seed, size_t ny,
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

static void compute_backward(struct blame_work *s, const struct rec_call *call)
{
    struct tape *t = &s->tape;
    tape_id y[REC_OUTPUTS], seed[REC_OUTPUTS];
    struct candidates c = {.any_shape = s->is_composed};
    const size_t ny = read_seeds(s, call, y, seed);
    if (ny != 0)
        find_candidates(s, y, seed, ny, &c);
    for (size_t i = 0; i < s->out.n && !tape_failed(t); i++)
        s->exact[i] = nearest_gradient(t, &s->out.list[i], &c);
}

/* ---- one side --------------------------------------------------------------------------- */

/* Finds the record of a module with another word: "forward" for "parameters_grad". */
static uint32_t record_with(const struct blame_record *r, const char *word)
{
    struct ms_buf b = {.max = 4096};
    probe_name_put_call(&b, probe_node_name(r->dump, r->node), ms_str_of(word));
    const uint32_t node = probe_node_find(r->dump, ms_buf_slice(&b));
    ms_buf_free(&b);
    return node;
}

static uint32_t forward_of(const struct blame_record *r)
{
    struct ms_buf b = {.max = 4096};
    const bool has = probe_name_put_forward(&b, probe_node_name(r->dump, r->node));
    const uint32_t node = has ? probe_node_find(r->dump, ms_buf_slice(&b)) : MS_MAP_NONE;
    ms_buf_free(&b);
    return node;
}

/* Finds the records that a gradient is computed from: the forward record, and the one with the
 * gradients that came in. */
static enum ms_rc find_records(struct blame_work *s, struct ms_err *err)
{
    const struct probe_node *node = &s->record.dump->nodes.p[s->record.node];
    const bool of_parameters = node->kind == PROBE_NODE_PGRAD;
    s->forward = s->backward = s->record;
    s->is_backward = node->dir == PROBE_BACKWARD || of_parameters;
    if (of_parameters) {
        s->forward.node = record_with(&s->record, "forward");
        s->backward.node = record_with(&s->record, "backward");
    } else if (s->is_backward) {
        s->forward.node = forward_of(&s->record);
    }
    if (s->forward.node == MS_MAP_NONE || s->backward.node == MS_MAP_NONE)
        return ms_fail(err, MS_E_NOTFOUND, "the %s record of %.*s is not in the dump",
                       s->forward.node == MS_MAP_NONE ? "forward" : "backward",
                       MS_STR_ARG(probe_node_name(s->record.dump, s->record.node)));
    s->is_composed =
        s->is_backward && !of_parameters &&
        is_composed(blame_operator_of(probe_node_name(s->forward.dump, s->forward.node)));
    return MS_OK;
}

static enum ms_rc read_side(struct blame_work *s, struct blame_results *results, struct ms_err *err)
{
    MS_TRY(find_records(s, err));
    MS_TRY(blame_read_operands(&s->forward, &s->tape, &s->in, err));
    const bool of_parameters = s->is_backward && s->backward.node != s->record.node;
    MS_TRY(blame_read_results(&s->record, of_parameters ? PROBE_SEC_PGRAD : PROBE_SEC_OUTPUT,
                              &s->tape, &s->out, err));
    if (s->is_backward) {
        MS_TRY(blame_read_results(&s->backward, PROBE_SEC_INPUT, &s->tape, &s->seeds, err));
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

static void set_units(struct blame_work *s, const struct blame_results *results)
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

static enum ms_rc compute_side(struct blame_work *s, struct blame_side *to, struct ms_err *err)
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

void blame_put_path(char *to, size_t cap, struct ms_str path)
{
    snprintf(to, cap, "%.*s", MS_STR_ARG(path));
}

static bool same_count(const struct blame_work *s, size_t i)
{
    return s->exact[i] != TAPE_NONE && tape_at(&s->tape, s->exact[i])->n == s->out.list[i].n;
}

static void keep_outcome(struct blame_side *to, const struct blame_result *r,
                         const struct tape_node *exact)
{
    struct blame_tensor one = {.dtype = r->dtype};
    blame_put_path(one.path, sizeof one.path, r->path);
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

static void measure_side(struct blame_work *s, struct blame_side *to)
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

void blame_work_judge(struct blame_work *s, struct blame_side *to)
{
    *to = (struct blame_side){.state = BLAME_UNKNOWN};
    if (compute_side(s, to, &to->why) == MS_OK)
        measure_side(s, to);
}
