/* SPDX-License-Identifier: MIT
 *
 * recomputed: finds the records of a dump that are recomputations of others.
 */
#ifndef COMPARE_ALIGN_RECOMPUTED_H
#define COMPARE_ALIGN_RECOMPUTED_H

#include "compare/align/align.h"
#include "probe/base/arena.h"

/* Finds the nodes of a dump that are recomputations; the arena owns the list. in_tree and back give
 * for each forward node its node in the tree and its backward node, or MS_MAP_NONE. */
enum ms_rc align__find_repeats(struct ms_arena *arena, const struct cmp_align_input *in,
                               const uint32_t *in_tree, const uint32_t *back, bool **again,
                               struct ms_err *err);

#endif
