/* SPDX-License-Identifier: MIT
 *
 * recipe_module: which kernels each module of a model ran, by its ranges of the domain Module.
 *
 *     Net {  Net.0 { aten::linear ─► kernel, kernel }  aten::add ─► kernel  }
 *
 * An operator belongs to the innermost module that holds its call.  Autograd calls what is backward from
 * elsewhere: such an operator shares a connection with one of the forward pass, and the module of that
 * one gets a range around the neighbours that it has in time.
 */
#include "mstx/recipe.h"

#include "probe/base/arena.h"
#include "probe/base/mem.h"

#include <stdlib.h>

enum { DEPTH_MAX = 20, ROOT = -1 };

/* ---- input ---------------------------------------------------------------------------------- */

#define KERNELS_OF(table)                                                                          \
    "WITH k AS (SELECT n.value AS kernel, t.startNs AS ts, t.endNs AS te, c.id AS api"             \
    " FROM " table " i JOIN TASK t ON t.globalTaskId = i.globalTaskId"                             \
    " LEFT JOIN STRING_IDS n ON n.id = i.name"                                                     \
    " JOIN CONNECTION_IDS c ON c.connectionId = t.connectionId)" WITH_API
#define WITH_API                                                                                   \
    " SELECT ?3, ifnull(kernel, ''), ts, te, n.value, CAST(p.startNs AS INTEGER),"                 \
    " CAST(p.endNs AS INTEGER) FROM k JOIN PYTORCH_API p ON p.connectionId = k.api"                \
    " JOIN STRING_IDS n ON n.id = p.name ORDER BY p.startNs, ts"

static const struct mstx_pull pulls[] = {
    {.into = "ModuleNodes",
     .columns = "rank INTEGER, start INTEGER, end INTEGER, name, backward INTEGER",
     .optional = true,
     .needs = "MSTX_EVENTS STRING_IDS",
     .sql = "SELECT ?3, e.startNs, e.endNs, ifnull(n.value, ''), 0 FROM MSTX_EVENTS e"
            " LEFT JOIN STRING_IDS n ON n.id = e.message JOIN STRING_IDS d ON d.id = e.domainId"
            " WHERE e.eventType = 2 AND d.value = 'Module' ORDER BY e.startNs"},
    {.into = "KernelOps",
     .columns = "rank INTEGER, kernel, ts INTEGER, end INTEGER, op, op_ts INTEGER, op_end INTEGER",
     .needs = "PYTORCH_API CONNECTION_IDS STRING_IDS",
     .sql = KERNELS_OF("COMPUTE_TASK_INFO")},
    {.into = "KernelOps",
     .columns = "rank, kernel, ts, end, op, op_ts, op_end",
     .optional = true,
     .needs = "COMMUNICATION_OP",
     .sql = "WITH k AS (SELECT n.value AS kernel, o.startNs AS ts, o.endNs AS te, c.id AS api"
            " FROM COMMUNICATION_OP o JOIN STRING_IDS n ON n.id = o.opType"
            " JOIN CONNECTION_IDS c ON c.connectionId = o.connectionId)" WITH_API},
    {.into = "KernelOps",
     .columns = "rank, kernel, ts, end, op, op_ts, op_end",
     .optional = true,
     .needs = "COMMUNICATION_SCHEDULE_TASK_INFO",
     .sql = KERNELS_OF("COMMUNICATION_SCHEDULE_TASK_INFO")},
};

static const struct mstx_pull flows = {
    .into = "Flows",
    .columns = "rank INTEGER, name, ts INTEGER, end INTEGER, bwd_ts INTEGER, bwd_end INTEGER",
    .optional = true,
    .needs = "PYTORCH_API CONNECTION_IDS",
    .sql = "WITH c AS (SELECT connectionId, min(id) AS first, max(id) AS last FROM CONNECTION_IDS"
           " GROUP BY connectionId HAVING count(*) > 1)"
           " SELECT ?3, n.value, CAST(f.startNs AS INTEGER), CAST(f.endNs AS INTEGER),"
           " CAST(b.startNs AS INTEGER), CAST(b.endNs AS INTEGER) FROM c"
           " JOIN PYTORCH_API f ON f.connectionId = c.first JOIN STRING_IDS n ON n.id = f.name"
           " JOIN PYTORCH_API b ON b.connectionId = c.last WHERE n.value NOT LIKE 'Enqueue%'"
           " AND n.value NOT LIKE 'Dequeue%' ORDER BY c.connectionId"};

/* ---- the tree --------------------------------------------------------------------------------- */

