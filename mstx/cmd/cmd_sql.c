/* SPDX-License-Identifier: MIT
 *
 * sql: prints the result of a query over a run.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/rundb/events_table.h"

#include "probe/base/jprint.h"
#include "probe/base/opt.h"
#include "probe/base/store.h"

struct args {
    struct ms_opt_list rest;
    int format;
};

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = {"text", "json", NULL};

static const struct ms_opt opts[] = {
    {"DIR SQL", NULL, MS_OPT_REST, offsetof(struct args, rest), .min = 2, .max = 2,
     .help = "directory of a run or its run.db, and one SELECT statement"},
    {"format", NULL, MS_OPT_CHOICE, offsetof(struct args, format), "FORMAT", .dflt = "text",
     .choices = formats, .help = "text: columns between tabs; json: an array of objects"},
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

/* ---- the command ------------------------------------------------------ */

static enum ms_rc print_answer(struct mstx_tl *tl, const struct args *a, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(mstx_tl_add_events(tl, err));
    MS_TRY(ms_store_prepare(mstx_tl_store(tl), &st, a->rest.items[1], err));
    enum ms_rc rc = a->format == FORMAT_JSON ? json_rows(st, err) : print_rows(st, err);
    ms_stmt_free(st);
    return rc;
}

static int run_sql(int argc, char **argv)
{
    struct args a = {0};
    struct ms_err err = {0};
    struct mstx_tl *tl;
    bool done;
    if (ms_opt_parse(&mstx_cmd_sql, argc, argv, &a, &done, &err) != MS_OK)
        return ms_cmd_fail(&mstx_cmd_sql, &err);
    if (done)
        return MS_EXIT_OK;
    enum ms_rc rc = mstx_run_open(&tl, a.rest.items[0], &err);
    if (rc == MS_OK) {
        rc = print_answer(tl, &a, &err);
        mstx_tl_close(tl);
    }
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
