/* SPDX-License-Identifier: MIT
 *
 * graph_name: the kind of a node by its name, by the rules of the official tool.
 */
#ifndef COMPARE_GRAPH_BUILD_GRAPH_NAME_H
#define COMPARE_GRAPH_BUILD_GRAPH_NAME_H

#include "probe/base/str.h"
#include "probe/dump/name.h"

#include <stdbool.h>

/* Values of the column node_type. */
enum graph__kind { GRAPH_MODULE = 0, GRAPH_API = 1, GRAPH_COLLECTION = 9 };

enum graph__kind graph__kind_of(struct ms_str name);
/* Appends the name with every `from` replaced by `to`. */
void graph__replace(struct ms_buf *out, struct ms_str name, struct ms_str from, struct ms_str to);

#endif
