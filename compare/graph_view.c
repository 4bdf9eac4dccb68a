/* SPDX-License-Identifier: MIT
 *
 * graph_view: the queries.
 *
 * Every list is one statement over columns that an index or a small part of the
 * table answers; node_order is the cursor, so that no page costs more than the
 * first.  x_state and x_names make "next error" and "search" independent of how
 * large the rows are.
 */
#include "compare/graph_view.h"

#include "compare/graph_bands.h"
#include "compare/graph_schema.h"
#include "probe/base/jread.h"
#include "probe/base/store.h"

#include <stdio.h>

enum { ARENA_LIMIT = 1 << 30, NAME_MAX_BYTES = 1 << 20, PATH_MAX_NODES = 100000, SEARCH_PAGES = 4 };

/* What a row of a list is made from, in this order. */
#define ROW                                                                                        \
    "SELECT n.step, n.rank, n.node_order, n.micro_step_id, n.node_name, n.up_node, n.node_type,"   \
    " n.precision_index, n.overflow_level, n.matched_node_link, n.sub_nodes <> '', n.modified"
enum { ROW_COLUMNS = 12 };
/* Who was matched anew by hand is where that put it. */
#define MOVED(where)                                                                               \
    "SELECT a.node_order FROM x_align a JOIN tb_nodes n ON" AT "AND n.node_order = a.node_order"   \
    " AND n.modified = 0 WHERE a.graph_id = ?4 AND a.kind = 'moved' AND a.node_order " where       \
    " LIMIT 1"
#define AT " n.step = ?1 AND n.rank = ?2 AND n.data_source = ?3 "

enum query {
    Q_CHILDREN,
    Q_BY_NAME,
    Q_DETAIL,
    Q_BY_ORDER,
    Q_SEARCH,
    Q_NAMES,
    Q_WALK,
    Q_SCAN_UP,
    Q_SCAN_DOWN,
    Q_STATE_UP,
    Q_STATE_DOWN,
    Q_MATRIX,
    Q_ROLLUP,
    Q_ROLLUP_SLOW,
    Q_FATE,
    Q_MOVED_UP,
    Q_MOVED_DOWN,
    Q_WRITERS,
    Q_READERS,
    Q_FINDINGS,
    QUERIES
};

