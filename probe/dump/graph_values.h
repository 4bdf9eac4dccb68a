/* SPDX-License-Identifier: MIT
 *
 * graph_values: numbers the values of a graph by its flow.
 *
 * Equal bytes are not one value: the gradient of a square runs Pow(x, 1), whose result is x again, and a program
 * may compute one difference twice. The graph's text says which kernel makes an input, so each result of a kernel
 * that the text has is a value of its own. Without the text, equal bytes are one value.
 */
#ifndef PROBE_DUMP_GRAPH_VALUES_H
#define PROBE_DUMP_GRAPH_VALUES_H

#include "probe/dump/graph_read.h"

/* Replaces the numbers of equal bytes in all tensors by those of values, and sets the graph's value_count. */
enum ms_rc probe__number_values(struct probe__graph *g, struct ms_err *err) MS_MUST_USE;

#endif
