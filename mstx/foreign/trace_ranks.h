/* SPDX-License-Identifier: MIT
 *
 * trace_ranks: what the traces of several ranks say together: their steps, the work of their
 * devices, and their collectives, which join over the ranks.
 *
 *     ranks_new ─► for each trace: rank_step, rank_work, rank_call, then rank_save ─► ranks_save
 */
#ifndef MSTX_FOREIGN_TRACE_RANKS_H
#define MSTX_FOREIGN_TRACE_RANKS_H

#include "mstx/cluster/cluster.h"
#include "mstx/foreign/trace_clock.h"
#include "mstx/foreign/trace_item.h"
#include "mstx/format/device_work.h"
#include "mstx/import/comm_calls.h"
#include "mstx/rundb/run_write.h"

#include "probe/base/map.h"
#include "probe/base/progress.h"

/* State of one import. */
struct mstx_trace_ranks {
    struct mstx_writer *w;
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    struct ms_arena *texts;
    struct mstx_work_memory works; /* by text of the writer */
    struct mstx_trace_clocks clocks;
    uint64_t calls;
    uint64_t files;
    uint64_t repeated;          /* traces of ranks that another trace has, too */
    struct ms_progress *bar;    /* shows how much has been read; NULL: nothing does */
    uint64_t bytes_read, bytes; /* of the files before the current one, and of all */
    int32_t world;              /* the most ranks that a trace says the job has; 0: none says */
    MS_VEC(int32_t) rank;       /* of each file; -1: unknown */
};
enum ms_rc mstx__trace_ranks_new(struct mstx_trace_ranks *a, struct mstx_writer *w,
                                 struct ms_err *err) MS_MUST_USE;
/* Concludes and saves the analysis of all ranks. Called after the last trace. */
enum ms_rc mstx__trace_ranks_save(struct mstx_trace_ranks *a, struct ms_err *err) MS_MUST_USE;
void mstx__trace_ranks_free(struct mstx_trace_ranks *a);

/* One collective on the device. */
struct mstx_trace_call {
    int64_t start_ns, end_ns;
    uint32_t name;   /* text of the kernel, in the writer */
    uint32_t number; /* of its communicator in the process */
    uint32_t stream;
    struct mstx_rec_comm rec;
};
/* The trace of one rank. Zero it, then set all. */
struct mstx_trace_rank {
    struct mstx_trace_ranks *all;
    struct mstx_cl_part part;
    struct ms_map groups; /* index + 1 is the number of a communicator in the process */
    MS_VEC(struct mstx_trace_comm) group; /* what is known of it; texts live as long as the file */
    MS_VEC(uint32_t) seen;                /* calls so far, by communicator and class */
    MS_VEC(struct mstx_trace_call) call;
    bool is_ordered; /* calls are in their order, with their numbers */
};
/* Return false when out of memory.  Times are those of the trace; rank_save converts them. */
bool mstx__trace_rank_step(struct mstx_trace_rank *r, int64_t number, int64_t start, int64_t end);
/* Takes what a device executed; text is the number of its name in the writer. */
bool mstx__trace_rank_work(struct mstx_trace_rank *r, const struct mstx_trace_item *it,
                           uint32_t text);
/* As trace_rank_work, of which the kind of work is known. */
bool mstx__trace_rank_span(struct mstx_trace_rank *r, const struct mstx_trace_item *it,
                           enum mstx_work work);
/* Takes a kernel that its args describe as a collective; others are ignored. */
bool mstx__trace_rank_call(struct mstx_trace_rank *r, const struct mstx_trace_item *it,
                           uint32_t stream);
/* Returns the only rank that all communicators of the trace have; -1: they have none or several. */
int32_t mstx__trace_rank_common(const struct mstx_trace_rank *r);
/* Joins the clock of the trace, whose base is set in t, with those of the traces before it by their
 * collectives. Called after the last call. */
enum ms_rc mstx__trace_rank_clock(struct mstx_trace_rank *r, struct mstx_trace_time *t,
                                  struct mstx_trace_joined *joined, struct ms_err *err) MS_MUST_USE;
/* Adds the trace to the analysis as this process of the run, and writes its calls. */
enum ms_rc mstx__trace_rank_save(struct mstx_trace_rank *r, int32_t rank, uint32_t process,
                                 const struct mstx_trace_time *t, struct ms_err *err) MS_MUST_USE;
void mstx__trace_rank_free(struct mstx_trace_rank *r);

#endif
