/* SPDX-License-Identifier: MIT
 *
 * regions: operators that one side alone has, and whether they change anything.
 *
 * A region is a connected piece of the data flow whose operators have no partner, together with
 * the piece that stands in its place on the other side. Another implementation of the same
 * computation, such as a fused attention, and an operator that changes nothing have equal values
 * at their border; a missing or additional computation does not.
 */
#ifndef COMPARE_SOURCE_REGIONS_H
#define COMPARE_SOURCE_REGIONS_H

#include "compare/source/node_weigh.h"

/* Decides for each forward operator without a partner what it does; call it after weighing. */
enum ms_rc source__judge_regions(struct source__judge *j, struct ms_err *err);

#endif
