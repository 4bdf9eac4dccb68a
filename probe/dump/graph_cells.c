/* SPDX-License-Identifier: MIT
 *
 * graph_cells: finds the cells of a compiled graph, and the cell in which each kernel runs.
 */
#include "probe/dump/graph_cells.h"
#include "probe/dump/graph_source.h"

#include "probe/base/mem.h"

/* ---- cells ------------------------------------------------------------ */

bool probe__kernel_is_in(const struct probe__kernel *k, const struct probe__graph_cell *cell)
{
    return ms_str_starts(k->cells, cell->cells) &&
           (k->cells.n == cell->cells.n || k->cells.p[cell->cells.n] == '/');
}

/* Sets path and class of a cell: "fc-Dense/act-ReLU" has the path "fc.act" and the class "ReLU". */
static enum ms_rc name_cell(struct probe__graph_shape *s, struct probe__graph_cell *cell,
                            struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 16};
    struct ms_str rest = cell->cells, part, attribute;
    while (ms_str_split(&rest, '/', &part)) {
        probe__cell_split(part, &attribute, &cell->class_name);
        ms_buf_printf(&path, "%s%.*s", cell->depth++ != 0 ? "." : "", MS_STR_ARG(attribute));
    }
    cell->path = ms_arena_str(s->arena, ms_buf_slice(&path));
    enum ms_rc rc = ms_buf_check(&path, err);
    ms_buf_free(&path);
    return rc == MS_OK && cell->path.p == NULL ? ms_no_memory(err) : rc;
}

/* Adds a cell and all cells that enclose it. */
static enum ms_rc add_cell(struct probe__graph_shape *s, struct ms_str cells, uint32_t *index,
                           struct ms_err *err)
{
    bool added = false;
    uint32_t parent = MS_MAP_NONE;
    *index = MS_MAP_NONE;
    for (uint32_t i = 1; i <= cells.n; i++) {
        if (i != cells.n && cells.p[i] != '/')
            continue;
        *index = ms_map_put(&s->cell_names, ms_str_sub(cells, 0, i), &added);
        struct probe__graph_cell *cell = added ? ms_vec_push(&s->cells) : NULL;
        if (*index == MS_MAP_NONE || (added && cell == NULL))
            return ms_no_memory(err);
        if (added) {
            *cell = (struct probe__graph_cell){.cells = ms_str_sub(cells, 0, i),
                                               .parent = parent,
                                               .last = {MS_MAP_NONE, MS_MAP_NONE}};
            MS_TRY(name_cell(s, cell, err));
        }
        parent = *index;
    }
    return MS_OK;
}

/* Tells whether `owner` is `path` or ends with ".path": "net.fc" and "fc" match "fc". */
static bool is_path(struct ms_str owner, struct ms_str path)
{
    return ms_str_ends(owner, path) && (owner.n == path.n || owner.p[owner.n - path.n - 1] == '.');
}

uint32_t probe__parameter_cell(const struct probe__graph_shape *s, struct ms_str parameter,
                               struct ms_str *name)
{
    uint32_t best = MS_MAP_NONE, longest = 0;
    int64_t dot = ms_str_rfind(parameter, '.');
    struct ms_str owner = ms_str_sub(parameter, 0, dot < 0 ? 0 : (uint32_t)dot);
    *name = ms_str_sub(parameter, (uint32_t)(dot + 1), parameter.n);
    for (size_t i = 0; i < s->cells.n; i++) {
        struct ms_str path = s->cells.p[i].path;
        if (path.n > longest && is_path(owner, path)) {
            best = (uint32_t)i;
            longest = path.n;
        }
    }
    return best;
}

bool probe__is_same_expansion(const struct probe__kernel *a, const struct probe__kernel *b)
{
    struct ms_str x = ms_str_sub(a->full, 0, (uint32_t)(ms_str_rfind(a->full, '/') + 1));
    return a->graph == b->graph && b->scope.phase == PROBE__PHASE_EXPANDED &&
           ms_str_starts(b->full, x);
}

/* ---- cells of kernels --------------------------------------------------- */

