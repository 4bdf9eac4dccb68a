/* SPDX-License-Identifier: MIT
 *
 * pipeline: joins the layers of several ranks, or of several chunks, in their order.
 */
#ifndef COMPARE_GRAPH_MERGE_PIPELINE_H
#define COMPARE_GRAPH_MERGE_PIPELINE_H

#include "compare/graph/merge/forest.h"

/* Merges the ranks of a pipeline into the first. */
void graph__merge_pipeline(struct graph__forest *f, const uint32_t *ranks, uint32_t n);
/* Merges the chunks of the rank into its chunk 0. */
void graph__merge_chunks(struct graph__forest *f, uint32_t rank);

#endif
