/* SPDX-License-Identifier: MIT
 *
 * graph_view: opens a database and lists its tree.
 *
 * Every list is one statement that an index or a small part of a table can answer.
 * node_order is the cursor, so each page costs the same.
 */
#include "compare/graph/view/graph_rows.h"
#include "compare/graph/view/suspect_rows.h"
#include "probe/base/jread.h"

/* ---- opening ----------------------------------------------------------------- */

static enum ms_rc read_list(struct ms_str json, int64_t **p, size_t *n, struct ms_err *err)
{
    struct ms_jread r;
    MS_VEC(int64_t) list = {0};
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    enum ms_jtok tok = ms_jread_next(&r);
    while (tok == MS_J_ARR && ms_jread_next(&r) == MS_J_NUM) {
        int64_t *slot = ms_vec_push(&list);
        if (slot == NULL) {
            ms_vec_free(&list);
            return ms_no_memory(err);
        }
        if (!ms_jread_i64(&r, slot))
            list.n--;
    }
    *p = list.p;
    *n = list.n;
    return MS_OK;
}

static enum ms_rc take_config(struct graph_view *v, struct ms_stmt *st, struct ms_err *err)
{
    struct graph_about *a = &v->about;
    a->dual = ms_str_is(ms_stmt_get_str(st, 0), "compare");
    a->task = ms_arena_str(v->arena, ms_stmt_is_null(st, 1) ? MS_STR("") : ms_stmt_get_str(st, 1));
    if (a->task.p == NULL)
        return ms_arena_fail(v->arena, err);
    a->micro_steps = ms_stmt_get_i64(st, 2);
    a->overflow = ms_stmt_get_i64(st, 3) != 0;
    graph__bands_read(&v->bands, ms_stmt_get_str(st, 4));
    MS_TRY(read_list(ms_stmt_get_str(st, 5), &a->ranks.p, &a->ranks.n, err));
    return read_list(ms_stmt_get_str(st, 6), &a->steps.p, &a->steps.n, err);
}

static enum ms_rc read_config(struct graph_view *v, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(ms_store_prepare(v->store, &st,
                            "SELECT graph_type, task, micro_steps, overflow_check, node_colors,"
                            " rank_list, step_list FROM tb_config",
                            err));
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && !more)
        rc = ms_fail(err, MS_E_FORMAT, "tb_config has no row: not a graph, or one cut off");
    if (rc == MS_OK)
        rc = take_config(v, st, err);
    ms_stmt_free(st);
    return rc;
}

/* Runs a yes-no query; false when a table is missing. */
static bool is_true(struct graph_view *v, const char *question)
{
    struct ms_stmt *st;
    bool more, yes = false;
    if (ms_store_prepare(v->store, &st, question, NULL) != MS_OK)
        return false;
    if (ms_stmt_step(st, &more, NULL) == MS_OK && more)
        yes = ms_stmt_get_i64(st, 0) != 0;
    ms_stmt_free(st);
    return yes;
}

/* Returns true when the x_ tables include every manual change. x_meta counts the changes that they
 * include; the official viewer changes rows without updating x_meta. */
static bool knows_all_changes(struct graph_view *v)
{
    return is_true(v, "SELECT (SELECT count(*) FROM tb_nodes WHERE modified = 1) ="
                      " (SELECT CAST(value AS INTEGER) FROM x_meta WHERE key = 'modified')");
}

