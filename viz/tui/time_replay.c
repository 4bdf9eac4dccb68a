/* SPDX-License-Identifier: MIT
 *
 * time_replay: see the header.
 */
#include "viz/tui/time_replay.h"

#include "probe/base/mem.h"

enum { LABEL_X = 4 };

/* ---- showing and hiding -------------------------------------------------------------- */

/* Reads which tracks have an ideal timeline, once. */
static enum ms_rc find_tracks(struct tui_time *t, struct ms_err *err)
{
    const size_t n = mstx_tl_track_count(t->tl);
    if (t->replayed.n != 0)
        return MS_OK;
    if (!ms_vec_reserve(&t->replayed, n + 1))
        return ms_no_memory(err);
    memset(t->replayed.p, 0, n + 1);
    t->replayed.n = n;
    return viz_replay_tracks(t->tl, t->replayed.p, err);
}

static enum ms_rc flip(struct tui_app *a, struct tui_time *t, bool *shown, struct ms_err *err)
{
    if (!viz_replay_exists(t->tl)) {
        tui_say(a, "no critical path is known: it takes calls of two ranks and their steps");
        return MS_OK;
    }
    MS_TRY(find_tracks(t, err));
    *shown = !*shown;
    return MS_OK;
}

enum ms_rc tui_time_flip_path(struct tui_app *a, struct tui_time *t, struct ms_err *err)
{
    return flip(a, t, &t->has_path, err);
}

enum ms_rc tui_time_flip_ideal(struct tui_app *a, struct tui_time *t, struct ms_err *err)
{
    return flip(a, t, &t->has_ideal, err);
}

/* ---- the ideal timeline ---------------------------------------------------------------- */

struct shares {
    float of[MSTX_SPAN_KINDS]; /* of a cell */
};

static void add_shares(const struct tui_time *t, const struct viz_span *s, struct shares *cell)
{
    const double wide = (double)viz_window_length(&t->w) / t->width;
    double a = (double)(s->from - t->w.from) / wide, b = (double)(s->to - t->w.from) / wide;
    a = a > 0 ? a : 0;
    b = b < t->width ? b : t->width;
    for (int i = (int)a; i < t->width && i < b; i++) {
        const double from = a > i ? a : i, to = b < i + 1 ? b : i + 1;
        cell[i].of[s->kind] += (float)(to - from);
    }
}

/* Draws a cell as what takes most of it; a cell that is half empty stays empty. */
static void put_shares(struct tui_app *a, const struct tui_time *t, int y, int i,
                       const struct shares *s)
{
    int most = 0;
    float all = 0;
    for (int k = 0; k < MSTX_SPAN_KINDS; k++) {
        all += s->of[k];
        most = s->of[k] > s->of[most] ? k : most;
    }
    if (all < 0.5F)
        return;
    const enum tui_token token = most == MSTX_SPAN_COMM ? TUI_COMM : TUI_COMPUTE;
    if (most == MSTX_SPAN_WAIT)
        tui_char(&a->cells, y, t->label_w + i, TUI_DIM, 0x2591);
    else
        tui_char(&a->cells, y, t->label_w + i, token, most == MSTX_SPAN_COMM ? 0x2588 : 0x2584);
}

static enum ms_rc draw_shares(struct tui_app *a, struct tui_time *t, const viz_spans *v,
                              uint32_t track, int y, struct ms_err *err)
{
    struct shares *cell = ms_calloc((size_t)t->width + 1, sizeof *cell);
    if (cell == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < v->n; i++) {
        if (v->p[i].track == track)
            add_shares(t, &v->p[i], cell);
    }
    for (int i = 0; i < t->width; i++)
        put_shares(a, t, y, i, &cell[i]);
    ms_free(cell);
    return MS_OK;
}

enum ms_rc tui_time_draw_ideal(struct tui_app *a, struct tui_time *t, const struct viz_lane *l,
                               int y, struct ms_err *err)
{
    viz_spans spans = {0};
    const int64_t cell = viz_window_length(&t->w) / (t->width > 0 ? t->width : 1);
    tui_puts(&a->cells, y, LABEL_X, t->label_w - LABEL_X - 1, TUI_DIM, "ideal");
    enum ms_rc rc = viz_replay_ideal(&spans, t->tl, l->process, t->w.from, t->w.to, cell / 4, err);
    if (rc == MS_OK)
        rc = draw_shares(a, t, &spans, l->track, y, err);
    ms_vec_free(&spans);
    return rc;
}

/* ---- the critical path ------------------------------------------------------------------- */

/* Draws the line from the row where the path left to the row where it goes on. */
static void put_turn(struct tui_app *a, const struct tui_time *t, int x, int from, int to)
{
    const int step = to > from ? 1 : -1;
    for (int y = from + step; y != to && from != to; y += step) {
        if (tui_is_free(tui_at(&a->cells, y, t->label_w + x)))
            tui_char(&a->cells, y, t->label_w + x, TUI_ACCENT, 0x2503);
    }
}

static void put_line(struct tui_app *a, const struct tui_time *t, int from, int to, int y)
{
    from = from < 0 ? 0 : from;
    for (int x = from; x <= to && x < t->width; x++)
        tui_char(&a->cells, y, t->label_w + x, TUI_ACCENT, 0x2501);
}

enum ms_rc tui_time_draw_path(struct tui_app *a, struct tui_time *t, const int *row_of,
                              struct ms_err *err)
{
    viz_spans spans = {0};
    const int64_t cell = viz_window_length(&t->w) / (t->width > 0 ? t->width : 1);
    enum ms_rc rc = viz_replay_path(&spans, t->tl, t->w.from, t->w.to, cell, err);
    for (size_t i = 0, last = 0; i < spans.n && rc == MS_OK; i++) {
        const struct viz_span *s = &spans.p[i];
        const int y = s->track >= 0 ? row_of[s->track] : -1;
        const int from = tui_time_column(t, s->from), to = tui_time_column(t, s->to - 1);
        const int before = spans.p[last].track >= 0 ? row_of[spans.p[last].track] : -1;
        if (i != 0 && y >= 0 && before >= 0 && from >= 0 && from < t->width)
            put_turn(a, t, from, before, y);
        if (y >= 0 && to >= 0)
            put_line(a, t, from, to, y);
        last = i;
    }
    ms_vec_free(&spans);
    return rc;
}
