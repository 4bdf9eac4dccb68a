/* SPDX-License-Identifier: MIT
 *
 * tape_move: operations that move elements. All of them are a gather, whose gradient is a scatter,
 * and the other way round.
 */
#include "compare/recompute/tape_int.h"
#include "probe/base/assert.h"

int64_t *tape_index(struct tape *t, const struct tape_shape *shape)
{
    const size_t n = tape_shape_count(shape);
    size_t bytes;
    int64_t *p = NULL;
    if (!tape_failed(t) && ms_mul_size(n != 0 ? n : 1, sizeof *p, &bytes))
        p = ms_arena_alloc(t->arena, bytes);
    if (p == NULL)
        tape_fail(t, MS_E_LIMIT, "recomputing this needs more memory than the limit");
    return p;
}

tape_id tape_gather(struct tape *t, tape_id x, const struct tape_shape *shape, int64_t *index,
                    double fill)
{
    tape_id id;
    if (x == TAPE_NONE || index == NULL || tape__node(t, TAPE_GATHER, shape, &id) == NULL)
        return TAPE_NONE;
    if (tape_at(t, x)->e != NULL && !tape__want_errors(t, id))
        return TAPE_NONE;
    struct tape_node *n = tape_at(t, id);
    const struct tape_node *from = tape_at(t, x);
    n->in[0] = x;
    n->index = index;
    for (size_t i = 0; i < n->n; i++) {
        ms_assert(index[i] < (int64_t)from->n);
        n->v[i] = index[i] >= 0 ? from->v[index[i]] : fill;
        if (n->e != NULL && index[i] >= 0)
            n->e[i] = from->e[index[i]];
    }
    return id;
}

/* Sums and counts of what is added up at each place. */
struct sums {
    double *squares, *count;
};

static void add_up(struct tape_node *n, const struct tape_node *x, struct sums s)
{
    for (size_t i = 0; i < x->n; i++) {
        const int64_t at = n->index[i];
        if (at < 0)
            continue;
        n->v[at] += x->v[i];
        n->e[at] += tape__error(x, i);
        s.squares[at] += x->v[i] * x->v[i];
        s.count[at]++;
    }
}

tape_id tape_scatter(struct tape *t, tape_id x, const struct tape_shape *shape, int64_t *index)
{
    tape_id id;
    if (x == TAPE_NONE || index == NULL || tape__node(t, TAPE_SCATTER, shape, &id) == NULL ||
        !tape__want_errors(t, id))
        return TAPE_NONE;
    struct tape_node *n = tape_at(t, id);
    n->in[0] = x;
    n->index = index;
    const struct sums s = {ms_calloc(n->n + 1, sizeof(double)),
                           ms_calloc(n->n + 1, sizeof(double))};
    if (s.squares == NULL || s.count == NULL) {
        id = tape_fail(t, MS_E_NOMEM, "out of memory");
    } else {
        memset(n->v, 0, n->n * sizeof *n->v);
        add_up(n, tape_at(t, x), s);
        for (size_t i = 0; i < n->n; i++)
            if (s.count[i] > 1)
                n->e[i] += tape_sum_error(t, s.count[i], n->v[i], s.squares[i]);
    }
    ms_free(s.squares);
    ms_free(s.count);
    return id;
}

tape_id tape_reshape(struct tape *t, tape_id x, const struct tape_shape *to)
{
    if (x == TAPE_NONE || tape_failed(t))
        return TAPE_NONE;
    const struct tape_shape shape = *to; /* may lie in a node, and nodes move */
    if (tape_shape_count(&shape) != tape_at(t, x)->n)
        return tape_fail(t, MS_E_FORMAT, "a tensor cannot have the shape that is asked for");
    struct tape_node *n = ms_vec_push(&t->nodes);
    if (n == NULL)
        return tape_fail(t, MS_E_NOMEM, "out of memory");
    const struct tape_node *from = tape_at(t, x);
    *n = (struct tape_node){.kind = TAPE_RESHAPE,
                            .shape = shape,
                            .n = from->n,
                            .v = from->v,
                            .e = from->e,
                            .in = {x, TAPE_NONE, TAPE_NONE}};
    return (tape_id)(t->nodes.n - 1);
}

tape_id tape_strided(struct tape *t, tape_id x, const struct tape_shape *shape,
                     const int64_t *stride, int64_t offset)
{
    int64_t *index = x != TAPE_NONE ? tape_index(t, shape) : NULL;
    if (index == NULL)
        return TAPE_NONE;
    struct tape_walk w = {.shape = *shape, .n = 1, .off = {offset}};
    memcpy(w.stride[0], stride, shape->ndim * sizeof stride[0]);
    const size_t n = tape_shape_count(shape);
    for (size_t i = 0; i < n; i++, tape__walk_next(&w))
        index[i] = w.off[0];
    return tape_gather(t, x, shape, index, 0);
}

