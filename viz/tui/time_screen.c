/* SPDX-License-Identifier: MIT
 *
 * time_screen: the timeline screen: windows, cursors, slices and keys.
 */
#include "viz/tui/app.h"
#include "viz/tui/time_draw.h"
#include "viz/tui/time_meet.h"
#include "viz/tui/time_replay.h"

#include "probe/base/clock.h"
#include "probe/base/csv.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { SUMS_MOST = 500 };
static const double ZOOM = 0.5, PAN = 0.25;

/* ---- opening ----------------------------------------------------------------------- */

static void close_time(void *self)
{
    struct tui_time *t = self;
    viz_tracks_free(&t->tracks);
    ms_vec_free(&t->seen);
    ms_vec_free(&t->steps);
    ms_vec_free(&t->kinds);
    ms_vec_free(&t->map);
    ms_vec_free(&t->replayed);
    ms_vec_free(&t->path_row);
    ms_vec_free(&t->met);
    viz_collective_free(&t->meeting);
    mstx_names_free(t->names);
    ms_free(t);
}

static void *open_time(struct tui_app *a, struct ms_err *err)
{
    struct tui_time *t = ms_calloc(1, sizeof *t);
    int64_t first, last;
    if (t == NULL) {
        (void)ms_no_memory(err);
        return NULL;
    }
    t->tl = a->reader.tl;
    mstx_tl_span(t->tl, &first, &last);
    t->w = viz_window_all(first, last);
    t->time = first;
    t->width = a->cells.w > TUI_LABEL_W ? a->cells.w - TUI_LABEL_W : 1;
    enum ms_rc rc = viz_tracks_make(&t->tracks, t->tl, err);
    if (rc == MS_OK)
        rc = viz_tracks_seen(&t->tracks, &t->seen, err);
    if (rc == MS_OK)
        return t;
    close_time(t);
    return NULL;
}

/* ---- windows ----------------------------------------------------------------------- */

/* Zooms; the cursor keeps its place on the screen. */
static void zoom(struct tui_time *t, double factor)
{
    double still = (double)(t->time - t->w.from) / (double)viz_window_length(&t->w);
    tui_time_remember(t);
    viz_window_zoom(&t->w, factor, still >= 0 && still <= 1 ? still : 0.5);
    t->time = tui_time_clamp(t, t->time);
}

/* Pans by whole cells, so that remaining cells do not change. */
static void pan_window(struct tui_time *t, double share)
{
    double cells = round(share * t->width);
    viz_window_pan(&t->w, cells / (t->width > 0 ? t->width : 1));
    t->time = tui_time_clamp(t, t->time);
}

static void step_cursor(struct tui_time *t, int by)
{
    int64_t cell = viz_window_length(&t->w) / (t->width > 0 ? t->width : 1);
    t->time += by * (cell > 0 ? cell : 1);
    t->has_slice = false;
    if (t->time < t->w.from || t->time >= t->w.to)
        pan_window(t, by > 0 ? PAN : -PAN);
    t->time = tui_time_clamp(t, t->time);
}

/* ---- slices ------------------------------------------------------------------------ */

static enum ms_rc need_track(const struct tui_time *t, const struct viz_lane **l,
                             struct ms_err *err)
{
    *l = tui_time_lane(t);
    return *l != NULL && (*l)->kind == VIZ_LANE_TRACK
               ? MS_OK
               : ms_fail(err, MS_E_ARG, "choose a track first: j and k go through them");
}

static enum ms_rc go_slice(struct tui_app *a, struct tui_time *t, bool back,
                           const struct mstx_names *names, struct ms_err *err)
{
    const struct viz_lane *l;
    struct mstx_event ev;
    bool found;
    MS_TRY(need_track(t, &l, err));
    int64_t from = t->has_slice && t->slice_lane == t->at ? t->slice.start_ns : t->time;
    MS_TRY(back ? mstx_tl_prev(t->tl, l->track, from, names, &ev, &found, err)
                : mstx_tl_next(t->tl, l->track, from, names, &ev, &found, err));
    if (found)
        tui_time_take(t, &ev);
    else
        tui_say(a, "no slice %s on this track", back ? "before" : "behind");
    return MS_OK;
}

