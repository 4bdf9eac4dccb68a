/* SPDX-License-Identifier: MIT
 *
 * curves: reads a trend database in one pass, in the order of its key, and sorts its rows into curves.
 */
#include "probe/trend/curves.h"

#include "probe/base/arena.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/pool.h"
#include "probe/base/store.h"
#include "probe/trend/trend.h"

#include <math.h>

static const double DRAWN = 1e9;

/* ---- what a metric is --------------------------------------------------- */

unsigned probe_metric_order(struct ms_str metric)
{
    static const char *const order[] = {"forward",         "actv",         "recompute",
                                        "backward",        "actv_grad",    "grad_unreduced",
                                        "parameters_grad", "grad_reduced", "param_origin",
                                        "exp_avg",         "exp_avg_sq",   "param_updated"};
    const unsigned n = sizeof order / sizeof *order;
    unsigned i = 0;
    while (i < n && !ms_str_is(metric, order[i]))
        i++;
    return i;
}

bool probe_metric_is_gradient(struct ms_str metric)
{
    return ms_str_is(metric, "grad_reduced") || ms_str_is(metric, "parameters_grad") ||
           ms_str_is(metric, "grad_unreduced");
}

/* ---- tables ------------------------------------------------------------- */

struct target {
    struct ms_str name;
    int64_t stage, micro_step;
};

/* A row before it is sorted. */
struct row {
    uint32_t curve;
    struct probe_point point;
};

struct reading {
    struct probe_curves *c;
    struct ms_store *store;
    MS_VEC(struct target) targets; /* by id - 1 */
    MS_VEC(struct ms_str) metrics; /* by id - 1 */
    uint32_t *known;               /* of the rank being read: curve + 1 by target and metric */
    int64_t rank;
    MS_VEC(struct row) rows;
};

enum { IDS_MAX = 1 << 24 };

static enum ms_rc keep(struct reading *r, struct ms_str text, struct ms_str *out,
                       struct ms_err *err)
{
    *out = ms_arena_str(r->c->arena, text);
    return out->p != NULL ? MS_OK : ms_arena_fail(r->c->arena, err);
}

static enum ms_rc add_target(struct reading *r, struct ms_stmt *st, struct ms_err *err)
{
    const int64_t id = ms_stmt_get_i64(st, 0);
    if (id < 1 || id > IDS_MAX)
        return ms_fail(err, MS_E_FORMAT, "monitoring_targets: target_id %lld", (long long)id);
    while (r->targets.n < (size_t)id) {
        struct target *t = ms_vec_push(&r->targets);
        if (t == NULL)
            return ms_no_memory(err);
        *t = (struct target){.name = MS_STR("?")};
    }
    struct target *t = &r->targets.p[id - 1];
    t->stage = ms_stmt_get_i64(st, 2);
    t->micro_step = ms_stmt_get_i64(st, 3);
    return keep(r, ms_stmt_get_str(st, 1), &t->name, err);
}

static enum ms_rc add_metric(struct reading *r, struct ms_stmt *st, struct ms_err *err)
{
    const int64_t id = ms_stmt_get_i64(st, 0);
    if (id < 1 || id > 64)
        return ms_fail(err, MS_E_FORMAT, "monitoring_metrics: metric_id %lld", (long long)id);
    while (r->metrics.n < (size_t)id) {
        struct ms_str *m = ms_vec_push(&r->metrics);
        if (m == NULL)
            return ms_no_memory(err);
        *m = MS_STR("?");
    }
    return keep(r, ms_stmt_get_str(st, 1), &r->metrics.p[id - 1], err);
}

typedef enum ms_rc (*row_fn)(struct reading *r, struct ms_stmt *st, struct ms_err *err);

static enum ms_rc each_row(struct reading *r, const char *sql, row_fn fn, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(ms_store_prepare(r->store, &st, sql, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err))
        rc = fn(r, st, err);
    ms_stmt_free(st);
    return rc;
}

/* ---- rows --------------------------------------------------------------- */

