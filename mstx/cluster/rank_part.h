/* SPDX-License-Identifier: MIT
 *
 * rank_part: what one process of a capture brings to the analysis of all ranks: its steps, divided
 * into computing, communication and the rest, and its calls with the steps they lie in.
 */
#ifndef MSTX_CLUSTER_RANK_PART_H
#define MSTX_CLUSTER_RANK_PART_H

#include "mstx/cluster/rows.h"

/* Time spans in order of start, joined where they touch; what they cover between two times. */
struct mstx_cl_span {
    int64_t start, end;
};
typedef MS_VEC(struct mstx_cl_span) mstx_cl_spans;
/* Puts spans in order of their start and joins those that touch. */
void mstx__spans_join(mstx_cl_spans *s);

/* What one process brings; times of its own clock.  Spans are joined here. */
struct mstx_cl_part {
    int32_t rank;
    uint32_t clock;
    struct ms_str host;
    MS_VEC(struct mstx_cl_step) steps; /* number, start, end; in order */
    mstx_cl_spans comm, work, bubble;  /* communication, computing, waiting to receive */
    mstx_cl_calls calls;               /* group: id in comm_groups, 0: none */
    bool knows_work;                   /* else computing is what is not communication */
};

/* Makes steps of a part that has none out of its calls: slices with the same number of collectives of
 * the busiest communicator, which are the same ones on all its ranks.  false: no memory. */
bool mstx__cluster_slice(struct mstx_cl_part *p);
/* Adds the part to the rows of all; parts come in the order of their processes. */
void mstx__cluster_part(struct mstx_cluster *c, struct mstx_cl_part *p);
/* Empties the part and keeps its memory. */
void mstx__cluster_part_reset(struct mstx_cl_part *p);
void mstx__cluster_part_free(struct mstx_cl_part *p);

#endif