/* Starts the search for the nearest hit before or after the cursor in all visible lanes; the
 * search continues in time slices, lane by lane. */
static enum ms_rc begin_hit(struct tui_time *t, bool back, struct ms_err *err)
{
    if (t->names == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "nothing was searched yet; / begins");
    t->hit.on = true;
    t->hit.back = back;
    t->hit.next = 0;
    t->hit.lane = SIZE_MAX;
    return MS_OK;
}

static void end_hit(struct tui_app *a, struct tui_time *t)
{
    t->hit.on = false;
    if (t->hit.lane == SIZE_MAX) {
        tui_say(a, "no hit %s the cursor", t->hit.back ? "before" : "behind");
        return;
    }
    t->at = t->hit.lane;
    tui_time_take(t, &t->hit.best);
}

static enum ms_rc look_in_lane(struct tui_time *t, size_t i, struct ms_err *err)
{
    const struct viz_lane *l = &t->tracks.lanes.p[t->seen.p[i]];
    struct mstx_event ev;
    bool found, back = t->hit.back;
    if (l->kind != VIZ_LANE_TRACK)
        return MS_OK;
    MS_TRY(back ? mstx_tl_prev(t->tl, l->track, t->time, t->names, &ev, &found, err)
                : mstx_tl_next(t->tl, l->track, t->time, t->names, &ev, &found, err));
    int64_t best = t->hit.best.start_ns;
    if (found && (t->hit.lane == SIZE_MAX || (back ? ev.start_ns > best : ev.start_ns < best))) {
        t->hit.best = ev;
        t->hit.lane = i;
    }
    return MS_OK;
}

static enum ms_rc work_on_time(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct tui_time *t = self;
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    while (t->hit.on && t->hit.next < t->seen.n && ms_clock_ns() < end)
        MS_TRY(look_in_lane(t, t->hit.next++, err));
    *more = t->hit.on && t->hit.next < t->seen.n;
    if (t->hit.on && !*more)
        end_hit(a, t);
    return *more || tui_time_top(a) == 3 ? MS_OK : tui_time_map_work(t, more, err);
}

/* The slice of another track of the process with the same link number: the device side of a host
 * slice, or the reverse. */
struct partner {
    uint64_t link;
    struct mstx_event event;
    bool found;
};

static enum ms_rc look_for_partner(struct tui_time *t, const struct viz_lane *l, struct partner *p,
                                   struct ms_err *err)
{
    mstx_events events = {0};
    /* A device lags behind its host, but seldom by more than this. */
    const int64_t apart = INT64_C(10000000000);
    enum ms_rc rc = mstx_tl_view(t->tl, l->track, t->slice.start_ns - apart,
                                 t->slice.start_ns + apart, 0, &events, err);
    for (size_t i = 0; rc == MS_OK && i < events.n && !p->found; i++) {
        p->found = events.p[i].size == p->link;
        p->event = events.p[i];
    }
    ms_vec_free(&events);
    return rc;
}

static enum ms_rc go_partner(struct tui_app *a, struct tui_time *t, struct ms_err *err)
{
    struct partner p = {.link = t->slice.size};
    const struct viz_lane *here;
    MS_TRY(need_track(t, &here, err));
    if (!t->has_slice || p.link == 0)
        return ms_fail(err, MS_E_NOTFOUND, "go to a slice with a device side first: . and , do");
    bool device = mstx_tl_track(t->tl, here->track)->kind == MSTX_TRACK_STREAM;
    for (size_t i = 0; i < t->seen.n && !p.found; i++) {
        const struct viz_lane *l = &t->tracks.lanes.p[t->seen.p[i]];
        bool other = l->kind == VIZ_LANE_TRACK && l->process == here->process &&
                     (mstx_tl_track(t->tl, l->track)->kind == MSTX_TRACK_STREAM) != device;
        if (other)
            MS_TRY(look_for_partner(t, l, &p, err));
        if (p.found)
            t->at = i;
    }
    if (p.found)
        tui_time_take(t, &p.event);
    else
        tui_say(a, "its other side was not recorded");
    return MS_OK;
}