static const char *const sql[QUERIES] = {
    [Q_CHILDREN] = ROW " FROM tb_nodes n WHERE" AT "AND n.up_node = ?4 AND n.node_order > ?5"
                       " AND (?6 = -1 OR n.micro_step_id = ?6) ORDER BY n.node_order LIMIT ?7",
    [Q_BY_NAME] = ROW " FROM tb_nodes n WHERE" AT "AND n.node_name = ?4",
    [Q_DETAIL] = ROW ", n.input_data, n.output_data, s.stack_info, n.matched_distributed,"
                     " n.parallel_merge_info FROM tb_nodes n LEFT JOIN tb_stack s"
                     " ON s.id = n.stack_id WHERE" AT "AND n.node_name = ?4",
    [Q_BY_ORDER] = ROW " FROM tb_nodes n WHERE" AT "AND n.node_order = ?4",
    [Q_SEARCH] = ROW " FROM tb_nodes n WHERE n.rowid IN (SELECT m.rowid FROM tb_nodes m WHERE"
                     " m.step = ?1 AND m.rank = ?2 AND m.data_source = ?3 AND"
                     " m.node_name LIKE ?4 ESCAPE '\\') AND n.node_order > ?5"
                     " ORDER BY n.node_order LIMIT ?6",
    [Q_NAMES] = "SELECT first_order, names FROM x_names WHERE graph_id = ?1 AND first_order >="
                " (SELECT max(first_order) FROM x_names WHERE graph_id = ?1 AND first_order <= ?2)"
                " ORDER BY first_order",
    [Q_WALK] = ROW ", n.input_data, n.output_data FROM tb_nodes n WHERE" AT "ORDER BY n.node_order",
    [Q_SCAN_UP] = ROW " FROM tb_nodes n WHERE" AT "AND n.node_order > ?4 ORDER BY n.node_order",
    [Q_SCAN_DOWN] =
        ROW " FROM tb_nodes n WHERE" AT "AND n.node_order < ?4 ORDER BY n.node_order DESC",
    [Q_STATE_UP] = "SELECT min(node_order) FROM x_state WHERE graph_id = ?1 AND state = ?2"
                   " AND node_order > ?3",
    [Q_STATE_DOWN] = "SELECT max(node_order) FROM x_state WHERE graph_id = ?1 AND state = ?2"
                     " AND node_order < ?3",
    [Q_MATRIX] = ROW " FROM tb_config c, json_each(c.step_list) s, json_each(c.rank_list) r"
                     " JOIN tb_nodes n ON n.step = s.value AND n.rank = r.value AND"
                     " n.data_source = ?1 AND n.node_name = ?2 ORDER BY n.step, n.rank",
    [Q_ROLLUP] =
        "SELECT n_error, n_warn, n_unmatched, n_overflow, worst FROM x_rollup WHERE id = ?1",
    [Q_FATE] = "SELECT kind, partner, how, confidence FROM x_align"
               " WHERE graph_id = ?1 AND node_order = ?2",
    [Q_MOVED_UP] = MOVED("> ?5 ORDER BY a.node_order"),
    [Q_MOVED_DOWN] = MOVED("< ?5 ORDER BY a.node_order DESC"),
    [Q_WRITERS] = ROW " FROM x_edge e JOIN tb_nodes n ON" AT "AND n.node_order = e.src"
                      " WHERE e.graph_id = ?4 AND e.dst = ?5 GROUP BY n.node_order"
                      " ORDER BY n.node_order",
    [Q_READERS] = ROW " FROM x_edge e JOIN tb_nodes n ON" AT "AND n.node_order = e.dst"
                      " WHERE e.graph_id = ?4 AND e.src = ?5 GROUP BY n.node_order"
                      " ORDER BY n.node_order",
    [Q_FINDINGS] = "SELECT place, step, rank, node_name, golden_name, role, why, text, score"
                   " FROM x_findings ORDER BY place",
    [Q_ROLLUP_SLOW] =
        "WITH RECURSIVE below(name) AS (SELECT ?4 UNION ALL SELECT m.node_name FROM"
        " below JOIN tb_nodes m ON m.step = ?1 AND m.rank = ?2 AND"
        " m.data_source = ?3 AND m.up_node = below.name) " ROW " FROM below JOIN tb_nodes n ON" AT
        "AND n.node_name = below.name AND below.name <> ?4",
};

struct graph_view {
    struct ms_store *store;
    struct ms_stmt *st[QUERIES];
    struct graph_about about;
    struct graph_bands bands;
    bool quick;  /* x_ tables are there and tell the truth */
    bool whole;  /* and x_state holds every state, not only what is worth a visit */
    bool traced; /* x_align, x_edge and x_findings are there */
    struct ms_arena *arena;
    struct ms_buf text;
};

/* ---- pages ------------------------------------------------------------------- */

void graph_page_free(struct graph_page *p)
{
    ms_vec_free(&p->rows);
    ms_arena_free(p->arena);
    *p = (struct graph_page){.more = false};
}

static enum ms_rc start_page(struct graph_page *p, struct ms_err *err)
{
    ms_arena_free(p->arena);
    p->arena = ms_arena_new(ARENA_LIMIT);
    p->rows.n = 0;
    p->more = false;
    p->reached = -1;
    return p->arena != NULL ? MS_OK : ms_no_memory(err);
}

static enum ms_rc keep(struct graph_page *p, struct ms_str s, struct ms_str *out,
                       struct ms_err *err)
{
    *out = ms_arena_str(p->arena, s.p != NULL ? s : MS_STR(""));
    return out->p != NULL ? MS_OK : ms_arena_fail(p->arena, err);
}

