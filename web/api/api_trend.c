/* SPDX-License-Identifier: MIT
 *
 * api_trend: statistics over steps, as a map of all targets of a metric or as the curves of one target.
 */
#include "probe/trend/curves.h"
#include "web/api/api.h"

#include "probe/base/mem.h"

#include <math.h>

enum { ROWS_MAX = 400, COLUMNS_MAX = 300, CURVES_MAX = 64, POINTS_MAX = 2000 };

struct trend {
    struct ms_jwrite *w;
    struct probe_curves curves;
    struct ms_str metric, target;
    int64_t bin; /* steps of a column */
    size_t columns;
};

/* ---- metrics -------------------------------------------------------------------------- */

static bool is_first_of_metric(const struct trend *t, size_t i)
{
    size_t k = 0;
    while (!ms_str_eq(t->curves.curves.p[k].metric, t->curves.curves.p[i].metric))
        k++;
    return k == i;
}

static void put_metrics(struct trend *t)
{
    ms_jwrite_key(t->w, MS_STR("metrics"));
    ms_jwrite_arr(t->w);
    for (size_t i = 0; i < t->curves.curves.n; i++) {
        if (is_first_of_metric(t, i))
            ms_jwrite_str(t->w, t->curves.curves.p[i].metric);
    }
    ms_jwrite_arr_end(t->w);
}

/* Takes gradients when no metric was asked for, as they say most; else the first one. */
static void choose_metric(struct trend *t)
{
    for (size_t i = 0; t->metric.n == 0 && i < t->curves.curves.n; i++) {
        if (probe_metric_is_gradient(t->curves.curves.p[i].metric))
            t->metric = t->curves.curves.p[i].metric;
    }
    if (t->metric.n == 0 && t->curves.curves.n != 0)
        t->metric = t->curves.curves.p[0].metric;
}

/* ---- the map -------------------------------------------------------------------------- */

/* Adds a curve to a row: of each column the largest value, NaN where a value is missing. */
static void add_curve(const struct trend *t, const struct probe_curve *c, float *row, bool *seen)
{
    for (size_t k = 0; k < c->n; k++) {
        const size_t i = (size_t)((c->at[k].step - t->curves.first_step) / t->bin);
        const float v = (float)fabs(c->at[k].value);
        if (i >= t->columns)
            continue;
        if (!seen[i] || isnan(v) || v > row[i])
            row[i] = isnan(row[i]) && seen[i] ? row[i] : v;
        seen[i] = true;
    }
}

/* Writes a row: null where nothing was recorded, "nan" where a value is not finite. */
static void put_row(const struct trend *t, const float *row, const bool *seen)
{
    ms_jwrite_arr(t->w);
    for (size_t i = 0; i < t->columns; i++) {
        if (!seen[i])
            ms_jwrite_null(t->w);
        else if (isfinite(row[i]))
            ms_jwrite_f64(t->w, row[i]);
        else
            ms_jwrite_str(t->w, MS_STR("nan"));
    }
    ms_jwrite_arr_end(t->w);
}

static bool is_of(const struct trend *t, const struct probe_curve *c, struct ms_str name)
{
    return ms_str_eq(c->metric, t->metric) && ms_str_eq(c->name, name);
}

static bool is_first_of_target(const struct trend *t, size_t i)
{
    size_t k = 0;
    while (!is_of(t, &t->curves.curves.p[k], t->curves.curves.p[i].name))
        k++;
    return k == i;
}

