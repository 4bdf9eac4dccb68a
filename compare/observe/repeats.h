/* SPDX-License-Identifier: MIT
 *
 * repeats: finds operators that activation checkpointing runs again during backward.
 */
#ifndef COMPARE_OBSERVE_REPEATS_H
#define COMPARE_OBSERVE_REPEATS_H

#include "compare/observe/node_pairs.h"

/* Finds the nodes without a partner that repeat the computation of an earlier node; fills origin
 * and again. */
enum ms_rc observe__find_repeats(struct observe__pairing *q, unsigned side, struct ms_err *err);

#endif
