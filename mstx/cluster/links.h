/* SPDX-License-Identifier: MIT
 *
 * links: how fast data goes on each path, and which path is slower than its like.
 */
#ifndef MSTX_CLUSTER_LINKS_H
#define MSTX_CLUSTER_LINKS_H

#include "mstx/cluster/rows.h"

/* Ranks of the world at both ends of a transfer; false: the other one is not known. */
bool mstx__cluster_ends(const struct mstx_cluster *c, const struct mstx_cl_call *k, int32_t *src,
                        int32_t *dst);
/* Makes the paths of the joins and transfers that are here. */
void mstx__cluster_paths(struct mstx_cluster *c);
/* Compares all paths, in process 0. */
void mstx__cluster_links(struct mstx_cluster *c);

#endif
