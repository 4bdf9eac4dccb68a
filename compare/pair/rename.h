/* SPDX-License-Identifier: MIT
 *
 * rename: the rules by which a target row's name becomes the name of its partner.
 * Each works in place on the text in `name`.
 */
#ifndef COMPARE_PAIR_RENAME_H
#define COMPARE_PAIR_RENAME_H

#include "compare/pair/mapping.h"

/* The official table of MindSpore names and their PyTorch twins, sorted by ms. */
struct cmp__api_twin {
    const char *ms, *pt;
};
extern const struct cmp__api_twin cmp__api_twins[];
extern const size_t cmp__api_twin_count;

/* The built-in MindSpore to PyTorch names of -am. */
void cmp__rename_builtin(struct ms_buf *name, struct ms_buf *scratch);
/* A user's api mapping; `original` is the name before the built-in step.  False: the rule for this
 * api leaves the row out.  whole: an argument that has parts is only covered part by part. */
bool cmp__rename_by_rules(const struct cmp__api_rules *rules, bool whole, struct ms_str original,
                          struct ms_buf *name, struct ms_buf *scratch);
/* -cm; map may be NULL, whole_only: its lines are for whole names.  False: not a row of a module. */
bool cmp__rename_cell(const struct cmp__pairs *map, bool whole_only, struct ms_buf *name,
                      struct ms_buf *scratch, struct ms_buf *cell);
/* What a cell mapping names: what stands between the first dot and the direction; p is NULL when
 * there is no such thing. */
struct ms_str cmp__cell_part(struct ms_str name);
/* -fm: Torch.a.3.forward.input.0 becomes Torch.a.forward.input.0. */
void cmp__rename_fuzzy(struct ms_buf *name, struct ms_buf *scratch);

#endif
