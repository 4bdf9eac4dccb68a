/* SPDX-License-Identifier: MIT
 *
 * config_checks_int: what the checks of members share.
 */
#ifndef COMPARE_CONFIG_CONFIG_CHECKS_INT_H
#define COMPARE_CONFIG_CONFIG_CHECKS_INT_H

#include "compare/config/config_checks.h"

/* One check while it runs. */
struct cfg_check {
    struct cfg_sides *sides;
    struct cfg_table *t;
    struct ms_err *err;
};

/* Adds a row of t->columns cells. */
enum ms_rc cfg__row(struct cfg_check *k, const struct ms_plain *const *cells);
struct ms_plain *cfg__word(struct ms_arena *a, const char *z);
/* Returns the member of a side, or NULL. */
const struct probe_zip_member *cfg__member(const struct cfg_check *k, int side, struct ms_str name);
enum ms_rc cfg__text(struct cfg_check *k, int side, const struct probe_zip_member *m,
                     struct ms_str *text);
/* Parses a member that the side has; it must be an object. */
enum ms_rc cfg__json(struct cfg_check *k, int side, struct ms_str name, const struct ms_plain **v);

/* Matches parameters by name, by known synonyms and by likeness. */
enum ms_rc cfg__check_hyperparameters(struct cfg_check *k);
/* Matches calls of random functions by their stacks. */
enum ms_rc cfg__check_random(struct cfg_check *k);

#endif
