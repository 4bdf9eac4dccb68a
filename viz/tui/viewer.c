/* SPDX-License-Identifier: MIT
 *
 * tui_app: the frame, and which part of it a key is for.
 */
#include "viz/tui_app.h"

#include "probe/base/mem.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

const struct tui_screen *const tui_screens[TUI_SCREENS] = {
    &tui_findings_screen, &tui_tree_screen, &tui_time_screen, &tui_report_screen, &tui_live_screen};

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

/* ---- opening ----------------------------------------------------------------------- */

enum ms_rc tui_app_open(struct tui_app *a, struct viz_session *s, const char *live, bool ascii,
                        struct ms_err *err)
{
    *a = (struct tui_app){.session = s, .live = live, .cells.ascii = ascii, .copied.max = 1 << 16};
    MS_TRY(viz_reader_open(&a->reader, s, err));
    enum ms_rc rc = viz_findings_read(&a->findings, &a->reader, err);
    if (rc == MS_OK)
        rc = tui_go(a, live != NULL ? TUI_LIVE : TUI_FINDINGS, NULL, err);
    if (rc != MS_OK)
        tui_app_close(a);
    return rc;
}

static void close_screens(struct tui_app *a)
{
    for (int i = 0; i < TUI_SCREENS; i++) {
        if (a->state[i] != NULL)
            tui_screens[i]->close(a->state[i]);
        a->state[i] = NULL;
    }
}

void tui_app_close(struct tui_app *a)
{
    close_screens(a);
    tui_page_close(&a->page);
    viz_findings_free(&a->findings);
    viz_reader_close(&a->reader);
    tui_cells_free(&a->cells);
    ms_buf_free(&a->copied);
}

enum ms_rc tui_reopen(struct tui_app *a, struct ms_err *err)
{
    struct viz_reader fresh;
    struct viz_findings findings;
    MS_TRY(viz_reader_open(&fresh, a->session, err));
    enum ms_rc rc = viz_findings_read(&findings, &fresh, err);
    if (rc != MS_OK) {
        viz_reader_close(&fresh);
        return rc;
    }
    for (int i = 0; i < TUI_SCREENS; i++) {
        if (i == TUI_LIVE || a->state[i] == NULL) /* live keeps what it has seen */
            continue;
        tui_screens[i]->close(a->state[i]);
        a->state[i] = NULL;
        a->ready[i] = false;
    }
    viz_findings_free(&a->findings);
    viz_reader_close(&a->reader);
    a->findings = findings;
    a->reader = fresh;
    return MS_OK;
}

/* ---- going about ------------------------------------------------------------------- */

static enum ms_rc check_there(const struct tui_app *a, enum tui_screen_id id, struct ms_err *err)
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
    MS_TRY(check_there(a, id, err));
    if (a->state[id] == NULL)
        a->state[id] = tui_screens[id]->open(a, err);
    if (a->state[id] == NULL)
        return err != NULL && err->rc != MS_OK ? err->rc : MS_E_NOMEM;
    if (a->at != id)
        a->before = a->at;
    a->at = id;
    return p != NULL && tui_screens[id]->go != NULL ? tui_screens[id]->go(a, a->state[id], p, err)
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

/* ---- drawing ----------------------------------------------------------------------- */

