/* SPDX-License-Identifier: MIT
 *
 * quant_terms: see the header.
 */
#include "compare/quantise/quant_terms.h"

/* Outputs that are computed again, and products for them. */
enum { SAMPLE_MOST = 16384 };
static const uint64_t products_most = (uint64_t)1 << 27;

struct sums {
    double exact, weight, input, inherited, quantised;
};

static void add_product(const struct quant_operands *o, uint64_t xi, uint64_t wi, struct sums *s)
{
    const double x = (double)o->x->v[xi], w = (double)o->w->v[wi];
    const double qx = (double)o->qx->v[xi], qw = (double)o->qw->v[wi];
    const double before = o->qx_before->v != NULL ? (double)o->qx_before->v[xi] : qx;
    s->exact += x * w;
    s->quantised += qx * qw;
    s->weight += qx * (qw - w);
    s->input += (qx - before) * w;
    s->inherited += (before - x) * w;
}

static void add_output(const struct quant_operands *o, struct quant_terms *t, uint64_t at,
                       uint64_t channel, const struct sums *s)
{
    const double bias = o->bias->v != NULL ? (double)o->bias->v[channel] : 0;
    const double qbias = o->qbias->v != NULL ? (double)o->qbias->v[channel] : 0;
    const double y = (double)o->y->v[at], qy = (double)o->qy->v[at];
    const double sums = (qy - s->quantised - qbias) - (y - s->exact - bias);
    t->sampled++;
    t->signal += y * y;
    t->weight += s->weight * s->weight;
    t->input += s->input * s->input;
    t->inherited += s->inherited * s->inherited;
    t->sums += sums * sums;
    t->total += (qy - qbias - y + bias) * (qy - qbias - y + bias);
    t->product += (s->quantised - s->exact) * (s->quantised - s->exact);
}

/* Distance of sampled outputs when each takes so many products. */
static uint64_t sample_step(uint64_t outputs, uint64_t products)
{
    uint64_t most = products_most / (products != 0 ? products : 1);
    most = most > SAMPLE_MOST ? SAMPLE_MOST : most < 64 ? 64 : most;
    /* Odd, so that it does not hit the same columns in every row. */
    return outputs <= most ? 1 : (outputs / most) | 1;
}

/* ---- a matrix by a matrix ------------------------------------------------------------ */

/* Element (m, n) of batch b is the sum over k of x[b, m, k] and w[b, k, n], or w[n, k] for a layer. */
struct matrices {
    uint64_t batches, m, n, k, x_batch, w_batch, w_row, w_column;
};

static bool fit_linear(const struct quant_operands *o, struct matrices *s)
{
    if (o->x->ndim < 1 || o->w->ndim != 2)
        return false;
    s->k = o->x->shape[o->x->ndim - 1];
    s->n = o->w->shape[0];
    s->batches = 1;
    s->m = s->k != 0 ? o->x->count / s->k : 0;
    s->w_row = 1;
    s->w_column = s->k;
    return o->w->shape[1] == s->k;
}

static bool fit_matmul(const struct quant_operands *o, struct matrices *s)
{
    const uint32_t a = o->x->ndim, b = o->w->ndim;
    if (a < 2 || b < 2)
        return false;
    s->m = o->x->shape[a - 2];
    s->k = o->x->shape[a - 1];
    s->n = o->w->shape[b - 1];
    s->w_row = s->n;
    s->w_column = 1;
    if (o->w->shape[b - 2] != s->k || s->m * s->k == 0 || s->n == 0)
        return false;
    const uint64_t xs = o->x->count / (s->m * s->k), ws = o->w->count / (s->k * s->n);
    s->batches = xs > ws ? xs : ws;
    s->x_batch = xs == 1 ? 0 : s->m * s->k;
    s->w_batch = ws == 1 ? 0 : s->k * s->n;
    return xs == ws || xs == 1 || ws == 1;
}

static void add_matrices(const struct quant_operands *o, const struct matrices *s,
                         struct quant_terms *t)
{
    const uint64_t outputs = s->batches * s->m * s->n, step = sample_step(outputs, s->k);
    if (outputs != o->y->count)
        return;
    for (uint64_t at = 0; at < outputs; at += step) {
        const uint64_t b = at / (s->m * s->n), m = at / s->n % s->m, n = at % s->n;
        struct sums sums = {0};
        for (uint64_t k = 0; k < s->k; k++)
            add_product(o, b * s->x_batch + m * s->k + k,
                        b * s->w_batch + k * s->w_row + n * s->w_column, &sums);
        add_output(o, t, at, n, &sums);
    }
}

/* ---- convolutions ------------------------------------------------------------------------ */

enum { SPACE = 3 };
/* Sizes with leading axes of length 1. */
struct conv {
    uint64_t in[SPACE], kernel[SPACE], out[SPACE];
    int64_t stride[SPACE], padding[SPACE], dilation[SPACE];
    uint64_t batch, in_channels, out_channels, per_group;
};

static bool fit_axis(const struct quant_operands *o, struct conv *c, uint32_t axis, uint32_t lead)
{
    const uint32_t to = axis + lead;
    c->in[to] = o->x->shape[2 + axis];
    c->kernel[to] = o->w->shape[2 + axis];
    c->out[to] = o->y->shape[2 + axis];
    c->stride[to] = o->stride[axis];
    c->padding[to] = o->padding[axis];
    c->dilation[to] = o->dilation[axis];
    const int64_t reach = c->dilation[to] * ((int64_t)c->kernel[to] - 1) + 1;
    const int64_t room = (int64_t)c->in[to] + 2 * c->padding[to] - reach;
    return c->stride[to] > 0 && room >= 0 && (uint64_t)(room / c->stride[to]) + 1 == c->out[to];
}

