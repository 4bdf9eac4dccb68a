/* SPDX-License-Identifier: MIT
 *
 * trend_db: the tables of a trend database, as the official converter writes and its viewer reads
 * them.
 *
 * One foreign key in the official schema names a table that does not exist (monitoring_target). The
 * key is kept, because readers compare the schema, and foreign keys are not enforced.
 */
#include "probe/trend/trend_int.h"

#include <math.h>

enum { NAME_MAX_BYTES = 1 << 20, SQL_MAX = 1 << 16 };

/* ---- schema ----------------------------------------------------------- */

static const char fixed_tables[] =
    "CREATE TABLE monitoring_targets (\n"
    "    target_id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "    target_name TEXT NOT NULL,\n"
    "    vpp_stage INTEGER NOT NULL,\n"
    "    micro_step INTEGER NOT NULL DEFAULT 0,\n"
    "    UNIQUE(target_name, vpp_stage, micro_step)\n"
    ");\n"
    "CREATE TABLE monitoring_metrics (\n"
    "    metric_id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "    metric_name TEXT UNIQUE NOT NULL\n"
    ");\n"
    "CREATE TABLE monitoring_tags (\n"
    "    tag_id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "    tag_name TEXT NOT NULL,\n"
    "    category TEXT NOT NULL,\n"
    "    metric_id INTEGER NOT NULL,\n"
    "    UNIQUE(tag_name, category, metric_id),\n"
    "    FOREIGN KEY (metric_id) REFERENCES monitoring_metrics(metric_id)\n"
    ");\n"
    "CREATE TABLE tag_target_mapping (\n"
    "    tag_id INTEGER NOT NULL,\n"
    "    target_id INTEGER NOT NULL,\n"
    "    PRIMARY KEY (tag_id, target_id),\n"
    "    FOREIGN KEY (tag_id) REFERENCES monitoring_tags(tag_id),\n"
    "    FOREIGN KEY (target_id) REFERENCES monitoring_target(target_id)\n"
    ");\n";

static enum ms_rc exec_buf(struct ms_store *s, struct ms_buf *sql, struct ms_err *err)
{
    enum ms_rc rc = ms_buf_check(sql, err);
    if (rc == MS_OK)
        rc = ms_store_exec(s, ms_buf_z(sql), err);
    ms_buf_free(sql);
    return rc;
}

static enum ms_rc make_trend_table(const struct probe__trend_db *db, struct ms_err *err)
{
    struct ms_buf sql = {.max = SQL_MAX};
    ms_buf_puts(&sql, "CREATE TABLE trend_data (\n"
                      "    rank INTEGER NOT NULL,\n"
                      "    step INTEGER NOT NULL,\n"
                      "    target_id INTEGER NOT NULL,\n"
                      "    metric_id INTEGER NOT NULL,\n    ");
    for (unsigned i = 0; i < db->nstats; i++)
        ms_buf_printf(&sql, "%s%s REAL DEFAULT NULL", i == 0 ? "" : ", ", db->stats[i]);
    ms_buf_puts(&sql, ",\n"
                      "    PRIMARY KEY (rank, step, target_id, metric_id),\n"
                      "    FOREIGN KEY (target_id) REFERENCES monitoring_targets(target_id),\n"
                      "    FOREIGN KEY (metric_id) REFERENCES monitoring_metrics(metric_id)\n"
                      ") WITHOUT ROWID");
    return exec_buf(db->store, &sql, err);
}

static enum ms_rc make_metrics(const struct probe__trend_db *db, struct ms_err *err)
{
    struct ms_buf sql = {.max = SQL_MAX};
    for (unsigned i = 0; i < db->nmetrics; i++)
        ms_buf_printf(&sql, "INSERT INTO monitoring_metrics VALUES (%u, '%s');", i + 1,
                      db->metrics[i]);
    return exec_buf(db->store, &sql, err);
}

static enum ms_rc prepare(struct probe__trend_db *db, struct ms_err *err)
{
    struct ms_buf sql = {.max = SQL_MAX};
    MS_TRY(ms_store_prepare(db->store, &db->insert_target,
                            "INSERT INTO monitoring_targets VALUES (?, ?, ?, ?)", err));
    ms_buf_puts(&sql, "INSERT OR IGNORE INTO trend_data VALUES (?, ?, ?, ?");
    for (unsigned i = 0; i < db->nstats; i++)
        ms_buf_puts(&sql, ", ?");
    ms_buf_puts(&sql, ")");
    enum ms_rc rc = ms_buf_check(&sql, err);
    if (rc == MS_OK)
        rc = ms_store_prepare(db->store, &db->insert_row, ms_buf_z(&sql), err);
    ms_buf_free(&sql);
    return rc;
}

