/* SPDX-License-Identifier: MIT
 *
 * arrange: sorts the rows of an outline, siblings among themselves.
 *
 * Only loaded rows are sorted; a row MORE, which stands for rows not yet loaded, stays behind them.
 * Functions that change an outline need its natural order: call viz_arrange_back before and
 * viz_arrange afterwards.
 */
#ifndef VIZ_MODEL_ARRANGE_H
#define VIZ_MODEL_ARRANGE_H

#include "viz/model/outline.h"

enum viz_sort { VIZ_SORT_ORDER, VIZ_SORT_STATE, VIZ_SORT_ERRORS, VIZ_SORT_NAME, VIZ_SORTS };

/* Stores the natural position of all rows, then sorts. *at is the index of a row and is updated. */
enum ms_rc viz_arrange(struct viz_outline *t, enum viz_sort sort, bool inverted, size_t *at,
                       struct ms_err *err) MS_MUST_USE;
/* Restores the natural order. */
enum ms_rc viz_arrange_back(struct viz_outline *t, size_t *at, struct ms_err *err) MS_MUST_USE;

#endif
