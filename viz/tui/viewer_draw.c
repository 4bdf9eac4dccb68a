/* SPDX-License-Identifier: MIT
 *
 * viewer_draw: the first row, the message and the line of hints around a screen.
 */
#include "viz/tui/viewer.h"

#include <limits.h>
#include <stdio.h>

static void draw_head(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    int x = g->w;
    tui_fill(g, 0, 0, g->w, TUI_TEXT, ' ');
    for (int i = TUI_SCREENS; i-- > 0 && g->w >= TUI_ROOMY_W;) {
        char word[32];
        if (i == TUI_LIVE && a->live == NULL)
            continue;
        int w = snprintf(word, sizeof word, "%d %s", i + 1, a->screens[i]->name);
        x -= w + 1;
        tui_puts(g, 0, x, w, (int)a->at == i ? TUI_ACCENT : TUI_DIM, word);
        if ((int)a->at == i)
            tui_mark(g, 0, x, w, TUI_BOLD, TUI_TOKENS);
    }
    char where[TUI_WHERE_MAX] = "";
    if (a->screens[a->at]->where != NULL && g->w >= TUI_ROOMY_W)
        a->screens[a->at]->where(a, a->state[a->at], where);
    int at = tui_puts(g, 0, 1, 13, TUI_DIM, "msprobe view ");
    int room = x - at - 1 - (where[0] != '\0' ? (int)strlen(where) + 2 : 0);
    int end = tui_put_name(g, 0, at, room, TUI_TEXT, viz_session_title(a->session));
    tui_mark(g, 0, at, end - at, TUI_BOLD, TUI_TOKENS);
    tui_puts(g, 0, end + 2, x - end - 3, TUI_DIM, where);
}

static int put_hint(struct tui_cells *g, int x, const char *keys, const char *text)
{
    x = tui_puts(g, g->h - 1, x, g->w - x, TUI_TEXT, keys);
    return tui_puts(g, g->h - 1, x + 1, g->w - x - 1, TUI_DIM, text) + 2;
}

/* Draws the hints; a small screen has room for one hint and a note that a larger one shows more. */
static void draw_hints(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    bool small = g->w < TUI_ROOMY_W || g->h < TUI_ROOMY_H;
    int x = 1, left = small ? 1 : INT_MAX;
    for (const struct tui_hint *h = a->screens[a->at]->hints; h->keys != NULL && left > 0; h++) {
        if (h->brief == NULL)
            continue;
        int w = tui_text_width(ms_str_of(h->keys)) + tui_text_width(ms_str_of(h->brief)) + 3;
        if (x + w > g->w - 17)
            break;
        x = put_hint(g, x, h->keys, h->brief);
        left--;
    }
    x = put_hint(g, x, "?", "help");
    x = put_hint(g, x, "q", "quit");
    if (small)
        tui_puts(g, g->h - 1, x, g->w - x, TUI_INFO, "more at 80x24");
}

static void draw_line(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    int x = tui_char(g, g->h - 1, 0, TUI_ACCENT, (uint32_t)(unsigned char)a->kind);
    struct ms_str s = {a->line, (uint32_t)a->line_n};
    s = tui_tail(s, g->w - 3);
    x = tui_put(g, g->h - 1, x, g->w - 2, TUI_TEXT, s);
    tui_mark(g, g->h - 1, x, 1, TUI_REVERSE, TUI_TEXT);
}

static void draw_foot(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    if (a->message[0] != '\0') {
        tui_fill(g, g->h - 2, 0, g->w, TUI_TEXT, ' ');
        tui_puts(g, g->h - 2, 1, g->w - 2, a->bad ? TUI_ERROR : TUI_TEXT, a->message);
    }
    if (a->kind != 0)
        draw_line(a);
    else
        draw_hints(a);
}

enum ms_rc tui_app_draw(struct tui_app *a, int w, int h, struct ms_err *err)
{
    struct ms_err drawing = {0};
    if (!tui_cells_size(&a->cells, w > 0 ? w : 1, h > 0 ? h : 1))
        return ms_no_memory(err);
    if (w < TUI_LEAST_W || h < TUI_LEAST_H) {
        tui_printf(&a->cells, h / 2, 0, w, TUI_TEXT, "%dx%d is too small; %dx%d will do", w, h,
                   TUI_LEAST_W, TUI_LEAST_H);
        return MS_OK;
    }
    enum ms_rc rc = a->screens[a->at]->draw(a, a->state[a->at], &drawing);
    if (rc != MS_OK)
        tui_say_error(a, &drawing);
    draw_head(a);
    draw_foot(a);
    if (a->page.open)
        tui_page_draw(&a->page, &a->cells);
    return MS_OK;
}
