/* SPDX-License-Identifier: MIT
 *
 * op_graph: the dependency graph of recorded operations.
 *
 * The generic graph needs lanes, times and who meets whom: the operations of a rank run one after the
 * other.  The staged graph also knows what the types of a pipeline-parallel training have to do with
 * each other, by the rules of "Understanding Stragglers in Large Model Training Using What-if Analysis"
 * (OSDI 2025), whose figures it reproduces.
 */
#ifndef MSTX_CLUSTER_OP_GRAPH_H
#define MSTX_CLUSTER_OP_GRAPH_H

#include "mstx/cluster/deps.h"
#include "mstx/cluster/ops.h"

enum mstx_graph_kind { MSTX_GRAPH_GENERIC, MSTX_GRAPH_STAGED };

/* Builds the graph of all steps.  Returns the number of operations that wait for each other in a
 * circle and are left out; d->no_memory says whether memory ran out. */
size_t mstx__op_graph(const struct mstx_ops *o, enum mstx_graph_kind kind, struct mstx_deps *d);

#endif
