/* SPDX-License-Identifier: MIT
 *
 * tui_report: tables over the whole run: ranges, collectives, ranks, breakdown.
 *
 * They come from what the import has added up (names, steps), so that a run of any
 * size is answered at once.
 */
#include "viz/model/tracks.h"
#include "viz/tui_app.h"
#include "viz/tui_time.h"

#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { ROWS_MOST = 2000, PARTS = 128, TEXT_MOST = 1 << 28, BAR_W = 24 };
enum view { RANGES, COLLECTIVES, RANKS, BREAKDOWN, VIEWS };
static const char *const view_names[VIEWS] = {"Ranges", "Collectives", "Ranks", "Breakdown"};

struct entry {
    struct ms_str name, domain;
    int64_t rank, count, total, most, least, dropped; /* breakdown: count 1 once measured, most the
                                                         index of its lane */
    double share[4];                                  /* compute, communication, copy, nothing */
};

struct report {
    enum view view;
    bool read[VIEWS];
    MS_VEC(struct entry) rows[VIEWS];
    struct ms_arena *arena;
    struct viz_tracks tracks; /* of the breakdown */
    size_t at[VIEWS], top[VIEWS];
};

static void close_report(void *self)
{
    struct report *r = self;
    for (int i = 0; i < VIEWS; i++)
        ms_vec_free(&r->rows[i]);
    viz_tracks_free(&r->tracks);
    ms_arena_free(r->arena);
    ms_free(r);
}

static void *open_report(struct tui_app *a, struct ms_err *err)
{
    struct report *r = ms_calloc(1, sizeof *r);
    struct ms_arena *arena = r != NULL ? ms_arena_new(TEXT_MOST) : NULL;
    (void)a;
    if (arena == NULL) {
        ms_free(r);
        (void)ms_no_memory(err);
        return NULL;
    }
    r->arena = arena;
    return r;
}

/* ---- reading ----------------------------------------------------------------------- */

#define NAMES_SQL(which)                                                                           \
    "SELECT s.value, t.domain, -1, sum(n.events), sum(n.total_ns), max(n.max_ns), min(n.min_ns),"  \
    " 0 FROM names n JOIN tracks t ON t.id = n.track JOIN strings s ON s.id = n.name"              \
    " WHERE t.kind IN (0, 3)" which " GROUP BY n.name, t.domain"                                   \
    " ORDER BY 5 DESC, 4 DESC, 1 LIMIT 2000"

static const char *const sql[VIEWS] = {
    [RANGES] = NAMES_SQL(""),
    [COLLECTIVES] = NAMES_SQL(" AND t.domain = 'communication'"),
    [RANKS] = "SELECT p.name, p.host, ifnull(p.rank, -1), ifnull(s.n, 0), ifnull(s.total, 0),"
              " ifnull(s.most, 0), ifnull(s.least, 0), p.dropped FROM processes p"
              " LEFT JOIN (SELECT process, count(*) AS n, sum(end_ns - start_ns) AS total,"
              " max(end_ns - start_ns) AS most, min(end_ns - start_ns) AS least"
              " FROM steps GROUP BY process) s ON s.process = p.id ORDER BY 3",
};

static enum ms_rc take_row(struct report *r, enum view v, struct ms_stmt *st, struct ms_err *err)
{
    struct entry *e = ms_vec_push(&r->rows[v]);
    if (e == NULL)
        return ms_no_memory(err);
    *e = (struct entry){.name = ms_arena_str(r->arena, ms_stmt_get_str(st, 0)),
                        .domain = ms_arena_str(r->arena, ms_stmt_get_str(st, 1)),
                        .rank = ms_stmt_get_i64(st, 2),
                        .count = ms_stmt_get_i64(st, 3),
                        .total = ms_stmt_get_i64(st, 4),
                        .most = ms_stmt_get_i64(st, 5),
                        .least = ms_stmt_get_i64(st, 6),
                        .dropped = ms_stmt_get_i64(st, 7)};
    return e->name.p != NULL && e->domain.p != NULL ? MS_OK : ms_arena_fail(r->arena, err);
}

