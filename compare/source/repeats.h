/* SPDX-License-Identifier: MIT
 *
 * repeats: finds operators that activation checkpointing runs again during backward.
 */
#ifndef COMPARE_SOURCE_REPEATS_H
#define COMPARE_SOURCE_REPEATS_H

#include "compare/source/node_pairs.h"

/* Finds the nodes without a partner that repeat the computation of an earlier node; fills origin
 * and again. */
enum ms_rc source__find_repeats(struct source__pairing *q, unsigned side, struct ms_err *err);

#endif
