/* SPDX-License-Identifier: MIT
 *
 * recipe: the official analyses of a cluster, with their tables, columns and values.
 *
 *     a directory ──► recipe_find ──► recipe_read ──► recipe_* ──► cluster_analysis.db
 *                     files by rank   rows of all     queries
 *                                     ranks in one
 *                                     table
 *
 * Rows that a recipe needs of each rank are brought into one temporary table, which it then asks.  A
 * rank whose files cannot be read is a row in ImportProblem.
 */
#ifndef MSTX_RECIPE_H
#define MSTX_RECIPE_H

#include "probe/base/store.h"
#include "probe/base/vec.h"

#include <stdint.h>

#define MSTX_ANALYSIS_DIR "cluster_analysis_output"
#define MSTX_ANALYSIS_DB  "cluster_analysis.db"

/* What was found of a rank; what is missing is NULL. */
struct mstx_rank_files {
    int64_t rank;
    char *profiler; /* database of events */
    char *analysis; /* database of what the profiler made of communication */
    char *dir;      /* where both lie, and the JSON and CSV files */
};

enum mstx_step { MSTX_ALL_STEPS = -1 };

/* A recipe at work. */
struct mstx_recipe_run {
    struct ms_store *s;                   /* the result being made */
    const char *path;                     /* the input */
    const char *out;                      /* directory of the result */
    MS_VEC(struct mstx_rank_files) ranks; /* in order of rank */
    struct ms_stmt *add_problem;
    /* Instead of rows in ImportProblem; or NULL. */
    void (*tell_problem)(void *ctx, const char *file, const char *text);
    void *ctx;
    uint64_t bad;         /* rows in ImportProblem that this run added */
    uint64_t good;        /* times that something of a rank could be read */
    int64_t step;         /* only this one, or MSTX_ALL_STEPS */
    int64_t top;          /* rows in lists of the worst */
    bool strict;          /* as the official tool does, defects included */
    const char *base;     /* another input to compare with, or NULL */
    const char *parallel; /* "dp;ep,edp": kinds of groups to look at together, or NULL */
    void (*progress)(size_t done, size_t all); /* may be NULL */
    void (*wrote)(const char *path);           /* may be NULL; tells of text files */
};

/* ---- recipe_find ---------------------------------------------------------------- */

/* Everything below path that profilers leave, by rank.  only: "0,3,4" or NULL for all ranks. */
enum ms_rc mstx__recipe_find(struct mstx_recipe_run *r, const char *only,
                             struct ms_err *err) MS_MUST_USE;
void mstx__recipe_forget(struct mstx_recipe_run *r);
enum ms_rc mstx__recipe_problem(struct mstx_recipe_run *r, const char *file, const char *text,
                                struct ms_err *err) MS_MUST_USE;
/* Databases of a run of ours as the profilers have them, written to a directory, which then is the
 * input. */
enum ms_rc mstx__recipe_from_run(const char *run, const char *dir, struct ms_err *err) MS_MUST_USE;

/* ---- recipe_read ---------------------------------------------------------------- */

/* Rows of every rank into a temporary table whose first column is the rank.
 *
 * In sql, ?1 and ?2 are the first and last nanosecond that count, ?3 is the rank, ?4 and ?5 tell
 * whether there are CANN_API and STEP_TIME.  Tables of the profiler that a database lacks are empty;
 * `needs` names those without which the rank has nothing to tell: "TASK MSTX_EVENTS". */
struct mstx_pull {
    const char *into, *columns;
    bool analysis; /* from the analysis database, not the profiler's */
    bool optional; /* a rank without that database or those tables is no problem */
    const char *needs;
    const char *sql;
};
enum ms_rc mstx__recipe_pull(struct mstx_recipe_run *r, const struct mstx_pull *p,
                             struct ms_err *err) MS_MUST_USE;

/* Work of the caller's on one profiler database.  What it fails with becomes a problem of the rank. */
typedef enum ms_rc (*mstx_rank_fn)(struct mstx_recipe_run *r, const struct mstx_rank_files *f,
                                   struct ms_err *err);
enum ms_rc mstx__recipe_each(struct mstx_recipe_run *r, mstx_rank_fn fn,
                             struct ms_err *err) MS_MUST_USE;
