/* SPDX-License-Identifier: MIT
 *
 * report_screen: tables over the whole run: ranges, collectives, ranks, breakdown.
 *
 * The tables use totals computed by import (names, steps); large ones are read in idle time.
 */
#include "viz/model/collectives.h"
#include "viz/model/sums.h"
#include "viz/model/tracks.h"
#include "viz/tui/app.h"
#include "viz/tui/report_rows.h"
#include "viz/tui/time_draw.h"

#include "probe/base/clock.h"
#include "probe/base/csv.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { PARTS = 128, BAR_W = 24, RANK_BAR_W = 12, SHARE_UNIT = 1000000000 };
enum { SUMS = TUI_BREAKDOWN }; /* the tables that viz_sums makes */
static const char *const view_names[TUI_TABLES] = {"Ranges", "Collectives", "Ranks", "Breakdown"};

struct share { /* time use of a process */
    size_t lane;
    bool measured;
    double part[4]; /* compute, communication, copy or waiting, idle */
};

struct report {
    enum tui_table view;
    bool begun[TUI_TABLES];
    struct tui_report_rows table[TUI_TABLES];
    char words[TUI_LINE_MAX]; /* what is searched for */
    size_t origin;            /* the row at which the search began */
    struct viz_sums sums[SUMS];
    struct viz_tracks tracks; /* of the breakdown */
    bool known;               /* from recorded steps, not from names */
    MS_VEC(struct share) shares;
    size_t at[TUI_TABLES], top[TUI_TABLES];
};

static void close_report(void *self)
{
    struct report *r = self;
    for (int i = 0; i < SUMS; i++)
        viz_sums_free(&r->sums[i]);
    for (int i = 0; i < TUI_TABLES; i++)
        tui_report_free(&r->table[i]);
    viz_tracks_free(&r->tracks);
    ms_vec_free(&r->shares);
    ms_free(r);
}

static void *open_report(struct tui_app *a, struct ms_err *err)
{
    struct report *r = ms_calloc(1, sizeof *r);
    (void)a;
    if (r == NULL)
        (void)ms_no_memory(err);
    return r;
}

/* ---- reading ----------------------------------------------------------------------- */

static size_t count_rows(const struct report *r)
{
    return r->table[r->view].rows.n;
}

static size_t count_entries(const struct report *r)
{
    if (r->view == TUI_BREAKDOWN)
        return r->shares.n;
    return r->sums[r->view].done ? r->sums[r->view].rows.n : 0;
}

static void take_use(struct share *e, const struct viz_sum *s)
{
    int64_t all = 0;
    for (int i = 0; s != NULL && i < VIZ_USES; i++)
        all += s->use[i];
    for (int i = 0; all > 0 && i < VIZ_USES; i++)
        e->part[i] = (double)s->use[i] / (double)all;
    e->measured = true;
}

/* Measures a process by sampling: each part of the run counts for the kind that runs longest in
 * it. */
static enum ms_rc measure(struct report *r, struct share *e, struct mstx_tl *tl, struct ms_err *err)
{
    struct viz_busy busy[PARTS];
    const struct viz_tracks *t = &r->tracks;
    int64_t first, last;
    if (e->measured)
        return MS_OK;
    if (r->known) {
        take_use(e, viz_sums_use(&r->sums[TUI_RANKS], t->lanes.p[e->lane].process));
        return MS_OK;
    }
    mstx_tl_span(tl, &first, &last);
    MS_TRY(viz_tracks_busy(t, tl, e->lane, first, last, busy, PARTS, err));
    for (int i = 0; i < PARTS; i++) {
        enum tui_token k = tui_time_token(MS_STR(""), mstx_tl_text(tl, busy[i].name), true);
        int part = k == TUI_COMM ? 1 : k == TUI_COPY ? 2 : 0;
        e->part[part] += (double)busy[i].share / PARTS;
    }
    e->part[3] = 1 - e->part[0] - e->part[1] - e->part[2];
    e->measured = true;
    return MS_OK;
}

/* ---- rows ------------------------------------------------------------------------------ */

