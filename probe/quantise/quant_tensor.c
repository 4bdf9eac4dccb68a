/* SPDX-License-Identifier: MIT
 *
 * quant_tensor: see the header.
 */
#include "probe/quantise/quant_tensor.h"

#include "probe/base/assert.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* ---- formats ------------------------------------------------------------------------ */

#define MX(number)                                                                                 \
    {                                                                                              \
        number, QUANT_SCALE_POWER, QUANT_BY_GROUP, QUANT_FLOOR, -1, 32, false                      \
    }

const struct quant_format quant_formats[QUANT_FORMATS] = {
    {"mxfp8", "OCP MX: e4m3, blocks of 32, scales of powers of two", MX(QUANT_E4M3), true},
    {"mxfp8_e5m2", "OCP MX: e5m2", MX(QUANT_E5M2), true},
    {"mxfp6", "OCP MX: e2m3", MX(QUANT_E2M3), true},
    {"mxfp6_e3m2", "OCP MX: e3m2", MX(QUANT_E3M2), true},
    {"mxfp4", "OCP MX: e2m1", MX(QUANT_E2M1), true},
    {"nvfp4",
     "e2m1, blocks of 16, scales of e4m3, a scale for the tensor",
     {QUANT_E2M1, QUANT_SCALE_E4M3, QUANT_BY_GROUP, QUANT_FLOOR, -1, 16, false},
     true},
    {"fp8",
     "e4m3, a scale for the tensor",
     {QUANT_E4M3, QUANT_SCALE_FLOAT, QUANT_BY_TENSOR, QUANT_FLOOR, -1, 0, false},
     false},
    {"fp8_e5m2",
     "e5m2, a scale for the tensor",
     {QUANT_E5M2, QUANT_SCALE_FLOAT, QUANT_BY_TENSOR, QUANT_FLOOR, -1, 0, false},
     false},
    {"fp8_e4m3fnuz",
     "e4m3fnuz, a scale for the tensor",
     {QUANT_E4M3Z, QUANT_SCALE_FLOAT, QUANT_BY_TENSOR, QUANT_FLOOR, -1, 0, false},
     false},
    {"fp8_e5m2fnuz",
     "e5m2fnuz, a scale for the tensor",
     {QUANT_E5M2Z, QUANT_SCALE_FLOAT, QUANT_BY_TENSOR, QUANT_FLOOR, -1, 0, false},
     false},
    {"int8",
     "8 bits, symmetric; weights by channel, others by tensor",
     {QUANT_INT8, QUANT_SCALE_FLOAT, QUANT_BY_TENSOR, QUANT_FLOOR, -1, 0, false},
     false},
    {"uint8",
     "8 bits with a zero point; weights by channel, others by tensor",
     {QUANT_INT8, QUANT_SCALE_FLOAT, QUANT_BY_TENSOR, QUANT_FLOOR, -1, 0, true},
     false},
    {"int4",
     "4 bits, symmetric, groups of 128",
     {QUANT_INT4, QUANT_SCALE_FLOAT, QUANT_BY_GROUP, QUANT_FLOOR, -1, 128, false},
     true},
    {"uint4",
     "4 bits with a zero point, groups of 128",
     {QUANT_INT4, QUANT_SCALE_FLOAT, QUANT_BY_GROUP, QUANT_FLOOR, -1, 128, true},
     true},
};

const struct quant_format *quant_format_find(const char *name)
{
    for (unsigned i = 0; i < QUANT_FORMATS; i++) {
        if (strcmp(quant_formats[i].name, name) == 0)
            return &quant_formats[i];
    }
    return NULL;
}

void quant_scheme_text(const struct quant_scheme *s, char *out, size_t n)
{
    static const char *const scales[] = {"", ", scales of powers of two",
                                         ", scales of e4m3 below one of the tensor"};
    char where[96];
    if (s->by == QUANT_BY_TENSOR)
        snprintf(where, sizeof where, "one scale");
    else if (s->by == QUANT_BY_CHANNEL)
        snprintf(where, sizeof where, "a scale for each index of axis %d", s->axis);
    else if (s->group == 0)
        snprintf(where, sizeof where, "a scale for each row along axis %d", s->axis);
    else
        snprintf(where, sizeof where, "blocks of %llu along axis %d", (unsigned long long)s->group,
                 s->axis);
    snprintf(out, n, "%s, %s%s%s", quant_facts(s->number)->name, where, scales[s->scale],
             s->zero_point ? ", with a zero point" : "");
}

