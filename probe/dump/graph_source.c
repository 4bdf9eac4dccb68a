/* SPDX-License-Identifier: MIT
 *
 * graph_source: parses the source lines of kernels, and sorts kernels by them.
 */
#include "probe/dump/graph_source.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdlib.h>

/* ---- lines ------------------------------------------------------------ */

/* Takes a number off the start of *s. */
static bool take_number(struct ms_str *s, uint64_t *number)
{
    uint32_t n = 0;
    while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
        n++;
    bool fine = n != 0 && ms_str_u64(ms_str_sub(*s, 0, n), number);
    *s = ms_str_sub(*s, n, s->n);
    return fine;
}

static bool take_char(struct ms_str *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = ms_str_sub(*s, 1, s->n);
    return true;
}

static bool is_word(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_')
            return false;
    }
    return s.n != 0;
}

/* Sets the attribute when columns of the line are "self.ATTRIBUTE". */
static void find_attribute(struct ms_str line, uint64_t from, uint64_t to, struct probe__call *call)
{
    const struct ms_str self = MS_STR("self.");
    if (from > to || to > line.n)
        return;
    struct ms_str called = ms_str_sub(line, (uint32_t)from, (uint32_t)to);
    struct ms_str name = ms_str_sub(called, self.n, called.n);
    if (ms_str_starts(called, self) && is_word(name))
        call->attribute = name;
}

/* Returns the column behind a call whose name ends at `at`. Arguments are computed before the call,
 * so calls of one line run in the order of their ends. */
static uint64_t end_of_call(struct ms_str line, uint64_t at)
{
    int depth = 0;
    uint64_t i = at;
    if (at >= line.n || line.p[at] != '(')
        return at;
    for (; i < line.n; i++) {
        depth += (line.p[i] == '(') - (line.p[i] == ')');
        if (depth == 0)
            break;
    }
    return i;
}

/* Parses one line behind "# In file ". */
static void add_line(struct probe__calls *calls, struct ms_str line)
{
    struct ms_str rest = line, path;
    uint64_t row = 0, from = 0, to = 0;
    if (!ms_str_split(&rest, ':', &path) || !take_number(&rest, &row))
        return;
    if (take_char(&rest, '~')) { /* a function or block */
        if (calls->n != 0 && ms_str_find_str(rest, MS_STR("def construct(")) >= 0)
            calls->list[calls->n - 1].enters_cell = true;
        return;
    }
    if (calls->n == PROBE__CALLS_MAX || !take_char(&rest, ',') || !take_char(&rest, ' ') ||
        !take_number(&rest, &from) || !take_char(&rest, '~') || !take_number(&rest, &to) ||
        !take_char(&rest, '/'))
        return;
    struct probe__call *call = &calls->list[calls->n++];
    *call = (struct probe__call){.place = row << 16 | (end_of_call(rest, to) & 0xffff)};
    find_attribute(rest, from, to, call);
}

void probe__calls_parse(struct ms_str source, struct probe__calls *calls)
{
    const struct ms_str word = MS_STR("# In file ");
    struct ms_str line;
    calls->n = 0;
    while (ms_str_split(&source, '\n', &line)) {
        int64_t at = ms_str_find_str(line, word);
        if (at >= 0)
            add_line(calls, ms_str_sub(line, (uint32_t)at + word.n, line.n));
    }
}

/* ---- cells ------------------------------------------------------------ */

enum ms_rc probe__cell_paths_make(struct probe__cell_paths *paths,
                                  const struct probe__graph_shape *s, struct ms_err *err)
{
    *paths = (struct probe__cell_paths){0};
    for (uint32_t i = 0; i < s->cells.n; i++) {
        bool added = false;
        uint32_t at = ms_map_put(&paths->names, s->cells.p[i].path, &added);
        uint32_t *slot = added ? ms_vec_push(&paths->cells) : NULL;
        if (at == MS_MAP_NONE || (added && slot == NULL))
            return ms_no_memory(err);
        if (added)
            *slot = i;
    }
    return MS_OK;
}

void probe__cell_paths_free(struct probe__cell_paths *paths)
{
    ms_map_free(&paths->names);
    ms_vec_free(&paths->cells);
}

/* Returns the cell `attribute` in a cell, or MS_MAP_NONE. */
static uint32_t inner_cell(const struct probe__graph_shape *s,
                           const struct probe__cell_paths *paths, uint32_t cell,
                           struct ms_str attribute)
{
    struct ms_buf b = {.max = 1 << 16};
    if (cell != MS_MAP_NONE)
        ms_buf_printf(&b, "%.*s.", MS_STR_ARG(s->cells.p[cell].path));
    ms_buf_str(&b, attribute);
    uint32_t at = b.bad == MS_OK ? ms_map_get(&paths->names, ms_buf_slice(&b)) : MS_MAP_NONE;
    ms_buf_free(&b);
    return at != MS_MAP_NONE ? paths->cells.p[at] : MS_MAP_NONE;
}

