/* SPDX-License-Identifier: MIT
 *
 * api_facts: facts about the run or comparison: what, when, and the recording overhead.
 */
#include "web/api/api.h"

#include "probe/base/store.h"

#include <sys/stat.h>

/* One row of facts about a timeline; unknown ones are NULL and left out.  What import has stored of the steps is
 * taken from the table meta: 639,000 steps of 4,096 ranks took 0.4 s. */
static const char TIMELINE_SQL[] =
    "SELECT (SELECT nullif(max(world_size), 0) FROM runs) AS world,"
    " nullif(count(DISTINCT nullif(host, '')), 0) AS hosts,"
    " (SELECT group_concat(name, ', ') FROM (SELECT name FROM processes WHERE name <> ''"
    " GROUP BY name ORDER BY count(*) DESC LIMIT 3)) AS command,"
    " (SELECT group_concat(tool, ', ') FROM (SELECT DISTINCT tool FROM processes"
    " WHERE tool <> '' LIMIT 3)) AS tool,"
    " CAST(min(start_ns) / 1000000 AS INTEGER) AS start_ms,"
    " coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'steps'),"
    "  (SELECT count(DISTINCT number) FROM steps)) AS steps,"
    " coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'step_median_ns'),"
    "  (SELECT end_ns - start_ns FROM steps ORDER BY 1 LIMIT 1" /* same as in mstx_report */
    "   OFFSET (SELECT (count(*) - 1) / 2 FROM steps))) AS step_median_ns,"
    " (SELECT sum(bytes) FROM sources) AS bytes,"
    " sum(CASE WHEN cost_ns > 0 THEN cost_ns END) * 1.0 /"
    " nullif(sum(CASE WHEN cost_ns > 0 THEN end_ns - start_ns END), 0) AS overhead"
    " FROM processes";

static void put_value(struct ms_jwrite *w, struct ms_stmt *st, int column)
{
    if (ms_stmt_is_null(st, column))
        return;
    ms_jwrite_key(w, ms_str_of(ms_stmt_column_name(st, column)));
    if (ms_stmt_is_i64(st, column))
        ms_jwrite_i64(w, ms_stmt_get_i64(st, column));
    else if (ms_stmt_is_f64(st, column))
        ms_jwrite_f64(w, ms_stmt_get_f64(st, column));
    else
        ms_jwrite_str(w, ms_stmt_get_str(st, column));
}

/* Writes the facts. A database of another tool may lack a table: then the facts are left out,
 * which is no failure. */
static void put_timeline(struct ms_jwrite *w, struct mstx_tl *tl)
{
    struct ms_stmt *st;
    bool more;
    if (ms_store_prepare(mstx_tl_store(tl), &st, TIMELINE_SQL, NULL) != MS_OK)
        return;
    if (ms_stmt_step(st, &more, NULL) == MS_OK && more) {
        for (int i = 0; i < ms_stmt_columns(st); i++)
            put_value(w, st, i);
    }
    ms_stmt_free(st);
}

static void put_text(struct ms_jwrite *w, const char *key, struct ms_str s)
{
    if (s.n == 0)
        return;
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_str(w, s);
}

static void put_graph(struct ms_jwrite *w, const struct viz_reader *r)
{
    const struct graph_about *a = graph_view_about(r->graph);
    struct stat st;
    put_text(w, "framework", a->framework);
    put_text(w, "tool", a->tool);
    put_text(w, "target", a->target);
    put_text(w, "golden", a->golden);
    if (r->graph_path != NULL && stat(r->graph_path, &st) == 0) {
        ms_jwrite_ki64(w, "bytes", (int64_t)st.st_size);
        ms_jwrite_ki64(w, "made_ms", (int64_t)st.st_mtime * 1000);
    }
}

enum ms_rc web_api_facts(struct web_call *c, struct ms_err *err)
{
    struct ms_jwrite *w = c->json;
    (void)err;
    ms_jwrite_obj(w);
    if (c->reader->tl != NULL) {
        ms_jwrite_key(w, MS_STR("timeline"));
        ms_jwrite_obj(w);
        put_timeline(w, c->reader->tl);
        ms_jwrite_obj_end(w);
    }
    if (c->reader->graph != NULL) {
        ms_jwrite_key(w, MS_STR("graph"));
        ms_jwrite_obj(w);
        put_graph(w, c->reader);
        ms_jwrite_obj_end(w);
    }
    ms_jwrite_obj_end(w);
    return MS_OK;
}