static struct ms_str name_of_entry(const struct tui_app *a, const struct report *r, size_t i)
{
    if (r->view == TUI_BREAKDOWN)
        return r->tracks.lanes.p[r->shares.p[i].lane].label;
    const struct viz_sum *s = &r->sums[r->view].rows.p[i];
    return r->view == TUI_RANKS ? mstx_tl_process(a->reader.tl, s->process)->name
                                : mstx_tl_text(a->reader.tl, s->name);
}

static struct viz_sum sum_of_entry(const struct report *r, size_t i)
{
    struct viz_sum sum = {.process = (uint32_t)i};
    if (r->view != TUI_BREAKDOWN)
        return r->sums[r->view].rows.p[i];
    for (int k = 0; k < VIZ_USES; k++)
        sum.use[k] = (int64_t)(r->shares.p[i].part[k] * SHARE_UNIT);
    return sum;
}

/* An order or a fold needs the figures of all processes; as they came, a row is measured when it is seen. */
static enum ms_rc measure_all(struct tui_app *a, struct report *r, struct ms_err *err)
{
    const struct tui_report_rows *t = &r->table[TUI_BREAKDOWN];
    if (r->view != TUI_BREAKDOWN || (t->column == 0 && !t->is_folded))
        return MS_OK;
    for (size_t i = 0; i < r->shares.n; i++)
        MS_TRY(measure(r, &r->shares.p[i], a->reader.tl, err));
    return MS_OK;
}

