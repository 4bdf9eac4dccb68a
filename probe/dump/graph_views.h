/* SPDX-License-Identifier: MIT
 *
 * graph_views: finds the tensors of a graph whose files do not hold them.
 *
 * A kernel such as ChunkView copies nothing: its result is a part of another tensor's memory, or the same elements in
 * another order. MindSpore writes such a tensor's file, also as an input of a later kernel, from the memory as it
 * lies: as many elements as the tensor has, in the order of the other tensor.
 */
#ifndef PROBE_DUMP_GRAPH_VIEWS_H
#define PROBE_DUMP_GRAPH_VIEWS_H

#include "probe/dump/graph_read.h"

/* Sets what the file of each tensor holds. */
void probe__find_views(struct probe__graph *g);

#endif
