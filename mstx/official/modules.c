/* SPDX-License-Identifier: MIT
 *
 * modules: assigns kernels to the modules of a model, by ranges of the domain Module.
 *
 *     Net {  Net.0 { aten::linear ─► kernel, kernel }  aten::add ─► kernel  }
 *
 * An operator belongs to the innermost module whose range contains its call.  Autograd calls
 * backward operators outside these ranges: a backward operator shares a connection with a forward
 * operator, and the module of the forward operator gets a range around backward operators that are
 * neighbours in time.
 *
 * The share of the peak that a kernel reached is known when the program counted its operations in a
 * range of the domain mfu_flops around the call of the framework, such as "4194304-linear".
 *
 *     share = operations / seconds / peak     peak = cores x frequency x operations a cycle
 */
#include "mstx/official/modules.h"

#include "mstx/official/sql/modules.h"

#include "probe/base/arena.h"
#include "probe/base/assert.h"
#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"

#include <stdlib.h>

enum { DEPTH_MAX = 20, ROOT = -1 };

/* ---- input ---------------------------------------------------------------------------------- */

static const struct mstx_rank_query kernel_rows[] = {
    {.into = "ModuleNodes",
     .columns = "rank INTEGER, start INTEGER, end INTEGER, name, backward INTEGER",
     .optional = true,
     .needs = "MSTX_EVENTS STRING_IDS",
     .sql = sql_read_module_ranges},
    {.into = "KernelOps",
     .columns = "rank INTEGER, kernel, ts INTEGER, end INTEGER, op, op_ts INTEGER, op_end INTEGER",
     .needs = "PYTORCH_API CONNECTION_IDS STRING_IDS",
     .sql = sql_read_kernels},
    {.into = "KernelOps",
     .columns = "rank, kernel, ts, end, op, op_ts, op_end",
     .optional = true,
     .needs = "COMMUNICATION_OP",
     .sql = sql_read_comm_kernels},
    {.into = "KernelOps",
     .columns = "rank, kernel, ts, end, op, op_ts, op_end",
     .optional = true,
     .needs = "COMMUNICATION_SCHEDULE_TASK_INFO",
     .sql = sql_read_schedule_kernels},
};

static const struct mstx_rank_query flows = {
    .into = "Flows",
    .columns = "rank INTEGER, name, ts INTEGER, end INTEGER, bwd_ts INTEGER, bwd_end INTEGER",
    .optional = true,
    .needs = "PYTORCH_API CONNECTION_IDS",
    .sql = sql_read_flows};

/* ---- the tree --------------------------------------------------------------------------------- */

struct node {
    int64_t start, end;
    struct ms_str name;
    size_t row;     /* of the operator in its table; orders nodes of equal times */
    int64_t parent; /* node, or ROOT */
    uint32_t depth; /* number of modules around the node, itself included */
    bool is_module, backward;
};

struct tree {
    struct ms_arena *arena;
    MS_VEC(struct node) nodes;
};

static int outer_first(const void *pa, const void *pb)
{
    const struct node *a = pa, *b = pb;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    if (a->is_module != b->is_module)
        return a->is_module ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static enum ms_rc read_nodes(struct tree *t, struct ms_store *s, const char *sql, int64_t rank,
                             bool is_module, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct node *n = ms_vec_push(&t->nodes);
        const struct ms_str name =
            n != NULL ? ms_arena_str(t->arena, ms_stmt_get_str(st, 3)) : MS_STR_NONE;
        if (name.p == NULL) {
            rc = ms_no_memory(err);
            break;
        }
        *n = (struct node){.start = ms_stmt_get_i64(st, 1),
                           .end = ms_stmt_get_i64(st, 2),
                           .name = name,
                           .row = (size_t)ms_stmt_get_i64(st, 0),
                           .is_module = is_module,
                           .backward = ms_stmt_get_i64(st, 4) != 0};
    }
    ms_stmt_free(st);
    return rc;
}

