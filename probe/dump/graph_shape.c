/* SPDX-License-Identifier: MIT
 *
 * graph_shape: finds operators and gradients of a compiled graph's kernels.
 */
#include "probe/dump/graph_shape.h"
#include "probe/dump/graph_cells.h"
#include "probe/dump/graph_source.h"

#include "probe/base/mem.h"

bool probe__is_gradient(const struct probe__graph_shape *s, uint32_t value)
{
    uint32_t maker = s->made_by[value];
    return maker != MS_MAP_NONE && s->is_backward[maker] && !s->is_saved[maker];
}

/* ---- forward and backward --------------------------------------------- */

/* Marks of a kernel while the phases are found. */
enum { TAKES_GRADIENT = 1, IS_TAKEN = 2, FEEDS_GRADIENT = 4 };

/* Finds the maker of each value, and the expanded kernels that depend on a gradient kernel. */
static void find_makers(struct probe__graph_shape *s, uint8_t *marks)
{
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        for (size_t n = 0; n < k->in.n; n++) {
            uint32_t maker = s->made_by[k->in.p[n].value];
            if (maker != MS_MAP_NONE && (marks[maker] & TAKES_GRADIENT) != 0)
                marks[i] |= TAKES_GRADIENT;
        }
        if (k->scope.phase == PROBE__PHASE_BACKWARD)
            marks[i] |= TAKES_GRADIENT;
        for (size_t o = 0; o < k->out.n; o++) {
            uint32_t *maker = &s->made_by[k->out.p[o].value];
            if (*maker == MS_MAP_NONE)
                *maker = (uint32_t)i;
        }
    }
}

/* Marks the makers of a kernel's inputs as taken; expanded makers of a forward kernel are forward
 * kernels too. */
static void pass_phase_on(struct probe__graph_shape *s, size_t at, uint8_t *marks)
{
    const struct probe__kernel *all = s->g->kernels.p, *k = &all[at];
    for (size_t n = 0; n < k->in.n; n++) {
        uint32_t maker = s->made_by[k->in.p[n].value];
        if (maker == MS_MAP_NONE || maker >= at)
            continue;
        marks[maker] |= s->is_backward[at] ? IS_TAKEN | FEEDS_GRADIENT : IS_TAKEN;
        if (!s->is_backward[at] && k->scope.phase != PROBE__PHASE_OPTIMIZER &&
            all[maker].scope.phase == PROBE__PHASE_EXPANDED)
            s->is_backward[maker] = false;
    }
}

/* Finds which kernels compute gradients. The compiler runs a gradient kernel as soon as its inputs
 * are there, often in the middle of the forward pass, so the order tells nothing. An expanded kernel
 * is a forward kernel if a forward kernel needs its result, or if nothing needs it and no gradient
 * went into it, as with a loss. */
static void find_phases(struct probe__graph_shape *s, uint8_t *marks)
{
    for (size_t i = s->g->kernels.n; i-- > 0;) {
        enum probe__phase phase = s->g->kernels.p[i].scope.phase;
        s->is_backward[i] = phase == PROBE__PHASE_BACKWARD || phase == PROBE__PHASE_EXPANDED;
    }
    for (size_t i = s->g->kernels.n; i-- > 0;) {
        if (s->g->kernels.p[i].scope.phase == PROBE__PHASE_EXPANDED &&
            (marks[i] & (IS_TAKEN | TAKES_GRADIENT)) == 0)
            s->is_backward[i] = false;
        pass_phase_on(s, i, marks);
    }
}

/* Tells whether a kernel takes a tensor of the forward pass and no gradient. */
static bool takes_forward_only(const struct probe__graph_shape *s, const struct probe__kernel *k)
{
    bool has_any = false;
    for (size_t n = 0; n < k->in.n; n++) {
        if (probe__is_gradient(s, k->in.p[n].value))
            return false;
        has_any |= k->in.p[n].ndim != 0 && s->made_by[k->in.p[n].value] != MS_MAP_NONE;
    }
    return has_any;
}

/* Finds the kernels that only prepare forward values for the backward pass, such as a transposed
 * factor of a product. They run before the last forward kernel that a gradient needs. */
