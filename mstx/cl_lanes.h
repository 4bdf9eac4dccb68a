/* SPDX-License-Identifier: MIT
 *
 * cl_lanes: see cl_lanes.c.
 */
#ifndef MSTX_CL_LANES_H
#define MSTX_CL_LANES_H

#include "mstx/tl_cluster.h"
#include "mstx/tl_lanes.h"

/* What is known of names, by their ids in run.db; one for a whole import. */
struct mstx_cl_names {
    int64_t *p;
    size_t n, cap;
};

struct mstx_cl_source {
    const struct mstx_lanes *l;
    struct mstx_host_clock *clock;
    const struct mstx_writer *w;
    const struct mstx_comm_writer *comm;
    struct mstx_cl_names *names;
    int32_t rank;
    struct ms_str host;
    uint32_t host_clock;       /* which of all */
    struct mstx_cl_part *part; /* to fill; keeps its memory from one process to the next */
};
void mstx__cluster_lanes(struct mstx_cluster *c, const struct mstx_cl_source *s);

#endif
