/* SPDX-License-Identifier: MIT
 *
 * time_meet: see the header.
 */
#include "viz/tui/time_meet.h"

#include "probe/base/assert.h"
#include "probe/base/human.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the culprit and its partners between the lanes ------------------------------------- */

enum { PARTNERS = 7 }; /* ranks pinned beside the culprit: those that wait longest */

/* Every track has a lane. */
static size_t lane_of_track(const struct viz_tracks *t, size_t track)
{
    size_t i = 0;
    while (i < t->lanes.n && (t->lanes.p[i].kind != VIZ_LANE_TRACK || t->lanes.p[i].track != track))
        i++;
    ms_assert(i < t->lanes.n);
    return i;
}

/* Pins the lane of the call of a rank. A call that is on no track has no lane. */
static enum ms_rc pin_arrival(struct tui_time *t, size_t arrival, struct ms_err *err)
{
    struct viz_call call;
    const struct viz_arrival *a = &t->meeting.list.p[arrival];
    const enum ms_rc rc = viz_call_find(&call, t->tl, (size_t)a->process, a->start_ns, err);
    if (rc == MS_E_NOTFOUND)
        ms_err_clear(err);
    if (rc != MS_OK)
        return rc == MS_E_NOTFOUND ? MS_OK : rc;
    const size_t lane = lane_of_track(&t->tracks, call.track);
    struct tui_met *met = ms_vec_push(&t->met);
    if (met == NULL)
        return ms_no_memory(err);
    *met = (struct tui_met){lane, arrival, t->tracks.lanes.p[lane].pinned};
    t->tracks.lanes.p[lane].pinned = true;
    return MS_OK;
}

/* Pins the lanes of the culprit, of the longest call and of those that came first. */
static enum ms_rc pin_arrivals(struct tui_time *t, size_t longest, struct ms_err *err)
{
    const size_t n = t->meeting.list.n;
    MS_TRY(pin_arrival(t, n - 1, err));
    if (longest + 1 < n)
        MS_TRY(pin_arrival(t, longest, err));
    for (size_t i = 0; i + 1 < n && i < PARTNERS; i++) {
        if (i != longest)
            MS_TRY(pin_arrival(t, i, err));
    }
    return MS_OK;
}

static const struct viz_arrival *longest_of(const struct viz_collective *c)
{
    const struct viz_arrival *longest = &c->list.p[0];
    for (size_t i = 1; i < c->list.n; i++) {
        const struct viz_arrival *a = &c->list.p[i];
        if (a->end_ns - a->start_ns > longest->end_ns - longest->start_ns)
            longest = a;
    }
    return longest;
}

enum ms_rc tui_time_part(struct tui_time *t, struct ms_err *err)
{
    while (t->met.n != 0) {
        const struct tui_met *met = &t->met.p[--t->met.n];
        t->tracks.lanes.p[met->lane].pinned = met->was_pinned;
    }
    viz_collective_free(&t->meeting);
    t->meeting = (struct viz_collective){.bytes = 0};
    return tui_time_arrange(t, err);
}

static enum ms_rc gather(struct tui_time *t, struct viz_collective *c, struct viz_call *longest,
                         struct ms_err *err)
{
    const enum ms_rc rc = tui_time_part(t, err);
    t->meeting = *c;
    *c = (struct viz_collective){.bytes = 0};
    MS_TRY(rc);
    const struct viz_arrival *a = longest_of(&t->meeting);
    MS_TRY(viz_call_find(longest, t->tl, (size_t)a->process, a->start_ns, err));
    if (t->meeting.list.n > 1)
        MS_TRY(pin_arrivals(t, (size_t)(a - t->meeting.list.p), err));
    return viz_tracks_seen(&t->tracks, &t->seen, err);
}

static const struct viz_arrival *last_of(const struct tui_time *t)
{
    return &t->meeting.list.p[t->meeting.list.n - 1];
}

const struct viz_arrival *tui_time_arrival(const struct tui_time *t, const struct viz_lane *l)
{
    for (size_t i = 0; i < t->met.n; i++) {
        if (&t->tracks.lanes.p[t->met.p[i].lane] == l)
            return &t->meeting.list.p[t->met.p[i].arrival];
    }
    return NULL;
}

bool tui_time_is_culprit(const struct tui_time *t, const struct viz_arrival *a)
{
    const struct viz_arrival *first = t->meeting.list.p;
    return a == last_of(t) && a->start_ns > first->start_ns;
}

void tui_time_arrival_text(const struct tui_time *t, const struct viz_arrival *a, bool is_narrow,
                           char text[TUI_ARRIVAL_MAX])
{
    char wait[MS_HUMAN_MAX];
    const int64_t waits = last_of(t)->start_ns - a->start_ns;
    const char *rank = is_narrow ? "" : "rank ";
    if (tui_time_is_culprit(t, a))
        snprintf(text, TUI_ARRIVAL_MAX, "%s%" PRId64 " %slast", rank, a->rank,
                 is_narrow ? "" : "came ");
    else if (waits > 0)
        snprintf(text, TUI_ARRIVAL_MAX, "%s%" PRId64 " %s%s", rank, a->rank,
                 is_narrow ? "" : "waits ", ms_human_time(wait, waits));
    else
        snprintf(text, TUI_ARRIVAL_MAX, "rank %" PRId64, a->rank);
}

