/* SPDX-License-Identifier: MIT
 *
 * viewer: opens the screens, dispatches each key, executes commands and draws the frame.
 */
#include "viz/tui/viewer.h"

#include "probe/base/io.h"
#include "probe/base/nearest.h"
#include "viz/tui/editor.h"
#include "viz/tui/query.h"
#include "viz/tui/tree_state.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

static const struct tui_screen *const screens[TUI_SCREENS] = {
    &tui_findings_screen, &tui_tree_screen, &tui_time_screen,
    &tui_report_screen,   &tui_live_screen, &tui_table_screen};

/* ---- the rows around a screen ------------------------------------------------------- */

/* A screen that has nothing to show here is dim; its key says why. */
static enum tui_token token_of_screen(const struct tui_app *a, enum tui_screen_id id)
{
    if (a->at == id)
        return TUI_ACCENT;
    return tui_check_screen(a, id, NULL) == MS_OK ? TUI_TEXT : TUI_DIM;
}

/* Few things are live or a table, so these are named only where they are. */
static bool is_left_out(const struct tui_app *a, int id)
{
    return (id == TUI_LIVE || id == TUI_TABLE) &&
           tui_check_screen(a, (enum tui_screen_id)id, NULL) != MS_OK;
}

static void draw_head(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    int x = g->w;
    tui_fill(g, 0, 0, g->w, TUI_TEXT, ' ');
    for (int i = TUI_SCREENS; i-- > 0 && g->w >= TUI_ROOMY_W;) {
        char word[32];
        if (is_left_out(a, i))
            continue;
        int w = snprintf(word, sizeof word, "%d %s", i + 1, a->screens[i]->name);
        x -= w + 1;
        tui_puts(g, 0, x, w, token_of_screen(a, (enum tui_screen_id)i), word);
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

static void draw_message(struct tui_app *a)
{
    struct tui_cells *g = &a->cells;
    if (a->message[0] == '\0')
        return;
    tui_fill(g, g->h - 2, 0, g->w, TUI_TEXT, ' ');
    tui_puts(g, g->h - 2, 1, g->w - 2, a->bad ? TUI_ERROR : TUI_TEXT, a->message);
}

static void draw_foot(struct tui_app *a)
{
    if (a->prompt.kind != 0)
        tui_prompt_draw(&a->prompt, &a->cells);
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
    draw_message(a);
    return MS_OK;
}

/* ---- commands after ":" ------------------------------------------------------------- */

enum { KEYS_W = 17, FILE_MAX = 256 << 20 };

/* ---- files ------------------------------------------------------------------------- */

static enum ms_rc write_text(struct tui_app *a, const char *path, const struct ms_buf *text,
                             struct ms_err *err)
{
    struct ms_out *out;
    MS_TRY(ms_buf_check(text, err));
    MS_TRY(ms_out_create(&out, path, err));
    ms_out_write(out, text->p, text->n);
    MS_TRY(ms_out_commit(out, err));
    tui_say(a, "wrote %s", path);
    return MS_OK;
}

enum form { FORM_TEXT, FORM_LOOKS, FORM_SVG };

/* Writes the screen as it was before the command line was opened. */
static enum ms_rc write_screen(struct tui_app *a, const char *path, enum form form,
                               struct ms_err *err)
{
    struct ms_buf text = {.max = FILE_MAX};
    enum ms_rc rc = tui_app_draw(a, a->cells.w, a->cells.h, err);
    if (form == FORM_SVG)
        tui_cells_svg(&a->cells, &text);
    else
        tui_cells_write(&a->cells, form == FORM_LOOKS, &text);
    if (rc == MS_OK)
        rc = write_text(a, path, &text, err);
    ms_buf_free(&text);
    return rc;
}

static enum ms_rc save_screen(struct tui_app *a, const char *path, struct ms_err *err)
{
    const bool is_svg = ms_str_ends(ms_str_of(path), MS_STR(".svg"));
    return write_screen(a, path, is_svg ? FORM_SVG : FORM_TEXT, err);
}

static enum ms_rc save_looks(struct tui_app *a, const char *path, struct ms_err *err)
{
    return write_screen(a, path, FORM_LOOKS, err);
}

static enum ms_rc export_list(struct tui_app *a, const char *path, struct ms_err *err)
{
    const struct tui_screen *s = a->screens[a->at];
    struct ms_buf text = {.max = FILE_MAX};
    if (s->export == NULL)
        return ms_fail(err, MS_E_UNSUPPORTED, "this screen has nothing to export");
    enum ms_rc rc = s->export(a, a->state[a->at], &text, err);
    if (rc == MS_OK)
        rc = write_text(a, path, &text, err);
    ms_buf_free(&text);
    return rc;
}

/* ---- places ------------------------------------------------------------------------ */

static enum ms_rc go_to(struct tui_app *a, const char *text, struct ms_err *err)
{
    struct ms_buf scratch = {.max = 1 << 16};
    struct viz_place p;
    enum ms_rc rc = viz_place_read(&p, ms_str_of(text), &scratch, err);
    if (rc == MS_OK)
        rc = tui_go_place(a, &p, err);
    ms_buf_free(&scratch);
    return rc;
}

/* Parses "rank 1" or "step 3". */
static enum ms_rc set_place(struct tui_app *a, const char *text, struct ms_err *err)
{
    struct viz_place p = viz_place_of(a->at == TUI_TREE ? VIZ_GRAPH : VIZ_TIMELINE);
    struct ms_str rest = ms_str_of(text), what;
    int64_t v;
    (void)ms_str_split(&rest, ' ', &what);
    bool rank = ms_str_is(what, "rank"), step = ms_str_is(what, "step");
    if ((!rank && !step) || !ms_str_i64(rest, &v) || v < 0)
        return ms_fail(err, MS_E_ARG, "':set rank N' or ':set step N', not '%s'", text);
    *(rank ? &p.rank : &p.step) = v;
    return tui_go_place(a, &p, err);
}

/* ---- commands ----------------------------------------------------------------------- */

/* Ends the viewer; with changes that are not written, only when it is asked for once more. */
static void end_viewer(struct tui_app *a, const char *again)
{
    const uint64_t n = viz_changes_count(a->session);
    a->quit = n == 0 || a->is_end_asked;
    a->is_end_asked = true;
    if (!a->quit)
        tui_say(a, "%" PRIu64 " change%s not written: :write keeps %s, %s ends without", n,
                n == 1 ? " is" : "s are", n == 1 ? "it" : "them", again);
}

static enum ms_rc quit_viewer(struct tui_app *a, const char *text, struct ms_err *err)
{
    (void)text;
    (void)err;
    end_viewer(a, ":quit!");
    return MS_OK;
}

static enum ms_rc quit_anyway(struct tui_app *a, const char *text, struct ms_err *err)
{
    (void)text;
    (void)err;
    a->quit = true;
    return MS_OK;
}

static enum ms_rc show_help(struct tui_app *a, const char *text, struct ms_err *err);

static const struct {
    const char *name, *what; /* what: name of the argument; NULL: none */
    enum ms_rc (*run)(struct tui_app *a, const char *text, struct ms_err *err);
    const char *help;
} commands[] = {
    {"goto", "PLACE", go_to, "go to a place, such as graph?rank=1&node=NAME"},
    {"set", "rank N", set_place, "another rank, or another step"},
    {"export", "FILE", export_list, "write what the screen lists as CSV"},
    {"sql", "QUERY", tui_query_ask,
     "ask the database of the screen; nothing can be changed; a key ends it"},
    {"save-screen", "FILE", save_screen,
     "write the screen as text, or as a picture where FILE ends in .svg"},
    {"save-looks", "FILE", save_looks, "the same, each line followed by its colours as letters"},
    {"write", NULL, tui_tree_write,
     "keep the pairs matched by hand in NAME.edited.vis.db, or in the file named behind"},
    {"write!", NULL, tui_tree_write_over, "the same in the file that was opened"},
    {"save-matches", NULL, tui_tree_save_matches,
     "keep the pairs matched by hand in a file beside the graph"},
    {"apply-matches", "FILE", tui_tree_apply_matches, "match the pairs of such a file"},
    {"help", NULL, show_help, "this page"},
    {"quit", NULL, quit_viewer, "end, unless pairs matched by hand are not written"},
    {"quit!", NULL, quit_anyway, "end, and let go of them"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Tells whether a name begins with the word; both end with "!" or none of them does. */
static bool is_begun(struct ms_str name, struct ms_str word)
{
    const struct ms_str bang = MS_STR("!");
    const bool is_forced = ms_str_ends(word, bang);
    return is_forced == ms_str_ends(name, bang) &&
           ms_str_starts(name, ms_str_sub(word, 0, word.n - is_forced));
}

/* Finds the only command that begins with the word; -1: none or ambiguous. */
static int find_command(struct ms_str word)
{
    int found = -1;
    for (int i = 0; i < COMMANDS; i++) {
        if (ms_str_is(word, commands[i].name))
            return i;
        if (word.n != 0 && is_begun(ms_str_of(commands[i].name), word))
            found = found == -1 ? i : COMMANDS;
    }
    return found < COMMANDS ? found : -1;
}

static enum ms_rc fail_unknown(const char *word, struct ms_err *err)
{
    struct ms_near near = {.word = word};
    for (int i = 0; i < COMMANDS; i++)
        ms_near_offer(&near, commands[i].name);
    return ms_fail(err, MS_E_ARG, "there is no command ':%s'; %s%s", word,
                   near.best != NULL ? "did you mean :" : "':help' lists them",
                   near.best != NULL ? near.best : "");
}

/* Executes the command line typed after ":". */
static enum ms_rc execute_command(struct tui_app *a, struct ms_str line, struct ms_err *err)
{
    char text[TUI_LINE_MAX];
    snprintf(text, sizeof text, "%.*s", MS_STR_ARG(line));
    char *rest = strchr(text, ' ');
    if (rest != NULL)
        *rest++ = '\0';
    if (text[0] == '\0')
        return MS_OK;
    int i = find_command(ms_str_of(text));
    if (i < 0)
        return fail_unknown(text, err);
    if (commands[i].what != NULL && (rest == NULL || *rest == '\0'))
        return ms_fail(err, MS_E_ARG, "':%s %s' is what is expected", commands[i].name,
                       commands[i].what);
    return commands[i].run(a, rest, err);
}

/* ---- help -------------------------------------------------------------------------- */

static const struct tui_hint frame_hints[] = {
    {"anywhere", NULL, NULL},
    {"1 2 3 4 5 6", "findings, tree, timeline, report, live, table", NULL},
    {"j k PgDn PgUp g G", "move, a page, top, bottom", NULL},
    {"`", "the screen before", NULL},
    {":", "a command", NULL},
    {"? F1", "this page; / filters it", NULL},
    {"Ctrl-L", "draw the screen again", NULL},
    {"Ctrl-Z", "back to the shell; fg returns", NULL},
    {"q Esc", "back, and with q from the first screen out", NULL},
    {NULL, NULL, NULL},
};

/* Pads by columns: arrows have more bytes than columns. */
static enum ms_rc put_keys(struct tui_page *p, const struct tui_hint *h, struct ms_err *err)
{
    int room = KEYS_W - tui_text_width(ms_str_of(h->keys));
    return tui_page_addf(p, TUI_TEXT, err, "  %s%*s %s", h->keys, room > 0 ? room : 0, "", h->text);
}

static enum ms_rc put_hints(struct tui_page *p, const struct tui_hint *h, struct ms_err *err)
{
    for (; h->keys != NULL; h++) {
        if (h->text == NULL)
            MS_TRY(tui_page_addf(p, TUI_ACCENT, err, "%s", h->keys));
        else
            MS_TRY(put_keys(p, h, err));
    }
    return MS_OK;
}

/* Opens the page that lists the keys of the screen and all commands. */
static enum ms_rc show_help(struct tui_app *a, const char *text, struct ms_err *err)
{
    char title[64];
    (void)text;
    snprintf(title, sizeof title, "keys of %s", a->screens[a->at]->name);
    MS_TRY(tui_page_open(&a->page, title, err));
    MS_TRY(put_hints(&a->page, a->screens[a->at]->hints, err));
    MS_TRY(put_hints(&a->page, frame_hints, err));
    MS_TRY(tui_page_addf(&a->page, TUI_ACCENT, err, "commands"));
    for (int i = 0; i < COMMANDS; i++)
        MS_TRY(tui_page_addf(&a->page, TUI_TEXT, err, "  :%-11s %-8s %s", commands[i].name,
                             commands[i].what != NULL ? commands[i].what : "", commands[i].help));
    return MS_OK;
}

/* ---- opening ----------------------------------------------------------------------- */

/* What q leads back to: what is asked for most of what was opened. */
static enum tui_screen_id home_screen(const struct tui_app *a)
{
    return a->live != NULL ? TUI_LIVE : a->session->sheet != NULL ? TUI_TABLE : TUI_FINDINGS;
}

enum ms_rc tui_app_open(struct tui_app *a, struct viz_session *s, const char *live, bool ascii,
                        struct ms_err *err)
{
    *a = (struct tui_app){.screens = screens,
                          .session = s,
                          .live = live,
                          .cells.ascii = ascii,
                          .input = -1,
                          .copied.max = 1 << 16};
    MS_TRY(viz_reader_open(&a->reader, s, err));
    enum ms_rc rc = viz_findings_read(&a->findings, &a->reader, VIZ_ENGLISH, err);
    if (rc == MS_OK)
        rc = tui_go(a, home_screen(a), NULL, err);
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

static enum ms_rc line_changed(struct tui_app *a, char kind, struct ms_str text, bool done,
                               struct ms_err *err)
{
    const struct tui_screen *s = a->screens[a->at];
    if (kind == ':')
        return done && text.p != NULL ? execute_command(a, text, err) : MS_OK;
    return s->line != NULL ? s->line(a, a->state[a->at], kind, text, done, err) : MS_OK;
}

static enum ms_rc type_key(struct tui_app *a, int key, struct ms_err *err)
{
    const char kind = a->prompt.kind;
    const enum tui_typed typed = tui_prompt_key(&a->prompt, key);
    if (typed == TUI_SAME)
        return MS_OK;
    return line_changed(a, kind, typed == TUI_CANCELLED ? MS_STR_NONE : tui_prompt_text(&a->prompt),
                        typed != TUI_CHANGED, err);
}

/* ---- keys -------------------------------------------------------------------------- */

static enum ms_rc go_back(struct tui_app *a, struct ms_err *err)
{
    if (a->at == home_screen(a))
        end_viewer(a, "q again");
    else
        return tui_go(a, home_screen(a), NULL, err);
    return MS_OK;
}

static enum ms_rc frame_key(struct tui_app *a, int key, struct ms_err *err)
{
    if (key >= '1' && key <= '0' + TUI_SCREENS)
        return tui_go(a, (enum tui_screen_id)(key - '1'), NULL, err);
    if (key == ':')
        tui_ask(a, ':');
    else if (key == '?' || key == TUI_KEY_F1)
        return show_help(a, NULL, err);
    else if (key == TUI_CTRL('l'))
        a->redraw = true;
    else if (key == '`')
        return tui_go(a, a->before, NULL, err);
    else if (key == 'q' || (key == TUI_KEY_ESC && a->at != home_screen(a)))
        return go_back(a, err);
    return MS_OK;
}

static enum ms_rc route_key(struct tui_app *a, int key, struct ms_err *err)
{
    bool taken = false;
    if (a->page.open && a->page.is_stack && !a->page.filtering && key == 'e')
        return tui_editor_choose(&a->page, &a->edit, err);
    if (a->page.open && key != TUI_KEY_TICK) {
        tui_page_key(&a->page, key, a->cells.h - 4);
        return MS_OK;
    }
    if (a->prompt.kind != 0 && key != TUI_KEY_TICK)
        return type_key(a, key, err);
    MS_TRY(a->screens[a->at]->key(a, a->state[a->at], key, &taken, err));
    return taken ? MS_OK : frame_key(a, key, err);
}

/* Returns the screen whose name is at column x; the names end at the right edge of the first
 * row. */
static int screen_at(const struct tui_app *a, int x)
{
    for (int i = TUI_SCREENS, right = a->cells.w; i-- > 0;) {
        if (is_left_out(a, i))
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
    if (a->page.open || a->prompt.kind != 0 || y >= a->cells.h - 2)
        return TUI_KEY_NONE;
    if (id >= 0)
        return '1' + id;
    bool opens = s->click != NULL && s->click(a, a->state[a->at], y, x, what == TUI_DRAG);
    return opens && what == TUI_CLICK ? TUI_KEY_ENTER : TUI_KEY_NONE;
}

/* Pasted text is a part of the line that is typed; its ends of lines are spaces there. */
static int key_of_paste(struct tui_app *a, int key)
{
    if (a->prompt.kind == 0 && !(a->page.open && a->page.filtering)) {
        tui_say(a, "pasted text belongs into a line: type : or / first");
        return TUI_KEY_NONE;
    }
    if (key == TUI_KEY_ENTER || key == TUI_KEY_TAB)
        return ' ';
    return key >= ' ' && key < TUI_KEY_UP && key != TUI_KEY_BACKSPACE ? key : TUI_KEY_NONE;
}

void tui_app_key(struct tui_app *a, int key)
{
    struct ms_err err = {0};
    if (a->is_key_spent && key != TUI_KEY_CLOSED && key != TUI_KEY_TICK) {
        a->is_key_spent = false;
        return;
    }
    if ((key & TUI_KEY_PASTED) != 0)
        key = key_of_paste(a, key & ~TUI_KEY_PASTED);
    if (key >= TUI_KEY_POINT)
        key = key_of_mouse(a, key);
    if (key == TUI_KEY_CLOSED || key == TUI_CTRL('c'))
        a->quit = true;
    if (key == TUI_KEY_NONE || key == TUI_KEY_CLOSED)
        return;
    if (key != TUI_KEY_TICK) {
        a->message[0] = '\0';
        a->is_end_asked = a->is_end_asked && key == 'q';
    }
    if (route_key(a, key, &err) != MS_OK)
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
    if (tui_query_waits(a)) {
        if (tui_query_run(a, &err) != MS_OK)
            tui_say_error(a, &err);
        return false;
    }
    if (s->work == NULL || s->work(a, a->state[a->at], &more, &err) == MS_OK)
        return more || work_ahead(a);
    tui_say_error(a, &err);
    return false;
}

/* Without a terminal no editor starts: what it would show is said. */
static void say_spot(struct tui_app *a)
{
    if (a->edit.line == 0)
        return;
    tui_say(a, "the editor shows line %" PRId64 " of %s", a->edit.line, a->edit.path);
    a->edit.line = 0;
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
            say_spot(a);
            do
                MS_TRY(tui_app_draw(a, w, h, err));
            while (tui_app_work(a));
            MS_TRY(tui_app_draw(a, w, h, err));
        }
    }
    return MS_OK;
}
