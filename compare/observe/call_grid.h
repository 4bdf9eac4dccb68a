/* SPDX-License-Identifier: MIT
 *
 * call_grid: pairs the forward operators of two runs of one program.
 *
 * This is a global sequence alignment in a band around
 * the diagonal. Only calls of the same operator can be paired, or calls of another
 * operator with the same values; shapes and values decide which call it is. The score
 * of values keeps repeated blocks from sliding by one, and the other scores keep
 * pairs together behind the fault, where no value agrees any more.
 */
#ifndef COMPARE_OBSERVE_CALL_GRID_H
#define COMPARE_OBSERVE_CALL_GRID_H

#include "compare/observe/node_pairs.h"

/* Pairs the operators in q->mate; *done: false when the lengths differ too much. */
enum ms_rc observe__align_calls(struct observe__pairing *q, bool *done, struct ms_err *err);

#endif