tape_id tape_permute(struct tape *t, tape_id x, const unsigned *axes)
{
    if (x == TAPE_NONE)
        return TAPE_NONE;
    const struct tape_shape from = tape_at(t, x)->shape;
    struct tape_shape to = from;
    int64_t own[TAPE_DIMS], stride[TAPE_DIMS];
    tape__strides(&from, own);
    for (unsigned i = 0; i < from.ndim; i++) {
        to.dim[i] = from.dim[axes[i]];
        stride[i] = own[axes[i]];
    }
    return tape_strided(t, x, &to, stride, 0);
}

tape_id tape_swap(struct tape *t, tape_id x, unsigned one, unsigned other)
{
    unsigned axes[TAPE_DIMS];
    for (unsigned i = 0; i < TAPE_DIMS; i++)
        axes[i] = i == one ? other : i == other ? one : i;
    return tape_permute(t, x, axes);
}

tape_id tape_expand(struct tape *t, tape_id x, const struct tape_shape *shape)
{
    struct tape_shape both;
    int64_t stride[TAPE_DIMS];
    if (x == TAPE_NONE || tape_shape_eq(&tape_at(t, x)->shape, shape))
        return x;
    if (!tape_broadcast(&tape_at(t, x)->shape, shape, &both) || !tape_shape_eq(&both, shape))
        return tape_fail(t, MS_E_FORMAT,
                         "a tensor cannot be expanded to the shape that is asked for");
    tape__broadcast_strides(&tape_at(t, x)->shape, shape, stride);
    return tape_strided(t, x, shape, stride, 0);
}

tape_id tape_slice(struct tape *t, tape_id x, unsigned axis, uint64_t from, uint64_t n,
                   int64_t step)
{
    if (x == TAPE_NONE)
        return TAPE_NONE;
    struct tape_shape to = tape_at(t, x)->shape;
    if (axis >= to.ndim ||
        (n != 0 && (from >= to.dim[axis] || (int64_t)from + (int64_t)(n - 1) * step < 0 ||
                    (int64_t)from + (int64_t)(n - 1) * step >= (int64_t)to.dim[axis])))
        return tape_fail(t, MS_E_FORMAT, "a slice reaches beyond its tensor");
    int64_t stride[TAPE_DIMS];
    tape__strides(&to, stride);
    const int64_t offset = (int64_t)from * stride[axis];
    stride[axis] *= step;
    to.dim[axis] = n;
    return tape_strided(t, x, &to, stride, n != 0 ? offset : 0);
}

tape_id tape_pad(struct tape *t, tape_id x, unsigned axis, int64_t before, int64_t behind,
                 double fill)
{
    if (x == TAPE_NONE || (before == 0 && behind == 0))
        return x;
    const struct tape_shape from = tape_at(t, x)->shape;
    struct tape_shape to = from;
    if (axis >= to.ndim || (int64_t)to.dim[axis] + before + behind < 0)
        return tape_fail(t, MS_E_FORMAT, "padding takes more than there is");
    to.dim[axis] = (uint64_t)((int64_t)to.dim[axis] + before + behind);
    int64_t *index = tape_index(t, &to);
    if (index == NULL)
        return TAPE_NONE;
    struct tape_walk w = {.shape = to, .n = 1};
    tape__strides(&from, w.stride[0]);
    w.off[0] = -before * w.stride[0][axis];
    const size_t n = tape_shape_count(&to);
    for (size_t i = 0; i < n; i++, tape__walk_next(&w)) {
        const int64_t at = (int64_t)w.at[axis] - before;
        index[i] = at >= 0 && at < (int64_t)from.dim[axis] ? w.off[0] : -1;
    }
    return tape_gather(t, x, &to, index, fill);
}

tape_id tape_concat(struct tape *t, const tape_id *x, size_t n, unsigned axis)
{
    tape_id sum = TAPE_NONE;
    int64_t whole = 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        if (x[i] == TAPE_NONE || axis >= tape_at(t, x[i])->shape.ndim)
            return tape_fail(t, MS_E_FORMAT,
                             "tensors are joined along an axis that they do not have");
        whole += (int64_t)tape_at(t, x[i])->shape.dim[axis];
    }
    for (size_t i = 0; i < n && !tape_failed(t); i++) {
        const int64_t own = (int64_t)tape_at(t, x[i])->shape.dim[axis];
        const tape_id part = tape_pad(t, x[i], axis, at, whole - at - own, 0);
        const double unit = t->unit;
        t->unit = 0; /* zeros are added, which rounds nothing */
        sum = i == 0 ? part : tape_add(t, sum, part);
        t->unit = unit;
        at += own;
    }
    return sum;
}