/* ---- going there ------------------------------------------------------------------- */

/* Selects a slice in its lane, which is in sight. */
static void select_call(struct tui_time *t, const struct viz_call *call)
{
    for (size_t i = t->seen.n; i-- > 0;) {
        const struct viz_lane *l = &t->tracks.lanes.p[t->seen.p[i]];
        if (l->kind == VIZ_LANE_TRACK && l->track == call->track)
            t->at = i;
    }
    tui_time_take(t, &call->slice);
}

/* Shows the time in which the ranks of the meeting wait and transfer. */
static void show_meeting(struct tui_time *t)
{
    static const double before = 0.6, after = 0.3; /* margins, of the collective */
    const struct viz_arrival *list = t->meeting.list.p;
    int64_t from = list[0].start_ns, to = list[0].end_ns;
    for (size_t i = 1; i < t->meeting.list.n; i++)
        to = list[i].end_ns > to ? list[i].end_ns : to;
    const double length = (double)(to - from > VIZ_SHORTEST_NS ? to - from : VIZ_SHORTEST_NS);
    tui_time_show(t, from - (int64_t)(before * length), to + (int64_t)(after * length));
}

/* Says who came last, and what that cost. */
static void say_meeting(struct tui_app *a, const struct tui_time *t)
{
    char late[MS_HUMAN_MAX];
    const struct viz_arrival *last = last_of(t);
    const size_t n = t->meeting.list.n;
    if (tui_time_is_culprit(t, last))
        tui_say(a,
                "rank %" PRId64 " came last of %zu, %s after the first; c lists them, Esc lets go",
                last->rank, n, ms_human_time(late, last->start_ns - t->meeting.list.p[0].start_ns));
    else
        tui_say(a, "all %zu ranks came at the same time; c lists them, Esc lets go", n);
}

/* Goes to the longest call of a collective, with the culprit and those that wait for it on top. */
static enum ms_rc go_collective(struct tui_app *a, struct tui_time *t, struct viz_collective *c,
                                struct ms_err *err)
{
    struct viz_call longest;
    MS_TRY(gather(t, c, &longest, err));
    show_meeting(t);
    t->top = 0;
    select_call(t, &longest);
    say_meeting(a, t);
    return MS_OK;
}

/* Goes to a call of which no other rank's part is known. */
static enum ms_rc go_lone_call(struct tui_app *a, struct tui_time *t, uint32_t process,
                               int64_t start_ns, struct ms_err *err)
{
    struct viz_call call;
    MS_TRY(viz_call_find(&call, t->tl, process, start_ns, err));
    MS_TRY(tui_time_open(t, process, err));
    select_call(t, &call);
    tui_time_focus(t);
    tui_say(a, "the parts of other ranks in this call are not known");
    return MS_OK;
}

/* Goes to the call that a process began at start_ns, or, where it is one of a collective, to the longest call of
 * that. */
enum ms_rc tui_time_go_call(struct tui_app *a, struct tui_time *t, uint32_t process,
                            int64_t start_ns, struct ms_err *err)
{
    struct viz_collective c;
    enum ms_rc rc = viz_collective_read(&c, t->tl, process, start_ns, err);
    if (rc == MS_E_NOTFOUND) {
        ms_err_clear(err);
        return go_lone_call(a, t, process, start_ns, err);
    }
    MS_TRY(rc);
    rc = c.list.n > 1 ? go_collective(a, t, &c, err) : go_lone_call(a, t, process, start_ns, err);
    viz_collective_free(&c);
    return rc;
}

/* Goes to the longest call of the collective whose slice is selected; other slices have none. */
enum ms_rc tui_time_go_longest(struct tui_app *a, struct tui_time *t, struct ms_err *err)
{
    struct viz_call call;
    const uint32_t process = tui_time_lane(t)->process;
    const enum ms_rc rc = viz_call_find(&call, t->tl, process, t->slice.start_ns, err);
    if (rc == MS_OK && call.slice.name == t->slice.name)
        return tui_time_go_call(a, t, process, t->slice.start_ns, err);
    if (rc == MS_E_NOTFOUND)
        ms_err_clear(err);
    if (rc == MS_OK || rc == MS_E_NOTFOUND)
        tui_say(a, "this slice is no call of several ranks");
    return rc == MS_E_NOTFOUND ? MS_OK : rc;
}

