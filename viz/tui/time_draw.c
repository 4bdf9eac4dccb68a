/* SPDX-License-Identifier: MIT
 *
 * time_draw: draws lanes, slices and the ruler into cells.
 *
 * A slice of one cell or more is a block in reverse video with its name inside; shorter slices add
 * up to a bar whose height is the load of that cell. Heights and ends of blocks are a quarter, a
 * half or seven eighths of a cell: except for the quarter, these can be written in reverse video
 * like the block beside them. A gap within one cell is a thin line.
 */
#include "viz/tui/time_draw.h"

#include "viz/tui/time_meet.h"
#include "viz/tui/time_replay.h"

#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "viz/model/slice_kind.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

enum { NAME_LEAST = 6, RULER_W = 14, RULER_MAX = MS_HUMAN_MAX + 1 };
static const float CLOSE = 0.6F, FULL = 0.8F, MOST = 0.65F, GAP = 0.5F, HALF = 0.3F, NEAR = 1.4F;

/* ---- kinds of slices ------------------------------------------------------------------ */

enum tui_token tui_time_token(struct ms_str domain, struct ms_str name, bool stream)
{
    static const enum tui_token tokens[VIZ_SLICE_KINDS] = {[VIZ_SLICE_COMM] = TUI_COMM,
                                                           [VIZ_SLICE_COPY] = TUI_COPY,
                                                           [VIZ_SLICE_COMPUTE] = TUI_COMPUTE,
                                                           [VIZ_SLICE_MARK] = TUI_USER};
    const enum viz_slice_kind kind = viz_slice_kind_of(domain, name, stream);
    return kind == VIZ_SLICE_WAIT ? (stream ? TUI_COMPUTE : TUI_USER) : tokens[kind];
}

/* Returns the kind of a name, looked up once for each: there are far fewer names than slices. */
static enum tui_token kind_of(struct tui_time *t, const struct mstx_track *track, uint32_t name)
{
    bool stream = track->kind == MSTX_TRACK_STREAM;
    if (ms_str_is(track->domain, "communication"))
        return TUI_COMM;
    if (name >= t->kinds.n) {
        size_t from = t->kinds.n, want = (size_t)name + name / 2 + 64;
        if (!ms_vec_reserve(&t->kinds, want))
            return TUI_COMPUTE;
        memset(t->kinds.p + from, 0, (want - from) * sizeof *t->kinds.p);
        t->kinds.n = want;
    }
    if (t->kinds.p[name] == 0)
        t->kinds.p[name] = (uint8_t)tui_time_token(MS_STR(""), mstx_tl_text(t->tl, name), false);
    enum tui_token kind = (enum tui_token)t->kinds.p[name];
    return kind == TUI_USER && stream ? TUI_COMPUTE : kind;
}

/* ---- one row of slices ------------------------------------------------------------------ */

enum { KINDS = 5 };
static const enum tui_token kinds[KINDS] = {TUI_COMPUTE, TUI_COMM, TUI_COPY, TUI_USER, TUI_WARNING};

struct part {           /* events that overlap a cell */
    float share[KINDS]; /* of the cell's time, by kind; search hits are a kind of their own */
    float from;         /* start of the longest event within the cell */
    float longest;
    bool point; /* a mark without duration */
    uint8_t point_kind;
};

struct row {
    struct tui_time *t;
    struct tui_cells *g;
    int y, x, w;
    struct part *part;
    const struct mstx_track *track;
    int level; /* height of the previous cell */
};

static bool is_found(const struct tui_time *t, uint32_t name)
{
    return t->names != NULL && mstx_names_has(t->names, name);
}

static int kind_index(struct row *r, uint32_t name)
{
    enum tui_token token = is_found(r->t, name) ? TUI_WARNING : kind_of(r->t, r->track, name);
    int i = 0;
    while (i + 1 < KINDS && kinds[i] != token)
        i++;
    return i;
}

static void add_part(struct part *p, double from, double to, double dense, int kind)
{
    float covered = (float)((to - from) * dense);
    p->share[kind] += covered;
    if (covered > p->longest) {
        p->longest = covered;
        p->from = (float)from;
    }
}

