/* SPDX-License-Identifier: MIT
 *
 * time_replay: rows of the timeline screen below a lane: the critical path and the ideal timeline.
 */
#ifndef VIZ_TUI_TIME_REPLAY_H
#define VIZ_TUI_TIME_REPLAY_H

#include "viz/tui/time_state.h"

/* Shows or hides the rows of one kind; says so when the run has none. */
enum ms_rc tui_time_flip_path(struct tui_app *a, struct tui_time *t, struct ms_err *err);
enum ms_rc tui_time_flip_ideal(struct tui_app *a, struct tui_time *t, struct ms_err *err);

/* Draws the ideal timeline of a lane into its row of cells. */
enum ms_rc tui_time_draw_ideal(struct tui_app *a, struct tui_time *t, const struct viz_lane *l,
                               int y, struct ms_err *err);
/* Draws the critical path over all lanes; row_of has the row of cells of each track, -1: not on the screen. */
enum ms_rc tui_time_draw_path(struct tui_app *a, struct tui_time *t, const int *row_of,
                              struct ms_err *err);

#endif
