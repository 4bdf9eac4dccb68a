/* SPDX-License-Identifier: MIT
 *
 * sql: prints the result of a query over a run.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/rundb/events_table.h"

#include "probe/base/io.h"
#include "probe/base/jprint.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/base/store.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { STATEMENT_MAX = 100000, BOX_CELL = 2000, BOX_MEMORY = 256 << 20, BOX_MS = 10000 };

struct args {
    struct ms_opt_list rest;
    int64_t box;
    int format;
};

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = {"text", "json", NULL};

static const struct ms_opt opts[] = {
    {"DIR SQL", NULL, MS_OPT_REST, offsetof(struct args, rest), .min = 2, .max = 2,
     .help = "directory of a run or its run.db, and one SELECT statement; - reads it from standard "
             "input"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "text",
     .choices = formats, .help = "text: columns between tabs; json: an array of objects"},
    {"box", NULL, MS_OPT_INT, offsetof(struct args, box), "ROWS", .max = 1000000,
     .help =
         "answer as the SQL box of the viewers is answered: of the database DIR as it is, at most "
         "so many rows, as JSON of columns and rows, with 256 MiB of memory"},
    {0}};

extern const struct ms_cmd mstx_cmd_sql;

/* ---- text ------------------------------------------------------------- */

/* Escapes tabs and line breaks, which would look like the next column or row. */
static void print_cell(struct ms_str s)
{
    for (uint32_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '\t' || c == '\n' || c == '\r')
            fputs(c == '\t' ? "\\t" : c == '\n' ? "\\n" : "\\r", stdout);
        else
            putchar((unsigned char)c < 0x20 || c == 0x7F ? '?' : c);
    }
}

static enum ms_rc print_rows(struct ms_stmt *st, struct ms_err *err)
{
    int n = ms_stmt_columns(st);
    for (int i = 0; i < n; i++) {
        if (i != 0)
            putchar('\t');
        print_cell(ms_str_of(ms_stmt_column_name(st, i)));
    }
    putchar('\n');
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        for (int i = 0; i < n; i++) {
            if (i != 0)
                putchar('\t');
            print_cell(ms_stmt_get_str(st, i));
        }
        putchar('\n');
    }
    return rc;
}

/* ---- JSON ------------------------------------------------------------- */

static void json_value(struct ms_jwrite *w, struct ms_stmt *st, int i)
{
    if (ms_stmt_is_null(st, i))
        ms_jwrite_null(w);
    else if (ms_stmt_is_i64(st, i))
        ms_jwrite_i64(w, ms_stmt_get_i64(st, i));
    else if (ms_stmt_is_f64(st, i))
        ms_jwrite_f64(w, ms_stmt_get_f64(st, i));
    else
        ms_jwrite_str(w, ms_stmt_get_str(st, i));
}

static enum ms_rc json_rows(struct ms_stmt *st, struct ms_err *err)
{
    struct ms_jwrite w;
    ms_jprint_begin(&w);
    ms_jwrite_arr(&w);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        ms_jwrite_obj(&w);
        for (int i = 0; i < ms_stmt_columns(st); i++) {
            ms_jwrite_key(&w, ms_str_of(ms_stmt_column_name(st, i)));
            json_value(&w, st, i);
        }
        ms_jwrite_obj_end(&w);
    }
    ms_jwrite_arr_end(&w);
    return ms_jprint_end(&w, rc, err);
}

/* ---- the box of the viewers --------------------------------------------- */

/* Writes a row for the box; long texts are cut. */
static void box_row(struct ms_jwrite *w, struct ms_stmt *st, int columns)
{
    ms_jwrite_arr(w);
    for (int i = 0; i < columns; i++) {
        if (ms_stmt_is_null(st, i) || ms_stmt_is_i64(st, i) || ms_stmt_is_f64(st, i))
            json_value(w, st, i);
        else
            ms_jwrite_str(w, ms_str_sub(ms_stmt_get_str(st, i), 0, BOX_CELL));
    }
    ms_jwrite_arr_end(w);
}

static enum ms_rc box_rows(struct ms_stmt *st, int64_t most, struct ms_err *err)
{
    struct ms_jwrite w;
    bool more = false;
    const int columns = ms_stmt_columns(st);
    enum ms_rc rc = MS_OK;
    ms_jprint_begin(&w);
    w.indent = 0;
    ms_jwrite_obj(&w);
    ms_jwrite_key(&w, MS_STR("columns"));
    ms_jwrite_arr(&w);
    for (int i = 0; i < columns; i++)
        ms_jwrite_str(&w, ms_str_of(ms_stmt_column_name(st, i)));
    ms_jwrite_arr_end(&w);
    ms_jwrite_key(&w, MS_STR("rows"));
    ms_jwrite_arr(&w);
    for (int64_t n = 0; (more = ms_stmt_next(st, &rc, err)) && n < most; n++)
        box_row(&w, st, columns);
    ms_jwrite_arr_end(&w);
    ms_jwrite_kbool(&w, "more", more);
    ms_jwrite_obj_end(&w);
    return ms_jprint_end(&w, rc, err);
}

