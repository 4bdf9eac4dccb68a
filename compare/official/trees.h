/* SPDX-License-Identifier: MIT
 *
 * trees: compares two trees of .npy files, directory by directory.
 *
 * A file's key is its name without the last two parts (NAME_STEP_ID.npy); files with the
 * same key are paired in the order of their paths.
 */
#ifndef COMPARE_OFFICIAL_TREES_H
#define COMPARE_OFFICIAL_TREES_H

#include "compare/write/out.h"
#include "compare/write/sheet.h"
#include "probe/base/map.h"

/* Keys of the target and the corresponding keys of the golden side. */
struct cmp_tree_names {
    const struct ms_map *target;
    const struct ms_str *golden; /* by index of the target key */
};

/* Writes DIR/SUBDIR/result.csv for each directory with .npy files that both sides have. */
enum ms_rc cmp_compare_trees(const char *target, const char *golden, const char *dir,
                             const struct cmp_tree_names *names, struct cmp_sheet_sum *sum,
                             struct cmp_files *files, struct ms_err *err) MS_MUST_USE;

#endif