static enum ms_rc go_step(struct tui_app *a, struct tui_time *t, bool back, struct ms_err *err)
{
    struct mstx_step s;
    bool found;
    MS_TRY(tui_time_step_next(t, back, &s, &found, err));
    if (!found) {
        tui_say(a, "no step %s the cursor", back ? "before" : "behind");
        return MS_OK;
    }
    tui_time_reveal(t, s.start_ns);
    t->has_slice = false;
    tui_say(a, "step %" PRIu32, s.number);
    return MS_OK;
}

/* Moves to the lane of the next process with another rank. */
static enum ms_rc go_rank(struct tui_time *t, int by, struct ms_err *err)
{
    size_t i = t->at;
    const struct viz_lane *l = tui_time_lane(t);
    uint32_t process = l != NULL ? l->process : 0;
    while (by > 0 ? i + 1 < t->seen.n : i > 0) {
        i = by > 0 ? i + 1 : i - 1;
        l = &t->tracks.lanes.p[t->seen.p[i]];
        if (l->kind == VIZ_LANE_PROCESS && l->process != process) {
            t->at = i;
            return MS_OK;
        }
    }
    return ms_fail(err, MS_E_NOTFOUND, "this is the %s rank", by > 0 ? "last" : "first");
}

/* ---- selections -------------------------------------------------------------------- */

struct range {
    int64_t from, to;
};

static struct range selected_range(const struct tui_time *t)
{
    if (!t->marked)
        return (struct range){t->w.from, t->w.to};
    return t->mark < t->time ? (struct range){t->mark, t->time} : (struct range){t->time, t->mark};
}

/* Collects the tracks of the lane under the cursor. */
static size_t tracks_of(const struct tui_time *t, uint32_t *out)
{
    const struct viz_lane *l = tui_time_lane(t);
    size_t n = 0;
    for (size_t i = 0; l != NULL && i < t->tracks.lanes.n; i++) {
        const struct viz_lane *x = &t->tracks.lanes.p[i];
        if (x->kind == VIZ_LANE_TRACK &&
            (l->kind == VIZ_LANE_TRACK ? x->track == l->track : x->process == l->process))
            out[n++] = x->track;
    }
    return n;
}

static enum ms_rc measure(struct tui_time *t, mstx_name_rows *rows, struct ms_err *err)
{
    struct range r = selected_range(t);
    uint32_t *track = ms_alloc((t->tracks.lanes.n + 1) * sizeof *track);
    if (track == NULL)
        return ms_no_memory(err);
    struct mstx_part part = {track, tracks_of(t, track), r.from, r.to};
    enum ms_rc rc = mstx_names_measure_part(t->tl, &part, rows, err);
    ms_free(track);
    return rc;
}

static enum ms_rc open_sums(struct tui_app *a, struct tui_time *t, struct ms_err *err)
{
    mstx_name_rows rows = {0};
    char title[128], length[MS_HUMAN_MAX], b[4][MS_HUMAN_MAX];
    struct range r = selected_range(t);
    MS_TRY(measure(t, &rows, err));
    const struct viz_lane *l = tui_time_lane(t);
    snprintf(title, sizeof title, "%s of %.*s", ms_human_time(length, r.to - r.from),
             l != NULL ? (int)l->label.n : 0, l != NULL ? l->label.p : "");
    enum ms_rc rc = tui_page_open(&a->page, title, err);
    if (rc == MS_OK)
        rc = tui_page_addf(&a->page, TUI_ACCENT, err, "%10s %10s %10s %10s %7s  name", "total",
                           "count", "mean", "p99", "share");
    for (size_t i = 0; rc == MS_OK && i < rows.n && i < SUMS_MOST; i++) {
        const struct mstx_name_row *n = &rows.p[i];
        rc = tui_page_addf(&a->page, TUI_TEXT, err, "%10s %10s %10s %10s %6.2f%%  %.*s",
                           ms_human_time(b[0], n->total_ns), ms_human_count(b[1], n->events),
                           ms_human_time(b[2], n->mean_ns), ms_human_time(b[3], n->p99_ns),
                           n->share * 100, MS_STR_ARG(n->name));
    }
    ms_vec_free(&rows);
    return rc;
}

