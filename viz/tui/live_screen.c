/* SPDX-License-Identifier: MIT
 *
 * live_screen: a running job, like top: a row for each rank, refreshed every second.
 *
 * Reading a run takes longer the longer it has run, so the next refresh waits at least four times
 * as long as the last one took. This bounds the share of time that the viewer takes from the job.
 */
#include "viz/tui/app.h"

#include "probe/base/clock.h"
#include "probe/base/human.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { RECENT = 10, SLOW_NS = 500000000, COMM_X = 56 };

struct rank_row {
    int64_t rank, step, steps;
    double per_second; /* over the last steps */
    int64_t step_ns;   /* mean of the last steps */
    int64_t blame_ns;  /* waiting time it caused others, mean of the last steps; -1: unknown */
    uint64_t dropped;
    struct ms_str in; /* current or last communication call */
    int64_t in_ns;
    bool waiting; /* the call has not ended */
    enum { RUNS, ENDED, KILLED } state;
};

struct live {
    MS_VEC(struct rank_row) rows;
    size_t at, top;
    int64_t next_ns, took_ns; /* time of the next read; duration of the last */
    uint64_t turns, dropped;
    struct ms_arena *arena;
    bool stopped; /* paused by Space */
};

static void close_live(void *self)
{
    struct live *l = self;
    ms_vec_free(&l->rows);
    ms_arena_free(l->arena);
    ms_free(l);
}

/* ---- reading ----------------------------------------------------------------------- */

/* Reads count, last number and duration of a process's last steps. */
static enum ms_rc read_steps(struct rank_row *r, struct ms_store *s, size_t process,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(
        s, &st,
        "SELECT count(*), max(number), (max(end_ns) - min(start_ns)) / count(*),"
        " (SELECT count(*) FROM steps WHERE process = ?1) FROM (SELECT * FROM steps"
        " WHERE process = ?1 ORDER BY start_ns DESC LIMIT ?2)",
        err));
    ms_stmt_i64(st, 1, (int64_t)process + 1);
    ms_stmt_i64(st, 2, RECENT);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more && ms_stmt_get_i64(st, 0) > 0) {
        r->step = ms_stmt_get_i64(st, 1);
        r->step_ns = ms_stmt_get_i64(st, 2);
        r->steps = ms_stmt_get_i64(st, 3);
        r->per_second = r->step_ns > 0 ? 1e9 / (double)r->step_ns : 0;
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_state(struct rank_row *r, struct ms_store *s, size_t process,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(s, &st, "SELECT state FROM processes WHERE id = ?1", err));
    ms_stmt_i64(st, 1, (int64_t)process + 1);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        r->state = ms_str_is(ms_stmt_get_str(st, 0), "finished") ? ENDED
                   : ms_str_is(ms_stmt_get_str(st, 0), "killed") ? KILLED
                                                                 : RUNS;
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_last(struct live *l, struct rank_row *r, struct mstx_tl *tl, size_t process,
                            struct ms_err *err)
{
    struct mstx_event ev, last = {0};
    int64_t first, end;
    bool found;
    mstx_tl_span(tl, &first, &end);
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++) {
        const struct mstx_track *t = mstx_tl_track(tl, i);
        if (t->process != process || t->kind != MSTX_TRACK_THREAD ||
            !ms_str_is(t->domain, "communication"))
            continue;
        MS_TRY(mstx_tl_prev(tl, i, INT64_MAX, NULL, &ev, &found, err));
        if (found && ev.start_ns > last.start_ns)
            last = ev;
    }
    r->waiting = (last.flags & MSTX_EVF_UNFINISHED) != 0;
    r->in_ns = r->waiting ? end - last.start_ns : last.dur_ns;
    r->in = ms_arena_str(l->arena, mstx_tl_text(tl, last.name));
    return r->in.p != NULL ? MS_OK : ms_arena_fail(l->arena, err);
}

/* Reads the time that others waited for each rank. Ranks that communicate run in lockstep and
 * have equal step durations, so the waiting time identifies the straggler. */
