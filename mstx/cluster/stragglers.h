/* SPDX-License-Identifier: MIT
 *
 * stragglers: which ranks make the others wait.
 *
 * Own time of a rank in a step is the step without communication.  A straggler is a rank whose own
 * time is longer than that of its partners in each of its communicators.  In a slow stage of a
 * pipeline all partners are equally slow, so none of them is a straggler.
 */
#ifndef MSTX_CLUSTER_STRAGGLERS_H
#define MSTX_CLUSTER_STRAGGLERS_H

#include "mstx/cluster/rows.h"

/* Notes the stragglers among all ranks; called in process 0. */
void mstx__cluster_stragglers(struct mstx_cluster *c);

#endif
