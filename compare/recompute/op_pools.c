/* SPDX-License-Identifier: MIT
 *
 * op_pools: pools over windows, and resizing by the nearest element.
 */
#include "compare/recompute/operator_call_int.h"

static int64_t image_axes(struct rec_call *c, tape_id x, struct rec_window *w)
{
    const struct tape_shape s = rec_shape(c, x);
    int64_t lead = 1;
    for (unsigned i = 0; i < s.ndim; i++)
        if (i + w->n < s.ndim)
            lead *= (int64_t)s.dim[i];
        else
            w->in[i + w->n - s.ndim] = (int64_t)s.dim[i];
    return lead;
}

/* Number of windows of which the last may reach over the end when `ceil` is set, but never begins
 * there. */
static bool count_windows(struct rec_window *w, bool ceil)
{
    for (unsigned i = 0; i < w->n; i++) {
        if (w->stride[i] < 1 || w->size[i] < 1 || w->dilation[i] < 1 || w->pad[i] < 0)
            return false;
        const int64_t room = w->in[i] + 2 * w->pad[i] - w->dilation[i] * (w->size[i] - 1) - 1;
        if (room < 0)
            return false;
        w->out[i] = (room + (ceil ? w->stride[i] - 1 : 0)) / w->stride[i] + 1;
        if (ceil && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->pad[i])
            w->out[i]--;
    }
    return true;
}

/* Shape of the result: that of the image with other lengths of its axes. */
static tape_id shaped(struct rec_call *c, tape_id y, tape_id x, const struct rec_window *w)
{
    struct tape_shape s = rec_shape(c, x);
    for (unsigned i = 0; i < w->n; i++)
        s.dim[s.ndim - w->n + i] = (uint64_t)w->out[i];
    return tape_reshape(c->tape, y, &s);
}

static void read_window(struct rec_call *c, struct rec_window *w)
{
    const struct rec_value *stride = rec_find(c, 2, "stride");
    rec_numbers(c, 1, "kernel_size", w->size, w->n, 1);
    if (stride == NULL || (stride->kind == REC_LIST && stride->n == 0))
        memcpy(w->stride, w->size, sizeof w->stride);
    else
        rec_numbers(c, 2, "stride", w->stride, w->n, 1);
    rec_numbers(c, 3, "padding", w->pad, w->n, 0);
}

static void max_pool(struct rec_call *c, unsigned space)
{
    struct rec_window w = {.n = space};
    const tape_id x = rec_want(c, 0, "input");
    read_window(c, &w);
    rec_numbers(c, 4, "dilation", w.dilation, space, 1);
    if (x == TAPE_NONE || rec_shape(c, x).ndim < space)
        return;
    const int64_t lead = image_axes(c, x, &w);
    struct tape_shape s;
    if (!count_windows(&w, rec_flag(c, 5, "ceil_mode", false))) {
        rec_unsupported(c, "a window larger than its image");
        return;
    }
    int64_t *index = rec_windows(c->tape, &w, (uint64_t)lead, &s);
    const tape_id windows = tape_gather(c->tape, x, &s, index, -INFINITY);
    rec_give(c, shaped(c, tape_reduce(c->tape, TAPE_MAX, windows, 4U, false), x, &w));
    rec_give(c, TAPE_NONE);
}

/* Elements that the mean of each window is divided by: those inside the padded image, or inside
 * the image. */
static double divisor_of(const struct rec_window *w, int64_t position, bool with_padding)
{
    double n = 1;
    for (unsigned i = w->n; i-- > 0;) {
        const int64_t p = position % w->out[i];
        position /= w->out[i];
        int64_t from = p * w->stride[i] - w->pad[i], to = from + w->size[i];
        to = to < w->in[i] + w->pad[i] ? to : w->in[i] + w->pad[i];
        if (!with_padding) {
            from = from > 0 ? from : 0;
            to = to < w->in[i] ? to : w->in[i];
        }
        n *= (double)(to - from);
    }
    return n;
}

static void avg_pool(struct rec_call *c, unsigned space)
{
    struct tape *t = c->tape;
    struct rec_window w = {.n = space, .dilation = {1, 1, 1}};
    const tape_id x = rec_want(c, 0, "input");
    read_window(c, &w);
    if (x == TAPE_NONE || rec_shape(c, x).ndim < space)
        return;
    const int64_t lead = image_axes(c, x, &w);
    if (!count_windows(&w, rec_flag(c, 4, "ceil_mode", false))) {
        rec_unsupported(c, "a window larger than its image");
        return;
    }
    struct tape_shape s;
    int64_t *index = rec_windows(t, &w, (uint64_t)lead, &s);
    const tape_id sum = tape_reduce(t, TAPE_SUM, tape_gather(t, x, &s, index, 0), 4U, false);
    const struct tape_shape ps = {.ndim = 1, .dim = {s.dim[1]}};
    const tape_id divisor = tape_leaf(t, &ps);
    const double given = rec_number(c, 6, "divisor_override", 0);
    for (size_t i = 0; divisor != TAPE_NONE && i < s.dim[1]; i++)
        tape_at(t, divisor)->v[i] =
            given != 0 ? given
                       : divisor_of(&w, (int64_t)i, rec_flag(c, 5, "count_include_pad", true));
    rec_give(c, shaped(c, tape_div(t, sum, divisor), x, &w));
}

