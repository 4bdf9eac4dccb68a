/* SPDX-License-Identifier: MIT
 *
 * graph_read: reads one step of MindSpore's dump of compiled graphs.
 */
#include "probe/dump/graph_read.h"
#include "probe/dump/graph_match.h"
#include "probe/dump/graph_values.h"
#include "probe/dump/graph_views.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX ((size_t)10 << 30) /* the limit of other tensor files, too */

/* Appends the key "NAME#GRAPH" to an empty buffer, with underscores for slashes, which files and csv have in common. */
static enum ms_rc kernel_key(struct ms_buf *key, struct ms_str scope, uint64_t graph,
                             struct ms_err *err)
{
    for (uint32_t i = 0; i < scope.n; i++)
        ms_buf_putc(key, scope.p[i] == '/' ? '_' : scope.p[i]);
    ms_buf_printf(key, "#%llu", (unsigned long long)graph);
    return ms_buf_check(key, err);
}

/* ---- order ------------------------------------------------------------ */

static enum ms_rc add_kernel(struct probe__graph *g, struct ms_str full, uint64_t graph,
                             uint32_t *index, struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 16};
    bool added = false;
    enum ms_rc rc = kernel_key(&key, full, graph, err);
    uint32_t other = rc == MS_OK ? ms_map_get(&g->others, ms_buf_slice(&key)) : MS_MAP_NONE;
    if (other != MS_MAP_NONE)
        *index = g->renamed.p[other];
    else if (rc == MS_OK)
        *index = ms_map_put_copy(&g->names, ms_buf_slice(&key), g->arena, &added);
    ms_buf_free(&key);
    MS_TRY(rc);
    if (!added)
        return *index != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
    struct probe__kernel *k = ms_vec_push(&g->kernels);
    if (k == NULL)
        return ms_no_memory(err);
    *k = (struct probe__kernel){
        .full = ms_arena_str(g->arena, full), .graph = graph, .order = (uint32_t)g->kernels.n};
    return k->full.p != NULL ? MS_OK : ms_no_memory(err);
}

/* Reads the execution order; each line behind the title is a kernel's full name. */
static enum ms_rc read_order(struct probe__graph *g, const char *net, uint64_t graph,
                             struct ms_err *err)
{
    char path[PATH_MAX];
    struct ms_file file;
    int n = snprintf(path, sizeof path, "%s/../execution_order/ms_execution_order_graph_%llu.csv",
                     net, (unsigned long long)graph);
    if (n < 0 || (size_t)n >= sizeof path || ms_path_kind(path) != MS_KIND_FILE)
        return MS_OK; /* without the csv, kernels are in the order of their files */
    MS_TRY(ms_file_map(&file, path, UINT32_MAX, err));
    struct ms_str rest = {file.p, (uint32_t)file.n}, line;
    enum ms_rc rc = MS_OK;
    ms_str_split(&rest, '\n', &line);
    while (rc == MS_OK && ms_str_split(&rest, '\n', &line)) {
        uint32_t index;
        if (ms_str_ends(line, MS_STR("\r")))
            line.n--;
        if (line.n != 0)
            rc = add_kernel(g, line, graph, &index, err);
    }
    ms_file_unmap(&file);
    return rc == MS_OK ? MS_OK : ms_err_wrap(err, "%s", path);
}

/* ---- kernels with other numbers in files than in the csv --------------------- */

/* A kernel name split into base and number. */
struct numbered {
    struct ms_str base;
    uint64_t number; /* for expanded kernels: the time of the file, or the place in the csv */
    struct ms_str name;
    uint32_t kernel;
};
typedef MS_VEC(struct numbered) numbered_list;

static int by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    int c = ms_str_cmp(x->base, y->base);
    if (c != 0)
        return c;
    return x->number < y->number ? -1 : x->number > y->number;
}

static enum ms_rc add_numbered(numbered_list *list, struct ms_str name, uint32_t kernel,
                               struct ms_err *err)
{
    int64_t at = ms_str_rfind(name, '-');
    struct numbered *n = ms_vec_push(list);
    if (n == NULL)
        return ms_no_memory(err);
    *n = (struct numbered){.base = ms_str_sub(name, 0, at < 0 ? name.n : (uint32_t)at),
                           .name = name,
                           .kernel = kernel};
    if (at >= 0 && !ms_str_u64(ms_str_sub(name, (uint32_t)at + 3, name.n), &n->number))
        n->number = 0;
    return MS_OK;
}

