/* SPDX-License-Identifier: MIT
 *
 * measure_old: 1.x divides what stands against a zero by the epsilon of double precision
 * whatever the type, msprobe 26 by that of float32 where it computes in float32.
 *
 * The pass over both tensors counts as msprobe 26 does; here elements with a golden zero
 * are looked at once more, so that the pass itself knows nothing of it.
 */
#include "compare/measure_old.h"

#include <math.h>

enum { BLOCK = 512 };

static float relative(float n, float step)
{
    return fabsf(((n + step) - step) / step);
}

static void look_at(struct cmp__zeros *z, float n)
{
    float old = relative(n, 0x1p-52F), cur = relative(n, 0x1p-23F);
    z->max_rel = old > z->max_rel ? old : z->max_rel;
    z->thousandth += cur < 0.001F && old >= 0.001F;
    z->five += cur < 0.005F && old >= 0.005F;
}

void cmp__zeros_add(struct cmp__zeros *z, enum ms_dtype tn, const void *n, enum ms_dtype tb,
                    const void *b, size_t m)
{
    double x[BLOCK], y[BLOCK];
    if (!cmp_facts_single(tn, tb)) /* they have that epsilon anyway */
        return;
    for (size_t at = 0; at < m; at += BLOCK) {
        size_t k = m - at < BLOCK ? m - at : BLOCK;
        ms_dtype_to_f64(tn, (const char *)n + at * ms_dtype_size(tn), k, x);
        ms_dtype_to_f64(tb, (const char *)b + at * ms_dtype_size(tb), k, y);
        for (size_t i = 0; i < k; i++) {
            if (y[i] == 0 && isfinite(x[i]))
                look_at(z, (float)x[i]);
        }
    }
}

void cmp__zeros_join(struct cmp__zeros *z, const struct cmp__zeros *next)
{
    z->max_rel = next->max_rel > z->max_rel ? next->max_rel : z->max_rel;
    z->thousandth += next->thousandth;
    z->five += next->five;
}

void cmp__zeros_apply(const struct cmp__zeros *z, struct cmp_facts *f)
{
    f->max_rel = (double)z->max_rel > f->max_rel ? (double)z->max_rel : f->max_rel;
    f->thousandth -= z->thousandth;
    f->five -= z->five;
}