static void find_saved(struct probe__graph_shape *s, const uint8_t *marks)
{
    const struct probe__kernel *k = s->g->kernels.p;
    for (size_t i = s->g->kernels.n, last = 0; i-- > 0;) {
        if (last == 0 || k[last].graph != k[i].graph)
            last = !s->is_backward[i] && (marks[i] & FEEDS_GRADIENT) != 0 ? i : 0;
        s->is_saved[i] = s->is_backward[i] && last > i;
    }
    for (size_t i = 0; i < s->g->kernels.n; i++)
        s->is_saved[i] = s->is_saved[i] && takes_forward_only(s, &k[i]);
}

/* Maps unique_id numbers of the graphs' texts to forward kernels. */
static enum ms_rc find_ids(struct probe__graph_shape *s, struct ms_err *err)
{
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        bool added = false;
        if (k->ir == NULL || k->ir->id.n == 0 || s->is_backward[i])
            continue;
        uint32_t at = ms_map_put(&s->ids, k->ir->id, &added);
        uint32_t *slot = added ? ms_vec_push(&s->with_id) : NULL;
        if (at == MS_MAP_NONE || (added && slot == NULL))
            return ms_no_memory(err);
        if (added)
            *slot = (uint32_t)i;
    }
    return MS_OK;
}

/* Returns what a kernel computes a part of: "MatMulExt" for "Expand/_MatMulExt/BatchMatMul-op0". */
static struct ms_str whole_of(const struct probe__kernel *k)
{
    struct ms_str rest = k->full, part;
    if (k->scope.phase != PROBE__PHASE_EXPANDED)
        return k->scope.op;
    ms_str_split(&rest, '/', &part);
    ms_str_split(&rest, '/', &part);
    return ms_str_starts(part, MS_STR("_")) ? ms_str_sub(part, 1, part.n) : part;
}

/* Returns the forward value that a value was prepared from, see find_saved. */
static uint32_t value_saved_from(const struct probe__graph_shape *s, uint32_t value)
{
    uint32_t maker = s->made_by[value];
    while (maker != MS_MAP_NONE && s->is_saved[maker]) {
        const struct probe__kernel *k = &s->g->kernels.p[maker];
        size_t n = 0;
        while (n + 1 < k->in.n && k->in.p[n].ndim == 0)
            n++;
        value = k->in.p[n].value;
        uint32_t next = s->made_by[value];
        maker = next != MS_MAP_NONE && next < maker ? next : MS_MAP_NONE;
    }
    return value;
}

static bool takes_or_makes(const struct probe__kernel *k, uint32_t value)
{
    for (size_t n = 0; n < k->in.n; n++) {
        if (k->in.p[n].value == value)
            return true;
    }
    for (size_t n = 0; n < k->out.n; n++) {
        if (k->out.p[n].value == value)
            return true;
    }
    return false;
}

/* Returns the last forward kernel before `kernel` that takes or makes a value: one of the same
 * computation, as "SoftmaxBackward" is of "Softmax", or else an expanded one. */
static uint32_t forward_with(const struct probe__graph_shape *s, size_t kernel, uint32_t value,
                             bool same)
{
    const struct probe__kernel *all = s->g->kernels.p, *k = &all[kernel];
    for (size_t i = kernel; i-- > 0;) {
        if (s->is_backward[i] || !takes_or_makes(&all[i], value))
            continue;
        if (same ? ms_str_starts(whole_of(k), whole_of(&all[i]))
                 : all[i].scope.phase == PROBE__PHASE_EXPANDED)
            return (uint32_t)i;
    }
    return same ? MS_MAP_NONE : s->made_by[value];
}

/* Returns the forward kernel that takes or makes one of this kernel's inputs. */
static uint32_t forward_of_inputs(const struct probe__graph_shape *s, size_t kernel, bool same)
{
    const struct probe__kernel *k = &s->g->kernels.p[kernel];
    uint32_t forward = MS_MAP_NONE;
    for (size_t n = 0; n < k->in.n && forward == MS_MAP_NONE; n++) {
        uint32_t value = value_saved_from(s, k->in.p[n].value);
        if (k->in.p[n].ndim != 0 && !probe__is_gradient(s, value))
            forward = forward_with(s, kernel, value, same);
    }
    return forward;
}