static void build_tree(struct tree *t)
{
    int64_t top = ROOT;
    if (t->nodes.n != 0)
        qsort(t->nodes.p, t->nodes.n, sizeof *t->nodes.p, outer_first);
    for (size_t i = 0; i < t->nodes.n; i++) {
        struct node *n = &t->nodes.p[i];
        while (top != ROOT && (t->nodes.p[top].start > n->start || t->nodes.p[top].end < n->end))
            top = t->nodes.p[top].parent;
        ms_assert(top == ROOT || (top < (int64_t)i && t->nodes.p[top].is_module));
        n->parent = top;
        n->depth = top != ROOT ? t->nodes.p[top].depth + 1 : 1;
        if (n->is_module)
            top = (int64_t)i;
    }
}

/* Joins the names of the enclosing modules, outermost first, without slashes at the ends. */
static struct ms_str path_above(const struct tree *t, const struct node *module, struct ms_buf *b)
{
    const struct node *chain[DEPTH_MAX + 2];
    int n = 0;
    ms_buf_clear(b);
    ms_assert(module->is_module && module->depth <= DEPTH_MAX);
    for (int64_t i = module->parent; i != ROOT && n < DEPTH_MAX + 2; i = t->nodes.p[i].parent)
        chain[n++] = &t->nodes.p[i];
    while (n > 0) {
        ms_buf_putc(b, '/');
        ms_buf_str(b, chain[--n]->name);
    }
    struct ms_str path = ms_buf_slice(b);
    while (path.n != 0 && path.p[0] == '/')
        path = ms_str_sub(path, 1, path.n);
    while (path.n != 0 && path.p[path.n - 1] == '/')
        path = ms_str_sub(path, 0, path.n - 1);
    return path;
}

static bool is_backward(const struct tree *t, const struct node *module)
{
    bool backward = module->backward;
    for (int64_t i = module->parent; i != ROOT && !backward; i = t->nodes.p[i].parent)
        backward = t->nodes.p[i].backward;
    return backward;
}

/* ---- operators to their modules ------------------------------------------------------------------ */

/* Adds the module of an operator. Parameters of add: rank, row of the operator, path, module,
 * start and end of the module. */
static enum ms_rc add_place(const struct tree *t, const struct node *op, struct ms_stmt *add,
                            struct ms_buf *path, struct ms_buf *name, struct ms_err *err)
{
    const struct node *module = op->parent != ROOT ? &t->nodes.p[op->parent] : NULL;
    if (module == NULL || module->depth > DEPTH_MAX)
        return MS_OK;
    const struct ms_str above = path_above(t, module, path);
    if (module->name.n == 0 && above.n == 0)
        return MS_OK;
    ms_buf_clear(name);
    if (is_backward(t, module))
        ms_buf_puts(name, "[Backward]");
    ms_buf_str(name, module->name);
    MS_TRY(ms_buf_check(path, err));
    MS_TRY(ms_buf_check(name, err));
    ms_stmt_i64(add, 2, (int64_t)op->row);
    ms_stmt_str(add, 3, above.n != 0 ? above : MS_STR(""));
    ms_stmt_str(add, 4, ms_buf_slice(name));
    ms_stmt_i64(add, 5, module->start);
    ms_stmt_i64(add, 6, module->end);
    return ms_stmt_run(add, err);
}

static enum ms_rc add_places(struct tree *t, struct ms_store *s, int64_t rank, struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 20}, name = {.max = 1 << 20};
    struct ms_stmt *add;
    MS_TRY(ms_store_prepare(s, &add, sql_add_place, err));
    enum ms_rc rc = MS_OK;
    ms_stmt_i64(add, 1, rank);
    for (size_t i = 0; i < t->nodes.n && rc == MS_OK; i++) {
        if (!t->nodes.p[i].is_module)
            rc = add_place(t, &t->nodes.p[i], add, &path, &name, err);
    }
    ms_stmt_free(add);
    ms_buf_free(&path);
    ms_buf_free(&name);
    return rc;
}

