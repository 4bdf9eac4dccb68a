/* SPDX-License-Identifier: MIT
 *
 * node_name: names of nodes as rows show them.
 *
 * The whole name stands in the details; a row has little room, and below its
 * parent half of the name would be said again.
 */
#ifndef VIZ_MODEL_NODE_NAME_H
#define VIZ_MODEL_NODE_NAME_H

#include "probe/base/str.h"

/* A name without what the row above it says already, and without what nearly all have:
 * "attn.SelfAttention" for "Module.layers.0.attn.SelfAttention.forward.0" below layer 0.
 * Part of `name`. */
struct ms_str viz_node_short(struct ms_str name, struct ms_str parent);

#endif