/* Tells whether a kernel only converts a gradient to the shape and type of its argument. */
static bool fits_gradient(const struct probe__kernel *k)
{
    static const char *const ops[] = {"ReduceSum", "Reshape", "Cast", "BroadcastTo", "Squeeze"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (ms_str_is(k->scope.op, ops[i]))
            return true;
    }
    return false;
}

/* Finds the forward kernel of an expanded gradient kernel: by the forward values that it takes,
 * else that of the kernel before it in the same expansion. A kernel that only converts a gradient
 * belongs to the kernel whose gradient it converts. */
static uint32_t forward_of_expanded(const struct probe__graph_shape *s, size_t at)
{
    const struct probe__kernel *k = &s->g->kernels.p[at];
    uint32_t forward = forward_of_inputs(s, at, true);
    if (forward == MS_MAP_NONE)
        forward = forward_of_inputs(s, at, false);
    if (forward == MS_MAP_NONE && at != 0 && s->is_backward[at - 1] &&
        probe__is_same_expansion(k, k - 1))
        return s->forward_of[at - 1];
    for (size_t n = 0; fits_gradient(k) && n < k->in.n && forward == MS_MAP_NONE; n++) {
        uint32_t value = k->in.p[n].value;
        if (k->in.p[n].ndim != 0 && probe__is_gradient(s, value) && s->made_by[value] < at)
            forward = s->forward_of[s->made_by[value]];
    }
    return forward;
}

/* Links gradient kernels to their forward kernels: by the text of the graph, else by values. */
static void link_gradients(struct probe__graph_shape *s)
{
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        uint32_t at = MS_MAP_NONE;
        s->forward_of[i] = MS_MAP_NONE;
        if (!s->is_backward[i])
            continue;
        if (k->ir != NULL && k->ir->forward_id.n != 0)
            at = ms_map_get(&s->ids, k->ir->forward_id);
        if (at != MS_MAP_NONE)
            s->forward_of[i] = s->with_id.p[at];
        else if (k->scope.phase == PROBE__PHASE_EXPANDED)
            s->forward_of[i] = forward_of_expanded(s, i);
    }
}

/* ---- operators -------------------------------------------------------- */

static void find_ends(struct probe__graph_shape *s)
{
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        uint32_t cell = ms_map_get(&s->cell_names, k->cells);
        if (k->cells.n == 0 || k->scope.phase == PROBE__PHASE_OPTIMIZER || s->is_saved[i])
            continue;
        for (; cell != MS_MAP_NONE; cell = s->cells.p[cell].parent)
            s->cells.p[cell].last[s->is_backward[i]] = (uint32_t)i;
    }
}

/* Makes the operator's name: "matmul.MatMul" is the primitive `matmul` of a cell, as in a dump of
 * functions. */
static enum ms_rc name_of(struct probe__graph_shape *s, const struct probe__kernel *k,
                          struct ms_str *name, struct ms_err *err)
{
    struct ms_buf b = {.max = 1 << 12};
    struct ms_str op = k->scope.forward.n != 0 ? k->scope.forward : k->scope.op;
    if (k->ir != NULL && k->ir->instance.n != 0 && k->scope.forward.n == 0)
        ms_buf_printf(&b, "%.*s.", MS_STR_ARG(k->ir->instance));
    ms_buf_str(&b, op);
    *name = ms_arena_str(s->arena, ms_buf_slice(&b));
    enum ms_rc rc = ms_buf_check(&b, err);
    ms_buf_free(&b);
    return rc == MS_OK && name->p == NULL ? ms_no_memory(err) : rc;
}

static enum ms_rc next_number(struct probe__graph_shape *s, struct ms_str op, uint32_t *number,
                              struct ms_err *err)
{
    bool added = false;
    uint32_t at = ms_map_put(&s->calls, op, &added);
    uint32_t *count = added ? ms_vec_push(&s->counts) : NULL;
    if (at == MS_MAP_NONE || (added && count == NULL))
        return ms_no_memory(err);
    if (added)
        *count = 0;
    *number = s->counts.p[at]++;
    return MS_OK;
}

