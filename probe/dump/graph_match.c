/* SPDX-License-Identifier: MIT
 *
 * graph_match: which files are of which kernel, by the flow of values.
 */
#include "probe/dump/graph_match.h"

#include <stdlib.h>

enum { GROUP_MAX = 512, MISFIT = -1 };

struct named {
    struct ms_str base; /* full name without the number */
    uint64_t graph;
    uint32_t at; /* index of the kernel */
};

struct matching {
    struct probe__graph *g;
    struct named *list; /* all kernels, by graph and name */
    uint32_t *by_text;  /* of one text: its kernels' indices in the graph, or MS_MAP_NONE */
    bool *is_fixed;     /* of each kernel: its tensors are its own */
};

static int by_base(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    if (x->graph != y->graph)
        return x->graph < y->graph ? -1 : 1;
    int c = ms_str_cmp(x->base, y->base);
    return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

static void list_kernels(struct matching *m)
{
    for (uint32_t i = 0; i < m->g->kernels.n; i++) {
        const struct probe__kernel *k = &m->g->kernels.p[i];
        int64_t at = ms_str_rfind(k->full, '-');
        m->list[i] =
            (struct named){ms_str_sub(k->full, 0, at < 0 ? k->full.n : (uint32_t)at), k->graph, i};
    }
    qsort(m->list, m->g->kernels.n, sizeof *m->list, by_base);
}

/* Tells whether a kernel's outputs have a value. */
static bool has_output(const struct probe__kernel *k, uint32_t value)
{
    for (size_t i = 0; i < k->out.n; i++) {
        if (k->out.p[i].value == value)
            return true;
    }
    return false;
}

/* Returns the kernel that the text names as the maker of an input, if its tensors are known. */
static const struct probe__kernel *known_maker(const struct matching *m,
                                               const struct probe__kernel *k,
                                               const struct probe__kernel_tensor *in)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, in);
    uint32_t at = a != NULL && a->kernel != MS_MAP_NONE ? m->by_text[a->kernel] : MS_MAP_NONE;
    return at != MS_MAP_NONE && m->is_fixed[at] ? &m->g->kernels.p[at] : NULL;
}

static bool has_shape(const struct probe__kernel_tensor *t, struct ms_str types)
{
    uint64_t shape[PROBE_MAX_DIMS], want = 1, has = 1;
    uint32_t ndim;
    if (!probe__ir_shape(types, t->slot, shape, &ndim, PROBE_MAX_DIMS))
        return true;
    for (uint32_t i = 0; i < ndim; i++)
        want *= shape[i];
    for (uint32_t i = 0; i < t->ndim; i++)
        has *= t->shape[i];
    return want == has;
}

/* Counts the inputs that tensors read from the known makers of a kernel; MISFIT: they cannot be the
 * kernel's. */
static int fit(const struct matching *m, const struct probe__kernel *k,
               const struct probe__kernel *tensors)
{
    int fits = 0;
    for (size_t i = 0; i < tensors->in.n; i++) {
        const struct probe__kernel_tensor *in = &tensors->in.p[i];
        const struct probe__kernel *maker = known_maker(m, k, in);
        if (!has_shape(in, k->ir->in) || (maker != NULL && !has_output(maker, in->value)))
            return MISFIT;
        fits += maker != NULL;
    }
    for (size_t i = 0; i < tensors->out.n; i++) {
        if (!has_shape(&tensors->out.p[i], k->ir->out))
            return MISFIT;
    }
    return fits;
}

static void exchange_tensors(struct probe__kernel *a, struct probe__kernel *b)
{
    struct probe__kernel was = *a;
    a->in.p = b->in.p, a->in.n = b->in.n, a->in.cap = b->in.cap;
    a->out.p = b->out.p, a->out.n = b->out.n, a->out.cap = b->out.cap;
    b->in.p = was.in.p, b->in.n = was.in.n, b->in.cap = was.in.cap;
    b->out.p = was.out.p, b->out.n = was.out.n, b->out.cap = was.out.cap;
}

