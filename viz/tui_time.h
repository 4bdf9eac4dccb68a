/* SPDX-License-Identifier: MIT
 *
 * tui_time: state of the timeline screen.  Only viz/tui_time*.c include this.
 *
 * A lane takes one row for each depth of its slices, up to TUI_DEPTHS.  Time is the
 * window's; the cursor is a lane and a time, and a selection reaches from `mark` to
 * the cursor.
 */
#ifndef VIZ_TUI_TIME_H
#define VIZ_TUI_TIME_H

#include "viz/model/tracks.h"
#include "viz/model/window.h"
#include "viz/tui_app.h"

#include "mstx/tl_report.h"

enum { TUI_DEPTHS = 4, TUI_UNDO = 32, TUI_LABEL_W = 24 };

struct tui_time {
    struct mstx_tl *tl;
    struct viz_tracks tracks;
    viz_seen seen;
    struct viz_window w;
    struct viz_window undo[TUI_UNDO];
    size_t undone;  /* how many windows can be gone back to */
    size_t at, top; /* of seen */
    int64_t time;   /* of the cursor */
    int64_t mark;   /* where the selection began */
    bool marked;
    bool has_slice;
    size_t slice_lane;        /* lane of the slice that was gone to last */
    struct mstx_event slice;  /* that slice */
    struct mstx_names *names; /* that were searched; NULL: none */
    struct {                  /* what n or N look for */
        bool on, back;
        size_t next, lane;
        struct mstx_event best;
    } hit;
    MS_VEC(struct mstx_step) steps; /* of the process under the cursor */
    int64_t steps_of;               /* its id in run.db; 0: none yet */
    MS_VEC(uint8_t) kinds;          /* tokens of names by their number; 0: not looked up */
    int label_w, width;             /* as drawn last */
};

/* First and last column of a time on the screen may lie outside of it. */
int tui_time_column(const struct tui_time *t, int64_t ns);
/* Time of the left edge of a column. */
int64_t tui_time_at(const struct tui_time *t, int column);
enum ms_rc tui_time_steps(struct tui_time *t, struct ms_err *err);
int tui_time_rows(const struct tui_time *t, size_t lane);
const struct viz_lane *tui_time_lane(const struct tui_time *t);
enum tui_token tui_time_token(struct ms_str domain, struct ms_str name, bool stream);
enum ms_rc tui_time_draw(struct tui_app *a, void *self, struct ms_err *err);

#endif
