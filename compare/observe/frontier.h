/* SPDX-License-Identifier: MIT
 *
 * frontier: names the operators at which the values of two programs part.
 */
#ifndef COMPARE_OBSERVE_FRONTIER_H
#define COMPARE_OBSERVE_FRONTIER_H

#include "compare/observe/node_pairs.h"

/* Finds the operators behind which the values of one side are found nowhere on the other, and fills
 * p->parting. Call after observe__find_lost. */
enum ms_rc observe__find_parting(struct observe__part *p, const struct observe__pairing *q,
                                 struct ms_err *err);

#endif