static bool has_kin(struct graph_view *v)
{
    return is_true(v, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'x_kin'");
}

static bool has_traces(struct graph_view *v)
{
    return is_true(v, "SELECT count(*) = 3 FROM sqlite_master WHERE type = 'table' AND"
                      " name IN ('x_align', 'x_edge', 'x_findings')");
}

/* Reads a value of x_meta; empty in files of other tools. */
static enum ms_rc read_meta(struct graph_view *v, const char *key, struct ms_str *out,
                            struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *out = MS_STR("");
    if (ms_store_prepare(v->store, &st, "SELECT value FROM x_meta WHERE key = ?1", NULL) != MS_OK)
        return MS_OK;
    ms_stmt_str(st, 1, ms_str_of(key));
    enum ms_rc rc = MS_OK;
    if (ms_stmt_step(st, &more, NULL) == MS_OK && more && !ms_stmt_is_null(st, 0)) {
        *out = ms_arena_str(v->arena, ms_stmt_get_str(st, 0));
        rc = out->p != NULL ? MS_OK : ms_arena_fail(v->arena, err);
    }
    ms_stmt_free(st);
    return rc;
}

static enum ms_rc read_origin(struct graph_view *v, struct ms_err *err)
{
    MS_TRY(read_meta(v, "tool", &v->about.tool, err));
    MS_TRY(read_meta(v, "framework", &v->about.framework, err));
    MS_TRY(read_meta(v, "target", &v->about.target, err));
    return read_meta(v, "golden", &v->about.golden, err);
}

/* Reads the properties of the database as a whole. */
static enum ms_rc read_all(struct graph_view *v, const char *path, struct ms_err *err)
{
    if (read_config(v, err) != MS_OK)
        return ms_err_wrap(err, "%s", path);
    v->quick = v->bands.usual && knows_all_changes(v);
    v->whole = v->quick && is_true(v, "SELECT value = 'all' FROM x_meta WHERE key = 'states'");
    v->traced = has_traces(v);
    v->kin = has_kin(v);
    MS_TRY(graph__suspects_read(v, err));
    return read_origin(v, err);
}

typedef enum ms_rc (*open_fn)(struct ms_store **s, const char *path, struct ms_err *err);

static enum ms_rc open_view(struct graph_view *v, const char *path, open_fn open_store,
                            struct ms_err *err)
{
    v->text.max = GRAPH_NAME_MAX;
    v->arena = ms_arena_new(GRAPH_ARENA_MAX);
    if (v->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(open_store(&v->store, path, err));
    return read_all(v, path, err);
}

static enum ms_rc open_with(struct graph_view **out, const char *path, open_fn open_store,
                            struct ms_err *err)
{
    struct graph_view *v = ms_calloc(1, sizeof *v);
    *out = NULL;
    if (v == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = open_view(v, path, open_store, err);
    if (rc == MS_OK)
        *out = v;
    else
        graph_view_close(v);
    return rc;
}

enum ms_rc graph_view_open(struct graph_view **v, const char *path, struct ms_err *err)
{
    return open_with(v, path, ms_store_open, err);
}

enum ms_rc graph_view_open_work(struct graph_view **v, const char *path, struct ms_err *err)
{
    return open_with(v, path, ms_store_open_work, err);
}

/* Replaces the store. Statements belong to the old store and are freed; texts held by callers stay
 * valid. */
enum ms_rc graph_view_move(struct graph_view *v, const char *path, struct ms_err *err)
{
    struct ms_store *store;
    MS_TRY(ms_store_open_work(&store, path, err));
    for (int q = 0; q < QUERIES; q++) {
        ms_stmt_free(v->st[q]);
        v->st[q] = NULL;
    }
    ms_store_close(v->store);
    v->store = store;
    return MS_OK;
}

void graph_view_close(struct graph_view *v)
{
    if (v == NULL)
        return;
    for (int q = 0; q < QUERIES; q++)
        ms_stmt_free(v->st[q]);
    graph__shapes_free(v->shapes[0]);
    graph__shapes_free(v->shapes[1]);
    graph__suspects_free(&v->suspects);
    ms_store_close(v->store);
    ms_vec_free(&v->about.ranks);
    ms_vec_free(&v->about.steps);
    ms_arena_free(v->arena);
    ms_buf_free(&v->text);
    ms_free(v);
}

const struct graph_about *graph_view_about(const struct graph_view *v)
{
    return &v->about;
}

/* ---- walking the tree ---------------------------------------------------------- */

enum ms_rc graph_view_children(struct graph_view *v, struct graph_spot at, struct ms_str parent,
                               int64_t micro, int64_t after, uint32_t limit,
                               struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(graph__page_start(page, err));
    MS_TRY(graph__statement_at(v, Q_CHILDREN, at, &st, err));
    ms_stmt_str(st, 4, parent);
    ms_stmt_i64(st, 5, after);
    ms_stmt_i64(st, 6, micro);
    ms_stmt_i64(st, 7, (int64_t)limit + 1);
    return graph__list_rows(v, st, limit, page, err);
}

static enum ms_rc take_detail(struct graph_view *v, struct ms_stmt *st, struct graph_page *page,
                              struct graph_detail *d, struct ms_err *err)
{
    struct ms_str *const columns[] = {&d->input, &d->output, &d->stack, &d->links, &d->merged};
    MS_TRY(graph__take_row(v, st, page, &d->row, err));
    for (int i = 0; i < 5; i++)
        MS_TRY(graph__keep(page, ms_stmt_get_str(st, ROW_COLUMNS + i), columns[i], err));
    return MS_OK;
}

enum ms_rc graph_view_node(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct graph_detail *d, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(graph__page_start(page, err));
    MS_TRY(graph__statement_at(v, Q_DETAIL, at, &st, err));
    ms_stmt_str(st, 4, name);
    MS_TRY(ms_stmt_step(st, &more, err));
    if (!more)
        return graph__not_there(at, name, err);
    enum ms_rc rc = take_detail(v, st, page, d, err);
    ms_stmt_reset(st);
    return rc;
}

enum ms_rc graph_view_walk(struct graph_view *v, struct graph_spot at, graph_walk_fn fn, void *ctx,
                           struct ms_err *err)
{
    struct ms_stmt *st;
    struct graph_page text = {.more = false};
    struct graph_row row;
    MS_TRY(graph__statement_at(v, Q_WALK, at, &st, err));
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        rc = graph__page_start(&text, err);
        if (rc == MS_OK)
            rc = graph__take_row(v, st, &text, &row, err);
        if (rc == MS_OK)
            rc = fn(ctx, &row, ms_stmt_get_str(st, ROW_COLUMNS),
                    ms_stmt_get_str(st, ROW_COLUMNS + 1), err);
    }
    ms_stmt_reset(st);
    graph_page_free(&text);
    return rc;
}

enum ms_rc graph_view_matrix(struct graph_view *v, bool golden, struct ms_str name,
                             struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(graph__page_start(page, err));
    MS_TRY(graph__statement(v, Q_MATRIX, &st, err));
    ms_stmt_str(st, 1, golden ? MS_STR("Bench") : MS_STR("NPU"));
    ms_stmt_str(st, 2, name);
    return graph__list_rows(v, st, UINT32_MAX, page, err);
}

/* ---- roll-ups ------------------------------------------------------------------- */

static enum ms_rc rollup_slow(struct graph_view *v, struct graph_spot at, struct ms_str name,
                              struct graph_rollup *r, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct ms_stmt *st = NULL;
    enum ms_rc rc = graph__page_start(&page, err);
    if (rc == MS_OK)
        rc = graph__statement_at(v, Q_ROLLUP_SLOW, at, &st, err);
    if (rc == MS_OK) {
        ms_stmt_str(st, 4, name);
        rc = graph__list_rows(v, st, UINT32_MAX, &page, err);
    }
    for (size_t i = 0; rc == MS_OK && i < page.rows.n; i++) {
        const struct graph_row *row = &page.rows.p[i];
        r->error += row->state == GRAPH_ERROR;
        r->warning += row->state == GRAPH_WARNING;
        r->unmatched += row->unmatched;
        r->overflow += row->overflow.n != 0;
        r->worst = row->state > r->worst ? row->state : r->worst;
    }
    graph_page_free(&page);
    return rc;
}

enum ms_rc graph_view_rollup(struct graph_view *v, struct graph_spot at, struct ms_str name,
                             struct graph_rollup *r, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *r = (struct graph_rollup){.error = 0};
    if (!v->quick)
        return rollup_slow(v, at, name, r, err);
    MS_TRY(graph__statement(v, Q_ROLLUP, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, name));
    MS_TRY(ms_stmt_step(st, &more, err));
    if (!more) /* no row in x_rollup: the node has no children */
        return MS_OK;
    r->error = ms_stmt_get_i64(st, 0);
    r->warning = ms_stmt_get_i64(st, 1);
    r->unmatched = ms_stmt_get_i64(st, 2);
    r->overflow = ms_stmt_get_i64(st, 3);
    r->worst = (enum graph_state)ms_stmt_get_i64(st, 4);
    ms_stmt_reset(st);
    return graph__suspects_count(v, at, name, r, err);
}

/* ---- results of matching ------------------------------------------------- */

/* Reads the row of one node as the first of the page. */
static enum ms_rc one_node(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(graph__page_start(page, err));
    MS_TRY(graph__statement_at(v, Q_BY_NAME, at, &st, err));
    ms_stmt_str(st, 4, name);
    MS_TRY(graph__list_rows(v, st, 1, page, err));
    return page->rows.n != 0 ? MS_OK : graph__not_there(at, name, err);
}

static enum ms_rc take_fate(struct ms_stmt *st, struct graph_page *page, struct graph_fate *fate,
                            struct ms_err *err)
{
    MS_TRY(graph__keep(page, ms_stmt_get_str(st, 0), &fate->kind, err));
    MS_TRY(graph__keep(page, ms_stmt_get_str(st, 1), &fate->partner, err));
    MS_TRY(graph__keep(page, ms_stmt_get_str(st, 2), &fate->how, err));
    fate->confidence = ms_stmt_get_f64(st, 3);
    return MS_OK;
}

enum ms_rc graph_view_fate(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct graph_fate *fate, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more = false;
    MS_TRY(one_node(v, at, name, page, err));
    const struct graph_row row = page->rows.p[0];
    *fate = (struct graph_fate){.kind = row.partner.n != 0 ? MS_STR("matched")
                                        : at.golden        ? MS_STR("missing")
                                                           : MS_STR("extra"),
                                .partner = row.partner,
                                .how = row.modified ? MS_STR("by hand") : MS_STR("name"),
                                .confidence = row.partner.n != 0};
    if (!v->traced || row.modified)
        return MS_OK;
    MS_TRY(graph__statement(v, Q_FATE, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, row.order);
    MS_TRY(ms_stmt_step(st, &more, err));
    enum ms_rc rc = more ? take_fate(st, page, fate, err) : MS_OK;
    ms_stmt_reset(st);
    return rc;
}

void graph_kins_free(struct graph_kins *k)
{
    ms_vec_free(&k->list);
    graph_page_free(&k->page);
}

enum ms_rc graph_view_kin(struct graph_view *v, struct graph_spot at, struct ms_str name,
                          struct graph_kins *k, struct ms_err *err)
{
    struct ms_stmt *st;
    k->list.n = 0;
    MS_TRY(one_node(v, at, name, &k->page, err));
    const struct graph_row row = k->page.rows.p[0];
    if (!v->kin || row.modified)
        return MS_OK;
    MS_TRY(graph__statement(v, Q_KIN, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, row.order);
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        struct graph_fate *fate = ms_vec_push(&k->list);
        rc = fate != NULL ? take_fate(st, &k->page, fate, err) : ms_no_memory(err);
    }
    ms_stmt_reset(st);
    return rc;
}

enum ms_rc graph_view_flow(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           bool readers, struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(one_node(v, at, name, page, err));
    int64_t order = page->rows.p[0].order;
    MS_TRY(graph__page_start(page, err));
    if (!v->traced)
        return MS_OK;
    MS_TRY(graph__statement_at(v, readers ? Q_READERS : Q_WRITERS, at, &st, err));
    ms_stmt_str(st, 4, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 5, order);
    return graph__list_rows(v, st, UINT32_MAX, page, err);
}