/* The last name of a link, which a manual match may have made shorter than the path. */
static enum ms_rc last_of_link(struct graph_page *p, struct ms_str link, struct ms_str *out,
                               struct ms_err *err)
{
    struct ms_jread r;
    struct ms_buf scratch = {.max = NAME_MAX_BYTES};
    struct ms_str name = MS_STR(""), text;
    *out = name;
    ms_jread_init(&r, link.n != 0 ? link.p : "", link.n, 0);
    if (ms_jread_next(&r) != MS_J_ARR)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && ms_jread_next(&r) == MS_J_STR) {
        if (ms_jread_text(&r, &scratch, &text, NULL) == MS_OK)
            name = text;
        rc = name.n != 0 ? keep(p, name, out, err) : MS_OK;
    }
    ms_buf_free(&scratch);
    return rc;
}

static enum ms_rc take_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
                           struct graph_row *row, struct ms_err *err)
{
    *row = (struct graph_row){.step = ms_stmt_get_i64(st, 0),
                              .rank = ms_stmt_get_i64(st, 1),
                              .order = ms_stmt_get_i64(st, 2),
                              .micro = ms_stmt_get_i64(st, 3),
                              .kind = (int)ms_stmt_get_i64(st, 6),
                              .has_children = ms_stmt_get_i64(st, 10) != 0,
                              .modified = ms_stmt_get_i64(st, 11) != 0};
    if (!ms_stmt_is_null(st, 7))
        row->state = graph__band_of(&v->bands, ms_stmt_get_f64(st, 7));
    MS_TRY(keep(p, ms_stmt_get_str(st, 4), &row->name, err));
    MS_TRY(keep(p, ms_stmt_get_str(st, 5), &row->parent, err));
    MS_TRY(keep(p, ms_stmt_get_str(st, 8), &row->overflow, err));
    MS_TRY(last_of_link(p, ms_stmt_get_str(st, 9), &row->partner, err));
    row->unmatched = v->about.dual && row->partner.n == 0;
    return MS_OK;
}

static enum ms_rc push_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
                           struct ms_err *err)
{
    struct graph_row row;
    MS_TRY(take_row(v, st, p, &row, err));
    struct graph_row *slot = ms_vec_push(&p->rows);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = row;
    return MS_OK;
}

/* All rows of a statement that is bound; beyond limit only `more` is set. */
static enum ms_rc list_rows(struct graph_view *v, struct ms_stmt *st, uint32_t limit,
                            struct graph_page *p, struct ms_err *err)
{
    bool more;
    enum ms_rc rc;
    while ((rc = ms_stmt_step(st, &more, err)) == MS_OK && more) {
        if (p->rows.n >= limit) {
            p->more = true;
            break;
        }
        rc = push_row(v, st, p, err);
        if (rc != MS_OK)
            break;
    }
    ms_stmt_reset(st);
    return rc;
}

/* ---- statements -------------------------------------------------------------- */

static enum ms_rc statement(struct graph_view *v, enum query q, struct ms_stmt **st,
                            struct ms_err *err)
{
    if (v->st[q] == NULL)
        MS_TRY(ms_store_prepare(v->store, &v->st[q], sql[q], err));
    *st = v->st[q];
    return MS_OK;
}

static enum ms_rc statement_at(struct graph_view *v, enum query q, struct graph_spot at,
                               struct ms_stmt **st, struct ms_err *err)
{
    MS_TRY(statement(v, q, st, err));
    ms_stmt_i64(*st, 1, at.step);
    ms_stmt_i64(*st, 2, at.rank);
    ms_stmt_str(*st, 3, at.golden ? MS_STR("Bench") : MS_STR("NPU"));
    return MS_OK;
}

/* "NPU_0_1" and, where a name is given, "NPU_0_1_NAME": valid until the next call. */
static struct ms_str graph_id(struct graph_view *v, struct graph_spot at, struct ms_str name)
{
    ms_buf_clear(&v->text);
    ms_buf_printf(&v->text, "%s_%lld_%lld", at.golden ? "Bench" : "NPU", (long long)at.step,
                  (long long)at.rank);
    if (name.n != 0)
        ms_buf_printf(&v->text, "_%.*s", MS_STR_ARG(name));
    return ms_buf_slice(&v->text);
}

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

