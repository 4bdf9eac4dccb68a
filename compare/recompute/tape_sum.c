/* SPDX-License-Identifier: MIT
 *
 * tape_sum: reductions and products of matrices.
 */
#include "compare/recompute/tape_int.h"
#include "probe/base/assert.h"

/* ---- reductions --------------------------------------------------------------- */

static void sum_row(const struct tape *t, struct tape_node *n, size_t row,
                    const struct tape_node *x, size_t len)
{
    double sum = 0, squares = 0, e = 0, walked = 0;
    for (size_t i = 0; i < len; i++) {
        const double v = x->v[row * len + i];
        sum += v;
        squares += v * v;
        walked += sum * sum;
        e += tape__error(x, row * len + i);
    }
    /* The partial sums of the order in which the elements lie may be larger than those of a
     * random order. */
    const double own =
        tape_sum_error(t, (double)len, sum, fmax(squares, 2 * walked / (double)(len + 1)));
    n->v[row] = sum;
    n->e[row] = isfinite(sum) ? e + own : 0;
}

static void pick_row(struct tape_node *n, size_t row, const struct tape_node *x, size_t len)
{
    double best = x->v[row * len], e = 0;
    for (size_t i = 0; i < len; i++) {
        const double v = x->v[row * len + i];
        if (isnan(v) || (n->kind == TAPE_MAX ? v > best : v < best))
            best = isnan(best) ? best : v;
        e = fmax(e, tape__error(x, row * len + i));
    }
    n->v[row] = best;
    n->e[row] = e;
}

static void multiply_row(const struct tape *t, struct tape_node *n, size_t row,
                         const struct tape_node *x, size_t len)
{
    double v = 1, relative = 0;
    for (size_t i = 0; i < len; i++) {
        const double f = x->v[row * len + i];
        v *= f;
        relative += f != 0 ? tape__error(x, row * len + i) / fabs(f) : 0;
    }
    n->v[row] = v;
    n->e[row] = isfinite(v) ? fabs(v) * (relative + t->unit * sqrt((double)len)) : 0;
}

/* Reduces the last axis. */
static tape_id reduce_last(struct tape *t, enum tape_kind kind, tape_id x)
{
    struct tape_shape shape = tape_at(t, x)->shape;
    const size_t len = (size_t)shape.dim[--shape.ndim];
    tape_id id;
    if (len == 0 && (kind == TAPE_MAX || kind == TAPE_MIN))
        return tape_fail(t, MS_E_FORMAT, "an empty tensor has no largest element");
    if (tape__node(t, kind, &shape, &id) == NULL || !tape__want_errors(t, id))
        return TAPE_NONE;
    struct tape_node *n = tape_at(t, id);
    const struct tape_node *from = tape_at(t, x);
    n->in[0] = x;
    for (size_t row = 0; row < n->n; row++) {
        if (kind == TAPE_SUM)
            sum_row(t, n, row, from, len);
        else if (kind == TAPE_PROD)
            multiply_row(t, n, row, from, len);
        else
            pick_row(n, row, from, len);
    }
    return id;
}

static bool is_last(const struct tape_shape *s, unsigned axes)
{
    unsigned trailing = 0;
    for (unsigned i = s->ndim; i-- > 0 && (axes >> i & 1) != 0;)
        trailing |= 1U << i;
    return trailing == axes;
}

/* Moves the axes that are reduced to the end, as one. */
static tape_id axes_last(struct tape *t, tape_id x, unsigned axes)
{
    const struct tape_shape s = tape_at(t, x)->shape;
    unsigned order[TAPE_DIMS], n = 0;
    struct tape_shape two = {0};
    uint64_t len = 1;
    for (unsigned i = 0; i < s.ndim; i++)
        if ((axes >> i & 1) == 0) {
            order[n++] = i;
            two.dim[two.ndim++] = s.dim[i];
        }
    for (unsigned i = 0; i < s.ndim; i++)
        if ((axes >> i & 1) != 0) {
            order[n++] = i;
            len *= s.dim[i];
        }
    two.dim[two.ndim++] = len;
    ms_assert(two.ndim <= TAPE_DIMS);
    return tape_reshape(t, is_last(&s, axes) ? x : tape_permute(t, x, order), &two);
}

