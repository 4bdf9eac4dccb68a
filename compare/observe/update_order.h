/* SPDX-License-Identifier: MIT
 *
 * update_order: pairs the steps of an optimizer that visits parameters in another order.
 */
#ifndef COMPARE_OBSERVE_UPDATE_ORDER_H
#define COMPARE_OBSERVE_UPDATE_ORDER_H

#include "compare/observe/node_pairs.h"

/* Pairs the operators of the update by the parameter that they change, where both sides run the
 * same ones on the same parameters in another order. Call after nodes have been paired by name. */
enum ms_rc observe__pair_updates(struct observe__pairing *q, struct ms_err *err);

#endif