/* The answer to a question; false as well where it cannot be asked. */
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

/* Somebody else's changes are not in the tables of ours: those count the rows they know of. */
static bool knows_all_changes(struct graph_view *v)
{
    return is_true(v, "SELECT (SELECT count(*) FROM tb_nodes WHERE modified = 1) ="
                      " (SELECT CAST(value AS INTEGER) FROM x_meta WHERE key = 'modified')");
}

static bool has_traces(struct graph_view *v)
{
    return is_true(v, "SELECT count(*) = 3 FROM sqlite_master WHERE type = 'table' AND"
                      " name IN ('x_align', 'x_edge', 'x_findings')");
}

static enum ms_rc open_view(struct graph_view *v, const char *path, struct ms_err *err)
{
    v->text.max = NAME_MAX_BYTES;
    v->arena = ms_arena_new(ARENA_LIMIT);
    if (v->arena == NULL)
        return ms_no_memory(err);
    MS_TRY(ms_store_open(&v->store, path, err));
    if (read_config(v, err) != MS_OK)
        return ms_err_wrap(err, "%s", path);
    v->quick = v->bands.usual && knows_all_changes(v);
    v->whole = v->quick && is_true(v, "SELECT value = 'all' FROM x_meta WHERE key = 'states'");
    v->traced = has_traces(v);
    return MS_OK;
}

enum ms_rc graph_view_open(struct graph_view **out, const char *path, struct ms_err *err)
{
    struct graph_view *v = ms_calloc(1, sizeof *v);
    *out = NULL;
    if (v == NULL)
        return ms_no_memory(err);
    enum ms_rc rc = open_view(v, path, err);
    if (rc == MS_OK)
        *out = v;
    else
        graph_view_close(v);
    return rc;
}

void graph_view_close(struct graph_view *v)
{
    if (v == NULL)
        return;
    for (int q = 0; q < QUERIES; q++)
        ms_stmt_free(v->st[q]);
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
    MS_TRY(start_page(page, err));
    MS_TRY(statement_at(v, Q_CHILDREN, at, &st, err));
    ms_stmt_str(st, 4, parent);
    ms_stmt_i64(st, 5, after);
    ms_stmt_i64(st, 6, micro);
    ms_stmt_i64(st, 7, (int64_t)limit + 1);
    return list_rows(v, st, limit, page, err);
}

static enum ms_rc not_there(struct graph_spot at, struct ms_str name, struct ms_err *err)
{
    return ms_fail(err, MS_E_NOTFOUND, "step %lld rank %lld has no node '%.*s'", (long long)at.step,
                   (long long)at.rank, MS_STR_ARG(name));
}

enum ms_rc graph_view_path(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(start_page(page, err));
    MS_TRY(statement_at(v, Q_BY_NAME, at, &st, err));
    while (name.n != 0) {
        size_t n = page->rows.n;
        ms_stmt_str(st, 4, name);
        MS_TRY(list_rows(v, st, (uint32_t)n + 1, page, err));
        if (page->rows.n == n)
            return not_there(at, name, err);
        if (n > PATH_MAX_NODES)
            return ms_fail(err, MS_E_FORMAT, "node '%.*s' lies inside itself", MS_STR_ARG(name));
        name = page->rows.p[n].parent;
    }
    for (size_t i = 0, k = page->rows.n; i + 1 < k; i++) {
        struct graph_row row = page->rows.p[i];
        page->rows.p[i] = page->rows.p[--k];
        page->rows.p[k] = row;
    }
    return MS_OK;
}