static enum ms_rc begin_rank(struct reading *r, int64_t rank, struct ms_err *err)
{
    const size_t n = r->targets.n * r->metrics.n;
    if (r->known != NULL && r->rank == rank)
        return MS_OK;
    ms_free(r->known);
    r->known = ms_calloc(n + 1, sizeof *r->known);
    r->rank = rank;
    if (rank > r->c->max_rank)
        r->c->max_rank = rank;
    return r->known != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc curve_of(struct reading *r, int64_t target, int64_t metric, uint32_t *curve,
                           struct ms_err *err)
{
    uint32_t *known = &r->known[(size_t)(target - 1) * r->metrics.n + (size_t)(metric - 1)];
    if (*known == 0) {
        struct probe_curve *slot = ms_vec_push(&r->c->curves);
        if (slot == NULL)
            return ms_no_memory(err);
        const struct target *t = &r->targets.p[target - 1];
        *slot = (struct probe_curve){.name = t->name,
                                     .metric = r->metrics.p[metric - 1],
                                     .rank = r->rank,
                                     .stage = t->stage,
                                     .micro_step = t->micro_step,
                                     .target = (uint32_t)(target - 1)};
        *known = (uint32_t)r->c->curves.n;
    }
    *curve = *known - 1;
    return MS_OK;
}

static enum ms_rc add_row(struct reading *r, struct ms_stmt *st, struct ms_err *err)
{
    const int64_t target = ms_stmt_get_i64(st, 2), metric = ms_stmt_get_i64(st, 3);
    const double v = ms_stmt_is_null(st, 4) ? NAN : ms_stmt_get_f64(st, 4);
    uint32_t curve = 0;
    if (target < 1 || (size_t)target > r->targets.n || metric < 1 || (size_t)metric > r->metrics.n)
        return ms_fail(err, MS_E_FORMAT, "trend_data: no target %lld with a metric %lld",
                       (long long)target, (long long)metric);
    MS_TRY(begin_rank(r, ms_stmt_get_i64(st, 0), err));
    MS_TRY(curve_of(r, target, metric, &curve, err));
    struct row *row = ms_vec_push(&r->rows);
    if (row == NULL)
        return ms_no_memory(err);
    *row = (struct row){curve, {ms_stmt_get_i64(st, 1), fabs(v) <= DRAWN ? v : NAN}};
    r->c->curves.p[curve].n++;
    return MS_OK;
}

/* Lays the rows of each curve side by side; they came by step within a rank. */
static enum ms_rc sort_rows(struct reading *r, struct ms_err *err)
{
    struct probe_curves *c = r->c;
    if (!ms_vec_reserve(&c->points, r->rows.n + 1))
        return ms_no_memory(err);
    struct probe_point *next = c->points.p;
    for (size_t i = 0; i < c->curves.n; i++) {
        c->curves.p[i].at = next;
        next += c->curves.p[i].n;
        c->curves.p[i].n = 0;
    }
    c->points.n = r->rows.n;
    for (size_t i = 0; i < r->rows.n; i++) {
        struct probe_curve *curve = &c->curves.p[r->rows.p[i].curve];
        c->points.p[(size_t)(curve->at - c->points.p) + curve->n++] = r->rows.p[i].point;
        const int64_t step = r->rows.p[i].point.step;
        c->first_step = i == 0 || step < c->first_step ? step : c->first_step;
        c->last_step = i == 0 || step > c->last_step ? step : c->last_step;
    }
    return MS_OK;
}

/* Chooses the statistic: the first of these that the table has. */
static enum ms_rc choose_stat(struct reading *r, struct ms_err *err)
{
    static const char *const wanted[] = {"norm", "max", "mean", "min"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct ms_buf sql = {.max = 1 << 10};
        struct ms_stmt *st;
        struct ms_err ignored = {0};
        ms_buf_printf(&sql, "SELECT %s FROM trend_data LIMIT 1", wanted[i]);
        const bool has = ms_store_prepare(r->store, &st, ms_buf_z(&sql), &ignored) == MS_OK;
        if (has)
            ms_stmt_free(st);
        ms_buf_free(&sql);
        if (has) {
            r->c->stat = wanted[i];
            return MS_OK;
        }
    }
    return ms_fail(err, MS_E_FORMAT,
                   "no table trend_data with one of the columns norm, max, mean, min");
}

static enum ms_rc read_store(struct reading *r, struct ms_err *err)
{
    struct ms_buf sql = {.max = 1 << 10};
    MS_TRY(choose_stat(r, err));
    MS_TRY(each_row(r,
                    "SELECT target_id, target_name, vpp_stage, micro_step FROM monitoring_targets",
                    add_target, err));
    MS_TRY(each_row(r, "SELECT metric_id, metric_name FROM monitoring_metrics", add_metric, err));
    ms_buf_printf(&sql,
                  "SELECT rank, step, target_id, metric_id, %s FROM trend_data "
                  "ORDER BY rank, step, target_id, metric_id",
                  r->c->stat);
    enum ms_rc rc = each_row(r, ms_buf_z(&sql), add_row, err);
    ms_buf_free(&sql);
    return rc == MS_OK ? sort_rows(r, err) : rc;
}

static enum ms_rc read_database(struct probe_curves *c, const char *path, struct ms_err *err)
{
    struct reading r = {.c = c};
    MS_TRY(ms_store_open(&r.store, path, err));
    enum ms_rc rc = read_store(&r, err);
    ms_store_close(r.store);
    ms_vec_free(&r.targets);
    ms_vec_free(&r.metrics);
    ms_vec_free(&r.rows);
    ms_free(r.known);
    if (rc != MS_OK)
        ms_err_wrap(err, "%s", path);
    return rc;
}

/* ---- folders ------------------------------------------------------------ */

/* Makes a database of a folder's data in a folder of its own, and reads it. */
static enum ms_rc read_converted(struct probe_curves *c, const char *dir, const char *aside,
                                 void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                                 struct ms_err *err)
{
    const struct probe_trend_conf conf = {.data = dir,
                                          .db = aside,
                                          .micro_step = false,
                                          .tolerant = true,
                                          .on_note = on_note,
                                          .ctx = ctx};
    struct probe_trended done;
    MS_TRY(probe_trend_convert(&done, &conf, NULL, err));
    struct ms_buf *path = done.monitor.path.n != 0 ? &done.monitor.path : &done.dump.path;
    enum ms_rc rc = read_database(c, ms_buf_z(path), err);
    probe_trended_free(&done);
    return rc;
}

/* Returns the database in a folder, on the heap; NULL when there is none. */
static char *database_in(const char *dir)
{
    static const char *const names[] = {"monitor_data.trend.db", "dump_data.trend.db"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = ms_path_join(dir, names[i]);
        if (path != NULL && ms_path_kind(path) == MS_KIND_FILE)
            return path;
        ms_free(path);
    }
    return NULL;
}

static enum ms_rc read_folder(struct probe_curves *c, const char *dir,
                              void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                              struct ms_err *err)
{
    char *folder, *database = database_in(dir);
    enum ms_rc rc;
    if (database != NULL) {
        rc = read_database(c, database, err);
        ms_free(database);
        return rc;
    }
    MS_TRY(ms_tmp_folder(&folder, "trend", err));
    rc = read_converted(c, dir, folder, on_note, ctx, err);
    ms_tmp_folder_remove(folder);
    return rc;
}

/* Reads the dump that a dump.json belongs to. */
static enum ms_rc read_dump_of(struct probe_curves *c, const char *file,
                               void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                               struct ms_err *err)
{
    char *dir = ms_str_dup(ms_path_dir(file));
    const enum ms_rc rc = dir != NULL ? read_folder(c, dir, on_note, ctx, err) : ms_no_memory(err);
    ms_free(dir);
    return rc;
}

enum ms_rc probe_curves_read(struct probe_curves *c, const char *path,
                             void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                             struct ms_err *err)
{
    *c = (struct probe_curves){.arena = ms_arena_new(SIZE_MAX)};
    if (c->arena == NULL)
        return ms_no_memory(err);
    const bool is_dump = ms_str_is(ms_path_base(path), "dump.json");
    const enum ms_rc rc = ms_path_kind(path) == MS_KIND_DIR
                              ? read_folder(c, path, on_note, ctx, err)
                          : is_dump ? read_dump_of(c, path, on_note, ctx, err)
                                    : read_database(c, path, err);
    if (rc != MS_OK)
        probe_curves_free(c);
    return rc;
}

void probe_curves_free(struct probe_curves *c)
{
    ms_vec_free(&c->curves);
    ms_vec_free(&c->points);
    ms_arena_free(c->arena);
    c->arena = NULL;
}
