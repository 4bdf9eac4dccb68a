/* SPDX-License-Identifier: MIT
 *
 * api_run: the open input, its findings and its steps.
 */
#include "viz/model/finding.h"
#include "viz/model/replay.h"
#include "viz/model/sheet_rows.h"
#include "web/api/api.h"

#include "mstx/conclude/comm_measure.h"
#include "probe/base/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { STEPS_USUAL = 450, STEPS_MAX = 10000 };

/* Writes nanoseconds since 1970 as text; a number of JavaScript cannot hold them. */
static void put_big(struct ms_jwrite *w, const char *key, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, v);
    ms_jwrite_kstr(w, key, text);
}

static void put_numbers(struct ms_jwrite *w, const char *key, const int64_t *p, size_t n)
{
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < n; i++)
        ms_jwrite_i64(w, p[i]);
    ms_jwrite_arr_end(w);
}

/* Writes the uncertainty between times of two hosts: half of the longest clock reading, plus the
 * uncertainty of the clock offset. */
static void put_clock(struct ms_jwrite *w, struct mstx_tl *tl)
{
    struct mstx_clock_summary apart;
    struct ms_stmt *st;
    bool more;
    if (mstx_clocks_measure(tl, &apart, NULL) != MS_OK)
        apart = (struct mstx_clock_summary){0};
    if (ms_store_prepare(mstx_tl_store(tl), &st,
                         "SELECT max(width * scale) / 2 FROM (SELECT max(width_ticks) width,"
                         " CAST(max(monotonic_ns) - min(monotonic_ns) AS REAL) /"
                         " nullif(max(ticks) - min(ticks), 0) scale FROM clock_sync"
                         " GROUP BY host, clock)",
                         NULL) != MS_OK)
        return;
    if (ms_stmt_step(st, &more, NULL) == MS_OK && more && !ms_stmt_is_null(st, 0))
        ms_jwrite_kf64(w, "clock", ms_stmt_get_f64(st, 0) + (double)apart.uncertainty_ns);
    ms_stmt_free(st);
}

static void put_timeline(struct ms_jwrite *w, struct mstx_tl *tl)
{
    int64_t first, last;
    uint64_t events = 0, dropped = 0;
    mstx_tl_span(tl, &first, &last);
    for (size_t i = 0; i < mstx_tl_track_count(tl); i++)
        events += mstx_tl_track(tl, i)->events;
    for (size_t i = 0; i < mstx_tl_process_count(tl); i++)
        dropped += mstx_tl_process(tl, i)->dropped;
    ms_jwrite_key(w, MS_STR("timeline"));
    ms_jwrite_obj(w);
    put_big(w, "first", first);
    ms_jwrite_ki64(w, "length", last - first);
    ms_jwrite_ki64(w, "processes", (int64_t)mstx_tl_process_count(tl));
    ms_jwrite_ki64(w, "tracks", (int64_t)mstx_tl_track_count(tl));
    ms_jwrite_ki64(w, "events", (int64_t)events);
    ms_jwrite_ki64(w, "dropped", (int64_t)dropped);
    ms_jwrite_kbool(w, "replay", viz_replay_exists(tl));
    put_clock(w, tl);
    ms_jwrite_obj_end(w);
}

static void put_graph(struct ms_jwrite *w, const struct graph_view *v, uint64_t changes)
{
    const struct graph_about *a = graph_view_about(v);
    ms_jwrite_key(w, MS_STR("graph"));
    ms_jwrite_obj(w);
    ms_jwrite_kbool(w, "dual", a->dual);
    ms_jwrite_kbool(w, "overflow", a->overflow);
    ms_jwrite_ktext(w, "task", a->task);
    ms_jwrite_ki64(w, "micro_steps", a->micro_steps);
    ms_jwrite_ki64(w, "changes", (int64_t)changes);
    put_numbers(w, "ranks", a->ranks.p, a->ranks.n);
    put_numbers(w, "steps", a->steps.p, a->steps.n);
    ms_jwrite_obj_end(w);
}

static void put_sheet(struct ms_jwrite *w, const struct viz_sheet *s)
{
    ms_jwrite_key(w, MS_STR("sheet"));
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "rows", (int64_t)viz_sheet_rows(s));
    ms_jwrite_key(w, MS_STR("columns"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < viz_sheet_columns(s); i++)
        ms_jwrite_str(w, viz_sheet_title(s, i));
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

enum ms_rc web_api_about(struct web_call *c, struct ms_err *err)
{
    struct ms_jwrite *w = c->json;
    (void)err;
    ms_jwrite_obj(w);
    ms_jwrite_ktext(w, "title", viz_session_title(c->session));
    ms_jwrite_kstr(w, "path", c->session->path);
    if (c->session->golden != NULL)
        ms_jwrite_kstr(w, "golden", c->session->golden);
    ms_jwrite_ki64(w, "version", (int64_t)c->reader->version);
    ms_jwrite_ki64(w, "opened", c->session->opened_ns / 1000);
    if (c->session->older != NULL)
        ms_jwrite_kbool(w, "pair", true);
    if (c->session->shelf != NULL)
        ms_jwrite_kstr(w, "shelf", c->session->shelf);
    if (c->session->sheet != NULL)
        put_sheet(w, c->session->sheet);
    if (c->session->trend != NULL)
        ms_jwrite_kbool(w, "trend", true);
    if (c->reader->tl != NULL)
        put_timeline(w, c->reader->tl);
    if (c->reader->graph != NULL)
        put_graph(w, c->reader->graph, viz_changes_count(c->session));
    ms_jwrite_obj_end(w);
    return MS_OK;
}

/* ---- findings -------------------------------------------------------------------- */

static enum ms_rc put_finding(struct ms_jwrite *w, const struct viz_finding *f, struct ms_err *err)
{
    struct ms_buf place = {.max = WEB_BODY_MAX};
    viz_place_write(&f->place, &place);
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "severity", viz_severity_name(f->severity));
    ms_jwrite_ktext(w, "kind", f->kind);
    ms_jwrite_ktext(w, "text", f->text);
    ms_jwrite_ktext(w, "ranks", f->ranks);
    ms_jwrite_ki64(w, "first_step", f->first_step);
    ms_jwrite_ki64(w, "last_step", f->last_step);
    ms_jwrite_kf64(w, "value", f->value);
    ms_jwrite_ktext(w, "place", ms_buf_slice(&place));
    ms_jwrite_obj_end(w);
    enum ms_rc rc = ms_buf_check(&place, err);
    ms_buf_free(&place);
    return rc;
}