static enum ms_rc place_rank(struct ms_store *s, const char *operators, int64_t rank,
                             struct ms_err *err)
{
    struct tree t = {.arena = ms_arena_new((size_t)1 << 34)};
    enum ms_rc rc = t.arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = read_nodes(&t, s, sql_find_modules, rank, true, err);
    if (rc == MS_OK && t.nodes.n != 0)
        rc = read_nodes(&t, s, operators, rank, false, err);
    if (rc == MS_OK) {
        build_tree(&t);
        rc = add_places(&t, s, rank, err);
    }
    ms_vec_free(&t.nodes);
    ms_arena_free(t.arena);
    return rc;
}

static enum ms_rc place_operators(struct mstx_recipe *r, const char *operators, struct ms_err *err)
{
    MS_TRY(ms_store_exec(r->s, sql_make_places, err));
    for (size_t i = 0; i < r->files.ranks.n; i++)
        MS_TRY(place_rank(r->s, operators, r->files.ranks.p[i].rank, err));
    return MS_OK;
}

/* Adds ranges of modules in the backward pass: neighbours in time whose forward operators belong to
 * the same module. */
static enum ms_rc add_backward(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, &flows, 1, err));
    MS_TRY(ms_store_exec(r->s, sql_index_flows, err));
    MS_TRY(place_operators(r, sql_find_flows, err));
    return ms_store_exec(r->s, sql_add_backward_modules, err);
}

static enum ms_rc place_kernels(struct mstx_recipe *r, bool backward, struct ms_err *err)
{
    MS_TRY(mstx__recipe_read_rows(r, kernel_rows, sizeof kernel_rows / sizeof *kernel_rows, err));
    MS_TRY(ms_store_exec(r->s, sql_group_calls, err));
    if (backward)
        MS_TRY(add_backward(r, err));
    MS_TRY(place_operators(r, sql_find_calls, err));
    return ms_store_exec(r->s, sql_place_calls, err);
}

enum ms_rc mstx__sum_modules(struct mstx_recipe *r, struct ms_err *err)
{
    MS_TRY(place_kernels(r, true, err));
    MS_TRY(ms_store_exec(r->s, sql_sum_modules, err));
    return ms_store_exec(r->s, sql_write_module_statistic, err);
}

/* Multiplications and additions of one core in one cycle. */
enum { CYCLE_HALF = 16 * 16 * 16 * 2, CYCLE_INT8 = 16 * 32 * 16 * 2, CHIP_DEPTH_MAX = 6 };

static const struct mstx_rank_query flop_rows[] = {
    {.into = "FlopRanges",
     .columns = "rank INTEGER, start INTEGER, end INTEGER, flops REAL, name",
     .optional = true,
     .no_run = true, /* counts for kernels alone */
     .needs = "MSTX_EVENTS STRING_IDS",
     .sql = sql_read_flop_ranges},
    {.into = "Shapes",
     .columns = "rank INTEGER, kernel, ts INTEGER, end INTEGER, input, output, type",
     .optional = true,
     .needs = "COMPUTE_TASK_INFO TASK STRING_IDS",
     .sql = sql_read_shapes},
};

/* ---- the chip ---------------------------------------------------------------------------------- */

static bool number_here(struct ms_jread *r, double *out)
{
    const enum ms_jtok t = ms_jread_next(r);
    if (t == MS_J_NUM)
        return ms_jread_f64(r, out);
    return t == MS_J_STR && ms_num_parse_f64(r->text.p, r->text.n, out);
}

/* Reads the first device of {"DeviceInfo": [{"ai_core_num": 24, "aic_frequency": "1800"}, ...]}. */
static double hertz_of(const char *path)
{
    struct ms_file f;
    struct ms_jread r;
    struct ms_err ignored = {0};
    enum ms_jtok t;
    double cores = 0, mega = 0;
    if (ms_file_map(&f, path, (size_t)1 << 26, &ignored) != MS_OK)
        return 0;
    ms_jread_init(&r, f.p, f.n, 0);
    while ((t = ms_jread_next(&r)) > MS_J_END) {
        if (t != MS_J_KEY || r.depth != 3)
            continue;
        if (cores == 0 && ms_str_is(r.text, "ai_core_num") && !number_here(&r, &cores))
            cores = 0;
        else if (mega == 0 && ms_str_is(r.text, "aic_frequency") && !number_here(&r, &mega))
            mega = 0;
    }
    ms_file_unmap(&f);
    return cores > 0 && mega > 0 ? cores * mega * 1e6 : 0;
}

