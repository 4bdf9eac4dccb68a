/* SPDX-License-Identifier: MIT
 *
 * api_items: figures and elements of single inputs and outputs.
 */
#include "viz/model/items.h"
#include "web/api/api.h"

#include "probe/base/jread.h"
#include "probe/base/num.h"

#include <math.h>

enum { NODES_MAX = 512 };

/* ---- one figure for a row of the graph ------------------------------------------------ */

/* Parses "0.0%" or "3.5"; NaN when not a number. */
static double number_of(struct ms_str s)
{
    double v = NAN;
    bool percent = s.n > 0 && s.p[s.n - 1] == '%';
    if (!ms_num_parse_f64(s.p, percent ? s.n - 1 : s.n, &v))
        return NAN;
    return percent ? v / 100 : v;
}

/* Tells whether a figure is worse: similarities are best when large, differences when small. */
static bool is_worse(const char *metric, double v, double than)
{
    if (isnan(v) || isnan(than))
        return !isnan(v);
    bool great_is_good = strcmp(metric, "Cosine") == 0 || strstr(metric, "Err Ratio") != NULL;
    return great_is_good ? v < than : fabs(v) > fabs(than);
}

/* Returns the worst value of a metric among the items of an object. */
static double worst_of(struct ms_str json, const char *metric, double so_far)
{
    struct ms_jread r;
    bool is_it = false;
    enum ms_jtok tok;
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    while ((tok = ms_jread_next(&r)) != MS_J_END && tok != MS_J_ERR) {
        if (tok == MS_J_STR && is_it) {
            double v = number_of(r.text);
            so_far = is_worse(metric, v, so_far) ? v : so_far;
        }
        is_it = tok == MS_J_KEY && ms_str_is(r.text, metric);
    }
    return so_far;
}

static enum ms_rc put_figure(struct web_call *c, struct graph_spot at, struct ms_str name,
                             const char *metric, struct graph_page *page, struct ms_err *err)
{
    struct graph_detail d;
    enum ms_rc rc = graph_view_node(c->reader->graph, at, name, page, &d, err);
    if (rc == MS_E_NOTFOUND) {
        ms_err_clear(err);
        ms_jwrite_null(c->json);
        return MS_OK;
    }
    MS_TRY(rc);
    double v = worst_of(d.output, metric, NAN);
    if (isnan(v))
        ms_jwrite_null(c->json);
    else
        ms_jwrite_f64(c->json, v);
    return MS_OK;
}

/* names: one in each line; answers the worst figure among the outputs of each, or null. */
enum ms_rc web_api_figures(struct web_call *c, struct ms_err *err)
{
    struct graph_spot at;
    struct graph_page page = {.more = false};
    struct ms_str rest = web_query_text(c->query, "names"), name;
    int figure;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(viz_table_column(web_query_text(c->query, "metric"), &figure, err));
    if (figure < 0)
        return ms_fail(err, MS_E_ARG, "metric must be a figure of a comparison");
    enum ms_rc rc = MS_OK;
    ms_jwrite_arr(c->json);
    for (size_t n = 0; rc == MS_OK && rest.p != NULL && ms_str_split(&rest, '\n', &name); n++) {
        rc = n < NODES_MAX ? put_figure(c, at, name, viz_figures[figure], &page, err)
                           : ms_fail(err, MS_E_ARG, "more than %d names", NODES_MAX);
    }
    ms_jwrite_arr_end(c->json);
    graph_page_free(&page);
    return rc;
}

/* ---- the elements of a tensor ------------------------------------------------------- */

static void put_histogram(struct ms_jwrite *w, const struct viz_histogram *h)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "dtype", h->dtype);
    ms_jwrite_ki64(w, "count", (int64_t)h->count);
    ms_jwrite_ki64(w, "nan", (int64_t)h->nan);
    ms_jwrite_ki64(w, "inf", (int64_t)h->inf);
    ms_jwrite_ki64(w, "zeros", (int64_t)h->zeros);
    ms_jwrite_kf64(w, "low", h->low);
    ms_jwrite_kf64(w, "high", h->high);
    ms_jwrite_key(w, MS_STR("bins"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < VIZ_BINS; i++)
        ms_jwrite_i64(w, (int64_t)h->bin[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_obj_end(w);
}

enum ms_rc web_api_histogram(struct web_call *c, struct ms_err *err)
{
    struct viz_histogram h;
    struct graph_spot at;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(viz_histogram_read(&h, c->session, c->reader->graph, at,
                              web_query_text(c->query, "name"), web_query_text(c->query, "item"),
                              err));
    put_histogram(c->json, &h);
    return MS_OK;
}
