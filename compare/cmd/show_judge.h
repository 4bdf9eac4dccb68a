/* SPDX-License-Identifier: MIT
 *
 * show_judge: what `msprobe judge` found, as text and as JSON.
 */
#ifndef COMPARE_CMD_SHOW_JUDGE_H
#define COMPARE_CMD_SHOW_JUDGE_H

#include "compare/blame/blame.h"
#include "compare/blame/blame_pick.h"
#include "probe/base/jwrite.h"

/* State of a side: "within", and in a sentence "within its bound". */
const char *judge_state_name(enum blame_state state);
const char *judge_state_text(enum blame_state state);
/* Prints the verdict on one pair, and the figures of both sides. */
void judge_show_text(const struct blame_pick *pick, const struct blame *b);
/* Writes one verdict as an object. */
void judge_show_json(struct ms_jwrite *w, const struct blame_pick *pick, const struct blame *b);

#endif
