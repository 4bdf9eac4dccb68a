/* SPDX-License-Identifier: MIT
 *
 * frontier: names the operators at which the values of two programs part.
 */
#ifndef COMPARE_SOURCE_FRONTIER_H
#define COMPARE_SOURCE_FRONTIER_H

#include "compare/source/node_pairs.h"

/* Finds the operators behind which the values of one side are found nowhere on the other, and fills
 * p->parting. Call after source__find_lost. */
enum ms_rc source__find_parting(struct source__part *p, const struct source__pairing *q,
                                struct ms_err *err);

#endif