/* Tells whether a name, with slashes or underscores, is of a kernel that the compiler has expanded
 * from an operator. The numbers of such kernels in files and csv have no relation: both only count.
 */
static bool is_expanded(struct ms_str name)
{
    return ms_str_starts(name, MS_STR("Expand"));
}

/* Lists the kernels of the csv by their names in files, without the "#GRAPH" at the end. */
static enum ms_rc list_kernels(const struct probe__graph *g, uint64_t graph, numbered_list *list,
                               struct ms_err *err)
{
    for (uint32_t i = 0; i < g->kernels.n; i++) {
        struct ms_str key = ms_map_key(&g->names, i);
        if (g->kernels.p[i].graph != graph)
            continue;
        MS_TRY(add_numbered(list, ms_str_sub(key, 0, (uint32_t)ms_str_rfind(key, '#')), i, err));
        if (is_expanded(key))
            list->p[list->n - 1].number = i;
    }
    return MS_OK;
}

static enum ms_rc list_files(const struct ms_dir *d, numbered_list *list, struct ms_err *err)
{
    struct probe__kernel_file file;
    struct ms_map known = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < d->names.n && rc == MS_OK; i++) {
        bool added = false;
        if (!probe__kernel_file_parse(d->names.p[i], &file) || ms_str_is(file.op, "Parameter"))
            continue;
        if (ms_map_put(&known, file.scope, &added) == MS_MAP_NONE)
            rc = ms_no_memory(err);
        else if (added)
            rc = add_numbered(list, file.scope, 0, err);
        if (added && rc == MS_OK && is_expanded(file.scope))
            list->p[list->n - 1].number = file.time;
    }
    ms_map_free(&known);
    return rc;
}

static bool has_all(const struct probe__graph *g, uint64_t graph, const numbered_list *files)
{
    bool has = true;
    for (size_t i = 0; i < files->n && has; i++) {
        struct ms_buf key = {.max = 1 << 16};
        has = kernel_key(&key, files->p[i].name, graph, NULL) == MS_OK &&
              ms_map_get(&g->names, ms_buf_slice(&key)) != MS_MAP_NONE;
        ms_buf_free(&key);
    }
    return has;
}

static enum ms_rc rename_kernel(struct probe__graph *g, uint64_t graph, struct ms_str name,
                                uint32_t kernel, struct ms_err *err)
{
    struct ms_buf key = {.max = 1 << 16};
    bool added = false;
    enum ms_rc rc = kernel_key(&key, name, graph, err);
    uint32_t at =
        rc == MS_OK ? ms_map_put_copy(&g->others, ms_buf_slice(&key), g->arena, &added) : 0;
    uint32_t *slot = rc == MS_OK && added ? ms_vec_push(&g->renamed) : NULL;
    ms_buf_free(&key);
    MS_TRY(rc);
    if (at == MS_MAP_NONE || (added && slot == NULL))
        return ms_no_memory(err);
    if (added)
        *slot = kernel;
    return MS_OK;
}

/* Returns the number of entries from `at` on with the same base name. */
static size_t count_base(const numbered_list *list, size_t at)
{
    size_t n = 0;
    while (at + n < list->n && ms_str_eq(list->p[at + n].base, list->p[at].base))
        n++;
    return n;
}

/* Pairs names of files with kernels of the csv: the n-th of each base name with the n-th. With
 * `same_names`, only expanded kernels, and only where all of a base name are in files. */
static enum ms_rc pair_in_order(struct probe__graph *g, uint64_t graph, const numbered_list *files,
                                const numbered_list *kernels, bool same_names, struct ms_err *err)
{
    size_t f = 0, k = 0;
    while (f < files->n && k < kernels->n) {
        int c = ms_str_cmp(files->p[f].base, kernels->p[k].base);
        size_t in_files = c <= 0 ? count_base(files, f) : 0;
        size_t in_csv = c >= 0 ? count_base(kernels, k) : 0;
        bool is_kept = same_names && (in_files != in_csv || !is_expanded(files->p[f].base));
        for (size_t i = 0; c == 0 && !is_kept && i < in_files && i < in_csv; i++)
            MS_TRY(rename_kernel(g, graph, files->p[f + i].name, kernels->p[k + i].kernel, err));
        f += in_files;
        k += in_csv;
    }
    return MS_OK;
}

/* Matches files to kernels when their numbers differ, as they do after a graph was compiled again
 * and for expanded kernels. */