static void draw_head(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    int x = g->w;
    tui_fill(g, 0, 0, g->w, TUI_TEXT, ' ');
    for (int i = TUI_SCREENS; i-- > 0 && g->w >= TUI_ROOMY_W;) {
        char word[32];
        if (i == TUI_LIVE && a->live == NULL)
            continue;
        int w = snprintf(word, sizeof word, "%d %s", i + 1, tui_screens[i]->name);
        x -= w + 1;
        tui_puts(g, 0, x, w, (int)a->at == i ? TUI_ACCENT : TUI_DIM, word);
        if ((int)a->at == i)
            tui_mark(g, 0, x, w, TUI_BOLD, TUI_TOKENS);
    }
    char where[TUI_WHERE_MAX] = "";
    if (tui_screens[a->at]->where != NULL && g->w >= TUI_ROOMY_W)
        tui_screens[a->at]->where(a, a->state[a->at], where);
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

/* Where there is little room one hint must do, and that more is to be seen on a larger screen. */
static void draw_hints(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    bool small = g->w < TUI_ROOMY_W || g->h < TUI_ROOMY_H;
    int x = 1, left = small ? 1 : INT_MAX;
    for (const struct tui_hint *h = tui_screens[a->at]->hints; h->keys != NULL && left > 0; h++) {
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

static void fail_to_message(struct tui_app *a, const struct ms_err *err)
{
    tui_say(a, "%s", err->msg[0] != '\0' ? err->msg : ms_rc_text(err->rc));
    a->bad = true;
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
    enum ms_rc rc = tui_screens[a->at]->draw(a, a->state[a->at], &drawing);
    if (rc != MS_OK)
        fail_to_message(a, &drawing);
    draw_head(a);
    draw_foot(a);
    if (a->page.open)
        tui_page_draw(&a->page, &a->cells);
    return MS_OK;
}

/* ---- typing a line ----------------------------------------------------------------- */

void tui_ask(struct tui_app *a, char kind)
{
    a->kind = kind;
    a->line_n = 0;
}

static void put_letter(struct tui_app *a, int key)
{
    struct ms_buf letter = {.max = 8};
    tui_put_utf8(&letter, (uint32_t)key);
    if (a->line_n + letter.n < sizeof a->line) {
        memcpy(a->line + a->line_n, letter.p, letter.n);
        a->line_n += letter.n;
    }
    ms_buf_free(&letter);
}

static void take_letter_back(struct tui_app *a)
{
    while (a->line_n > 0 && ((unsigned char)a->line[--a->line_n] & 0xc0) == 0x80)
        ;
}

static enum ms_rc line_changed(struct tui_app *a, char kind, struct ms_str text, bool done,
                               struct ms_err *err)
{
    const struct tui_screen *s = tui_screens[a->at];
    if (kind == ':')
        return done && text.p != NULL ? tui_command(a, text, err) : MS_OK;
    return s->line != NULL ? s->line(a, a->state[a->at], kind, text, done, err) : MS_OK;
}

static enum ms_rc type(struct tui_app *a, int key, struct ms_err *err)
{
    char kind = a->kind;
    bool ends =
        key == TUI_KEY_ENTER || key == TUI_KEY_ESC || (key == TUI_KEY_BACKSPACE && a->line_n == 0);
    bool cancelled = ends && key != TUI_KEY_ENTER;
    if (ends)
        a->kind = 0;
    else if (key == TUI_KEY_BACKSPACE)
        take_letter_back(a);
    else if (key == TUI_CTRL('u'))
        a->line_n = 0;
    else if (key >= ' ' && key < TUI_KEY_UP)
        put_letter(a, key);
    else
        return MS_OK;
    struct ms_str text = {a->line, (uint32_t)a->line_n};
    return line_changed(a, kind, cancelled ? MS_STR_NONE : text, ends, err);
}

/* ---- keys -------------------------------------------------------------------------- */

static enum tui_screen_id home(const struct tui_app *a)
{
    return a->live != NULL ? TUI_LIVE : TUI_FINDINGS;
}

static enum ms_rc go_back(struct tui_app *a, struct ms_err *err)
{
    if (a->at == home(a))
        a->quit = true;
    else
        return tui_go(a, home(a), NULL, err);
    return MS_OK;
}

static enum ms_rc frame_key(struct tui_app *a, int key, struct ms_err *err)
{
    if (key >= '1' && key <= '0' + TUI_SCREENS)
        return tui_go(a, (enum tui_screen_id)(key - '1'), NULL, err);
    if (key == ':')
        tui_ask(a, ':');
    else if (key == '?' || key == TUI_KEY_F1)
        return tui_help(a, err);
    else if (key == TUI_CTRL('l'))
        a->redraw = true;
    else if (key == '`')
        return tui_go(a, a->before, NULL, err);
    else if (key == 'q' || (key == TUI_KEY_ESC && a->at != home(a)))
        return go_back(a, err);
    return MS_OK;
}

static enum ms_rc route(struct tui_app *a, int key, struct ms_err *err)
{
    bool taken = false;
    if (a->page.open && key != TUI_KEY_TICK) {
        tui_page_key(&a->page, key, a->cells.h - 4);
        return MS_OK;
    }
    if (a->kind != 0 && key != TUI_KEY_TICK)
        return type(a, key, err);
    MS_TRY(tui_screens[a->at]->key(a, a->state[a->at], key, &taken, err));
    return taken ? MS_OK : frame_key(a, key, err);
}

/* The words of the screens stand at the right end of the first row. */
static int screen_at(const struct tui_app *a, int x)
{
    for (int i = TUI_SCREENS, right = a->cells.w; i-- > 0;) {
        if (i == TUI_LIVE && a->live == NULL)
            continue;
        right -= (int)strlen(tui_screens[i]->name) + 3;
        if (x >= right)
            return i;
    }
    return -1;
}

/* A click moves to a row, opens the one that is chosen, or chooses a screen; the wheel moves. */
static int key_of_mouse(struct tui_app *a, int point)
{
    const int most = (1 << TUI_POINT_BITS) - 1;
    enum tui_mouse what = (enum tui_mouse)(point >> 2 * TUI_POINT_BITS & 3);
    int y = point >> TUI_POINT_BITS & most, x = point & most;
    int id = what == TUI_CLICK && y == 0 ? screen_at(a, x) : -1;
    const struct tui_screen *s = tui_screens[a->at];
    if (what == TUI_WHEEL_UP || what == TUI_WHEEL_DOWN)
        return what == TUI_WHEEL_UP ? TUI_KEY_UP : TUI_KEY_DOWN;
    if (a->page.open || a->kind != 0 || y >= a->cells.h - 2)
        return TUI_KEY_NONE;
    if (id >= 0)
        return '1' + id;
    bool opens = s->click != NULL && s->click(a, a->state[a->at], y, x, what == TUI_DRAG);
    return opens && what == TUI_CLICK ? TUI_KEY_ENTER : TUI_KEY_NONE;
}

void tui_app_key(struct tui_app *a, int key)
{
    struct ms_err err = {0};
    if (key >= TUI_KEY_POINT)
        key = key_of_mouse(a, key);
    if (key == TUI_KEY_CLOSED || key == TUI_CTRL('c'))
        a->quit = true;
    if (key == TUI_KEY_NONE || key == TUI_KEY_CLOSED)
        return;
    if (key != TUI_KEY_TICK)
        a->message[0] = '\0';
    if (route(a, key, &err) != MS_OK)
        fail_to_message(a, &err);
}

/* Screens that were not looked at yet are made ready; one that cannot be says so when it is shown.
 * A running job is read anew all the time: nothing keeps there. */
static bool work_ahead(struct tui_app *a)
{
    for (int i = 0; i < TUI_SCREENS && a->live == NULL; i++) {
        const struct tui_screen *s = tui_screens[i];
        bool more = false;
        if (i == TUI_LIVE || a->ready[i] || check_there(a, (enum tui_screen_id)i, NULL) != MS_OK)
            continue;
        if (a->state[i] == NULL)
            a->state[i] = s->open(a, NULL);
        else if (s->ahead != NULL && s->ahead(a, a->state[i], &more, NULL) == MS_OK && more)
            return true;
        else
            a->ready[i] = true;
        a->ready[i] = a->ready[i] || a->state[i] == NULL;
        return true;
    }
    return false;
}

bool tui_app_work(struct tui_app *a)
{
    const struct tui_screen *s = tui_screens[a->at];
    struct ms_err err = {0};
    bool more = false;
    if (a->quit || a->state[a->at] == NULL)
        return false;
    if (s->work == NULL || s->work(a, a->state[a->at], &more, &err) == MS_OK)
        return more || work_ahead(a);
    fail_to_message(a, &err);
    return false;
}

enum ms_rc tui_app_script(struct tui_app *a, struct ms_str script, int w, int h, struct ms_err *err)
{
    struct ms_str line;
    unsigned at = 0;
    MS_TRY(tui_app_draw(a, w, h, err));
    while (!a->quit && ms_str_split(&script, '\n', &line)) {
        at++;
        while (!a->quit && line.n != 0 && line.p[0] != '#') {
            int key;
            if (tui_key_read(&line, &key, err) != MS_OK)
                return ms_err_wrap(err, "script, line %u", at);
            tui_app_key(a, key);
            do
                MS_TRY(tui_app_draw(a, w, h, err));
            while (tui_app_work(a));
            MS_TRY(tui_app_draw(a, w, h, err));
        }
    }
    return MS_OK;
}
