/* SPDX-License-Identifier: MIT
 *
 * app: state of the viewer and services for screens.
 */
#include "viz/tui/app.h"

#include "probe/base/assert.h"

#include <stdio.h>

void tui_say(struct tui_app *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->message, sizeof a->message, fmt, ap);
    va_end(ap);
    a->bad = false;
}

void tui_copy(struct tui_app *a, struct ms_str s)
{
    ms_buf_clear(&a->copied);
    ms_buf_str(&a->copied, s);
}

void tui_say_error(struct tui_app *a, const struct ms_err *err)
{
    tui_say(a, "%s", err->msg[0] != '\0' ? err->msg : ms_rc_text(err->rc));
    a->bad = true;
}

void tui_ask(struct tui_app *a, char kind)
{
    a->kind = kind;
    a->line_n = 0;
}

/* ---- navigation --------------------------------------------------------------------- */

enum ms_rc tui_check_screen(const struct tui_app *a, enum tui_screen_id id, struct ms_err *err)
{
    if (id == TUI_TREE && a->reader.graph == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no graph here; 'msprobe graph_visualize' makes one from a dump");
    if (id == TUI_LIVE && a->live == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "not a running job; 'msprobe view --live DIR' opens one");
    if ((id == TUI_TIME || id == TUI_REPORT) && a->reader.tl == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no timeline here; 'msprobe run -o DIR -- PROGRAM' records one");
    return MS_OK;
}

enum ms_rc tui_go(struct tui_app *a, enum tui_screen_id id, const struct viz_place *p,
                  struct ms_err *err)
{
    ms_assert(a->screens != NULL && id < TUI_SCREENS);
    MS_TRY(tui_check_screen(a, id, err));
    if (a->state[id] == NULL)
        a->state[id] = a->screens[id]->open(a, err);
    if (a->state[id] == NULL)
        return err != NULL && err->rc != MS_OK ? err->rc : MS_E_NOMEM;
    if (a->at != id)
        a->before = a->at;
    a->at = id;
    return p != NULL && a->screens[id]->go != NULL ? a->screens[id]->go(a, a->state[id], p, err)
                                                   : MS_OK;
}

enum ms_rc tui_go_place(struct tui_app *a, const struct viz_place *p, struct ms_err *err)
{
    static const enum tui_screen_id of[VIZ_SCREENS] = {[VIZ_OVERVIEW] = TUI_FINDINGS,
                                                       [VIZ_TIMELINE] = TUI_TIME,
                                                       [VIZ_GRAPH] = TUI_TREE,
                                                       [VIZ_TABLE] = TUI_TREE,
                                                       [VIZ_CLUSTER] = TUI_REPORT};
    return tui_go(a, of[p->screen], p, err);
}

bool tui_move(int key, size_t *at, size_t n, size_t page)
{
    size_t last = n > 0 ? n - 1 : 0;
    page = page > 1 ? page - 1 : 1;
    if (key == 'j' || key == TUI_KEY_DOWN)
        *at += *at < last;
    else if (key == 'k' || key == TUI_KEY_UP)
        *at -= *at > 0;
    else if (key == TUI_KEY_PAGE_DOWN)
        *at = last - *at > page ? *at + page : last;
    else if (key == TUI_KEY_PAGE_UP)
        *at -= *at > page ? page : *at;
    else if (key == 'g' || key == TUI_KEY_HOME)
        *at = 0;
    else if (key == 'G' || key == TUI_KEY_END)
        *at = last;
    else
        return false;
    return true;
}

bool tui_click_row(int y, int row, size_t top, size_t n, size_t *at)
{
    size_t to = y >= row ? top + (size_t)(y - row) : n;
    bool chosen = to == *at;
    if (to >= n)
        return false;
    *at = to;
    return chosen;
}

size_t tui_scroll(size_t top, size_t at, size_t page)
{
    if (at < top)
        return at;
    return page > 0 && at >= top + page ? at - page + 1 : top;
}

/* ---- reopening ---------------------------------------------------------------------- */

enum ms_rc tui_reopen(struct tui_app *a, struct ms_err *err)
{
    struct viz_reader fresh;
    struct viz_findings findings;
    MS_TRY(viz_reader_open(&fresh, a->session, err));
    enum ms_rc rc = viz_findings_read(&findings, &fresh, VIZ_ENGLISH, err);
    if (rc != MS_OK) {
        viz_reader_close(&fresh);
        return rc;
    }
    for (int i = 0; i < TUI_SCREENS; i++) {
        if (i == TUI_LIVE || a->state[i] == NULL) /* the live screen keeps its state */
            continue;
        a->screens[i]->close(a->state[i]);
        a->state[i] = NULL;
        a->ready[i] = false;
    }
    viz_findings_free(&a->findings);
    viz_reader_close(&a->reader);
    a->findings = findings;
    a->reader = fresh;
    return MS_OK;
}
