/* SPDX-License-Identifier: MIT
 *
 * graph_dump: reads MindSpore's own dump of compiled graphs as a dump.
 *
 *     ROOT/ rank_0/ NET/ GRAPH/ ITERATION/ KERNEL.npy
 *                  execution_order/ ms_execution_order_graph_GRAPH.csv
 *
 * The names and tensors are converted once into dump.json, construct.json and stack.json, which are
 * written beside the dump or, where that is not writable, into the user's cache. They are written
 * again when a file was added.
 */
#ifndef PROBE_DUMP_GRAPH_DUMP_H
#define PROBE_DUMP_GRAPH_DUMP_H

#include "probe/base/io.h"

/* Makes probe_find open such folders. */
void probe_graph_dump_register(void);
/* Tells whether the folder is such a dump: the folder itself or a subfolder is rank_R with
 * graphs. */
bool probe__is_graph_dump(const char *path);
/* Returns, on the heap, the converted folder with stepN/rankR in it. Reads all tensors when the
 * conversion is not up to date. */
enum ms_rc probe__graph_dump_convert(const char *path, char **root, struct ms_err *err) MS_MUST_USE;

#endif
