/* SPDX-License-Identifier: MIT
 *
 * fold_fit: see the header.
 */
#include "mstx/rundb/fold_fit.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"
#include "probe/base/order.h"

#include <math.h>

enum { FITTED_MAX = 256 };
/* A new model is tried where the best stored one takes so many more bits for a number than for those it
 * was made of. */
static const double WORSE = 1.02, WORSE_BITS = 0.05;
/* It is kept when it takes, with its own size, at most this part of the bits. */
static const double BETTER = 0.97;

static void free_fitted(struct mstx_fitted *x)
{
    if (x == NULL)
        return;
    mstx__model_free(&x->model);
    ms_free(x->bits);
    ms_free(x);
}

void mstx__fits_free(struct mstx_fits *f)
{
    for (size_t i = 0; i < f->list.n; i++)
        free_fitted(f->list.p[i]);
    ms_vec_free(&f->list);
}

/* ---- what a model costs -------------------------------------------------------------- */

static int64_t difference_of(const struct mstx_model *m, const struct mstx_numbers *v, uint32_t i)
{
    const struct mstx_class *c = &m->class[v->class[i] < m->classes ? v->class[i] : m->classes - 1];
    const int64_t off = c->by_leader && v->off_leader != NULL ? v->off_leader[i] : v->off[i];
    return (int64_t)((uint64_t)off - (uint64_t)c->centre);
}

static uint8_t context_of(const struct mstx_model *m, const struct mstx_numbers *v, uint32_t i)
{
    return m->class[v->class[i] < m->classes ? v->class[i] : m->classes - 1].context;
}

static double count_bits(const struct mstx_fitted *x, const struct mstx_numbers *v)
{
    double sum = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        const struct mstx_coded c = mstx_coded_of(difference_of(&x->model, v, i));
        sum += (double)x->bits[context_of(&x->model, v, i)][c.symbol] + c.bits;
    }
    return sum;
}

static void set_bits(struct mstx_fitted *x)
{
    for (uint32_t k = 0; k < x->model.contexts; k++) {
        const struct mstx_context *c = &x->model.context[k];
        const int rare = c->from[MSTX_SYMBOL_RARE + 1] - c->from[MSTX_SYMBOL_RARE];
        for (unsigned s = 0; s < MSTX_SYMBOLS; s++) {
            const int f = c->from[s + 1] - c->from[s];
            x->bits[k][s] = f != 0 ? MSTX_RANS_BITS - log2f((float)f)
                                   : MSTX_RANS_BITS - log2f((float)rare) + 64;
        }
    }
}

/* ---- making a model -------------------------------------------------------------------- */

static unsigned size_of(int64_t difference)
{
    const uint64_t u = mstx_zigzag((uint64_t)difference);
    return u != 0 ? 64 - (unsigned)__builtin_clzll(u) : 0;
}

/* Sorts n numbers and returns the middle one; *bits is the sum of the sizes of their distances from it. */
static int64_t middle_of(int64_t *v, uint32_t n, uint64_t *bits)
{
    ms_assert(n >= 1);
    ms_sort(v, n, sizeof *v, ms_order_i64);
    const int64_t middle = v[n / 2];
    *bits = 0;
    for (uint32_t i = 0; i < n; i++)
        *bits += size_of((int64_t)((uint64_t)v[i] - (uint64_t)middle));
    return middle;
}

struct making {
    const struct mstx_numbers *v;
    uint32_t *order; /* numbers by class */
    uint32_t *from;  /* of a class: its first place in order */
    int64_t *a, *b;  /* of one class */
};

static bool sort_by_class(struct making *k)
{
    const struct mstx_numbers *v = k->v;
    k->order = ms_calloc((size_t)v->n + 1, sizeof *k->order);
    k->from = ms_calloc((size_t)v->classes + 2, sizeof *k->from);
    k->a = ms_calloc((size_t)v->n + 1, sizeof *k->a);
    k->b = ms_calloc((size_t)v->n + 1, sizeof *k->b);
    if (k->order == NULL || k->from == NULL || k->a == NULL || k->b == NULL)
        return false;
    for (uint32_t i = 0; i < v->n; i++)
        k->from[v->class[i] + 2]++;
    for (uint32_t c = 2; c < v->classes + 2; c++)
        k->from[c] += k->from[c - 1];
    for (uint32_t i = 0; i < v->n; i++)
        k->order[k->from[v->class[i] + 1]++] = i;
    return true;
}

