/* SPDX-License-Identifier: MIT
 *
 * cl_ascend: see cl_ascend.c.
 */
#ifndef MSTX_CL_ASCEND_H
#define MSTX_CL_ASCEND_H

#include "mstx/tl_cluster.h"
#include "mstx/tl_comm.h"
#include "mstx/tl_write.h"

#include "probe/base/map.h"

/* Databases of many ranks; one for a whole import. */
struct mstx_cl_ascend {
    struct mstx_writer *w;
    struct mstx_comm_writer *comm;
    struct mstx_cluster cluster;
    struct ms_arena *texts;
    struct ms_map call;   /* communicator, name and how often before: one collective on all ranks */
    MS_VEC(uint32_t) seq; /* by it */
    MS_VEC(uint32_t) next; /* number of the next one, by communicator */
    uint64_t calls;
};
enum ms_rc mstx__cluster_ascend_new(struct mstx_cl_ascend *a, struct mstx_writer *w,
                                    struct ms_err *err) MS_MUST_USE;
void mstx__cluster_ascend_free(struct mstx_cl_ascend *a);

/* The database of a rank, whose calls belong to that process of the run. */
enum ms_rc mstx__cluster_ascend_rank(struct mstx_cl_ascend *a, struct ms_store *from, int32_t rank,
                                     uint32_t process, struct ms_err *err) MS_MUST_USE;
/* After the last rank. */
enum ms_rc mstx__cluster_ascend_save(struct mstx_cl_ascend *a, struct ms_err *err) MS_MUST_USE;

#endif