/* Tells whether an attribute is one by which the framework's cells around a model hold it. */
static bool holds_model(struct ms_str attribute)
{
    return ms_str_is(attribute, "network") || ms_str_is(attribute, "_backbone") ||
           ms_str_is(attribute, "_loss_fn") || ms_str_is(attribute, "_no_sens_impl");
}

bool probe__calls_follow(const struct probe__calls *calls, const struct probe__graph_shape *s,
                         const struct probe__cell_paths *paths, uint32_t *cell, uint32_t *n)
{
    *cell = MS_MAP_NONE;
    *n = 0;
    for (uint32_t i = 0; i < calls->n; i++) {
        const struct probe__call *call = &calls->list[i];
        uint32_t inner =
            call->attribute.n != 0 ? inner_cell(s, paths, *cell, call->attribute) : MS_MAP_NONE;
        bool is_outside = *cell == MS_MAP_NONE && holds_model(call->attribute);
        if (inner == MS_MAP_NONE && call->enters_cell && !is_outside)
            return false;
        if (inner == MS_MAP_NONE && !is_outside)
            continue;
        *cell = inner;
        *n = i + 1;
    }
    return calls->n != 0;
}

/* ---- order ------------------------------------------------------------ */

/* The places of the calls that lead to a kernel, compared one by one. */
struct key {
    const uint64_t *place;
    uint32_t n;
};

struct placed {
    struct probe__kernel kernel;
    struct key key;
    uint32_t executed; /* index in the order of execution */
    size_t first_in;   /* of its inputs in `makers` */
    bool is_forward, is_backward, is_update, is_saved;
    bool is_certain; /* it takes a parameter, so its source lines are its own */
    bool is_open;    /* its source lines are those of an earlier call, and it has no key yet */
};

struct sorting {
    struct probe__graph_shape *s;
    struct probe__cell_paths paths;
    struct key *cells; /* of each cell: the calls that lead into it */
    struct placed *list;
    uint32_t *makers; /* of each input of each kernel: the kernel that makes it, or MS_MAP_NONE */
};

static int compare_keys(struct key a, struct key b)
{
    for (uint32_t i = 0; i < a.n && i < b.n; i++) {
        if (a.place[i] != b.place[i])
            return a.place[i] < b.place[i] ? -1 : 1;
    }
    return (a.n > b.n) - (a.n < b.n);
}

/* Compares the places of two kernels in the graph's text, which names operands before the operators
 * that take them, the left one first, as Python evaluates them. */
static int compare_texts(const struct placed *x, const struct placed *y)
{
    const struct probe__ir_kernel *a = x->kernel.ir, *b = y->kernel.ir;
    if (a == NULL || b == NULL || x->kernel.of != y->kernel.of || !x->is_forward)
        return 0;
    return (a > b) - (a < b);
}

static int by_program(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->kernel.graph != y->kernel.graph)
        return x->kernel.graph < y->kernel.graph ? -1 : 1;
    if (x->is_forward != y->is_forward)
        return x->is_forward ? -1 : 1;
    if (x->is_update != y->is_update) /* a program updates when it has all gradients */
        return y->is_update ? -1 : 1;
    int c = x->is_forward ? compare_keys(x->key, y->key) : 0;
    c = c != 0 ? c : compare_texts(x, y);
    return c != 0 ? c : (x->executed > y->executed) - (x->executed < y->executed);
}

/* Joins the places of `first` with those of the calls from `from` on. */
static enum ms_rc make_key(struct sorting *w, struct key first, const struct probe__calls *calls,
                           uint32_t from, struct key *out, struct ms_err *err)
{
    uint64_t *place = ms_arena_alloc(w->s->arena, (first.n + calls->n + 1) * sizeof *place);
    if (place == NULL)
        return ms_no_memory(err);
    *out = (struct key){place, 0};
    for (uint32_t i = 0; i < first.n; i++)
        place[out->n++] = first.place[i];
    for (uint32_t i = from; i < calls->n; i++)
        place[out->n++] = calls->list[i].place;
    return MS_OK;
}

static uint32_t cell_of(const struct sorting *w, const struct probe__kernel *k)
{
    return ms_map_get(&w->s->cell_names, k->cells);
}

/* Notes for the cells around a kernel with a parameter how the program calls them. Source lines of
 * such kernels are their own. */
