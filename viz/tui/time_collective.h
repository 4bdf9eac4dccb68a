/* SPDX-License-Identifier: MIT
 *
 * time_collective: who came when to a collective, and who waited for whom.
 */
#ifndef VIZ_TUI_TIME_COLLECTIVE_H
#define VIZ_TUI_TIME_COLLECTIVE_H

#include "viz/model/collectives.h"
#include "viz/tui/time_state.h"

/* A page about the collective that the chosen slice is, or a word why there is none. */
enum ms_rc tui_time_meet(struct tui_app *a, struct tui_time *t, struct ms_err *err);
/* The same of a collective that has been read; its list is not empty. */
enum ms_rc tui_time_meet_page(struct tui_page *p, const struct viz_collective *c,
                              struct ms_err *err);

#endif
