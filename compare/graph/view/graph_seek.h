/* SPDX-License-Identifier: MIT
 *
 * graph_seek: searches in an open database; graph_view.h offers them to viewers.
 */
#ifndef COMPARE_GRAPH_VIEW_GRAPH_SEEK_H
#define COMPARE_GRAPH_VIEW_GRAPH_SEEK_H

struct graph_shapes;
/* Frees the shapes that graph_view_ahead has collected. */
void graph__shapes_free(struct graph_shapes *s);

#endif
