/* SPDX-License-Identifier: MIT
 *
 * stragglers: which ranks make the others wait.
 *
 * Own time of a rank in a step is the step without communication.  A straggler is a rank whose own
 * time is longer than that of its partners in every communicator it has: of a pipeline's slow stage
 * all partners within the stage are as slow, so none of them is one.
 */
#ifndef MSTX_CLUSTER_STRAGGLERS_H
#define MSTX_CLUSTER_STRAGGLERS_H

#include "mstx/cluster/rows.h"

/* Names stragglers by the steps of all ranks, in process 0. */
void mstx__cluster_stragglers(struct mstx_cluster *c);

#endif