tape_id tape_reduce(struct tape *t, enum tape_kind kind, tape_id x, unsigned axes, bool keep)
{
    if (x == TAPE_NONE)
        return TAPE_NONE;
    struct tape_shape kept = tape_at(t, x)->shape;
    if (kept.ndim == 0 || axes == 0)
        return x;
    for (unsigned i = 0; i < kept.ndim; i++)
        if ((axes >> i & 1) != 0)
            kept.dim[i] = 1;
    const tape_id two = axes_last(t, x, axes);
    const tape_id y = two != TAPE_NONE ? reduce_last(t, kind, two) : TAPE_NONE;
    return keep ? tape_reshape(t, y, &kept) : y;
}

double tape_reduced(const struct tape *t, tape_id x, unsigned axes)
{
    double n = 1;
    for (unsigned i = 0; x != TAPE_NONE && i < tape_at(t, x)->shape.ndim; i++)
        if ((axes >> i & 1) != 0)
            n *= (double)tape_at(t, x)->shape.dim[i];
    return n;
}

tape_id tape_mean(struct tape *t, tape_id x, unsigned axes, bool keep)
{
    return tape_div(t, tape_reduce(t, TAPE_SUM, x, axes, keep),
                    tape_constant(t, tape_reduced(t, x, axes)));
}

tape_id tape_unbroadcast(struct tape *t, tape_id x, const struct tape_shape *to)
{
    const struct tape_shape shape = *to; /* may lie in a node, and nodes move */
    if (x == TAPE_NONE || tape_shape_eq(&tape_at(t, x)->shape, &shape))
        return x;
    const struct tape_shape from = tape_at(t, x)->shape;
    unsigned axes = 0;
    for (unsigned i = 0; i < from.ndim; i++) {
        const unsigned lead = from.ndim - shape.ndim;
        if (i < lead || (shape.dim[i - lead] == 1 && from.dim[i] != 1))
            axes |= 1U << i;
    }
    return tape_reshape(t, tape_reduce(t, TAPE_SUM, x, axes, false), &shape);
}

tape_id tape_cumsum(struct tape *t, tape_id x, unsigned axis)
{
    tape_id id;
    if (x == TAPE_NONE || tape_at(t, x)->shape.ndim == 0)
        return x;
    const struct tape_shape shape = tape_at(t, x)->shape;
    const unsigned last = shape.ndim - 1;
    if (axis != last)
        return tape_swap(t, tape_cumsum(t, tape_swap(t, x, axis, last), last), axis, last);
    if (tape__node(t, TAPE_CUMSUM, &shape, &id) == NULL || !tape__want_errors(t, id))
        return TAPE_NONE;
    struct tape_node *n = tape_at(t, id);
    const struct tape_node *from = tape_at(t, x);
    n->in[0] = x;
    const size_t len = (size_t)shape.dim[last];
    double sum = 0, e = 0, walked = 0;
    for (size_t i = 0; i < n->n; i++) {
        const size_t at = i % len;
        if (at == 0)
            sum = e = walked = 0;
        sum += from->v[i];
        e += tape__error(from, i);
        walked += sum * sum;
        n->v[i] = sum;
        /* Partial sums are results here, each rounded to the type. */
        n->e[i] = e + t->unit * sqrt(walked);
    }
    return id;
}

/* ---- products of matrices -------------------------------------------------------- */

/* Operands of one product: x is m times k and y is k times n, in C order. */
struct product {
    size_t m, k, n;
    const double *x, *y, *ex, *ey; /* errors may be NULL */
    double *v, *e, *squares;       /* squares: room for n */
};

static void multiply_line(const struct product *p, size_t i)
{
    double *v = p->v + i * p->n, *squares = p->squares;
    for (size_t l = 0; l < p->k; l++) {
        const double a = p->x[i * p->k + l], *y = p->y + l * p->n;
        for (size_t j = 0; j < p->n; j++) {
            const double term = a * y[j];
            v[j] += term;
            squares[j] += term * term;
        }
    }
}

static void pass_errors(const struct product *p, size_t i)
{
    double *e = p->e + i * p->n;
    for (size_t l = 0; l < p->k; l++) {
        const double a = fabs(p->x[i * p->k + l]), ea = p->ex != NULL ? p->ex[i * p->k + l] : 0;
        const double *y = p->y + l * p->n, *ey = p->ey != NULL ? p->ey + l * p->n : NULL;
        for (size_t j = 0; j < p->n; j++)
            e[j] += ea * fabs(y[j]) + (ey != NULL ? (a + ea) * ey[j] : 0);
    }
}

