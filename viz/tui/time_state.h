/* SPDX-License-Identifier: MIT
 *
 * time_state: window, cursor and steps of the timeline screen; shared by the files time_*.
 *
 * A lane takes one row for each depth of its slices, up to TUI_DEPTHS. The cursor is a lane and a
 * time; a selection reaches from `mark` to the cursor.
 */
#ifndef VIZ_TUI_TIME_STATE_H
#define VIZ_TUI_TIME_STATE_H

#include "mstx/conclude/name_totals.h"
#include "mstx/conclude/steps.h"
#include "viz/model/collectives.h"
#include "viz/model/replay.h"
#include "viz/model/tracks.h"
#include "viz/tui/app.h"

/* The time range of a run that a timeline shows. */
struct viz_window {
    int64_t from, to;    /* visible range, ns; at least VIZ_SHORTEST_NS long */
    int64_t first, last; /* range of the run */
};
enum { VIZ_SHORTEST_NS = 10 };

/* Returns the whole run, with a small margin on both sides. */
struct viz_window viz_window_all(int64_t first, int64_t last);
/* Shows [from, to], limited to the run. */
void viz_window_show(struct viz_window *w, int64_t from, int64_t to);
/* Scales the window by `factor`; the time at `still` (0: left edge, 1: right) keeps its place. */
void viz_window_zoom(struct viz_window *w, double factor, double still);
/* Moves by a share of the window: 0.5 is half a window later. */
void viz_window_pan(struct viz_window *w, double share);
static inline int64_t viz_window_length(const struct viz_window *w)
{
    return w->to - w->from;
}

/* Returns the distance of the ticks of a ruler: 1, 2 or 5 times a power of ten (of the unit of
 * time below a minute), at least 1/most of the window. */
int64_t viz_ruler_step(const struct viz_window *w, unsigned most);

enum { TUI_DEPTHS = 4, TUI_UNDO = 32, TUI_LABEL_W = 24, TUI_STEP_LEAST = 6 };

struct tui_met { /* a lane with a call of the meeting */
    size_t lane, arrival;
    bool was_pinned; /* before */
};

struct tui_time {
    struct mstx_tl *tl;
    struct viz_tracks tracks;
    viz_seen seen;
    struct viz_window w;
    struct viz_window undo[TUI_UNDO];
    size_t undone;  /* number of windows in undo */
    size_t at, top; /* indices into seen */
    int64_t time;   /* of the cursor */
    int64_t mark;   /* start of the selection */
    bool marked;
    bool has_slice;
    size_t slice_lane;             /* lane of the slice selected last */
    struct mstx_event slice;       /* that slice */
    struct viz_collective meeting; /* whose ranks are pinned; empty: none */
    MS_VEC(struct tui_met) met;
    struct mstx_names *names; /* names that match the search; NULL: no search */
    struct {                  /* the search of n or N */
        bool on, back;
        size_t next, lane;
        struct mstx_event best;
    } hit;
    MS_VEC(struct mstx_step) steps; /* visible steps of the process under the cursor */
    MS_VEC(struct viz_busy) map;    /* load of the whole run, all processes, per column */
    size_t mapped;                  /* number of lanes included */
    int map_w;
    MS_VEC(uint8_t) kinds; /* tokens by name index; 0: not looked up */
    bool has_path,
        has_ideal; /* rows below the lanes for the critical path and the ideal timeline */
    MS_VEC(uint8_t) replayed; /* by track: has such rows; empty until first shown */
    MS_VEC(int) path_row;     /* by track: its row of cells for the critical path; -1: none */
    int label_w, width;       /* at the last frame */
    int64_t base;             /* from where the ruler counts, from the start of the run */
    bool has_base;            /* not from the start itself */
};

/* Keeps the window for Backspace; _show also shows another. */
void tui_time_remember(struct tui_time *t);
void tui_time_show(struct tui_time *t, int64_t from, int64_t to);
/* Returns the time, or the end of the window that is nearer. */
int64_t tui_time_clamp(const struct tui_time *t, int64_t ns);
/* Moves the cursor, and the window when the cursor was outside: it is then in the middle. */
void tui_time_reveal(struct tui_time *t, int64_t ns);
/* Selects a slice of the lane under the cursor; _focus zooms to it. */
void tui_time_take(struct tui_time *t, const struct mstx_event *ev);
void tui_time_focus(struct tui_time *t);
/* Lists the lanes in sight anew; the cursor stays on its lane, as far as that is in sight. */
enum ms_rc tui_time_arrange(struct tui_time *t, struct ms_err *err);
/* Opens a process so that its tracks are in sight. */
enum ms_rc tui_time_open(struct tui_time *t, uint32_t process, struct ms_err *err);
/* Returns the column of a time; may be outside of the screen. */
int tui_time_column(const struct tui_time *t, int64_t ns);
/* Returns the time at the left edge of a column. */
int64_t tui_time_at(const struct tui_time *t, int column);
/* Reads the steps that begin in the window, as far as they fit on the screen. */
enum ms_rc tui_time_steps(struct tui_time *t, struct ms_err *err);
enum ms_rc tui_time_step_at(struct tui_time *t, int64_t number, struct mstx_step *s, bool *found,
                            struct ms_err *err);
/* Returns the next step after the cursor, or before it. */
enum ms_rc tui_time_step_next(struct tui_time *t, bool back, struct mstx_step *s, bool *found,
                              struct ms_err *err);
/* Number of rows of the slices of a lane, and of all its rows. */
int tui_time_depths(const struct tui_time *t, size_t lane);
int tui_time_rows(const struct tui_time *t, size_t lane);
/* Tells whether a lane has rows for replays. */
bool tui_time_is_replayed(const struct tui_time *t, const struct viz_lane *l);
const struct viz_lane *tui_time_lane(const struct tui_time *t);
/* Number of rows above the lanes: the map, if it fits, ruler and cursor. */
int tui_time_top(const struct tui_app *a);

#endif
