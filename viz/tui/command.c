/* SPDX-License-Identifier: MIT
 *
 * command: what is typed behind ":", and the page of keys.
 */
#include "viz/tui/command.h"

#include "viz/tui/tree_match.h"
#include "viz/tui/viewer.h"

#include "mstx/rundb/events_table.h"
#include "probe/base/io.h"
#include "probe/base/nearest.h"
#include "probe/base/store.h"

#include <stdio.h>

enum { SQL_ROWS = 10000, SQL_MS = 10000, SQL_CELL = 60, KEYS_W = 17, FILE_MAX = 256 << 20 };

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

/* The screen as it was before the line was typed. */
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

/* "rank 1", "step 3" */
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

static enum ms_rc put_row(struct tui_page *page, struct ms_stmt *st, bool names, struct ms_err *err)
{
    struct ms_buf line = {.max = 1 << 20};
    for (int i = 0; i < ms_stmt_columns(st); i++) {
        struct ms_str s = names ? ms_str_of(ms_stmt_column_name(st, i)) : ms_stmt_get_str(st, i);
        if (i != 0)
            ms_buf_puts(&line, "  ");
        ms_buf_str(&line, ms_str_sub(s, 0, SQL_CELL));
        for (uint32_t k = s.n; k < 12; k++)
            ms_buf_putc(&line, ' ');
    }
    enum ms_rc rc = tui_page_add(page, names ? TUI_ACCENT : TUI_TEXT, ms_buf_slice(&line), err);
    ms_buf_free(&line);
    return rc;
}

static enum ms_rc put_rows(struct tui_page *page, struct ms_stmt *st, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    MS_TRY(put_row(page, st, true, err));
    for (int n = 0; ms_stmt_next(st, &rc, err); n++) {
        if (n == SQL_ROWS)
            return tui_page_addf(page, TUI_WARNING, err, "more rows than %d; add a LIMIT",
                                 SQL_ROWS);
        rc = put_row(page, st, false, err);
    }
    return rc;
}

static enum ms_rc show_query(struct tui_app *a, struct ms_store *s, const char *query,
                             struct ms_err *err)
{
    struct ms_stmt *st;
    ms_store_set_limit_ms(s, SQL_MS);
    enum ms_rc rc = ms_store_prepare(s, &st, query, err);
    if (rc == MS_OK) {
        rc = tui_page_open(&a->page, query, err);
        if (rc == MS_OK)
            rc = put_rows(&a->page, st, err);
        ms_stmt_free(st);
    }
    if (rc != MS_OK)
        tui_page_close(&a->page);
    ms_store_set_limit_ms(s, 0);
    return rc;
}

/* Of the database that the screen shows. */
static enum ms_rc query_database(struct tui_app *a, const char *query, struct ms_err *err)
{
    bool graph = a->reader.tl == NULL || (a->at == TUI_TREE && a->reader.graph != NULL);
    if (!graph) {
        MS_TRY(mstx_tl_add_events(a->reader.tl, err));
        return show_query(a, mstx_tl_store(a->reader.tl), query, err);
    }
    struct ms_store *s;
    MS_TRY(ms_store_open(&s, a->reader.graph_path, err));
    enum ms_rc rc = show_query(a, s, query, err);
    ms_store_close(s);
    return rc;
}

/* ---- which one --------------------------------------------------------------------- */

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
    const char *name, *what; /* what it wants; NULL: nothing */
    enum ms_rc (*run)(struct tui_app *a, const char *text, struct ms_err *err);
    const char *help;
} commands[] = {
    {"goto", "PLACE", go_to, "go to a place, such as graph?rank=1&node=NAME"},
    {"set", "rank N", set_place, "another rank, or another step"},
    {"export", "FILE", export_list, "write what the screen lists as CSV"},
    {"sql", "QUERY", query_database, "ask the database of the screen; nothing can be changed"},
    {"save-screen", "FILE", save_screen, "write the screen as text"},
    {"save-looks", "FILE", save_looks, "the same, each line followed by its colours as letters"},
    {"save-matches", NULL, tui_tree_save_matches,
     "keep the pairs matched by hand in a file beside the graph"},
    {"apply-matches", "FILE", tui_tree_apply_matches, "match the pairs of such a file"},
    {"help", NULL, show_help, "this page"},
    {"quit", NULL, quit_viewer, "end"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* The command that begins with the word; -1: none, or several. */
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

/* Arrows take more bytes than columns. */
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
