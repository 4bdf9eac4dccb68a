/* SPDX-License-Identifier: MIT
 *
 * graph_match: which files are of which kernel, by the flow of values.
 *
 * The compiler expands operators into kernels of the same name. Their numbers in files and in the
 * graph's text have no relation, and on a CPU independent kernels run side by side, so the times of
 * files tell little. Other kernels of one name, such as two lookups of embeddings, sometimes have each
 * other's numbers, too. What a kernel reads is what the kernels before it have written.
 */
#ifndef PROBE_DUMP_GRAPH_MATCH_H
#define PROBE_DUMP_GRAPH_MATCH_H

#include "probe/dump/graph_read.h"

/* Exchanges the tensors of kernels of one name until they fit the graph's text. */
enum ms_rc probe__match_kernels(struct probe__graph *g, struct ms_err *err) MS_MUST_USE;

#endif
