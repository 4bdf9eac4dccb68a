/* SPDX-License-Identifier: MIT
 *
 * recipe_mfu: how much of what a core could do in its time a kernel did, where the program counted the
 * operations: a range "4194304-linear" of the domain mfu_flops around the call of the framework.
 *
 *     share = operations / seconds / peak     peak = cores x frequency x operations a cycle
 */
#include "mstx/recipe.h"

#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/mem.h"
#include "probe/base/num.h"

#include <stdio.h>

/* Multiplications and additions of a core in a cycle. */
enum { CYCLE_HALF = 16 * 16 * 16 * 2, CYCLE_INT8 = 16 * 32 * 16 * 2, DEPTH_MAX = 6 };

static const struct mstx_pull pulls[] = {
    {.into = "FlopRanges",
     .columns = "rank INTEGER, start INTEGER, end INTEGER, flops REAL, name",
     .optional = true,
     .needs = "MSTX_EVENTS STRING_IDS",
     .sql =
         "SELECT ?3, e.startNs, e.endNs, CAST(substr(m.value, 1, instr(m.value, '-') - 1) AS REAL),"
         " substr(m.value, instr(m.value, '-') + 1) FROM MSTX_EVENTS e"
         " JOIN STRING_IDS m ON m.id = e.message JOIN STRING_IDS d ON d.id = e.domainId"
         " WHERE d.value = 'mfu_flops' AND instr(m.value, '-') > 1"
         " AND length(m.value) > instr(m.value, '-')"
         " AND substr(m.value, 1, instr(m.value, '-') - 1) NOT GLOB '*[^0-9]*'"
         " AND e.endNs > e.startNs ORDER BY e.startNs"},
    {.into = "Shapes",
     .columns = "rank INTEGER, kernel, ts INTEGER, end INTEGER, input, output, type",
     .optional = true,
     .needs = "COMPUTE_TASK_INFO TASK STRING_IDS",
     .sql =
         "SELECT ?3, n.value, t.startNs, t.endNs, trim(i.value, '\"'''), trim(o.value, '\"'''),"
         " upper(trim(substr(y.value || ';', 1, instr(y.value || ';', ';') - 1)))"
         " FROM COMPUTE_TASK_INFO c JOIN TASK t ON t.globalTaskId = c.globalTaskId"
         " LEFT JOIN STRING_IDS n ON n.id = c.name LEFT JOIN STRING_IDS i ON i.id = c.inputShapes"
         " LEFT JOIN STRING_IDS o ON o.id = c.outputShapes"
         " LEFT JOIN STRING_IDS y ON y.id = c.inputDataTypes"
         " WHERE ifnull(trim(i.value, '\"'''), '') != 'N/A'"
         " AND ifnull(trim(o.value, '\"'''), '') != 'N/A' ORDER BY t.startNs"},
};

/* ---- the chip ---------------------------------------------------------------------------------- */

static bool number_here(struct ms_jread *r, double *out)
{
    const enum ms_jtok t = ms_jread_next(r);
    if (t == MS_J_NUM)
        return ms_jread_f64(r, out);
    return t == MS_J_STR && ms_num_parse_f64(r->text.p, r->text.n, out);
}

/* Of {"DeviceInfo": [{"ai_core_num": 24, "aic_frequency": "1800"}, ...]} the first. */
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

static double find_chip(const char *dir, int depth);

static double chip_at(const char *dir, struct ms_str name, int depth)
{
    char *path = ms_path_join(dir, name.p);
    double hertz = 0;
    if (path == NULL)
        return 0;
    if (ms_str_starts(name, MS_STR("info.json.")) &&
        ms_str_starts(ms_path_base(dir), MS_STR("device_")))
        hertz = hertz_of(path);
    else if (depth < DEPTH_MAX && ms_path_kind(path) == MS_KIND_DIR)
        hertz = find_chip(path, depth + 1);
    ms_free(path);
    return hertz;
}