/* Returns the name of the parameter that a kernel takes; empty when it takes none. */
static struct ms_str parameter_taken(const struct probe__graph_shape *s,
                                     const struct probe__kernel *k)
{
    struct ms_str name;
    for (size_t n = 0; n < k->in.n; n++) {
        const struct probe__ir_argument *a = probe__kernel_argument(k, &k->in.p[n]);
        if (a != NULL && a->kind == PROBE__IR_PARAMETER &&
            probe__parameter_cell(s, a->parameter, &name) != MS_MAP_NONE)
            return a->parameter;
    }
    return MS_STR_NONE;
}

static bool takes_parameter(const struct probe__graph_shape *s, const struct probe__kernel *k)
{
    return parameter_taken(s, k).n != 0;
}

static bool has_cells(const struct probe__graph_shape *s, uint32_t cell)
{
    for (size_t i = 0; i < s->cells.n; i++) {
        if (s->cells.p[i].parent == cell)
            return true;
    }
    return false;
}

/* Returns the cells in which the output of a kernel is used: its own, or the enclosing cell when
 * its own cell is a leaf. */
static struct ms_str cells_behind(const struct probe__graph_shape *s, uint32_t kernel)
{
    const struct probe__kernel *k = &s->g->kernels.p[kernel];
    uint32_t cell = ms_map_get(&s->cell_names, k->cells);
    if (k->cells.n == 0 || cell == MS_MAP_NONE || has_cells(s, cell) ||
        (k->scope.phase == PROBE__PHASE_EXPANDED && !takes_parameter(s, k)))
        return k->cells;
    cell = s->cells.p[cell].parent;
    return cell != MS_MAP_NONE ? s->cells.p[cell].cells : MS_STR_NONE;
}

/* Returns the common prefix of two cell paths. */
static struct ms_str common_cells(struct ms_str a, struct ms_str b)
{
    uint32_t common = 0;
    for (uint32_t i = 0; i <= a.n && i <= b.n; i++) {
        const bool ends = (i == a.n || a.p[i] == '/') && (i == b.n || b.p[i] == '/');
        if (ends)
            common = i;
        if (i == a.n || i == b.n || a.p[i] != b.p[i])
            break;
    }
    return ms_str_sub(a, 0, common);
}

/* Tells whether an input is a value from outside of all cells. */
static bool is_data(const struct probe__graph_shape *s, const struct probe__kernel *k,
                    const struct probe__kernel_tensor *in)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, in);
    return s->made_by[in->value] == MS_MAP_NONE && a != NULL && a->kind == PROBE__IR_PARAMETER;
}

/* Returns the cells that enclose all makers of the kernel's inputs. */
static struct ms_str cells_of_makers(const struct probe__graph_shape *s, size_t at)
{
    const struct probe__kernel *k = &s->g->kernels.p[at];
    struct ms_str cells = MS_STR_NONE;
    bool has_any = false;
    for (size_t n = 0; n < k->in.n; n++) {
        uint32_t maker = s->made_by[k->in.p[n].value];
        if (is_data(s, k, &k->in.p[n]))
            return MS_STR_NONE;
        if (maker == MS_MAP_NONE || maker >= at || s->is_backward[maker] || k->in.p[n].ndim == 0)
            continue;
        struct ms_str behind = cells_behind(s, maker);
        cells = has_any ? common_cells(cells, behind) : behind;
        has_any = true;
    }
    return cells;
}

/* Finds the cell of an expanded kernel: the cell whose parameter it takes, else the cell of the
 * kernel before it in the same expansion, else that of the makers of its inputs. */
static void find_cell_of_expanded(struct probe__graph_shape *s, size_t at)
{
    struct probe__kernel *k = &s->g->kernels.p[at];
    struct ms_str name;
    for (size_t n = 0; n < k->in.n && k->cells.n == 0; n++) {
        const struct probe__ir_argument *a = probe__kernel_argument(k, &k->in.p[n]);
        uint32_t cell = a != NULL && a->kind == PROBE__IR_PARAMETER
                            ? probe__parameter_cell(s, a->parameter, &name)
                            : MS_MAP_NONE;
        if (cell != MS_MAP_NONE)
            k->cells = s->cells.p[cell].cells;
    }
    if (k->cells.n == 0 && at != 0 && probe__is_same_expansion(k, k - 1))
        k->cells = (k - 1)->cells;
    if (k->cells.n == 0)
        k->cells = cells_of_makers(s, at);
}