/* Reads the wanted size, None for that of the input; false when it does not fit. */
static bool adaptive_windows(struct rec_call *c, tape_id x, struct rec_window *w)
{
    const struct tape_shape s = c->result_shape;
    if (x == TAPE_NONE || rec_shape(c, x).ndim < w->n || s.ndim < w->n)
        return false;
    w->adaptive = true;
    for (unsigned i = 0; i < w->n; i++) {
        w->out[i] = (int64_t)s.dim[s.ndim - w->n + i];
        if (w->out[i] == 0)
            return false;
        w->size[i] = 1;
        for (int64_t p = 0; p < w->out[i]; p++) {
            const int64_t size =
                ((p + 1) * w->in[i] + w->out[i] - 1) / w->out[i] - p * w->in[i] / w->out[i];
            w->size[i] = size > w->size[i] ? size : w->size[i];
        }
    }
    return true;
}

static void adaptive_pool(struct rec_call *c, unsigned space, bool most)
{
    struct tape *t = c->tape;
    struct rec_window w = {.n = space};
    const tape_id x = rec_want(c, 0, "input");
    const int64_t lead = x != TAPE_NONE && rec_shape(c, x).ndim >= space ? image_axes(c, x, &w) : 0;
    struct tape_shape s;
    if (!adaptive_windows(c, x, &w)) {
        rec_unsupported(c, "a pool of another size than its result");
        return;
    }
    int64_t *index = rec_windows(t, &w, (uint64_t)lead, &s);
    if (index == NULL)
        return;
    const tape_id windows = tape_gather(t, x, &s, index, most ? -INFINITY : 0);
    if (most) {
        rec_give(c, shaped(c, tape_reduce(t, TAPE_MAX, windows, 4U, false), x, &w));
        return;
    }
    const struct tape_shape ps = {.ndim = 1, .dim = {s.dim[1]}};
    const tape_id divisor = tape_leaf(t, &ps);
    for (size_t p = 0; divisor != TAPE_NONE && p < s.dim[1]; p++) {
        double n = 0;
        for (size_t k = 0; k < s.dim[2]; k++)
            n += index[p * s.dim[2] + k] >= 0;
        tape_at(t, divisor)->v[p] = n;
    }
    rec_give(c,
             shaped(c, tape_div(t, tape_reduce(t, TAPE_SUM, windows, 4U, false), divisor), x, &w));
}

#define POOL(name, call)                                                                           \
    static void name(struct rec_call *c)                                                           \
    {                                                                                              \
        call;                                                                                      \
    }
POOL(op_max_pool1d, max_pool(c, 1))
POOL(op_max_pool2d, max_pool(c, 2))
POOL(op_max_pool3d, max_pool(c, 3))
POOL(op_avg_pool1d, avg_pool(c, 1))
POOL(op_avg_pool2d, avg_pool(c, 2))
POOL(op_avg_pool3d, avg_pool(c, 3))
POOL(op_adaptive_avg_pool1d, adaptive_pool(c, 1, false))
POOL(op_adaptive_avg_pool2d, adaptive_pool(c, 2, false))
POOL(op_adaptive_avg_pool3d, adaptive_pool(c, 3, false))
POOL(op_adaptive_max_pool1d, adaptive_pool(c, 1, true))
POOL(op_adaptive_max_pool2d, adaptive_pool(c, 2, true))

/* Resizes by the nearest element; other modes are not recomputed. */
static void op_interpolate(struct rec_call *c)
{
    struct tape *t = c->tape;
    const tape_id x = rec_want(c, 0, "input");
    const struct tape_shape from = rec_shape(c, x), to = c->result_shape;
    if (!ms_str_is(rec_text(c, 3, "mode", "nearest"), "nearest") || from.ndim != to.ndim ||
        from.ndim < 3) {
        rec_unsupported(c, "resizing other than by the nearest element");
        return;
    }
    int64_t *index = tape_index(t, &to);
    const size_t n = tape_shape_count(&to);
    for (size_t i = 0; index != NULL && i < n; i++) {
        size_t rest = i, at = 0, step = 1;
        for (unsigned d = to.ndim; d-- > 0;) {
            const size_t place = rest % to.dim[d];
            rest /= to.dim[d];
            at += (d < 2 ? place : place * from.dim[d] / to.dim[d]) * step;
            step *= from.dim[d];
        }
        index[i] = (int64_t)at;
    }
    rec_give(c, tape_gather(t, x, &to, index, 0));
}

const struct rec_operator rec_pools[] = {{"max_pool1d", op_max_pool1d},
                                         {"max_pool2d", op_max_pool2d},
                                         {"max_pool3d", op_max_pool3d},
                                         {"max_pool1d_with_indices", op_max_pool1d},
                                         {"max_pool2d_with_indices", op_max_pool2d},
                                         {"avg_pool1d", op_avg_pool1d},
                                         {"avg_pool2d", op_avg_pool2d},
                                         {"avg_pool3d", op_avg_pool3d},
                                         {"adaptive_avg_pool1d", op_adaptive_avg_pool1d},
                                         {"adaptive_avg_pool2d", op_adaptive_avg_pool2d},
                                         {"adaptive_avg_pool3d", op_adaptive_avg_pool3d},
                                         {"adaptive_max_pool1d", op_adaptive_max_pool1d},
                                         {"adaptive_max_pool2d", op_adaptive_max_pool2d},
                                         {"interpolate", op_interpolate},
                                         {"upsample", op_interpolate},
                                         {NULL, NULL}};