static enum ms_rc match_names(struct probe__graph *g, uint64_t graph, const struct ms_dir *d,
                              struct ms_err *err)
{
    numbered_list files = {0}, kernels = {0};
    enum ms_rc rc = list_files(d, &files, err);
    const bool same_names = rc == MS_OK && has_all(g, graph, &files);
    if (rc == MS_OK)
        rc = list_kernels(g, graph, &kernels, err);
    if (rc == MS_OK && files.n != 0 && kernels.n != 0) {
        qsort(files.p, files.n, sizeof *files.p, by_number);
        qsort(kernels.p, kernels.n, sizeof *kernels.p, by_number);
        rc = pair_in_order(g, graph, &files, &kernels, same_names, err);
    }
    ms_vec_free(&files);
    ms_vec_free(&kernels);
    return rc;
}

/* ---- tensors ---------------------------------------------------------- */

/* Returns a number for the bytes of a tensor, which is the same for equal bytes of one type. */
static uint32_t number_of(struct probe__graph *g, const struct probe_tensor *t)
{
    char key[64];
    uint32_t crc = 0;
    size_t size = ms_dtype_size(t->dtype);
    uint64_t one;
    for (uint64_t at = 0; at < t->count; at += MS_STATS_BLOCK) {
        uint64_t n = t->count - at < MS_STATS_BLOCK ? t->count - at : MS_STATS_BLOCK;
        char scratch[(size_t)MS_STATS_BLOCK * 16];
        crc = ms_crc32(crc, probe_tensor_elements(t, at, n, scratch), (size_t)n * size);
    }
    one = t->count == 1 && t->ndim == 0;
    int n = snprintf(key, sizeof key, "%d %llu %llu %x", (int)t->dtype,
                     (unsigned long long)t->count, (unsigned long long)one, crc);
    return ms_map_put_copy(&g->values, (struct ms_str){key, (uint32_t)n}, g->arena, NULL);
}

/* Reads a tensor file. A file that cannot be read is counted and left out. */
static enum ms_rc read_tensor(struct probe__graph *g, const char *net, struct ms_str name,
                              struct probe__kernel_tensor *out, bool *is_read, struct ms_err *err)
{
    char path[PATH_MAX];
    struct probe_tensor t;
    struct ms_err why = {0};
    int n = snprintf(path, sizeof path, "%s/%.*s", net, MS_STR_ARG(name));
    *is_read =
        n > 0 && (size_t)n < sizeof path && probe_tensor_open(&t, path, FILE_MAX, &why) == MS_OK;
    if (!*is_read)
        return g->unread++, MS_OK;
    out->name = name;
    out->dtype = t.dtype;
    out->ndim = t.ndim;
    memcpy(out->shape, t.shape, sizeof out->shape);
    out->value = number_of(g, &t);
    probe_tensor_stats(&t, &out->stats);
    probe_tensor_close(&t);
    return out->value != MS_MAP_NONE ? MS_OK : ms_no_memory(err);
}

static enum ms_rc add_tensor(struct probe__graph *g, uint64_t graph,
                             const struct probe__kernel_file *file,
                             const struct probe__kernel_tensor *t, struct ms_err *err)
{
    uint32_t index;
    MS_TRY(add_kernel(g, file->scope, graph, &index, err));
    struct probe__kernel *k = &g->kernels.p[index];
    struct probe__kernel_tensor *slot = file->is_input ? ms_vec_push(&k->in) : ms_vec_push(&k->out);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = *t;
    return MS_OK;
}

static enum ms_rc read_file(struct probe__graph *g, const char *net, uint64_t graph,
                            struct ms_str name, struct ms_err *err)
{
    struct probe__kernel_file file;
    struct probe__kernel_tensor t = {0};
    bool is_read;
    if (!probe__kernel_file_parse(ms_str_sub(name, (uint32_t)(ms_str_rfind(name, '/') + 1), name.n),
                                  &file) ||
        ms_str_is(file.op, "Parameter")) /* kernels have files of the parameter, too */
        return MS_OK;
    t.slot = file.slot;
    MS_TRY(read_tensor(g, net, name, &t, &is_read, err));
    if (!is_read)
        return MS_OK;
    return add_tensor(g, graph, &file, &t, err);
}

