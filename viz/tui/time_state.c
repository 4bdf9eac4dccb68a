/* SPDX-License-Identifier: MIT
 *
 * time_state: window, cursor and steps of the timeline screen.
 */
#include "viz/tui/time_state.h"

#include "probe/base/assert.h"
#include "probe/base/order.h"
#include "probe/base/store.h"

#include <math.h>

/* ---- the window --------------------------------------------------------------------- */

static const double ROOM = 0.02; /* margin on each side of the whole run */

/* Returns the margin beside the run: times are so far from the ends of int64 that this does not
 * overflow. */
static int64_t room_of(const struct viz_window *w)
{
    double length = (double)w->last - (double)w->first;
    return ms_max_i64((int64_t)(length * ROOM), VIZ_SHORTEST_NS);
}

struct viz_window viz_window_all(int64_t first, int64_t last)
{
    struct viz_window w = {.first = first, .last = ms_max_i64(last, first)};
    viz_window_show(&w, w.first - room_of(&w), w.last + room_of(&w));
    return w;
}

void viz_window_show(struct viz_window *w, int64_t from, int64_t to)
{
    int64_t low = w->first - room_of(w), high = w->last + room_of(w);
    int64_t length = ms_max_i64(to - from, VIZ_SHORTEST_NS);
    length = ms_min_i64(length, high - low);
    w->from = ms_min_i64(ms_max_i64(from, low), high - length);
    w->to = w->from + length;
    ms_assert(low <= w->from && w->from < w->to && w->to <= high);
}

void viz_window_zoom(struct viz_window *w, double factor, double still)
{
    ms_assert(factor > 0 && still >= 0 && still <= 1);
    double length = (double)viz_window_length(w);
    double wanted = fmin(fmax(length * factor, VIZ_SHORTEST_NS), (double)INT64_MAX / 4);
    int64_t from = w->from + (int64_t)((length - wanted) * still);
    viz_window_show(w, from, from + (int64_t)llround(wanted));
}

void viz_window_pan(struct viz_window *w, double share)
{
    int64_t by = (int64_t)((double)viz_window_length(w) * share);
    viz_window_show(w, w->from + by, w->to + by);
}

int64_t viz_ruler_step(const struct viz_window *w, unsigned most)
{
    static const int64_t minute = INT64_C(60000000000);
    static const int64_t long_steps[] = {1, 2, 5, 10, 30, 60, 120, 360, 720, 1440};
    int64_t parts = most != 0 ? most : 1;
    int64_t least = (viz_window_length(w) + parts - 1) / parts;
    for (int64_t unit = 1; unit < minute / 2; unit *= 10) {
        for (int64_t k = 1; k <= 5; k += k == 1 ? 1 : 3) {
            if (unit * k >= least && unit * k < minute / 2)
                return unit * k;
        }
    }
    for (unsigned i = 0; i < sizeof long_steps / sizeof *long_steps; i++) {
        if (long_steps[i] * minute >= least)
            return long_steps[i] * minute;
    }
    return (least / (1440 * minute) + 1) * 1440 * minute;
}

/* ---- the window and the slice of a screen ------------------------------------------- */

void tui_time_remember(struct tui_time *t)
{
    if (t->undone == TUI_UNDO)
        memmove(t->undo, t->undo + 1, --t->undone * sizeof *t->undo);
    t->undo[t->undone++] = t->w;
}

void tui_time_show(struct tui_time *t, int64_t from, int64_t to)
{
    tui_time_remember(t);
    viz_window_show(&t->w, from, to);
}

int64_t tui_time_clamp(const struct tui_time *t, int64_t ns)
{
    return ns < t->w.from ? t->w.from : ns >= t->w.to ? t->w.to - 1 : ns;
}

void tui_time_reveal(struct tui_time *t, int64_t ns)
{
    int64_t half = viz_window_length(&t->w) / 2;
    t->time = ns;
    if (ns < t->w.from || ns >= t->w.to)
        tui_time_show(t, ns - half, ns + half);
    t->time = tui_time_clamp(t, ns);
}

void tui_time_take(struct tui_time *t, const struct mstx_event *ev)
{
    t->slice = *ev;
    t->has_slice = true;
    t->slice_lane = t->at;
    tui_time_reveal(t, ev->start_ns);
}

void tui_time_focus(struct tui_time *t)
{
    int64_t length = t->has_slice ? t->slice.dur_ns : 0;
    if (t->has_slice)
        tui_time_show(t, t->slice.start_ns - length / 8 - 5,
                      t->slice.start_ns + length + length / 8 + 5);
}

enum ms_rc tui_time_arrange(struct tui_time *t, struct ms_err *err)
{
    const size_t lane = t->at < t->seen.n ? t->seen.p[t->at] : SIZE_MAX;
    MS_TRY(viz_tracks_seen(&t->tracks, &t->seen, err));
    for (size_t i = 0; i < t->seen.n; i++) {
        if (t->seen.p[i] == lane)
            t->at = i;
    }
    t->at = t->at < t->seen.n ? t->at : 0;
    return MS_OK;
}

enum ms_rc tui_time_open(struct tui_time *t, uint32_t process, struct ms_err *err)
{
    for (size_t i = 0; i < t->tracks.lanes.n; i++) {
        struct viz_lane *l = &t->tracks.lanes.p[i];
        l->open |= l->kind == VIZ_LANE_PROCESS && l->process == process;
    }
    return tui_time_arrange(t, err);
}

enum { MAP_FROM = 16 }; /* screen height from which the map is shown */