static enum ms_rc make_all(struct probe__trend_db *db, struct ms_err *err)
{
    MS_TRY(ms_store_exec(db->store, fixed_tables, err));
    MS_TRY(make_trend_table(db, err));
    MS_TRY(make_metrics(db, err));
    return prepare(db, err);
}

enum ms_rc probe__trend_db_open(struct probe__trend_db *db, const char *path,
                                const char *const *metrics, unsigned nmetrics,
                                const char *const *stats, unsigned nstats, struct ms_err *err)
{
    *db = (struct probe__trend_db){.metrics = metrics,
                                   .nmetrics = nmetrics,
                                   .stats = stats,
                                   .nstats = nstats,
                                   .key = {.max = NAME_MAX_BYTES},
                                   .arena = ms_arena_new(SIZE_MAX)};
    enum ms_rc rc = db->arena != NULL ? ms_store_create(&db->store, path, err) : ms_no_memory(err);
    if (rc == MS_OK)
        rc = make_all(db, err);
    if (rc != MS_OK)
        probe__trend_db_free(db);
    return rc;
}

void probe__trend_db_free(struct probe__trend_db *db)
{
    ms_stmt_free(db->insert_target);
    ms_stmt_free(db->insert_row);
    ms_store_close(db->store);
    ms_map_free(&db->keys);
    ms_vec_free(&db->targets);
    ms_buf_free(&db->key);
    ms_arena_free(db->arena);
    *db = (struct probe__trend_db){0};
}

/* ---- targets and rows ------------------------------------------------- */

static enum ms_rc add_target(struct probe__trend_db *db, struct ms_str name, int64_t stage,
                             int64_t micro_step, struct ms_err *err)
{
    struct probe__trend_target *slot = ms_vec_push(&db->targets);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct probe__trend_target){.name = name};
    ms_stmt_i64(db->insert_target, 1, (int64_t)db->targets.n);
    ms_stmt_str(db->insert_target, 2, name);
    ms_stmt_i64(db->insert_target, 3, stage);
    ms_stmt_i64(db->insert_target, 4, micro_step);
    return ms_stmt_run(db->insert_target, err);
}

enum ms_rc probe__trend_target(struct probe__trend_db *db, unsigned metric, struct ms_str name,
                               int64_t stage, int64_t micro_step, uint32_t *target,
                               struct ms_err *err)
{
    bool added;
    ms_buf_clear(&db->key);
    ms_buf_printf(&db->key, "%lld|%lld|", (long long)stage, (long long)micro_step);
    uint32_t head = (uint32_t)db->key.n;
    ms_buf_str(&db->key, name);
    MS_TRY(ms_buf_check(&db->key, err));
    *target = ms_map_put_copy(&db->keys, ms_buf_slice(&db->key), db->arena, &added);
    if (*target == MS_MAP_NONE)
        return ms_no_memory(err);
    struct ms_str kept = ms_map_key(&db->keys, *target);
    if (added)
        MS_TRY(add_target(db, ms_str_sub(kept, head, kept.n), stage, micro_step, err));
    db->targets.p[*target].metrics |= 1u << metric;
    return MS_OK;
}

/* Clamps a value: the viewer draws values within 1e9, and infinities are stored just outside. */
static double clamped(double v)
{
    const double most = 1e9;
    if (isinf(v))
        return v > 0 ? most + 1 : -most - 1;
    return v > most ? most : v < -most ? -most : v;
}

enum ms_rc probe__trend_row(struct probe__trend_db *db, int64_t rank, int64_t step, uint32_t target,
                            unsigned metric, const double *values, struct ms_err *err)
{
    ms_stmt_i64(db->insert_row, 1, rank);
    ms_stmt_i64(db->insert_row, 2, step);
    ms_stmt_i64(db->insert_row, 3, (int64_t)target + 1);
    ms_stmt_i64(db->insert_row, 4, (int64_t)metric + 1);
    for (unsigned i = 0; i < db->nstats; i++) {
        if (isnan(values[i]))
            ms_stmt_null(db->insert_row, (int)i + 5);
        else
            ms_stmt_f64(db->insert_row, (int)i + 5, clamped(values[i]));
    }
    db->rows++;
    return ms_stmt_run(db->insert_row, err);
}

/* ---- tags ------------------------------------------------------------- */

struct tagging {
    struct ms_stmt *insert_tag, *insert_link;
    struct ms_map tags; /* "metric|category|name"; the id is the index + 1 */
    struct ms_arena *arena;
    struct ms_buf key;
    uint32_t target;
    unsigned metric;
};

