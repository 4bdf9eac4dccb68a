/* SPDX-License-Identifier: MIT
 *
 * cluster: conclusions about all ranks together, from rows in memory.
 *
 *     mstx__cluster_group ..         communicators, into a zeroed struct mstx_cluster   rows.h
 *     mstx__cluster_part ..          steps and calls of each process               rank_part.h
 *     mstx__cluster_find_places      the place of each collective among all            join.h
 *     mstx__cluster_join             one collective in the calls of all its ranks       join.h
 *     mstx__cluster_paths            transfer times by path                            links.h
 *     mstx__cluster_judge            mismatches, hangs, slow links, stragglers
 *
 * import/join_share.h divides this among the processes of an mpirun.
 */
#ifndef MSTX_CLUSTER_CLUSTER_H
#define MSTX_CLUSTER_CLUSTER_H

#include "mstx/cluster/rank_part.h"
#include "mstx/cluster/rows.h"

/* Makes the notes from the joins and paths of all ranks. */
void mstx__cluster_judge(struct mstx_cluster *c);
/* Joins all calls and makes the notes, in a single process. */
enum ms_rc mstx__cluster_conclude(struct mstx_cluster *c, struct ms_err *err) MS_MUST_USE;

#endif