/* Returns the end in b of the first cell that differs between two paths, if both cells have the
 * same class; else 0. */
static uint32_t other_instance(struct ms_str a, struct ms_str b)
{
    struct ms_str x, y, ignored, of_x, of_y;
    uint32_t at = 0;
    while (a.n != 0 && b.n != 0) {
        ms_str_split(&a, '/', &x);
        ms_str_split(&b, '/', &y);
        if (!ms_str_eq(x, y)) {
            probe__cell_split(x, &ignored, &of_x);
            probe__cell_split(y, &ignored, &of_y);
            return ms_str_eq(of_x, of_y) ? at + y.n : 0;
        }
        at += x.n + 1;
    }
    return 0;
}

/* Moves a kernel to another instance: "0-Block/act-GELU" becomes "1-Block/act-GELU". The part
 * behind the differing cell is kept. */
static enum ms_rc move_to_instance(struct probe__graph_shape *s, struct probe__kernel *k,
                                   struct ms_str of, uint32_t to, struct ms_err *err)
{
    struct ms_buf b = {.max = 1 << 16};
    uint32_t from = other_instance(of, k->cells), index;
    ms_buf_str(&b, ms_str_sub(of, 0, to));
    ms_buf_str(&b, ms_str_sub(k->cells, from, k->cells.n));
    struct ms_str cells = ms_arena_str(s->arena, ms_buf_slice(&b));
    enum ms_rc rc = ms_buf_check(&b, err);
    ms_buf_free(&b);
    MS_TRY(rc);
    if (cells.p == NULL)
        return ms_no_memory(err);
    k->cells = cells;
    return add_cell(s, cells, &index, err);
}

/* Corrects the instance of an operator without parameters. The compiler names such operators after
 * the first instance of a class; an operator that takes a value of a later instance runs in that
 * instance. */
static enum ms_rc find_instance(struct probe__graph_shape *s, size_t at, struct ms_err *err)
{
    struct probe__kernel *k = &s->g->kernels.p[at];
    if (k->cells.n == 0 || s->is_backward[at] || takes_parameter(s, k))
        return MS_OK;
    for (size_t n = 0; n < k->in.n; n++) {
        uint32_t maker = s->made_by[k->in.p[n].value];
        if (maker == MS_MAP_NONE || maker >= at || k->in.p[n].ndim == 0)
            continue;
        struct ms_str of = s->g->kernels.p[maker].cells;
        uint32_t to = other_instance(k->cells, of);
        if (to != 0 &&
            ms_map_get(&s->cell_names, ms_str_sub(of, 0, to)) >
                ms_map_get(&s->cell_names, ms_str_sub(k->cells, 0, other_instance(of, k->cells))))
            return move_to_instance(s, k, of, to, err);
    }
    return MS_OK;
}

/* Puts a gradient into the cell of its forward operator; a sum of several gradients has no cell. */
static void find_cell_of_gradient(struct probe__graph_shape *s, size_t at)
{
    struct probe__kernel *k = &s->g->kernels.p[at];
    if (s->forward_of[at] != MS_MAP_NONE)
        k->cells = s->g->kernels.p[s->forward_of[at]].cells;
    else if (s->is_backward[at] && ms_str_is(k->scope.op, "AddN"))
        k->cells = MS_STR_NONE;
}

/* ---- cells by the flow of values -------------------------------------------- */

/* The nearest kernels with parameters before or behind a kernel. Their cells are certain, because
 * the compiler does not share code that reads parameters. */
enum { NEAREST = 8 };
struct nearest {
    uint32_t kernel[NEAREST], n;
};

struct flow {
    struct probe__graph_shape *s;
    struct nearest *before, *behind; /* of each kernel */
    bool *is_anchor;                 /* of each kernel: a forward kernel with a parameter */
    bool *runs_once;                 /* of each cell: one of its parameters is taken only once */
    struct ms_map places;            /* cell and source lines of the kernels so far */
    struct probe__cell_paths paths;
};

/* Adds a kernel to a list, unless it is in it or the list is full. */
static void add_nearest(struct nearest *list, uint32_t kernel)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->kernel[i] == kernel)
            return;
    }
    if (list->n < NEAREST)
        list->kernel[list->n++] = kernel;
}