/* Finds the tensors of one kernel among those of its name that are not fixed: the ones that fit
 * best, its own first. Returns whether they are certain. */
static bool find_tensors(const struct matching *m, const struct named *group, size_t n, uint32_t at,
                         uint32_t *best)
{
    const struct probe__kernel *k = m->g->kernels.p;
    int most = fit(m, &k[at], &k[at]);
    *best = at;
    for (size_t i = 0; i < n; i++) {
        int fits = m->is_fixed[group[i].at] ? MISFIT : fit(m, &k[at], &k[group[i].at]);
        if (fits > most) {
            most = fits;
            *best = group[i].at;
        }
    }
    return most > 0;
}

/* Fixes kernels of one name; with `any`, one that is not certain. Returns how many. */
static size_t fix_group(const struct matching *m, const struct named *group, size_t n, bool any)
{
    size_t fixed = 0;
    for (size_t i = 0; i < n && !(any && fixed != 0); i++) {
        uint32_t best, at = group[i].at;
        if (m->is_fixed[at] || (!find_tensors(m, group, n, at, &best) && !any))
            continue;
        if (best != at)
            exchange_tensors(&m->g->kernels.p[at], &m->g->kernels.p[best]);
        m->is_fixed[at] = true;
        fixed++;
    }
    return fixed;
}

/* Returns how many kernels from list[from] on have the same name. */
static size_t group_size(const struct matching *m, size_t from)
{
    size_t n = 0;
    while (from + n < m->g->kernels.n && m->list[from + n].graph == m->list[from].graph &&
           ms_str_eq(m->list[from + n].base, m->list[from].base))
        n++;
    return n;
}

static size_t fix_groups(const struct matching *m, const struct probe__ir *of, bool any)
{
    size_t fixed = 0;
    for (size_t from = 0, n; from < m->g->kernels.n && !(any && fixed != 0); from += n) {
        n = group_size(m, from);
        if (m->g->kernels.p[m->list[from].at].of == of)
            fixed += fix_group(m, &m->list[from], n, any);
    }
    return fixed;
}

/* Kernels that share no name keep their tensors, and so do those of large groups and those without a text. */
static void fix_others(const struct matching *m)
{
    for (size_t from = 0, n; from < m->g->kernels.n; from += n) {
        n = group_size(m, from);
        for (size_t i = from; i < from + n; i++)
            m->is_fixed[m->list[i].at] =
                m->g->kernels.p[m->list[i].at].ir == NULL || n == 1 || n > GROUP_MAX;
    }
}

static enum ms_rc match_text(struct matching *m, const struct probe__ir *of, struct ms_err *err)
{
    m->by_text = ms_arena_alloc(m->g->arena, (of->kernels.n + 1) * sizeof *m->by_text);
    if (m->by_text == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < of->kernels.n; i++)
        m->by_text[i] = MS_MAP_NONE;
    for (uint32_t i = 0; i < m->g->kernels.n; i++) {
        const struct probe__kernel *k = &m->g->kernels.p[i];
        if (k->of == of && k->ir != NULL)
            m->by_text[k->ir - of->kernels.p] = i;
    }
    while (fix_groups(m, of, false) != 0 || fix_groups(m, of, true) != 0)
        ;
    return MS_OK;
}

enum ms_rc probe__match_kernels(struct probe__graph *g, struct ms_err *err)
{
    struct matching m = {.g = g,
                         .list = ms_arena_alloc(g->arena, (g->kernels.n + 1) * sizeof *m.list),
                         .is_fixed =
                             ms_arena_calloc(g->arena, g->kernels.n + 1, sizeof *m.is_fixed)};
    if (m.list == NULL || m.is_fixed == NULL)
        return ms_no_memory(err);
    list_kernels(&m);
    fix_others(&m);
    for (size_t i = 0; i < g->irs.n; i++)
        MS_TRY(match_text(&m, g->irs.p[i], err));
    return MS_OK;
}