static enum ms_rc export_time(struct tui_app *a, void *self, struct ms_buf *out, struct ms_err *err)
{
    struct tui_time *t = self;
    mstx_name_rows rows = {0};
    (void)a;
    MS_TRY(measure(t, &rows, err));
    ms_buf_puts(out, "domain,name,count,total_ns,mean_ns,p50_ns,p99_ns,max_ns,share\n");
    for (size_t i = 0; i < rows.n; i++) {
        const struct mstx_name_row *n = &rows.p[i];
        ms_csv_put(out, n->domain, MS_CSV_FOREIGN);
        ms_buf_putc(out, ',');
        ms_csv_put(out, n->name, MS_CSV_FOREIGN);
        ms_buf_printf(
            out, ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.6g\n",
            n->events, n->total_ns, n->mean_ns, n->p50_ns, n->p99_ns, n->max_ns, n->share);
    }
    ms_vec_free(&rows);
    return MS_OK;
}

/* ---- keys -------------------------------------------------------------------------- */

static enum ms_rc open_lane(struct tui_time *t, struct ms_err *err)
{
    size_t lane = t->at < t->seen.n ? t->seen.p[t->at] : 0;
    struct viz_lane *l = &t->tracks.lanes.p[lane];
    if (t->seen.n == 0 || l->kind != VIZ_LANE_PROCESS)
        return MS_OK;
    l->open = !l->open;
    return viz_tracks_seen(&t->tracks, &t->seen, err);
}

static enum ms_rc pin_slice(struct tui_time *t, struct ms_err *err)
{
    const struct viz_lane *l;
    MS_TRY(need_track(t, &l, err));
    t->tracks.lanes.p[t->seen.p[t->at]].pinned = !l->pinned;
    return tui_time_arrange(t, err);
}

/* Enter: a process is opened or closed, the slice of a collective leads to the collective. */
static enum ms_rc enter_lane(struct tui_app *a, struct tui_time *t, struct ms_err *err)
{
    const struct viz_lane *l = tui_time_lane(t);
    if (l != NULL && l->kind == VIZ_LANE_TRACK && t->has_slice && t->slice_lane == t->at)
        return tui_time_go_longest(a, t, err);
    return open_lane(t, err);
}

static bool window_key(struct tui_time *t, int key)
{
    struct range r = selected_range(t);
    switch (key) {
    case 'w':
    case 'W':
    case '+':
        zoom(t, ZOOM);
        return true;
    case 's':
    case 'S':
    case '-':
        zoom(t, 1 / ZOOM);
        return true;
    case 'a':
    case 'A':
        pan_window(t, -PAN);
        return true;
    case 'd':
    case 'D':
        pan_window(t, PAN);
        return true;
    case '0':
        tui_time_show(t, t->w.first - (t->w.last - t->w.first),
                      t->w.last + (t->w.last - t->w.first));
        return true;
    case 'f':
        tui_time_focus(t);
        return true;
    case 'Z':
        tui_time_show(t, r.from, r.to);
        t->marked = false;
        return true;
    case TUI_KEY_BACKSPACE:
        if (t->undone > 0)
            t->w = t->undo[--t->undone];
        t->time = tui_time_clamp(t, t->time);
        return true;
    case 'h':
    case TUI_KEY_LEFT:
        step_cursor(t, -1);
        return true;
    case 'l':
    case TUI_KEY_RIGHT:
        step_cursor(t, 1);
        return true;
    default:
        return false;
    }
}