/* Adds what is nearest to a neighbour: the neighbour itself if it has a parameter. */
static void add_neighbour(const struct flow *f, struct nearest *to, const struct nearest *lists,
                          uint32_t neighbour)
{
    if (f->is_anchor[neighbour]) {
        add_nearest(to, neighbour);
        return;
    }
    for (uint32_t i = 0; i < lists[neighbour].n; i++)
        add_nearest(to, lists[neighbour].kernel[i]);
}

/* Returns the forward kernel before `at` that makes a tensor, or MS_MAP_NONE. */
static uint32_t forward_maker(const struct probe__graph_shape *s, size_t at,
                              const struct probe__kernel_tensor *t)
{
    uint32_t maker = s->made_by[t->value];
    bool is_forward = maker != MS_MAP_NONE && maker < at && !s->is_backward[maker];
    return is_forward && t->ndim != 0 ? maker : MS_MAP_NONE;
}

static bool is_forward_kernel(const struct probe__graph_shape *s, size_t at)
{
    return !s->is_backward[at] && s->g->kernels.p[at].scope.phase != PROBE__PHASE_OPTIMIZER;
}

static void find_nearest(struct flow *f)
{
    const struct probe__graph_shape *s = f->s;
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        for (size_t n = k->in.n; n-- > 0 && is_forward_kernel(s, i);) {
            uint32_t maker = forward_maker(s, i, &k->in.p[n]);
            if (maker != MS_MAP_NONE)
                add_neighbour(f, &f->before[i], f->before, maker);
        }
    }
    for (size_t i = s->g->kernels.n; i-- > 0;) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        for (size_t n = 0; n < k->in.n && is_forward_kernel(s, i); n++) {
            uint32_t maker = forward_maker(s, i, &k->in.p[n]);
            if (maker != MS_MAP_NONE)
                add_neighbour(f, &f->behind[maker], f->behind, (uint32_t)i);
        }
    }
}

/* Finds the kernels with parameters, and the cells that run once. Between two calls of one cell
 * there are kernels of other cells. */
static enum ms_rc find_anchors(struct flow *f, struct ms_err *err)
{
    struct probe__graph_shape *s = f->s;
    struct ms_map taken = {0};
    MS_VEC(uint32_t) times = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < s->g->kernels.n && rc == MS_OK; i++) {
        struct ms_str name =
            is_forward_kernel(s, i) ? parameter_taken(s, &s->g->kernels.p[i]) : MS_STR_NONE;
        bool added = false;
        uint32_t at = name.n != 0 ? ms_map_put(&taken, name, &added) : 0;
        uint32_t *count = added ? ms_vec_push(&times) : NULL;
        f->is_anchor[i] = name.n != 0;
        if (at == MS_MAP_NONE || (added && count == NULL))
            rc = ms_no_memory(err);
        else if (name.n != 0)
            times.p[at] = added ? 1 : times.p[at] + 1;
    }
    for (size_t i = 0; i < s->g->kernels.n && rc == MS_OK; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        if (!f->is_anchor[i] || times.p[ms_map_get(&taken, parameter_taken(s, k))] != 1)
            continue;
        for (uint32_t c = ms_map_get(&s->cell_names, k->cells); c != MS_MAP_NONE;
             c = s->cells.p[c].parent)
            f->runs_once[c] = true;
    }
    ms_map_free(&taken);
    ms_vec_free(&times);
    return rc;
}

/* Returns the innermost cell that runs once and has kernels before and behind this kernel. */
static struct ms_str cell_around(const struct flow *f, size_t at)
{
    const struct probe__kernel *k = f->s->g->kernels.p;
    const struct nearest *before = &f->before[at], *behind = &f->behind[at];
    struct ms_str around = MS_STR_NONE;
    for (uint32_t a = 0; a < before->n; a++) {
        for (uint32_t b = 0; b < behind->n; b++) {
            struct ms_str cells =
                common_cells(k[before->kernel[a]].cells, k[behind->kernel[b]].cells);
            uint32_t cell = ms_map_get(&f->s->cell_names, cells);
            if (cells.n > around.n && cell != MS_MAP_NONE && f->runs_once[cell])
                around = cells;
        }
    }
    return around;
}