static enum ms_rc read_blame(struct live *l, struct ms_store *s, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(s, &st,
                            "SELECT process - 1, avg(blame_ns) FROM rank_steps WHERE step >"
                            " (SELECT max(step) FROM rank_steps) - ?1 GROUP BY process",
                            err));
    ms_stmt_i64(st, 1, RECENT);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        uint64_t process = (uint64_t)ms_stmt_get_i64(st, 0);
        if (process < l->rows.n)
            l->rows.p[process].blame_ns = ms_stmt_get_i64(st, 1);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_all(struct live *l, struct mstx_tl *tl, struct ms_err *err)
{
    l->rows.n = 0;
    l->dropped = 0;
    ms_arena_free(l->arena);
    l->arena = ms_arena_new(1 << 26);
    if (l->arena == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++) {
        const struct mstx_process *p = mstx_tl_process(tl, i);
        struct rank_row *r = ms_vec_push(&l->rows);
        if (r == NULL)
            return ms_no_memory(err);
        *r = (struct rank_row){.rank = p->rank, .step = -1, .blame_ns = -1, .dropped = p->dropped};
        l->dropped += p->dropped;
        MS_TRY(read_state(r, mstx_tl_store(tl), i, err));
        MS_TRY(read_steps(r, mstx_tl_store(tl), i, err));
        MS_TRY(read_last(l, r, tl, i, err));
    }
    return read_blame(l, mstx_tl_store(tl), err);
}

static enum ms_rc refresh_run(struct tui_app *a, struct live *l, struct ms_err *err)
{
    int64_t begin = ms_clock_ns();
    uint64_t before = a->session->version;
    MS_TRY(viz_session_refresh(a->session, err));
    if (a->session->version != before || l->turns == 0) {
        if (l->turns != 0)
            MS_TRY(tui_reopen(a, err));
        MS_TRY(read_all(l, a->reader.tl, err));
    }
    l->turns++;
    l->took_ns = ms_clock_ns() - begin;
    l->next_ns = begin + l->took_ns * 5;
    return MS_OK;
}

static void *open_live(struct tui_app *a, struct ms_err *err)
{
    struct live *l = ms_calloc(1, sizeof *l);
    if (l == NULL) {
        (void)ms_no_memory(err);
        return NULL;
    }
    if (a->reader.tl == NULL)
        (void)ms_fail(err, MS_E_NOTFOUND, "%s: no capture here", a->live);
    else if (refresh_run(a, l, err) == MS_OK)
        return l;
    close_live(l);
    return NULL;
}

/* ---- drawing ----------------------------------------------------------------------- */

/* Returns the rank with the highest figure if that exceeds `times` the mean of all. */
static size_t find_outstanding(const struct live *l, bool blame, double times)
{
    size_t at = l->rows.n;
    double sum = 0, most = 0;
    for (size_t i = 0; i < l->rows.n; i++) {
        const struct rank_row *r = &l->rows.p[i];
        double v = (double)(blame ? r->blame_ns : r->step_ns);
        sum += v > 0 ? v : 0;
        at = v > most ? i : at;
        most = v > most ? v : most;
    }
    bool stands_out = l->rows.n > 1 && at < l->rows.n && most > times * sum / (double)l->rows.n;
    return stands_out ? at : l->rows.n;
}

/* Returns the index of the straggler: the others wait for it during a tenth of its steps or
 * more, and more than for any other rank; or else its steps are a tenth longer. */
static size_t find_slowest(const struct live *l)
{
    size_t at = find_outstanding(l, true, 1.2);
    if (at < l->rows.n && l->rows.p[at].blame_ns > l->rows.p[at].step_ns / 10)
        return at;
    return find_outstanding(l, false, 1.1);
}

/* Returns the job's steps per second: the mean of its ranks, which run in lockstep. */
static double speed_of(const struct live *l)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < l->rows.n; i++) {
        sum += l->rows.p[i].per_second;
        n += l->rows.p[i].steps > 0;
    }
    return n != 0 ? sum / (double)n : 0;
}

