/* SPDX-License-Identifier: MIT
 *
 * arrange: the rows of an outline in another order, siblings among themselves.
 *
 * Only rows that are there are sorted; what a row MORE stands for comes behind them
 * until it is fetched.  What changes an outline expects its own order: bring it back
 * before, and sort again afterwards.
 */
#ifndef VIZ_MODEL_ARRANGE_H
#define VIZ_MODEL_ARRANGE_H

#include "viz/model/outline.h"

enum viz_sort { VIZ_SORT_ORDER, VIZ_SORT_STATE, VIZ_SORT_ERRORS, VIZ_SORT_NAME, VIZ_SORTS };

/* Remember the places of all rows, then sort.  *at is the index of a row and follows it. */
enum ms_rc viz_arrange(struct viz_outline *t, enum viz_sort sort, bool inverted, size_t *at,
                       struct ms_err *err) MS_MUST_USE;
/* Back to the places of before. */
enum ms_rc viz_arrange_back(struct viz_outline *t, size_t *at, struct ms_err *err) MS_MUST_USE;

#endif
