/* SPDX-License-Identifier: MIT
 *
 * ascend_part: reads the communication, steps and work of one rank from its Ascend database, for the
 * analysis of all ranks.
 */
#ifndef MSTX_FOREIGN_ASCEND_PART_H
#define MSTX_FOREIGN_ASCEND_PART_H

#include "mstx/cluster/cluster.h"
#include "mstx/import/comm_calls.h"
#include "mstx/rundb/run_write.h"

#include "probe/base/map.h"

/* State of one import, which may read the databases of many ranks. */
struct mstx_cl_ascend {
    struct mstx_writer *w;
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    struct ms_arena *texts;
    struct ms_map call;    /* communicator, name and occurrence: one collective on all ranks */
    MS_VEC(uint32_t) seq;  /* sequence number, by index in call */
    MS_VEC(uint32_t) next; /* next sequence number, by communicator */
    uint64_t calls;
};
enum ms_rc mstx__cluster_ascend_new(struct mstx_cl_ascend *a, struct mstx_writer *w,
                                    struct ms_err *err) MS_MUST_USE;
void mstx__cluster_ascend_free(struct mstx_cl_ascend *a);

/* Reads the database of a rank; its calls belong to this process of the run. */
enum ms_rc mstx__cluster_ascend_rank(struct mstx_cl_ascend *a, struct ms_store *from, int32_t rank,
                                     uint32_t process, struct ms_err *err) MS_MUST_USE;
/* Concludes and saves the analysis. Called after the last rank. */
enum ms_rc mstx__cluster_ascend_save(struct mstx_cl_ascend *a, struct ms_err *err) MS_MUST_USE;

#endif
