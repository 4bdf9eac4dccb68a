/* SPDX-License-Identifier: MIT
 *
 * tui_time_map: the whole run in one row, with the part that is shown marked in it.
 *
 * A run may have thousands of tracks, so the row fills up between keys, a process
 * after the other.
 */
#include "viz/tui_time.h"

#include "probe/base/clock.h"
#include "probe/base/mem.h"

enum { MAP_FROM = 16 }; /* rows of the screen from which on there is room for it */

int tui_time_top(const struct tui_app *a)
{
    return a->cells.h >= MAP_FROM ? 4 : 3;
}

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

/* Processes are busy in different measure: the busiest column is full. */
void tui_time_draw_map(struct tui_app *a, struct tui_time *t, int y)
{
    float most = 0;
    tui_puts(&a->cells, y, 1, t->label_w - 2, TUI_DIM, "whole run");
    if (t->map_w != t->width || t->mapped < t->tracks.lanes.n)
        return; /* not measured yet */
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