static bool fit_conv(const struct quant_operands *o, struct conv *c)
{
    const uint32_t dims = o->x->ndim;
    if (dims < 3 || dims > 5 || o->w->ndim != dims || o->y->ndim != dims || o->groups < 1)
        return false;
    for (uint32_t i = 0; i < SPACE; i++) {
        c->in[i] = c->kernel[i] = c->out[i] = 1;
        c->stride[i] = c->dilation[i] = 1;
        c->padding[i] = 0;
    }
    c->batch = o->x->shape[0];
    c->in_channels = o->x->shape[1];
    c->out_channels = o->w->shape[0];
    c->per_group = o->w->shape[1];
    for (uint32_t i = 0; i < dims - 2; i++) {
        if (!fit_axis(o, c, i, SPACE - (dims - 2)))
            return false;
    }
    return c->per_group * (uint64_t)o->groups == c->in_channels && o->y->shape[0] == c->batch &&
           o->y->shape[1] == c->out_channels && c->out_channels % (uint64_t)o->groups == 0;
}

/* Place in the input of an element of the kernel; false: it lies in the padding. */
static bool place_of(const struct conv *c, const uint64_t *out, const uint64_t *kernel,
                     uint64_t *at)
{
    *at = 0;
    for (unsigned i = 0; i < SPACE; i++) {
        const int64_t p =
            (int64_t)out[i] * c->stride[i] - c->padding[i] + (int64_t)kernel[i] * c->dilation[i];
        if (p < 0 || p >= (int64_t)c->in[i])
            return false;
        *at = *at * c->in[i] + (uint64_t)p;
    }
    return true;
}

static void add_kernel(const struct quant_operands *o, const struct conv *c, uint64_t batch,
                       uint64_t channel, const uint64_t *out, struct sums *s)
{
    const uint64_t volume = c->kernel[0] * c->kernel[1] * c->kernel[2];
    const uint64_t space = c->in[0] * c->in[1] * c->in[2];
    const uint64_t group = channel / (c->out_channels / (uint64_t)o->groups);
    for (uint64_t k = 0; k < volume; k++) {
        const uint64_t kernel[SPACE] = {k / c->kernel[2] / c->kernel[1],
                                        k / c->kernel[2] % c->kernel[1], k % c->kernel[2]};
        uint64_t at;
        if (!place_of(c, out, kernel, &at))
            continue;
        for (uint64_t i = 0; i < c->per_group; i++)
            add_product(o, (batch * c->in_channels + group * c->per_group + i) * space + at,
                        (channel * c->per_group + i) * volume + k, s);
    }
}

static void add_conv(const struct quant_operands *o, const struct conv *c, struct quant_terms *t)
{
    const uint64_t space = c->out[0] * c->out[1] * c->out[2];
    const uint64_t products = c->per_group * c->kernel[0] * c->kernel[1] * c->kernel[2];
    const uint64_t step = sample_step(o->y->count, products);
    for (uint64_t at = 0; at < o->y->count; at += step) {
        const uint64_t p = at % space, channel = at / space % c->out_channels;
        const uint64_t out[SPACE] = {p / c->out[2] / c->out[1], p / c->out[2] % c->out[1],
                                     p % c->out[2]};
        struct sums s = {0};
        add_kernel(o, c, at / space / c->out_channels, channel, out, &s);
        add_output(o, t, at, channel, &s);
    }
}

void quant_set_arguments(const struct quant_run *r, const struct quant_layer *l,
                         struct quant_operands *o)
{
    static const char *const names[] = {"stride", "padding", "dilation"};
    int64_t *const into[] = {o->stride, o->padding, o->dilation};
    for (unsigned i = 0; i < 3; i++) {
        const unsigned n = quant_argument(r, l, 3 + i, names[i], into[i], 3);
        for (unsigned k = n; k < 3; k++)
            into[i][k] = n != 0 ? into[i][n - 1] : i == 1 ? 0 : 1;
    }
    if (quant_argument(r, l, 6, "groups", &o->groups, 1) == 0)
        o->groups = 1;
}

/* ---- all ---------------------------------------------------------------------------------- */

static bool same(const struct quant_values *a, const struct quant_values *b)
{
    return a->v != NULL && b->v != NULL && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

void quant_terms_find(struct quant_terms *t, const struct quant_operands *o)
{
    struct matrices s = {0};
    struct conv c;
    *t = (struct quant_terms){0};
    if (!same(o->x, o->qx) || !same(o->w, o->qw) || !same(o->y, o->qy) ||
        (o->qx_before->v != NULL && !same(o->x, o->qx_before)))
        return;
    const uint64_t channels = o->kind == QUANT_MATMUL ? 0 : o->w->shape[0];
    if ((o->bias->v != NULL && o->bias->count != channels) ||
        (o->qbias->v != NULL && o->qbias->count != channels))
        return;
    if (o->kind == QUANT_CONV) {
        if (fit_conv(o, &c))
            add_conv(o, &c, t);
    } else if (o->kind == QUANT_LINEAR ? fit_linear(o, &s) : fit_matmul(o, &s)) {
        add_matrices(o, &s, t);
    }
}
