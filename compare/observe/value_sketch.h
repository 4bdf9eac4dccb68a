/* SPDX-License-Identifier: MIT
 *
 * value_sketch: two sums with random signs over the elements of each tensor file.
 *
 * Statistics do not show the order of elements: both halves of a layer's result may have equal ones. Sums with
 * random signs are apart by about as much as the values themselves.
 */
#ifndef COMPARE_OBSERVE_VALUE_SKETCH_H
#define COMPARE_OBSERVE_VALUE_SKETCH_H

#include "compare/observe/value_flow.h"

/* Sets the sketches of all forward values with several elements; those of files that cannot be read stay empty. */
enum ms_rc observe__sketch_values(const struct cmp *c, const struct observe__side side[2],
                                  struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;

#endif