static enum ms_rc read_files(struct probe__graph *g, const char *net, const char *below,
                             uint64_t graph, struct ms_err *err)
{
    char path[PATH_MAX];
    struct ms_dir d;
    snprintf(path, sizeof path, "%s/%s", net, below);
    MS_TRY(ms_dir_list(&d, path, err));
    enum ms_rc rc = match_names(g, graph, &d, err);
    for (size_t i = 0; i < d.names.n && rc == MS_OK; i++) {
        struct ms_buf name = {.max = PATH_MAX};
        ms_buf_printf(&name, "%s/%.*s", below, MS_STR_ARG(d.names.p[i]));
        struct ms_str kept = ms_arena_str(g->arena, ms_buf_slice(&name));
        ms_buf_free(&name);
        rc = kept.p != NULL ? read_file(g, net, graph, kept, err) : ms_no_memory(err);
    }
    ms_dir_free(&d);
    return rc;
}

/* ---- all graphs of an iteration ----------------------------------------- */

static int by_graph_and_order(const void *a, const void *b)
{
    const struct probe__kernel *x = a, *y = b;
    if (x->graph != y->graph)
        return x->graph < y->graph ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_slot(const void *a, const void *b)
{
    const struct probe__kernel_tensor *x = a, *y = b;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Drops kernels without a file: they did not run in this iteration or were not selected for
 * dumping. */
static void drop_empty(struct probe__graph *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->kernels.n; i++) {
        if (g->kernels.p[i].in.n + g->kernels.p[i].out.n != 0)
            g->kernels.p[kept++] = g->kernels.p[i];
    }
    g->kernels.n = kept;
}

/* Tells whether a kernel's name is of one that writes a parameter's next value. */
static bool is_update(struct ms_str op)
{
    return ms_str_starts(op, MS_STR("Apply")) || ms_str_starts(op, MS_STR("Adam")) ||
           ms_str_is(op, "SGD");
}

/* An optimizer that the program itself calls with gradients is a graph of its own, whose kernels are named as if no
 * cell held them: a graph that updates parameters, has no gradient and no other cell. */
static void mark_optimizer(struct probe__kernel *k, size_t n)
{
    bool updates = false, has_other = false;
    for (size_t i = 0; i < n; i++) {
        updates |= is_update(k[i].scope.op);
        has_other |= k[i].scope.phase == PROBE__PHASE_BACKWARD || k[i].cells.n != 0;
    }
    for (size_t i = 0; i < n && updates && !has_other; i++)
        k[i].scope.phase = PROBE__PHASE_OPTIMIZER;
}

static void mark_optimizers(struct probe__graph *g)
{
    for (size_t i = 0, next; i < g->kernels.n; i = next) {
        next = i + 1;
        while (next < g->kernels.n && g->kernels.p[next].graph == g->kernels.p[i].graph)
            next++;
        mark_optimizer(&g->kernels.p[i], next - i);
    }
}

static void settle(struct probe__graph *g)
{
    for (size_t i = 0; i < g->kernels.n; i++)
        g->has_optimizer |= ms_str_starts(g->kernels.p[i].full, MS_STR("Default/optimizer-"));
    if (g->kernels.n != 0)
        qsort(g->kernels.p, g->kernels.n, sizeof *g->kernels.p, by_graph_and_order);
    for (size_t i = 0; i < g->kernels.n; i++) {
        struct probe__kernel *k = &g->kernels.p[i];
        probe__kernel_scope_parse(k->full, g->has_optimizer, &k->scope);
        k->cells = k->scope.cells;
        if (k->in.n != 0)
            qsort(k->in.p, k->in.n, sizeof *k->in.p, by_slot);
        if (k->out.n != 0)
            qsort(k->out.p, k->out.n, sizeof *k->out.p, by_slot);
    }
    mark_optimizers(g);
}

/* Gives the tensor the shape from the graph's text if the number of elements is the same. */
static void reshape_tensor(struct probe__kernel_tensor *t, struct ms_str types)
{
    uint64_t shape[PROBE_MAX_DIMS], count = 1;
    uint32_t ndim;
    if (!probe__ir_shape(types, t->slot, shape, &ndim, PROBE_MAX_DIMS))
        return;
    for (uint32_t i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(count, shape[i], &count))
            return;
    }
    if (count != t->stats.count ||
        (ndim == t->ndim && memcmp(shape, t->shape, ndim * sizeof *shape) == 0))
        return;
    t->ndim = ndim;
    memcpy(t->shape, shape, ndim * sizeof *shape);
    t->is_reshaped = true;
}

static void reshape_all(struct probe__kernel *k)
{
    for (size_t i = 0; k->ir != NULL && i < k->in.n; i++)
        reshape_tensor(&k->in.p[i], k->ir->in);
    for (size_t i = 0; k->ir != NULL && i < k->out.n; i++)
        reshape_tensor(&k->out.p[i], k->ir->out);
}

