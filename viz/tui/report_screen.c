/* SPDX-License-Identifier: MIT
 *
 * report_screen: tables over the whole run: ranges, collectives, ranks, breakdown.
 *
 * The tables use totals computed by import (names, steps); large ones are read in idle time.
 */
#include "viz/model/sums.h"
#include "viz/model/tracks.h"
#include "viz/tui/app.h"
#include "viz/tui/time_draw.h"

#include "probe/base/clock.h"
#include "probe/base/csv.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { PARTS = 128, BAR_W = 24, RANK_BAR_W = 12 };
enum view { RANGES, COLLECTIVES, RANKS, BREAKDOWN, VIEWS, SUMS = BREAKDOWN };
static const char *const view_names[VIEWS] = {"Ranges", "Collectives", "Ranks", "Breakdown"};

struct share { /* time use of a process */
    size_t lane;
    bool measured;
    double part[4]; /* compute, communication, copy or waiting, idle */
};

struct report {
    enum view view;
    bool begun[VIEWS];
    struct viz_sums sums[SUMS];
    struct viz_tracks tracks; /* of the breakdown */
    bool known;               /* from recorded steps, not from names */
    MS_VEC(struct share) shares;
    size_t at[VIEWS], top[VIEWS];
};

static void close_report(void *self)
{
    struct report *r = self;
    for (int i = 0; i < SUMS; i++)
        viz_sums_free(&r->sums[i]);
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
    if (r->view == BREAKDOWN)
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
        take_use(e, viz_sums_use(&r->sums[RANKS], t->lanes.p[e->lane].process));
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
static enum ms_rc begin_view(struct tui_app *a, struct report *r, enum view view, int64_t end,
                             struct ms_err *err)
{
    static const enum viz_sums_of of[SUMS] = {
        [RANGES] = VIZ_SUM_NAMES, [COLLECTIVES] = VIZ_SUM_COLLECTIVES, [RANKS] = VIZ_SUM_RANKS};
    if (r->begun[view])
        return MS_OK;
    if (view == BREAKDOWN) { /* uses the totals of the ranks */
        MS_TRY(begin_view(a, r, RANKS, end, err));
        if (!r->sums[RANKS].done)
            MS_TRY(viz_sums_work(&r->sums[RANKS], end, err));
        if (!r->sums[RANKS].done)
            return MS_OK;
        for (size_t i = 0; i < r->sums[RANKS].rows.n; i++)
            r->known = r->known || r->sums[RANKS].rows.p[i].measured != 0;
    }
    r->begun[view] = true;
    if (view == BREAKDOWN)
        return list_processes(r, a->reader.tl, err);
    MS_TRY(viz_sums_begin(&r->sums[view], a->reader.tl, of[view], err));
    return viz_sums_work(&r->sums[view], end, err);
}

/* ---- drawing ----------------------------------------------------------------------- */

enum { NARROW = 72 }; /* below this width a row has only figure and name */

static void draw_name(struct tui_app *a, const struct report *r, int y, const struct viz_sum *e)
{
    char b[4][MS_HUMAN_MAX];
    struct tui_cells *g = &a->cells;
    int64_t most = r->sums[r->view].rows.p[0].total;
    struct ms_str name = mstx_tl_text(a->reader.tl, e->name);
    tui_put_right(g, y, 10, TUI_TEXT, ms_human_time(b[0], e->total));
    if (g->w < NARROW) {
        tui_put_name(g, y, 12, g->w - 13, TUI_TEXT, name);
        return;
    }
    tui_put_right(g, y, 21, TUI_TEXT, ms_human_count(b[1], (uint64_t)e->count));
    tui_put_right(g, y, 32, TUI_DIM, ms_human_time(b[2], viz_sum_mean(e)));
    tui_put_right(g, y, 43, TUI_DIM, ms_human_time(b[3], e->longest));
    int bar = g->w >= 100 ? BAR_W : 8;
    tui_bar(g, y, 45, bar, tui_time_token(e->domain, name, true),
            most > 0 ? (double)e->total / (double)most : 0);
    tui_put_name(g, y, 46 + bar, g->w - 47 - bar, TUI_TEXT, name);
}

/* Writes the rank that most often arrived last, and its share of the matched collectives. */
static void put_last(struct tui_cells *g, int y, int end, const struct viz_sum *e)
{
    char text[48] = "-";
    if (e->joins != 0)
        snprintf(text, sizeof text, "%" PRId64 " in %2.0f%%", e->last,
                 100.0 * (double)e->times / (double)e->joins);
    tui_put_right(g, y, end, e->joins != 0 ? TUI_TEXT : TUI_DIM, text);
}

static void draw_collective(struct tui_app *a, const struct report *r, int y,
                            const struct viz_sum *e)
{
    char b[MS_HUMAN_MAX];
    struct tui_cells *g = &a->cells;
    if (g->w < NARROW) {
        draw_name(a, r, y, e);
        return;
    }
    tui_put_right(g, y, 10, TUI_TEXT, ms_human_time(b, e->total));
    tui_put_right(g, y, 20, TUI_TEXT, ms_human_count(b, (uint64_t)e->count));
    tui_put_right(g, y, 30, TUI_DIM, ms_human_time(b, viz_sum_mean(e)));
    tui_put_right(g, y, 40, TUI_TEXT, e->bytes > 0 ? ms_human_bytes(b, (uint64_t)e->bytes) : "-");
    tui_put_right(g, y, 50, TUI_TEXT, e->joins != 0 ? ms_human_time(b, e->waited) : "-");
    put_last(g, y, 63, e);
    tui_put_name(g, y, 65, g->w - 66, TUI_TEXT, mstx_tl_text(a->reader.tl, e->name));
}

static int64_t share_of(int64_t ns, int64_t n)
{
    return n != 0 ? ns / n : 0;
}

/* Draws a rank. The bar shows the sort key: the time others waited for it, or the length of its
 * steps. */
static void draw_rank(struct tui_app *a, const struct report *r, int y, const struct viz_sum *e)
{
    char b[MS_HUMAN_MAX], rank[24];
    struct tui_cells *g = &a->cells;
    const struct mstx_process *p = mstx_tl_process(a->reader.tl, e->process);
    const struct viz_sum *worst = &r->sums[RANKS].rows.p[0];
    int64_t mean = viz_sum_mean(e), blame = share_of(e->blame, e->measured);
    int64_t most =
        worst->blame != 0 ? share_of(worst->blame, worst->measured) : viz_sum_mean(worst);
    int64_t here = worst->blame != 0 ? blame : mean;
    snprintf(rank, sizeof rank, p->rank >= 0 ? "%" PRId32 : "-", p->rank);
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
static void draw_breakdown(struct tui_app *a, const struct report *r, int y, const struct share *e)
{
    static const enum tui_token kinds[] = {TUI_COMPUTE, TUI_COMM, TUI_COPY, TUI_IDLE};
    static const enum tui_token uses[] = {TUI_COMPUTE, TUI_COMM, TUI_WARNING, TUI_IDLE};
    int label = a->cells.w < NARROW ? 14 : 24, x = label + 2, w = a->cells.w - x - 24;
    tui_put(&a->cells, y, 1, label, TUI_TEXT, r->tracks.lanes.p[e->lane].label);
    if (e->measured)
        draw_shares(a, y, x, w, e->part, r->known ? uses : kinds);
}

static void draw_heads(struct tui_app *a, const struct report *r)
{
    struct tui_cells *g = &a->cells;
    int x = 1;
    for (int i = 0; i < VIEWS; i++) {
        x = tui_puts(g, 1, x, g->w - x, i == (int)r->view ? TUI_ACCENT : TUI_DIM, view_names[i]);
        x += 2;
    }
    if (r->view == BREAKDOWN) {
        const char *const words[] = {"comp", "comm", r->known ? "wait" : "copy", "idle"};
        for (int i = 0; i < 4; i++)
            tui_put_right(g, 2, g->w - 18 + 6 * i, TUI_DIM, words[i]);
    } else if (r->view == RANKS) {
        tui_puts(g, 2, 0, g->w, TUI_DIM,
                 g->w < NARROW ? "  rank  mean step  computes others wait"
                               : "  rank  mean step  computes     waits  others wait"
                                 "               steps  host");
    } else if (r->view == COLLECTIVES && g->w >= NARROW)
        tui_puts(g, 2, 0, g->w, TUI_DIM,
                 "     total     calls      mean     bytes     waits    last rank  name");
    else
        tui_puts(g, 2, 0, g->w, TUI_DIM,
                 g->w < NARROW ? "     total  name"
                               : "     total      count       mean        max  name");
}

static void draw_empty(struct tui_app *a, const struct report *r)
{
    const struct viz_sums *s = &r->sums[r->view == BREAKDOWN ? RANKS : r->view];
    if (!s->done)
        tui_printf(&a->cells, 4, 1, a->cells.w - 2, TUI_DIM, "Adding up, %" PRIu64 " so far ...",
                   s->read);
    else
        tui_puts(&a->cells, 4, 1, a->cells.w - 2, TUI_DIM,
                 r->view == COLLECTIVES
                     ? "No marks in the domain 'communication': 'msprobe run' records collectives."
                     : "Nothing was recorded for this.");
}

static void draw_row(struct tui_app *a, const struct report *r, int y, size_t i)
{
    if (r->view == BREAKDOWN)
        draw_breakdown(a, r, y, &r->shares.p[i]);
    else if (r->view == RANKS)
        draw_rank(a, r, y, &r->sums[RANKS].rows.p[i]);
    else if (r->view == COLLECTIVES)
        draw_collective(a, r, y, &r->sums[COLLECTIVES].rows.p[i]);
    else
        draw_name(a, r, y, &r->sums[r->view].rows.p[i]);
}

static enum ms_rc draw_report(struct tui_app *a, void *self, struct ms_err *err)
{
    struct report *r = self;
    int rows = tui_body_rows(a) - 2;
    enum ms_rc rc = begin_view(a, r, r->view, ms_clock_ns() + TUI_WORK_NS, err);
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
    tui_printf(&a->cells, a->cells.h - 2, 1, a->cells.w - 2, TUI_DIM, "%zu of %zu",
               n > 0 ? *at + 1 : 0, n);
    return rc;
}

/* Measures the visible rows one after the other. */
static enum ms_rc measure_seen(struct tui_app *a, struct report *r, bool *more, struct ms_err *err)
{
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    size_t last = r->top[BREAKDOWN] + (size_t)tui_body_rows(a);
    for (size_t i = r->top[BREAKDOWN]; i < last && i < r->shares.n; i++) {
        if (r->shares.p[i].measured)
            continue;
        *more = ms_clock_ns() >= end;
        if (*more)
            return MS_OK;
        MS_TRY(measure(r, &r->shares.p[i], a->reader.tl, err));
    }
    return MS_OK;
}

static enum ms_rc work_on_report(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct report *r = self;
    if (r->view == BREAKDOWN && r->begun[BREAKDOWN])
        return measure_seen(a, r, more, err);
    if (r->view == BREAKDOWN) {
        *more = true;
        return begin_view(a, r, BREAKDOWN, ms_clock_ns() + TUI_WORK_NS, err);
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
        MS_TRY(begin_view(a, r, (enum view)i, end, err));
        if (!r->sums[i].done)
            MS_TRY(viz_sums_work(&r->sums[i], end, err));
        *more = !r->sums[i].done;
        if (*more)
            return MS_OK;
    }
    return MS_OK;
}

/* ---- keys -------------------------------------------------------------------------- */

/* Jumps to the timeline: to the rank of the row, or to the slices with its name. */
static enum ms_rc go_there(struct tui_app *a, const struct report *r, struct ms_err *err)
{
    struct viz_place p = viz_place_of(VIZ_TIMELINE);
    size_t at = r->at[r->view];
    if (at >= count_rows(r))
        return MS_OK;
    if (r->view == BREAKDOWN)
        p.rank =
            mstx_tl_process(a->reader.tl, r->tracks.lanes.p[r->shares.p[at].lane].process)->rank;
    else if (r->view == RANKS)
        p.rank = mstx_tl_process(a->reader.tl, r->sums[RANKS].rows.p[at].process)->rank;
    else
        p.query = mstx_tl_text(a->reader.tl, r->sums[r->view].rows.p[at].name);
    return tui_go_place(a, &p, err);
}

static enum ms_rc report_key(struct tui_app *a, void *self, int key, bool *taken,
                             struct ms_err *err)
{
    struct report *r = self;
    *taken = true;
    if (tui_move(key, &r->at[r->view], count_rows(r), (size_t)tui_body_rows(a)))
        return MS_OK;
    if (key == TUI_KEY_TAB || key == 'l' || key == TUI_KEY_RIGHT)
        r->view = (enum view)((r->view + 1) % VIEWS);
    else if (key == TUI_KEY_BACKTAB || key == 'h' || key == TUI_KEY_LEFT)
        r->view = (enum view)((r->view + VIEWS - 1) % VIEWS);
    else if (key == TUI_KEY_ENTER)
        return go_there(a, r, err);
    else
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
        r->view = RANKS;
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
        r->view == RANKS ? mstx_tl_process(a->reader.tl, e->process) : NULL;
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
                  e->joins != 0 ? e->last : -1, e->times);
}

static enum ms_rc export_report(struct tui_app *a, void *self, struct ms_buf *out,
                                struct ms_err *err)
{
    struct report *r = self;
    MS_TRY(begin_view(a, r, r->view, INT64_MAX, err));
    if (r->view == BREAKDOWN)
        return export_shares(a, r, out, err);
    struct viz_sums *s = &r->sums[r->view];
    MS_TRY(viz_sums_work(s, INT64_MAX, err));
    static const char *const heads[] = {
        [RANGES] = "name,domain,rank,count,total_ns,max_ns,dropped\n",
        [COLLECTIVES] = ("name,operation,count,total_ns,max_ns,bytes,collectives,waited_ns,"
                         "last_rank,times_last\n"),
        [RANKS] = "name,host,rank,count,total_ns,max_ns,dropped\n"};
    ms_buf_puts(out, heads[r->view]);
    for (size_t i = 0; i < s->rows.n; i++) {
        if (r->view == COLLECTIVES)
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
    {"Enter", "show it in the timeline", "in the timeline"},
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
};
