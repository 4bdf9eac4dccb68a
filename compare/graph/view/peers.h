/* SPDX-License-Identifier: MIT
 *
 * peers: children by what makes two of them alike.
 */
#ifndef COMPARE_GRAPH_VIEW_PEERS_H
#define COMPARE_GRAPH_VIEW_PEERS_H

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/str.h"

#include <stdbool.h>

/* Children of a node by what makes two of them alike: add all, sort once, then take. */
struct graph__peers {
    struct ms_map kinds;
    uint32_t n, *kind, *place, *first, *free;
    struct ms_arena *arena;
    struct ms_buf text;
};
enum ms_rc graph__peers_new(struct graph__peers *p, size_t n, struct ms_err *err);
/* The next child; type is its node_type, one that is taken is like nobody. */
enum ms_rc graph__peers_add(struct graph__peers *p, struct ms_str type, struct ms_str name,
                            bool taken, struct ms_err *err);
enum ms_rc graph__peers_sort(struct graph__peers *p, struct ms_err *err);
/* The first child like that one which nobody has taken: behind child `last` if there is one, where it
 * stands in most modules, and else from the beginning; MS_MAP_NONE: there is none. */
uint32_t graph__peers_take(struct graph__peers *p, struct ms_str type, struct ms_str name,
                           uint32_t last);
void graph__peers_free(struct graph__peers *p);

#endif
