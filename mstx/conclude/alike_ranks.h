/* SPDX-License-Identifier: MIT
 *
 * alike_ranks: ranks that use their steps alike, as one row, so that thousands of ranks fit one
 * screen and the odd ones stand out.
 */
#ifndef MSTX_CONCLUDE_ALIKE_RANKS_H
#define MSTX_CONCLUDE_ALIKE_RANKS_H

#include "mstx/conclude/time_use.h"

/* Ranks whose steps have the same parts within a few per cent of a step. */
struct mstx_alike {
    size_t ranks;
    struct mstx_use_rank mean; /* its rank is the lowest one */
};
typedef MS_VEC(struct mstx_alike) mstx_alike_list;

/* Sorts the ranks into groups and sets group[i] to the place in the list of the group of the rank
 * at place i. Smaller groups come first, and among equals those that others wait for more. A rank
 * beyond the 64th group joins the nearest. */
enum ms_rc mstx_alike_find(const struct mstx_use *u, mstx_alike_list *list, uint32_t *group,
                           struct ms_err *err) MS_MUST_USE;
/* Writes the ranks of a group as "0-189,191-255", cut after about `width` bytes. */
void mstx_alike_text(const struct mstx_use *u, const uint32_t *group, uint32_t which, size_t width,
                     struct ms_buf *out);

#endif
