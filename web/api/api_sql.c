/* SPDX-License-Identifier: MIT
 *
 * api_sql: one statement of a visitor's, on a handle of its own that may only look.
 *
 * One at a time: a statement may keep a core busy until its time is over, and the
 * pages of others shall go on being answered.
 */
#include "mstx/rundb/events_table.h"
#include "web/api/api.h"

#include "probe/base/mem.h"
#include "probe/base/store.h"

#include <pthread.h>

enum { SQL_MS = 5000, ROWS_MAX = 2000, CELL_MAX = 2000 };

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

/* A long text is cut, and a blob is told by its size. */
static void put_cell(struct ms_jwrite *w, struct ms_stmt *st, int i)
{
    if (ms_stmt_is_null(st, i)) {
        ms_jwrite_null(w);
    } else if (ms_stmt_is_i64(st, i)) {
        ms_jwrite_i64(w, ms_stmt_get_i64(st, i));
    } else if (ms_stmt_is_f64(st, i)) {
        ms_jwrite_f64(w, ms_stmt_get_f64(st, i));
    } else {
        struct ms_str s = ms_stmt_get_str(st, i);
        ms_jwrite_str(w, ms_str_sub(s, 0, CELL_MAX));
    }
}

static enum ms_rc put_rows(struct ms_jwrite *w, struct ms_stmt *st, struct ms_err *err)
{
    bool more = false;
    int n = ms_stmt_columns(st), rows = 0;
    enum ms_rc rc = MS_OK;
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("columns"));
    ms_jwrite_arr(w);
    for (int i = 0; i < n; i++)
        ms_jwrite_str(w, ms_str_of(ms_stmt_column_name(st, i)));
    ms_jwrite_arr_end(w);
    ms_jwrite_key(w, MS_STR("rows"));
    ms_jwrite_arr(w);
    while ((more = ms_stmt_next(st, &rc, err)) && rows++ < ROWS_MAX) {
        ms_jwrite_arr(w);
        for (int i = 0; i < n; i++)
            put_cell(w, st, i);
        ms_jwrite_arr_end(w);
    }
    ms_jwrite_arr_end(w);
    ms_jwrite_kbool(w, "more", more);
    ms_jwrite_obj_end(w);
    return rc;
}

/* The store is read by this one statement alone, so what it forbids hinders nobody else. */
static enum ms_rc ask_database(struct web_call *c, struct ms_store *s, const char *sql,
                               struct ms_err *err)
{
    struct ms_stmt *st;
    ms_store_set_limit_ms(s, SQL_MS);
    ms_store_only_look(s);
    enum ms_rc rc = ms_store_prepare(s, &st, sql, err);
    if (rc == MS_OK && st != NULL) {
        rc = put_rows(c->json, st, err);
        ms_stmt_free(st);
    }
    bool of_statement = rc == MS_E_IO || rc == MS_E_INTERNAL || rc == MS_E_FORMAT;
    return of_statement ? MS_E_ARG : rc;
}

static enum ms_rc ask_timeline(struct web_call *c, const char *sql, struct ms_err *err)
{
    struct mstx_tl *tl;
    MS_TRY(mstx_tl_open(&tl, c->session->timeline, err));
    enum ms_rc rc = mstx_tl_add_events(tl, err);
    if (rc == MS_OK) /* its table is made when it is first named, which is no looking */
        rc = ms_store_exec(mstx_tl_store(tl), "SELECT 1 FROM events LIMIT 0", err);
    if (rc == MS_OK)
        rc = ask_database(c, mstx_tl_store(tl), sql, err);
    mstx_tl_close(tl);
    return rc;
}

static enum ms_rc ask_graph(struct web_call *c, const char *sql, struct ms_err *err)
{
    struct ms_store *s;
    MS_TRY(ms_store_open(&s, c->session->graph, err));
    enum ms_rc rc = ask_database(c, s, sql, err);
    ms_store_close(s);
    return rc;
}

/* q: the statement; graph=1: of the graph's database and not of the timeline's. */
enum ms_rc web_api_sql(struct web_call *c, struct ms_err *err)
{
    struct ms_str q = web_query_text(c->query, "q");
    bool graph;
    MS_TRY(web_query_flag(c->query, "graph", &graph, err));
    while (q.n != 0 && (q.p[0] == ' ' || q.p[0] == '\n'))
        q = ms_str_sub(q, 1, q.n);
    if (q.n == 0)
        return ms_fail(err, MS_E_ARG, "q is missing: a SELECT statement");
    if ((graph ? c->session->graph : c->session->timeline) == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "no %s is open", graph ? "graph" : "timeline");
    if (pthread_mutex_trylock(&one) != 0)
        return ms_fail(err, MS_E_INTERRUPTED, "another statement is running; try again");
    char *sql = ms_str_dup(q);
    enum ms_rc rc = sql == NULL ? ms_no_memory(err)
                    : graph     ? ask_graph(c, sql, err)
                                : ask_timeline(c, sql, err);
    ms_free(sql);
    pthread_mutex_unlock(&one);
    return rc;
}