static void free_making(struct making *k)
{
    ms_free(k->order);
    ms_free(k->from);
    ms_free(k->a);
    ms_free(k->b);
}

/* Sets the centre of a class; returns the mean size of the differences, in bits. */
static unsigned fit_class(struct making *k, uint32_t class, struct mstx_class *c)
{
    const uint32_t first = k->from[class], n = k->from[class + 1] - first;
    uint64_t bits, bits_leader = UINT64_MAX;
    *c = (struct mstx_class){0};
    if (n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        k->a[i] = k->v->off[k->order[first + i]];
        k->b[i] = k->v->off_leader != NULL ? k->v->off_leader[k->order[first + i]] : 0;
    }
    c->centre = middle_of(k->a, n, &bits);
    const int64_t by_leader = k->v->off_leader != NULL ? middle_of(k->b, n, &bits_leader) : 0;
    if (bits_leader < bits) {
        *c = (struct mstx_class){.centre = by_leader, .by_leader = true};
        bits = bits_leader;
    }
    return (unsigned)(bits / n);
}

/* Numbers the contexts of classes by the sizes of their differences. */
static void fit_classes(struct making *k, struct mstx_model *m)
{
    uint8_t context[2 * 64 + 1] = {0}; /* 1 + number, by size */
    for (uint32_t c = 0; c < m->classes; c++) {
        const unsigned step = fit_class(k, c, &m->class[c]);
        if (context[step] == 0 && m->contexts < MSTX_CONTEXTS)
            context[step] = (uint8_t)++m->contexts;
        for (unsigned near = 1; context[step] == 0; near++) { /* all are in use */
            if (step >= near && context[step - near] != 0)
                context[step] = context[step - near];
            else if (context[step + near] != 0)
                context[step] = context[step + near];
        }
        m->class[c].context = (uint8_t)(context[step] - 1);
    }
}

/* Turns counts of symbols into frequencies.  Symbols near those that were seen are possible too. */
static void set_frequencies(struct mstx_context *c, const uint32_t *count)
{
    uint32_t f[MSTX_SYMBOLS] = {0}, sum = 0, all = 0, most = 0, last = 0;
    for (unsigned s = 0; s < MSTX_SYMBOLS; s++) {
        all += count[s];
        last = count[s] != 0 ? s : last;
    }
    for (unsigned s = 0; s < MSTX_SYMBOLS; s++) {
        const bool is_possible = s <= last + 4 && all > 4;
        f[s] =
            (uint32_t)((uint64_t)count[s] * (MSTX_RANS_SUM - MSTX_SYMBOLS) / (all != 0 ? all : 1));
        f[s] += f[s] == 0 && (is_possible || s == MSTX_SYMBOL_RARE || count[s] != 0);
        sum += f[s];
        most = f[s] > f[most] ? s : most;
    }
    ms_assert(sum <= MSTX_RANS_SUM);
    f[most] += MSTX_RANS_SUM - sum;
    c->from[0] = 0;
    for (unsigned s = 0; s < MSTX_SYMBOLS; s++)
        c->from[s + 1] = (uint16_t)(c->from[s] + f[s]);
}

static bool fit_contexts(const struct mstx_numbers *v, struct mstx_model *m)
{
    uint32_t(*count)[MSTX_SYMBOLS] = ms_calloc(MSTX_CONTEXTS, sizeof *count);
    if (count == NULL)
        return false;
    for (uint32_t i = 0; i < v->n; i++)
        count[context_of(m, v, i)][mstx_coded_of(difference_of(m, v, i)).symbol]++;
    for (uint32_t k = 0; k < m->contexts; k++)
        set_frequencies(&m->context[k], count[k]);
    ms_free(count);
    return true;
}