struct node {
    int64_t start, end;
    struct ms_str name;
    size_t row;     /* of the operator in its table; by which nodes came */
    int64_t parent; /* node, or ROOT */
    uint32_t depth; /* modules around it */
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
    bool more;
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    ms_stmt_i64(st, 1, rank);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more) {
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
        rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

static void build(struct tree *t)
{
    int64_t top = ROOT;
    if (t->nodes.n != 0)
        qsort(t->nodes.p, t->nodes.n, sizeof *t->nodes.p, outer_first);
    for (size_t i = 0; i < t->nodes.n; i++) {
        struct node *n = &t->nodes.p[i];
        while (top != ROOT && (t->nodes.p[top].start > n->start || t->nodes.p[top].end < n->end))
            top = t->nodes.p[top].parent;
        n->parent = top;
        n->depth = top != ROOT ? t->nodes.p[top].depth + 1 : 1;
        if (n->is_module)
            top = (int64_t)i;
    }
}

/* Names of the modules around, outermost first, without slashes at the ends. */
static struct ms_str path_above(const struct tree *t, const struct node *module, struct ms_buf *b)
{
    const struct node *chain[DEPTH_MAX + 2];
    int n = 0;
    ms_buf_clear(b);
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

/* add: rank, row of the operator, path, module, start and end of the module. */
static enum ms_rc put_place(const struct tree *t, const struct node *op, struct ms_stmt *add,
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

static enum ms_rc put_places(struct tree *t, struct ms_store *s, int64_t rank, struct ms_err *err)
{
    struct ms_buf path = {.max = 1 << 20}, name = {.max = 1 << 20};
    struct ms_stmt *add;
    MS_TRY(ms_store_prepare(s, &add, "INSERT INTO Places VALUES(?,?,?,?,?,?)", err));
    enum ms_rc rc = MS_OK;
    ms_stmt_i64(add, 1, rank);
    for (size_t i = 0; i < t->nodes.n && rc == MS_OK; i++) {
        if (!t->nodes.p[i].is_module)
            rc = put_place(t, &t->nodes.p[i], add, &path, &name, err);
    }
    ms_stmt_free(add);
    ms_buf_free(&path);
    ms_buf_free(&name);
    return rc;
}

static enum ms_rc place_rank(struct ms_store *s, const char *operators, int64_t rank,
                             struct ms_err *err)
{
    static const char modules[] =
        "SELECT rowid, start, end, name, backward FROM ModuleNodes WHERE rank = ? ORDER BY rowid";
    struct tree t = {.arena = ms_arena_new((size_t)1 << 34)};
    enum ms_rc rc = t.arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = read_nodes(&t, s, modules, rank, true, err);
    if (rc == MS_OK && t.nodes.n != 0)
        rc = read_nodes(&t, s, operators, rank, false, err);
    if (rc == MS_OK) {
        build(&t);
        rc = put_places(&t, s, rank, err);
    }
    ms_vec_free(&t.nodes);
    ms_arena_free(t.arena);
    return rc;
}

static enum ms_rc place(struct mstx_recipe_run *r, const char *operators, struct ms_err *err)
{
    MS_TRY(ms_store_exec(r->s,
                         "DROP TABLE IF EXISTS temp.Places;"
                         "CREATE TEMP TABLE Places(rank INTEGER, op INTEGER, parent TEXT,"
                         " module TEXT, mstart INTEGER, mend INTEGER)",
                         err));
    for (size_t i = 0; i < r->ranks.n; i++)
        MS_TRY(place_rank(r->s, operators, r->ranks.p[i].rank, err));
    return MS_OK;
}

/* Neighbours in time whose forward operators lie in one module. */
static enum ms_rc add_backward(struct mstx_recipe_run *r, struct ms_err *err)
{
    static const char modules[] =
        "CREATE TEMP TABLE Runs AS WITH b AS (SELECT p.rank, p.parent, p.module, p.mstart, p.mend,"
        " f.bwd_ts, f.bwd_end, row_number() OVER (PARTITION BY p.rank ORDER BY f.bwd_ts, p.mstart,"
        " f.ts, f.rowid) AS at FROM Places p JOIN Flows o ON o.rowid = p.op JOIN Flows f"
        " ON f.rank = p.rank AND f.name = o.name AND f.ts = o.ts AND f.end = o.end)"
        " SELECT *, at - row_number() OVER (PARTITION BY rank, parent, module, mstart, mend"
        " ORDER BY at) AS run FROM b;"
        "INSERT INTO ModuleNodes SELECT rank, min(bwd_ts) - 1, max(bwd_end) + 1, parent, 1 FROM "
        "Runs"
        " WHERE parent != '' GROUP BY rank, parent, module, mstart, mend, run ORDER BY rank, "
        "min(at);"
        "INSERT INTO ModuleNodes SELECT rank, min(bwd_ts), max(bwd_end), module, 1 FROM Runs"
        " GROUP BY rank, parent, module, mstart, mend, run ORDER BY rank, min(at);"
        "DROP TABLE Runs; DROP TABLE Flows;";
    MS_TRY(mstx__recipe_pull(r, &flows, err));
    MS_TRY(ms_store_exec(r->s, "CREATE INDEX temp.FlowsBy ON Flows(rank, ts, name)", err));
    MS_TRY(
        place(r, "SELECT rowid, ts, end, name, 0 FROM Flows WHERE rank = ? ORDER BY rowid", err));
    return ms_store_exec(r->s, modules, err);
}

enum ms_rc mstx__module_place(struct mstx_recipe_run *r, bool backward, struct ms_err *err)
{
    static const char calls[] =
        "CREATE TEMP TABLE Calls AS SELECT rank, op, op_ts, op_end, group_concat(kernel, ', ')"
        " AS kernels, total(end - ts) AS device FROM (SELECT * FROM KernelOps"
        " ORDER BY rank, op, op_ts, op_end, rowid) GROUP BY rank, op, op_ts, op_end"
        " ORDER BY rank, op_ts;"
        "CREATE INDEX temp.CallsByRank ON Calls(rank);"
        "CREATE INDEX temp.ModuleNodesByRank ON ModuleNodes(rank);";
    static const char placed[] =
        "CREATE TEMP TABLE ModuleOps AS SELECT p.rank, p.parent, p.module, p.mstart, p.mend,"
        " c.op AS op, c.op_ts AS ostart, c.op_end AS oend, c.kernels, c.device FROM Places p"
        " JOIN Calls c ON c.rowid = p.op ORDER BY p.rank, p.mstart, c.op_ts, p.rowid;"
        "DROP TABLE Calls; DROP TABLE Places; DROP TABLE ModuleNodes;";
    for (size_t i = 0; i < sizeof pulls / sizeof *pulls; i++)
        MS_TRY(mstx__recipe_pull(r, &pulls[i], err));
    MS_TRY(ms_store_exec(r->s, calls, err));
    if (backward)
        MS_TRY(add_backward(r, err));
    MS_TRY(place(r, "SELECT rowid, op_ts, op_end, op, 0 FROM Calls WHERE rank = ? ORDER BY rowid",
                 err));
    return ms_store_exec(r->s, placed, err);
}

/* ---- the table ------------------------------------------------------------------------------------ */

/* Modules of one name that ran other operators are told apart by a number, where they follow each other. */
enum ms_rc mstx__module_sum(struct ms_store *s, struct ms_err *err)
{
    static const char sql[] =
        "CREATE TEMP TABLE Ordered AS SELECT rowid AS at, rank, parent, module, op, ostart, "
        "kernels,"
        " device, row_number() OVER w - 1 AS place, group_concat(op, '/') OVER (w ROWS BETWEEN"
        " UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS ops FROM ModuleOps"
        " WINDOW w AS (PARTITION BY rank, parent, module, mstart, mend ORDER BY rowid);"
        "CREATE TEMP TABLE Grouped AS WITH o AS (SELECT *, min(at) OVER (PARTITION BY rank, ops)"
        " AS seq FROM Ordered)"
        " SELECT rank, parent, module, op, place, kernels, seq, sum(device) AS total,"
        " avg(device) AS mean, count(*) AS n, min(ostart) AS ostart,"
        " ',' || group_concat(at) || ',' AS ops FROM o GROUP BY rank, parent, module, op, place,"
        " kernels, seq;"
        "CREATE TEMP TABLE ModuleRows AS WITH i AS (SELECT *, row_number() OVER (PARTITION BY rank"
        " ORDER BY ostart, parent, module, place) AS at FROM Grouped), r AS (SELECT *, at -"
        " row_number() OVER (PARTITION BY rank, parent, module ORDER BY at) AS run FROM i),"
        " d AS (SELECT *, dense_rank() OVER (PARTITION BY rank, parent, module, run ORDER BY seq) "
        "- 1"
        " AS number FROM r), m AS (SELECT *, max(number) OVER (PARTITION BY rank, parent, module,"
        " run) AS others FROM d)"
        " SELECT rank, parent, CASE WHEN others > 0 THEN module || '_' || number ELSE module END"
        " AS module, op, kernels, total, mean, n, ops FROM m ORDER BY rank, ostart, place;"
        "DROP TABLE Grouped; DROP TABLE Ordered;";
    return ms_store_exec(s, sql, err);
}

enum ms_rc mstx__recipe_module(struct mstx_recipe_run *r, struct ms_err *err)
{
    static const char sql[] =
        "DROP TABLE IF EXISTS ModuleStatistic;"
        "CREATE TABLE ModuleStatistic AS SELECT parent AS parentModule, module, op AS opName,"
        " kernels AS kernelList, total AS \"totalKernelDuration(ns)\","
        " mean AS \"avgKernelDuration(ns)\", n AS opCount, rank AS rankID FROM ModuleRows"
        " ORDER BY rowid;"
        "DROP TABLE ModuleRows; DROP TABLE ModuleOps; DROP TABLE KernelOps;";
    MS_TRY(mstx__module_place(r, true, err));
    MS_TRY(mstx__module_sum(r->s, err));
    return ms_store_exec(r->s, sql, err);
}