static enum ms_rc put_tag(void *ctx, struct ms_str name, const char *category, struct ms_err *err)
{
    struct tagging *t = ctx;
    bool added;
    ms_buf_clear(&t->key);
    ms_buf_printf(&t->key, "%u|%s|", t->metric, category);
    ms_buf_str(&t->key, name);
    MS_TRY(ms_buf_check(&t->key, err));
    uint32_t id = ms_map_put_copy(&t->tags, ms_buf_slice(&t->key), t->arena, &added);
    if (id == MS_MAP_NONE)
        return ms_no_memory(err);
    if (added) {
        ms_stmt_i64(t->insert_tag, 1, (int64_t)id + 1);
        ms_stmt_str(t->insert_tag, 2, name);
        ms_stmt_str(t->insert_tag, 3, ms_str_of(category));
        ms_stmt_i64(t->insert_tag, 4, (int64_t)t->metric + 1);
        MS_TRY(ms_stmt_run(t->insert_tag, err));
    }
    ms_stmt_i64(t->insert_link, 1, (int64_t)id + 1);
    ms_stmt_i64(t->insert_link, 2, (int64_t)t->target + 1);
    return ms_stmt_run(t->insert_link, err);
}

static enum ms_rc tag_targets(struct probe__trend_db *db, struct tagging *t, probe__tags_fn tags,
                              struct ms_err *err)
{
    MS_TRY(ms_store_prepare(db->store, &t->insert_tag,
                            "INSERT INTO monitoring_tags VALUES (?, ?, ?, ?)", err));
    MS_TRY(ms_store_prepare(db->store, &t->insert_link,
                            "INSERT OR IGNORE INTO tag_target_mapping VALUES (?, ?)", err));
    for (t->metric = 0; t->metric < db->nmetrics; t->metric++) {
        for (t->target = 0; t->target < db->targets.n; t->target++) {
            const struct probe__trend_target *target = &db->targets.p[t->target];
            if ((target->metrics & 1u << t->metric) != 0)
                MS_TRY(tags(target->name, put_tag, t, err));
        }
    }
    return MS_OK;
}

static enum ms_rc put_tags(struct probe__trend_db *db, probe__tags_fn tags, struct ms_err *err)
{
    struct tagging t = {.key = {.max = NAME_MAX_BYTES}, .arena = db->arena};
    enum ms_rc rc = tag_targets(db, &t, tags, err);
    ms_stmt_free(t.insert_tag);
    ms_stmt_free(t.insert_link);
    ms_map_free(&t.tags);
    ms_buf_free(&t.key);
    return rc;
}

/* ---- the last row ----------------------------------------------------- */

/* Writes the one row of global_stats: ranks and steps, and for each metric its statistics joined by
 * commas. */
static enum ms_rc put_global_stats(const struct probe__trend_db *db,
                                   const struct probe__trend_range *range, bool rank_first,
                                   const uint32_t *metric_stats, struct ms_err *err)
{
    struct ms_buf sql = {.max = SQL_MAX};
    const char *rank = "max_rank INTEGER DEFAULT 0";
    const char *steps = "min_step INTEGER DEFAULT 0, max_step INTEGER DEFAULT 0";
    ms_buf_printf(&sql, "CREATE TABLE global_stats (\n    %s, %s", rank_first ? rank : steps,
                  rank_first ? steps : rank);
    for (unsigned m = 0; m < db->nmetrics; m++)
        ms_buf_printf(&sql, ", %s TEXT DEFAULT NULL", db->metrics[m]);
    ms_buf_printf(&sql, "\n);INSERT INTO global_stats (max_rank, min_step, max_step");
    for (unsigned m = 0; m < db->nmetrics; m++)
        ms_buf_printf(&sql, ", %s", db->metrics[m]);
    ms_buf_printf(&sql, ") VALUES (%lld, %lld, %lld", (long long)range->max_rank,
                  (long long)range->min_step, (long long)range->max_step);
    for (unsigned m = 0; m < db->nmetrics; m++) {
        const char *sep = ", '";
        for (unsigned s = 0; s < db->nstats; s++) {
            if ((metric_stats[m] & 1u << s) == 0)
                continue;
            ms_buf_printf(&sql, "%s%s", sep, db->stats[s]);
            sep = ",";
        }
        ms_buf_puts(&sql, metric_stats[m] != 0 ? "'" : ", ''");
    }
    ms_buf_puts(&sql, ")");
    return exec_buf(db->store, &sql, err);
}

enum ms_rc probe__trend_db_finish(struct probe__trend_db *db,
                                  const struct probe__trend_range *range, bool rank_first,
                                  const uint32_t *metric_stats, probe__tags_fn tags,
                                  struct ms_err *err)
{
    MS_TRY(put_tags(db, tags, err));
    MS_TRY(put_global_stats(db, range, rank_first, metric_stats, err));
    ms_stmt_free(db->insert_target);
    ms_stmt_free(db->insert_row);
    db->insert_target = db->insert_row = NULL;
    struct ms_store *store = db->store;
    db->store = NULL;
    return ms_store_commit(store, err);
}

void probe__trend_note(const struct probe__trend_job *j, const struct ms_err *why)
{
    if (j->conf->on_note != NULL)
        j->conf->on_note(j->conf->ctx, why);
}
