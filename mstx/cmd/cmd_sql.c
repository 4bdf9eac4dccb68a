/* SPDX-License-Identifier: MIT
 *
 * sql: prints the result of a query over a run.
 */
#include "mstx/cmd/sql_rows.h"
#include "mstx/conclude/run_ready.h"
#include "mstx/rundb/events_table.h"

#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/opt.h"
#include "probe/base/store.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STATEMENT_MAX = 100000, BOX_MEMORY = 256 << 20, BOX_FILE = 256 << 20, BOX_MS = 10000 };

struct args {
    struct ms_opt_list rest;
    int64_t box;
    int format;
};

static const struct ms_opt opts[] = {
    {"DIR SQL", NULL, MS_OPT_REST, offsetof(struct args, rest), .dash = MS_DASH_WORD, .min = 2,
     .max = 2,
     .help = "directory of a run or its run.db, and one SELECT statement; - reads it from standard "
             "input"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "text",
     .choices = ms_formats, .help = "text: columns between tabs; json: an array of objects"},
    {"box", NULL, MS_OPT_INT, offsetof(struct args, box), "ROWS", .max = 1000000,
     .help =
         "answer as the SQL box of the viewers is answered: of the database DIR as it is, at most "
         "so many rows, as JSON of columns and rows, with 256 MiB of memory and as much disk for "
         "each sort"},
    {0}};

extern const struct ms_cmd mstx_cmd_sql;

/* ---- the command ------------------------------------------------------ */

/* Makes this process end by a signal when its parent ends. */
static void end_with_parent(void)
{
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(MS_EXIT_FAIL);
}

/* Bounds each file that sorting fills, which would else be all of the disk. SQLite then reports an
 * error of the disk, since no signal ends this process. */
static void limit_files(void)
{
    const struct rlimit most = {.rlim_cur = BOX_FILE, .rlim_max = BOX_FILE};
    signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &most);
}

static enum ms_rc print_box(struct ms_stmt *st, int64_t rows, struct ms_err *err)
{
    limit_files();
    const enum ms_rc rc = mstx__sql_print_box(st, rows, err);
    if (rc == MS_E_IO)
        ms_err_hint(err, "what it sorts may take up at most %d MiB of the disk", BOX_FILE >> 20);
    return rc;
}

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
    if (!ms_store_is_one(s, sql)) {
        ms_stmt_free(st);
        return ms_fail(err, MS_E_ARG, "more follows the first ';'; ask one statement at a time");
    }
    enum ms_rc rc = a->box != 0                   ? print_box(st, a->box, err)
                    : a->format == MS_FORMAT_JSON ? mstx__sql_print_json(st, err)
                                                  : mstx__sql_print_text(st, err);
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
    ms_cmd_explain = NULL; /* any database is of the right kind */
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
    MS_TRY(mstx_run_open(&tl, a->rest.items[0], ms_globals.par, err));
    return tl != NULL ? ask_run(tl, a, sql, err) : MS_OK;
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
    const char *run = a.rest.items[0];
    enum ms_rc rc = ms_opt_take_dash(&run, MS_DASH_INPUT, &err);
    a.rest.items[0] = (char *)(uintptr_t)run;
    if (rc == MS_OK && is_typed)
        rc = read_statement(&typed, &err);
    if (rc == MS_OK)
        rc = ask(&a, is_typed ? ms_buf_z(&typed) : a.rest.items[1], &err);
    ms_buf_free(&typed);
    return ms_cmd_end(&mstx_cmd_sql, rc, &err);
}

const struct ms_cmd mstx_cmd_sql = {
    .name = "sql",
    .run = run_sql,
    .job = MS_JOB_SHARED,
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
