/* SPDX-License-Identifier: MIT
 *
 * op_graph: the dependency graph of recorded operations.
 *
 * The generic graph needs ranks, times and meetings: the operations of a rank run one after the
 * other.  The staged graph also has the dependencies between operation types of a pipeline-parallel
 * training, by the rules of "Understanding Stragglers in Large Model Training Using What-if
 * Analysis" (OSDI 2025), whose figures it reproduces.
 */
#ifndef MSTX_CLUSTER_OP_GRAPH_H
#define MSTX_CLUSTER_OP_GRAPH_H

#include "mstx/cluster/deps.h"
#include "mstx/cluster/ops.h"

enum mstx_graph_kind { MSTX_GRAPH_GENERIC, MSTX_GRAPH_STAGED };

/* Builds the graph of all steps.  Returns the number of operations that are left out because of
 * cycles; d->no_memory tells whether memory ran out. */
size_t mstx__op_graph(const struct mstx_ops *o, enum mstx_graph_kind kind, struct mstx_deps *d);

#endif