static void add_event(struct row *r, const struct mstx_event *ev)
{
    double cell = (double)viz_window_length(&r->t->w) / r->w;
    double a = (double)(ev->start_ns - r->t->w.from) / cell;
    double b = a + (double)ev->dur_ns / cell;
    double dense = ev->count > 1 && ev->dur_ns > 0 && ev->size < (uint64_t)ev->dur_ns
                       ? (double)ev->size / (double)ev->dur_ns
                       : 1;
    if (b < 0 || a >= r->w)
        return;
    int kind = kind_index(r, ev->name);
    if (ev->dur_ns == 0 && a >= 0) {
        r->part[(int)a].point = true;
        r->part[(int)a].point_kind = (uint8_t)kind;
        return;
    }
    a = a > 0 ? a : 0;
    b = b < r->w ? b : r->w;
    for (int i = (int)a; i < r->w && i < b; i++)
        add_part(&r->part[i], a > i ? a - i : 0, b < i + 1 ? b - i : 1, dense, kind);
}

/* Returns the kind with the largest share of a cell; the previous cell's kind is kept when
 * nearly as large, which keeps dense rows calm. */
static int main_kind(const struct part *p, int before)
{
    int most = 0;
    for (int i = 1; i < KINDS; i++)
        most = p->share[i] > p->share[most] ? i : most;
    bool goes_on = before >= 0 && most != KINDS - 1 && p->share[before] > CLOSE * p->share[most];
    return goes_on ? before : most;
}

static float share_of(const struct part *p)
{
    float share = 0;
    for (int k = 0; k < KINDS; k++)
        share += p->share[k];
    return share;
}

/* Tells whether a slice begins here that fills the next cell; its block then begins with this
 * cell or the next. */
static bool begins_at(const struct row *r, int i, float share)
{
    const struct part *p = &r->part[i], *next = p + 1;
    return i + 1 < r->w && p->from > 0.01F && p->longest > 0.9F * share &&
           p->from + p->longest > 0.99F && share_of(next) > FULL && next->from <= 0.01F;
}

/* Returns the height of a cell; the previous height is kept when the load is nearly the same,
 * which keeps dense rows calm. */
static int level_of(float share, int before)
{
    int level = share > FULL ? 4 : share > MOST ? 3 : share > HALF ? 2 : 1;
    bool goes_on = before > 2 && level < 4 && fabsf(4 * share - (float)before) < NEAR;
    return goes_on ? before : level;
}

/* Tells whether the cell is a short gap between two full cells. */
static bool is_gap(const struct row *r, int i, float share)
{
    return share > GAP && i > 0 && i + 1 < r->w && share_of(&r->part[i - 1]) > FULL &&
           share_of(&r->part[i + 1]) > FULL;
}

static void put_level(const struct row *r, int x, enum tui_token token, int level, bool ends)
{
    static const uint32_t eighths[] = {0, 2, 4, 7};
    tui_char(r->g, r->y, x, token, ends ? 0x2590 - eighths[level] : 0x2580 + eighths[level]);
}

/* Draws a cell: full or empty where possible; the end of a slice, and slices shorter than a
 * cell, have a height. */
static int put_part(struct row *r, int i, int before)
{
    const struct part *p = &r->part[i];
    float share = share_of(p);
    int x = r->x + i, kind = main_kind(p, before);
    r->level = before >= 0 ? r->level : 0;
    if (begins_at(r, i, share))
        share = share > 0.5F ? 1 : -1;
    if (share <= 0) {
        if (p->point && share == 0)
            tui_char(r->g, r->y, x, TUI_WARNING, p->point_kind == KINDS - 1 ? '#' : '|');
        return -1;
    }
    bool ends = p->longest > 0.9F * share && p->from <= 0.01F;
    int level = level_of(share, ends ? 0 : r->level);
    bool thin = level < 4 && is_gap(r, i, share);
    r->level = thin ? 4 : level;
    if (r->level == 4) {
        tui_char(r->g, r->y, x, kinds[kind], thin ? '|' : ' ');
        tui_mark(r->g, r->y, x, 1, TUI_REVERSE, TUI_TOKENS);
    } else
        put_level(r, x, kinds[kind], level, ends);
    return kind;
}

