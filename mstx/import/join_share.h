/* SPDX-License-Identifier: MIT
 *
 * join_share: divides the joining of collectives among the processes of `mpirun msprobe import`,
 * all of which call these functions.
 */
#ifndef MSTX_IMPORT_JOIN_SHARE_H
#define MSTX_IMPORT_JOIN_SHARE_H

#include "mstx/cluster/rows.h"

#include "probe/base/err.h"

struct ms_par;
/* Sends all ranks and steps to every process, and each call to the process that joins it:
 * collectives by ranges of (communicator, sequence number), transfers by their pair of ranks.  The
 * share of process 0 is smaller by `less` of the whole. */
enum ms_rc mstx__cluster_share(struct mstx_cluster *c, struct ms_par *par, double less,
                               struct ms_err *err) MS_MUST_USE;
/* Brings the results of all processes to process 0. */
enum ms_rc mstx__cluster_gather(struct mstx_cluster *c, struct ms_par *par,
                                struct ms_err *err) MS_MUST_USE;

#endif