/* Makes this process end by a signal when its parent ends. */
static void end_with_parent(void)
{
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(MS_EXIT_FAIL);
}

/* ---- the command ------------------------------------------------------ */

static enum ms_rc print_answer(struct ms_store *s, const struct args *a, const char *sql,
                               struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_only_look(s, err));
    ms_store_set_limit_ms(s, a->box != 0 ? BOX_MS : 0);
    MS_TRY(ms_store_prepare(s, &st, sql, err));
    if (ms_stmt_columns(st) == 0) {
        ms_stmt_free(st);
        return ms_fail(err, MS_E_ARG, "the statement is empty; a SELECT is expected");
    }
    enum ms_rc rc = a->box != 0                ? box_rows(st, a->box, err)
                    : a->format == FORMAT_JSON ? json_rows(st, err)
                                               : print_rows(st, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc ask_run(struct mstx_tl *tl, const struct args *a, const char *sql,
                          struct ms_err *err)
{
    enum ms_rc rc = mstx_tl_add_events(tl, err);
    if (rc == MS_OK)
        rc = print_answer(mstx_tl_store(tl), a, sql, err);
    mstx_tl_close(tl);
    return rc;
}

/* Runs a query on a database; one that is not a run.db has only its own tables. */
static enum ms_rc ask_database(const struct args *a, const char *sql, struct ms_err *err)
{
    struct mstx_tl *tl;
    struct ms_store *s;
    end_with_parent();
    ms_store_limit_memory(BOX_MEMORY);
    if (mstx_tl_open(&tl, a->rest.items[0], NULL) == MS_OK)
        return ask_run(tl, a, sql, err);
    MS_TRY(ms_store_open(&s, a->rest.items[0], err));
    enum ms_rc rc = print_answer(s, a, sql, err);
    ms_store_close(s);
    return rc;
}

static enum ms_rc ask(const struct args *a, const char *sql, struct ms_err *err)
{
    struct mstx_tl *tl;
    if (a->box != 0)
        return ask_database(a, sql, err);
    MS_TRY(mstx_run_open(&tl, a->rest.items[0], err));
    return ask_run(tl, a, sql, err);
}

static enum ms_rc read_statement(struct ms_buf *b, struct ms_err *err)
{
    char part[4096];
    ssize_t n;
    while ((n = read(STDIN_FILENO, part, sizeof part)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0)
            ms_buf_put(b, part, (size_t)n);
    }
    if (n < 0)
        return ms_fail_sys(err, "standard input");
    return ms_buf_check(b, err);
}

static int run_sql(int argc, char **argv)
{
    struct args a = {0};
    struct ms_err err = {0};
    struct ms_buf typed = {.max = STATEMENT_MAX};
    bool done;
    if (ms_opt_parse(&mstx_cmd_sql, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_sql, &err);
    if (done)
        return MS_EXIT_OK;
    const bool is_typed = strcmp(a.rest.items[1], "-") == 0;
    enum ms_rc rc = is_typed ? read_statement(&typed, &err) : MS_OK;
    if (rc == MS_OK)
        rc = ask(&a, is_typed ? ms_buf_z(&typed) : a.rest.items[1], &err);
    ms_buf_free(&typed);
    return rc == MS_OK ? MS_EXIT_OK : ms_cmd_fail(&mstx_cmd_sql, &err);
}

const struct ms_cmd mstx_cmd_sql = {
    .name = "sql",
    .run = run_sql,
    .brief = "ask a run in SQL",
    .opts = opts,
    .usage = "[options] DIR SQL",
    .about =
        "Runs one SELECT over the tables of run.db, which msprobe-run.db(5) explains, and over "
        "the table 'events', which has a row for every event: track, rank, pid, tid, domain, "
        "name, kind, start_ns, end_ns, dur_ns, depth, id, value, address, bytes, stream, "
        "args, end_tid, unfinished. Conditions on track, rank, start_ns and end_ns are "
        "fast.\n"
        "\n"
        "  msprobe sql run1 \"SELECT name, count(*), sum(dur_ns) FROM events GROUP BY name\"\n",
};