static enum ms_rc note_cells(struct sorting *w, const struct probe__kernel *k, struct ms_err *err)
{
    struct probe__calls calls;
    uint32_t cell, n;
    probe__calls_parse(k->ir->source, &calls);
    while (probe__calls_follow(&calls, w->s, &w->paths, &cell, &n) && cell != MS_MAP_NONE) {
        calls.n = n;
        if (w->cells[cell].n == 0 && cell < w->s->cells.n)
            MS_TRY(make_key(w, (struct key){0}, &calls, 0, &w->cells[cell], err));
        calls.n--; /* then the cell around it */
    }
    return MS_OK;
}

static bool takes_parameter(const struct probe__kernel *k)
{
    for (size_t i = 0; i < k->in.n; i++) {
        const struct probe__ir_argument *a = probe__kernel_argument(k, &k->in.p[i]);
        if (a != NULL && a->kind == PROBE__IR_PARAMETER)
            return true;
    }
    return false;
}

/* Makes the key of a kernel: the calls into its cell, and those behind them. */
static enum ms_rc find_key(struct sorting *w, const struct probe__kernel *k, struct key *key,
                           struct ms_err *err)
{
    struct probe__calls calls;
    uint32_t named, n, cell = cell_of(w, k);
    if (k->ir == NULL)
        return MS_OK;
    probe__calls_parse(k->ir->source, &calls);
    bool is_known = probe__calls_follow(&calls, w->s, &w->paths, &named, &n) && named != cell &&
                    cell != MS_MAP_NONE && w->cells[cell].n != 0;
    return is_known ? make_key(w, w->cells[cell], &calls, n, key, err)
                    : make_key(w, (struct key){0}, &calls, 0, key, err);
}

/* Tells whether a kernel makes an input, as far as is known. Constants often equal the single number
 * that some kernel outputs. */
static bool is_made(const struct probe__kernel *k, const struct probe__kernel_tensor *in)
{
    const struct probe__ir_argument *a = probe__kernel_argument(k, in);
    return in->ndim != 0 || (a != NULL && a->kind == PROBE__IR_KERNEL);
}

/* Calls `then` for each input of a forward kernel that another forward kernel makes: the last one
 * before it, because a view outputs the value of its input again. */
static void each_maker(struct sorting *w, uint32_t at,
                       void (*then)(struct placed *, struct placed *))
{
    struct placed *p = &w->list[at];
    for (size_t i = 0; i < p->kernel.in.n && p->is_forward; i++) {
        uint32_t maker = w->makers[p->first_in + i];
        if (maker != MS_MAP_NONE && w->list[maker].is_forward &&
            is_made(&p->kernel, &p->kernel.in.p[i]))
            then(p, &w->list[maker]);
    }
}

/* A kernel whose lines may be of another place runs before those that take its values, */
static void lower_key(struct placed *taker, struct placed *maker)
{
    if (taker->is_open || maker->is_certain)
        return;
    if (maker->is_open || compare_keys(taker->key, maker->key) < 0)
        maker->key = taker->key;
    maker->is_open = false;
}

/* and each kernel runs behind the makers of its inputs. */
static void raise_key(struct placed *taker, struct placed *maker)
{
    if (compare_keys(maker->key, taker->key) > 0)
        taker->key = maker->key;
}

static enum ms_rc find_makers(struct sorting *w, struct ms_err *err)
{
    struct probe__graph_shape *s = w->s;
    size_t inputs = 0;
    for (size_t i = 0; i < s->g->kernels.n; i++) {
        w->list[i].first_in = inputs;
        inputs += s->g->kernels.p[i].in.n;
    }
    uint32_t *last = ms_arena_alloc(s->arena, (s->g->value_count + 1) * sizeof *last);
    w->makers = ms_arena_alloc(s->arena, (inputs + 1) * sizeof *w->makers);
    if (last == NULL || w->makers == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < s->g->value_count; i++)
        last[i] = MS_MAP_NONE;
    for (uint32_t i = 0; i < s->g->kernels.n; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        for (size_t n = 0; n < k->in.n; n++)
            w->makers[w->list[i].first_in + n] = last[k->in.p[n].value];
        for (size_t n = 0; n < k->out.n; n++)
            last[k->out.p[n].value] = i;
    }
    return MS_OK;
}

/* Of two kernels with the same source lines opens the later one in the text; returns the other. */
static uint32_t open_later(struct sorting *w, uint32_t holder, uint32_t other)
{
    bool is_before = compare_texts(&w->list[other], &w->list[holder]) < 0;
    w->list[is_before ? holder : other].is_open = true;
    return is_before ? other : holder;
}

/* Opens kernels without parameters whose source lines an earlier kernel has. The compiler keeps one
 * copy of a function that a program calls several times, with the lines of one call. */
