/* SPDX-License-Identifier: MIT
 *
 * api_profile: how the difference of two runs grows along the execution order.
 *
 *     {"figure": "NormRelativeErr", "nodes": 423, "floor": 2.4e-07,
 *      "points": [[0, 0.031, "warning", NODE], ...], "suspects": [[12, NODE], ...]}
 *
 * A point is the index of a node, its largest figure, its state and its name: the node with the largest
 * figure among neighbours, so that there are never more than POINTS. floor is the difference that
 * rounding explains, null where the comparison does not tell. Of a dump alone the figure is the norm.
 */
#include "probe/base/message.h"
#include "web/api/api.h"
#include "web/api/tables.h"

#include <math.h>

enum { POINTS = 300 };

struct point {
    float figure; /* NaN: no node has one */
    uint32_t node;
    uint8_t state;
};

struct profile {
    struct web_call *call;
    struct graph_spot at;
    const char *figure;
    double floor;
    float unit; /* relative errors of a summary are written in per cent */
    const struct viz_table *table;
    const float *value;             /* of the rows of the table */
    MS_VEC(struct ms_str) suspects; /* names */
    MS_VEC(struct point) points;
};

/* ---- points ------------------------------------------------------------------------ */

static enum ms_rc make_points(struct profile *p, struct ms_err *err)
{
    const size_t nodes = p->table->nodes, n = nodes < POINTS ? nodes : POINTS;
    for (size_t i = 0; i < n; i++) {
        struct point *slot = ms_vec_push(&p->points);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = (struct point){.figure = NAN, .node = (uint32_t)(i * nodes / n)};
    }
    return MS_OK;
}

static void take_rows(struct profile *p)
{
    const struct viz_table *t = p->table;
    for (size_t i = 0; i < t->rows; i++) {
        const float v = fabsf(p->value[i]) * p->unit;
        struct point *to = &p->points.p[(uint64_t)t->row[i].node * p->points.n / t->nodes];
        if (!isfinite(v) || v <= to->figure)
            continue;
        *to = (struct point){v, t->row[i].node, t->row[i].state};
    }
}

/* ---- suspects ---------------------------------------------------------------------- */

static double floor_of(struct ms_str args)
{
    struct ms_message_args read;
    const struct ms_message_arg *a =
        ms_message_read(&read, args) ? ms_message_find(&read, MS_STR("floor")) : NULL;
    return a != NULL && a->is_number ? a->number : NAN;
}

static enum ms_rc take_suspects(struct profile *p, const struct graph_findings *found,
                                struct ms_err *err)
{
    for (size_t i = 0; i < found->list.n; i++) {
        const struct graph_finding *f = &found->list.p[i];
        if (f->step != p->at.step || !graph_is_likely(f))
            continue;
        if (isnan(p->floor))
            p->floor = floor_of(f->args);
        struct ms_str *slot = ms_vec_push(&p->suspects);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = f->target;
    }
    return MS_OK;
}

static bool is_suspect(const struct profile *p, struct ms_str name)
{
    for (size_t i = 0; i < p->suspects.n; i++) {
        if (ms_str_eq(p->suspects.p[i], name))
            return true;
    }
    return false;
}

/* ---- the answer -------------------------------------------------------------------- */

static void put_point(struct ms_jwrite *w, const struct profile *p, const struct point *x)
{
    static const char *const states[GRAPH_STATES] = {"none", "pass", "warning", "error"};
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, x->node);
    ms_jwrite_f64(w, x->figure);
    ms_jwrite_str(w, ms_str_of(states[x->state]));
    ms_jwrite_str(w, p->table->node[x->node].name);
    ms_jwrite_arr_end(w);
}

static void put_suspects(struct ms_jwrite *w, const struct profile *p)
{
    ms_jwrite_key(w, MS_STR("suspects"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < p->table->nodes && p->suspects.n != 0; i++) {
        if (!is_suspect(p, p->table->node[i].name))
            continue;
        ms_jwrite_arr(w);
        ms_jwrite_i64(w, (int64_t)i);
        ms_jwrite_str(w, p->table->node[i].name);
        ms_jwrite_arr_end(w);
    }
    ms_jwrite_arr_end(w);
}

static void put_profile(struct ms_jwrite *w, const struct profile *p)
{
    ms_jwrite_obj(w);
    ms_jwrite_kstr(w, "figure", p->figure);
    ms_jwrite_ki64(w, "nodes", (int64_t)p->table->nodes);
    ms_jwrite_kf64(w, "floor", p->floor);
    ms_jwrite_key(w, MS_STR("points"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < p->points.n; i++) {
        if (!isnan(p->points.p[i].figure))
            put_point(w, p, &p->points.p[i]);
    }
    ms_jwrite_arr_end(w);
    put_suspects(w, p);
    ms_jwrite_obj_end(w);
}

static enum ms_rc take_table(void *ctx, const struct viz_table *t, struct ms_err *err)
{
    struct profile *p = ctx;
    int column;
    MS_TRY(viz_table_column(ms_str_of(p->figure), &column, err));
    p->table = t;
    p->value = t->value[column];
    MS_TRY(make_points(p, err));
    take_rows(p);
    put_profile(p->call->json, p);
    return MS_OK;
}

enum ms_rc web_api_profile(struct web_call *c, struct ms_err *err)
{
    const struct graph_about *about = graph_view_about(c->reader->graph);
    const bool has_tensors = ms_str_is(about->task, "all");
    struct profile p = {.call = c,
                        .figure = !about->dual  ? "Norm"
                                  : has_tensors ? "MaxRelativeErr"
                                                : "NormRelativeErr",
                        .unit = has_tensors || !about->dual ? 1 : 0.01F,
                        .floor = NAN};
    struct graph_findings found = {.arena = NULL};
    MS_TRY(web_read_spot(c, &p.at, err));
    enum ms_rc rc = graph_view_findings(c->reader->graph, &found, err);
    if (rc == MS_OK)
        rc = take_suspects(&p, &found, err);
    if (rc == MS_OK)
        rc = web_tables_use(c->tables, c->reader->graph, p.at, take_table, &p, err);
    graph_findings_free(&found);
    ms_vec_free(&p.suspects);
    ms_vec_free(&p.points);
    return rc;
}