static double find_chip(const char *dir, int depth)
{
    struct ms_dir list;
    struct ms_err ignored = {0};
    double hertz = 0;
    if (ms_dir_list(&list, dir, &ignored) != MS_OK)
        return 0;
    for (size_t i = 0; i < list.names.n && hertz == 0; i++)
        hertz = chip_at(dir, list.names.p[i], depth);
    ms_dir_free(&list);
    return hertz;
}

static enum ms_rc put_chip(struct mstx_recipe_run *r, const struct mstx_rank_files *f,
                           struct ms_stmt *add, struct ms_err *err)
{
    const bool below = ms_str_is(ms_path_base(f->dir), "ASCEND_PROFILER_OUTPUT");
    char *dir = ms_str_dup(below ? ms_path_dir(f->dir) : ms_str_of(f->dir));
    if (dir == NULL)
        return ms_no_memory(err);
    const double hertz = find_chip(dir, 0);
    enum ms_rc rc = MS_OK;
    if (hertz > 0) {
        ms_stmt_i64(add, 1, f->rank);
        ms_stmt_f64(add, 2, hertz);
        rc = ms_stmt_run(add, err);
    } else {
        rc = mstx__recipe_problem(r, dir,
                                  "has no device_N/info.json.N with ai_core_num and "
                                  "aic_frequency: the peak of its cores is not known",
                                  err);
    }
    ms_free(dir);
    return rc;
}