static enum ms_rc open_repeated(struct sorting *w, struct ms_err *err)
{
    const size_t n = w->s->g->kernels.n;
    struct ms_map lines = {0}; /* source lines <-> index in `holder` */
    uint32_t *holder = ms_arena_alloc(w->s->arena, (n + 1) * sizeof *holder), at = 0;
    for (uint32_t i = 0; i < n && holder != NULL && at != MS_MAP_NONE; i++) {
        const struct placed *p = &w->list[i];
        bool added = false;
        if (!p->is_forward || p->is_certain || p->kernel.ir == NULL || p->kernel.ir->source.n == 0)
            continue;
        at = ms_map_put(&lines, p->kernel.ir->source, &added);
        if (at != MS_MAP_NONE)
            holder[at] = added ? i : open_later(w, holder[at], i);
    }
    ms_map_free(&lines);
    return holder != NULL && at != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
}

static enum ms_rc fill_list(struct sorting *w, struct ms_err *err)
{
    struct probe__graph_shape *s = w->s;
    for (uint32_t i = 0; i < s->g->kernels.n; i++) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        bool is_update = !s->is_backward[i] && k->scope.phase == PROBE__PHASE_OPTIMIZER;
        bool is_forward = !s->is_backward[i] && !is_update;
        w->list[i] = (struct placed){.kernel = *k,
                                     .executed = i,
                                     .is_forward = is_forward,
                                     .is_backward = s->is_backward[i],
                                     .is_update = is_update,
                                     .is_saved = s->is_saved[i]};
        w->list[i].is_certain = is_forward && k->ir != NULL && takes_parameter(k);
        if (w->list[i].is_certain)
            MS_TRY(note_cells(w, k, err));
    }
    MS_TRY(open_repeated(w, err));
    for (uint32_t i = 0; i < s->g->kernels.n; i++) {
        if (w->list[i].is_forward && !w->list[i].is_open)
            MS_TRY(find_key(w, &w->list[i].kernel, &w->list[i].key, err));
    }
    MS_TRY(find_makers(w, err));
    for (uint32_t i = (uint32_t)s->g->kernels.n; i-- > 0;)
        each_maker(w, i, lower_key);
    for (uint32_t i = 0; i < s->g->kernels.n; i++)
        each_maker(w, i, raise_key);
    return MS_OK;
}

static void find_first_makers(struct probe__graph_shape *s)
{
    for (size_t i = 0; i < s->g->value_count; i++)
        s->made_by[i] = MS_MAP_NONE;
    for (size_t i = s->g->kernels.n; i-- > 0;) {
        const struct probe__kernel *k = &s->g->kernels.p[i];
        for (size_t n = 0; n < k->out.n; n++)
            s->made_by[k->out.p[n].value] = (uint32_t)i;
    }
}

/* Puts the kernels, and all that refers to them, into the order of the list. */
static void apply_order(struct sorting *w, uint32_t *moved_to, uint32_t *forward_of)
{
    struct probe__graph_shape *s = w->s;
    for (uint32_t i = 0; i < s->g->kernels.n; i++) {
        const struct placed *p = &w->list[i];
        ms_assert(p->executed < s->g->kernels.n);
        s->g->kernels.p[i] = p->kernel;
        s->is_backward[i] = p->is_backward;
        s->is_saved[i] = p->is_saved;
        moved_to[p->executed] = i;
        forward_of[i] = s->forward_of[p->executed];
    }
    for (uint32_t i = 0; i < s->g->kernels.n; i++)
        s->forward_of[i] = forward_of[i] != MS_MAP_NONE ? moved_to[forward_of[i]] : MS_MAP_NONE;
    find_first_makers(s);
}

enum ms_rc probe__sort_as_program(struct probe__graph_shape *s, struct ms_err *err)
{
    const size_t n = s->g->kernels.n + 1;
    struct sorting w = {.s = s,
                        .cells = ms_arena_calloc(s->arena, s->cells.n + 1, sizeof *w.cells),
                        .list = ms_alloc(n * sizeof *w.list)};
    uint32_t *moved = ms_arena_alloc(s->arena, 2 * n * sizeof *moved);
    enum ms_rc rc = w.cells != NULL && w.list != NULL && moved != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = probe__cell_paths_make(&w.paths, s, err);
    if (rc == MS_OK)
        rc = fill_list(&w, err);
    if (rc == MS_OK && n > 1) {
        qsort(w.list, n - 1, sizeof *w.list, by_program);
        apply_order(&w, moved, moved + n);
    }
    probe__cell_paths_free(&w.paths);
    ms_free(w.list);
    return rc;
}
