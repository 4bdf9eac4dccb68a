/* SPDX-License-Identifier: MIT
 *
 * observe: reads a pair of dumps as node pairs in execution order.
 */
#ifndef COMPARE_SOURCE_OBSERVE_H
#define COMPARE_SOURCE_OBSERVE_H

#include "compare/source/part.h"

/* Pairs the nodes of two dumps and observes their leaves. */
enum ms_rc source__observe_pair(struct source__part *p, const struct cmp *c, struct ms_pool *pool,
                                struct ms_err *err);
void source__part_free(struct source__part *p);

#endif
