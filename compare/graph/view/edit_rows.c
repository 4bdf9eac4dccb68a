/* SPDX-License-Identifier: MIT
 *
 * edit_rows: changes rows of a database by hand and updates the x_ tables to match.
 * Every row that changes is first copied to x_undo under the number of the change.
 */
#include "compare/graph/view/edit_rows.h"

#include "compare/graph/build/graph_id.h"
#include "probe/base/assert.h"

#include <math.h>

enum { TEXT_MAX = 1 << 28, NAME_MAX_BYTES = 1 << 20, DEPTH_MAX = 1000 };

static enum ms_rc prepare_at(struct graph__edit *e, struct ms_stmt **st, const char *sql,
                             bool golden, struct ms_err *err)
{
    MS_TRY(ms_store_prepare(e->store, st, sql, err));
    ms_stmt_i64(*st, 1, e->at.step);
    ms_stmt_i64(*st, 2, e->at.rank);
    ms_stmt_str(*st, 3, graph__side_name(golden));
    return MS_OK;
}

enum ms_rc graph__edit_keep(struct graph__edit *e, struct ms_str s, struct ms_str *out,
                            struct ms_err *err)
{
    *out = ms_arena_str(e->arena, s.p != NULL ? s : MS_STR(""));
    return out->p != NULL ? MS_OK : ms_arena_fail(e->arena, err);
}

static enum ms_rc keep_node(struct graph__edit *e, struct ms_stmt *st, struct graph__edit_node *n,
                            struct ms_err *err)
{
    struct ms_str *const texts[] = {&n->name, &n->parent, &n->kind, &n->link, &n->in, &n->out};
    for (int i = 0; i < 6; i++)
        MS_TRY(graph__edit_keep(e, ms_stmt_get_str(st, i), texts[i], err));
    n->index = ms_stmt_is_null(st, 6) ? NAN : ms_stmt_get_f64(st, 6);
    n->order = ms_stmt_get_i64(st, 7);
    n->modified = ms_stmt_get_i64(st, 8);
    n->there = true;
    return graph__edit_keep(e, ms_stmt_get_str(st, 9), &n->dir, err);
}

#define NODE_COLUMNS                                                                               \
    "node_name, up_node, node_type, matched_node_link, input_data, output_data,"                   \
    " precision_index, node_order, modified, dump_data_dir"

