/* SPDX-License-Identifier: MIT
 *
 * show_check: what `msprobe check` found, as text and as JSON.
 */
#ifndef COMPARE_CMD_SHOW_CHECK_H
#define COMPARE_CMD_SHOW_CHECK_H

#include "compare/check/selfcheck.h"

/* Prints the findings, those that are alike on several ranks and steps as one, at most `most` of them,
 * the notes, and what was checked in took_ns. most 0: each finding. */
void check_show_text(const struct self_check *s, size_t most, int64_t took_ns);
/* Prints all findings as one JSON document. */
enum ms_rc check_show_json(const struct self_check *s, int64_t took_ns,
                           struct ms_err *err) MS_MUST_USE;

#endif
