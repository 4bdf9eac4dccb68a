/* SPDX-License-Identifier: MIT
 *
 * update_order: pairs the steps of an optimizer that visits parameters in another order.
 */
#ifndef COMPARE_SOURCE_UPDATE_ORDER_H
#define COMPARE_SOURCE_UPDATE_ORDER_H

#include "compare/source/node_pairs.h"

/* Pairs the operators of the update by the parameter that they change, where both sides run the
 * same ones on the same parameters in another order. Call after nodes have been paired by name. */
enum ms_rc source__pair_updates(struct source__pairing *q, struct ms_err *err);

#endif
