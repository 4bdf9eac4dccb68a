/* SPDX-License-Identifier: MIT
 *
 * tape_gradient: gradients as nodes of the same tape, so that their errors are bounded as those of
 * any other value are.
 */
#include "compare/recompute/functions.h"
#include "compare/recompute/tape_int.h"

/* Gradients collected so far, by node. */
struct collected {
    struct tape *t;
    tape_id *of;
    const bool *needed; /* nodes that depend on a wanted leaf */
};

static void collect(struct collected *c, tape_id node, tape_id gradient)
{
    if (node == TAPE_NONE || gradient == TAPE_NONE)
        return;
    c->of[node] = c->of[node] == TAPE_NONE ? gradient : tape_add(c->t, c->of[node], gradient);
}

/* Gradient of an operand that was broadcast. */
static void collect_broadcast(struct collected *c, tape_id node, tape_id gradient)
{
    collect(c, node, tape_unbroadcast(c->t, gradient, &tape_at(c->t, node)->shape));
}

static void through_unary(struct collected *c, const struct tape_node *n, tape_id g)
{
    if (n->fn->df != NULL && !n->is_slope)
        collect(c, n->in[0], tape_mul(c->t, g, tape_slope(c->t, n->fn, n->in[0], n->a, n->b)));
}

static void through_div(struct collected *c, const struct tape_node *n, tape_id id, tape_id g)
{
    struct tape *t = c->t;
    const tape_id x = tape_div(t, g, n->in[1]);
    collect_broadcast(c, n->in[0], x);
    if (c->needed[n->in[1]])
        collect_broadcast(c, n->in[1], tape_neg(t, tape_mul(t, x, id)));
}

static void through_pow(struct collected *c, const struct tape_node *n, tape_id id, tape_id g)
{
    struct tape *t = c->t;
    const tape_id x = n->in[0], y = n->in[1], one = tape_constant(t, 1), zero = tape_constant(t, 0);
    const tape_id lower = tape_binary(t, TAPE_POW, x, tape_sub(t, y, one));
    collect_broadcast(c, x, tape_mul(t, g, tape_where(t, y, tape_mul(t, y, lower), zero)));
    if (c->needed[y])
        collect_broadcast(c, y,
                          tape_mul(t, g, tape_where(t, id, tape_mul(t, id, tape_log(t, x)), zero)));
}

static void through_atan2(struct collected *c, const struct tape_node *n, tape_id g)
{
    struct tape *t = c->t;
    const tape_id x = n->in[0], y = n->in[1];
    const tape_id r = tape_div(t, g, tape_add(t, tape_mul(t, x, x), tape_mul(t, y, y)));
    collect_broadcast(c, x, tape_mul(t, r, y));
    collect_broadcast(c, y, tape_neg(t, tape_mul(t, r, x)));
}

/* Weights 1 for the operand that was taken, and 1/2 for equal ones. */
static tape_id chosen(struct tape *t, const struct tape_node *n, bool second)
{
    const enum tape_kind kind = n->kind;
    const tape_id d = tape_sub(t, n->in[second ? 1 : 0], n->in[second ? 0 : 1]);
    return tape_unary(t, kind == TAPE_MAX2 ? &tape_step : &tape_step_down, d, 0, 0);
}

static void through_pick(struct collected *c, const struct tape_node *n, tape_id g)
{
    collect_broadcast(c, n->in[0], tape_mul(c->t, g, chosen(c->t, n, false)));
    collect_broadcast(c, n->in[1], tape_mul(c->t, g, chosen(c->t, n, true)));
}

static void through_where(struct collected *c, const struct tape_node *n, tape_id g)
{
    struct tape *t = c->t;
    const tape_id zero = tape_constant(t, 0);
    collect_broadcast(c, n->in[1], tape_where(t, n->in[0], g, zero));
    collect_broadcast(c, n->in[2], tape_where(t, n->in[0], zero, g));
}

static void through_move(struct collected *c, const struct tape_node *n, tape_id g)
{
    const struct tape_shape shape = tape_at(c->t, n->in[0])->shape;
    collect(c, n->in[0],
            n->kind == TAPE_GATHER ? tape_scatter(c->t, g, &shape, n->index)
                                   : tape_gather(c->t, g, &shape, n->index, 0));
}

/* Expands a gradient along the last axis, which was reduced. */
static tape_id widen(struct tape *t, tape_id g, const struct tape_shape *to)
{
    struct tape_shape one = *to;
    one.dim[one.ndim - 1] = 1;
    return tape_expand(t, tape_reshape(t, g, &one), to);
}

/* Weight of each element in its row's maximum. Equal elements share the gradient in some programs,
 * and one of them gets all of it in others, so any weight is allowed. */
static tape_id shares(struct tape *t, const struct tape_node *n)
{
    const struct tape_shape shape = tape_at(t, n->in[0])->shape;
    const tape_id id = tape_leaf(t, &shape);
    if (id == TAPE_NONE || !tape__want_errors(t, id))
        return TAPE_NONE;
    const struct tape_node *x = tape_at(t, n->in[0]);
    double *w = tape_at(t, id)->v;
    const size_t len = (size_t)shape.dim[shape.ndim - 1];
    for (size_t row = 0; row < x->n / (len != 0 ? len : 1); row++) {
        size_t equal = 0;
        for (size_t i = 0; i < len; i++)
            equal += x->v[row * len + i] == n->v[row];
        for (size_t i = 0; i < len; i++) {
            const bool is_best = x->v[row * len + i] == n->v[row];
            w[row * len + i] = is_best ? 1.0 / (double)equal : 0;
            tape_at(t, id)->e[row * len + i] = is_best && equal > 1 ? 1 : 0;
        }
    }
    return id;
}

