/* SPDX-License-Identifier: MIT
 *
 * tl_import_int: what the files of an import share: tl_import (the whole), tl_import_clock (what
 * times mean), tl_import_take (events), tl_import_merge (many processes' parts in one database).
 *
 *              learn              exchange            take                merge
 *     files ─► clocks, texts, ─► everybody knows ─► rows of run.db, ─► one run.db, joined
 *              communicators      all of these       calls of ranks      and judged
 *
 * Under mpirun each process has a stretch of the list of captured processes.  What gets a number
 * gets it by its place in the whole list, so that the database is the same for any number of
 * processes, one among them.
 */
#ifndef MSTX_TL_IMPORT_INT_H
#define MSTX_TL_IMPORT_INT_H

#include "mstx/cl_lanes.h"
#include "mstx/tl_import.h"
#include "mstx/tl_lanes.h"
#include "mstx/tl_meet.h"
#include "mstx/tl_share.h"

/* A call that the program marked with a text. */
struct mstx_said_call {
    struct mstx_event event;
    uint32_t tid;
};

/* A row of the table problems. */
struct mstx_import_problem {
    uint64_t process; /* place in the list; behind it: of none in particular */
    char *file, *text;
};

/* A captured process, by its place in the list.  id and calls are known after the exchange. */
struct mstx_seen {
    uint64_t records;      /* in its files */
    uint64_t calls;        /* the number before that of its first communication call */
    uint32_t id;           /* in processes; 0: it has nothing that can be read */
    uint32_t size;         /* as it says: ranks of the world */
    bool uses_mpi;         /* by the names of its calls; known to the process that reads it */
    bool is_taken;         /* its lanes have been read: what follows is known */
    struct mstx_seg *head; /* of its first segment */
    uint64_t newest, events, unfinished, dropped, clock_cost;
    uint32_t name; /* text */
    bool is_closed;
};

struct mstx_import {
    const struct mstx_import_how *how;
    struct ms_par *par;
    struct mstx_writer *w;
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    struct mstx_cl_part part; /* of the process at hand */
    struct mstx_cl_names names;
    struct mstx_lanes lanes;            /* of the process at hand; its memory is used again */
    MS_VEC(struct mstx_said_call) said; /* the same */
    struct mstx_clocks clocks;
    struct mstx_meetings meetings; /* only when there are several hosts */
    struct mstx_procs procs;
    size_t from, to;               /* ours of them */
    MS_VEC(struct mstx_seen) seen; /* of all */
    struct ms_buf groups; /* communicators as they were met: texts as they lie in the files */
    uint32_t texts;       /* that everybody knows */
    struct mstx_problems problems;
    MS_VEC(struct mstx_import_problem) problem;
    size_t at;        /* place of the process at hand */
    bool is_quiet;    /* opening files again finds the same problems */
    size_t done;      /* passes over processes, for who waits */
    size_t reference; /* the clock of rank 0's host */
    struct mstx_import_result *result;
};

/* Of the process at hand, or of none where at is behind the list. */
void mstx__import_problem(struct mstx_import *im, const char *file, const char *text);
/* finished, replaced by exec, running, killed, or not finished where that cannot be told. */
const char *mstx__import_state(const struct mstx_procs *all, size_t place,
                               const struct mstx_seg *head, bool is_closed);
/* One process has been passed. */
void mstx__import_step(struct mstx_import *im);

/* Clocks of the hosts of our processes; then, when those of all are known, straightened. */
enum ms_rc mstx__import_learn_clock(struct mstx_import *im, const struct mstx_proc *p,
                                    struct ms_err *err) MS_MUST_USE;
void mstx__import_put_clocks(const struct mstx_import *im, struct ms_buf *b);
enum ms_rc mstx__import_take_clocks(struct mstx_import *im, struct mstx_taker *t,
                                    struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__import_fit_clocks(struct mstx_import *im, struct ms_err *err) MS_MUST_USE;

/* Read the lanes of a process: its part of the cluster's analysis, and events unless a summary is
 * all that is wanted. */
enum ms_rc mstx__import_take(struct mstx_import *im, size_t place, struct ms_err *err) MS_MUST_USE;
void mstx__import_write_process(struct mstx_import *im, size_t place);

/* Find the captured processes, and which of them are ours. */
enum ms_rc mstx__import_divide(struct mstx_import *im, const char *dir,
                               struct ms_err *err) MS_MUST_USE;
/* How much of all work process 0 has for itself, and gets less of what is divided. */
double mstx__import_alone(const struct mstx_import *im);
/* Tell everybody what was learnt. */
enum ms_rc mstx__import_exchange(struct mstx_import *im, enum ms_rc mine,
                                 struct ms_err *err) MS_MUST_USE;
/* Put our part where process 0 can take it; there, take all parts. */
enum ms_rc mstx__import_merge(struct mstx_import *im, const char *db,
                              struct ms_err *err) MS_MUST_USE;

#endif
