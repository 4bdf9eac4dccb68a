/* SPDX-License-Identifier: MIT
 *
 * import_int: declarations shared by import.c (the whole import), import_clock.c (clocks),
 * import_records.c (events), import_merge.c (merging the parts of many processes into one database)
 * and import_problems.c.
 *
 *              learn              exchange            take                merge
 *     files ─► clocks, texts, ─► everybody knows ─► rows of run.db, ─► one run.db, joined
 *              communicators      all of these       calls of ranks      and judged
 *
 * Under mpirun each process reads a contiguous range of the list of captured processes.  Ids are
 * given by the place in the whole list, so the database is the same for any number of importing
 * processes, including one.
 */
#ifndef MSTX_IMPORT_IMPORT_INT_H
#define MSTX_IMPORT_IMPORT_INT_H

#include "mstx/cluster/rank_part.h"
#include "mstx/import/call_spool.h"
#include "mstx/import/comm_calls.h"
#include "mstx/import/import.h"
#include "mstx/import/read_ahead.h"
#include "mstx/read/host_clocks.h"
#include "mstx/read/lanes.h"
#include "mstx/read/processes.h"
#include "mstx/rundb/run_write.h"
#include "probe/base/exchange.h"

/* Step numbers by the id of a name in run.db, so that each name is parsed once in a whole
 * import. */
struct mstx_cl_names {
    int64_t *p;
    size_t n, cap;
};

/* A communication call that the framework marked itself, with its description as the text. */
struct mstx_marked_call {
    struct mstx_event event;
    uint32_t tid;
};

/* A row of the table problems. */
struct mstx_import_problem {
    uint64_t process; /* place in the list; past its end: the problem belongs to no process */
    char *file, *text;
};

/* A captured process, by its place in the list.  id and calls are known after the exchange. */
struct mstx_seen {
    uint64_t records;      /* in its files */
    uint64_t calls;        /* number of communication calls of all processes before this one */
    uint32_t id;           /* in the table processes; 0: no readable segment */
    uint32_t size;         /* world size as recorded */
    bool uses_mpi;         /* found by the names of its calls; set only where its files are read */
    bool is_taken;         /* its lanes have been read, so the following fields are set */
    struct mstx_seg *head; /* of its first segment */
    uint64_t newest, events, unfinished, dropped, clock_cost;
    uint32_t name; /* text */
    bool is_closed;
};

struct mstx_import {
    const struct mstx_import_how *how;
    struct ms_par *par;
    struct mstx_writer *w;
    struct mstx_text_sink sink; /* texts of captures into w */
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    struct mstx_spool *spool; /* calls of the cluster; NULL: under mpirun they are in memory */
    struct mstx_cl_part part; /* of the current process */
    struct mstx_cl_names names;
    struct mstx_read_proc now;      /* the current process; the next one reuses the memory */
    struct mstx_ahead *ahead;       /* reads the next ones; NULL: a single thread */
    const struct mstx_lanes *lanes; /* of the current process */
    MS_VEC(struct mstx_marked_call) marked; /* likewise */
    struct mstx_clocks clocks;
    struct mstx_meetings meetings; /* only when there are several hosts */
    struct mstx_procs procs;
    size_t from, to;               /* the range of procs that this process reads */
    MS_VEC(struct mstx_seen) seen; /* of all captured processes */
    struct ms_buf groups;          /* GROUP texts of communicators in order of appearance */
    uint32_t texts;                /* number of texts that every process has with the same ids */
    struct mstx_problems problems;
    MS_VEC(struct mstx_import_problem) problem;
    size_t at;        /* place of the current process */
    bool is_again;    /* set while files are opened again: known problems are not repeated */
    size_t done;      /* processes read so far, counted in both passes, for progress */
    size_t reference; /* the clock of rank 0's host */
    struct mstx_import_result *result;
};

/* Notes a problem of the current process, or of no process when `at` is past the end of the
 * list. */
void mstx__import_problem(struct mstx_import *im, const char *file, const char *text);
/* Tells whether a problem of this file of the current process was noted. */
bool mstx__import_has_problem(const struct mstx_import *im, const char *file);
/* Writes all problems, ordered by process and within a process in the order in which they were
 * found. */
void mstx__import_write_problems(struct mstx_import *im);
void mstx__import_put_problems(const struct mstx_import *im, struct ms_buf *b);
enum ms_rc mstx__import_take_problems(struct mstx_import *im, struct ms_taker *t,
                                      struct ms_err *err) MS_MUST_USE;
void mstx__import_free_problems(struct mstx_import *im);

/* Collects the clocks of hosts; mstx__import_fit_clocks fits them after the last process. */
enum ms_rc mstx__import_learn_clock(struct mstx_import *im, const struct mstx_proc *p,
                                    struct ms_err *err) MS_MUST_USE;
void mstx__import_put_clocks(const struct mstx_import *im, struct ms_buf *b);
enum ms_rc mstx__import_take_clocks(struct mstx_import *im, struct ms_taker *t,
                                    struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__import_fit_clocks(struct mstx_import *im, struct ms_err *err) MS_MUST_USE;

/* Reads the lanes of a process: adds its part to the rows of all ranks, and writes its events
 * unless only a summary is wanted. */
enum ms_rc mstx__import_read_process(struct mstx_import *im, size_t place,
                                     struct ms_err *err) MS_MUST_USE;
void mstx__import_write_process(struct mstx_import *im, size_t place);

/* Finds the captured processes and divides them among the importing ones. */
enum ms_rc mstx__import_divide(struct mstx_import *im, const char *dir,
                               struct ms_err *err) MS_MUST_USE;
/* Returns the share of all work that only process 0 can do; process 0 gets as much less of the
 * divided work. */
double mstx__import_alone(const struct mstx_import *im);
/* Sends the results of the first pass of each process to all processes. */
enum ms_rc mstx__import_exchange(struct mstx_import *im, enum ms_rc mine,
                                 struct ms_err *err) MS_MUST_USE;
/* Sends the part of this process to process 0; in process 0, copies all parts into its database. */
enum ms_rc mstx__import_merge(struct mstx_import *im, const char *db,
                              struct ms_err *err) MS_MUST_USE;

#endif
