/* SPDX-License-Identifier: MIT
 *
 * met_group: a communicator that a file of another tool describes.
 */
#ifndef MSTX_FOREIGN_MET_GROUP_H
#define MSTX_FOREIGN_MET_GROUP_H

#include "mstx/cluster/rows.h"
#include "mstx/import/comm_calls.h"

/* Gives a communicator its number in the process that is being read, and adds it to the tables and to
 * the analysis of all ranks when no rank before had it. g->world is an aligned array. */
enum ms_rc mstx__met_group(struct mstx_comm_writer *comm, struct mstx_cluster *c,
                           const struct mstx_comm_known *g, uint32_t number,
                           struct ms_err *err) MS_MUST_USE;

#endif
