/* SPDX-License-Identifier: MIT
 *
 * graph_write: writes a compiled graph's kernels as dump.json, construct.json and stack.json.
 */
#ifndef PROBE_DUMP_GRAPH_WRITE_H
#define PROBE_DUMP_GRAPH_WRITE_H

#include "probe/dump/graph_shape.h"

/* Writes the three files into dir. net: the folder of the tensors, to which the records refer. */
enum ms_rc probe__graph_write(const struct probe__graph_shape *s, const char *dir, const char *net,
                              struct ms_err *err) MS_MUST_USE;

#endif