static enum ms_rc read_rows(struct report *r, enum view v, struct mstx_tl *tl, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more = true;
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, sql[v], err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    while (rc == MS_OK && more && r->rows[v].n < ROWS_MOST) {
        rc = take_row(r, v, st, err);
        if (rc == MS_OK)
            rc = ms_stmt_step(st, &more, err);
    }
    ms_stmt_free(st);
    return rc;
}

/* The slowest by mean first. */
static void sort_ranks(struct report *r)
{
    for (size_t i = 1; i < r->rows[RANKS].n; i++) {
        struct entry x = r->rows[RANKS].p[i];
        size_t at = i;
        double mean = x.count != 0 ? (double)x.total / (double)x.count : 0;
        for (; at > 0; at--) {
            const struct entry *e = &r->rows[RANKS].p[at - 1];
            if ((e->count != 0 ? (double)e->total / (double)e->count : 0) >= mean)
                break;
            r->rows[RANKS].p[at] = *e;
        }
        r->rows[RANKS].p[at] = x;
    }
}

/* Each part of the run counts for the kind of what runs longest in it. */
static enum ms_rc fill_breakdown(struct entry *e, struct mstx_tl *tl, const struct viz_tracks *t,
                                 struct ms_err *err)
{
    struct viz_busy busy[PARTS];
    int64_t first, last;
    if (e->count != 0)
        return MS_OK;
    mstx_tl_span(tl, &first, &last);
    MS_TRY(viz_tracks_busy(t, tl, (size_t)e->most, first, last, busy, PARTS, err));
    for (int i = 0; i < PARTS; i++) {
        enum tui_token k = tui_time_token(MS_STR(""), mstx_tl_text(tl, busy[i].name), true);
        int part = k == TUI_COMM ? 1 : k == TUI_COPY ? 2 : 0;
        e->share[part] += (double)busy[i].share / PARTS;
    }
    e->share[3] = 1 - e->share[0] - e->share[1] - e->share[2];
    e->count = 1;
    return MS_OK;
}

/* Rows are measured when they are first seen: there may be thousands of ranks. */
static enum ms_rc read_breakdown(struct report *r, struct mstx_tl *tl, struct ms_err *err)
{
    MS_TRY(viz_tracks_make(&r->tracks, tl, err));
    for (size_t i = 0; i < r->tracks.lanes.n; i++) {
        const struct viz_lane *l = &r->tracks.lanes.p[i];
        if (l->kind != VIZ_LANE_PROCESS)
            continue;
        struct entry *e = ms_vec_push(&r->rows[BREAKDOWN]);
        if (e == NULL)
            return ms_no_memory(err);
        *e = (struct entry){.name = l->label,
                            .domain = MS_STR(""),
                            .rank = mstx_tl_process(tl, l->process)->rank,
                            .most = (int64_t)i};
    }
    return MS_OK;
}

static enum ms_rc need_view(struct tui_app *a, struct report *r, struct ms_err *err)
{
    if (r->read[r->view])
        return MS_OK;
    r->read[r->view] = true;
    if (r->view == BREAKDOWN)
        return read_breakdown(r, a->reader.tl, err);
    MS_TRY(read_rows(r, r->view, a->reader.tl, err));
    if (r->view == RANKS)
        sort_ranks(r);
    return MS_OK;
}

/* ---- drawing ----------------------------------------------------------------------- */

static void draw_name(struct tui_app *a, const struct report *r, int y, const struct entry *e)
{
    char b[4][MS_HUMAN_MAX];
    struct tui_cells *g = &a->cells;
    int64_t most = r->rows[r->view].p[0].total;
    tui_put_right(g, y, 10, TUI_TEXT, ms_human_time(b[0], e->total));
    tui_put_right(g, y, 21, TUI_TEXT, ms_human_count(b[1], (uint64_t)e->count));
    tui_put_right(g, y, 32, TUI_DIM, ms_human_time(b[2], e->count != 0 ? e->total / e->count : 0));
    tui_put_right(g, y, 43, TUI_DIM, ms_human_time(b[3], e->most));
    int bar = g->w >= 100 ? BAR_W : 8;
    tui_bar(g, y, 45, bar, tui_time_token(e->domain, e->name, true),
            most > 0 ? (double)e->total / (double)most : 0);
    tui_put_name(g, y, 46 + bar, g->w - 47 - bar, TUI_TEXT, e->name);
}

