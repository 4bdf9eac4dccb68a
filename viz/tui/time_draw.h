/* SPDX-License-Identifier: MIT
 *
 * time_draw: lanes, slices, the ruler and the map of the run in cells.
 */
#ifndef VIZ_TUI_TIME_DRAW_H
#define VIZ_TUI_TIME_DRAW_H

#include "viz/tui/time_state.h"

enum tui_token tui_time_token(struct ms_str domain, struct ms_str name, bool stream);
/* The row above the ruler; a lane more is added to it at each call of map_work. */
void tui_time_draw_map(struct tui_app *a, struct tui_time *t, int y);
enum ms_rc tui_time_map_work(struct tui_time *t, bool *more, struct ms_err *err);
enum ms_rc tui_time_draw(struct tui_app *a, void *self, struct ms_err *err);

#endif