static bool is_inside(struct ms_str cells, struct ms_str around)
{
    return ms_str_starts(cells, around) &&
           (around.n == 0 || cells.n == around.n || cells.p[around.n] == '/');
}

/* Tells whether an earlier kernel of the cell already has these source lines, and remembers the
 * kernel. */
static enum ms_rc is_named_again(struct flow *f, const struct probe__kernel *k, bool *again,
                                 struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 20};
    bool added = false;
    *again = false;
    if (k->ir == NULL || k->ir->source.n == 0)
        return MS_OK;
    ms_buf_printf(&key, "%.*s\n%016llx", MS_STR_ARG(k->cells),
                  (unsigned long long)ms_str_hash(k->ir->source));
    enum ms_rc rc = ms_buf_check(&key, err);
    if (rc == MS_OK &&
        ms_map_put_copy(&f->places, ms_buf_slice(&key), f->s->arena, &added) == MS_MAP_NONE)
        rc = ms_no_memory(err);
    ms_buf_free(&key);
    *again = !added;
    return rc;
}

/* Corrects the cell of a kernel without parameters, when its name puts it outside of the cell that
 * encloses it, or when its name and source lines are those of another kernel. */
static enum ms_rc correct_cell(struct flow *f, size_t at, struct ms_err *err)
{
    struct probe__kernel *k = &f->s->g->kernels.p[at];
    bool again;
    if (!is_forward_kernel(f->s, at) || f->is_anchor[at])
        return MS_OK;
    struct ms_str around = cell_around(f, at);
    if (!is_inside(k->cells, around)) {
        k->cells = around;
        return MS_OK;
    }
    MS_TRY(is_named_again(f, k, &again, err));
    if (!again)
        return MS_OK;
    struct ms_str makers = cells_of_makers(f->s, at);
    k->cells = is_inside(makers, around) ? makers : around;
    return MS_OK;
}

/* Puts an expanded kernel into the cell of its source lines; false when they tell none. */
static bool find_cell_of_lines(struct flow *f, size_t at)
{
    struct probe__kernel *k = &f->s->g->kernels.p[at];
    struct probe__calls calls;
    uint32_t cell, n;
    if (f->is_anchor[at] || k->ir == NULL)
        return false;
    probe__calls_parse(k->ir->source, &calls);
    if (!probe__calls_follow(&calls, f->s, &f->paths, &cell, &n))
        return false;
    k->cells = cell != MS_MAP_NONE ? f->s->cells.p[cell].cells : MS_STR_NONE;
    return true;
}

static enum ms_rc find_each(struct flow *f, struct ms_err *err)
{
    struct probe__graph_shape *s = f->s;
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        bool is_named = s->g->kernels.p[i].scope.phase != PROBE__PHASE_EXPANDED ||
                        s->is_backward[i] || find_cell_of_lines(f, i);
        if (is_named)
            MS_TRY(find_instance(s, i, err));
        else
            find_cell_of_expanded(s, i);
        MS_TRY(correct_cell(f, i, err));
    }
    return MS_OK;
}

static enum ms_rc follow_flow(struct probe__graph_shape *s, struct ms_err *err)
{
    const size_t n = s->g->kernels.n + 1;
    struct flow f = {.s = s,
                     .before = ms_arena_calloc(s->arena, n, sizeof *f.before),
                     .behind = ms_arena_calloc(s->arena, n, sizeof *f.behind),
                     .is_anchor = ms_arena_calloc(s->arena, n, sizeof *f.is_anchor),
                     .runs_once = ms_arena_calloc(s->arena, s->cells.n + 1, sizeof *f.runs_once)};
    if (f.before == NULL || f.behind == NULL || f.is_anchor == NULL || f.runs_once == NULL)
        return ms_no_memory(err);
    MS_TRY(find_anchors(&f, err));
    find_nearest(&f);
    enum ms_rc rc = probe__cell_paths_make(&f.paths, s, err);
    if (rc == MS_OK)
        rc = find_each(&f, err);
    probe__cell_paths_free(&f.paths);
    ms_map_free(&f.places);
    return rc;
}

