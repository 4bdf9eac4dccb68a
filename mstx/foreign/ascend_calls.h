/* SPDX-License-Identifier: MIT
 *
 * ascend_calls: the collectives and transfers of a run, with the names that Ascend's profilers give
 * to operations and communicators.
 */
#ifndef MSTX_FOREIGN_ASCEND_CALLS_H
#define MSTX_FOREIGN_ASCEND_CALLS_H

#include "mstx/format/comm.h"
#include "mstx/format/comm_marked.h"
#include "mstx/rundb/run_query.h"

#include "probe/base/map.h"
#include "probe/base/store.h"
#include "probe/base/vec.h"

/* The communicators of a run, read once for all ranks. */
struct mstx_ascend_group {
    int64_t id;
    int64_t size; /* number of ranks; -1: unknown */
    struct ms_str name;
    char number[4]; /* last three digits of HCCL's number of the name */
};
struct mstx_ascend_groups {
    MS_VEC(struct mstx_ascend_group)
    list; /* by id; the first, with id 0, is of calls without one */
    struct ms_arena *arena;
};
enum ms_rc mstx__ascend_groups_read(struct mstx_ascend_groups **out, struct mstx_tl *tl,
                                    struct ms_err *err) MS_MUST_USE;
void mstx__ascend_groups_free(struct mstx_ascend_groups *g);

/* A call of comm_ops. */
struct mstx_ascend_call {
    uint32_t process, tid, group; /* group: place in the list of groups */
    int64_t start, end;
    struct mstx_rec_comm rec;
    uint64_t stream;
    bool is_said; /* marked by a framework, whose text is kept */
    bool starts;  /* only starts an operation, and returns at once */
    char op[MSTX_MARKED_NAME];
};
/* Reads the current row of the query sql_read_calls. */
struct mstx_ascend_call mstx__ascend_call_of_row(const struct mstx_ascend_groups *g,
                                                 struct ms_stmt *st);
/* Binds the first and the last process of a rank, or of MSTX_ALL_RANKS, to ?first and the next
 * parameter; run.db counts processes from 1. */
void mstx__bind_processes(struct ms_stmt *st, int first, const struct mstx_tl *tl, int32_t rank);

/* Numbers the calls of one kind by a process on a communicator. Zeroed to start. */
struct mstx_ascend_counts {
    struct ms_map key; /* process, group and type of calls that are counted together */
    MS_VEC(uint32_t) calls;
    struct ms_arena *arena;
};
void mstx__ascend_counts_free(struct mstx_ascend_counts *c);

/* Names of a call in COMMUNICATION_OP. */
struct mstx_ascend_names {
    char name[MSTX_MARKED_NAME + 40], type[MSTX_MARKED_NAME + 2];
};
enum ms_rc mstx__ascend_name_call(struct mstx_ascend_names *out, struct mstx_ascend_counts *counts,
                                  const struct mstx_ascend_groups *g, uint32_t process,
                                  const struct mstx_ascend_call *k, struct ms_err *err) MS_MUST_USE;

/* Prepares a query for number, start and end of the steps of a rank, or of MSTX_ALL_RANKS, in order
 * of their start. */
enum ms_rc mstx__ascend_steps(struct mstx_tl *tl, int32_t rank, struct ms_stmt **st,
                              struct ms_err *err) MS_MUST_USE;
/* Tells whether a run has collectives or transfers. */
enum ms_rc mstx__run_has_calls(struct mstx_tl *tl, bool *yes, struct ms_err *err) MS_MUST_USE;
/* Tells whether a rank has a device, whose times its calls then get. */
bool mstx__rank_has_streams(const struct mstx_tl *tl, int32_t rank);
/* Calls fn for the collectives and transfers of a rank in order of their start, except those that
 * only start an operation. Times are those of the host. */
typedef enum ms_rc (*mstx_ascend_call_fn)(void *ctx, const struct mstx_ascend_call *k,
                                          const struct mstx_ascend_names *names,
                                          struct ms_err *err);
enum ms_rc mstx__ascend_each_call(struct mstx_tl *tl, const struct mstx_ascend_groups *g,
                                  int32_t rank, mstx_ascend_call_fn fn, void *ctx,
                                  struct ms_err *err) MS_MUST_USE;

#endif
