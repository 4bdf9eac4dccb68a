/* SPDX-License-Identifier: MIT
 *
 * recipe: state and helpers that all official analyses of a cluster share.
 *
 *     a directory ──► ascend_files ──► rank_rows ──► recipe ──► slow_ranks, ... ──► cluster_analysis.db
 *                     files by rank    rows of a     rows of    SQL over rows
 *     a run ──► run_as_ascend ───────► rank, by      all ranks  of all ranks
 *               ranks in memory        all threads   in tables
 *
 * The rows that a recipe needs of each rank are copied into temporary tables, which its SQL reads.
 * A rank whose files cannot be read is a row in ImportProblem.
 */
#ifndef MSTX_OFFICIAL_RECIPE_H
#define MSTX_OFFICIAL_RECIPE_H

#include "mstx/foreign/ascend_files.h"

#include "probe/base/par.h"
#include "probe/base/pool.h"
#include "probe/base/store.h"

#define MSTX_ANALYSIS_DB "cluster_analysis.db" /* in MSTX_ANALYSIS_DIR */

enum mstx_step { MSTX_ALL_STEPS = -1 };

/* Tables of a rank that queries read. */
struct mstx_rank_parts {
    bool analysis;     /* of the analysis database, not the profiler's */
    bool calls, marks; /* COMMUNICATION_OP; MSTX_EVENTS and TASK */
    bool tasks;        /* of a device, a runtime and a framework */
};
struct mstx__rank_rows;
/* Makes the database of a rank; workers call it at the same time. */
typedef enum ms_rc (*mstx_rank_open_fn)(void *ctx, unsigned worker, int64_t rank,
                                        struct mstx_rank_parts parts, struct ms_store **out,
                                        struct ms_err *err);
/* Rows that need no database: communication operations with the columns of comm_rows.h; ranges with
 * text, start, end and the time on the device; steps with number, start and end. */
enum mstx_read {
    MSTX_READ_DB,
    MSTX_READ_COMM,
    MSTX_READ_RANGES,
    MSTX_READ_STEPS,
    MSTX_READ_COMM_GROUPS, /* group, NULL, type of operation: each pair of a rank at least once */
    MSTX_READ_STEP_TIMES,  /* rank, step, microseconds */
    MSTX_READ_STEP_PARTS,  /* rank, step, the first columns of StepTraceTime */
    MSTX_READ_HOST,        /* rank, rank, device, number and name of the host */
    MSTX_READ_GROUPS, /* rank, hash, name twice, ranks in order, ranks as JSON; each for one rank */
};
struct mstx_rank_query;
/* Reads such rows of a rank; *done stays false when they need a database after all. */
typedef enum ms_rc (*mstx_rank_read_fn)(void *ctx, unsigned worker, int64_t rank,
                                        const struct mstx_rank_query *q,
                                        struct mstx__rank_rows *rows, bool *done,
                                        struct ms_err *err);
/* Tells whether the databases of ranks have a table. */
typedef bool (*mstx_has_table_fn)(const void *ctx, struct ms_str name);

/* State of a running recipe. */
struct mstx_recipe {
    struct ms_store *s; /* the result being made */
    const char *path;   /* the input */
    const char *out;    /* directory of the result */
    struct mstx_ascend_files files;
    mstx_rank_open_fn open_rank; /* NULL: the databases are files */
    mstx_rank_read_fn read_rank; /* NULL: from the databases alone */
    mstx_has_table_fn has_table; /* NULL: the databases are asked */
    void *open_ctx;
    struct ms_pool *pool;
    struct ms_par *par; /* processes that share the reading, or NULL */
    struct ms_stmt *add_problem;
    bool mapped;          /* CommunicationGroupMapping has been made */
    uint64_t bad;         /* rows in ImportProblem that this run added */
    uint64_t good;        /* successful reads, over all ranks */
    int64_t step;         /* the only step to analyse, or MSTX_ALL_STEPS */
    int64_t top;          /* number of rows in lists of the worst */
    bool strict;          /* exactly as the official tool, including its defects */
    const char *base;     /* another input to compare with, or NULL */
    const char *parallel; /* "dp;ep,edp": kinds of groups to analyse together, or NULL */
    void (*progress)(size_t done, size_t all); /* may be NULL */
    void (*wrote)(const char *path); /* called for each text file that is written; may be NULL */
};

/* Finds the files of profilers below the input. only: "0,3,4", or NULL for all ranks. */
enum ms_rc mstx__recipe_find_files(struct mstx_recipe *r, const char *only,
                                   struct ms_err *err) MS_MUST_USE;
void mstx__recipe_free(struct mstx_recipe *r);
enum ms_rc mstx__recipe_note_problem(struct mstx_recipe *r, const char *file, const char *text,
                                     struct ms_err *err) MS_MUST_USE;

/* A query that runs on every rank. Its rows go into one temporary table, with the rank as the first
 * column, or to a function.
 *
 * In sql, ?1 and ?2 are the first and last nanosecond to include, ?3 is the rank, ?4 and ?5 tell
 * whether the tables CANN_API and STEP_TIME exist.  Tables of the profiler that a database lacks
 * are empty; `needs` lists the tables without which the rank has no rows: "TASK MSTX_EVENTS". */
struct mstx_rank_query {
    const char *into, *columns;
    bool analysis;         /* from the analysis database, not the profiler's */
    bool optional;         /* notes no problem for a rank without the database or the tables */
    enum mstx_read direct; /* what a run has without a database; the SQL asks for no more */
    bool steps;            /* an operation has a row for each step in which it starts */
    bool no_run;           /* finds what profilers alone record */
    const char *needs;
    const char *sql;
};
static inline int mstx__rank_query_columns(const struct mstx_rank_query *q)
{
    int columns = 1;
    for (const char *c = q->columns; *c != '\0'; c++)
        columns += *c == ',';
    return columns;
}
/* Calls fn for the rows of each query on each rank that can be read, in order of rank; a rank is
 * visited once. */
typedef enum ms_rc (*mstx_rows_fn)(void *ctx, size_t query, int64_t rank,
                                   const struct mstx__rank_rows *rows, struct ms_err *err);
enum ms_rc mstx__recipe_visit_rows(struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n,
                                   mstx_rows_fn fn, void *ctx, struct ms_err *err) MS_MUST_USE;
/* The tables of queries, being filled. */
enum { MSTX_QUERIES = 4 };
struct mstx__rank_tables {
    struct ms_stmt *add[MSTX_QUERIES];
};
enum ms_rc mstx__rank_tables_new(struct mstx__rank_tables *t, struct mstx_recipe *r,
                                 const struct mstx_rank_query *q, size_t n,
                                 struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__rank_tables_add(void *tables, size_t query, int64_t rank,
                                 const struct mstx__rank_rows *rows, struct ms_err *err);
void mstx__rank_tables_free(struct mstx__rank_tables *t);
/* Copies the rows of n queries into their tables, visiting each rank once. */
enum ms_rc mstx__recipe_read_rows(struct mstx_recipe *r, const struct mstx_rank_query *q, size_t n,
                                  struct ms_err *err) MS_MUST_USE;

/* Calls fn for each profiler database; notes an error of fn as a problem of the rank. */
typedef enum ms_rc (*mstx_rank_fn)(struct mstx_recipe *r, const struct mstx_rank_files *f,
                                   struct ms_err *err);
enum ms_rc mstx__recipe_each_rank(struct mstx_recipe *r, mstx_rank_fn fn,
                                  struct ms_err *err) MS_MUST_USE;

#endif
