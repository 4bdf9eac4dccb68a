/* SPDX-License-Identifier: MIT
 *
 * node_pairs: finds the golden partner of each target node.
 */
#ifndef COMPARE_OBSERVE_NODE_PAIRS_H
#define COMPARE_OBSERVE_NODE_PAIRS_H

#include "compare/observe/value_flow.h"

struct observe__pairing {
    const struct cmp *c;
    const struct probe_dump *dump[2];
    const struct observe__side *side[2];
    struct ms_pool *pool;
    uint32_t *mate[2]; /* by node: its partner, or OBSERVE__NONE */
    bool *moved;       /* by target node: runs at another position */
    /* By node: the earlier node that this node recomputes, and the later node that recomputes this
     * one. */
    uint32_t *origin[2], *again[2];
    uint32_t *row_mate;         /* by target row: its partner; NULL: rows are paired by path */
    const struct cmp_align *al; /* NULL: rows are paired by path */
    struct cmp_align *own;      /* the alignment, if created here */
    uint32_t *golden_path;      /* by path of the target: the golden path */
};
enum ms_rc observe__pair_nodes(struct observe__pairing *q, const struct cmp *c,
                               const struct observe__side side[2], bool cross, struct ms_pool *pool,
                               struct ms_err *err);
/* Tells whether the dumps are of two programs: of two frameworks, or with many operators that the
 * other side does not call. */
enum ms_rc observe__is_cross(const struct cmp *c, bool *cross, struct ms_err *err);
void observe__pairing_free(struct observe__pairing *q);

#endif
