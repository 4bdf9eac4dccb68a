/* SPDX-License-Identifier: MIT
 *
 * app: services for screens: pages of text, messages, navigation.
 */
#include "viz/tui/app.h"

#include "probe/base/assert.h"

#include <stdio.h>
#include <strings.h>

/* ---- pages of text ------------------------------------------------------------------ */

enum { TEXT_MAX = 64 << 20, LINE_MAX_BYTES = 8192, SIDE_STEP = 20 };

enum ms_rc tui_page_open(struct tui_page *p, const char *title, struct ms_err *err)
{
    tui_page_close(p);
    snprintf(p->title, sizeof p->title, "%s", title);
    p->arena = ms_arena_new(TEXT_MAX);
    p->open = p->arena != NULL;
    return p->open ? MS_OK : ms_no_memory(err);
}

void tui_page_close(struct tui_page *p)
{
    ms_vec_free(&p->lines);
    ms_arena_free(p->arena);
    *p = (struct tui_page){.open = false};
}

enum ms_rc tui_page_add(struct tui_page *p, enum tui_token t, struct ms_str s, struct ms_err *err)
{
    struct tui_line *l = ms_vec_push(&p->lines);
    if (l == NULL)
        return ms_no_memory(err);
    *l = (struct tui_line){ms_arena_str(p->arena, s), t};
    if (l->text.p != NULL)
        return MS_OK;
    p->lines.n--;
    return ms_arena_fail(p->arena, err);
}

enum ms_rc tui_page_addf(struct tui_page *p, enum tui_token t, struct ms_err *err, const char *fmt,
                         ...)
{
    char text[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tui_page_add(p, t, ms_str_of(text), err);
}

static bool passes_filter(const struct tui_page *p, const struct tui_line *l)
{
    return ms_str_has_folded(l->text, (struct ms_str){p->filter, (uint32_t)p->filter_n});
}

bool tui_page_shows(const struct tui_page *p, size_t line)
{
    ms_assert(line < p->lines.n);
    return passes_filter(p, &p->lines.p[line]);
}

static size_t count(const struct tui_page *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->lines.n; i++)
        n += passes_filter(p, &p->lines.p[i]);
    return n;
}

/* Returns s without the columns left of the screen. */
static struct ms_str from_column(struct ms_str s, size_t left)
{
    for (; left > 0 && s.n != 0; left--)
        tui_take(&s);
    return s;
}

static void draw_head(const struct tui_page *p, struct tui_cells *g)
{
    tui_fill(g, 1, 0, g->w, TUI_DIM, 0x2500);
    tui_printf(g, 1, 2, g->w - 4, TUI_ACCENT, " %s ", p->title);
    tui_printf(g, g->h - 2, 1, g->w - 2, TUI_DIM, "%zu of %zu lines%s", count(p), p->lines.n,
               p->filter_n != 0 ? " hold the text" : "");
    int x = tui_puts(g, g->h - 1, 1, g->w - 2, TUI_ACCENT, p->filtering ? "/" : "");
    x = tui_put(g, g->h - 1, x, g->w - x, TUI_TEXT,
                (struct ms_str){p->filter, (uint32_t)p->filter_n});
    if (p->filtering)
        tui_mark(g, g->h - 1, x, 1, TUI_REVERSE, TUI_TEXT);
    else
        tui_puts(g, g->h - 1, x + (p->filter_n != 0 ? 2 : 0), g->w - x, TUI_DIM,
                 p->is_stack ? "↑↓←→ move  / filter  e edit  q back"
                             : "↑↓←→ move  / filter  q back");
}

