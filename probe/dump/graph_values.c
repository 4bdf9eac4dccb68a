/* SPDX-License-Identifier: MIT
 *
 * graph_values: numbers the values of a graph by its flow.
 */
#include "probe/dump/graph_values.h"

#include "probe/base/assert.h"

/* "Bytes" are the numbers that graph_read gives to equal bytes. */
struct numbering {
    struct probe__graph *g;
    uint32_t *first;   /* of each kernel: the number of its first result; further ones follow */
    uint32_t *by_text; /* of one text: its kernels' indices in the graph, or MS_MAP_NONE */
    uint32_t *maker;   /* of bytes: the first kernel with such a result, or MS_MAP_NONE */
};

static enum ms_rc make_room(struct numbering *m, struct ms_err *err)
{
    const size_t kernels = m->g->kernels.n + 1, bytes = m->g->values.keys.n + 1;
    size_t texts = 1;
    for (size_t i = 0; i < m->g->irs.n; i++)
        texts = m->g->irs.p[i]->kernels.n > texts ? m->g->irs.p[i]->kernels.n : texts;
    m->first = ms_arena_alloc(m->g->arena, kernels * sizeof *m->first);
    m->by_text = ms_arena_alloc(m->g->arena, texts * sizeof *m->by_text);
    m->maker = ms_arena_alloc(m->g->arena, bytes * sizeof *m->maker);
    bool fine = m->first != NULL && m->by_text != NULL && m->maker != NULL;
    return fine ? MS_OK : ms_no_memory(err);
}

/* Gives each kernel numbers for its results, and finds the first maker of all bytes. */
static void number_results(struct numbering *m)
{
    struct probe__graph *g = m->g;
    g->value_count = (uint32_t)g->values.keys.n;
    for (size_t i = 0; i < g->values.keys.n; i++)
        m->maker[i] = MS_MAP_NONE;
    for (uint32_t i = 0; i < g->kernels.n; i++) {
        const struct probe__kernel *k = &g->kernels.p[i];
        m->first[i] = g->value_count;
        g->value_count += (uint32_t)k->out.n;
        for (size_t n = 0; n < k->out.n; n++) {
            uint32_t *maker = &m->maker[k->out.p[n].value];
            *maker = *maker == MS_MAP_NONE ? i : *maker;
        }
    }
}

/* Returns the number of a kernel's result with these bytes; MS_MAP_NONE: it has none. */
static uint32_t result_with(const struct numbering *m, uint32_t kernel, uint32_t bytes)
{
    const struct probe__kernel *k = &m->g->kernels.p[kernel];
    for (size_t n = 0; k->ir != NULL && n < k->out.n; n++) {
        if (k->out.p[n].value == bytes)
            return m->first[kernel] + (uint32_t)n;
    }
    return MS_MAP_NONE;
}

/* Returns the kernel that the text names as the maker of an argument. One without files, which only reshapes, did
 * not run: its first argument is meant. */
static uint32_t named_maker(const struct numbering *m, const struct probe__ir *of,
                            const struct probe__ir_argument *a)
{
    uint32_t at = a->kernel;
    while (at != MS_MAP_NONE && m->by_text[at] == MS_MAP_NONE) {
        const struct probe__ir_kernel *k = &of->kernels.p[at];
        uint32_t before = k->n != 0 ? of->arguments.p[k->first].kernel : MS_MAP_NONE;
        at = before < at ? before : MS_MAP_NONE; /* the text names a kernel before its readers */
    }
    return at != MS_MAP_NONE ? m->by_text[at] : MS_MAP_NONE;
}

/* Returns the number of an input's value. What the text does not explain is the first result with its bytes, but a
 * parameter is none of its own graph, and a constant none at all. */
static uint32_t number_of_input(const struct numbering *m, const struct probe__kernel *k,
                                const struct probe__kernel_tensor *in)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, in);
    uint32_t named = a != NULL ? named_maker(m, k->of, a) : MS_MAP_NONE;
    uint32_t number = named != MS_MAP_NONE ? result_with(m, named, in->value) : MS_MAP_NONE;
    uint32_t maker = m->maker[in->value];
    if (number != MS_MAP_NONE || maker == MS_MAP_NONE)
        return number != MS_MAP_NONE ? number : in->value;
    bool is_outside =
        a != NULL && (a->kind == PROBE__IR_CONSTANT ||
                      (a->kind == PROBE__IR_PARAMETER && m->g->kernels.p[maker].graph == k->graph));
    number = is_outside ? MS_MAP_NONE : result_with(m, maker, in->value);
    return number != MS_MAP_NONE ? number : in->value;
}

/* Numbers the inputs of the kernels of one text; NULL: of those without a text. Results keep the numbers of their
 * bytes until all inputs have theirs. */
static void number_inputs(struct numbering *m, const struct probe__ir *of)
{
    const struct probe__graph *g = m->g;
    for (size_t i = 0; of != NULL && i < of->kernels.n; i++)
        m->by_text[i] = MS_MAP_NONE;
    for (uint32_t i = 0; of != NULL && i < g->kernels.n; i++) {
        if (g->kernels.p[i].of == of && g->kernels.p[i].ir != NULL)
            m->by_text[g->kernels.p[i].ir - of->kernels.p] = i;
    }
    for (size_t i = 0; i < g->kernels.n; i++) {
        struct probe__kernel *k = &g->kernels.p[i];
        for (size_t n = 0; k->of == of && n < k->in.n; n++)
            k->in.p[n].value = number_of_input(m, k, &k->in.p[n]);
    }
}

enum ms_rc probe__number_values(struct probe__graph *g, struct ms_err *err)
{
    struct numbering m = {.g = g};
    MS_TRY(make_room(&m, err));
    number_results(&m);
    number_inputs(&m, NULL);
    for (size_t i = 0; i < g->irs.n; i++)
        number_inputs(&m, g->irs.p[i]);
    for (size_t i = 0; i < g->kernels.n; i++) {
        struct probe__kernel *k = &g->kernels.p[i];
        for (size_t n = 0; k->ir != NULL && n < k->out.n; n++)
            k->out.p[n].value = m.first[i] + (uint32_t)n;
    }
    return MS_OK;
}