/* ---- groups --------------------------------------------------------------------------- */

enum ms_rc quant_shape_of(struct quant_shape *out, const uint64_t *shape, uint32_t ndim, int axis,
                          struct ms_err *err)
{
    const int at = axis < 0 ? axis + (int)ndim : axis;
    *out = (struct quant_shape){1, 1, 1};
    if (ndim == 0 && (axis == 0 || axis == -1))
        return MS_OK;
    if (at < 0 || at >= (int)ndim)
        return ms_fail(err, MS_E_ARG, "no axis %d in a tensor of %u dimensions", axis, ndim);
    for (int d = 0; d < (int)ndim; d++)
        *(d < at ? &out->outer : d > at ? &out->inner : &out->length) *= shape[d];
    return MS_OK;
}

/* Elements that share a scale: `many` runs of n elements. */
struct group {
    uint64_t at, n, step, many, far;
};

/* Calls the body with the place i of every element. */
#define EACH(g, i)                                                                                 \
    for (uint64_t far_ = 0; far_ < (g)->many; far_++)                                              \
        for (uint64_t i = (g)->at + far_ * (g)->far, end_ = i + (g)->n * (g)->step; i < end_;      \
             i += (g)->step)

struct work {
    const struct quant_scheme *s;
    const float *x;
    float *out;
    struct quant_loss *loss;
    float tensor_scale; /* of QUANT_SCALE_E4M3 */
};

struct range {
    float low, high, largest; /* low is at most 0, high at least 0 */
};

/* A NaN makes `largest` NaN. */
static struct range range_of(const struct work *w, const struct group *g)
{
    struct range r = {0, 0, 0};
    EACH(g, i)
    {
        const float v = w->x[i], a = fabsf(v);
        r.low = v < r.low ? v : r.low;
        r.high = v > r.high ? v : r.high;
        r.largest = a > r.largest || isnan(a) ? a : r.largest;
    }
    return r;
}

/* A scale and what a value is multiplied with or divided by before it is rounded. */
struct scale {
    float scale, inverse;
    int zero;
    bool divides;
};

static struct scale integer_scale(const struct quant_scheme *s, const struct range *r)
{
    const struct quant_facts *f = quant_facts(s->number);
    const float steps = (float)(f->to - f->from);
    float scale = s->zero_point ? (r->high - r->low) / steps : r->largest / (steps / 2);
    scale = scale < FLT_MIN ? FLT_MIN : scale;
    int zero = 0;
    if (s->zero_point && isfinite(scale))
        zero = f->from - (int)nearbyintf(r->low / scale);
    zero = zero < f->from ? f->from : zero > f->to ? f->to : zero;
    return (struct scale){scale, 1.0f / scale, zero, false};
}

/* Smallest normal value of e4m3, below which torchao takes no scale. */
static const float least_block_scale = 0x1p-6f;

static struct scale nested_scale(const struct work *w, const struct range *r)
{
    const struct quant_facts *f = quant_facts(w->s->number);
    float block = r->largest / (float)f->most / w->tensor_scale;
    block = block < least_block_scale ? least_block_scale : block;
    block = (float)quant_round(QUANT_E4M3, (double)block, QUANT_SATURATES);
    return (struct scale){w->tensor_scale * block, 1.0f / w->tensor_scale / block, 0, false};
}

static struct scale scale_of(const struct work *w, const struct range *r)
{
    const struct quant_scheme *s = w->s;
    if (quant_facts(s->number)->is_integer)
        return integer_scale(s, r);
    if (s->scale == QUANT_SCALE_E4M3)
        return nested_scale(w, r);
    float scale = s->scale == QUANT_SCALE_POWER
                      ? quant_power_value(quant_power_code(s->number, r->largest, s->power))
                      : r->largest / (float)quant_facts(s->number)->most;
    scale = scale < FLT_MIN ? FLT_MIN : scale;
    return (struct scale){scale, 0, 0, true};
}

/* ---- elements ------------------------------------------------------------------------- */

