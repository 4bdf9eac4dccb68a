/* SPDX-License-Identifier: MIT
 *
 * class_replay: the scenarios of many classes of operations, replayed in one pass.
 *
 * In the scenario of a class, its operations have other durations.  A whole replay for each of R
 * classes takes R passes.  But where a class has not been waited for, its scenario equals the base,
 * and after a collective all ranks see the same delays.  So a node keeps its time in the base, and
 * delays in three parts:
 *
 *     time of a class = base + delay, where delay is
 *         self      if it is the class of the last operations of the node's rank; else
 *         own       if the class is in the node's short list, which nodes behind share; else
 *         that of the latest of its profiles, which all nodes behind a collective share
 *
 * Where nodes meet, their lists are merged; a list that grows long becomes a profile.
 */
#ifndef MSTX_CLUSTER_CLASS_REPLAY_H
#define MSTX_CLUSTER_CLASS_REPLAY_H

#include "mstx/cluster/deps.h"

struct mstx_class_replay;
/* Returns NULL when out of memory.  `most` is the largest number of nodes of a step. */
struct mstx_class_replay *mstx__class_replay_new(const struct mstx_deps *d, size_t most);
void mstx__class_replay_free(struct mstx_class_replay *r);
/* Replays the nodes [from, to), which have no predecessors before `from`, once for each of
 * `classes` classes (x->first is 0), and adds their latest times to sum.  No duration is negative.
 * Times are exact when durations are multiples of a power of two.  Returns false, with sum
 * unchanged, when out of memory, or when the delays differ so much from node to node that whole
 * replays are cheaper. */
bool mstx__class_replay(struct mstx_class_replay *r, size_t from, size_t to,
                        const struct mstx_scenarios *x, uint32_t classes, double *sum);

#endif
