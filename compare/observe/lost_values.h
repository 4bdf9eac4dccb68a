/* SPDX-License-Identifier: MIT
 *
 * lost_values: which operators of one side make values that the other side has nowhere.
 *
 * Two programs name and cut their operators differently, so partners are often missing or wrong. Their
 * values agree all the same: a value that both have was computed alike, whatever operators made it. A
 * value is *lost* when the other side has none like it, and it *lasts* when the last value of the forward
 * pass depends on it through lost values alone; values inside a function that one side computes in other
 * steps are lost, but do not last.
 */
#ifndef COMPARE_OBSERVE_LOST_VALUES_H
#define COMPARE_OBSERVE_LOST_VALUES_H

#include "compare/observe/node_pairs.h"

enum observe__loss {
    OBSERVE__LOST = 1 << 0,    /* the operator's result is lost */
    OBSERVE__LASTS = 1 << 1,   /* and it lasts */
    OBSERVE__IN_LOST = 1 << 2, /* the operator reads a value that is lost */
    OBSERVE__ENDS =
        1 << 3, /* its result lasts to the last operator; others end where nothing recorded reads */
    OBSERVE__OUTSIDE = 1 << 4, /* it reads a lost value from outside the dump */
    OBSERVE__HIDES = 1 << 5 /* both sides have its result, which hides that it reads a lost value */
};

/* Fills p->losses for the forward operators of both sides, p->starts_differ and
 * p->ends_differ. */
enum ms_rc observe__find_lost(struct observe__part *p, const struct cmp *c,
                              const struct observe__side side[2], struct ms_pool *pool,
                              struct ms_err *err);

/* Tells by row of each side whether it is the value of a parameter. */
enum ms_rc observe__find_weights(const struct observe__side *const side[2], struct ms_arena *arena,
                                 bool *weights[2], struct ms_err *err);

#endif
