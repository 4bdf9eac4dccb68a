/* SPDX-License-Identifier: MIT
 *
 * op_convolutions: convolutions as products of matrices over the windows of their input.
 */
#include "compare/recompute/operator_call_int.h"

/* Coordinate that place k of the window at p reads along an axis; -1 outside. */
static int64_t coordinate(const struct rec_window *w, unsigned axis, int64_t p, int64_t k)
{
    int64_t at = p * w->stride[axis] - w->pad[axis] + k * w->dilation[axis];
    if (w->adaptive) {
        const int64_t in = w->in[axis], out = w->out[axis];
        at = p * in / out + k;
        if (at >= ((p + 1) * in + out - 1) / out)
            return -1;
    }
    return at >= 0 && at < w->in[axis] ? at : -1;
}

int64_t *rec_windows(struct tape *t, const struct rec_window *w, uint64_t lead,
                     struct tape_shape *shape)
{
    int64_t positions = 1, elements = 1, image = 1;
    for (unsigned i = 0; i < w->n; i++) {
        if (w->out[i] < 0 || w->size[i] < 1 || (w->adaptive && w->out[i] == 0) ||
            __builtin_mul_overflow(positions, w->out[i], &positions) ||
            __builtin_mul_overflow(elements, w->size[i], &elements)) {
            tape_fail(t, MS_E_UNSUPPORTED, "windows that do not fit the image");
            return NULL;
        }
        image *= w->in[i];
    }
    *shape = (struct tape_shape){.ndim = 3,
                                 .dim = {lead, (uint64_t)(w->elements_first ? elements : positions),
                                         (uint64_t)(w->elements_first ? positions : elements)}};
    int64_t *index = tape_index(t, shape);
    if (index == NULL)
        return NULL;
    for (int64_t p = 0; p < positions; p++)
        for (int64_t k = 0; k < elements; k++) {
            int64_t at = 0, step = 1, rest_p = p, rest_k = k;
            for (unsigned i = w->n; i-- > 0 && at >= 0;) {
                const int64_t x = coordinate(w, i, rest_p % w->out[i], rest_k % w->size[i]);
                at = x < 0 ? -1 : at + x * step;
                step *= w->in[i];
                rest_p /= w->out[i];
                rest_k /= w->size[i];
            }
            const int64_t place = w->elements_first ? k * positions + p : p * elements + k;
            for (uint64_t l = 0; l < lead; l++)
                index[(int64_t)l * positions * elements + place] =
                    at < 0 ? -1 : at + (int64_t)l * image;
        }
    return index;
}

struct conv {
    tape_id x, w, b;
    uint64_t n, groups, in, out; /* batch, groups, channels of one group */
    bool had_batch;
    struct rec_window window;
};

/* Brings x to the shape {batch, channels, space...}. */
static bool read_conv(struct rec_call *c, unsigned space, struct conv *v, int groups_at)
{
    v->x = rec_want(c, 0, "input");
    v->w = rec_want(c, 1, "weight");
    v->b = rec_tensor(c, 2, "bias");
    struct tape_shape xs = rec_shape(c, v->x), ws = rec_shape(c, v->w);
    if (v->x == TAPE_NONE || v->w == TAPE_NONE)
        return false;
    v->had_batch = xs.ndim == space + 2;
    if (!v->had_batch && xs.ndim == space + 1) {
        memmove(&xs.dim[1], &xs.dim[0], xs.ndim * sizeof xs.dim[0]);
        xs.dim[0] = 1;
        xs.ndim++;
        v->x = tape_reshape(c->tape, v->x, &xs);
    }
    const double groups = rec_number(c, groups_at, "groups", 1);
    if (xs.ndim != space + 2 || ws.ndim != space + 2 || groups < 1 || groups > (double)xs.dim[1] ||
        xs.dim[1] % (uint64_t)groups != 0) {
        rec_unsupported(c, "the shapes of a convolution do not go together");
        return false;
    }
    v->n = xs.dim[0];
    v->groups = (uint64_t)groups;
    v->in = xs.dim[1] / v->groups;
    v->window.n = space;
    for (unsigned i = 0; i < space; i++) {
        v->window.in[i] = (int64_t)xs.dim[2 + i];
        v->window.size[i] = (int64_t)ws.dim[2 + i];
    }
    return true;
}

