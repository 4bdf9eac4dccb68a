/* SPDX-License-Identifier: MIT
 *
 * tape: nodes, and the operations on single elements.
 */
#include "compare/recompute/tape_int.h"
#include "probe/base/assert.h"

double tape_unit_of(enum ms_dtype type)
{
    const enum ms_dtype part = ms_dtype_part(type) != MS_DT_NONE ? ms_dtype_part(type) : type;
    return ms_dtype_unit(part);
}

enum ms_rc tape_new(struct tape *t, enum ms_dtype type, size_t limit, struct ms_err *err)
{
    *t = (struct tape){.arena = ms_arena_new(limit), .unit = tape_unit_of(type)};
    t->sum_unit = t->unit > 0x1p-24 ? 0x1p-24 : t->unit;
    return t->arena != NULL ? MS_OK : ms_no_memory(err);
}

void tape_free(struct tape *t)
{
    ms_vec_free(&t->nodes);
    ms_arena_free(t->arena);
    *t = (struct tape){0};
}

tape_id tape_fail(struct tape *t, enum ms_rc rc, const char *fmt, ...)
{
    if (!tape_failed(t)) {
        va_list ap;
        va_start(ap, fmt);
        struct ms_buf text = {.max = sizeof t->err.msg};
        ms_buf_vprintf(&text, fmt, ap);
        va_end(ap);
        ms_fail(&t->err, rc, "%s", ms_buf_z(&text));
        ms_buf_free(&text);
    }
    return TAPE_NONE;
}

bool tape_failed(const struct tape *t)
{
    return t->err.rc != MS_OK;
}

size_t tape_shape_count(const struct tape_shape *s)
{
    size_t n = 1;
    for (unsigned i = 0; i < s->ndim; i++)
        if (!ms_mul_size(n, s->dim[i], &n))
            return SIZE_MAX;
    return n;
}

bool tape_shape_eq(const struct tape_shape *a, const struct tape_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->dim, b->dim, a->ndim * sizeof a->dim[0]) == 0;
}

static double *make_room(struct tape *t, size_t n)
{
    size_t bytes;
    double *p = NULL;
    if (ms_mul_size(n != 0 ? n : 1, sizeof *p, &bytes))
        p = ms_arena_alloc(t->arena, bytes);
    if (p == NULL)
        tape_fail(t, MS_E_LIMIT, "recomputing this needs more memory than the limit");
    return p;
}

struct tape_node *tape__node(struct tape *t, enum tape_kind kind, const struct tape_shape *of,
                             tape_id *id)
{
    const struct tape_shape shape = *of; /* may lie in a node, and nodes move */
    *id = TAPE_NONE;
    if (tape_failed(t))
        return NULL;
    struct tape_node *n = ms_vec_push(&t->nodes);
    if (n == NULL) {
        tape_fail(t, MS_E_NOMEM, "out of memory");
        return NULL;
    }
    *n = (struct tape_node){.kind = kind,
                            .shape = shape,
                            .n = tape_shape_count(&shape),
                            .in = {TAPE_NONE, TAPE_NONE, TAPE_NONE}};
    n->v = make_room(t, n->n);
    if (n->v == NULL)
        return NULL;
    *id = (tape_id)(t->nodes.n - 1);
    return n;
}

bool tape__want_errors(struct tape *t, tape_id id)
{
    struct tape_node *n = tape_at(t, id);
    if (n->e == NULL) {
        n->e = make_room(t, n->n);
        if (n->e != NULL)
            memset(n->e, 0, n->n * sizeof *n->e);
    }
    return n->e != NULL;
}

tape_id tape_leaf(struct tape *t, const struct tape_shape *shape)
{
    tape_id id;
    (void)tape__node(t, TAPE_LEAF, shape, &id);
    return id;
}

tape_id tape_constant(struct tape *t, double v)
{
    const tape_id id = tape_leaf(t, &(struct tape_shape){0});
    if (id != TAPE_NONE)
        tape_at(t, id)->v[0] = v;
    return id;
}

void tape_set_error(struct tape *t, tape_id id, double relative)
{
    if (id == TAPE_NONE || relative <= 0 || !tape__want_errors(t, id))
        return;
    struct tape_node *n = tape_at(t, id);
    for (size_t i = 0; i < n->n; i++)
        n->e[i] = isfinite(n->v[i]) ? relative * fabs(n->v[i]) : 0;
}

double tape_sum_error(const struct tape *t, double n, double sum, double squares)
{
    if (n <= 1 || !isfinite(sum) || !isfinite(squares))
        return 0;
    const double walk = squares / 2 + sum * sum / 3;
    const double within = t->sum_unit * t->sum_unit * (n - 1) * walk;
    const double blocks = t->unit > t->sum_unit ? fmax((n - 1) / TAPE_BLOCK, 1) : 0;
    return sqrt(within + t->unit * t->unit * blocks * walk);
}