static void draw_rank(struct tui_app *a, const struct report *r, int y, const struct entry *e)
{
    char b[3][MS_HUMAN_MAX], rank[24];
    struct tui_cells *g = &a->cells;
    double mean = e->count != 0 ? (double)e->total / (double)e->count : 0;
    const struct entry *slowest = &r->rows[RANKS].p[0];
    double worst = slowest->count != 0 ? (double)slowest->total / (double)slowest->count : 0;
    snprintf(rank, sizeof rank, e->rank >= 0 ? "%" PRId64 : "-", e->rank);
    tui_put_right(g, y, 6, TUI_TEXT, rank);
    tui_put_right(g, y, 14, TUI_TEXT, ms_human_count(b[0], (uint64_t)e->count));
    tui_put_right(g, y, 25, TUI_TEXT, ms_human_time(b[1], (int64_t)mean));
    tui_put_right(g, y, 36, TUI_DIM, ms_human_time(b[2], e->most));
    tui_bar(g, y, 38, BAR_W, TUI_COMPUTE, worst > 0 ? mean / worst : 0);
    int x = tui_put(g, y, 40 + BAR_W, g->w - 40 - BAR_W, TUI_DIM, e->domain);
    if (e->dropped != 0)
        tui_printf(g, y, x + 1, g->w - x - 1, TUI_WARNING, "%" PRId64 " lost", e->dropped);
}

static void draw_breakdown(struct tui_app *a, int y, const struct entry *e)
{
    static const enum tui_token token[] = {TUI_COMPUTE, TUI_COMM, TUI_COPY, TUI_IDLE};
    static const uint32_t fill[] = {0x2588, 0x2593, 0x2592, 0x2591};
    struct tui_cells *g = &a->cells;
    int x = 26, w = g->w - x - 24;
    double at = 0;
    tui_put_name(g, y, 1, 24, TUI_TEXT, e->name);
    if (e->count == 0) /* not measured yet */
        return;
    for (int i = 0; i < 4; i++) {
        int from = (int)(at * w + 0.5);
        at += e->share[i];
        int to = (int)(at * w + 0.5);
        tui_fill(g, y, x + from, to - from, token[i], g->ascii ? (uint32_t) "#=+."[i] : fill[i]);
    }
    for (int i = 0; i < 4; i++)
        tui_printf(g, y, g->w - 23 + 6 * i, 5, TUI_TEXT, "%4.0f%%", e->share[i] * 100);
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
        static const char *const words[] = {"comp", "comm", "copy", "idle"};
        for (int i = 0; i < 4; i++)
            tui_put_right(g, 2, g->w - 18 + 6 * i, TUI_DIM, words[i]);
    } else if (r->view == RANKS) {
        tui_puts(g, 2, 0, g->w, TUI_DIM,
                 "  rank   steps       mean        max  mean step time           host");
    } else
        tui_puts(g, 2, 0, g->w, TUI_DIM, "     total      count       mean        max  name");
}

static void draw_empty(struct tui_app *a, const struct report *r)
{
    tui_puts(&a->cells, 4, 1, a->cells.w - 2, TUI_DIM,
             r->view == COLLECTIVES
                 ? "No marks in the domain 'communication': 'msprobe run' records collectives."
                 : "Nothing was recorded for this.");
}

static enum ms_rc draw_report(struct tui_app *a, void *self, struct ms_err *err)
{
    struct report *r = self;
    int rows = tui_body_rows(a) - 2;
    enum ms_rc rc = need_view(a, r, err);
    size_t n = r->rows[r->view].n, *at = &r->at[r->view], *top = &r->top[r->view];
    draw_heads(a, r);
    if (n == 0)
        draw_empty(a, r);
    *top = tui_scroll(*top, *at, (size_t)(rows > 0 ? rows : 1));
    for (int i = 0; i < rows && *top + (size_t)i < n; i++) {
        struct entry *e = &r->rows[r->view].p[*top + (size_t)i];
        if (r->view == RANKS)
            draw_rank(a, r, 3 + i, e);
        else if (r->view == BREAKDOWN)
            draw_breakdown(a, 3 + i, e);
        else
            draw_name(a, r, 3 + i, e);
        if (*top + (size_t)i == *at)
            tui_mark(&a->cells, 3 + i, 0, a->cells.w, TUI_REVERSE, TUI_TEXT);
    }
    tui_printf(&a->cells, a->cells.h - 2, 1, a->cells.w - 2, TUI_DIM, "%zu of %zu",
               n > 0 ? *at + 1 : 0, n);
    return rc;
}

