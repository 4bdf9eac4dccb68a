/* SPDX-License-Identifier: MIT
 *
 * command: the commands after ":", and the page of keys.
 */
#include "viz/tui/command.h"

#include "viz/tui/tree_match.h"
#include "viz/tui/viewer.h"

#include "probe/base/io.h"
#include "probe/base/jread.h"
#include "probe/base/nearest.h"
#include "viz/model/statement.h"

#include <stdio.h>

enum { SQL_ROWS = 10000, SQL_SECONDS = 10, SQL_CELL = 60, KEYS_W = 17, FILE_MAX = 256 << 20 };

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

/* Writes the screen as it was before the command line was opened. */
static enum ms_rc write_screen(struct tui_app *a, const char *path, bool looks, struct ms_err *err)
{
    struct ms_buf text = {.max = FILE_MAX};
    enum ms_rc rc = tui_app_draw(a, a->cells.w, a->cells.h, err);
    tui_cells_write(&a->cells, looks, &text);
    if (rc == MS_OK)
        rc = write_text(a, path, &text, err);
    ms_buf_free(&text);
    return rc;
}

static enum ms_rc save_screen(struct tui_app *a, const char *path, struct ms_err *err)
{
    return write_screen(a, path, false, err);
}

static enum ms_rc save_looks(struct tui_app *a, const char *path, struct ms_err *err)
{
    return write_screen(a, path, true, err);
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

/* ---- SQL --------------------------------------------------------------------------- */

/* Appends a cell of the answer as text. */
static enum ms_rc put_cell(struct ms_buf *line, const struct ms_jread *r, enum ms_jtok tok,
                           struct ms_buf *scratch, struct ms_err *err)
{
    struct ms_str s = MS_STR("");
    if (tok == MS_J_STR)
        MS_TRY(ms_jread_text(r, scratch, &s, err));
    else if (tok == MS_J_NUM)
        s = r->text;
    if (line->n != 0)
        ms_buf_puts(line, "  ");
    ms_buf_str(line, ms_str_sub(s, 0, SQL_CELL));
    for (uint32_t k = s.n; k < 12; k++)
        ms_buf_putc(line, ' ');
    return ms_buf_check(line, err);
}

/* Adds one row; the reader is behind its opening bracket. */
static enum ms_rc put_row(struct tui_page *page, struct ms_jread *r, enum tui_token look,
                          struct ms_err *err)
{
    struct ms_buf line = {.max = 1 << 20}, scratch = {.max = 1 << 20};
    enum ms_rc rc = MS_OK;
    enum ms_jtok tok;
    while (rc == MS_OK && (tok = ms_jread_next(r)) > MS_J_END && tok != MS_J_ARR_END)
        rc = put_cell(&line, r, tok, &scratch, err);
    if (rc == MS_OK)
        rc = tui_page_add(page, look, ms_buf_slice(&line), err);
    ms_buf_free(&line);
    ms_buf_free(&scratch);
    return rc;
}

static enum ms_rc put_rows(struct tui_page *page, struct ms_jread *r, struct ms_err *err)
{
    while (ms_jread_next(r) == MS_J_ARR)
        MS_TRY(put_row(page, r, TUI_TEXT, err));
    return MS_OK;
}

/* Adds the answer, in the format of viz_statement_run. */
static enum ms_rc put_answer(struct tui_page *page, struct ms_str answer, struct ms_err *err)
{
    struct ms_jread r;
    bool more = false;
    ms_jread_init(&r, answer.p, answer.n, 0);
    enum ms_jtok tok = ms_jread_next(&r);
    while (tok > MS_J_END && (tok = ms_jread_next(&r)) == MS_J_KEY) {
        const struct ms_str key = r.text;
        tok = ms_jread_next(&r);
        if (ms_str_is(key, "columns"))
            MS_TRY(put_row(page, &r, TUI_ACCENT, err));
        else if (ms_str_is(key, "rows"))
            MS_TRY(put_rows(page, &r, err));
        else
            more = tok == MS_J_TRUE;
    }
    if (tok == MS_J_ERR)
        return ms_jread_fail(&r, err);
    return more ? tui_page_addf(page, TUI_WARNING, err, "more rows than %d; add a LIMIT", SQL_ROWS)
                : MS_OK;
}

/* Queries the database of the current screen. */
static enum ms_rc query_database(struct tui_app *a, const char *query, struct ms_err *err)
{
    const bool graph = a->reader.tl == NULL || (a->at == TUI_TREE && a->reader.graph != NULL);
    const struct viz_statement q = {.db = graph ? viz_session_graph(a->session)
                                                : a->session->timeline,
                                    .sql = ms_str_of(query),
                                    .rows = SQL_ROWS,
                                    .seconds = SQL_SECONDS,
                                    .until_gone = -1,
                                    .until_readable = -1};
    struct ms_buf answer = {.max = FILE_MAX};
    enum ms_rc rc = viz_statement_run(&q, &answer, err);
    if (rc == MS_OK)
        rc = tui_page_open(&a->page, query, err);
    if (rc == MS_OK)
        rc = put_answer(&a->page, ms_buf_slice(&answer), err);
    if (rc != MS_OK)
        tui_page_close(&a->page);
    ms_buf_free(&answer);
    return rc;
}

/* ---- commands ----------------------------------------------------------------------- */

static enum ms_rc quit_viewer(struct tui_app *a, const char *text, struct ms_err *err)
{
    (void)text;
    (void)err;
    a->quit = true;
    return MS_OK;
}

static enum ms_rc show_help(struct tui_app *a, const char *text, struct ms_err *err)
{
    (void)text;
    return tui_help(a, err);
}

static const struct {
    const char *name, *what; /* what: name of the argument; NULL: none */
    enum ms_rc (*run)(struct tui_app *a, const char *text, struct ms_err *err);
    const char *help;
} commands[] = {
    {"goto", "PLACE", go_to, "go to a place, such as graph?rank=1&node=NAME"},
    {"set", "rank N", set_place, "another rank, or another step"},
    {"export", "FILE", export_list, "write what the screen lists as CSV"},
    {"sql", "QUERY", query_database, "ask the database of the screen; nothing can be changed"},
    {"save-screen", "FILE", save_screen, "write the screen as text"},
    {"save-looks", "FILE", save_looks, "the same, each line followed by its colours as letters"},
    {"write", NULL, tui_tree_write,
     "keep the pairs matched by hand in NAME.edited.vis.db, or in the file named behind"},
    {"write!", NULL, tui_tree_write_over, "the same in the file that was opened"},
    {"save-matches", NULL, tui_tree_save_matches,
     "keep the pairs matched by hand in a file beside the graph"},
    {"apply-matches", "FILE", tui_tree_apply_matches, "match the pairs of such a file"},
    {"help", NULL, show_help, "this page"},
    {"quit", NULL, quit_viewer, "end"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Finds the only command that begins with the word; -1: none or ambiguous. */
static int find_command(struct ms_str word)
{
    int found = -1;
    for (int i = 0; i < COMMANDS; i++) {
        if (ms_str_is(word, commands[i].name))
            return i;
        if (word.n != 0 && ms_str_starts(ms_str_of(commands[i].name), word))
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

enum ms_rc tui_command(struct tui_app *a, struct ms_str line, struct ms_err *err)
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
    {"1 2 3 4 5", "findings, tree, timeline, report, live", NULL},
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

enum ms_rc tui_help(struct tui_app *a, struct ms_err *err)
{
    char title[64];
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