static enum ms_rc act_key(struct tui_app *a, struct tui_time *t, int key, bool *taken,
                          struct ms_err *err)
{
    switch (key) {
    case '.':
    case ',':
        return go_slice(a, t, key == ',', NULL, err);
    case 'n':
    case 'N':
        return begin_hit(t, key == 'N', err);
    case ']':
    case '[':
        return go_partner(a, t, err);
    case '}':
    case 't':
        return go_step(a, t, false, err);
    case '{':
    case 'T':
        return go_step(a, t, true, err);
    case 'r':
    case 'R':
        return go_rank(t, key == 'r' ? 1 : -1, err);
    case ' ':
        t->marked = !t->marked;
        t->mark = t->time;
        return MS_OK;
    case TUI_KEY_ESC: /* with nothing to deselect, Esc goes back */
        *taken = t->marked || t->has_slice || t->meeting.list.n != 0;
        t->marked = t->has_slice = false;
        return tui_time_part(t, err);
    case 'i':
        return open_sums(a, t, err);
    case 'c':
        return tui_time_meet(a, t, err);
    case 'x':
        return tui_time_flip_path(a, t, err);
    case 'X':
        return tui_time_flip_ideal(a, t, err);
    case 'p':
        return pin_slice(t, err);
    case TUI_KEY_ENTER:
        return enter_lane(a, t, err);
    case '/':
        tui_ask(a, '/');
        return MS_OK;
    default:
        *taken = false;
        return MS_OK;
    }
}

static enum ms_rc time_key(struct tui_app *a, void *self, int key, bool *taken, struct ms_err *err)
{
    struct tui_time *t = self;
    *taken = true;
    t->hit.on = t->hit.on && key == TUI_KEY_TICK;
    if (window_key(t, key) || tui_move(key, &t->at, t->seen.n, (size_t)tui_body_rows(a)))
        return MS_OK;
    return act_key(a, t, key, taken, err);
}

/* Highlights matching names while the line is typed. */
static enum ms_rc time_line(struct tui_app *a, void *self, char kind, struct ms_str text, bool done,
                            struct ms_err *err)
{
    struct tui_time *t = self;
    char word[TUI_LINE_MAX];
    (void)kind;
    mstx_names_free(t->names);
    t->names = NULL;
    if (text.p == NULL || text.n == 0)
        return MS_OK;
    snprintf(word, sizeof word, "%.*s", MS_STR_ARG(text));
    MS_TRY(mstx_tl_find(t->tl, word, &t->names, err));
    if (!done)
        return MS_OK;
    size_t n = mstx_names_count(t->names);
    tui_say(a, "%zu name%s it; n and N go to %s", n, n == 1 ? " holds" : "s hold",
            n == 1 ? "its slices" : "their slices");
    return begin_hit(t, false, err);
}

/* ---- places ------------------------------------------------------------------------ */

/* Goes to the call that a link names. */
static enum ms_rc go_linked_call(struct tui_app *a, struct tui_time *t, const struct viz_place *p,
                                 struct ms_err *err)
{
    for (size_t i = 0; i < mstx_tl_track_count(t->tl); i++) {
        if (mstx_tl_track(t->tl, i)->id == p->track)
            return tui_time_go_call(a, t, mstx_tl_track(t->tl, i)->process, p->call, err);
    }
    return ms_fail(err, MS_E_NOTFOUND, "there is no such track in this run");
}

static bool is_asked(const struct tui_time *t, const struct viz_lane *l, const struct viz_place *p)
{
    if (p->track >= 0)
        return l->kind == VIZ_LANE_TRACK && mstx_tl_track(t->tl, l->track)->id == p->track;
    return p->rank >= 0 && mstx_tl_process(t->tl, l->process)->rank == p->rank;
}

/* Shows the time of a link. */
static enum ms_rc show_time_of(struct tui_time *t, const struct viz_place *p, struct ms_err *err)
{
    struct mstx_step step;
    bool found;
    if (p->to > p->from) {
        int64_t room = (p->to - p->from) / 10;
        tui_time_show(t, p->from - room, p->to + room);
        t->time = p->from;
    } else if (p->step >= 0) {
        MS_TRY(tui_time_step_at(t, p->step, &step, &found, err));
        if (!found)
            return ms_fail(err, MS_E_NOTFOUND, "step %" PRId64 " is not in this process", p->step);
        tui_time_show(t, step.start_ns, step.end_ns);
        t->time = step.start_ns;
    }
    return MS_OK;
}