static void draw_rank(struct tui_app *a, const struct rank_row *r, int y, bool late)
{
    struct tui_cells *g = &a->cells;
    char b[MS_HUMAN_MAX], text[32];
    snprintf(text, sizeof text, r->rank >= 0 ? "%" PRId64 : "-", r->rank);
    tui_put_right(g, y, 6, late ? TUI_ERROR : TUI_TEXT, text);
    snprintf(text, sizeof text, r->step >= 0 ? "%" PRId64 : "-", r->step);
    tui_put_right(g, y, 14, TUI_TEXT, text);
    snprintf(text, sizeof text, "%.3g", r->per_second);
    tui_put_right(g, y, 23, TUI_TEXT, r->steps > 0 ? text : "-");
    tui_put_right(g, y, 34, TUI_TEXT, r->steps > 0 ? ms_human_time(b, r->step_ns) : "-");
    if (g->w < COMM_X + 8) /* room only for the straggler columns */
        return;
    tui_put_right(g, y, 47, late ? TUI_ERROR : TUI_TEXT,
                  r->blame_ns >= 0 ? ms_human_time(b, r->blame_ns) : "-");
    tui_put_right(g, y, COMM_X - 2, r->dropped != 0 ? TUI_WARNING : TUI_DIM,
                  ms_human_count(b, r->dropped));
    if (r->state != RUNS) {
        tui_puts(g, y, COMM_X, g->w - COMM_X, r->state == KILLED ? TUI_ERROR : TUI_DIM,
                 r->state == KILLED ? "killed" : "ended");
        return;
    }
    int x =
        tui_put_name(g, y, COMM_X, (g->w - COMM_X) * 5 / 8, r->waiting ? TUI_COMM : TUI_DIM, r->in);
    if (r->in.n != 0)
        tui_printf(g, y, x + 1, g->w - x - 2, r->waiting ? TUI_WARNING : TUI_DIM, "%s%s",
                   r->waiting ? "for " : "", ms_human_time(b, r->in_ns));
}

static enum ms_rc draw_live(struct tui_app *a, void *self, struct ms_err *err)
{
    struct live *l = self;
    struct tui_cells *g = &a->cells;
    int rows = tui_body_rows(a) - 3;
    size_t late = find_slowest(l);
    char took[MS_HUMAN_MAX], lost[MS_HUMAN_MAX];
    (void)err;
    int x = tui_printf(g, 1, 1, g->w - 2, TUI_TEXT, "%.3g steps/s, %zu process%s, %s lost  ",
                       speed_of(l), l->rows.n, l->rows.n == 1 ? "" : "es",
                       ms_human_count(lost, l->dropped));
    if (late < l->rows.n)
        tui_printf(g, 1, x, g->w - x, TUI_ERROR, "slowest: rank %" PRId64, l->rows.p[late].rank);
    tui_puts(g, 2, 0, g->w, TUI_DIM,
             g->w < COMM_X + 8 ? "  rank    step  steps/s  step time"
                               : "  rank    step  steps/s  step time  others wait   lost"
                                 "  communication");
    l->top = tui_scroll(l->top, l->at, (size_t)(rows > 0 ? rows : 1));
    for (int i = 0; i < rows && l->top + (size_t)i < l->rows.n; i++) {
        size_t row = l->top + (size_t)i;
        draw_rank(a, &l->rows.p[row], 3 + i, row == late);
        if (row == l->at)
            tui_mark(g, 3 + i, 0, g->w, TUI_REVERSE, TUI_TEXT);
    }
    x = tui_puts(g, g->h - 2, 1, g->w - 2, TUI_DIM, l->stopped ? "stopped, Space goes on" : "live");
    if (l->took_ns > SLOW_NS)
        tui_printf(g, g->h - 2, x, g->w - x, TUI_DIM, "; reading takes %s",
                   ms_human_time(took, l->took_ns));
    return MS_OK;
}

/* ---- keys -------------------------------------------------------------------------- */

static enum ms_rc live_key(struct tui_app *a, void *self, int key, bool *taken, struct ms_err *err)
{
    struct live *l = self;
    struct viz_place p = viz_place_of(VIZ_TIMELINE);
    *taken = true;
    if (key == TUI_KEY_TICK)
        return l->stopped || ms_clock_ns() < l->next_ns ? MS_OK : refresh_run(a, l, err);
    if (tui_move(key, &l->at, l->rows.n, (size_t)tui_body_rows(a)))
        return MS_OK;
    if (key == ' ')
        l->stopped = !l->stopped;
    else if (key == TUI_KEY_ENTER && l->at < l->rows.n) {
        p.rank = l->rows.p[l->at].rank;
        return tui_go_place(a, &p, err);
    } else
        *taken = false;
    return MS_OK;
}

static bool click(struct tui_app *a, void *self, int y, int x, bool drag)
{
    struct live *l = self;
    (void)a;
    (void)x;
    (void)drag;
    return tui_click_row(y, 3, l->top, l->rows.n, &l->at);
}

static const struct tui_hint hints[] = {
    {"ranks", NULL, NULL},
    {"↑↓", "choose a rank", "move"},
    {"Enter", "its timeline", "its timeline"},
    {"Space", "stop reading anew, go on", "stop, go on"},
    {NULL, NULL, NULL},
};

const struct tui_screen tui_live_screen = {
    .name = "Live",
    .hints = hints,
    .open = open_live,
    .close = close_live,
    .draw = draw_live,
    .click = click,
    .key = live_key,
};
