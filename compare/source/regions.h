/* SPDX-License-Identifier: MIT
 *
 * regions: finds operators that only one side has, and decides whether they change
 * values.
 *
 * A region is a connected piece of the data flow whose operators have no partner,
 * together with the piece that replaces it on the other side. Another implementation of
 * the same computation, such as a fused attention, and an operator that changes nothing
 * have equal values at their border; a missing or additional computation does not.
 */
#ifndef COMPARE_SOURCE_REGIONS_H
#define COMPARE_SOURCE_REGIONS_H

#include "compare/source/node_weigh.h"

/* Decides the effect of each forward operator without a partner. Call after weighing. */
enum ms_rc source__judge_regions(struct source__judge *j, struct ms_err *err);

#endif