static enum ms_rc put_chips(struct mstx_recipe_run *r, struct ms_err *err)
{
    struct ms_stmt *add;
    MS_TRY(
        ms_store_exec(r->s, "CREATE TEMP TABLE Chips(rank INTEGER PRIMARY KEY, hertz REAL)", err));
    MS_TRY(ms_store_prepare(r->s, &add, "INSERT INTO Chips VALUES(?,?)", err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < r->ranks.n && rc == MS_OK; i++)
        rc = put_chip(r, &r->ranks.p[i], add, err);
    ms_stmt_free(add);
    return rc;
}

/* ---- tables -------------------------------------------------------------------------------------- */

/* A range's type is that of the first kernel in it; a type that the chip's peak is not known for leaves
 * the range out. */
static const char kernel_table[] =
    "CREATE INDEX temp.KernelOpsBy ON KernelOps(rank, op_ts);"
    "CREATE INDEX temp.ShapesBy ON Shapes(rank, ts, end);"
    "CREATE TEMP TABLE Counted AS WITH k AS (SELECT f.rowid AS range, f.rank, f.flops, f.name,"
    " s.kernel, s.ts, s.end, s.end - s.ts AS dur, s.input, s.output, s.type,"
    " row_number() OVER (PARTITION BY f.rowid, s.ts, s.end ORDER BY o.op_ts, s.rowid) AS again,"
    " row_number() OVER (PARTITION BY f.rowid ORDER BY o.op_ts, s.ts, s.end, s.rowid) AS at"
    " FROM FlopRanges f JOIN KernelOps o ON o.rank = f.rank AND o.op_ts BETWEEN f.start AND f.end"
    " JOIN Shapes s ON s.rank = o.rank AND s.ts = o.ts AND s.end = o.end AND s.kernel = o.kernel"
    " WHERE f.flops > 0), p AS (SELECT k.range, c.hertz * CASE WHEN ifnull(type, '') IN ('', "
    "'FLOAT',"
    " 'FLOAT16', 'BF16', 'DT_BF16') THEN %d WHEN type = 'INT8' THEN %d END AS peak"
    " FROM k JOIN Chips c ON c.rank = k.rank WHERE at = 1)"
    " SELECT k.rank, k.kernel, k.ts, k.end, k.dur, k.flops, k.name, k.input, k.output, p.peak,"
    " k.flops / (k.dur * 1e-9) / p.peak AS mfu FROM k JOIN p ON p.range = k.range"
    " WHERE k.again = 1 AND k.dur > 0 AND p.peak IS NOT NULL ORDER BY k.range, k.at;"
    "CREATE INDEX temp.CountedBy ON Counted(rank, ts, end);"
    "DROP TABLE IF EXISTS OperatorMFU;"
    "CREATE TABLE OperatorMFU AS SELECT o.rank AS rank_id, o.op AS op_name, o.kernel AS "
    "kernel_name,"
    " o.ts AS \"kernel_start(ns)\", o.end AS \"kernel_end(ns)\", c.dur * 1.0 AS "
    "\"kernel_duration(ns)\","
    " round_even(c.mfu, 4) AS mfu, round_even(c.flops / (c.dur * 1e-9) / 1e12, 2) AS actual_tflops,"
    " round_even(c.peak / 1e12, 2) AS chip_peak_tflops, c.flops AS flops, c.name AS flops_op_name,"
    " c.input AS input_shapes, c.output AS output_shapes FROM KernelOps o JOIN Counted c"
    " ON c.rank = o.rank AND c.ts = o.ts AND c.end = o.end AND c.kernel = o.kernel"
    " ORDER BY o.rank, o.rowid, c.rowid;";

/* The share of kernels at one place in an operator, its mean over all calls that have one. */
static const char module_table[] =
    "CREATE TEMP TABLE Shares AS WITH k AS (SELECT m.rowid AS call, o.rowid AS kernel, c.rowid AS "
    "n,"
    " ifnull(c.mfu, -1.0) AS mfu FROM ModuleOps m JOIN KernelOps o ON o.rank = m.rank"
    " AND o.op_ts = m.ostart AND o.op_end = m.oend AND o.op = m.op LEFT JOIN Counted c"
    " ON c.rank = o.rank AND c.ts = o.ts AND c.end = o.end AND c.kernel = o.kernel)"
    " SELECT call, row_number() OVER (PARTITION BY call ORDER BY kernel, n) AS place, mfu FROM k;"
    "CREATE INDEX temp.SharesByCall ON Shares(call);"
    "CREATE TEMP TABLE Means AS SELECT r.rowid AS row, s.place, avg(s.mfu) AS mfu FROM ModuleRows r"
    " JOIN json_each('[' || trim(r.ops, ',') || ']') j JOIN Shares s ON s.call = j.value"
    " WHERE s.mfu > 0 GROUP BY r.rowid, s.place ORDER BY r.rowid, s.place;"
    "CREATE INDEX temp.MeansByRow ON Means(row);"
    "DROP TABLE IF EXISTS ModuleMFU;"
    "CREATE TABLE ModuleMFU AS SELECT rank AS rank_id, parent AS parent_module, module, op AS "
    "op_name,"
    " kernels AS kernel_list, total AS \"total_kernel_duration(ns)\","
    " mean AS \"avg_kernel_duration(ns)\", n AS op_count, ifnull((SELECT"
    " group_concat(round_even(mfu * 100, 2) || '%') FROM Means x WHERE x.row = r.rowid), '')"
    " AS avg_mfu FROM ModuleRows r ORDER BY rowid;"
    "DROP TABLE Means; DROP TABLE Shares; DROP TABLE Counted; DROP TABLE ModuleRows;"
    "DROP TABLE ModuleOps; DROP TABLE KernelOps; DROP TABLE FlopRanges; DROP TABLE Shapes;"
    "DROP TABLE Chips;";

enum ms_rc mstx__recipe_mfu(struct mstx_recipe_run *r, struct ms_err *err)
{
    char sql[3072];
    MS_TRY(mstx__module_place(r, false, err));
    for (size_t i = 0; i < sizeof pulls / sizeof *pulls; i++)
        MS_TRY(mstx__recipe_pull(r, &pulls[i], err));
    MS_TRY(put_chips(r, err));
    snprintf(sql, sizeof sql, kernel_table, CYCLE_HALF, CYCLE_INT8);
    MS_TRY(ms_store_exec(r->s, sql, err));
    MS_TRY(mstx__module_sum(r->s, err));
    return ms_store_exec(r->s, module_table, err);
}