static void multiply(const struct tape *t, const struct product *p)
{
    memset(p->v, 0, p->m * p->n * sizeof *p->v);
    for (size_t i = 0; i < p->m; i++) {
        memset(p->squares, 0, p->n * sizeof *p->squares);
        multiply_line(p, i);
        if (p->ex != NULL || p->ey != NULL)
            pass_errors(p, i);
        for (size_t j = 0; j < p->n; j++)
            if (isfinite(p->v[i * p->n + j]))
                p->e[i * p->n + j] +=
                    tape_sum_error(t, (double)p->k, p->v[i * p->n + j], p->squares[j]) +
                    t->sum_unit * sqrt(p->squares[j]);
    }
}

/* Sets the shape of the batches that both operands are expanded to. */
static bool batch_shape(const struct tape_shape *x, const struct tape_shape *y,
                        struct tape_shape *batch)
{
    struct tape_shape a = *x, b = *y;
    a.ndim -= 2;
    b.ndim -= 2;
    return tape_broadcast(&a, &b, batch);
}

/* Exchanges the last two axes where asked and expands the batches. */
static tape_id prepare(struct tape *t, tape_id x, bool swap, const struct tape_shape *batch)
{
    const unsigned nd = tape_at(t, x)->shape.ndim;
    const tape_id y = swap ? tape_swap(t, x, nd - 1, nd - 2) : x;
    if (y == TAPE_NONE)
        return y;
    struct tape_shape whole = *batch;
    for (unsigned i = nd - 2; i < nd; i++)
        whole.dim[whole.ndim++] = tape_at(t, y)->shape.dim[i];
    return tape_expand(t, y, &whole);
}

static tape_id multiply_batches(struct tape *t, tape_id x, tape_id y,
                                const struct tape_shape *batch)
{
    const struct tape_shape xs = tape_at(t, x)->shape, ys = tape_at(t, y)->shape;
    struct product p = {
        .m = xs.dim[xs.ndim - 2], .k = xs.dim[xs.ndim - 1], .n = ys.dim[ys.ndim - 1]};
    struct tape_shape out = *batch;
    out.dim[out.ndim++] = p.m;
    out.dim[out.ndim++] = p.n;
    tape_id id;
    if (p.k != ys.dim[ys.ndim - 2])
        return tape_fail(t, MS_E_FORMAT, "the shapes of two matrices do not go together");
    if (tape__node(t, TAPE_MATMUL, &out, &id) == NULL || !tape__want_errors(t, id))
        return TAPE_NONE;
    p.squares = ms_alloc((p.n + 1) * sizeof *p.squares);
    if (p.squares == NULL)
        return tape_fail(t, MS_E_NOMEM, "out of memory");
    struct tape_node *n = tape_at(t, id);
    const struct tape_node *a = tape_at(t, x), *b = tape_at(t, y);
    for (size_t i = 0, batches = tape_shape_count(batch); i < batches; i++) {
        p.x = a->v + i * p.m * p.k;
        p.y = b->v + i * p.k * p.n;
        p.ex = a->e != NULL ? a->e + i * p.m * p.k : NULL;
        p.ey = b->e != NULL ? b->e + i * p.k * p.n : NULL;
        p.v = n->v + i * p.m * p.n;
        p.e = n->e + i * p.m * p.n;
        multiply(t, &p);
    }
    ms_free(p.squares);
    return id;
}

tape_id tape_matmul(struct tape *t, tape_id x, bool swap_x, tape_id y, bool swap_y)
{
    struct tape_shape batch;
    if (x == TAPE_NONE || y == TAPE_NONE)
        return TAPE_NONE;
    if (tape_at(t, x)->shape.ndim < 2 || tape_at(t, y)->shape.ndim < 2 ||
        !batch_shape(&tape_at(t, x)->shape, &tape_at(t, y)->shape, &batch) ||
        batch.ndim + 2 > TAPE_DIMS)
        return tape_fail(t, MS_E_FORMAT, "the shapes of two matrices do not go together");
    const tape_id a = prepare(t, x, swap_x, &batch), b = prepare(t, y, swap_y, &batch);
    if (a == TAPE_NONE || b == TAPE_NONE)
        return TAPE_NONE;
    const tape_id id = multiply_batches(t, a, b, &batch);
    if (id != TAPE_NONE) {
        tape_at(t, id)->in[0] = a;
        tape_at(t, id)->in[1] = b;
    }
    return id;
}