static double find_chip(struct mstx_dir_walk *w, const char *dir, int depth);

static double chip_at(struct mstx_dir_walk *w, const char *dir, struct ms_str name, int depth)
{
    char *path = ms_path_join(dir, name.p);
    struct ms_err ignored = {0};
    double hertz = 0;
    bool enters;
    if (path == NULL)
        return 0;
    if (ms_str_starts(name, MS_STR("info.json.")) &&
        ms_str_starts(ms_path_base(dir), MS_STR("device_")))
        hertz = hertz_of(path);
    else if (depth < CHIP_DEPTH_MAX && mstx__dir_walk_enter(w, path, &enters, &ignored) == MS_OK &&
             enters)
        hertz = find_chip(w, path, depth + 1);
    ms_free(path);
    return hertz;
}

static double find_chip(struct mstx_dir_walk *w, const char *dir, int depth)
{
    struct ms_dir list;
    struct ms_err ignored = {0};
    double hertz = 0;
    if (ms_dir_list(&list, dir, &ignored) != MS_OK)
        return 0;
    for (size_t i = 0; i < list.names.n && hertz == 0; i++)
        hertz = chip_at(w, dir, list.names.p[i], depth);
    ms_dir_free(&list);
    return hertz;
}

/* The directory that was searched last: the ranks of a run share one, and it grows with them. */
struct chip {
    char *dir;
    double hertz;
};

/* Takes over dir. */
static void look_for_chip(struct chip *chip, char *dir)
{
    struct mstx_dir_walk walk = {.keys = NULL};
    if (chip->dir == NULL || strcmp(chip->dir, dir) != 0)
        chip->hertz = find_chip(&walk, dir, 0);
    mstx__dir_walk_free(&walk);
    ms_free(chip->dir);
    chip->dir = dir;
}

static enum ms_rc add_chip(struct mstx_recipe *r, const struct mstx_rank_files *f,
                           struct chip *chip, struct ms_stmt *add, struct ms_err *err)
{
    const bool below = ms_str_is(ms_path_base(f->dir), "ASCEND_PROFILER_OUTPUT");
    char *dir = ms_str_dup(below ? ms_path_dir(f->dir) : ms_str_of(f->dir));
    if (dir == NULL)
        return ms_no_memory(err);
    look_for_chip(chip, dir);
    if (chip->hertz > 0) {
        ms_stmt_i64(add, 1, f->rank);
        ms_stmt_f64(add, 2, chip->hertz);
        return ms_stmt_run(add, err);
    }
    return mstx__recipe_note_problem(r, dir,
                                     "has no device_N/info.json.N with ai_core_num and "
                                     "aic_frequency: the peak of its cores is not known",
                                     err);
}

static enum ms_rc add_chips(struct mstx_recipe *r, struct ms_err *err)
{
    struct ms_stmt *add;
    struct chip chip = {.dir = NULL};
    MS_TRY(ms_store_exec(r->s, sql_make_chips, err));
    MS_TRY(ms_store_prepare(r->s, &add, sql_add_chip, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->files.ranks.n && rc == MS_OK; i++)
        rc = add_chip(r, &r->files.ranks.p[i], &chip, add, err);
    ms_stmt_free(add);
    ms_free(chip.dir);
    return rc;
}

/* ---- tables -------------------------------------------------------------------------------------- */

enum ms_rc mstx__rate_kernels(struct mstx_recipe *r, struct ms_err *err)
{
    const int64_t cycle[] = {CYCLE_HALF, CYCLE_INT8};
    MS_TRY(place_kernels(r, false, err));
    MS_TRY(mstx__recipe_read_rows(r, flop_rows, sizeof flop_rows / sizeof *flop_rows, err));
    MS_TRY(add_chips(r, err));
    MS_TRY(ms_store_exec_i64(r->s, sql_rate_kernels, cycle, 2, err));
    MS_TRY(ms_store_exec(r->s, sql_sum_modules, err));
    return ms_store_exec(r->s, sql_rate_modules, err);
}