static void through_reduce(struct collected *c, const struct tape_node *n, tape_id id, tape_id g)
{
    struct tape *t = c->t;
    const tape_id x = n->in[0];
    const struct tape_shape shape = tape_at(t, x)->shape;
    tape_id wide = widen(t, g, &shape);
    if (n->kind == TAPE_PROD)
        wide = tape_mul(t, wide, tape_div(t, widen(t, id, &shape), x));
    else if (n->kind != TAPE_SUM)
        wide = tape_mul(t, wide, shares(t, n));
    collect(c, x, wide);
}

static tape_id reversed(struct tape *t, tape_id x)
{
    if (x == TAPE_NONE)
        return x;
    const struct tape_shape s = tape_at(t, x)->shape;
    const uint64_t n = s.dim[s.ndim - 1];
    return n != 0 ? tape_slice(t, x, s.ndim - 1, n - 1, n, -1) : x;
}

static void through_cumsum(struct collected *c, const struct tape_node *n, tape_id g)
{
    collect(c, n->in[0], reversed(c->t, tape_cumsum(c->t, reversed(c->t, g), n->shape.ndim - 1)));
}

static void through_matmul(struct collected *c, const struct tape_node *n, tape_id g)
{
    if (c->needed[n->in[0]])
        collect(c, n->in[0], tape_matmul(c->t, g, false, n->in[1], true));
    if (c->needed[n->in[1]])
        collect(c, n->in[1], tape_matmul(c->t, n->in[0], true, g, false));
}

static void through_sum(struct collected *c, const struct tape_node *n, tape_id g)
{
    collect_broadcast(c, n->in[0], g);
    collect_broadcast(c, n->in[1], n->kind == TAPE_SUB ? tape_neg(c->t, g) : g);
}

static void through_mul(struct collected *c, const struct tape_node *n, tape_id g)
{
    collect_broadcast(c, n->in[0], tape_mul(c->t, g, n->in[1]));
    collect_broadcast(c, n->in[1], tape_mul(c->t, g, n->in[0]));
}

static void through_reshape(struct collected *c, const struct tape_node *n, tape_id g)
{
    collect(c, n->in[0], tape_reshape(c->t, g, &tape_at(c->t, n->in[0])->shape));
}

static void through(struct collected *c, tape_id id, tape_id g)
{
    const struct tape_node n = *tape_at(c->t, id); /* nodes move while the tape grows */
    switch (n.kind) {
    case TAPE_LEAF:
        break;
    case TAPE_UNARY:
        through_unary(c, &n, g);
        break;
    case TAPE_ADD:
    case TAPE_SUB:
        through_sum(c, &n, g);
        break;
    case TAPE_MUL:
        through_mul(c, &n, g);
        break;
    case TAPE_DIV:
        through_div(c, &n, id, g);
        break;
    case TAPE_POW:
        through_pow(c, &n, id, g);
        break;
    case TAPE_MAX2:
    case TAPE_MIN2:
        through_pick(c, &n, g);
        break;
    case TAPE_ATAN2:
        through_atan2(c, &n, g);
        break;
    case TAPE_WHERE:
        through_where(c, &n, g);
        break;
    case TAPE_MATMUL:
        through_matmul(c, &n, g);
        break;
    case TAPE_GATHER:
    case TAPE_SCATTER:
        through_move(c, &n, g);
        break;
    case TAPE_RESHAPE:
        through_reshape(c, &n, g);
        break;
    case TAPE_SUM:
    case TAPE_MAX:
    case TAPE_MIN:
    case TAPE_PROD:
        through_reduce(c, &n, id, g);
        break;
    case TAPE_CUMSUM:
        through_cumsum(c, &n, g);
        break;
    }
}

/* Marks the nodes that depend on a wanted leaf: gradients of the others are not needed. */
static bool *find_needed(struct tape *t, const tape_id *leaves, size_t n, size_t nodes)
{
    bool *needed = ms_arena_calloc(t->arena, nodes + 1, sizeof *needed);
    for (size_t i = 0; needed != NULL && i < n; i++)
        if (leaves[i] != TAPE_NONE)
            needed[leaves[i]] = true;
    for (size_t i = 0; needed != NULL && i < nodes; i++)
        for (unsigned k = 0; k < 3; k++)
            if (t->nodes.p[i].in[k] != TAPE_NONE)
                needed[i] = needed[i] || needed[t->nodes.p[i].in[k]];
    return needed;
}

void tape_gradients(struct tape *t, const tape_id *y, const tape_id *seed, size_t ny,
                    const tape_id *leaves, size_t n, tape_id *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = TAPE_NONE;
    if (tape_failed(t))
        return;
    const size_t nodes = t->nodes.n;
    const bool *needed = find_needed(t, leaves, n, nodes);
    struct collected c = {t, ms_arena_alloc(t->arena, (nodes + 1) * sizeof *c.of), needed};
    if (needed == NULL || c.of == NULL) {
        tape_fail(t, MS_E_LIMIT, "recomputing this needs more memory than the limit");
        return;
    }
    memset(c.of, 0xff, nodes * sizeof *c.of);
    for (size_t i = 0; i < ny; i++)
        if (y[i] < nodes && seed[i] != TAPE_NONE)
            collect(&c, y[i], seed[i]);
    for (size_t i = nodes; i-- > 0 && !tape_failed(t);)
        if (c.of[i] != TAPE_NONE && needed[i])
            through(&c, (tape_id)i, c.of[i]);
    for (size_t i = 0; i < n; i++)
        if (leaves[i] != TAPE_NONE)
            out[i] = c.of[leaves[i]];
}