static enum ms_rc add_op(struct probe__graph_shape *s, size_t kernel, struct ms_err *err)
{
    const struct probe__kernel *k = &s->g->kernels.p[kernel];
    struct probe__graph_op op = {.is_backward = s->is_backward[kernel],
                                 .is_optimizer = k->scope.phase == PROBE__PHASE_OPTIMIZER,
                                 .is_saved =
                                     s->is_saved[kernel] && s->forward_of[kernel] == MS_MAP_NONE,
                                 .cell = ms_map_get(&s->cell_names, k->cells),
                                 .last = (uint32_t)kernel};
    uint32_t forward = s->forward_of[kernel];
    if (op.is_optimizer)
        op.cell = MS_MAP_NONE;
    if (forward != MS_MAP_NONE) {
        op.name = s->ops.p[s->op_of[forward]].name;
        op.number = s->ops.p[s->op_of[forward]].number;
    } else {
        MS_TRY(name_of(s, k, &op.name, err));
        MS_TRY(next_number(s, op.name, &op.number, err));
    }
    struct probe__graph_op *slot = ms_vec_push(&s->ops);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = op;
    s->op_of[kernel] = (uint32_t)s->ops.n - 1;
    return MS_OK;
}

/* Returns the operator of an earlier kernel of the same gradient. */
static uint32_t op_of_same(const struct probe__graph_shape *s, size_t kernel)
{
    for (size_t i = kernel; i-- > 0 && s->forward_of[kernel] != MS_MAP_NONE;) {
        if (s->is_backward[i] && s->forward_of[i] == s->forward_of[kernel])
            return s->op_of[i];
    }
    return MS_MAP_NONE;
}

static enum ms_rc add_ops(struct probe__graph_shape *s, struct ms_err *err)
{
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        if (!s->is_backward[i])
            MS_TRY(add_op(s, i, err));
    }
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        uint32_t same = s->is_backward[i] ? op_of_same(s, i) : MS_MAP_NONE;
        if (same != MS_MAP_NONE) {
            s->op_of[i] = same;
            s->ops.p[same].last = (uint32_t)i;
        } else if (s->is_backward[i]) {
            MS_TRY(add_op(s, i, err));
        }
    }
    return MS_OK;
}

/* ---- all of it -------------------------------------------------------- */

static bool make_room(struct probe__graph_shape *s)
{
    const size_t kernels = s->g->kernels.n + 1, values = s->g->value_count + 1;
    s->op_of = ms_arena_calloc(s->arena, kernels, sizeof *s->op_of);
    s->forward_of = ms_arena_calloc(s->arena, kernels, sizeof *s->forward_of);
    s->is_backward = ms_arena_calloc(s->arena, kernels, sizeof *s->is_backward);
    s->is_saved = ms_arena_calloc(s->arena, kernels, sizeof *s->is_saved);
    s->made_by = ms_arena_calloc(s->arena, values, sizeof *s->made_by);
    for (size_t i = 0; s->made_by != NULL && i < values; i++)
        s->made_by[i] = MS_MAP_NONE;
    return s->op_of != NULL && s->forward_of != NULL && s->is_backward != NULL &&
           s->is_saved != NULL && s->made_by != NULL;
}

enum ms_rc probe__graph_shape_make(struct probe__graph_shape *s, struct probe__graph *g,
                                   struct ms_err *err)
{
    *s = (struct probe__graph_shape){.g = g, .arena = g->arena};
    uint8_t *marks = ms_arena_calloc(g->arena, g->kernels.n + 1, 1);
    if (marks == NULL || !make_room(s))
        return ms_no_memory(err);
    find_makers(s, marks);
    find_phases(s, marks);
    find_saved(s, marks);
    MS_TRY(find_ids(s, err));
    link_gradients(s);
    MS_TRY(probe__cells_find(s, err));
    MS_TRY(probe__sort_as_program(s, err));
    MS_TRY(probe__cells_settle(s, err));
    find_ends(s);
    return add_ops(s, err);
}

void probe__graph_shape_free(struct probe__graph_shape *s)
{
    ms_vec_free(&s->cells);
    ms_map_free(&s->cell_names);
    ms_vec_free(&s->ops);
    ms_map_free(&s->ids);
    ms_vec_free(&s->with_id);
    ms_map_free(&s->calls);
    ms_vec_free(&s->counts);
}