void tui_page_draw(struct tui_page *p, struct tui_cells *g)
{
    int rows = g->h - 4;
    size_t n = count(p), skip;
    for (int y = 1; y < g->h; y++)
        tui_fill(g, y, 0, g->w, TUI_TEXT, ' ');
    if (p->top + (size_t)(rows > 0 ? rows : 0) > n)
        p->top = rows > 0 && n > (size_t)rows ? n - (size_t)rows : 0;
    skip = p->top;
    for (size_t i = 0, y = 0; i < p->lines.n && (int)y < rows; i++) {
        const struct tui_line *l = &p->lines.p[i];
        if (!passes_filter(p, l))
            continue;
        if (skip > 0)
            skip--;
        else
            tui_put(g, 2 + (int)y++, 1, g->w - 1, l->token, from_column(l->text, p->left));
    }
    draw_head(p, g);
}

static void type_filter(struct tui_page *p, int key)
{
    if (key == TUI_KEY_ENTER || key == TUI_KEY_ESC) {
        p->filter_n = key == TUI_KEY_ESC ? 0 : p->filter_n;
        p->filtering = false;
    } else if (key == TUI_KEY_BACKSPACE) {
        p->filter_n -= p->filter_n > 0;
    } else if (key >= ' ' && key < 0x7f && p->filter_n < sizeof p->filter) {
        p->filter[p->filter_n++] = (char)key;
    }
    p->top = 0;
}

static void scroll(struct tui_page *p, int key, size_t page)
{
    size_t up = p->top < page ? p->top : page;
    if (key == 'j' || key == TUI_KEY_DOWN)
        p->top++;
    else if ((key == 'k' || key == TUI_KEY_UP) && p->top > 0)
        p->top--;
    else if (key == TUI_KEY_PAGE_DOWN || key == ' ')
        p->top += page;
    else if (key == TUI_KEY_PAGE_UP)
        p->top -= up;
    else if (key == 'g' || key == TUI_KEY_HOME)
        p->top = 0;
    else if (key == 'G' || key == TUI_KEY_END)
        p->top = p->lines.n;
    else if (key == 'l' || key == TUI_KEY_RIGHT)
        p->left += SIDE_STEP;
    else if (key == 'h' || key == TUI_KEY_LEFT)
        p->left -= p->left < SIDE_STEP ? p->left : SIDE_STEP;
}

void tui_page_key(struct tui_page *p, int key, int rows)
{
    if (p->filtering)
        type_filter(p, key);
    else if (key == 'q' || key == TUI_KEY_ESC || key == TUI_KEY_ENTER || key == TUI_KEY_BACKSPACE)
        tui_page_close(p);
    else if (key == '/')
        p->filtering = true;
    else
        scroll(p, key, rows > 1 ? (size_t)rows - 1 : 1);
}

/* ---- the viewer --------------------------------------------------------------------- */

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
    tui_prompt_begin(&a->prompt, kind);
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
    if (id == TUI_TABLE && a->session->sheet == NULL && a->reader.trend == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no table here; compare, trend, memory and two runs make one");
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
    return p != NULL && a->screens[id]->show_place != NULL
               ? a->screens[id]->show_place(a, a->state[id], p, err)
               : MS_OK;
}

enum tui_screen_id tui_screen_of(const struct tui_app *a, const struct viz_place *p)
{
    static const enum tui_screen_id of[VIZ_SCREENS] = {[VIZ_OVERVIEW] = TUI_FINDINGS,
                                                       [VIZ_TIMELINE] = TUI_TIME,
                                                       [VIZ_GRAPH] = TUI_TREE,
                                                       [VIZ_TABLE] = TUI_TREE,
                                                       [VIZ_CLUSTER] = TUI_REPORT};
    const bool is_curve = p->screen == VIZ_OVERVIEW && p->query.n != 0 && a->reader.trend != NULL;
    return is_curve || (p->screen == VIZ_TABLE && a->session->sheet != NULL) ? TUI_TABLE
                                                                             : of[p->screen];
}

enum ms_rc tui_go_place(struct tui_app *a, const struct viz_place *p, struct ms_err *err)
{
    return tui_go(a, tui_screen_of(a, p), p, err);
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