/* Makes the rows of the table, once its figures are there. */
static enum ms_rc make_rows(struct tui_app *a, struct report *r, struct ms_err *err)
{
    struct tui_report_rows *t = &r->table[r->view];
    const size_t n = count_entries(r);
    if (n == 0 || t->is_made)
        return MS_OK;
    MS_TRY(measure_all(a, r, err));
    struct tui_report_entry *entry = ms_calloc(n, sizeof *entry);
    if (entry == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        entry[i] = (struct tui_report_entry){sum_of_entry(r, i), name_of_entry(a, r, i)};
    const enum ms_rc rc = tui_report_make(t, r->view, entry, n, err);
    ms_free(entry);
    return rc;
}

/* Lists the processes; a row is measured when first visible, since there may be thousands of
 * ranks. */
static enum ms_rc list_processes(struct report *r, struct mstx_tl *tl, struct ms_err *err)
{
    MS_TRY(viz_tracks_make(&r->tracks, tl, err));
    for (size_t i = 0; i < r->tracks.lanes.n; i++) {
        if (r->tracks.lanes.p[i].kind != VIZ_LANE_PROCESS)
            continue;
        struct share *e = ms_vec_push(&r->shares);
        if (e == NULL)
            return ms_no_memory(err);
        *e = (struct share){.lane = i};
    }
    return MS_OK;
}

/* Starts a table; short ones are complete at the first frame. */
static enum ms_rc begin_view(struct tui_app *a, struct report *r, enum tui_table view, int64_t end,
                             struct ms_err *err)
{
    static const enum viz_sums_of of[SUMS] = {[TUI_RANGES] = VIZ_SUM_NAMES,
                                              [TUI_COLLECTIVES] = VIZ_SUM_COLLECTIVES,
                                              [TUI_RANKS] = VIZ_SUM_RANKS};
    if (r->begun[view])
        return MS_OK;
    if (view == TUI_BREAKDOWN) { /* uses the totals of the ranks */
        MS_TRY(begin_view(a, r, TUI_RANKS, end, err));
        if (!r->sums[TUI_RANKS].done)
            MS_TRY(viz_sums_work(&r->sums[TUI_RANKS], end, err));
        if (!r->sums[TUI_RANKS].done)
            return MS_OK;
        for (size_t i = 0; i < r->sums[TUI_RANKS].rows.n; i++)
            r->known = r->known || r->sums[TUI_RANKS].rows.p[i].measured != 0;
    }
    r->begun[view] = true;
    if (view == TUI_BREAKDOWN)
        return list_processes(r, a->reader.tl, err);
    MS_TRY(viz_sums_begin(&r->sums[view], a->reader.tl, of[view], err));
    return viz_sums_work(&r->sums[view], end, err);
}

/* ---- drawing ----------------------------------------------------------------------- */

enum { NARROW = 72 }; /* below this width a row has only figure and name */

/* A row of several entries is called after the first of them. */
static void put_row_name(struct tui_app *a, int y, int x, int w, const struct tui_report_row *row)
{
    char more[24] = "";
    struct tui_cells *g = &a->cells;
    if (row->n > 1)
        snprintf(more, sizeof more, "+%" PRIu32 " ", row->n - 1);
    const int at = tui_puts(g, y, x, w, TUI_INFO, more);
    tui_put_name(g, y, at, w - (at - x), TUI_TEXT, mstx_tl_text(a->reader.tl, row->sum.name));
}

static void draw_name(struct tui_app *a, const struct report *r, int y,
                      const struct tui_report_row *row)
{
    char b[4][MS_HUMAN_MAX];
    struct tui_cells *g = &a->cells;
    const struct viz_sum *e = &row->sum;
    int64_t most = r->table[r->view].most;
    struct ms_str name = mstx_tl_text(a->reader.tl, e->name);
    tui_put_right(g, y, 10, TUI_TEXT, ms_human_time(b[0], e->total));
    if (g->w < NARROW) {
        put_row_name(a, y, 12, g->w - 13, row);
        return;
    }
    tui_put_right(g, y, 21, TUI_TEXT, ms_human_count(b[1], (uint64_t)e->count));
    tui_put_right(g, y, 32, TUI_DIM, ms_human_time(b[2], viz_sum_mean(e)));
    tui_put_right(g, y, 43, TUI_DIM, ms_human_time(b[3], e->longest));
    int bar = g->w >= 100 ? BAR_W : 8;
    tui_bar(g, y, 45, bar, tui_time_token(e->domain, name, true),
            most > 0 ? (double)e->total / (double)most : 0);
    put_row_name(a, y, 46 + bar, g->w - 47 - bar, row);
}

/* Writes the rank that most often arrived last, and its share of the matched collectives. */
static void put_last(struct tui_cells *g, int y, int end, const struct viz_sum *e)
{
    char text[48] = "-";
    if (e->times != 0)
        snprintf(text, sizeof text, "%" PRId64 " in %2.0f%%", e->last,
                 100.0 * (double)e->times / (double)e->joins);
    tui_put_right(g, y, end, e->times != 0 ? TUI_TEXT : TUI_DIM, text);
}

static void draw_collective(struct tui_app *a, const struct report *r, int y,
                            const struct tui_report_row *row)
{
    char b[MS_HUMAN_MAX];
    struct tui_cells *g = &a->cells;
    const struct viz_sum *e = &row->sum;
    if (g->w < NARROW) {
        draw_name(a, r, y, row);
        return;
    }
    tui_put_right(g, y, 10, TUI_TEXT, ms_human_time(b, e->total));
    tui_put_right(g, y, 20, TUI_TEXT, ms_human_count(b, (uint64_t)e->count));
    tui_put_right(g, y, 30, TUI_DIM, ms_human_time(b, viz_sum_mean(e)));
    tui_put_right(g, y, 40, TUI_TEXT, e->bytes > 0 ? ms_human_bytes(b, (uint64_t)e->bytes) : "-");
    tui_put_right(g, y, 50, TUI_TEXT, e->joins != 0 ? ms_human_time(b, e->waited) : "-");
    put_last(g, y, 63, e);
    put_row_name(a, y, 65, g->w - 66, row);
}

static int64_t share_of(int64_t ns, int64_t n)
{
    return n != 0 ? ns / n : 0;
}

/* Draws a rank. The bar shows the sort key: the time others waited for it, or the length of its
 * steps. */
static void draw_rank(struct tui_app *a, const struct report *r, int y,
                      const struct tui_report_row *row)
{
    const struct viz_sum *e = &row->sum;
    char b[MS_HUMAN_MAX], rank[24];
    struct tui_cells *g = &a->cells;
    const struct mstx_process *p = mstx_tl_process(a->reader.tl, e->process);
    const struct viz_sum *worst = &r->sums[TUI_RANKS].rows.p[0];
    int64_t mean = viz_sum_mean(e), blame = share_of(e->blame, e->measured);
    int64_t most =
        worst->blame != 0 ? share_of(worst->blame, worst->measured) : viz_sum_mean(worst);
    int64_t here = worst->blame != 0 ? blame : mean;
    snprintf(rank, sizeof rank,
             p->rank < 0  ? "-"
             : row->n > 1 ? "%" PRId32 "+%" PRIu32
                          : "%" PRId32,
             p->rank, row->n - 1);
    tui_put_right(g, y, 6, TUI_TEXT, rank);
    tui_put_right(g, y, 16, TUI_TEXT, ms_human_time(b, mean));
    tui_put_right(g, y, 26, TUI_TEXT,
                  e->measured != 0 ? ms_human_time(b, share_of(e->use[VIZ_COMPUTES], e->measured))
                                   : "-");
    tui_put_right(g, y, g->w < NARROW ? 38 : 48, TUI_TEXT,
                  e->measured != 0 ? ms_human_time(b, blame) : "-");
    if (g->w < NARROW)
        return;
    tui_put_right(g, y, 36, TUI_TEXT,
                  e->measured != 0 ? ms_human_time(b, share_of(e->use[VIZ_WAITS], e->measured))
                                   : "-");
    tui_bar(g, y, 50, RANK_BAR_W, worst->blame != 0 ? TUI_WARNING : TUI_COMPUTE,
            most > 0 ? (double)here / (double)most : 0);
    tui_put_right(g, y, 57 + RANK_BAR_W, TUI_DIM, ms_human_count(b, (uint64_t)e->count));
    int x = 59 + RANK_BAR_W;
    if (p->dropped != 0)
        x = tui_printf(g, y, x, g->w - x, TUI_WARNING, "%" PRIu64 " lost ", p->dropped);
    tui_put(g, y, x, g->w - x, TUI_DIM, p->host);
}

static void draw_shares(struct tui_app *a, int y, int x, int w, const double part[4],
                        const enum tui_token token[4])
{
    static const uint32_t fill[] = {0x2588, 0x2593, 0x2592, 0x2591};
    struct tui_cells *g = &a->cells;
    double at = 0;
    for (int i = 0; i < 4; i++) {
        int from = (int)(at * w + 0.5);
        at += part[i];
        int to = (int)(at * w + 0.5);
        tui_fill(g, y, x + from, to - from, token[i], g->ascii ? (uint32_t) "#=+."[i] : fill[i]);
    }
    for (int i = 0; i < 4; i++)
        tui_printf(g, y, g->w - 23 + 6 * i, 5, TUI_TEXT, "%4.0f%%", part[i] * 100);
}

/* Draws the time use: of steps, when communication was recorded, otherwise by the names of
 * ranges. */
static void draw_breakdown(struct tui_app *a, const struct report *r, int y,
                           const struct tui_report_row *row)
{
    const struct share *e = &r->shares.p[row->first];
    double part[VIZ_USES];
    static const enum tui_token kinds[] = {TUI_COMPUTE, TUI_COMM, TUI_COPY, TUI_IDLE};
    static const enum tui_token uses[] = {TUI_COMPUTE, TUI_COMM, TUI_WARNING, TUI_IDLE};
    int label = a->cells.w < NARROW ? 14 : 24, x = label + 2, w = a->cells.w - x - 24;
    char more[24] = "";
    if (row->n > 1)
        snprintf(more, sizeof more, "+%" PRIu32 " ", row->n - 1);
    const int at = tui_puts(&a->cells, y, 1, label, TUI_INFO, more);
    tui_put(&a->cells, y, at, label + 1 - at, TUI_TEXT, r->tracks.lanes.p[e->lane].label);
    for (int i = 0; i < VIZ_USES; i++)
        part[i] = row->n > 1 ? (double)row->sum.use[i] / SHARE_UNIT / row->n : e->part[i];
    if (e->measured)
        draw_shares(a, y, x, w, part, r->known ? uses : kinds);
}

static void draw_heads(struct tui_app *a, const struct report *r)
{
    struct tui_cells *g = &a->cells;
    int x = 1;
    for (int i = 0; i < TUI_TABLES; i++) {
        x = tui_puts(g, 1, x, g->w - x, i == (int)r->view ? TUI_ACCENT : TUI_DIM, view_names[i]);
        x += 2;
    }
    if (r->view == TUI_BREAKDOWN) {
        const char *const words[] = {"comp", "comm", r->known ? "wait" : "copy", "idle"};
        for (int i = 0; i < 4; i++)
            tui_put_right(g, 2, g->w - 18 + 6 * i, TUI_DIM, words[i]);
    } else if (r->view == TUI_RANKS) {
        tui_puts(g, 2, 0, g->w, TUI_DIM,
                 g->w < NARROW ? "  rank  mean step  computes others wait"
                               : "  rank  mean step  computes     waits  others wait"
                                 "               steps  host");
    } else if (r->view == TUI_COLLECTIVES && g->w >= NARROW)
        tui_puts(g, 2, 0, g->w, TUI_DIM,
                 "     total     calls      mean     bytes     waits    last rank  name");
    else
        tui_puts(g, 2, 0, g->w, TUI_DIM,
                 g->w < NARROW ? "     total  name"
                               : "     total      count       mean        max  name");
}

static void draw_empty(struct tui_app *a, const struct report *r)
{
    const struct viz_sums *s = &r->sums[r->view == TUI_BREAKDOWN ? TUI_RANKS : r->view];
    if (!s->done)
        tui_printf(&a->cells, 4, 1, a->cells.w - 2, TUI_DIM, "Adding up, %" PRIu64 " so far ...",
                   s->read);
    else
        tui_puts(&a->cells, 4, 1, a->cells.w - 2, TUI_DIM,
                 r->view == TUI_COLLECTIVES
                     ? "No communication was recorded: 'msprobe run' records collectives."
                     : "Nothing was recorded for this.");
}

static void draw_row(struct tui_app *a, const struct report *r, int y, size_t i)
{
    static void (*const draws[TUI_TABLES])(struct tui_app *, const struct report *, int,
                                           const struct tui_report_row *) = {
        [TUI_RANGES] = draw_name,
        [TUI_COLLECTIVES] = draw_collective,
        [TUI_RANKS] = draw_rank,
        [TUI_BREAKDOWN] = draw_breakdown};
    draws[r->view](a, r, y, &r->table[r->view].rows.p[i]);
}

/* The row below the table: which row, and how the table is ordered where that was asked for. */
static void draw_state(struct tui_app *a, const struct report *r)
{
    const struct tui_report_rows *t = &r->table[r->view];
    const size_t n = count_rows(r);
    struct tui_cells *g = &a->cells;
    int x = tui_printf(g, g->h - 2, 1, g->w - 2, TUI_DIM, "%zu of %zu",
                       n > 0 ? r->at[r->view] + 1 : 0, n);
    if (t->column != 0 || t->is_reversed)
        x = tui_printf(g, g->h - 2, x + 2, g->w - x - 3, TUI_INFO, "by %s%s",
                       tui_report_columns[r->view][t->column],
                       t->is_reversed ? ", turned round" : "");
    if (t->is_folded)
        x = tui_puts(g, g->h - 2, x + 2, g->w - x - 3, TUI_INFO, "alike ones are one row");
    if (r->words[0] != '\0')
        tui_printf(g, g->h - 2, x + 2, g->w - x - 3, TUI_INFO, "/%s", r->words);
}

static enum ms_rc draw_report(struct tui_app *a, void *self, struct ms_err *err)
{
    struct report *r = self;
    int rows = tui_body_rows(a) - 2;
    enum ms_rc rc = begin_view(a, r, r->view, ms_clock_ns() + TUI_WORK_NS, err);
    if (rc == MS_OK)
        rc = make_rows(a, r, err);
    size_t n = count_rows(r), *at = &r->at[r->view], *top = &r->top[r->view];
    draw_heads(a, r);
    if (n == 0)
        draw_empty(a, r);
    *top = tui_scroll(*top, *at, (size_t)(rows > 0 ? rows : 1));
    for (int i = 0; i < rows && *top + (size_t)i < n; i++) {
        draw_row(a, r, 3 + i, *top + (size_t)i);
        if (*top + (size_t)i == *at)
            tui_mark(&a->cells, 3 + i, 0, a->cells.w, TUI_REVERSE, TUI_TEXT);
    }
    draw_state(a, r);
    return rc;
}

/* Measures the visible rows one after the other. */
static enum ms_rc measure_seen(struct tui_app *a, struct report *r, bool *more, struct ms_err *err)
{
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    size_t last = r->top[TUI_BREAKDOWN] + (size_t)tui_body_rows(a);
    for (size_t i = r->top[TUI_BREAKDOWN]; i < last && i < count_rows(r); i++) {
        struct share *e = &r->shares.p[r->table[TUI_BREAKDOWN].rows.p[i].first];
        if (e->measured)
            continue;
        *more = ms_clock_ns() >= end;
        if (*more)
            return MS_OK;
        MS_TRY(measure(r, e, a->reader.tl, err));
    }
    return MS_OK;
}

static enum ms_rc work_on_report(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct report *r = self;
    if (r->view == TUI_BREAKDOWN && r->begun[TUI_BREAKDOWN])
        return measure_seen(a, r, more, err);
    if (r->view == TUI_BREAKDOWN) {
        *more = true;
        return begin_view(a, r, TUI_BREAKDOWN, ms_clock_ns() + TUI_WORK_NS, err);
    }
    if (!r->begun[r->view] || r->sums[r->view].done)
        return MS_OK;
    MS_TRY(viz_sums_work(&r->sums[r->view], ms_clock_ns() + TUI_WORK_NS, err));
    *more = !r->sums[r->view].done;
    return MS_OK;
}

static enum ms_rc load_ahead(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct report *r = self;
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    for (int i = 0; i < SUMS; i++) {
        MS_TRY(begin_view(a, r, (enum tui_table)i, end, err));
        if (!r->sums[i].done)
            MS_TRY(viz_sums_work(&r->sums[i], end, err));
        *more = !r->sums[i].done;
        if (*more)
            return MS_OK;
    }
    return MS_OK;
}

/* ---- keys -------------------------------------------------------------------------- */

/* The longest call of a row: of the row itself, or of the collective of that name, once those are added up. */
static struct viz_longest longest_call(const struct report *r, const struct tui_report_row *row)
{
    const struct viz_sums *calls = &r->sums[TUI_COLLECTIVES];
    if (r->view == TUI_RANGES && ms_str_is(row->sum.domain, "communication")) {
        for (size_t i = 0; calls->done && i < calls->rows.n; i++) {
            if (calls->rows.p[i].name == row->sum.name)
                return calls->rows.p[i].call;
        }
    }
    return row->sum.call;
}

/* Writes the link to a call; what has no slice in the timeline leaves it as it is. */
static enum ms_rc link_call(struct tui_app *a, const struct viz_longest *longest,
                            struct viz_place *p, struct ms_err *err)
{
    struct viz_call call;
    if (longest->length_ns == 0)
        return MS_OK;
    const enum ms_rc rc =
        viz_call_find(&call, a->reader.tl, longest->process, longest->start_ns, err);
    if (rc == MS_E_NOTFOUND) {
        ms_err_clear(err);
        return MS_OK;
    }
    MS_TRY(rc);
    p->track = mstx_tl_track(a->reader.tl, call.track)->id;
    p->call = longest->start_ns;
    return MS_OK;
}

/* Jumps to the timeline: to the rank of the row, to the longest call of a collective, or to the slices with the
 * name of the row. */
static enum ms_rc go_there(struct tui_app *a, const struct report *r, struct ms_err *err)
{
    struct viz_place p = viz_place_of(VIZ_TIMELINE);
    size_t at = r->at[r->view];
    if (at >= count_rows(r))
        return MS_OK;
    const struct tui_report_row *row = &r->table[r->view].rows.p[at];
    if (r->view == TUI_BREAKDOWN)
        p.rank =
            mstx_tl_process(a->reader.tl, r->tracks.lanes.p[r->shares.p[row->first].lane].process)
                ->rank;
    else if (r->view == TUI_RANKS)
        p.rank = mstx_tl_process(a->reader.tl, row->sum.process)->rank;
    else {
        const struct viz_longest longest = longest_call(r, row);
        p.query = mstx_tl_text(a->reader.tl, row->sum.name);
        MS_TRY(link_call(a, &longest, &p, err));
    }
    return tui_go_place(a, &p, err);
}

/* ---- search ----------------------------------------------------------------------------- */

/* A rank is found by its number, its host and its name. */
static bool has_words(const struct tui_app *a, const struct report *r,
                      const struct tui_report_row *row)
{
    const struct ms_str words = ms_str_of(r->words);
    if (ms_str_has_folded(name_of_entry(a, r, row->first), words))
        return true;
    if (r->view != TUI_RANKS)
        return false;
    char rank[24];
    const struct mstx_process *p = mstx_tl_process(a->reader.tl, row->sum.process);
    snprintf(rank, sizeof rank, "%" PRId32, p->rank);
    return ms_str_is(words, rank) || ms_str_has_folded(p->host, words);
}

/* Goes to the next row, or the one before, that holds the words, from the row `from` on and round the end. */
static bool go_to_hit(const struct tui_app *a, struct report *r, size_t from, bool is_back)
{
    const size_t n = count_rows(r);
    for (size_t k = 0; k < n; k++) {
        const size_t at = is_back ? (from + n - k) % n : (from + k) % n;
        if (has_words(a, r, &r->table[r->view].rows.p[at])) {
            r->at[r->view] = at;
            return true;
        }
    }
    return false;
}

static void count_hits(struct tui_app *a, const struct report *r)
{
    size_t hits = 0, before = 0;
    for (size_t i = 0; i < count_rows(r); i++) {
        const bool is_hit = has_words(a, r, &r->table[r->view].rows.p[i]);
        hits += is_hit;
        before += is_hit && i <= r->at[r->view];
    }
    if (hits == 0)
        tui_say(a, "no row holds '%s'", r->words);
    else
        tui_say(a, "hit %zu of %zu; n and N go to the next and the one before", before, hits);
}

static enum ms_rc report_line(struct tui_app *a, void *self, char kind, struct ms_str text,
                              bool done, struct ms_err *err)
{
    struct report *r = self;
    (void)kind;
    (void)err;
    snprintf(r->words, sizeof r->words, "%.*s", MS_STR_ARG(text));
    r->at[r->view] = r->origin;
    if (r->words[0] == '\0')
        return MS_OK;
    (void)go_to_hit(a, r, r->origin, false);
    if (done)
        count_hits(a, r);
    return MS_OK;
}

static void go_on(struct tui_app *a, struct report *r, bool is_back)
{
    const size_t n = count_rows(r), at = r->at[r->view];
    if (r->words[0] == '\0') {
        tui_say(a, "nothing is searched for; / begins");
        return;
    }
    if (n != 0)
        (void)go_to_hit(a, r, is_back ? (at + n - 1) % n : (at + 1) % n, is_back);
    count_hits(a, r);
}

/* ---- order -------------------------------------------------------------------------------- */

/* Another order begins at its first row. */
static void change_order(struct report *r, int key)
{
    struct tui_report_rows *t = &r->table[r->view];
    if (key == 's')
        tui_report_sort_next(t, r->view);
    else if (key == 'I')
        t->is_reversed = !t->is_reversed;
    else
        t->is_folded = !t->is_folded;
    t->is_made = false;
    t->rows.n = 0;
    r->at[r->view] = r->top[r->view] = 0;
}

static enum ms_rc report_key(struct tui_app *a, void *self, int key, bool *taken,
                             struct ms_err *err)
{
    struct report *r = self;
    *taken = true;
    if (tui_move(key, &r->at[r->view], count_rows(r), (size_t)tui_body_rows(a)))
        return MS_OK;
    if (key == TUI_KEY_TAB || key == 'l' || key == TUI_KEY_RIGHT)
        r->view = (enum tui_table)((r->view + 1) % TUI_TABLES);
    else if (key == TUI_KEY_BACKTAB || key == 'h' || key == TUI_KEY_LEFT)
        r->view = (enum tui_table)((r->view + TUI_TABLES - 1) % TUI_TABLES);
    else if (key == TUI_KEY_ENTER)
        return go_there(a, r, err);
    else if (key == 's' || key == 'I' || key == 'c')
        change_order(r, key);
    else if (key == 'n' || key == 'N')
        go_on(a, r, key == 'N');
    else if (key == '/') {
        r->origin = r->at[r->view];
        tui_ask(a, '/');
    } else
        *taken = false;
    return MS_OK;
}

static enum ms_rc go_to_report(struct tui_app *a, void *self, const struct viz_place *p,
                               struct ms_err *err)
{
    struct report *r = self;
    (void)a;
    (void)err;
    if (p->rank >= 0)
        r->view = TUI_RANKS;
    return MS_OK;
}

static enum ms_rc export_shares(struct tui_app *a, struct report *r, struct ms_buf *out,
                                struct ms_err *err)
{
    ms_buf_printf(out, "name,rank,compute,communication,%s,idle\n", r->known ? "waiting" : "copy");
    for (size_t i = 0; i < r->shares.n; i++) {
        struct share *e = &r->shares.p[i];
        const struct viz_lane *l = &r->tracks.lanes.p[e->lane];
        MS_TRY(measure(r, e, a->reader.tl, err));
        ms_csv_put(out, l->label, MS_CSV_FOREIGN);
        ms_buf_printf(out, ",%" PRId32 ",%.6g,%.6g,%.6g,%.6g\n",
                      mstx_tl_process(a->reader.tl, l->process)->rank, e->part[0], e->part[1],
                      e->part[2], e->part[3]);
    }
    return MS_OK;
}

static void export_sum(struct tui_app *a, const struct report *r, const struct viz_sum *e,
                       struct ms_buf *out)
{
    const struct mstx_process *p =
        r->view == TUI_RANKS ? mstx_tl_process(a->reader.tl, e->process) : NULL;
    ms_csv_put(out, p != NULL ? p->name : mstx_tl_text(a->reader.tl, e->name), MS_CSV_FOREIGN);
    ms_buf_putc(out, ',');
    ms_csv_put(out, p != NULL ? p->host : e->domain, MS_CSV_FOREIGN);
    ms_buf_printf(out, ",%" PRId32 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu64 "\n",
                  p != NULL ? p->rank : -1, e->count, e->total, e->longest,
                  p != NULL ? p->dropped : 0);
}

static void export_collective(struct tui_app *a, const struct viz_sum *e, struct ms_buf *out)
{
    ms_csv_put(out, mstx_tl_text(a->reader.tl, e->name), MS_CSV_FOREIGN);
    ms_buf_putc(out, ',');
    ms_csv_put(out, e->op, MS_CSV_FOREIGN);
    ms_buf_printf(out,
                  ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                  ",%" PRId64 ",%" PRId64 "\n",
                  e->count, e->total, e->longest, e->bytes, e->joins, e->waited,
                  e->times != 0 ? e->last : -1, e->times);
}

static enum ms_rc export_report(struct tui_app *a, void *self, struct ms_buf *out,
                                struct ms_err *err)
{
    struct report *r = self;
    MS_TRY(begin_view(a, r, r->view, INT64_MAX, err));
    if (r->view == TUI_BREAKDOWN)
        return export_shares(a, r, out, err);
    struct viz_sums *s = &r->sums[r->view];
    MS_TRY(viz_sums_work(s, INT64_MAX, err));
    static const char *const heads[] = {
        [TUI_RANGES] = "name,domain,rank,count,total_ns,max_ns,dropped\n",
        [TUI_COLLECTIVES] = ("name,operation,count,total_ns,max_ns,bytes,collectives,waited_ns,"
                             "last_rank,times_last\n"),
        [TUI_RANKS] = "name,host,rank,count,total_ns,max_ns,dropped\n"};
    ms_buf_puts(out, heads[r->view]);
    for (size_t i = 0; i < s->rows.n; i++) {
        if (r->view == TUI_COLLECTIVES)
            export_collective(a, &s->rows.p[i], out);
        else
            export_sum(a, r, &s->rows.p[i], out);
    }
    return MS_OK;
}

static bool click(struct tui_app *a, void *self, int y, int x, bool drag)
{
    struct report *r = self;
    (void)a;
    (void)x;
    (void)drag;
    return tui_click_row(y, 3, r->top[r->view], count_rows(r), &r->at[r->view]);
}

static const struct tui_hint hints[] = {
    {"tables", NULL, NULL},
    {"↑↓", "move", "move"},
    {"Tab ←→", "the next, previous table", "table"},
    {"Enter", "show it in the timeline; of a collective the longest call", "in the timeline"},
    {"s I", "sort by the next column; turn the order round", "sort"},
    {"c", "fold what is alike into one row, or unfold it", "fold"},
    {"/ n N", "search names, next, previous hit", "search"},
    {NULL, NULL, NULL},
};

const struct tui_screen tui_report_screen = {
    .name = "Report",
    .hints = hints,
    .open = open_report,
    .close = close_report,
    .draw = draw_report,
    .click = click,
    .key = report_key,
    .show_place = go_to_report,
    .work = work_on_report,
    .ahead = load_ahead,
    .export = export_report,
    .line = report_line,
};