static enum ms_rc take_detail(struct graph_view *v, struct ms_stmt *st, struct graph_page *page,
                              struct graph_detail *d, struct ms_err *err)
{
    struct ms_str *const columns[] = {&d->input, &d->output, &d->stack, &d->links, &d->merged};
    MS_TRY(take_row(v, st, page, &d->row, err));
    for (int i = 0; i < 5; i++)
        MS_TRY(keep(page, ms_stmt_get_str(st, ROW_COLUMNS + i), columns[i], err));
    return MS_OK;
}

enum ms_rc graph_view_node(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct graph_detail *d, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    MS_TRY(start_page(page, err));
    MS_TRY(statement_at(v, Q_DETAIL, at, &st, err));
    ms_stmt_str(st, 4, name);
    MS_TRY(ms_stmt_step(st, &more, err));
    if (!more)
        return not_there(at, name, err);
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
    bool more;
    MS_TRY(statement_at(v, Q_WALK, at, &st, err));
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && (rc = ms_stmt_step(st, &more, err)) == MS_OK && more) {
        rc = start_page(&text, err);
        if (rc == MS_OK)
            rc = take_row(v, st, &text, &row, err);
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
    MS_TRY(start_page(page, err));
    MS_TRY(statement(v, Q_MATRIX, &st, err));
    ms_stmt_str(st, 1, golden ? MS_STR("Bench") : MS_STR("NPU"));
    ms_stmt_str(st, 2, name);
    return list_rows(v, st, UINT32_MAX, page, err);
}

/* ---- search -------------------------------------------------------------------- */

static enum ms_rc add_by_order(struct graph_view *v, struct graph_spot at, int64_t order,
                               struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(statement_at(v, Q_BY_ORDER, at, &st, err));
    ms_stmt_i64(st, 4, order);
    return list_rows(v, st, (uint32_t)page->rows.n + 1, page, err);
}

/* One page of names, a line each, of which the first is that of node `order`. */
static enum ms_rc search_names(struct graph_view *v, struct graph_spot at, struct ms_str names,
                               int64_t order, struct ms_str word, int64_t after, uint32_t limit,
                               struct graph_page *page, struct ms_err *err)
{
    const char *p = names.p, *end = p + names.n;
    while (p < end && !page->more) {
        const char *hit = memmem(p, (size_t)(end - p), word.p, word.n);
        if (hit == NULL)
            return MS_OK;
        for (const char *line; (line = memchr(p, '\n', (size_t)(hit - p))) != NULL; p = line + 1)
            order++;
        if (order > after && page->rows.n == limit)
            page->more = true;
        else if (order > after)
            MS_TRY(add_by_order(v, at, order, page, err));
        const char *next = memchr(hit, '\n', (size_t)(end - hit));
        p = next != NULL ? next + 1 : end;
        order++;
    }
    return MS_OK;
}

static enum ms_rc search_quick(struct graph_view *v, struct graph_spot at, struct ms_str word,
                               int64_t after, uint32_t limit, struct graph_page *page,
                               struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    enum ms_rc rc;
    MS_TRY(statement(v, Q_NAMES, &st, err));
    ms_stmt_str(st, 1, graph_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, after < 0 ? 0 : after);
    for (int pages = 0; (rc = ms_stmt_step(st, &more, err)) == MS_OK && more && !page->more;
         pages++) {
        if (pages == SEARCH_PAGES) {
            page->more = true;
            page->reached = ms_stmt_get_i64(st, 0) - 1;
            break;
        }
        rc = search_names(v, at, ms_stmt_get_blob(st, 1), ms_stmt_get_i64(st, 0), word, after,
                          limit, page, err);
        if (rc != MS_OK)
            break;
    }
    ms_stmt_reset(st);
    return rc;
}

