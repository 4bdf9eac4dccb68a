/* SPDX-License-Identifier: MIT
 *
 * graph_views: follows views through the graph's text.
 */
#include "probe/dump/graph_views.h"

static bool is_any_of(struct ms_str op, const char *const *words)
{
    while (*words != NULL && !ms_str_is(op, *words))
        words++;
    return *words != NULL;
}

/* What a kernel does to the file of its first argument when it hands that memory on. */
static enum probe__held after(struct ms_str op, enum probe__held before)
{
    static const char *const turn[] = {"TransposeView", "TransposeExtView", NULL};
    static const char *const keep[] = {"TupleGetItem", "ExpandDimsView", NULL};
    if (is_any_of(op, keep))
        return before;
    if (is_any_of(op, turn))
        return before == PROBE__HELD ? PROBE__HELD_TURNED : before;
    return ms_str_ends(op, MS_STR("View")) ? PROBE__HELD_NOT : PROBE__HELD;
}

/* Returns the operator of a kernel of the text: "ChunkView" for "Default/ChunkView-op0". */
static struct ms_str op_of(const struct probe__ir *ir, uint32_t kernel)
{
    struct ms_str full = ms_map_key(&ir->names, kernel);
    struct ms_str op = ms_str_sub(full, (uint32_t)(ms_str_rfind(full, '/') + 1), full.n);
    int64_t number = ms_str_find_str(op, MS_STR("-op"));
    return number > 0 ? ms_str_sub(op, 0, (uint32_t)number) : op;
}

/* Returns what the file of a kernel's result holds. */
static enum probe__held held_of_result(const struct probe__ir *ir, uint32_t kernel)
{
    enum { DEPTH = 16 }; /* views of views */
    uint32_t chain[DEPTH], n = 0;
    while (n < DEPTH && kernel != MS_MAP_NONE &&
           after(op_of(ir, kernel), PROBE__HELD_NOT) == PROBE__HELD_NOT) {
        const struct probe__ir_kernel *k = &ir->kernels.p[kernel];
        chain[n++] = kernel;
        uint32_t before = k->n != 0 ? ir->arguments.p[k->first].kernel : MS_MAP_NONE;
        kernel =
            before < kernel ? before : MS_MAP_NONE; /* the text names a kernel before its readers */
    }
    enum probe__held held = PROBE__HELD;
    while (n-- > 0)
        held = after(op_of(ir, chain[n]), held);
    return held;
}

static enum probe__held held_of_input(const struct probe__kernel *k,
                                      const struct probe__kernel_tensor *in)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, in);
    bool is_made = a != NULL && a->kind == PROBE__IR_KERNEL && a->kernel != MS_MAP_NONE;
    return is_made ? held_of_result(k->of, a->kernel) : PROBE__HELD;
}

void probe__find_views(struct probe__graph *g)
{
    for (size_t i = 0; i < g->kernels.n; i++) {
        struct probe__kernel *k = &g->kernels.p[i];
        for (size_t n = 0; n < k->in.n; n++)
            k->in.p[n].held = held_of_input(k, &k->in.p[n]);
        for (size_t n = 0; k->ir != NULL && n < k->out.n; n++)
            k->out.p[n].held = held_of_result(k->of, (uint32_t)(k->ir - k->of->kernels.p));
    }
}