enum ms_rc probe__cells_find(struct probe__graph_shape *s, struct ms_err *err)
{
    struct probe__kernel *k = s->g->kernels.p;
    uint32_t index;
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        if (k[i].scope.phase != PROBE__PHASE_OPTIMIZER)
            MS_TRY(add_cell(s, k[i].cells, &index, err));
    }
    return follow_flow(s, err);
}

/* ---- calls are in one piece ------------------------------------------------- */

/* Where the kernels with parameters are, in the order of the program. */
struct spans {
    uint32_t *before;       /* of each kernel: so many of them come before it */
    uint32_t *first, *last; /* of each cell: the first and the last of them in it */
};

static void find_spans(const struct flow *f, struct spans *p)
{
    const struct probe__graph_shape *s = f->s;
    uint32_t n = 0;
    for (uint32_t c = 0; c < s->cells.n; c++)
        p->first[c] = p->last[c] = MS_MAP_NONE;
    for (uint32_t i = 0; i < s->g->kernels.n; i++) {
        p->before[i] = n;
        n += f->is_anchor[i];
        uint32_t c =
            f->is_anchor[i] ? ms_map_get(&s->cell_names, s->g->kernels.p[i].cells) : MS_MAP_NONE;
        for (; c != MS_MAP_NONE; c = s->cells.p[c].parent) {
            p->first[c] = p->first[c] == MS_MAP_NONE ? i : p->first[c];
            p->last[c] = i;
        }
    }
}

/* Tells whether a kernel with a parameter of another cell is between a kernel and a cell. */
static bool is_apart(const struct spans *p, uint32_t cell, uint32_t at)
{
    uint32_t first = p->first[cell], last = p->last[cell];
    if (first == MS_MAP_NONE)
        return false;
    return at > last ? p->before[at] > p->before[last] + 1
                     : at < first && p->before[at] < p->before[first];
}

static struct ms_str cells_of(const struct flow *f, uint32_t cell)
{
    return cell != MS_MAP_NONE ? f->s->cells.p[cell].cells : MS_STR_NONE;
}

/* Returns the cell of a class that a kernel with a parameter runs in, or MS_MAP_NONE. */
static uint32_t running_instance(const struct flow *f, uint32_t anchor, struct ms_str class_name)
{
    const struct probe__graph_shape *s = f->s;
    uint32_t c = anchor != MS_MAP_NONE ? ms_map_get(&s->cell_names, s->g->kernels.p[anchor].cells)
                                       : MS_MAP_NONE;
    while (c != MS_MAP_NONE && !ms_str_eq(s->cells.p[c].class_name, class_name))
        c = s->cells.p[c].parent;
    return c;
}

/* Tells whether a kernel reads what a kernel in a cell has made. */
static bool reads_from(const struct flow *f, uint32_t at, uint32_t cell)
{
    const struct probe__kernel *k = f->s->g->kernels.p;
    for (size_t n = 0; cell != MS_MAP_NONE && n < k[at].in.n; n++) {
        uint32_t maker = forward_maker(f->s, at, &k[at].in.p[n]);
        if (maker != MS_MAP_NONE && is_inside(k[maker].cells, cells_of(f, cell)))
            return true;
    }
    return false;
}

/* Tells whether the value of a kernel leads to a kernel with a parameter in a cell. */
static bool leads_to(const struct flow *f, uint32_t at, uint32_t cell)
{
    for (uint32_t i = 0; cell != MS_MAP_NONE && i < f->behind[at].n; i++) {
        if (is_inside(f->s->g->kernels.p[f->behind[at].kernel[i]].cells, cells_of(f, cell)))
            return true;
    }
    return false;
}

/* Returns the cell of a class that a kernel runs in: one whose values it reads, or one that reads its
 * value, next to it in the order of the program; or MS_MAP_NONE. */
static uint32_t instance_of(const struct flow *f, uint32_t at, uint32_t before, uint32_t behind,
                            struct ms_str class_name)
{
    uint32_t left = running_instance(f, before, class_name);
    uint32_t right = running_instance(f, behind, class_name);
    return reads_from(f, at, left) ? left : leads_to(f, at, right) ? right : MS_MAP_NONE;
}

/* Takes a kernel out of cells that run once and are not running there. Names are those of the first
 * cell of a class, so it may run in another one. */
