/* SPDX-License-Identifier: MIT
 *
 * time_draw: draws lanes, slices, the ruler and the map of the run into cells.
 */
#ifndef VIZ_TUI_TIME_DRAW_H
#define VIZ_TUI_TIME_DRAW_H

#include "viz/tui/time_state.h"

enum tui_token tui_time_token(struct ms_str domain, struct ms_str name, bool stream);
enum ms_rc tui_time_map_work(struct tui_time *t, bool *more, struct ms_err *err);
enum ms_rc tui_time_draw(struct tui_app *a, void *self, struct ms_err *err);

#endif
