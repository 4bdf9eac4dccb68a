/* SPDX-License-Identifier: MIT
 *
 * show_judge: what `msprobe judge` found, as text and as JSON.
 */
#ifndef COMPARE_CMD_SHOW_JUDGE_H
#define COMPARE_CMD_SHOW_JUDGE_H

#include "compare/blame/blame.h"
#include "compare/blame/blame_pick.h"
#include "probe/base/jwrite.h"

/* Prints the verdict on one pair, and the figures of both sides. */
void judge_show_text(const struct blame_pick *pick, const struct blame *b);
/* Writes one verdict as an object. */
void judge_show_json(struct ms_jwrite *w, const struct blame_pick *pick, const struct blame *b);

#endif