int tui_time_top(const struct tui_app *a)
{
    return a->cells.h >= MAP_FROM ? 4 : 3;
}

int tui_time_column(const struct tui_time *t, int64_t ns)
{
    ms_assert(t->w.from < t->w.to);
    double share = (double)(ns - t->w.from) / (double)viz_window_length(&t->w);
    double x = floor(share * (double)t->width);
    return x < -1 ? -1 : x > t->width ? t->width : (int)x;
}

int64_t tui_time_at(const struct tui_time *t, int column)
{
    double part = (double)viz_window_length(&t->w) / (double)(t->width > 0 ? t->width : 1);
    return t->w.from + (int64_t)(part * (double)column);
}

const struct viz_lane *tui_time_lane(const struct tui_time *t)
{
    return t->at < t->seen.n ? &t->tracks.lanes.p[t->seen.p[t->at]] : NULL;
}

int tui_time_depths(const struct tui_time *t, size_t seen)
{
    ms_assert(seen < t->seen.n);
    const struct viz_lane *l = &t->tracks.lanes.p[t->seen.p[seen]];
    if (l->kind == VIZ_LANE_PROCESS)
        return 1;
    const struct mstx_track *track = mstx_tl_track(t->tl, l->track);
    bool flat = track->kind == MSTX_TRACK_COUNTER || track->kind == MSTX_TRACK_MEMORY;
    return flat || track->rows < 1 ? 1 : track->rows > TUI_DEPTHS ? TUI_DEPTHS : (int)track->rows;
}

bool tui_time_is_replayed(const struct tui_time *t, const struct viz_lane *l)
{
    return l->kind == VIZ_LANE_TRACK && l->track < t->replayed.n && t->replayed.p[l->track] != 0;
}

int tui_time_rows(const struct tui_time *t, size_t seen)
{
    const bool is_replayed = tui_time_is_replayed(t, &t->tracks.lanes.p[t->seen.p[seen]]);
    return tui_time_depths(t, seen) + (is_replayed ? t->has_path + t->has_ideal : 0);
}

/* ---- steps ------------------------------------------------------------------------------ */

/* Steps of the process under the cursor. A process may have millions of steps, so none are kept:
 * the database returns them in the order of time. */

/* A step number may repeat, as when each epoch counts from 0; a start time does not. */
#define STEP "SELECT number, start_ns, end_ns FROM steps WHERE process = ?1"
static const char of_number[] = STEP " AND number = ?2 ORDER BY start_ns LIMIT 1";
static const char at_or_behind[] = STEP " AND start_ns >= ?2 ORDER BY start_ns LIMIT 1";
static const char before[] = STEP " AND start_ns < ?2 ORDER BY start_ns DESC LIMIT 1";

struct step_query { /* a statement that returns one step */
    struct ms_stmt *st;
    int64_t process;
};

static enum ms_rc prepare_step(struct tui_time *t, struct step_query *q, const char *sql,
                               struct ms_err *err)
{
    const struct viz_lane *l = tui_time_lane(t);
    q->process = l != NULL ? (int64_t)l->process + 1 : 0;
    return ms_store_prepare(mstx_tl_store(t->tl), &q->st, sql, err);
}

static enum ms_rc read_step(const struct step_query *q, int64_t value, struct mstx_step *s,
                            bool *found, struct ms_err *err)
{
    ms_stmt_i64(q->st, 1, q->process);
    ms_stmt_i64(q->st, 2, value);
    MS_TRY(ms_stmt_step(q->st, found, err));
    if (*found)
        *s = (struct mstx_step){.process = (uint32_t)q->process,
                                .number = (uint32_t)ms_stmt_get_i64(q->st, 0),
                                .start_ns = ms_stmt_get_i64(q->st, 1),
                                .end_ns = ms_stmt_get_i64(q->st, 2)};
    ms_stmt_reset(q->st);
    return MS_OK;
}

static enum ms_rc read_one_step(struct tui_time *t, const char *sql, int64_t value,
                                struct mstx_step *s, bool *found, struct ms_err *err)
{
    struct step_query q;
    MS_TRY(prepare_step(t, &q, sql, err));
    enum ms_rc rc = read_step(&q, value, s, found, err);
    ms_stmt_free(q.st);
    return rc;
}

enum ms_rc tui_time_step_at(struct tui_time *t, int64_t number, struct mstx_step *s, bool *found,
                            struct ms_err *err)
{
    return read_one_step(t, of_number, number, s, found, err);
}

enum ms_rc tui_time_step_next(struct tui_time *t, bool back, struct mstx_step *s, bool *found,
                              struct ms_err *err)
{
    return read_one_step(t, back ? before : at_or_behind, back ? t->time : t->time + 1, s, found,
                         err);
}

enum ms_rc tui_time_steps(struct tui_time *t, struct ms_err *err)
{
    size_t most = (size_t)t->width / TUI_STEP_LEAST + 1;
    struct mstx_step s;
    struct step_query q;
    int64_t from = t->w.from;
    bool found = true;
    t->steps.n = 0;
    MS_TRY(prepare_step(t, &q, at_or_behind, err));
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && found && t->steps.n < most) {
        rc = read_step(&q, from, &s, &found, err);
        struct mstx_step *slot =
            rc == MS_OK && found && s.start_ns < t->w.to ? ms_vec_push(&t->steps) : NULL;
        if (slot == NULL)
            break;
        *slot = s;
        from = s.start_ns + 1;
    }
    ms_stmt_free(q.st);
    return rc;
}
