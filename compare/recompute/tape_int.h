/* SPDX-License-Identifier: MIT
 *
 * tape_int: what the files of the tape share.
 */
#ifndef COMPARE_RECOMPUTE_TAPE_INT_H
#define COMPARE_RECOMPUTE_TAPE_INT_H

#include "compare/recompute/tape.h"

#include <math.h>

/* Makes a node with room for its values; the address is valid until the next node is made. */
struct tape_node *tape__node(struct tape *t, enum tape_kind kind, const struct tape_shape *shape,
                             tape_id *id);
/* Room for the errors of a node, zeros; false on failure. */
bool tape__want_errors(struct tape *t, tape_id id);
static inline double tape__error(const struct tape_node *n, size_t i)
{
    return n->e != NULL ? n->e[i] : 0;
}
/* Sets the error of a result of elementwise rounding. */
static inline double tape__rounded(const struct tape *t, double v)
{
    return isfinite(v) ? t->unit * fabs(v) : 0;
}
/* Strides of C order, in elements. */
void tape__strides(const struct tape_shape *s, int64_t stride[TAPE_DIMS]);
/* Strides with which x is read at the positions of a shape that it is broadcast to. */
void tape__broadcast_strides(const struct tape_shape *x, const struct tape_shape *to,
                             int64_t stride[TAPE_DIMS]);

/* Walks the positions of a shape in C order and keeps up to three offsets. */
struct tape_walk {
    struct tape_shape shape;
    uint64_t at[TAPE_DIMS];
    int64_t stride[3][TAPE_DIMS], off[3];
    unsigned n;
};
void tape__walk_next(struct tape_walk *w);

#endif