/* Tells whether the slice that begins here looks the same as the cell before. */
static bool is_touching(const struct row *r, int from)
{
    const struct tui_cell *a = tui_at(r->g, r->y, r->x + from - 1);
    const struct tui_cell *b = tui_at(r->g, r->y, r->x + from);
    return from > 0 && a != NULL && b != NULL && a->ch == ' ' && tui_cell_eq(a, b) &&
           (a->flags & TUI_REVERSE) != 0;
}

/* Writes the name into a block wide enough, in the block's look. */
static void put_name(struct row *r, const struct mstx_event *ev)
{
    double cell = (double)viz_window_length(&r->t->w) / r->w;
    double a = ceil((double)(ev->start_ns - r->t->w.from) / cell);
    double b = floor((double)(ev->start_ns - r->t->w.from + ev->dur_ns) / cell);
    int from = a > 0 ? (int)a : 0, to = b < r->w ? (int)b : r->w;
    if (ev->count > 1 || to - from < 2)
        return;
    if (is_touching(r, from)) /* thin line between two slices; '|' has a third of a block's bytes */
        tui_at(r->g, r->y, r->x + from)->ch = '|';
    if (to - from <= NAME_LEAST)
        return;
    struct tui_cell *c = tui_at(r->g, r->y, r->x + from + 1);
    enum tui_token token = c != NULL ? (enum tui_token)c->token : TUI_TEXT;
    int end = tui_put_name(r->g, r->y, r->x + from + 1, to - from - 1, token,
                           mstx_tl_text(r->t->tl, ev->name));
    tui_mark(r->g, r->y, r->x + from + 1, end - r->x - from - 1, TUI_REVERSE, TUI_TOKENS);
}

/* ---- lanes --------------------------------------------------------------------------- */

static void put_values(struct row *r, const mstx_events *events)
{
    double most = 0;
    for (size_t i = 0; i < events->n; i++)
        most = fmax(most, fabs(mstx_event_value(&events->p[i])));
    for (size_t i = 0; most > 0 && i < events->n; i++) {
        int from = tui_time_column(r->t, events->p[i].start_ns);
        int to = i + 1 < events->n ? tui_time_column(r->t, events->p[i + 1].start_ns) : r->w - 1;
        int eighths = (int)lrint(fabs(mstx_event_value(&events->p[i])) / most * 8);
        for (int x = from > 0 ? from : 0; x <= to && x < r->w; x++)
            tui_char(r->g, r->y, r->x + x, TUI_COMPUTE,
                     (uint32_t)(eighths > 0 ? 0x2580 + eighths : '_'));
    }
}

static void draw_depth(struct row *r, const mstx_events *events, int depth, bool last)
{
    memset(r->part, 0, (size_t)r->w * sizeof *r->part);
    for (size_t i = 0; i < events->n; i++) {
        if (events->p[i].depth == depth || (last && events->p[i].depth > depth))
            add_event(r, &events->p[i]);
    }
    for (int i = 0, kind = -1; i < r->w; i++)
        kind = put_part(r, i, kind);
    for (size_t i = 0; i < events->n; i++) {
        if (events->p[i].depth == depth)
            put_name(r, &events->p[i]);
    }
}

static enum ms_rc draw_track(struct row *r, const struct viz_lane *l, int rows, int last_y,
                             struct ms_err *err)
{
    mstx_events events = {0};
    const struct tui_time *t = r->t;
    int64_t cell = viz_window_length(&t->w) / r->w;
    r->track = mstx_tl_track(t->tl, l->track);
    enum ms_rc rc = mstx_tl_view(t->tl, l->track, t->w.from, t->w.to, cell / 4, &events, err);
    if (rc == MS_OK && r->track->kind == MSTX_TRACK_COUNTER)
        put_values(r, &events);
    else {
        for (int d = 0; rc == MS_OK && d < rows && r->y < last_y; d++, r->y++)
            draw_depth(r, &events, d, d + 1 == rows);
    }
    ms_vec_free(&events);
    return rc;
}