enum ms_rc graph__edit_read(struct graph__edit *e, bool golden, struct ms_str name,
                            struct graph__edit_node *n, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *n = (struct graph__edit_node){.there = false};
    MS_TRY(prepare_at(e, &st,
                      "SELECT " NODE_COLUMNS " FROM tb_nodes"
                      " WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4",
                      golden, err));
    ms_stmt_str(st, 4, name);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        rc = keep_node(e, st, n, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc graph__edit_children(struct graph__edit *e, bool golden, struct ms_str parent,
                                struct graph__edit_node **list, size_t *n, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_VEC(struct graph__edit_node) all = {0};
    enum ms_rc rc = MS_OK;
    MS_TRY(prepare_at(e, &st,
                      "SELECT node_name, up_node, node_type, matched_node_link, '', '', NULL,"
                      " node_order, modified, '' FROM tb_nodes WHERE step = ?1 AND rank = ?2 AND"
                      " data_source = ?3 AND up_node = ?4 ORDER BY node_order",
                      golden, err));
    ms_stmt_str(st, 4, parent);
    while (ms_stmt_next(st, &rc, err)) {
        struct graph__edit_node *slot = ms_vec_push(&all);
        rc = slot != NULL ? keep_node(e, st, slot, err) : ms_no_memory(err);
    }
    ms_stmt_free(st);
    *list = all.p;
    *n = all.n;
    return rc;
}

/* ---- x_ tables ----------------------------------------------------------- */

static enum graph_state state_of(const struct graph__edit *e, const struct graph__edit_node *n)
{
    return isnan(n->index) ? GRAPH_NONE : graph__band_of(&e->bands, n->index);
}

static enum ms_rc keep_graph_id(struct graph__edit *e, bool golden, struct ms_str name,
                                struct ms_str *id, struct ms_err *err)
{
    ms_buf_clear(&e->text);
    graph__put_graph_id(&e->text, (struct graph__place){e->at.step, e->at.rank, golden});
    if (name.n != 0)
        ms_buf_printf(&e->text, "_%.*s", MS_STR_ARG(name));
    MS_TRY(ms_buf_check(&e->text, err));
    return graph__edit_keep(e, ms_buf_slice(&e->text), id, err);
}

/* Removes a node from x_state, or adds it under its state. */
static enum ms_rc index_state(struct graph__edit *e, bool golden, const struct graph__edit_node *n,
                              bool put, struct ms_err *err)
{
    struct ms_stmt *st;
    struct ms_str id;
    enum graph_state state = state_of(e, n);
    if (put && !graph__edit_is_unmatched(n) && state == GRAPH_NONE)
        return MS_OK;
    MS_TRY(keep_graph_id(e, golden, MS_STR(""), &id, err));
    MS_TRY(ms_store_prepare(e->store, &st,
                            put ? "INSERT OR REPLACE INTO x_state VALUES (?1, ?3, ?2)"
                                : "DELETE FROM x_state WHERE graph_id = ?1 AND node_order = ?2"
                                  " AND state < 4", /* entries of overflows (state 4) stay */
                            err));
    ms_stmt_str(st, 1, id);
    ms_stmt_i64(st, 2, n->order);
    if (put)
        ms_stmt_i64(st, 3, graph__edit_is_unmatched(n) ? GRAPH_NONE : (int64_t)state);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

/* Reads only the parent of a node: the column of children's names may be long, so columns after it
 * are not read. */
static enum ms_rc read_parent(struct graph__edit *e, bool golden, struct ms_str name,
                              struct ms_str *parent, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *parent = MS_STR("");
    MS_TRY(prepare_at(e, &st,
                      "SELECT up_node FROM tb_nodes"
                      " WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4",
                      golden, err));
    ms_stmt_str(st, 4, name);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        rc = graph__edit_keep(e, ms_stmt_get_str(st, 0), parent, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc add_above(struct graph__edit *e, struct ms_stmt *st, bool golden,
                            struct ms_str up, struct ms_err *err)
{
    struct ms_str id;
    for (int depth = 0; up.n != 0; depth++) {
        if (depth > DEPTH_MAX)
            return ms_fail(err, MS_E_FORMAT, "node '%.*s' lies inside itself", MS_STR_ARG(up));
        MS_TRY(keep_graph_id(e, golden, up, &id, err));
        ms_stmt_str(st, 1, id);
        MS_TRY(ms_stmt_run(st, err));
        MS_TRY(read_parent(e, golden, up, &up, err));
    }
    return MS_OK;
}

/* Updates the counts in x_rollup of all ancestors of a node. */
static enum ms_rc count_above(struct graph__edit *e, bool golden,
                              const struct graph__edit_node *before,
                              const struct graph__edit_node *after, struct ms_err *err)
{
    struct ms_stmt *st;
    enum graph_state was = state_of(e, before), is = state_of(e, after);
    int error = (is == GRAPH_ERROR) - (was == GRAPH_ERROR);
    int warn = (is == GRAPH_WARNING) - (was == GRAPH_WARNING);
    int unmatched = graph__edit_is_unmatched(after) - graph__edit_is_unmatched(before);
    if (error == 0 && warn == 0 && unmatched == 0)
        return MS_OK;
    MS_TRY(ms_store_prepare(
        e->store, &st,
        "UPDATE x_rollup SET n_error = n_error + ?2, n_warn = n_warn + ?3,"
        " n_unmatched = n_unmatched + ?4, worst = CASE WHEN n_error + ?2 > 0 THEN 3"
        " WHEN n_warn + ?3 > 0 THEN 2 ELSE min(worst, 1) END WHERE id = ?1",
        err));
    ms_stmt_i64(st, 2, error);
    ms_stmt_i64(st, 3, warn);
    ms_stmt_i64(st, 4, unmatched);
    enum ms_rc rc = add_above(e, st, golden, before->parent, err);
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc follow(struct graph__edit *e, bool golden, const struct graph__edit_node *before,
                         const struct graph__edit_node *after, struct ms_err *err)
{
    if (!e->tables)
        return MS_OK;
    MS_TRY(index_state(e, golden, before, false, err));
    MS_TRY(index_state(e, golden, after, true, err));
    return count_above(e, golden, before, after, err);
}

/* ---- changing a row -------------------------------------------------------------- */

static void bind_node(struct ms_stmt *st, const struct graph__edit_node *n)
{
    ms_stmt_str(st, 4, n->name);
    ms_stmt_str(st, 5, n->link);
    ms_stmt_str(st, 6, n->in);
    ms_stmt_str(st, 7, n->out);
    if (isnan(n->index))
        ms_stmt_null(st, 8);
    else
        ms_stmt_f64(st, 8, n->index);
    ms_stmt_i64(st, 9, n->modified);
}

static enum ms_rc run_with(struct graph__edit *e, const char *sql, bool golden,
                           const struct graph__edit_node *n, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(prepare_at(e, &st, sql, golden, err));
    bind_node(st, n);
    if (e->change != 0)
        ms_stmt_i64(st, 10, e->change);
    enum ms_rc rc = ms_stmt_run(st, err);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc graph__edit_change(struct graph__edit *e, bool golden,
                              const struct graph__edit_node *before,
                              const struct graph__edit_node *after, struct ms_err *err)
{
    static const char remember[] =
        "INSERT INTO x_undo VALUES (NULL, ?10, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    static const char change[] =
        "UPDATE tb_nodes SET matched_node_link = ?5, input_data = ?6, output_data = ?7,"
        " precision_index = ?8, modified = ?9"
        " WHERE step = ?1 AND rank = ?2 AND data_source = ?3 AND node_name = ?4";
    ms_assert(ms_str_eq(before->name, after->name)); /* the row is found by name */
    int64_t number = e->change;
    if (number != 0)
        MS_TRY(run_with(e, remember, golden, before, err));
    e->change = 0; /* the other statement has no parameter for it */
    enum ms_rc rc = run_with(e, change, golden, after, err);
    e->change = number;
    return rc == MS_OK ? follow(e, golden, before, after, err) : rc;
}

/* ---- begin and end --------------------------------------------------------------------- */

enum ms_rc graph__edit_own_memory(struct graph__edit *e, struct ms_arena **kept, struct ms_err *err)
{
    struct ms_arena *own = ms_arena_new(SIZE_MAX);
    if (own == NULL)
        return ms_no_memory(err);
    *kept = e->arena;
    e->arena = own;
    return MS_OK;
}

void graph__edit_common_memory(struct graph__edit *e, struct ms_arena *kept)
{
    ms_assert(kept != NULL && kept != e->arena);
    ms_arena_free(e->arena);
    e->arena = kept;
}

static enum ms_rc one_number(struct graph__edit *e, const char *sql, int64_t *n, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *n = 0;
    MS_TRY(ms_store_prepare(e->store, &st, sql, err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        *n = ms_stmt_get_i64(st, 0);
    ms_stmt_free(st);
    return rc;
}

enum ms_rc graph__edit_count(struct graph__edit *e, uint64_t *nodes, struct ms_err *err)
{
    int64_t n;
    MS_TRY(one_number(e, "SELECT count(*) FROM tb_nodes", &n, err));
    *nodes = (uint64_t)n;
    return MS_OK;
}

static enum ms_rc set_mode(struct graph__edit *e, struct ms_str task, struct ms_err *err)
{
    static const char *const names[] = {"summary", "md5", "all", "structure"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!ms_str_is(task, names[i]))
            continue;
        e->mode = (enum probe_mode)i;
        return MS_OK;
    }
    return ms_fail(err, MS_E_ARG, "this file holds a single graph: there is nothing to match");
}

static enum ms_rc read_config(struct graph__edit *e, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(e->store, &st, "SELECT task, node_colors FROM tb_config", err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && !more)
        rc = ms_fail(err, MS_E_FORMAT, "tb_config has no row");
    if (rc == MS_OK) {
        graph__bands_read(&e->bands, ms_stmt_get_str(st, 1));
        rc = set_mode(e, ms_stmt_get_str(st, 0), err);
    }
    ms_stmt_free(st);
    return rc;
}

enum ms_rc graph__edit_begin(struct graph__edit *e, const char *path, struct graph_spot at,
                             struct ms_err *err)
{
    int64_t known = 0;
    *e = (struct graph__edit){.at = at};
    e->in.max = e->out.max = TEXT_MAX;
    e->text.max = NAME_MAX_BYTES;
    e->arena = ms_arena_new(SIZE_MAX);
    if (e->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_store_edit(&e->store, path, err));
    MS_TRY(ms_store_exec(e->store,
                         "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS x_undo (id INTEGER PRIMARY"
                         " KEY, change INTEGER, step INTEGER, rank INTEGER, data_source TEXT,"
                         " node_name TEXT, link TEXT, input_data TEXT, output_data TEXT,"
                         " precision_index REAL, modified INTEGER)",
                         err));
    MS_TRY(read_config(e, err));
    MS_TRY(one_number(e, "SELECT coalesce(max(change), 0) + 1 FROM x_undo", &e->change, err));
    bool ours = one_number(e,
                           "SELECT (SELECT count(*) FROM tb_nodes WHERE modified = 1) ="
                           " (SELECT CAST(value AS INTEGER) FROM x_meta WHERE key = 'modified')",
                           &known, NULL) == MS_OK;
    e->tables = ours && known != 0 && e->bands.usual;
    return MS_OK;
}

enum ms_rc graph__edit_end(struct graph__edit *e, enum ms_rc rc, struct ms_err *err)
{
    if (rc == MS_OK && e->tables)
        rc = ms_store_exec(e->store,
                           "UPDATE x_meta SET value = (SELECT count(*) FROM tb_nodes WHERE"
                           " modified = 1) WHERE key = 'modified'",
                           err);
    if (rc == MS_OK)
        rc = ms_store_exec(e->store, "COMMIT", err);
    ms_store_close(e->store);
    ms_arena_free(e->arena);
    ms_buf_free(&e->in);
    ms_buf_free(&e->out);
    ms_buf_free(&e->text);
    return rc;
}
