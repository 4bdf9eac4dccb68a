/* SPDX-License-Identifier: MIT
 *
 * map_names: checks the names in mapping files (-am, -cm, -lm, -dm). A name that a side does
 * not have becomes a problem of the comparison, with the most similar name as a suggestion.
 */
#ifndef COMPARE_PAIR_MAP_NAMES_H
#define COMPARE_PAIR_MAP_NAMES_H

#include "compare/pair/cmp_rows.h"

/* Also invalidates entries of operators that a side does not have, and entries that list different
 * numbers of arguments on the two sides. */
enum ms_rc cmp__check_rules(struct cmp_rows *c, struct cmp__api_rules *rules, struct ms_err *err);
enum ms_rc cmp__check_cells(struct cmp_rows *c, const struct cmp__pairs *cells, struct ms_err *err);
/* Paths of the modules and operators of both sides, such as net.layers.0.fc; classes are those of
 * the target. */
struct cmp__known_layers {
    const struct ms_map *target, *golden;
    const struct ms_str *classes;
    size_t n_classes;
};
/* Reports names of the -dm file that the side they belong to does not have. */
enum ms_rc cmp__check_names(struct cmp_rows *c, struct ms_err *err);
enum ms_rc cmp__check_layers(struct cmp_rows *c, const struct cmp__layers *layers,
                             const struct cmp__known_layers *known, struct ms_err *err);

#endif