static bool make_model(const struct mstx_numbers *v, struct mstx_model *m)
{
    struct making k = {.v = v};
    m->classes = v->classes;
    m->context = ms_calloc(MSTX_CONTEXTS, sizeof *m->context);
    m->class = ms_calloc(v->classes, sizeof *m->class);
    bool ok = m->context != NULL && m->class != NULL && sort_by_class(&k);
    if (ok) {
        fit_classes(&k, m);
        ok = fit_contexts(v, m);
    }
    free_making(&k);
    return ok;
}

static struct mstx_fitted *make_fitted(uint64_t key, const struct mstx_numbers *v)
{
    struct mstx_fitted *x = ms_calloc(1, sizeof *x);
    if (x == NULL)
        return NULL;
    x->key = key;
    x->bits = ms_calloc(MSTX_CONTEXTS, sizeof *x->bits);
    if (x->bits == NULL || !make_model(v, &x->model)) {
        free_fitted(x);
        return NULL;
    }
    set_bits(x);
    return x;
}

/* About how many bits a model takes after compression. */
static double size_of_model(const struct mstx_model *m)
{
    enum { ROW = 200, CLASS = 20, SYMBOL = 18 };
    unsigned symbols = 0;
    for (uint32_t k = 0; k < m->contexts; k++) {
        for (unsigned s = 0; s < MSTX_SYMBOLS; s++)
            symbols += m->context[k].from[s] != m->context[k].from[s + 1];
    }
    return ROW + (double)m->classes * CLASS + (double)symbols * SYMBOL;
}

/* ---- choosing ------------------------------------------------------------------------------ */

static bool keep(struct mstx_fits *f, struct mstx_fitted *x)
{
    if (f->list.n == FITTED_MAX) {
        free_fitted(f->list.p[f->next]);
        f->list.p[f->next] = x;
        f->next = (f->next + 1) % FITTED_MAX;
        return true;
    }
    struct mstx_fitted **slot = ms_vec_push(&f->list);
    if (slot != NULL)
        *slot = x;
    return slot != NULL;
}

/* Finds the best stored model of a key. */
static struct mstx_fitted *best_of(const struct mstx_fits *f, uint64_t key,
                                   const struct mstx_numbers *v, double *bits)
{
    struct mstx_fitted *best = NULL;
    unsigned tried = 0;
    for (size_t i = f->list.n; i-- > 0 && tried < MSTX_FITTED_OF_KEY;) {
        struct mstx_fitted *x = f->list.p[i];
        if (x->key != key || x->model.classes < v->classes)
            continue;
        const double sum = count_bits(x, v);
        tried++;
        if (best == NULL || sum < *bits) {
            best = x;
            *bits = sum;
        }
        if (sum <= v->n * (x->bits_each * WORSE + WORSE_BITS))
            break;
    }
    return best;
}

enum ms_rc mstx__fit(struct mstx_fits *f, uint64_t key, const struct mstx_numbers *v,
                     struct mstx_fitted **best, int64_t *difference, uint8_t *context,
                     struct ms_err *err)
{
    double bits = 0;
    ms_assert(v->classes >= 1 && v->n <= MSTX_NUMBERS_MAX);
    struct mstx_fitted *x = best_of(f, key, v, &bits);
    if (x == NULL || bits > v->n * (x->bits_each * WORSE + WORSE_BITS)) {
        struct mstx_fitted *new = make_fitted(key, v);
        if (new == NULL)
            return ms_no_memory(err);
        const double now = count_bits(new, v);
        new->bits_each = v->n != 0 ? now / v->n : 0;
        if (x == NULL || now + size_of_model(&new->model) < BETTER * bits) {
            x = new;
            if (!keep(f, x)) {
                free_fitted(x);
                return ms_no_memory(err);
            }
        } else {
            free_fitted(new);
        }
    }
    for (uint32_t i = 0; i < v->n; i++) {
        difference[i] = difference_of(&x->model, v, i);
        context[i] = context_of(&x->model, v, i);
    }
    *best = x;
    return MS_OK;
}