/* ---- shapes ------------------------------------------------------------------ */

void tape__strides(const struct tape_shape *s, int64_t stride[TAPE_DIMS])
{
    int64_t step = 1;
    for (unsigned i = s->ndim; i-- > 0;) {
        stride[i] = step;
        step *= (int64_t)s->dim[i];
    }
}

void tape__broadcast_strides(const struct tape_shape *x, const struct tape_shape *to,
                             int64_t stride[TAPE_DIMS])
{
    ms_assert(x->ndim <= to->ndim);
    int64_t own[TAPE_DIMS];
    tape__strides(x, own);
    for (unsigned i = 0; i < to->ndim; i++) {
        const unsigned lead = to->ndim - x->ndim;
        stride[i] = i < lead || x->dim[i - lead] == 1 ? 0 : own[i - lead];
    }
}

bool tape_broadcast(const struct tape_shape *a, const struct tape_shape *b, struct tape_shape *out)
{
    const struct tape_shape *big = a->ndim >= b->ndim ? a : b, *small = big == a ? b : a;
    *out = *big;
    const unsigned lead = big->ndim - small->ndim;
    for (unsigned i = 0; i < small->ndim; i++) {
        const uint64_t x = big->dim[lead + i], y = small->dim[i];
        if (x != y && x != 1 && y != 1)
            return false;
        out->dim[lead + i] = x == 1 ? y : x;
    }
    return true;
}

void tape__walk_next(struct tape_walk *w)
{
    for (unsigned d = w->shape.ndim; d-- > 0;) {
        for (unsigned k = 0; k < w->n; k++)
            w->off[k] += w->stride[k][d];
        if (++w->at[d] < w->shape.dim[d])
            return;
        for (unsigned k = 0; k < w->n; k++)
            w->off[k] -= w->stride[k][d] * (int64_t)w->shape.dim[d];
        w->at[d] = 0;
    }
}

/* ---- one operand ---------------------------------------------------------------- */

/* Largest change of a function within the error of its argument. */
static double spread_of(double (*f)(double, double, double), double x, double e, double y, double a,
                        double b)
{
    if (e == 0 || !isfinite(x))
        return 0;
    const double up = fabs(f(x + e, a, b) - y), down = fabs(f(x - e, a, b) - y);
    return isnan(up) || isnan(down) ? (isnan(up) ? (isnan(down) ? 0 : down) : up) : fmax(up, down);
}

static void compute_unary(const struct tape *t, struct tape_node *n, const struct tape_node *x)
{
    const struct tape_function *fn = n->fn;
    double (*f)(double, double, double) = n->is_slope ? fn->df : fn->f;
    const double rel = n->is_slope ? fn->df_rel : fn->f_rel;
    const double least = t->unit * (n->is_slope ? fn->df_abs : fn->f_abs);
    for (size_t i = 0; i < n->n; i++) {
        const double v = f(x->v[i], n->a, n->b);
        n->v[i] = v;
        n->e[i] = isfinite(v) ? spread_of(f, x->v[i], tape__error(x, i), v, n->a, n->b) +
                                    rel * t->unit * fabs(v) + least
                              : 0;
    }
}

static tape_id make_unary(struct tape *t, const struct tape_function *fn, tape_id x, double a,
                          double b, bool is_slope)
{
    tape_id id;
    if (x == TAPE_NONE || tape__node(t, TAPE_UNARY, &tape_at(t, x)->shape, &id) == NULL ||
        !tape__want_errors(t, id))
        return TAPE_NONE;
    struct tape_node *n = tape_at(t, id);
    n->fn = fn;
    n->a = a;
    n->b = b;
    n->is_slope = is_slope;
    n->in[0] = x;
    compute_unary(t, n, tape_at(t, x));
    return id;
}

tape_id tape_unary(struct tape *t, const struct tape_function *fn, tape_id x, double a, double b)
{
    return make_unary(t, fn, x, a, b, false);
}

tape_id tape_slope(struct tape *t, const struct tape_function *fn, tape_id x, double a, double b)
{
    ms_assert(fn->df != NULL);
    return make_unary(t, fn, x, a, b, true);
}

/* ---- two operands ------------------------------------------------------------------ */

/* Computes one element and passes on the errors of both operands; the result's own rounding is
 * added by the caller where the operation rounds. */
