/* SPDX-License-Identifier: MIT
 *
 * api_rows: rows of a comparison, in pages.
 */
#include "web/api/api.h"
#include "web/api/tables.h"

enum { ROWS_MAX = 2000, ROWS_USUAL = 100 };

static void put_item(struct ms_jwrite *w, const char *key, struct ms_str json)
{
    if (json.n == 0)
        return;
    ms_jwrite_key(w, ms_str_of(key));
    ms_jwrite_raw(w, json);
}

static enum ms_rc put_row(void *ctx, const struct viz_table_texts *row, struct ms_err *err)
{
    static const char *const states[GRAPH_STATES] = {"none", "pass", "warning", "error"};
    struct ms_jwrite *w = ctx;
    (void)err;
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "state", states[row->state]);
    ms_jwrite_ktext(w, "node", row->node);
    ms_jwrite_ktext(w, "partner", row->partner);
    ms_jwrite_ktext(w, "name", row->name);
    ms_jwrite_ktext(w, "other_name", row->other_name);
    put_item(w, "item", row->item);
    put_item(w, "other", row->other);
    ms_jwrite_obj_end(w);
    return MS_OK;
}

static enum ms_rc read_asked(const struct web_call *c, struct web_table_asked *a,
                             struct ms_err *err)
{
    const struct graph_about *about = graph_view_about(c->reader->graph);
    struct ms_str sort = web_query_text(c->query, "sort"), q = web_query_text(c->query, "q");
    *a = (struct web_table_asked){.terms = q.p != NULL ? q : MS_STR("")};
    a->at.step = about->steps.n != 0 ? about->steps.p[0] : 0;
    a->at.rank = about->ranks.n != 0 ? about->ranks.p[0] : 0;
    MS_TRY(web_query_int(c->query, "step", -1, INT64_MAX, &a->at.step, err));
    MS_TRY(web_query_int(c->query, "rank", -1, INT64_MAX, &a->at.rank, err));
    MS_TRY(web_query_flag(c->query, "desc", &a->descending, err));
    MS_TRY(web_query_flag(c->query, "failing", &a->failing, err));
    return viz_table_column(sort.n != 0 ? sort : MS_STR("order"), &a->sort, err);
}

static enum ms_rc put_rows(struct web_call *c, const struct web_table_asked *asked, size_t first,
                           struct ms_err *err)
{
    int64_t limit = ROWS_USUAL;
    size_t total = 0;
    bool quick, more = false;
    MS_TRY(web_query_int(c->query, "limit", 1, ROWS_MAX, &limit, err));
    MS_TRY(web_query_flag(c->query, "quick", &quick, err));
    ms_jwrite_key(c->json, MS_STR("rows"));
    ms_jwrite_arr(c->json);
    if (quick && first == 0)
        MS_TRY(web_tables_begin(c->tables, c->reader->graph, asked, (size_t)limit, put_row, c->json,
                                &total, &more, err));
    else
        MS_TRY(web_tables_fetch(c->tables, c->reader->graph, asked, first, (size_t)limit, put_row,
                                c->json, &total, err));
    ms_jwrite_arr_end(c->json);
    ms_jwrite_ki64(c->json, "total", (int64_t)total);
    if (more)
        ms_jwrite_kbool(c->json, "more", true);
    return MS_OK;
}

/* Writes "at" of the nearest row with an error, null if there is none. */
static enum ms_rc put_error(struct web_call *c, const struct web_table_asked *asked, size_t from,
                            bool before, struct ms_err *err)
{
    size_t at, total;
    MS_TRY(web_tables_error(c->tables, c->reader->graph, asked, from, before, &at, &total, err));
    ms_jwrite_key(c->json, MS_STR("at"));
    if (at != SIZE_MAX)
        ms_jwrite_i64(c->json, (int64_t)at);
    else
        ms_jwrite_null(c->json);
    ms_jwrite_ki64(c->json, "total", (int64_t)total);
    return MS_OK;
}

enum ms_rc web_api_table(struct web_call *c, struct ms_err *err)
{
    struct web_table_asked asked;
    int64_t first = 0, error = 0; /* 1: the next row with an error, -1: the previous one */
    MS_TRY(read_asked(c, &asked, err));
    MS_TRY(web_query_int(c->query, "first", 0, UINT32_MAX, &first, err));
    MS_TRY(web_query_int(c->query, "error", -1, 1, &error, err));
    ms_jwrite_obj(c->json);
    if (error != 0)
        MS_TRY(put_error(c, &asked, (size_t)first, error < 0, err));
    else
        MS_TRY(put_rows(c, &asked, (size_t)first, err));
    ms_jwrite_obj_end(c->json);
    return MS_OK;
}
