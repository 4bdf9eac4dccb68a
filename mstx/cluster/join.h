/* SPDX-License-Identifier: MIT
 *
 * join: one collective in the calls of all its ranks.
 *
 * The calls of a collective are matched over all ranks by communicator and sequence number.
 * Waiting follows from durations alone: the rank that arrives last waits least.  So clocks of hosts
 * need not agree.
 */
#ifndef MSTX_CLUSTER_JOIN_H
#define MSTX_CLUSTER_JOIN_H

#include "mstx/cluster/rows.h"

/* Gives each collective its place among those of all communicators, and sets from and to to all
 * places. */
void mstx__cluster_find_places(struct mstx_cluster *c);
/* Returns the place of a call's collective, SIZE_MAX when its sequence number is damaged. */
size_t mstx__cluster_place(const struct mstx_cluster *c, const struct mstx_cl_call *k);
/* Joins the collectives at the places [from, to), in order of their places. */
void mstx__cluster_join(struct mstx_cluster *c);
/* Drops notes that a later range of a communicator's collectives made after an earlier range had
 * one; the notes before `quarrels` and `missing` are those of earlier ranges. */
void mstx__cluster_forget_repeated(struct mstx_cluster *c, size_t quarrels, size_t missing);

#endif