static enum ms_rc go_to_time(struct tui_app *a, void *self, const struct viz_place *p,
                             struct ms_err *err)
{
    struct tui_time *t = self;
    size_t i = 0;
    bool is_there = false;
    if (p->call != 0)
        return go_linked_call(a, t, p, err);
    if (p->rank >= 0 && p->to > p->from)
        MS_TRY(tui_time_go_worst(a, t, p, &is_there, err));
    if (is_there)
        return MS_OK;
    while (i < t->seen.n && !is_asked(t, &t->tracks.lanes.p[t->seen.p[i]], p))
        i++;
    if (i < t->seen.n)
        t->at = i;
    else if (p->rank >= 0 || p->track >= 0)
        return ms_fail(err, MS_E_NOTFOUND, "there is no such rank or track in this run");
    MS_TRY(show_time_of(t, p, err));
    return p->query.n != 0 ? time_line(a, t, '/', p->query, true, err) : MS_OK;
}

/* Centres the window at a column of the map. */
static void move_window(struct tui_time *t, int column)
{
    int64_t half = viz_window_length(&t->w) / 2;
    int64_t middle = t->w.first + (int64_t)((double)(t->w.last - t->w.first) * column / t->map_w);
    viz_window_show(&t->w, middle - half, middle + half);
    t->time = tui_time_clamp(t, middle);
}

/* Handles a click; a drag over tracks selects a time range. */
static bool click(struct tui_app *a, void *self, int y, int x, bool drag)
{
    struct tui_time *t = self;
    int row = tui_time_top(a);
    size_t before = t->at;
    if (row > 3 && y == 1 && x >= t->label_w && t->map_w > 0) {
        if (!drag)
            tui_time_remember(t);
        move_window(t, x - t->label_w);
        return false;
    }
    for (size_t i = t->top; i < t->seen.n && !drag; i++) {
        int rows = tui_time_rows(t, i);
        if (y >= row && y < row + rows)
            t->at = i;
        row += rows;
    }
    if (x < t->label_w)
        return !drag && before == t->at && y >= tui_time_top(a);
    if (drag && !t->marked) {
        t->marked = true;
        t->mark = t->time;
    }
    t->time = tui_time_clamp(t, tui_time_at(t, x - t->label_w));
    t->has_slice = false;
    t->marked = t->marked && drag;
    return false;
}

static void describe_place(const struct tui_app *a, const void *self, char text[TUI_WHERE_MAX])
{
    const struct tui_time *t = self;
    const struct viz_lane *l = tui_time_lane(t);
    int32_t rank = l != NULL ? mstx_tl_process(t->tl, l->process)->rank : -1;
    (void)a;
    if (rank >= 0)
        snprintf(text, TUI_WHERE_MAX, "rank %" PRId32 "/%zu", rank, mstx_tl_process_count(t->tl));
}

static const struct tui_hint hints[] = {
    {"window", NULL, NULL},
    {"W S", "zoom in, out", "zoom"},
    {"A D", "to earlier, later", "pan"},
    {"↑↓", "track above, below", "track"},
    {"←→", "cursor to earlier, later", "cursor"},
    {". ,", "next, previous slice of the track", "slice"},
    {"} {", "next, previous step; also t T", "step"},
    {"Space", "begin a selection, or let go of it", "select"},
    {"i", "names by total time, of the selection or the window", "sums"},
    {"c", "the slice as a collective on all ranks: who came when", NULL},
    {"x", "critical path of the steps, shown or hidden", NULL},
    {"X", "ideal timeline below each lane, shown or hidden", NULL},
    {"0", "all of the run", NULL},
    {"f", "the slice, as wide as the screen", NULL},
    {"Z", "zoom to the selection", NULL},
    {"Backspace", "the window before", NULL},
    {"going to", NULL, NULL},
    {"] [", "the other side of the slice: device, host", NULL},
    {"/ n N", "search names, next, previous hit", NULL},
    {"r R", "next, previous rank", NULL},
    {"tracks", NULL, NULL},
    {"Enter", "open or close a process; of a collective: who came last", NULL},
    {"p", "pin a track on top", NULL},
    {"Esc", "let go of slice and selection", NULL},
    {NULL, NULL, NULL},
};

const struct tui_screen tui_time_screen = {
    .name = "Timeline",
    .hints = hints,
    .open = open_time,
    .close = close_time,
    .draw = tui_time_draw,
    .where = describe_place,
    .key = time_key,
    .show_place = go_to_time,
    .work = work_on_time,
    .click = click,
    .export = export_time,
    .line = time_line,
};
