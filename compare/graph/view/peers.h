/* SPDX-License-Identifier: MIT
 *
 * peers: groups children by kind.
 */
#ifndef COMPARE_GRAPH_VIEW_PEERS_H
#define COMPARE_GRAPH_VIEW_PEERS_H

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/str.h"

#include <stdbool.h>

/* Children of a node grouped by kind: class of a module, API of an operator. Add all, sort once,
 * then take. */
struct graph__peers {
    struct ms_map kinds;
    uint32_t n, *kind, *place, *first, *free;
    struct ms_arena *arena;
    struct ms_buf text;
};
enum ms_rc graph__peers_new(struct graph__peers *p, size_t n, struct ms_err *err);
/* Adds the next child; type is its node_type. A child that is taken belongs to no kind. */
enum ms_rc graph__peers_add(struct graph__peers *p, struct ms_str type, struct ms_str name,
                            bool taken, struct ms_err *err);
enum ms_rc graph__peers_sort(struct graph__peers *p, struct ms_err *err);
/* Takes the first free child of the same kind: after child `last` if there is one, as in most
 * modules, else from the beginning. Returns MS_MAP_NONE when there is none. */
uint32_t graph__peers_take(struct graph__peers *p, struct ms_str type, struct ms_str name,
                           uint32_t last);
void graph__peers_free(struct graph__peers *p);

#endif