/* Padding by numbers, or by the words "same" and "valid". */
static void read_padding(struct rec_call *c, struct rec_window *w, int64_t behind[REC_SPACE])
{
    const struct ms_str word = rec_text(c, 4, "padding", "");
    if (word.n == 0)
        rec_numbers(c, 4, "padding", w->pad, w->n, 0);
    for (unsigned i = 0; i < w->n; i++) {
        const int64_t whole = w->dilation[i] * (w->size[i] - 1);
        if (ms_str_is(word, "same"))
            w->pad[i] = whole / 2;
        behind[i] = ms_str_is(word, "same") ? whole - whole / 2 : w->pad[i];
    }
}

/* A module does not record stride and padding: finds the smallest that give the recorded size. */
static void assume_steps(struct rec_call *c, struct rec_window *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        const int64_t want = (int64_t)c->result_shape.dim[c->result_shape.ndim - w->n + i];
        w->dilation[i] = 1;
        for (w->stride[i] = 1; w->stride[i] <= w->size[i] + 1; w->stride[i]++) {
            for (w->pad[i] = 0; w->pad[i] < w->size[i]; w->pad[i]++)
                if ((w->in[i] + 2 * w->pad[i] - w->size[i]) / w->stride[i] + 1 == want)
                    break;
            if (w->pad[i] < w->size[i])
                break;
        }
    }
    rec_assume(c, "stride and padding of the module, from the shapes");
}

static tape_id add_bias(struct rec_call *c, const struct conv *v, tape_id y)
{
    struct tape_shape wide = {.ndim = v->window.n + 1, .dim = {v->out * v->groups, 1, 1, 1}};
    return v->b != TAPE_NONE ? tape_add(c->tape, y, tape_reshape(c->tape, v->b, &wide)) : y;
}

static void give_conv(struct rec_call *c, const struct conv *v, tape_id y)
{
    struct tape_shape s = {.ndim = v->window.n + 2, .dim = {v->n, v->groups * v->out}};
    for (unsigned i = 0; i < v->window.n; i++)
        s.dim[2 + i] = (uint64_t)v->window.out[i];
    y = add_bias(c, v, tape_reshape(c->tape, y, &s));
    if (!v->had_batch) {
        memmove(&s.dim[0], &s.dim[1], (s.ndim - 1) * sizeof s.dim[0]);
        s.ndim--;
        y = tape_reshape(c->tape, y, &s);
    }
    rec_give(c, y);
}

static void convolve(struct rec_call *c, unsigned space)
{
    struct tape *t = c->tape;
    struct conv v = {0};
    int64_t behind[REC_SPACE];
    if (!read_conv(c, space, &v, 6))
        return;
    struct rec_window *w = &v.window;
    const struct tape_shape ws = rec_shape(c, v.w);
    if (ws.dim[1] != v.in && rec_find(c, 6, "groups") == NULL && ws.dim[1] != 0) {
        v.groups = v.groups * v.in / ws.dim[1]; /* of a module, which does not record it */
        v.in = ws.dim[1];
    }
    v.out = v.groups != 0 ? ws.dim[0] / v.groups : 0;
    rec_numbers(c, 3, "stride", w->stride, space, 1);
    rec_numbers(c, 5, "dilation", w->dilation, space, 1);
    const bool is_bare = c->nargs <= 2 && rec_find(c, 3, "stride") == NULL &&
                         rec_find(c, 4, "padding") == NULL && (c->nargs == 1 || c->is_primitive);
    if (is_bare && c->result_shape.ndim >= space) {
        assume_steps(c, w);
        memcpy(behind, w->pad, sizeof behind);
    } else {
        read_padding(c, w, behind);
    }
    for (unsigned i = 0; i < space; i++) {
        const int64_t room =
            w->in[i] + w->pad[i] + behind[i] - w->dilation[i] * (w->size[i] - 1) - 1;
        if (w->stride[i] < 1 || w->dilation[i] < 1 || room < 0) {
            rec_unsupported(c, "a window larger than its image");
            return;
        }
        w->out[i] = room / w->stride[i] + 1;
    }
    w->elements_first = true;
    struct tape_shape windows;
    int64_t *index = rec_windows(t, w, v.n * v.groups * v.in, &windows);
    const tape_id columns = tape_gather(t, v.x, &windows, index, 0);
    const struct tape_shape cs = {.ndim = 4,
                                  .dim = {v.n, v.groups, v.in * windows.dim[1], windows.dim[2]}},
                            fs = {.ndim = 3, .dim = {v.groups, v.out, v.in * windows.dim[1]}};
    give_conv(
        c, &v,
        tape_matmul(t, tape_reshape(t, v.w, &fs), false, tape_reshape(t, columns, &cs), false));
}