/* SQL knows double_hash(text), the number by which HCCL knows a group, p2p_domain(name), the group's
 * digits in the name of a send or receive, else NULL, and the functions of store_func. */
enum ms_rc mstx__recipe_functions(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
/* And tables that a profiler's database lacks are there, empty, on this handle. */
enum ms_rc mstx__recipe_tables(struct ms_store *s, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__has_table(struct ms_store *s, const char *name, bool *has,
                           struct ms_err *err) MS_MUST_USE;

/* ---- recipes -------------------------------------------------------------------- */

typedef enum ms_rc (*mstx_recipe_fn)(struct mstx_recipe_run *r, struct ms_err *err);
enum ms_rc mstx__recipe_slow_rank(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_slow_link(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_hccl_sum(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_cann_api_sum(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_compute_op_sum(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_freq(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_mstx_sum(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_group_map(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_comm_time(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_comm_matrix(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_step_trace(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_time_summary(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_time_compare(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_masking(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_commop(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_p2p(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_pp_chart(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_module(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__recipe_mfu(struct mstx_recipe_run *r, struct ms_err *err) MS_MUST_USE;

/* Of n ascending durations, the ranks in `slow` (as many places) that made the others wait, by the
 * official rule; returns how many. */
size_t mstx_slow_ranks(const double *duration, const int64_t *rank, size_t n, int64_t *slow);
/* COMMUNICATION_OP in a database of marks alone; nothing happens where there is one. */
enum ms_rc mstx__commop_add(struct ms_store *s, bool strict, int64_t from, int64_t to,
                            struct ms_err *err) MS_MUST_USE;

/* The temporary table ModuleOps, a row for each call of the framework that lies in a module: rank, parent
 * ("Net/Net.0"), module, mstart, mend, op, ostart, oend, kernels ("a, b"), device (nanoseconds); and
 * KernelOps with the kernels: rank, kernel, ts, end, op, op_ts, op_end.  The caller drops both.
 * backward: modules are made for operators that belong to those of a module's forward pass. */
enum ms_rc mstx__module_place(struct mstx_recipe_run *r, bool backward,
                              struct ms_err *err) MS_MUST_USE;
/* ModuleOps by name and place in the module as the temporary table ModuleRows: rank, parent, module, op,
 * kernels, total, mean, n, ops (rows of ModuleOps: ",3,17,"). */
enum ms_rc mstx__module_sum(struct ms_store *s, struct ms_err *err) MS_MUST_USE;

/* Statistics of a column of nanoseconds under their official names. */
#define MSTX_STATS(x)                                                                              \
    "count(" x ") AS Count, avg(" x ") AS MeanNs, stddev(" x ") AS StdNs, min(" x ") AS MinNs,"    \
    " quantile(" x ", 0.25) AS Q1Ns, quantile(" x ", 0.5) AS MedianNs,"                            \
    " quantile(" x ", 0.75) AS Q3Ns, max(" x ") AS MaxNs, sum(" x ") AS SumNs"

/* Of the temporary tables TraceRows and Arguments, which go, and of CommunicationGroupMapping:
 * ClusterStepTraceTime and ClusterBaseInfo.  *layout: is the parallel layout known? */
enum ms_rc mstx__step_tables(struct ms_store *s, bool *layout, struct ms_err *err) MS_MUST_USE;

/* ---- recipe_text ----------------------------------------------------------------- */

/* The JSON and CSV files of all ranks become cluster_step_trace_time.csv, communication_group.json, and
 * cluster_communication.json and cluster_communication_matrix.json where these are wanted. */
enum ms_rc mstx__recipe_from_text(struct mstx_recipe_run *r, bool time, bool matrix,
                                  struct ms_err *err) MS_MUST_USE;

/* ---- recipe_csv ----------------------------------------------------------------- */

/* A table as CSV, with its column names in the first line.  Columns whose names end in Ns are divided
 * and get the unit's name instead: "Us" and 1000 make MeanNs Mean(Us). */
struct mstx_unit {
    const char *name;
    double ns;
};
enum ms_rc mstx__recipe_csv(struct ms_store *s, const char *table, const struct mstx_unit *unit,
                            const char *path, struct ms_err *err) MS_MUST_USE;

#endif
