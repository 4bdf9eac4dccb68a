/* SPDX-License-Identifier: MIT
 *
 * api_sql: one SQL statement typed by the user.
 */
#include "viz/model/statement.h"
#include "web/api/api.h"

enum { SQL_SECONDS = 5, ROWS_MAX = 2000 };

static struct ms_str without_spaces(struct ms_str q)
{
    while (q.n != 0 && (q.p[0] == ' ' || q.p[0] == '\n'))
        q = ms_str_sub(q, 1, q.n);
    return q;
}

static enum ms_rc put_answer(struct web_call *c, const struct ms_buf *rows, struct ms_err *err)
{
    MS_TRY(ms_buf_check(rows, err));
    ms_jwrite_raw(c->json, ms_buf_slice(rows));
    return MS_OK;
}

/* q: the statement; graph=1: run it on the graph's database, not the timeline's. */
enum ms_rc web_api_sql(struct web_call *c, struct ms_err *err)
{
    const struct ms_str q = without_spaces(web_query_text(c->query, "q"));
    bool graph;
    MS_TRY(web_query_flag(c->query, "graph", &graph, err));
    if (q.n == 0)
        return ms_fail(err, MS_E_ARG, "q is missing: a SELECT statement");
    const char *db = graph ? viz_session_graph(c->session) : c->session->timeline;
    if (db == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "no %s is open", graph ? "graph" : "timeline");
    const struct viz_statement ask = {.db = db,
                                      .sql = q,
                                      .rows = ROWS_MAX,
                                      .seconds = SQL_SECONDS,
                                      .until_gone = c->until_gone,
                                      .until_readable = c->until_readable};
    struct ms_buf rows = {.max = WEB_REPLY_MAX};
    enum ms_rc rc = viz_statement_run(&ask, &rows, err);
    if (rc == MS_OK)
        rc = put_answer(c, &rows, err);
    ms_buf_free(&rows);
    return rc;
}
