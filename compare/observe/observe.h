/* SPDX-License-Identifier: MIT
 *
 * observe: reads a pair of dumps as node pairs in execution order.
 */
#ifndef COMPARE_OBSERVE_OBSERVE_H
#define COMPARE_OBSERVE_OBSERVE_H

#include "compare/observe/part.h"

/* Pairs the nodes of two dumps and observes their leaves. */
enum ms_rc observe__observe_pair(struct observe__part *p, const struct cmp *c, struct ms_pool *pool,
                                 struct ms_err *err);
void observe__part_free(struct observe__part *p);

#endif