static enum ms_rc read_text(struct probe__graph *g, const char *net, uint64_t graph,
                            struct ms_err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/../graphs/ms_output_trace_code_graph_%llu.ir", net,
                     (unsigned long long)graph);
    struct probe__ir *ir = ms_arena_calloc(g->arena, 1, sizeof *ir);
    struct probe__ir **slot = ir != NULL ? ms_vec_push(&g->irs) : NULL;
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = ir;
    if (n < 0 || (size_t)n >= sizeof path)
        return MS_OK;
    MS_TRY(probe__ir_open(ir, path, err));
    for (size_t i = 0; i < g->kernels.n; i++) {
        struct probe__kernel *k = &g->kernels.p[i];
        if (k->graph == graph) {
            k->of = ir;
            k->ir = probe__ir_find(ir, k->full);
        }
    }
    return MS_OK;
}

enum ms_rc probe__graph_runs(struct ms_dir *runs, const char *net, struct ms_str graph,
                             struct ms_err *err)
{
    char path[PATH_MAX];
    size_t kept = 0;
    int n = snprintf(path, sizeof path, "%s/%.*s", net, MS_STR_ARG(graph));
    if (n < 0 || (size_t)n >= sizeof path)
        return ms_fail(err, MS_E_LIMIT, "%s: path too long", net);
    MS_TRY(ms_dir_list(runs, path, err));
    for (size_t i = 0; i < runs->names.n; i++) {
        if (ms_str_all_digits(runs->names.p[i]))
            runs->names.p[kept++] = runs->names.p[i];
    }
    runs->names.n = kept;
    return MS_OK;
}

static enum ms_rc read_run(struct probe__graph *g, const char *net, struct ms_str name,
                           struct ms_str run, struct ms_err *err)
{
    char below[64];
    uint64_t graph;
    int n = snprintf(below, sizeof below, "%.*s/%.*s", MS_STR_ARG(name), MS_STR_ARG(run));
    if (n < 0 || (size_t)n >= sizeof below || !ms_str_u64(name, &graph))
        return MS_OK;
    MS_TRY(read_order(g, net, graph, err));
    MS_TRY(read_files(g, net, below, graph, err));
    return read_text(g, net, graph, err);
}

static enum ms_rc read_graph(struct probe__graph *g, const char *net, struct ms_str name,
                             size_t run, struct ms_err *err)
{
    struct ms_dir runs;
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%.*s", net, MS_STR_ARG(name));
    if (!ms_str_all_digits(name) || n < 0 || (size_t)n >= sizeof path ||
        ms_path_kind(path) != MS_KIND_DIR)
        return MS_OK;
    MS_TRY(probe__graph_runs(&runs, net, name, err));
    enum ms_rc rc = run < runs.names.n ? read_run(g, net, name, runs.names.p[run], err) : MS_OK;
    ms_dir_free(&runs);
    return rc;
}

enum ms_rc probe__graph_read(struct probe__graph *g, const char *net, size_t run,
                             struct ms_err *err)
{
    struct ms_dir d;
    *g = (struct probe__graph){.arena = ms_arena_new(SIZE_MAX)};
    if (g->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_dir_list(&d, net, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < d.names.n && rc == MS_OK; i++)
        rc = read_graph(g, net, d.names.p[i], run, err);
    ms_dir_free(&d);
    drop_empty(g);
    settle(g);
    if (rc == MS_OK)
        rc = probe__match_kernels(g, err);
    if (rc == MS_OK)
        rc = probe__number_values(g, err);
    probe__find_views(g);
    for (size_t i = 0; i < g->kernels.n; i++)
        reshape_all(&g->kernels.p[i]);
    return rc;
}

void probe__graph_free(struct probe__graph *g)
{
    for (size_t i = 0; i < g->kernels.n; i++) {
        ms_vec_free(&g->kernels.p[i].in);
        ms_vec_free(&g->kernels.p[i].out);
    }
    ms_vec_free(&g->kernels);
    for (size_t i = 0; i < g->irs.n; i++)
        probe__ir_close(g->irs.p[i]);
    ms_vec_free(&g->irs);
    ms_map_free(&g->values);
    ms_map_free(&g->names);
    ms_map_free(&g->others);
    ms_vec_free(&g->renamed);
    ms_arena_free(g->arena);
    *g = (struct probe__graph){0};
}
