/* SPDX-License-Identifier: MIT
 *
 * time_meet: the ranks of a collective that meet in it: who came when, who came last, who waited.
 *
 * A *meeting* is the collective whose culprit, the rank that came last, and partners, the ranks that waited longest for
 * it, are pinned above the other lanes.
 */
#ifndef VIZ_TUI_TIME_MEET_H
#define VIZ_TUI_TIME_MEET_H

#include "viz/tui/time_state.h"

/* Go to a meeting, and to the longest call in it; a call of which no other rank's part is known is shown alone.
 * call: that of the call that a process began at start_ns; longest: of the slice that is selected; worst: of those
 * that the rank of a link entered last in its time, the one in which the others wait longest; *found: there is one. */
enum ms_rc tui_time_go_call(struct tui_app *a, struct tui_time *t, uint32_t process,
                            int64_t start_ns, struct ms_err *err);
enum ms_rc tui_time_go_longest(struct tui_app *a, struct tui_time *t, struct ms_err *err);
enum ms_rc tui_time_go_worst(struct tui_app *a, struct tui_time *t, const struct viz_place *p,
                             bool *found, struct ms_err *err);
/* Ends the meeting, if there is one: its lanes are pinned no longer. */
enum ms_rc tui_time_part(struct tui_time *t, struct ms_err *err);
/* Returns the call of a lane in the meeting, NULL: none. */
const struct viz_arrival *tui_time_arrival(const struct tui_time *t, const struct viz_lane *l);
/* Tells whether a call of the meeting is that of the rank that came last, and for which others waited. */
bool tui_time_is_culprit(const struct tui_time *t, const struct viz_arrival *a);
enum { TUI_ARRIVAL_MAX = 80 };
/* Writes what a rank did in the meeting: "rank 3 came last", "rank 0 waits 12.1 ms". */
void tui_time_arrival_text(const struct tui_time *t, const struct viz_arrival *a, bool is_narrow,
                           char text[TUI_ARRIVAL_MAX]);

/* Opens a page about the collective of the selected slice, or a message why there is none. */
enum ms_rc tui_time_meet(struct tui_app *a, struct tui_time *t, struct ms_err *err);
/* Fills the page for a collective already read; its list is not empty. */
enum ms_rc tui_time_meet_page(struct tui_page *p, const struct viz_collective *c,
                              struct ms_err *err);

#endif
