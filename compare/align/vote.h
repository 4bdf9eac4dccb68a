/* SPDX-License-Identifier: MIT
 *
 * vote: derives pairs of modules and values from paired operators.
 */
#ifndef COMPARE_ALIGN_VOTE_H
#define COMPARE_ALIGN_VOTE_H

#include "compare/align/search.h"

/* Pairs modules by the pairs of operators inside them; fills mod_pair and mod. */
enum ms_rc align__vote_modules(struct align__ctx *c, struct ms_err *err);
/* Returns the split that reads the output of an operator, or ALIGN__NONE. */
uint32_t align__split_behind(const struct align__side *s, uint32_t op);
/* Pairs modules without operators inside, by their order. */
enum ms_rc align__match_loose_modules(struct align__ctx *c, struct ms_err *err);

#endif