/* Rounds a scaled value, and notes whether the range of the type changed it. */
static double round_scaled(const struct work *w, float scaled, int zero)
{
    const struct quant_facts *f = quant_facts(w->s->number);
    double v = (double)scaled, wide, r;
    if (f->is_integer) {
        wide = quant_round_unbounded(w->s->number, v) + zero;
        r = wide < f->from ? f->from : wide > f->to ? f->to : wide;
        r -= zero;
        wide -= zero;
        w->loss->overflow += v < f->from - zero || v > f->to - zero;
    } else {
        wide = quant_round_unbounded(w->s->number, v);
        r = quant_round(w->s->number, v, QUANT_SATURATES);
        w->loss->overflow += fabs(v) > f->most;
    }
    w->loss->clipped += fabs(wide) > fabs(r);
    return r;
}

static void add_error(struct quant_loss *l, float before, float after)
{
    const double v = (double)before, e = v - (double)after;
    l->signal += v * v;
    l->noise += e * e;
    l->most = fabs(e) > l->most ? fabs(e) : l->most;
    l->nonzero += before != 0;
    l->underflow += before != 0 && after == 0;
}

static void quantise_group(const struct work *w, const struct group *g)
{
    const struct range r = range_of(w, g);
    const struct scale sc = scale_of(w, &r);
    struct quant_loss *l = w->loss;
    double used = 0;
    EACH(g, i)
    {
        const float v = w->x[i];
        const bool finite = isfinite(v) && isfinite(sc.scale);
        float after = NAN;
        if (finite) {
            const double q = round_scaled(w, sc.divides ? v / sc.scale : v * sc.inverse, sc.zero);
            const double code = fabs(q + sc.zero);
            used = code > used ? code : used;
            after = (float)q * sc.scale;
            add_error(l, v, after);
        }
        l->special += !finite;
        if (w->out != NULL)
            w->out[i] = after;
    }
    l->count += g->n * g->many;
    if (r.largest == 0 || !isfinite(sc.scale))
        return;
    l->scale_min = l->groups == 0 ? (double)sc.scale : fmin(l->scale_min, (double)sc.scale);
    l->scale_max = l->groups == 0 ? (double)sc.scale : fmax(l->scale_max, (double)sc.scale);
    l->groups++;
    l->unused +=
        (double)quant_magnitudes_above(w->s->number, used) / quant_facts(w->s->number)->magnitudes;
}

static float tensor_scale(const struct work *w, const struct group *all)
{
    const struct range r = range_of(w, all);
    const double most = quant_facts(QUANT_E4M3)->most * quant_facts(w->s->number)->most;
    const float scale = r.largest / (float)most;
    return scale > 0 ? scale : 1;
}

static void quantise_along(const struct work *w, const struct quant_shape *s)
{
    const uint64_t size = w->s->group != 0 && w->s->group < s->length ? w->s->group : s->length;
    for (uint64_t o = 0; o < s->outer; o++) {
        for (uint64_t k = 0; k < s->length; k += size) {
            const uint64_t n = s->length - k < size ? s->length - k : size;
            for (uint64_t i = 0; i < s->inner; i++) {
                const uint64_t at = (o * s->length + k) * s->inner + i;
                quantise_group(w, &(struct group){at, n, s->inner, 1, 0});
            }
        }
    }
}

void quant_tensor(const struct quant_scheme *s, const struct quant_shape *shape, const float *x,
                  float *out, struct quant_loss *loss)
{
    const uint64_t count = shape->outer * shape->length * shape->inner;
    const struct group all = {0, count, 1, 1, 0};
    struct work w = {s, x, out, loss, 0};
    if (count == 0)
        return;
    if (s->scale == QUANT_SCALE_E4M3)
        w.tensor_scale = tensor_scale(&w, &all);
    if (s->by == QUANT_BY_TENSOR) {
        quantise_group(&w, &all);
    } else if (s->by == QUANT_BY_CHANNEL) {
        for (uint64_t c = 0; c < shape->length; c++)
            quantise_group(&w, &(struct group){c * shape->inner, shape->inner, 1, shape->outer,
                                               shape->length * shape->inner});
    } else {
        quantise_along(&w, shape);
    }
}

double quant_sqnr(double signal, double noise)
{
    if (noise == 0)
        return signal == 0 ? (double)NAN : (double)INFINITY;
    return 10 * log10(signal / noise);
}
