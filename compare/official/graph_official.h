/* SPDX-License-Identifier: MIT
 *
 * graph_official: the rules of the official tool for graphs, defects included.
 */
#ifndef COMPARE_OFFICIAL_GRAPH_OFFICIAL_H
#define COMPARE_OFFICIAL_GRAPH_OFFICIAL_H

#include "compare/graph/graph_rules.h"

extern const struct graph_rules graph_rules_official;

#endif
