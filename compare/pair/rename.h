/* SPDX-License-Identifier: MIT
 *
 * rename: the rules that turn the name of a target row into that of its partner. Each
 * function changes the text in `name` in place.
 */
#ifndef COMPARE_PAIR_RENAME_H
#define COMPARE_PAIR_RENAME_H

#include "compare/pair/mapping.h"

/* The official table of MindSpore names and the PyTorch names of the same operators, sorted by
 * ms. */
struct cmp__api_twin {
    const char *ms, *pt;
};
extern const struct cmp__api_twin cmp__api_twins[];
extern const size_t cmp__api_twin_count;

/* Applies the built-in table of -am from MindSpore to PyTorch names. */
void cmp__rename_builtin(struct ms_buf *name, struct ms_buf *scratch);
/* Applies a user's api mapping; `original` is the name before the built-in table was applied.
 * Returns false when the rule of this api does not list the row. whole: the entry of an argument
 * does not cover values nested inside it. */
bool cmp__rename_by_rules(const struct cmp__api_rules *rules, bool whole, struct ms_str original,
                          struct ms_buf *name, struct ms_buf *scratch);
/* Applies -cm; map may be NULL. whole_only: a line of the map replaces whole names only. Returns
 * false when the row does not belong to a module. */
bool cmp__rename_cell(const struct cmp__pairs *map, bool whole_only, struct ms_buf *name,
                      struct ms_buf *scratch, struct ms_buf *cell);
/* Returns the part of a name that a cell mapping maps, between the first dot and the direction; p
 * is NULL when there is none. */
struct ms_str cmp__cell_part(struct ms_str name);
/* Applies -fm: Torch.a.3.forward.input.0 becomes Torch.a.forward.input.0. */
void cmp__rename_fuzzy(struct ms_buf *name, struct ms_buf *scratch);

#endif
