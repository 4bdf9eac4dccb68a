/* SPDX-License-Identifier: MIT
 *
 * time_state: window, cursor and steps of the timeline screen; the files time_* share them.
 *
 * A lane takes one row for each depth of its slices, up to TUI_DEPTHS.  Time is the
 * window's; the cursor is a lane and a time, and a selection reaches from `mark` to
 * the cursor.
 */
#ifndef VIZ_TUI_TIME_STATE_H
#define VIZ_TUI_TIME_STATE_H

#include "viz/model/tracks.h"
#include "viz/model/window.h"
#include "viz/tui/app.h"

#include "mstx/conclude/name_totals.h"
#include "mstx/conclude/steps.h"

enum { TUI_DEPTHS = 4, TUI_UNDO = 32, TUI_LABEL_W = 24, TUI_STEP_LEAST = 6 };

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
    MS_VEC(struct mstx_step) steps; /* that are seen, of the process under the cursor */
    MS_VEC(struct viz_busy) map;    /* the whole run, over all processes: how busy each column is */
    size_t mapped;                  /* lanes that are in it */
    int map_w;
    MS_VEC(uint8_t) kinds; /* tokens of names by their number; 0: not looked up */
    int label_w, width;    /* as drawn last */
};

/* First and last column of a time on the screen may lie outside of it. */
int tui_time_column(const struct tui_time *t, int64_t ns);
/* Time of the left edge of a column. */
int64_t tui_time_at(const struct tui_time *t, int column);
/* Read the steps that begin in the window, as far as there is room to show them. */
enum ms_rc tui_time_steps(struct tui_time *t, struct ms_err *err);
enum ms_rc tui_time_step_at(struct tui_time *t, int64_t number, struct mstx_step *s, bool *found,
                            struct ms_err *err);
/* The step behind the cursor, or before it. */
enum ms_rc tui_time_step_next(struct tui_time *t, bool back, struct mstx_step *s, bool *found,
                              struct ms_err *err);
int tui_time_rows(const struct tui_time *t, size_t lane);
const struct viz_lane *tui_time_lane(const struct tui_time *t);
/* Rows above the lanes: the map, where there is room for it, ruler and cursor. */
int tui_time_top(const struct tui_app *a);

#endif
