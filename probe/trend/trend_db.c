/* SPDX-License-Identifier: MIT
 *
 * trend_db: the tables of a trend database, as the official converter writes and its viewer reads
 * them.
 *
 * One foreign key in the official schema names a table that does not exist (monitoring_target). The
 * key is kept, because readers compare the schema, and foreign keys are not enforced.
 */
#include "probe/base/io.h"
#include "probe/base/jread.h"
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
static double clamp_value(double v)
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
            ms_stmt_f64(db->insert_row, (int)i + 5, clamp_value(values[i]));
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

/* ---- names of targets --------------------------------------------------------------- */

enum { MAPPING_MAX = 1 << 30 };

/* ---- the mapping ------------------------------------------------------ */

static enum ms_rc keep_text(struct probe__renames *m, const struct ms_jread *r, bool is_key,
                            struct ms_err *err)
{
    struct ms_buf scratch = {.max = NAME_MAX_BYTES};
    struct ms_str text;
    enum ms_rc rc = ms_jread_text(r, &scratch, &text, err);
    struct ms_str *slot = is_key ? ms_vec_push(&m->from) : ms_vec_push(&m->to);
    if (rc == MS_OK && slot != NULL)
        *slot = ms_arena_str(m->arena, text);
    ms_buf_free(&scratch);
    if (rc != MS_OK)
        return rc;
    return slot != NULL && slot->p != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc read_pairs(struct probe__renames *m, struct ms_jread *r, struct ms_err *err)
{
    enum ms_jtok tok = ms_jread_next(r);
    if (tok != MS_J_ERR && tok != MS_J_OBJ)
        return ms_jread_reject(r, err, "expected an object of names and what replaces them");
    while (tok != MS_J_ERR && (tok = ms_jread_next(r)) == MS_J_KEY) {
        if (r->text.n == 0)
            return ms_jread_reject(r, err, "an empty name cannot be replaced");
        MS_TRY(keep_text(m, r, true, err));
        tok = ms_jread_next(r);
        if (tok != MS_J_ERR && tok != MS_J_STR)
            return ms_jread_reject(r, err, "expected a text that replaces the name");
        if (tok == MS_J_STR)
            MS_TRY(keep_text(m, r, false, err));
    }
    if (tok == MS_J_OBJ_END)
        tok = ms_jread_next(r);
    return tok == MS_J_END ? MS_OK : ms_jread_fail(r, err);
}

enum ms_rc probe__renames_read(struct probe__renames *m, const char *path, struct ms_err *err)
{
    struct ms_file file;
    struct ms_jread r;
    *m = (struct probe__renames){0};
    if (path == NULL)
        return MS_OK;
    MS_TRY(ms_file_map(&file, path, MAPPING_MAX, err));
    ms_jread_init(&r, file.p, file.n, 0);
    m->arena = ms_arena_new(SIZE_MAX);
    enum ms_rc rc = m->arena != NULL ? read_pairs(m, &r, err) : ms_no_memory(err);
    ms_file_unmap(&file);
    if (rc == MS_OK)
        return MS_OK;
    probe__renames_free(m);
    return ms_err_wrap(err, "%s", path), rc;
}

void probe__renames_free(struct probe__renames *m)
{
    ms_vec_free(&m->from);
    ms_vec_free(&m->to);
    ms_arena_free(m->arena);
    m->arena = NULL;
}

void probe__put_replaced(struct ms_buf *out, struct ms_str s, struct ms_str from, struct ms_str to)
{
    for (;;) {
        int64_t at = ms_str_find_str(s, from);
        if (at < 0)
            break;
        ms_buf_str(out, ms_str_sub(s, 0, (uint32_t)at));
        ms_buf_str(out, to);
        s = ms_str_sub(s, (uint32_t)at + from.n, s.n);
    }
    ms_buf_str(out, s);
}

enum ms_rc probe__rename(const struct probe__renames *m, struct ms_str name, struct ms_buf buf[2],
                         struct ms_str *out, struct ms_err *err)
{
    int into = 0;
    for (size_t i = 0; i < m->from.n; i++) {
        if (ms_str_find_str(name, m->from.p[i]) < 0)
            continue;
        ms_buf_clear(&buf[into]);
        probe__put_replaced(&buf[into], name, m->from.p[i], m->to.p[i]);
        MS_TRY(ms_buf_check(&buf[into], err));
        name = ms_buf_slice(&buf[into]);
        into = !into;
    }
    *out = name;
    return MS_OK;
}

/* ---- tags ------------------------------------------------------------- */

/* A name split at its dots. */
struct parts {
    MS_VEC(struct ms_str) list;
};

static enum ms_rc cut(struct parts *ps, struct ms_str name, struct ms_err *err)
{
    struct ms_str part;
    while (ms_str_split(&name, '.', &part)) {
        struct ms_str *slot = ms_vec_push(&ps->list);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = part;
    }
    return MS_OK;
}

/* Returns parts [from, to) with the dots between them. */
static struct ms_str join_parts(const struct parts *ps, size_t from, size_t to)
{
    const char *p = ps->list.p[from].p;
    const struct ms_str *last = &ps->list.p[to - 1];
    return (struct ms_str){p, (uint32_t)(last->p + last->n - p)};
}

static bool is_number(const struct parts *ps, size_t i)
{
    return ms_str_all_digits(ps->list.p[i]);
}

struct tagger {
    probe__tag_fn fn;
    void *ctx;
    struct ms_err *err;
};

static enum ms_rc find_tag(const struct tagger *t, struct ms_str name, const char *category)
{
    return name.n != 0 ? t->fn(t->ctx, name, category, t->err) : MS_OK;
}

/* Tags parts [from, to) of a module: "layers.0" for a number behind a word, and the words in
 * between. */
static enum ms_rc tag_module(const struct tagger *t, const struct parts *ps, size_t from, size_t to)
{
    size_t done = from; /* start of the words without a tag */
    for (size_t i = from; i < to; i++) {
        if (!is_number(ps, i))
            continue;
        if (i > done) {
            MS_TRY(find_tag(t, join_parts(ps, i - 1, i + 1), "layer"));
            if (i - 1 > done)
                MS_TRY(find_tag(t, join_parts(ps, done, i - 1), "module"));
        }
        done = i + 1;
    }
    return done < to ? find_tag(t, join_parts(ps, done, to), "module") : MS_OK;
}

static bool has_part(const struct parts *ps, const char *word)
{
    for (size_t i = 0; i < ps->list.n; i++) {
        if (ms_str_is(ps->list.p[i], word))
            return true;
    }
    return false;
}

/* Tags a target of a dump. A leading "Module" or "Cell" is a tag of its own; without one the name
 * is that of a function. The last two parts name the tensor. */
static enum ms_rc tag_dump(const struct tagger *t, const struct parts *ps)
{
    size_t n = ps->list.n, from = 0;
    while (from + 2 < n &&
           (ms_str_is(ps->list.p[from], "Module") || ms_str_is(ps->list.p[from], "Cell")))
        from++;
    if (from + 2 >= n)
        return MS_OK;
    MS_TRY(find_tag(t, join_parts(ps, n - 2, n), "index"));
    if (has_part(ps, "parameters"))
        MS_TRY(find_tag(t, MS_STR("parameters"), "default"));
    for (size_t i = 0; i < from; i++)
        MS_TRY(find_tag(t, ps->list.p[i], "default"));
    return from == 0 ? find_tag(t, join_parts(ps, 0, n - 2), "function")
                     : tag_module(t, ps, from, n - 2);
}

static enum ms_rc tag_monitor(const struct tagger *t, const struct parts *ps)
{
    for (size_t i = ps->list.n; i-- != 0;) {
        if (!is_number(ps, i))
            MS_TRY(find_tag(t, ps->list.p[i], "module"));
        else if (i != 0 && !is_number(ps, i - 1))
            MS_TRY(find_tag(t, join_parts(ps, i - 1, i + 1), "layer"));
    }
    return MS_OK;
}

enum ms_rc probe__dump_tags(struct ms_str target, probe__tag_fn fn, void *ctx, struct ms_err *err)
{
    const struct tagger t = {fn, ctx, err};
    struct parts ps = {0};
    enum ms_rc rc = cut(&ps, target, err);
    if (rc == MS_OK)
        rc = tag_dump(&t, &ps);
    ms_vec_free(&ps.list);
    return rc;
}

enum ms_rc probe__monitor_tags(struct ms_str target, probe__tag_fn fn, void *ctx,
                               struct ms_err *err)
{
    const struct tagger t = {fn, ctx, err};
    struct parts ps = {0};
    enum ms_rc rc = cut(&ps, target, err);
    if (rc == MS_OK)
        rc = tag_monitor(&t, &ps);
    ms_vec_free(&ps.list);
    return rc;
}