static enum ms_rc search_like(struct graph_view *v, struct graph_spot at, struct ms_str word,
                              int64_t after, uint32_t limit, struct graph_page *page,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(statement_at(v, Q_SEARCH, at, &st, err));
    ms_buf_clear(&v->text);
    ms_buf_putc(&v->text, '%');
    for (uint32_t i = 0; i < word.n; i++) {
        if (word.p[i] == '%' || word.p[i] == '_' || word.p[i] == '\\')
            ms_buf_putc(&v->text, '\\');
        ms_buf_putc(&v->text, word.p[i]);
    }
    ms_buf_putc(&v->text, '%');
    MS_TRY(ms_buf_check(&v->text, err));
    ms_stmt_str(st, 4, ms_buf_slice(&v->text));
    ms_stmt_i64(st, 5, after);
    ms_stmt_i64(st, 6, (int64_t)limit + 1);
    return list_rows(v, st, limit, page, err);
}

enum ms_rc graph_view_search(struct graph_view *v, struct graph_spot at, struct ms_str text,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err)
{
    struct ms_buf lower = {.max = NAME_MAX_BYTES};
    MS_TRY(start_page(page, err));
    for (uint32_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        ms_buf_putc(&lower, c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
    }
    enum ms_rc rc = ms_buf_check(&lower, err);
    struct ms_str word = ms_buf_slice(&lower);
    /* Names do not change, so x_names is right whatever was matched by hand. */
    if (rc == MS_OK && v->quick && text.n != 0 && ms_str_find(text, '\n') < 0)
        rc = search_quick(v, at, word, after, limit, page, err);
    else if (rc == MS_OK)
        rc = search_like(v, at, word, after, limit, page, err);
    ms_buf_free(&lower);
    return rc;
}

/* ---- states -------------------------------------------------------------------- */

static bool is_wanted(const struct graph_row *row, unsigned want)
{
    return ((want & GRAPH_WANT_UNMATCHED) && row->unmatched) ||
           ((want & GRAPH_WANT_OVERFLOW) && row->overflow.n != 0) ||
           (row->state != GRAPH_NONE && (want & 1U << row->state));
}

/* The nearest node that has moved, or -1. */
static enum ms_rc nearest_moved(struct graph_view *v, struct graph_spot at, int64_t from,
                                bool backwards, int64_t *order, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *order = -1;
    if (!v->traced)
        return MS_OK;
    MS_TRY(statement_at(v, backwards ? Q_MOVED_DOWN : Q_MOVED_UP, at, &st, err));
    ms_stmt_str(st, 4, graph_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 5, from);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        *order = ms_stmt_get_i64(st, 0);
    ms_stmt_reset(st);
    return rc;
}

/* Does the row stay?  *moved is the nearest node that has moved, looked up anew once it is passed;
 * INT64_MIN: not looked up yet. */
static enum ms_rc judge_row(struct graph_view *v, struct graph_spot at, unsigned want,
                            const struct graph_row *row, bool backwards, int64_t *moved,
                            bool *wanted, struct ms_err *err)
{
    *wanted = is_wanted(row, want);
    if (!(want & GRAPH_WANT_MOVED) || *moved == -1)
        return MS_OK;
    if (*moved == INT64_MIN || (backwards ? *moved > row->order : *moved < row->order))
        MS_TRY(nearest_moved(v, at, row->order + (backwards ? 1 : -1), backwards, moved, err));
    *wanted = *wanted || *moved == row->order;
    return MS_OK;
}

static enum ms_rc scan(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                       bool backwards, uint32_t limit, struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more, wanted = false;
    int64_t moved = INT64_MIN;
    enum ms_rc rc;
    MS_TRY(statement_at(v, backwards ? Q_SCAN_DOWN : Q_SCAN_UP, at, &st, err));
    ms_stmt_i64(st, 4, from);
    while ((rc = ms_stmt_step(st, &more, err)) == MS_OK && more && !page->more) {
        rc = push_row(v, st, page, err);
        if (rc == MS_OK)
            rc = judge_row(v, at, want, &page->rows.p[page->rows.n - 1], backwards, &moved, &wanted,
                           err);
        if (rc != MS_OK)
            break;
        if (!wanted)
            page->rows.n--;
        page->more = page->rows.n > limit;
    }
    page->rows.n -= page->more;
    ms_stmt_reset(st);
    return rc;
}

/* States that x_state holds, and what x_align does. */
static bool is_quick(const struct graph_view *v, unsigned want)
{
    const unsigned indexed =
        GRAPH_WANT_WARNING | GRAPH_WANT_ERROR | GRAPH_WANT_UNMATCHED | GRAPH_WANT_MOVED;
    return v->whole || (v->quick && (want & ~indexed) == 0) || want == GRAPH_WANT_MOVED;
}

/* The nearest node_order in a state, or -1. */
static enum ms_rc nearest_in(struct graph_view *v, struct graph_spot at, int state, int64_t from,
                             bool backwards, int64_t *order, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *order = -1;
    MS_TRY(statement(v, backwards ? Q_STATE_DOWN : Q_STATE_UP, &st, err));
    ms_stmt_str(st, 1, graph_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, state);
    ms_stmt_i64(st, 3, from);
    MS_TRY(ms_stmt_step(st, &more, err));
    if (more && !ms_stmt_is_null(st, 0))
        *order = ms_stmt_get_i64(st, 0);
    ms_stmt_reset(st);
    return MS_OK;
}

static enum ms_rc nearest(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                          bool backwards, int64_t *order, struct ms_err *err)
{
    static const struct {
        unsigned want;
        int state;
    } kinds[] = {{GRAPH_WANT_UNMATCHED, GRAPH_NONE},
                 {GRAPH_WANT_PASS, GRAPH_PASS},
                 {GRAPH_WANT_WARNING, GRAPH_WARNING},
                 {GRAPH_WANT_ERROR, GRAPH_ERROR},
                 {GRAPH_WANT_OVERFLOW, GRAPH_STATE_OVERFLOW}};
    const size_t states = sizeof kinds / sizeof *kinds;
    *order = -1;
    for (size_t i = 0; i <= states; i++) {
        int64_t here = -1;
        if (i < states && (want & kinds[i].want))
            MS_TRY(nearest_in(v, at, kinds[i].state, from, backwards, &here, err));
        if (i == states && (want & GRAPH_WANT_MOVED))
            MS_TRY(nearest_moved(v, at, from, backwards, &here, err));
        if (here >= 0 && (*order < 0 || (backwards ? here > *order : here < *order)))
            *order = here;
    }
    return MS_OK;
}

enum ms_rc graph_view_filter(struct graph_view *v, struct graph_spot at, unsigned want,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err)
{
    MS_TRY(start_page(page, err));
    if (!is_quick(v, want))
        return scan(v, at, want, after, false, limit, page, err);
    for (;;) {
        MS_TRY(nearest(v, at, want, after, false, &after, err));
        page->more = after >= 0 && page->rows.n == limit;
        if (after < 0 || page->more)
            return MS_OK;
        MS_TRY(add_by_order(v, at, after, page, err));
    }
}

enum ms_rc graph_view_next(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                           bool backwards, struct graph_page *page, struct ms_err *err)
{
    int64_t order;
    MS_TRY(start_page(page, err));
    if (!is_quick(v, want)) {
        MS_TRY(scan(v, at, want, from, backwards, 1, page, err));
        page->more = false;
        return MS_OK;
    }
    MS_TRY(nearest(v, at, want, from, backwards, &order, err));
    return order >= 0 ? add_by_order(v, at, order, page, err) : MS_OK;
}

/* ---- roll-ups ------------------------------------------------------------------- */

static enum ms_rc rollup_slow(struct graph_view *v, struct graph_spot at, struct ms_str name,
                              struct graph_rollup *r, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct ms_stmt *st = NULL;
    enum ms_rc rc = start_page(&page, err);
    if (rc == MS_OK)
        rc = statement_at(v, Q_ROLLUP_SLOW, at, &st, err);
    if (rc == MS_OK) {
        ms_stmt_str(st, 4, name);
        rc = list_rows(v, st, UINT32_MAX, &page, err);
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
    MS_TRY(statement(v, Q_ROLLUP, &st, err));
    ms_stmt_str(st, 1, graph_id(v, at, name));
    MS_TRY(ms_stmt_step(st, &more, err));
    if (!more) /* without children */
        return MS_OK;
    r->error = ms_stmt_get_i64(st, 0);
    r->warning = ms_stmt_get_i64(st, 1);
    r->unmatched = ms_stmt_get_i64(st, 2);
    r->overflow = ms_stmt_get_i64(st, 3);
    r->worst = (enum graph_state)ms_stmt_get_i64(st, 4);
    ms_stmt_reset(st);
    return MS_OK;
}

/* ---- traces ---------------------------------------------------------------------- */

/* The row of one node, first of the page. */
static enum ms_rc one_node(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(start_page(page, err));
    MS_TRY(statement_at(v, Q_BY_NAME, at, &st, err));
    ms_stmt_str(st, 4, name);
    MS_TRY(list_rows(v, st, 1, page, err));
    return page->rows.n != 0 ? MS_OK : not_there(at, name, err);
}

static enum ms_rc take_fate(struct ms_stmt *st, struct graph_page *page, struct graph_fate *fate,
                            struct ms_err *err)
{
    MS_TRY(keep(page, ms_stmt_get_str(st, 0), &fate->kind, err));
    MS_TRY(keep(page, ms_stmt_get_str(st, 1), &fate->partner, err));
    MS_TRY(keep(page, ms_stmt_get_str(st, 2), &fate->how, err));
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
    MS_TRY(statement(v, Q_FATE, &st, err));
    ms_stmt_str(st, 1, graph_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, row.order);
    MS_TRY(ms_stmt_step(st, &more, err));
    enum ms_rc rc = more ? take_fate(st, page, fate, err) : MS_OK;
    ms_stmt_reset(st);
    return rc;
}

enum ms_rc graph_view_flow(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           bool readers, struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(one_node(v, at, name, page, err));
    int64_t order = page->rows.p[0].order;
    MS_TRY(start_page(page, err));
    if (!v->traced)
        return MS_OK;
    MS_TRY(statement_at(v, readers ? Q_READERS : Q_WRITERS, at, &st, err));
    ms_stmt_str(st, 4, graph_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 5, order);
    return list_rows(v, st, UINT32_MAX, page, err);
}

void graph_findings_free(struct graph_findings *f)
{
    ms_vec_free(&f->list);
    ms_arena_free(f->arena);
    *f = (struct graph_findings){.arena = NULL};
}

static enum ms_rc take_finding(struct ms_stmt *st, struct graph_findings *f, struct ms_err *err)
{
    struct graph_finding *slot = ms_vec_push(&f->list);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = (struct graph_finding){.place = ms_stmt_get_i64(st, 0),
                                   .step = ms_stmt_get_i64(st, 1),
                                   .rank = ms_stmt_get_i64(st, 2),
                                   .score = ms_stmt_get_f64(st, 8)};
    struct ms_str *const texts[] = {&slot->target, &slot->golden, &slot->role, &slot->why,
                                    &slot->text};
    for (int i = 0; i < 5; i++) {
        struct ms_str s = ms_stmt_get_str(st, 3 + i);
        *texts[i] = ms_arena_str(f->arena, s.p != NULL ? s : MS_STR(""));
        if (texts[i]->p == NULL)
            return ms_arena_fail(f->arena, err);
    }
    return MS_OK;
}

enum ms_rc graph_view_findings(struct graph_view *v, struct graph_findings *f, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    enum ms_rc rc;
    graph_findings_free(f);
    f->arena = ms_arena_new(ARENA_LIMIT);
    if (f->arena == NULL)
        return ms_no_memory(err);
    if (!v->traced)
        return MS_OK;
    MS_TRY(statement(v, Q_FINDINGS, &st, err));
    while ((rc = ms_stmt_step(st, &more, err)) == MS_OK && more) {
        rc = take_finding(st, f, err);
        if (rc != MS_OK)
            break;
    }
    ms_stmt_reset(st);
    return rc;
}