static void leave_cells(const struct flow *f, const struct spans *p, uint32_t at, uint32_t before,
                        uint32_t behind)
{
    const struct probe__graph_shape *s = f->s;
    struct probe__kernel *k = &s->g->kernels.p[at];
    uint32_t c = ms_map_get(&s->cell_names, k->cells);
    while (c != MS_MAP_NONE && f->runs_once[c] && is_apart(p, c, at)) {
        uint32_t other = instance_of(f, at, before, behind, s->cells.p[c].class_name);
        c = other != MS_MAP_NONE ? other : s->cells.p[c].parent;
        k->cells = cells_of(f, c);
        if (other != MS_MAP_NONE)
            return;
    }
}

/* Puts a kernel into the inner cell of the class in its name, next to it in the order of the program. */
static void enter_instance(const struct flow *f, uint32_t at, uint32_t before, uint32_t behind)
{
    const struct probe__graph_shape *s = f->s;
    struct probe__kernel *k = &s->g->kernels.p[at];
    uint32_t named = ms_map_get(&s->cell_names, k->scope.cells);
    if (named == MS_MAP_NONE || is_inside(k->cells, k->scope.cells))
        return;
    uint32_t c = instance_of(f, at, before, behind, s->cells.p[named].class_name);
    if (c != MS_MAP_NONE && is_inside(cells_of(f, c), k->cells))
        k->cells = cells_of(f, c);
}

/* Puts a kernel into the cell that runs once and has kernels with parameters around it. */
static void enter_cell(const struct flow *f, uint32_t at, uint32_t before, uint32_t behind)
{
    struct probe__kernel *k = f->s->g->kernels.p;
    if (before == MS_MAP_NONE || behind == MS_MAP_NONE)
        return;
    struct ms_str around = common_cells(k[before].cells, k[behind].cells);
    uint32_t cell = ms_map_get(&f->s->cell_names, around);
    if (cell != MS_MAP_NONE && f->runs_once[cell] && !is_inside(k[at].cells, around))
        k[at].cells = around;
}

static void settle_cells(const struct flow *f, const struct spans *p, uint32_t *behind)
{
    const size_t n = f->s->g->kernels.n;
    uint32_t before = MS_MAP_NONE, next = MS_MAP_NONE;
    for (size_t i = n; i-- > 0;) {
        behind[i] = next;
        next = f->is_anchor[i] ? (uint32_t)i : next;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (f->is_anchor[i])
            before = i;
        if (!is_forward_kernel(f->s, i) || f->is_anchor[i])
            continue;
        leave_cells(f, p, i, before, behind[i]);
        enter_cell(f, i, before, behind[i]);
        enter_instance(f, i, before, behind[i]);
    }
}

enum ms_rc probe__cells_settle(struct probe__graph_shape *s, struct ms_err *err)
{
    const size_t n = s->g->kernels.n + 1, cells = s->cells.n + 1;
    struct flow f = {.s = s,
                     .before = ms_arena_calloc(s->arena, n, sizeof *f.before),
                     .behind = ms_arena_calloc(s->arena, n, sizeof *f.behind),
                     .is_anchor = ms_arena_calloc(s->arena, n, sizeof *f.is_anchor),
                     .runs_once = ms_arena_calloc(s->arena, cells, sizeof *f.runs_once)};
    struct spans p = {.before = ms_arena_alloc(s->arena, n * sizeof *p.before),
                      .first = ms_arena_alloc(s->arena, cells * sizeof *p.first),
                      .last = ms_arena_alloc(s->arena, cells * sizeof *p.last)};
    uint32_t *behind = ms_arena_alloc(s->arena, n * sizeof *behind);
    if (f.before == NULL || f.behind == NULL || f.is_anchor == NULL || f.runs_once == NULL ||
        p.before == NULL || p.first == NULL || p.last == NULL || behind == NULL)
        return ms_no_memory(err);
    MS_TRY(find_anchors(&f, err));
    find_nearest(&f);
    find_spans(&f, &p);
    settle_cells(&f, &p, behind);
    for (size_t i = 0; i < s->g->kernels.n; i++)
        find_cell_of_gradient(s, i);
    return MS_OK;
}
