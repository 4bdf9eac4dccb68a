/* SPDX-License-Identifier: MIT
 *
 * repeats: operators that activation checkpointing runs again during backward.
 */
#ifndef COMPARE_SOURCE_REPEATS_H
#define COMPARE_SOURCE_REPEATS_H

#include "compare/source/node_pairs.h"

/* Finds the nodes of a side that compute again what an earlier node has computed, and that have no
 * partner: fills origin and again. */
enum ms_rc source__find_repeats(struct source__pairing *q, unsigned side, struct ms_err *err);

#endif
