/* SPDX-License-Identifier: MIT
 *
 * viewer: opens the screens and dispatches each key.
 */
#include "viz/tui/viewer.h"

#include "viz/tui/command.h"

static const struct tui_screen *const screens[TUI_SCREENS] = {
    &tui_findings_screen, &tui_tree_screen, &tui_time_screen, &tui_report_screen, &tui_live_screen};

/* ---- opening ----------------------------------------------------------------------- */

enum ms_rc tui_app_open(struct tui_app *a, struct viz_session *s, const char *live, bool ascii,
                        struct ms_err *err)
{
    *a = (struct tui_app){.screens = screens,
                          .session = s,
                          .live = live,
                          .cells.ascii = ascii,
                          .copied.max = 1 << 16};
    MS_TRY(viz_reader_open(&a->reader, s, err));
    enum ms_rc rc = viz_findings_read(&a->findings, &a->reader, VIZ_ENGLISH, err);
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
            a->screens[i]->close(a->state[i]);
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

/* ---- typing a line ----------------------------------------------------------------- */

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
    const struct tui_screen *s = a->screens[a->at];
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
    MS_TRY(a->screens[a->at]->key(a, a->state[a->at], key, &taken, err));
    return taken ? MS_OK : frame_key(a, key, err);
}

/* Returns the screen whose name is at column x; the names end at the right edge of the first
 * row. */
static int screen_at(const struct tui_app *a, int x)
{
    for (int i = TUI_SCREENS, right = a->cells.w; i-- > 0;) {
        if (i == TUI_LIVE && a->live == NULL)
            continue;
        right -= (int)strlen(a->screens[i]->name) + 3;
        if (x >= right)
            return i;
    }
    return -1;
}

/* Translates a mouse event: a click selects a row, opens the selected one, or chooses a screen;
 * the wheel moves. */
static int key_of_mouse(struct tui_app *a, int point)
{
    const int most = (1 << TUI_POINT_BITS) - 1;
    enum tui_mouse what = (enum tui_mouse)(point >> 2 * TUI_POINT_BITS & 3);
    int y = point >> TUI_POINT_BITS & most, x = point & most;
    int id = what == TUI_CLICK && y == 0 ? screen_at(a, x) : -1;
    const struct tui_screen *s = a->screens[a->at];
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
        tui_say_error(a, &err);
}

/* Prepares screens not yet shown; a failure is reported when the screen is shown. Not for a
 * running job, whose data changes all the time. */
static bool work_ahead(struct tui_app *a)
{
    for (int i = 0; i < TUI_SCREENS && a->live == NULL; i++) {
        const struct tui_screen *s = a->screens[i];
        bool more = false;
        if (i == TUI_LIVE || a->ready[i] ||
            tui_check_screen(a, (enum tui_screen_id)i, NULL) != MS_OK)
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
    const struct tui_screen *s = a->screens[a->at];
    struct ms_err err = {0};
    bool more = false;
    if (a->quit || a->state[a->at] == NULL)
        return false;
    if (s->work == NULL || s->work(a, a->state[a->at], &more, &err) == MS_OK)
        return more || work_ahead(a);
    tui_say_error(a, &err);
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
