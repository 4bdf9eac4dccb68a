/* SPDX-License-Identifier: MIT
 *
 * time_collective: a collective on all ranks, in a column.
 *
 *     rank 2        first  ░░░░░░░░░░░░████  waits 61.2 us
 *     rank 0   +  20.1 us  ····░░░░░░░░████  waits 41.1 us
 *     rank 1  !+  61.2 us  ············████  the others wait for it
 */
#include "viz/tui/time_collective.h"

#include "probe/base/human.h"
#include "viz/model/collectives.h"

#include <inttypes.h>
#include <stdio.h>

enum { BAR_W = 30, BYTES = 4 };

static int64_t end_of(const struct viz_collective *c)
{
    int64_t end = c->list.p[0].end_ns;
    for (size_t i = 1; i < c->list.n; i++)
        end = c->list.p[i].end_ns > end ? c->list.p[i].end_ns : end;
    return end;
}

static int column(int64_t at, int64_t from, int64_t to)
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
    int there = column(a->start_ns, from, to), end = column(a->end_ns, from, to);
    int all = column(c->list.p[c->list.n - 1].start_ns, from, to);
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