/* Rows that are seen are measured one after the other. */
static enum ms_rc work(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct report *r = self;
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    size_t last = r->top[BREAKDOWN] + (size_t)tui_body_rows(a);
    if (r->view != BREAKDOWN)
        return MS_OK;
    for (size_t i = r->top[BREAKDOWN]; i < last && i < r->rows[BREAKDOWN].n; i++) {
        if (r->rows[BREAKDOWN].p[i].count != 0)
            continue;
        *more = ms_clock_ns() >= end;
        if (*more)
            return MS_OK;
        MS_TRY(fill_breakdown(&r->rows[BREAKDOWN].p[i], a->reader.tl, &r->tracks, err));
    }
    return MS_OK;
}

/* ---- keys -------------------------------------------------------------------------- */

/* To the timeline: the rank of the row, or the slices with its name. */
static enum ms_rc go_there(struct tui_app *a, const struct report *r, struct ms_err *err)
{
    struct viz_place p = viz_place_of(VIZ_TIMELINE);
    if (r->at[r->view] >= r->rows[r->view].n)
        return MS_OK;
    const struct entry *e = &r->rows[r->view].p[r->at[r->view]];
    p.rank = e->rank;
    if (r->view == RANGES || r->view == COLLECTIVES)
        p.query = e->name;
    return tui_go_place(a, &p, err);
}

static enum ms_rc report_key(struct tui_app *a, void *self, int key, bool *taken,
                             struct ms_err *err)
{
    struct report *r = self;
    *taken = true;
    if (tui_move(key, &r->at[r->view], r->rows[r->view].n, (size_t)tui_body_rows(a)))
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

static enum ms_rc go(struct tui_app *a, void *self, const struct viz_place *p, struct ms_err *err)
{
    struct report *r = self;
    (void)a;
    (void)err;
    if (p->rank >= 0)
        r->view = RANKS;
    return MS_OK;
}

static enum ms_rc export_report(struct tui_app *a, void *self, struct ms_buf *out,
                                struct ms_err *err)
{
    struct report *r = self;
    MS_TRY(need_view(a, r, err));
    ms_buf_puts(out, r->view == BREAKDOWN ? "name,rank,compute,communication,copy,idle\n"
                                          : "name,domain,rank,count,total_ns,max_ns,dropped\n");
    for (size_t i = 0; i < r->rows[r->view].n; i++) {
        struct entry *e = &r->rows[r->view].p[i];
        if (r->view == BREAKDOWN)
            MS_TRY(fill_breakdown(e, a->reader.tl, &r->tracks, err));
        tui_csv_text(out, e->name);
        if (r->view == BREAKDOWN) {
            ms_buf_printf(out, ",%" PRId64 ",%.6g,%.6g,%.6g,%.6g\n", e->rank, e->share[0],
                          e->share[1], e->share[2], e->share[3]);
            continue;
        }
        ms_buf_putc(out, ',');
        tui_csv_text(out, e->domain);
        ms_buf_printf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n",
                      e->rank, e->count, e->total, e->most, e->dropped);
    }
    return MS_OK;
}

static const struct tui_hint hints[] = {
    {"tables", NULL, false},   {"↑↓", "move", true},
    {"Tab ←→", "table", true}, {"Enter", "in the timeline", true},
    {NULL, NULL, false},
};

const struct tui_screen tui_report_screen = {
    .name = "Report",
    .hints = hints,
    .open = open_report,
    .close = close_report,
    .draw = draw_report,
    .key = report_key,
    .go = go,
    .work = work,
    .export = export_report,
};
