/* SPDX-License-Identifier: MIT
 *
 * value_shelf: looks values of one side up among those of the other.
 */
#include "compare/observe/value_shelf.h"
#include "compare/observe/leaf_distance.h"
#include "compare/observe/node_facts.h"
#include "probe/base/mem.h"

#include <math.h>
#include <stdlib.h>

bool observe__is_searched(const struct read__value *v)
{
    return (v->kind == READ__FLOAT || (v->kind == READ__WHOLE && v->n > 1)) && read__is_finite(v) &&
           (v->known >> PROBE_STAT_NORM & 1);
}

/* Tells whether a value is of whole numbers that nothing is known of. */
static bool is_hidden(const struct read__value *v)
{
    return v->kind == READ__WHOLE && v->n > 1 && (v->known >> PROBE_STAT_NORM & 1) == 0;
}

/* The recorded norm of a single number has its sign. */
static double norm_of(const struct read__value *v)
{
    return fabs(v->stat[PROBE_STAT_NORM]);
}

static int by_size(const void *a, const void *b)
{
    const struct read__value *x = *(const struct read__value *const *)a;
    const struct read__value *y = *(const struct read__value *const *)b;
    double p = norm_of(x), q = norm_of(y);
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (p > q) - (p < q);
}

enum ms_rc observe__shelf_fill(struct observe__shelf *f, const struct observe__side *s,
                               bool (*is_meant)(const struct probe_dump *d, uint32_t row),
                               struct ms_arena *arena, struct ms_err *err)
{
    f->list = ms_arena_alloc(arena, (s->dump->rows.n + 1) * sizeof *f->list);
    if (f->list == NULL)
        return ms_arena_fail(arena, err);
    for (uint32_t i = 0; i < s->dump->rows.n; i++) {
        bool is_wanted = is_meant(s->dump, i);
        if (is_wanted && observe__is_searched(&s->value[i]))
            f->list[f->n++] = &s->value[i];
        f->hides_whole |= is_wanted && is_hidden(&s->value[i]);
    }
    if (f->n > 1)
        qsort(f->list, f->n, sizeof *f->list, by_size);
    return MS_OK;
}

/* Returns the first place whose value has n elements and at least this norm. */
static size_t lower_bound(const struct observe__shelf *f, uint64_t n, double norm)
{
    size_t from = 0, to = f->n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        const struct read__value *v = f->list[mid];
        bool before = v->n < n || (v->n == n && norm_of(v) < norm);
        from = before ? mid + 1 : from;
        to = before ? to : mid;
    }
    return from;
}

bool observe__shelf_has(const struct observe__shelf *f, const struct read__value *v)
{
    if (!observe__is_searched(v) || (v->kind == READ__WHOLE && f->hides_whole))
        return true;
    double slack = f->slack + observe__unit(v->dtype), norm = norm_of(v);
    size_t i = lower_bound(f, v->n, norm * (1 - 2 * slack));
    for (; i < f->n && f->list[i]->n == v->n; i++) {
        if (norm_of(f->list[i]) > norm * (1 + 2 * slack))
            break;
        if (observe__identity_gap(f->list[i], v) <= slack)
            return true;
    }
    return false;
}

/* Lowers *least to the gap of the i-th value of the shelf; false: from here on, in this direction, all are
 * farther away by their norms alone, or have another size. */
static bool lower_gap(const struct observe__shelf *f, size_t i, const struct read__value *v,
                      double *least)
{
    if (i >= f->n || f->list[i]->n != v->n)
        return false;
    double a = norm_of(f->list[i]), b = norm_of(v);
    if (fabs(a - b) > *least * fmax(a, b))
        return false;
    *least = fmin(*least, observe__identity_gap(f->list[i], v));
    return true;
}

double observe__shelf_gap(const struct observe__shelf *f, const struct read__value *v)
{
    enum {
        NEAREST = 64
    }; /* looked at on each side: layers of one model have many values of about one norm */
    double least = 1;
    size_t at = lower_bound(f, v->n, norm_of(v));
    for (size_t k = 0; k < NEAREST && lower_gap(f, at + k, v, &least);)
        k++;
    for (size_t k = 1; k <= NEAREST && k <= at && lower_gap(f, at - k, v, &least);)
        k++;
    return least;
}
