/* SPDX-License-Identifier: MIT
 *
 * node_name: short names of nodes for rows.
 *
 * The details show the whole name; a row is narrow, and its parent row already shows half of the
 * name.
 */
#ifndef VIZ_MODEL_NODE_NAME_H
#define VIZ_MODEL_NODE_NAME_H

#include "probe/base/str.h"

/* Returns a name without the part shown by its parent row and without common prefixes and
 * suffixes: "attn.SelfAttention" for "Module.layers.0.attn.SelfAttention.forward.0" below layer
 * 0. The result points into `name`. */
struct ms_str viz_node_short(struct ms_str name, struct ms_str parent);

#endif
