/* SPDX-License-Identifier: MIT
 *
 * recipe_answers: what the tables of a recipe say, in at most three lines.
 */
#ifndef MSTX_OFFICIAL_RECIPE_ANSWERS_H
#define MSTX_OFFICIAL_RECIPE_ANSWERS_H

#include "probe/base/store.h"

enum { MSTX_ANSWER_LINES = 3 };
/* Calls fn for each line that a statement gives about the tables of a recipe. */
typedef void (*mstx_line_fn)(const char *line);
enum ms_rc mstx__tell_answer(struct ms_store *s, const char *sql, mstx_line_fn fn,
                             struct ms_err *err) MS_MUST_USE;
/* Calls fn with the number of rows of a table. */
enum ms_rc mstx__tell_rows(struct ms_store *s, const char *table, mstx_line_fn fn,
                           struct ms_err *err) MS_MUST_USE;

#endif
