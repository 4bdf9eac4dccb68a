/* SPDX-License-Identifier: MIT
 *
 * query: see the header.
 */
#include "viz/tui/query.h"

#include "probe/base/jread.h"
#include "viz/model/statement.h"

#include <poll.h>
#include <stdio.h>

enum {
    ROWS = 10000,
    SECONDS = 600,
    SECONDS_OF_SCRIPT = 10,
    CELL_MAX = 60,
    COLUMNS_MAX = 256,
    ANSWER_MAX = 256 << 20
};

/* The widths of the columns, found in a first pass over the answer. */
struct table {
    struct tui_page *page; /* NULL: the first pass */
    int width[COLUMNS_MAX];
    bool is_number[COLUMNS_MAX];
    struct ms_buf line, scratch;
};

/* ---- cells and rows ------------------------------------------------------------------------- */

static enum ms_rc text_of_cell(struct table *t, const struct ms_jread *r, enum ms_jtok tok,
                               struct ms_str *text, struct ms_err *err)
{
    *text = tok == MS_J_NUM ? r->text : MS_STR("");
    if (tok == MS_J_STR)
        MS_TRY(ms_jread_text(r, &t->scratch, text, err));
    *text = ms_str_sub(*text, 0, CELL_MAX);
    return MS_OK;
}

static void measure_cell(struct table *t, size_t column, enum ms_jtok tok, struct ms_str text)
{
    const int w = tui_text_width(text);
    t->width[column] = w > t->width[column] ? w : t->width[column];
    t->is_number[column] = t->is_number[column] || tok == MS_J_NUM;
}

/* Numbers end at their column's end, texts begin at its beginning. */
static void put_cell(struct table *t, size_t column, struct ms_str text)
{
    const int room = t->width[column] - tui_text_width(text);
    if (column != 0)
        ms_buf_puts(&t->line, "  ");
    for (int i = 0; t->is_number[column] && i < room; i++)
        ms_buf_putc(&t->line, ' ');
    ms_buf_str(&t->line, text);
    for (int i = 0; !t->is_number[column] && i < room; i++)
        ms_buf_putc(&t->line, ' ');
}

/* Reads one row; the reader is behind its opening bracket. */
static enum ms_rc take_row(struct table *t, struct ms_jread *r, enum tui_token look,
                           struct ms_err *err)
{
    enum ms_jtok tok;
    struct ms_str text;
    ms_buf_clear(&t->line);
    for (size_t i = 0; (tok = ms_jread_next(r)) > MS_J_END && tok != MS_J_ARR_END; i++) {
        if (i >= COLUMNS_MAX)
            continue;
        MS_TRY(text_of_cell(t, r, tok, &text, err));
        if (t->page == NULL)
            measure_cell(t, i, tok, text);
        else
            put_cell(t, i, text);
    }
    if (t->page == NULL)
        return MS_OK;
    MS_TRY(ms_buf_check(&t->line, err));
    return tui_page_add(t->page, look, ms_buf_slice(&t->line), err);
}

static enum ms_rc take_rows(struct table *t, struct ms_jread *r, struct ms_err *err)
{
    while (ms_jread_next(r) == MS_J_ARR)
        MS_TRY(take_row(t, r, TUI_TEXT, err));
    return MS_OK;
}

/* Reads the answer, in the form of viz_statement_run. */
static enum ms_rc take_answer(struct table *t, struct ms_str answer, struct ms_err *err)
{
    struct ms_jread r;
    bool more = false;
    ms_jread_init(&r, answer.p, answer.n, 0);
    enum ms_jtok tok = ms_jread_next(&r);
    while (tok > MS_J_END && (tok = ms_jread_next(&r)) == MS_J_KEY) {
        const struct ms_str key = r.text;
        tok = ms_jread_next(&r);
        if (ms_str_is(key, "columns"))
            MS_TRY(take_row(t, &r, TUI_ACCENT, err));
        else if (ms_str_is(key, "rows"))
            MS_TRY(take_rows(t, &r, err));
        else
            more = tok == MS_J_TRUE;
    }
    if (tok == MS_J_ERR)
        return ms_jread_fail(&r, err);
    return more && t->page != NULL
               ? tui_page_addf(t->page, TUI_WARNING, err, "more rows than %d; add a LIMIT", ROWS)
               : MS_OK;
}

static enum ms_rc show_answer(struct tui_page *page, struct ms_str answer, struct ms_err *err)
{
    struct table t = {.line.max = 1 << 20, .scratch.max = 1 << 20};
    enum ms_rc rc = take_answer(&t, answer, err);
    t.page = page;
    if (rc == MS_OK)
        rc = take_answer(&t, answer, err);
    ms_buf_free(&t.line);
    ms_buf_free(&t.scratch);
    return rc;
}

/* ---- asking ------------------------------------------------------------------------------------ */

enum ms_rc tui_query_ask(struct tui_app *a, const char *query, struct ms_err *err)
{
    (void)err;
    snprintf(a->query, sizeof a->query, "%s", query);
    tui_say(a, "the database is asked; a key ends it");
    return MS_OK;
}

static bool is_key_waiting(int input)
{
    struct pollfd fd = {.fd = input, .events = POLLIN};
    return input >= 0 && poll(&fd, 1, 0) > 0;
}

/* The key that ended the question is still unread, and says nothing else. */
static enum ms_rc ask(struct tui_app *a, struct ms_buf *answer, struct ms_err *err)
{
    const bool graph = a->reader.tl == NULL || (a->at == TUI_TREE && a->reader.graph != NULL);
    const struct viz_statement q = {.db = graph ? viz_session_graph(a->session)
                                                : a->session->timeline,
                                    .sql = ms_str_of(a->query),
                                    .rows = ROWS,
                                    .seconds = a->input >= 0 ? SECONDS : SECONDS_OF_SCRIPT,
                                    .until_gone = -1,
                                    .until_readable = a->input};
    struct ms_err said = {0};
    const enum ms_rc rc = viz_statement_run(&q, answer, &said);
    if (rc == MS_E_INTERRUPTED && is_key_waiting(a->input)) {
        a->is_key_spent = true;
        return ms_fail(err, MS_E_INTERRUPTED, "the question was ended by a key");
    }
    if (rc != MS_OK && err != NULL)
        *err = said;
    return rc;
}

enum ms_rc tui_query_run(struct tui_app *a, struct ms_err *err)
{
    struct ms_buf answer = {.max = ANSWER_MAX};
    enum ms_rc rc = ask(a, &answer, err);
    a->message[0] = '\0';
    if (rc == MS_OK)
        rc = tui_page_open(&a->page, a->query, err);
    if (rc == MS_OK) {
        rc = show_answer(&a->page, ms_buf_slice(&answer), err);
        if (rc != MS_OK)
            tui_page_close(&a->page);
    }
    a->query[0] = '\0';
    ms_buf_free(&answer);
    return rc;
}