static enum ms_rc draw_process(struct row *r, size_t lane, struct ms_err *err)
{
    struct viz_busy *busy = ms_calloc((size_t)r->w, sizeof *busy);
    if (busy == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = viz_tracks_busy(&r->t->tracks, r->t->tl, lane, r->t->w.from, r->t->w.to, busy,
                                    (size_t)r->w, err);
    for (int i = 0; rc == MS_OK && i < r->w; i++) {
        int eighths = (int)lrintf(busy[i].share * 8);
        if (busy[i].share > 0)
            tui_char(r->g, r->y, r->x + i,
                     tui_time_token(MS_STR(""), mstx_tl_text(r->t->tl, busy[i].name), true),
                     (uint32_t)(0x2580 + (eighths > 0 ? eighths : 1)));
    }
    ms_free(busy);
    return rc;
}

static bool is_straggler(const struct tui_app *a, const struct tui_time *t,
                         const struct viz_lane *l)
{
    int32_t rank = mstx_tl_process(t->tl, l->process)->rank;
    for (size_t i = 0; l->kind == VIZ_LANE_PROCESS && i < a->findings.list.n; i++) {
        const struct viz_finding *f = &a->findings.list.p[i];
        int64_t of;
        if (ms_str_is(f->kind, "straggler") && ms_str_i64(f->ranks, &of) && of == rank)
            return true;
    }
    return false;
}

/* Drops "thread " from a label when the column is narrow. */
static struct ms_str label_of(const struct viz_lane *l, int w)
{
    struct ms_str thread = MS_STR("thread ");
    bool cut = w < TUI_LABEL_W && ms_str_starts(l->label, thread);
    return cut ? ms_str_sub(l->label, thread.n, l->label.n) : l->label;
}

/* A lane of a meeting is called after what its rank did there. */
static void draw_arrival(struct tui_app *a, const struct tui_time *t, int y, int x,
                         const struct viz_arrival *arrival)
{
    char text[TUI_ARRIVAL_MAX];
    const bool is_culprit = tui_time_is_culprit(t, arrival);
    tui_time_arrival_text(t, arrival, t->label_w < TUI_LABEL_W, text);
    if (is_culprit)
        x = tui_puts(&a->cells, y, x, 2, TUI_ERROR, "! ");
    tui_puts(&a->cells, y, x, t->label_w - x - 1, is_culprit ? TUI_ERROR : TUI_WARNING, text);
}

static void draw_label(struct tui_app *a, struct tui_time *t, int y, const struct viz_lane *l)
{
    bool process = l->kind == VIZ_LANE_PROCESS, late = is_straggler(a, t, l);
    int x = process ? 0 : 2;
    if (process)
        x = tui_char(&a->cells, y, x, TUI_DIM, l->open ? 0x25be : 0x25b8) + 1;
    if (l->pinned)
        x = tui_char(&a->cells, y, x - 1, TUI_ACCENT, '*');
    if (late)
        x = tui_puts(&a->cells, y, x, 2, TUI_ERROR, "! ");
    if (!process && tui_time_arrival(t, l) != NULL)
        draw_arrival(a, t, y, x, tui_time_arrival(t, l));
    else
        tui_put(&a->cells, y, x, t->label_w - x - 1,
                late      ? TUI_ERROR
                : process ? TUI_TEXT
                          : TUI_DIM,
                label_of(l, t->label_w));
}

/* Draws the rows of replays below the slices of a lane, and notes the row of the critical path. */
static enum ms_rc draw_replays(struct tui_app *a, struct tui_time *t, const struct viz_lane *l,
                               int y, int last, struct ms_err *err)
{
    if (!tui_time_is_replayed(t, l))
        return MS_OK;
    if (t->has_path && y < last) {
        tui_puts(&a->cells, y, 4, t->label_w - 5, TUI_DIM, "critical path");
        t->path_row.p[l->track] = y;
    }
    y += t->has_path;
    return t->has_ideal && y < last ? tui_time_draw_ideal(a, t, l, y, err) : MS_OK;
}

static enum ms_rc begin_path(struct tui_time *t, struct ms_err *err)
{
    const size_t n = mstx_tl_track_count(t->tl);
    if (!ms_vec_reserve(&t->path_row, n + 1))
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        t->path_row.p[i] = -1;
    return MS_OK;
}

static enum ms_rc draw_lanes(struct tui_app *a, struct tui_time *t, int y, int last,
                             struct ms_err *err)
{
    struct part *part = ms_calloc((size_t)t->width + 1, sizeof *part);
    enum ms_rc rc = part != NULL ? MS_OK : ms_no_memory(err);
    for (size_t i = t->top; rc == MS_OK && i < t->seen.n && y < last; i++) {
        const struct viz_lane *l = &t->tracks.lanes.p[t->seen.p[i]];
        int rows = tui_time_depths(t, i);
        struct row r = {t, &a->cells, y, t->label_w, t->width, part, NULL, 0};
        draw_label(a, t, y, l);
        rc = l->kind == VIZ_LANE_TRACK ? draw_track(&r, l, rows, last, err)
             : l->open                 ? MS_OK
                                       : draw_process(&r, t->seen.p[i], err);
        if (rc == MS_OK)
            rc = draw_replays(a, t, l, y + rows, last, err);
        if (i == t->at)
            tui_mark(&a->cells, y, 0, t->label_w - 1, TUI_REVERSE, TUI_TOKENS);
        y += tui_time_rows(t, i);
    }
    ms_free(part);
    return rc;
}

/* ---- the whole run in one row ---------------------------------------------------------- */

/* Starts the map. A run may have thousands of tracks, so the map is filled in idle time, lane by
 * lane. */
static bool begin_map(struct tui_time *t)
{
    size_t n = (size_t)t->width;
    if (!ms_vec_reserve(&t->map, n))
        return false;
    memset(t->map.p, 0, n * sizeof *t->map.p);
    t->map.n = n;
    t->map_w = t->width;
    t->mapped = 0;
    return true;
}

static enum ms_rc add_process(struct tui_time *t, size_t lane, struct ms_err *err)
{
    struct viz_busy *part = ms_calloc(t->map.n, sizeof *part);
    if (part == NULL)
        return ms_no_memory(err);
    enum ms_rc rc =
        viz_tracks_busy(&t->tracks, t->tl, lane, t->w.first, t->w.last + 1, part, t->map.n, err);
    for (size_t i = 0; rc == MS_OK && i < t->map.n; i++)
        t->map.p[i].share += part[i].share;
    ms_free(part);
    return rc;
}

enum ms_rc tui_time_map_work(struct tui_time *t, bool *more, struct ms_err *err)
{
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    if (t->width < 1 || (t->map_w != t->width && !begin_map(t)))
        return MS_OK;
    for (; t->mapped < t->tracks.lanes.n && ms_clock_ns() < end; t->mapped++) {
        if (t->tracks.lanes.p[t->mapped].kind == VIZ_LANE_PROCESS)
            MS_TRY(add_process(t, t->mapped, err));
    }
    *more = *more || t->mapped < t->tracks.lanes.n;
    return MS_OK;
}

/* Column of a time in the map. */
static int place_of(const struct tui_time *t, int64_t ns)
{
    double share = (double)(ns - t->w.first) / (double)(t->w.last - t->w.first + 1);
    int x = (int)(share * t->map_w);
    return x < 0 ? 0 : x >= t->map_w ? t->map_w - 1 : x;
}

/* Draws the map in the row above the ruler, scaled to the busiest column; each call of
 * tui_time_map_work adds one more lane. */
static void draw_map(struct tui_app *a, struct tui_time *t, int y)
{
    float most = 0;
    tui_puts(&a->cells, y, 1, t->label_w - 2, TUI_DIM, "whole run");
    if (t->map_w != t->width || t->mapped < t->tracks.lanes.n)
        return; /* not yet complete */
    for (size_t i = 0; i < t->map.n; i++)
        most = t->map.p[i].share > most ? t->map.p[i].share : most;
    for (size_t i = 0; i < t->map.n && most > 0; i++) {
        int level = (int)(t->map.p[i].share / most * 8 + 0.5F);
        if (t->map.p[i].share > 0)
            tui_char(&a->cells, y, t->label_w + (int)i, TUI_DIM,
                     (uint32_t)(0x2580 + (level > 0 ? level : 1)));
    }
    int from = place_of(t, t->w.from), to = place_of(t, t->w.to);
    for (int i = from; i <= to; i++) {
        struct tui_cell *c = tui_at(&a->cells, y, t->label_w + i);
        if (c != NULL)
            c->token = TUI_ACCENT;
        if (c != NULL && c->ch == ' ')
            c->ch = a->cells.ascii ? '_' : 0x2581;
    }
}

/* ---- ruler, steps, cursor, selection ----------------------------------------------------- */

/* Writes a time of the ruler: from the start of the run, or from the base where that has too many digits. */
static const char *ruler_time(const struct tui_time *t, int64_t at, char text[RULER_MAX])
{
    char time[MS_HUMAN_MAX];
    ms_human_time(time, at - t->base);
    snprintf(text, RULER_MAX, "%s%s", t->has_base && at >= t->base ? "+" : "", time);
    return text;
}

/* Tells whether two ticks would have one label. */
static bool has_equal_ticks(const struct tui_time *t, int64_t from, int64_t step)
{
    char text[2][RULER_MAX];
    ruler_time(t, from, text[0]);
    for (int64_t at = from + step, i = 1; t->w.first + at <= t->w.to; at += step, i++) {
        ruler_time(t, at, text[i % 2]);
        if (strcmp(text[0], text[1]) == 0)
            return true;
    }
    return false;
}

/* Writes a time from the start of the run in seconds, with as many digits as a step needs. */
static void draw_base(struct tui_app *a, const struct tui_time *t, int y, int64_t step)
{
    enum { NS_DIGITS = 9, SECOND = 1000000000 };
    const uint64_t all = t->base < 0 ? 0 - (uint64_t)t->base : (uint64_t)t->base;
    uint64_t part = all % SECOND;
    int digits = NS_DIGITS;
    for (; digits > 1 && step % 10 == 0; digits--, step /= 10)
        part /= 10;
    tui_printf(&a->cells, y, 1, t->label_w - 2, TUI_DIM, "%s%s%" PRIu64 ".%0*" PRIu64 " s",
               t->label_w < TUI_LABEL_W ? "" : "from ", t->base < 0 ? "-" : "", all / SECOND,
               digits, part);
}

/* Draws the ticks. Where they are closer than the digits of their times tell, they count from the first one, whose
 * time stands before the row below. */
static void draw_ruler(struct tui_app *a, struct tui_time *t, int y)
{
    unsigned most = (unsigned)(t->width / RULER_W);
    int64_t step = viz_ruler_step(&t->w, most > 0 ? most : 1);
    int64_t from = (t->w.from - t->w.first) / step * step;
    char text[RULER_MAX], length[MS_HUMAN_MAX];
    tui_printf(&a->cells, y, 1, t->label_w - 2, TUI_DIM, "%s wide",
               ms_human_time(length, viz_window_length(&t->w)));
    t->base = 0;
    t->has_base = false;
    t->has_base = has_equal_ticks(t, from, step);
    if (t->has_base) {
        t->base = t->w.first + from < t->w.from ? from + step : from;
        draw_base(a, t, y + 1, step);
    }
    for (int64_t at = from; t->w.first + at <= t->w.to; at += step) {
        int x = tui_time_column(t, t->w.first + at);
        if (x < 0 || x >= t->width)
            continue;
        x = tui_char(&a->cells, y, t->label_w + x, TUI_DIM, 0x2502);
        tui_puts(&a->cells, y, x, RULER_W - 2, TUI_DIM, ruler_time(t, at, text));
    }
}

/* Draws the lines of steps on empty cells, unless they would fill the screen. A gap of one cell
 * between two slices stays empty, which is more legible. */
static void draw_steps(struct tui_app *a, struct tui_time *t, int y, int last)
{
    if (t->steps.n > (size_t)t->width / TUI_STEP_LEAST)
        return;
    for (size_t i = 0; i < t->steps.n; i++) {
        int x = tui_time_column(t, t->steps.p[i].start_ns);
        for (int row = y; x >= 0 && x < t->width && row < last; row++) {
            const struct tui_cell *c = tui_at(&a->cells, row, t->label_w + x);
            if (c != NULL && tui_is_free(c) &&
                (tui_is_free(c - 1) || tui_is_free(tui_at(&a->cells, row, t->label_w + x + 1))))
                tui_char(&a->cells, row, t->label_w + x, TUI_DIM, 0x250a);
        }
    }
}

/* Writes the cursor's time beside the cursor, so that a move changes adjacent cells, on the side
 * without selection. */
static void draw_now(struct tui_app *a, const struct tui_time *t, int y, int x)
{
    char now[RULER_MAX];
    int w = tui_text_width(ms_str_of(ruler_time(t, t->time - t->w.first, now)));
    bool fits_left = x > w, fits_right = x + 2 + w <= t->width;
    if (fits_left && (!fits_right || (t->marked && t->mark > t->time)))
        tui_put_right(&a->cells, y, t->label_w + x - 1, TUI_ACCENT, now);
    else if (fits_right)
        tui_puts(&a->cells, y, t->label_w + x + 2, w, TUI_ACCENT, now);
}

static void draw_cursor(struct tui_app *a, struct tui_time *t, int y)
{
    int x = tui_time_column(t, t->time);
    if (t->marked) {
        int from = tui_time_column(t, t->mark), to = x;
        if (from > to) {
            int swap = from;
            from = to;
            to = swap;
        }
        from = from < 0 ? 0 : from;
        to = to >= t->width ? t->width - 1 : to;
        tui_fill(&a->cells, y, t->label_w + from, to - from + 1, TUI_ACCENT, 0x2588);
    }
    if (x < 0 || x >= t->width)
        return;
    tui_char(&a->cells, y, t->label_w + x, TUI_ACCENT, 0x25be);
    draw_now(a, t, y, x);
}

/* Writes the selected slice; host and device side of one mark have the same link number. */
static void draw_slice(struct tui_app *a, struct tui_time *t, int y)
{
    char length[MS_HUMAN_MAX], at[MS_HUMAN_MAX];
    const struct mstx_event *e = &t->slice;
    struct ms_str name = mstx_tl_text(t->tl, e->name);
    int x = tui_put_name(&a->cells, y, 1, a->cells.w / 2, TUI_TEXT, name);
    tui_printf(&a->cells, y, x, a->cells.w - x - 1, TUI_DIM, "  %s at %s  %.*s%s",
               ms_human_time(length, e->dur_ns), ms_human_time(at, e->start_ns - t->w.first),
               MS_STR_ARG(mstx_tl_text(t->tl, e->args)),
               (e->flags & MSTX_EVF_UNFINISHED) != 0 ? "  never ended" : "");
}

static void draw_state(struct tui_app *a, struct tui_time *t)
{
    char length[MS_HUMAN_MAX];
    int y = a->cells.h - 2;
    if (t->marked)
        tui_printf(
            &a->cells, y, 1, a->cells.w - 2, TUI_ACCENT,
            "selected %s; i sums it up, Z zooms to it, Esc lets go",
            ms_human_time(length, t->time > t->mark ? t->time - t->mark : t->mark - t->time));
    else if (t->has_slice)
        draw_slice(a, t, y);
}

/* Scrolls so that all rows of the cursor's lane are visible. */
static void scroll(struct tui_time *t, int rows)
{
    int used = 0;
    if (t->at < t->top)
        t->top = t->at;
    for (size_t i = t->top; i <= t->at && i < t->seen.n; i++)
        used += tui_time_rows(t, i);
    while (used > rows && t->top < t->at)
        used -= tui_time_rows(t, t->top++);
}

/* Returns a quarter of the screen, within the limits of labels. */
static int label_width(int columns)
{
    enum { LABEL_MOST = 40 };
    int quarter = columns / 4;
    if (columns >= 3 * TUI_LABEL_W && quarter < TUI_LABEL_W)
        return TUI_LABEL_W;
    return quarter < LABEL_MOST ? quarter : LABEL_MOST;
}

enum ms_rc tui_time_draw(struct tui_app *a, void *self, struct ms_err *err)
{
    struct tui_time *t = self;
    int first = tui_time_top(a), last = a->cells.h - 2;
    t->label_w = label_width(a->cells.w);
    t->width = a->cells.w - t->label_w;
    scroll(t, last - first);
    if (first > 3)
        draw_map(a, t, 1);
    draw_ruler(a, t, first - 2);
    enum ms_rc rc = begin_path(t, err);
    if (rc == MS_OK)
        rc = draw_lanes(a, t, first, last, err);
    if (rc == MS_OK)
        rc = tui_time_steps(t, err);
    if (rc == MS_OK && t->has_path)
        rc = tui_time_draw_path(a, t, t->path_row.p, err);
    draw_steps(a, t, first, last);
    draw_cursor(a, t, first - 1);
    draw_state(a, t);
    return rc;
}
