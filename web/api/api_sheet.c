/* SPDX-License-Identifier: MIT
 *
 * api_sheet: the rows of a table, and of two runs the places of a step.
 */
#include "viz/model/sheet_rows.h"
#include "web/api/api.h"

enum { LIMIT_MAX = 2000 };

static enum ms_rc put_row(void *ctx, size_t i, const char *state, const struct ms_str *fields,
                          size_t n, struct ms_err *err)
{
    struct ms_jwrite *w = ctx;
    (void)err;
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "row", (int64_t)i);
    ms_jwrite_kstr(w, "state", state);
    ms_jwrite_key(w, MS_STR("values"));
    ms_jwrite_arr(w);
    for (size_t k = 0; k < n; k++)
        ms_jwrite_str(w, fields[k]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
    return MS_OK;
}

static enum ms_rc read_asked(const struct web_call *c, struct viz_sheet_asked *a, int64_t *first,
                             int64_t *limit, struct ms_err *err)
{
    int64_t column = -1;
    const int64_t columns = (int64_t)viz_sheet_columns(c->session->sheet);
    MS_TRY(web_query_int(c->query, "sort", 0, columns - 1, &column, err));
    MS_TRY(web_query_int(c->query, "first", 0, INT32_MAX, first, err));
    MS_TRY(web_query_int(c->query, "limit", 1, LIMIT_MAX, limit, err));
    MS_TRY(web_query_flag(c->query, "desc", &a->descending, err));
    MS_TRY(web_query_flag(c->query, "failing", &a->failing, err));
    a->text = web_query_text(c->query, "q");
    a->column = (int)column;
    return MS_OK;
}

/* Answers rows of the table: {"total", "rows": [{"row", "state", "values"}]}. */
enum ms_rc web_api_sheet(struct web_call *c, struct ms_err *err)
{
    struct viz_sheet_asked a;
    int64_t first = 0, limit = 100;
    size_t total = 0;
    if (c->session->sheet == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no table is open; open compare_result*.csv or .xlsx of a comparison");
    MS_TRY(read_asked(c, &a, &first, &limit, err));
    ms_jwrite_obj(c->json);
    ms_jwrite_key(c->json, MS_STR("rows"));
    ms_jwrite_arr(c->json);
    const enum ms_rc rc = viz_sheet_read(c->session->sheet, &a, (size_t)first, (size_t)limit,
                                         &total, put_row, c->json, err);
    ms_jwrite_arr_end(c->json);
    ms_jwrite_ki64(c->json, "total", (int64_t)total);
    ms_jwrite_obj_end(c->json);
    return rc;
}

/* Answers [[place, parent, name, old ms, new ms]] of two runs, [] of anything else. */
enum ms_rc web_api_flame(struct web_call *c, struct ms_err *err)
{
    (void)err;
    ms_jwrite_raw(c->json, ms_str_of(c->session->flame != NULL ? c->session->flame : "[]"));
    return MS_OK;
}
