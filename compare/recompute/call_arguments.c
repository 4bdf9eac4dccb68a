/* SPDX-License-Identifier: MIT
 *
 * call_arguments: how operators read their arguments and give their results.
 */
#include "compare/recompute/operator_call_int.h"

#include <stdarg.h>
#include <stdio.h>

void rec_unsupported(struct rec_call *c, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tape_fail(c->tape, MS_E_UNSUPPORTED, "%s", text);
}

void rec_assume(struct rec_call *c, const char *what)
{
    c->assumed = what;
}

void rec_give(struct rec_call *c, tape_id node)
{
    if (c->nout < REC_OUTPUTS)
        c->out[c->nout++] = node;
    else
        rec_unsupported(c, "more than %d results", REC_OUTPUTS);
}

/* ---- arguments ------------------------------------------------------------------ */

const struct rec_value *rec_find(const struct rec_call *c, int at, const char *name)
{
    for (size_t i = 0; i < c->nnamed; i++)
        if (ms_str_is(c->named[i].name, name))
            return c->named[i].kind != REC_NONE ? &c->named[i] : NULL;
    if (at < 0 || (size_t)at >= c->nargs || c->args[at].kind == REC_NONE)
        return NULL;
    return &c->args[at];
}

static tape_id node_of(const struct rec_call *c, const struct rec_value *v)
{
    if (v == NULL)
        return TAPE_NONE;
    if (v->kind == REC_TENSOR)
        return v->node;
    if (v->kind == REC_NUMBER || v->kind == REC_BOOL)
        return tape_constant(c->tape, v->number);
    return TAPE_NONE;
}

tape_id rec_tensor(const struct rec_call *c, int at, const char *name)
{
    return node_of(c, rec_find(c, at, name));
}

tape_id rec_want(const struct rec_call *c, int at, const char *name)
{
    const tape_id id = rec_tensor(c, at, name);
    if (id == TAPE_NONE)
        tape_fail(c->tape, MS_E_UNSUPPORTED, "the argument %s is not in the dump", name);
    return id;
}

double rec_number(const struct rec_call *c, int at, const char *name, double otherwise)
{
    const struct rec_value *v = rec_find(c, at, name);
    if (v == NULL)
        return otherwise;
    if (v->kind == REC_TENSOR && v->node != TAPE_NONE && tape_at(c->tape, v->node)->n == 1)
        return tape_at(c->tape, v->node)->v[0];
    if (v->kind == REC_LIST && v->n == 1 && v->items[0].kind == REC_NUMBER)
        return v->items[0].number;
    if (v->kind != REC_NUMBER && v->kind != REC_BOOL) {
        tape_fail(c->tape, MS_E_UNSUPPORTED, "the argument %s is no number", name);
        return otherwise;
    }
    return v->number;
}

bool rec_flag(const struct rec_call *c, int at, const char *name, bool otherwise)
{
    return rec_number(c, at, name, otherwise ? 1 : 0) != 0;
}

struct ms_str rec_text(const struct rec_call *c, int at, const char *name, const char *otherwise)
{
    const struct rec_value *v = rec_find(c, at, name);
    return v != NULL && v->kind == REC_TEXT ? v->text : ms_str_of(otherwise);
}

/* A number as a whole one, clamped to a little more than 32 bits so that sums of such numbers fit. */
static int64_t clamp_whole(double v)
{
    const double most = 4e9;
    return (int64_t)fmin(fmax(isnan(v) ? 0 : v, -most), most);
}

static int64_t whole_of(const struct rec_value *v)
{
    return clamp_whole(v->number);
}

int64_t rec_whole(const struct rec_call *c, int at, const char *name, int64_t otherwise)
{
    return clamp_whole(rec_number(c, at, name, (double)otherwise));
}