static double compute_pair(enum tape_kind kind, double x, double ex, double y, double ey, double *e)
{
    switch (kind) {
    case TAPE_ADD:
        *e = ex + ey;
        return x + y;
    case TAPE_SUB:
        *e = ex + ey;
        return x - y;
    case TAPE_MUL:
        *e = fabs(y) * ex + fabs(x) * ey + ex * ey;
        return x * y;
    case TAPE_DIV:
        *e = (ex + fabs(x / y) * ey) / fmax(fabs(y) - ey, 0x1p-1000);
        return x / y;
    case TAPE_MAX2:
        *e = fmax(ex, ey);
        return isnan(x) || isnan(y) ? NAN : fmax(x, y);
    case TAPE_MIN2:
        *e = fmax(ex, ey);
        return isnan(x) || isnan(y) ? NAN : fmin(x, y);
    case TAPE_ATAN2: {
        const double r = x * x + y * y;
        *e = r > 0 ? (fabs(y) * ex + fabs(x) * ey) / r : 0;
        return atan2(x, y);
    }
    default: {
        const double v = pow(x, y);
        *e = (ex != 0 ? fabs(y * pow(x, y - 1)) * ex : 0) +
             (ey != 0 && x > 0 ? fabs(v * log(x)) * ey : 0);
        return v;
    }
    }
}

static double own_rounding(const struct tape *t, enum tape_kind kind, double v)
{
    if (kind == TAPE_MAX2 || kind == TAPE_MIN2)
        return 0;
    return tape__rounded(t, v) * (kind == TAPE_POW || kind == TAPE_ATAN2 ? 3 : 1);
}

static void compute_binary(const struct tape *t, struct tape_node *n, const struct tape_node *x,
                           const struct tape_node *y)
{
    struct tape_walk w = {.shape = n->shape, .n = 2};
    tape__broadcast_strides(&x->shape, &n->shape, w.stride[0]);
    tape__broadcast_strides(&y->shape, &n->shape, w.stride[1]);
    for (size_t i = 0; i < n->n; i++, tape__walk_next(&w)) {
        const size_t p = (size_t)w.off[0], q = (size_t)w.off[1];
        double e,
            v = compute_pair(n->kind, x->v[p], tape__error(x, p), y->v[q], tape__error(y, q), &e);
        n->v[i] = v;
        n->e[i] = (isfinite(e) && isfinite(v) ? e : 0) + own_rounding(t, n->kind, v);
    }
}

tape_id tape_binary(struct tape *t, enum tape_kind kind, tape_id x, tape_id y)
{
    struct tape_shape shape;
    tape_id id;
    if (x == TAPE_NONE || y == TAPE_NONE)
        return TAPE_NONE;
    if (!tape_broadcast(&tape_at(t, x)->shape, &tape_at(t, y)->shape, &shape))
        return tape_fail(t, MS_E_FORMAT, "the shapes of two operands do not go together");
    if (tape__node(t, kind, &shape, &id) == NULL || !tape__want_errors(t, id))
        return TAPE_NONE;
    struct tape_node *n = tape_at(t, id);
    n->in[0] = x;
    n->in[1] = y;
    compute_binary(t, n, tape_at(t, x), tape_at(t, y));
    return id;
}

static void compute_where(struct tape_node *n, const struct tape_node *mask,
                          const struct tape_node *y, const struct tape_node *z)
{
    struct tape_walk w = {.shape = n->shape, .n = 3};
    tape__broadcast_strides(&mask->shape, &n->shape, w.stride[0]);
    tape__broadcast_strides(&y->shape, &n->shape, w.stride[1]);
    tape__broadcast_strides(&z->shape, &n->shape, w.stride[2]);
    for (size_t i = 0; i < n->n; i++, tape__walk_next(&w)) {
        const bool yes = mask->v[w.off[0]] != 0;
        const size_t p = (size_t)w.off[yes ? 1 : 2];
        n->v[i] = (yes ? y : z)->v[p];
        n->e[i] = tape__error(yes ? y : z, p);
    }
}

tape_id tape_where(struct tape *t, tape_id mask, tape_id y, tape_id z)
{
    struct tape_shape two, shape;
    tape_id id;
    if (mask == TAPE_NONE || y == TAPE_NONE || z == TAPE_NONE)
        return TAPE_NONE;
    if (!tape_broadcast(&tape_at(t, y)->shape, &tape_at(t, z)->shape, &two) ||
        !tape_broadcast(&two, &tape_at(t, mask)->shape, &shape))
        return tape_fail(t, MS_E_FORMAT,
                         "the shapes of a mask and its operands do not go together");
    if (tape__node(t, TAPE_WHERE, &shape, &id) == NULL || !tape__want_errors(t, id))
        return TAPE_NONE;
    struct tape_node *n = tape_at(t, id);
    n->in[0] = mask;
    n->in[1] = y;
    n->in[2] = z;
    compute_where(n, tape_at(t, mask), tape_at(t, y), tape_at(t, z));
    return id;
}
