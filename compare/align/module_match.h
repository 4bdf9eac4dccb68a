/* SPDX-License-Identifier: MIT
 *
 * module_match: matches the modules that own parameters.
 */
#ifndef COMPARE_ALIGN_MODULE_MATCH_H
#define COMPARE_ALIGN_MODULE_MATCH_H

#include "compare/align/search.h"

/* Matches the modules that own parameters; fills mod, mod_dp and parts, and adds to anchors. */
enum ms_rc align__match_modules(struct align__ctx *c, struct ms_err *err);
/* Returns the likeness of two modules' parameters: the mean of the best matches over the larger
 * list; 0 where values do not count. Sets *met when any two sizes are equal. */
float align__param_likeness(const struct align__ctx *c, const struct align__module *a,
                            const struct align__module *b, bool *met);

#endif