unsigned rec_list(const struct rec_call *c, int at, const char *name, int64_t *out, unsigned most)
{
    const struct rec_value *v = rec_find(c, at, name), *from = v;
    size_t n = v != NULL ? 1 : 0;
    if (v != NULL && v->kind == REC_LIST) {
        from = v->items;
        n = v->n;
    } else if (v != NULL && v >= c->args && v < c->args + c->nargs) {
        n = c->nargs - (size_t)(v - c->args); /* Tensor.permute(0, 2, 1) */
    }
    unsigned k = 0;
    for (size_t i = 0; i < n && k < most; i++)
        if (from[i].kind == REC_NUMBER || from[i].kind == REC_BOOL)
            out[k++] = whole_of(&from[i]);
        else if (from[i].kind == REC_TENSOR && tape_at(c->tape, from[i].node)->n == 1)
            out[k++] = clamp_whole(tape_at(c->tape, from[i].node)->v[0]);
    return k;
}

void rec_numbers(const struct rec_call *c, int at, const char *name, int64_t *out, unsigned n,
                 int64_t otherwise)
{
    const struct rec_value *v = rec_find(c, at, name);
    const size_t have = v == NULL ? 0 : v->kind == REC_LIST ? v->n : 1;
    for (unsigned i = 0; i < n; i++) {
        const struct rec_value *one = v != NULL && v->kind == REC_LIST
                                          ? (have != 0 ? &v->items[have == 1 ? 0 : i % have] : NULL)
                                          : v;
        out[i] = one != NULL && (one->kind == REC_NUMBER || one->kind == REC_BOOL) ? whole_of(one)
                                                                                   : otherwise;
    }
    if (have > 1 && have != n)
        tape_fail(c->tape, MS_E_UNSUPPORTED, "the argument %s has %zu numbers instead of %u", name,
                  have, n);
}

size_t rec_tensors(const struct rec_call *c, int at, const char *name, tape_id *out, size_t most)
{
    const struct rec_value *v = rec_find(c, at, name);
    size_t n = 0;
    if (v != NULL && v->kind == REC_TENSOR && most > 0)
        out[n++] = v->node;
    for (size_t i = 0; v != NULL && v->kind == REC_LIST && i < v->n && n < most; i++)
        if (v->items[i].kind == REC_TENSOR)
            out[n++] = v->items[i].node;
    return n;
}

static unsigned wrap_axis(const struct rec_call *c, int64_t axis, unsigned ndim)
{
    const int64_t at = axis < 0 ? axis + (int64_t)ndim : axis;
    if (at >= 0 && at < (int64_t)ndim)
        return (unsigned)at;
    if (ndim != 0 || (axis != 0 && axis != -1))
        tape_fail(c->tape, MS_E_UNSUPPORTED, "axis %lld of %u", (long long)axis, ndim);
    return 0;
}

unsigned rec_axis(const struct rec_call *c, int at, const char *name, int64_t otherwise,
                  unsigned ndim)
{
    return wrap_axis(c, rec_whole(c, at, name, otherwise), ndim);
}

unsigned rec_axes(const struct rec_call *c, int at, const char *name, unsigned ndim)
{
    int64_t list[TAPE_DIMS];
    const struct rec_value *v = rec_find(c, at, name);
    unsigned n = 0, axes = 0;
    if (v != NULL && v->kind == REC_LIST)
        n = rec_list(c, at, name, list, TAPE_DIMS);
    else if (v != NULL && v->kind == REC_NUMBER) {
        list[0] = whole_of(v);
        n = 1;
    }
    for (unsigned i = 0; i < n; i++)
        axes |= 1U << wrap_axis(c, list[i], ndim);
    return n != 0 ? axes : (1U << ndim) - 1;
}

tape_id rec_detach(struct tape *t, tape_id x)
{
    if (x == TAPE_NONE)
        return x;
    const struct tape_shape shape = tape_at(t, x)->shape;
    const tape_id id = tape_reshape(t, x, &shape);
    if (id != TAPE_NONE) {
        tape_at(t, id)->kind = TAPE_LEAF;
        tape_at(t, id)->in[0] = TAPE_NONE;
    }
    return id;
}
