/* SPDX-License-Identifier: MIT
 *
 * links: transfer times by path, and paths that are slower than comparable ones.
 */
#ifndef MSTX_CLUSTER_LINKS_H
#define MSTX_CLUSTER_LINKS_H

#include "mstx/cluster/rows.h"

/* Finds the world ranks at both ends of a transfer; returns false when the other end is unknown. */
bool mstx__cluster_ends(const struct mstx_cluster *c, const struct mstx_cl_call *k, int32_t *src,
                        int32_t *dst);
/* Makes the paths of the joins and transfers of this process. */
void mstx__cluster_paths(struct mstx_cluster *c);
/* Compares all paths and notes slow ones; called in process 0. */
void mstx__cluster_links(struct mstx_cluster *c);

#endif