/* A transposed convolution adds up, for each element of x, a window of the result. */
static void convolve_back(struct rec_call *c, unsigned space)
{
    struct tape *t = c->tape;
    struct conv v = {0};
    int64_t more[REC_SPACE];
    if (!read_conv(c, space, &v, 6))
        return;
    struct rec_window *w = &v.window;
    const struct tape_shape ws = rec_shape(c, v.w);
    v.out = ws.dim[1];
    rec_numbers(c, 3, "stride", w->stride, space, 1);
    rec_numbers(c, 4, "padding", w->pad, space, 0);
    rec_numbers(c, 5, "output_padding", more, space, 0);
    rec_numbers(c, 7, "dilation", w->dilation, space, 1);
    struct tape_shape s = {.ndim = space + 2, .dim = {v.n, v.groups * v.out}};
    int64_t positions = 1;
    for (unsigned i = 0; i < space; i++) {
        w->out[i] = w->in[i];
        positions *= w->in[i];
        w->in[i] = (w->in[i] - 1) * w->stride[i] - 2 * w->pad[i] +
                   w->dilation[i] * (w->size[i] - 1) + more[i] + 1;
        if (w->in[i] < 0 || w->in[i] > INT32_MAX) {
            rec_unsupported(c, "a padding larger than the result");
            return;
        }
        s.dim[2 + i] = (uint64_t)w->in[i];
    }
    w->elements_first = true;
    struct tape_shape windows;
    int64_t *index = rec_windows(t, w, v.n * v.groups * v.out, &windows);
    const struct tape_shape xs = {.ndim = 4, .dim = {v.n, v.groups, v.in, (uint64_t)positions}},
                            fs = {.ndim = 3, .dim = {v.groups, v.in, v.out * windows.dim[1]}};
    const tape_id columns =
        tape_matmul(t, tape_reshape(t, v.w, &fs), true, tape_reshape(t, v.x, &xs), false);
    const tape_id y = tape_scatter(t, tape_reshape(t, columns, &windows), &s, index);
    for (unsigned i = 0; i < space; i++)
        w->out[i] = w->in[i];
    give_conv(c, &v, y);
}

#define CONVOLUTION(name, compute, space)                                                          \
    static void name(struct rec_call *c)                                                           \
    {                                                                                              \
        compute(c, space);                                                                         \
    }
CONVOLUTION(op_conv1d, convolve, 1)
CONVOLUTION(op_conv2d, convolve, 2)
CONVOLUTION(op_conv3d, convolve, 3)
CONVOLUTION(op_conv_transpose1d, convolve_back, 1)
CONVOLUTION(op_conv_transpose2d, convolve_back, 2)
CONVOLUTION(op_conv_transpose3d, convolve_back, 3)

const struct rec_operator rec_convolutions[] = {{"conv1d", op_conv1d},
                                                {"Conv1d", op_conv1d},
                                                {"conv2d", op_conv2d},
                                                {"Conv2d", op_conv2d},
                                                {"conv3d", op_conv3d},
                                                {"Conv3d", op_conv3d},
                                                {"Conv2D", op_conv2d},
                                                {"Conv3D", op_conv3d},
                                                {"conv_transpose1d", op_conv_transpose1d},
                                                {"conv_transpose2d", op_conv_transpose2d},
                                                {"conv_transpose3d", op_conv_transpose3d},
                                                {NULL, NULL}};
