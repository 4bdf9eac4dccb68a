/* SPDX-License-Identifier: MIT
 *
 * graph_dump: MindSpore's own dump of compiled graphs, read as a dump.
 *
 *     ROOT/ rank_0/ NET/ GRAPH/ ITERATION/ KERNEL.npy
 *                  execution_order/ ms_execution_order_graph_GRAPH.csv
 *
 * What its names and tensors say is written once as dump.json, construct.json and stack.json: beside it,
 * or, where nothing may be written, into the user's cache. It is written anew when a file was added.
 */
#ifndef PROBE_DUMP_GRAPH_DUMP_H
#define PROBE_DUMP_GRAPH_DUMP_H

#include "probe/base/io.h"

/* Has probe_find open such folders. */
void probe_graph_dump_register(void);
/* Whether the folder is such a dump: it, or a folder in it, is rank_R with graphs. */
bool probe__is_graph_dump(const char *path);
/* The folder with stepN and rankR in it, on the heap; all tensors are read where it is not up to date. */
enum ms_rc probe__graph_dump_convert(const char *path, char **root, struct ms_err *err) MS_MUST_USE;

#endif
