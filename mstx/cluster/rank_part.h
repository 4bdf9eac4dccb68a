/* SPDX-License-Identifier: MIT
 *
 * rank_part: the part of one captured process in the analysis of all ranks: its steps, divided into
 * computing, communication and the rest, and its calls with their steps.
 */
#ifndef MSTX_CLUSTER_RANK_PART_H
#define MSTX_CLUSTER_RANK_PART_H

#include "mstx/cluster/rows.h"

/* A time span; lists of spans are in order of start. */
struct mstx_cl_span {
    int64_t start, end;
};
typedef MS_VEC(struct mstx_cl_span) mstx_cl_spans;
/* Sorts spans by start and joins spans that touch or overlap. */
void mstx__spans_join(mstx_cl_spans *s);

/* Steps, spans and calls of one process, with times of its own clock.  mstx__cluster_part joins the
 * spans. */
struct mstx_cl_part {
    int32_t rank;
    uint32_t clock;
    struct ms_str host;
    MS_VEC(struct mstx_cl_step) steps; /* number, start, end; in order */
    mstx_cl_spans comm, work, bubble;  /* communication, computing, waiting to receive */
    mstx_cl_calls calls;               /* group: id in comm_groups, 0: none */
    bool knows_work;                   /* false: everything except communication is computing */
};

/* Makes steps for a part without recorded steps: slices with an equal number of collectives of the
 * busiest communicator, the same ones on all its ranks.  Returns false when out of memory. */
bool mstx__cluster_slice(struct mstx_cl_part *p);
/* Adds the part to the rows of all ranks; parts must be added in the order of their processes. */
void mstx__cluster_part(struct mstx_cluster *c, struct mstx_cl_part *p);
/* Empties the part and keeps its memory. */
void mstx__cluster_part_reset(struct mstx_cl_part *p);
void mstx__cluster_part_free(struct mstx_cl_part *p);

#endif
