/* SPDX-License-Identifier: MIT
 *
 * regex: regular expressions whose cost is bounded.
 *
 * The C library compiles nested groups by recursion and a repetition by copies, and matches
 * back-references by trying all: a short expression of a stranger's link may take all stack, memory
 * or time. Such expressions are refused before they are compiled.
 */
#ifndef MS_BASE_REGEX_H
#define MS_BASE_REGEX_H

#include "probe/base/err.h"

#include <regex.h>

/* Compiles an extended expression; flags are those of regcomp(3). Fails with MS_E_ARG, naming the
 * expression and what is wrong with it; then there is nothing to free with regfree(3). */
enum ms_rc ms_regex_compile(regex_t *r, const char *text, int flags,
                            struct ms_err *err) MS_MUST_USE;

#endif
