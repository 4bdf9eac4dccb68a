/* SPDX-License-Identifier: MIT
 *
 * join: one collective in the calls of all its ranks.
 *
 * A collective is found in all ranks by communicator and number, and durations alone tell who waits
 * for whom: the rank that arrives last waits least.  So clocks of hosts need not agree.
 */
#ifndef MSTX_CLUSTER_JOIN_H
#define MSTX_CLUSTER_JOIN_H

#include "mstx/cluster/rows.h"

/* Gives each collective its place among those of all communicators, and sets from and to to all places. */
void mstx__cluster_find_places(struct mstx_cluster *c);
/* The place of a call's collective; SIZE_MAX: its number makes no sense. */
size_t mstx__cluster_place(const struct mstx_cluster *c, const struct mstx_cl_call *k);
/* Joins the collectives at the places from .. to, in order of their places. */
void mstx__cluster_join(struct mstx_cluster *c);

#endif