enum ms_rc web_api_findings(struct web_call *c, struct ms_err *err)
{
    struct viz_findings f;
    const enum viz_language language = viz_language_of(web_query_text(c->query, "lang"));
    MS_TRY(viz_findings_read(&f, c->reader, language, err));
    enum ms_rc rc = MS_OK;
    ms_jwrite_arr(c->json);
    for (size_t i = 0; i < f.list.n && rc == MS_OK; i++)
        rc = put_finding(c->json, &f.list.p[i], err);
    ms_jwrite_arr_end(c->json);
    viz_findings_free(&f);
    return rc;
}

/* ---- steps ----------------------------------------------------------------------- */

/* Steps of one process, at most `most`: when there are more, each entry is the longest of
 * several. An entry is process, number, start from the first event, duration. */
static const char STEPS_SQL[] =
    "WITH p AS (SELECT process, count(*) n FROM steps WHERE ?1 < 0 OR process = ?1 + 1"
    " GROUP BY process ORDER BY n DESC, process LIMIT 1),"
    " s AS (SELECT s.process, s.number, s.start_ns, s.end_ns, p.n,"
    " row_number() OVER (ORDER BY s.start_ns) - 1 i FROM steps s JOIN p ON s.process = p.process)"
    " SELECT process - 1, number, start_ns, end_ns, max(end_ns - start_ns) FROM s"
    " GROUP BY i / max(1, (n + ?2 - 1) / ?2) ORDER BY start_ns";

static void put_step(struct ms_jwrite *w, struct ms_stmt *st, int64_t first)
{
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, ms_stmt_get_i64(st, 0));
    ms_jwrite_i64(w, ms_stmt_get_i64(st, 1));
    ms_jwrite_i64(w, ms_stmt_get_i64(st, 2) - first);
    ms_jwrite_i64(w, ms_stmt_get_i64(st, 3) - ms_stmt_get_i64(st, 2));
    ms_jwrite_arr_end(w);
}

enum ms_rc web_api_steps(struct web_call *c, struct ms_err *err)
{
    int64_t first, last, process = -1, most = STEPS_USUAL;
    struct ms_stmt *st;
    mstx_tl_span(c->reader->tl, &first, &last);
    MS_TRY(web_query_int(c->query, "process", -1, UINT32_MAX, &process, err));
    MS_TRY(web_query_int(c->query, "most", 1, STEPS_MAX, &most, err));
    MS_TRY(ms_store_prepare(mstx_tl_store(c->reader->tl), &st, STEPS_SQL, err));
    ms_stmt_i64(st, 1, process);
    ms_stmt_i64(st, 2, most);
    ms_jwrite_arr(c->json);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        put_step(c->json, st, first);
    ms_jwrite_arr_end(c->json);
    ms_stmt_free(st);
    return rc;
}

/* Answers the step of a process whose middle is next after t, or (back=1) before it; null: none. */
enum ms_rc web_api_step(struct web_call *c, struct ms_err *err)
{
    int64_t first, last, process = 0, t = 0;
    struct ms_stmt *st;
    bool more, back;
    mstx_tl_span(c->reader->tl, &first, &last);
    MS_TRY(web_query_int(c->query, "process", 0, UINT32_MAX, &process, err));
    MS_TRY(web_query_int(c->query, "t", -(INT64_C(1) << 53), INT64_C(1) << 53, &t, err));
    MS_TRY(web_query_flag(c->query, "back", &back, err));
    MS_TRY(ms_store_prepare(mstx_tl_store(c->reader->tl), &st,
                            back ? "SELECT process - 1, number, start_ns, end_ns FROM steps WHERE"
                                   " process = ?1 AND start_ns + (end_ns - start_ns) / 2 < ?2"
                                   " ORDER BY start_ns DESC LIMIT 1"
                                 : "SELECT process - 1, number, start_ns, end_ns FROM steps WHERE"
                                   " process = ?1 AND start_ns + (end_ns - start_ns) / 2 > ?2"
                                   " ORDER BY start_ns LIMIT 1",
                            err));
    ms_stmt_i64(st, 1, process + 1);
    ms_stmt_i64(st, 2, first + t);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        put_step(c->json, st, first);
    else
        ms_jwrite_null(c->json);
    ms_stmt_free(st);
    return rc;
}
