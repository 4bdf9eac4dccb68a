/* SPDX-License-Identifier: MIT
 *
 * map_names: names in the files of -am, -cm and -lm that the dumps do not have.  They
 * become problems of the comparison, with the names they may have been meant for.
 */
#ifndef COMPARE_PAIR_MAP_NAMES_H
#define COMPARE_PAIR_MAP_NAMES_H

#include "compare/pair/cmp_rows.h"

/* Entries of operators that a side does not have, and those that list unlike numbers of arguments,
 * are made invalid. */
enum ms_rc cmp__check_rules(struct cmp_rows *c, struct cmp__api_rules *rules, struct ms_err *err);
enum ms_rc cmp__check_cells(struct cmp_rows *c, const struct cmp__pairs *cells, struct ms_err *err);
/* The places of the modules and operators of both sides: net.layers.0.fc.  classes: those of the
 * target. */
struct cmp__known_layers {
    const struct ms_map *target, *golden;
    const struct ms_str *classes;
    size_t n_classes;
};
/* Lists names of a -dm file that neither dump has. */
enum ms_rc cmp__check_names(struct cmp_rows *c, struct ms_err *err);
enum ms_rc cmp__check_layers(struct cmp_rows *c, const struct cmp__layers *layers,
                             const struct cmp__known_layers *known, struct ms_err *err);

#endif