static enum ms_rc put_rows(struct trend *t, struct ms_err *err)
{
    float *row = ms_calloc(t->columns, sizeof *row);
    bool *seen = ms_calloc(t->columns, sizeof *seen);
    const struct probe_curve *c = t->curves.curves.p;
    size_t rows = 0;
    ms_jwrite_key(t->w, MS_STR("rows")); /* name, values */
    ms_jwrite_arr(t->w);
    for (size_t i = 0; row != NULL && seen != NULL && i < t->curves.curves.n; i++) {
        if (!ms_str_eq(c[i].metric, t->metric) || !is_first_of_target(t, i) || rows++ >= ROWS_MAX)
            continue;
        memset(row, 0, t->columns * sizeof *row);
        memset(seen, 0, t->columns * sizeof *seen);
        for (size_t k = i; k < t->curves.curves.n; k++) {
            if (is_of(t, &c[k], c[i].name))
                add_curve(t, &c[k], row, seen);
        }
        ms_jwrite_arr(t->w);
        ms_jwrite_str(t->w, c[i].name);
        put_row(t, row, seen);
        ms_jwrite_arr_end(t->w);
    }
    ms_jwrite_arr_end(t->w);
    ms_jwrite_ki64(t->w, "targets", (int64_t)rows);
    const bool is_made = row != NULL && seen != NULL;
    ms_free(row);
    ms_free(seen);
    return is_made ? MS_OK : ms_no_memory(err);
}

/* ---- curves --------------------------------------------------------------------------- */

static void put_curve(struct trend *t, const struct probe_curve *c)
{
    const size_t every = c->n / POINTS_MAX + 1;
    ms_jwrite_obj(t->w);
    ms_jwrite_ki64(t->w, "rank", c->rank);
    ms_jwrite_key(t->w, MS_STR("points"));
    ms_jwrite_arr(t->w);
    for (size_t i = 0; i < c->n; i += every) {
        ms_jwrite_arr(t->w);
        ms_jwrite_i64(t->w, c->at[i].step);
        if (isfinite(c->at[i].value))
            ms_jwrite_f64(t->w, c->at[i].value);
        else
            ms_jwrite_null(t->w);
        ms_jwrite_arr_end(t->w);
    }
    ms_jwrite_arr_end(t->w);
    ms_jwrite_obj_end(t->w);
}

static void put_curves(struct trend *t)
{
    size_t n = 0;
    ms_jwrite_key(t->w, MS_STR("curves"));
    ms_jwrite_arr(t->w);
    for (size_t i = 0; i < t->curves.curves.n; i++) {
        if (is_of(t, &t->curves.curves.p[i], t->target) && n++ < CURVES_MAX)
            put_curve(t, &t->curves.curves.p[i]);
    }
    ms_jwrite_arr_end(t->w);
    ms_jwrite_ki64(t->w, "ranks", (int64_t)n);
}

static enum ms_rc put_trend(struct trend *t, struct ms_err *err)
{
    const int64_t steps = t->curves.last_step - t->curves.first_step + 1;
    t->bin = steps > COLUMNS_MAX ? (steps + COLUMNS_MAX - 1) / COLUMNS_MAX : 1;
    t->columns = steps > 0 ? (size_t)((steps + t->bin - 1) / t->bin) : 1;
    choose_metric(t);
    ms_jwrite_obj(t->w);
    ms_jwrite_kstr(t->w, "stat", t->curves.stat);
    ms_jwrite_ktext(t->w, "metric", t->metric);
    ms_jwrite_ki64(t->w, "first", t->curves.first_step);
    ms_jwrite_ki64(t->w, "last", t->curves.last_step);
    ms_jwrite_ki64(t->w, "bin", t->bin);
    put_metrics(t);
    enum ms_rc rc = MS_OK;
    if (t->target.n != 0)
        put_curves(t);
    else
        rc = put_rows(t, err);
    ms_jwrite_obj_end(t->w);
    return rc;
}

/* Answers the map of a metric, a row for each target and the largest value of all ranks; with `target` the curves
 * of that target, one for each rank. */
enum ms_rc web_api_trend(struct web_call *c, struct ms_err *err)
{
    struct trend t = {.w = c->json,
                      .metric = web_query_text(c->query, "metric"),
                      .target = web_query_text(c->query, "target")};
    if (c->reader->trend == NULL)
        return ms_fail(err, MS_E_NOTFOUND,
                       "no statistics over steps are open; open a file .trend.db or the folder of "
                       "a training monitor");
    MS_TRY(probe_curves_read(&t.curves, c->reader->trend, NULL, NULL, err));
    const enum ms_rc rc = put_trend(&t, err);
    probe_curves_free(&t.curves);
    return rc;
}
