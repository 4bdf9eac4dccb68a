/* SPDX-License-Identifier: MIT
 *
 * time_collective: arrival and waiting times of the ranks of a collective.
 */
#ifndef VIZ_TUI_TIME_COLLECTIVE_H
#define VIZ_TUI_TIME_COLLECTIVE_H

#include "viz/model/collectives.h"
#include "viz/tui/time_state.h"

/* Opens a page about the collective of the selected slice, or a message why there is none. */
enum ms_rc tui_time_meet(struct tui_app *a, struct tui_time *t, struct ms_err *err);
/* Fills the page for a collective already read; its list is not empty. */
enum ms_rc tui_time_meet_page(struct tui_page *p, const struct viz_collective *c,
                              struct ms_err *err);

#endif