/* Goes to the worst collective of the time that a link names, of those that its rank entered last. */
enum ms_rc tui_time_go_worst(struct tui_app *a, struct tui_time *t, const struct viz_place *p,
                             bool *found, struct ms_err *err)
{
    struct viz_collective c;
    enum ms_rc rc = viz_collective_worst(&c, t->tl, p->rank, p->from, p->to, err);
    *found = rc == MS_OK && c.list.n > 1;
    if (rc == MS_E_NOTFOUND) {
        ms_err_clear(err);
        return MS_OK;
    }
    MS_TRY(rc);
    if (*found)
        rc = go_collective(a, t, &c, err);
    viz_collective_free(&c);
    return rc;
}

/* ---- the page of a collective ----------------------------------------------------------- */

/* A page with a row for each rank:
 *
 *     rank 2        first  ░░░░░░░░░░░░████  waits 61.2 us
 *     rank 0   +  20.1 us  ····░░░░░░░░████  waits 41.1 us
 *     rank 1  !+  61.2 us  ············████  the others wait for it */

enum { BAR_W = 30, BYTES = 4 };

static int64_t end_of(const struct viz_collective *c)
{
    int64_t end = c->list.p[0].end_ns;
    for (size_t i = 1; i < c->list.n; i++)
        end = c->list.p[i].end_ns > end ? c->list.p[i].end_ns : end;
    return end;
}

static int column_of(int64_t at, int64_t from, int64_t to)
{
    return to > from ? (int)((double)(at - from) / (double)(to - from) * BAR_W + 0.5) : 0;
}

static void put_cells(char *out, size_t *n, const char *cell, int times)
{
    for (int i = 0; i < times; i++, *n += strlen(cell))
        memcpy(out + *n, cell, strlen(cell) + 1);
}

/* Draws the bar of a rank: not arrived, waiting, transferring. */
static void put_bar(char out[BAR_W * BYTES + 1], const struct viz_collective *c,
                    const struct viz_arrival *a)
{
    int64_t from = c->list.p[0].start_ns, to = end_of(c);
    int there = column_of(a->start_ns, from, to), end = column_of(a->end_ns, from, to);
    int all = column_of(c->list.p[c->list.n - 1].start_ns, from, to);
    size_t n = 0;
    all = all < end ? all : end;
    *out = '\0';
    put_cells(out, &n, "·", there);
    put_cells(out, &n, "░", all - there);
    put_cells(out, &n, "█", end - (all > there ? all : there));
    put_cells(out, &n, " ", BAR_W - (end > there ? end : there));
}

static enum ms_rc add_line(struct tui_page *p, const struct viz_collective *c, size_t i,
                           struct ms_err *err)
{
    char bar[BAR_W * BYTES + 1], late[MS_HUMAN_MAX], waits[MS_HUMAN_MAX];
    const struct viz_arrival *a = &c->list.p[i], *last = &c->list.p[c->list.n - 1];
    int64_t wait = last->start_ns - a->start_ns;
    bool straggler = a == last && a->start_ns > c->list.p[0].start_ns;
    put_bar(bar, c, a);
    ms_human_time(waits, wait);
    return tui_page_addf(
        p, straggler ? TUI_ERROR : TUI_TEXT, err, "rank %-5" PRId64 "%c%c%10s  %s  %s%s", a->rank,
        straggler ? '!' : ' ', i == 0 ? ' ' : '+',
        i == 0 ? "first" : ms_human_time(late, a->start_ns - c->list.p[0].start_ns), bar,
        straggler  ? "the others wait for it"
        : wait > 0 ? "waits "
                   : "",
        straggler || wait <= 0 ? "" : waits);
}

enum ms_rc tui_time_meet_page(struct tui_page *p, const struct viz_collective *c,
                              struct ms_err *err)
{
    char title[128], bytes[MS_HUMAN_MAX], length[MS_HUMAN_MAX];
    snprintf(title, sizeof title, "%s on %zu rank%s, %s%s%s", c->op, c->list.n,
             c->list.n == 1 ? "" : "s", ms_human_time(length, end_of(c) - c->list.p[0].start_ns),
             c->bytes > 0 ? ", " : "",
             c->bytes > 0 ? ms_human_bytes(bytes, (uint64_t)c->bytes) : "");
    enum ms_rc rc = tui_page_open(p, title, err);
    for (size_t i = 0; rc == MS_OK && i < c->list.n; i++)
        rc = add_line(p, c, i, err);
    return rc;
}

enum ms_rc tui_time_meet(struct tui_app *a, struct tui_time *t, struct ms_err *err)
{
    struct viz_collective c;
    if (!t->has_slice) {
        tui_say(a, "Go to a call first: . and , lead from slice to slice.");
        return MS_OK;
    }
    uint32_t process = t->tracks.lanes.p[t->slice_lane].process;
    enum ms_rc rc = viz_collective_read(&c, t->tl, process, t->slice.start_ns, err);
    if (rc == MS_E_NOTFOUND) {
        ms_err_clear(err);
        tui_say(a, "This slice is no collective of several ranks.");
        return MS_OK;
    }
    MS_TRY(rc);
    rc = tui_time_meet_page(&a->page, &c, err);
    viz_collective_free(&c);
    return rc;
}
