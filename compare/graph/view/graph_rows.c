/* SPDX-License-Identifier: MIT
 *
 * graph_rows: SQL statements and their rows.
 */
#include "compare/graph/view/graph_rows.h"

#include "probe/base/assert.h"
#include "probe/base/jread.h"

/* Columns of a row of a list, in this order. */
#define ROW                                                                                        \
    "SELECT n.step, n.rank, n.node_order, n.micro_step_id, n.node_name, n.up_node, n.node_type,"   \
    " n.precision_index, n.overflow_level, n.matched_node_link, n.sub_nodes <> '', n.modified,"    \
    " n.data_source = 'Bench'"
/* Finds a moved node. Nodes that were rematched by hand (modified) do not count as moved. */
#define MOVED(where)                                                                               \
    "SELECT a.node_order FROM x_align a JOIN tb_nodes n ON" AT "AND n.node_order = a.node_order"   \
    " AND n.modified = 0 WHERE a.graph_id = ?4 AND a.kind = 'moved' AND a.node_order " where       \
    " LIMIT 1"
#define AT " n.step = ?1 AND n.rank = ?2 AND n.data_source = ?3 "

/* more: further columns; NULL for each that a file of an older version lacks. */
#define FINDINGS(more)                                                                             \
    "SELECT place, step, rank, node_name, golden_name, role, why, text, score, " more              \
    " FROM x_findings ORDER BY place"

enum { PATH_MAX_NODES = 100000 };

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
    [Q_NAMES_FROM] = "SELECT first_order, names FROM x_names WHERE graph_id = ?1 AND"
                     " first_order >= ?2 ORDER BY first_order",
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
    [Q_KIN] = "SELECT kind, name, how, confidence FROM x_kin"
              " WHERE graph_id = ?1 AND node_order = ?2 ORDER BY place",
    [Q_MOVED_UP] = MOVED("> ?5 ORDER BY a.node_order"),
    [Q_MOVED_DOWN] = MOVED("< ?5 ORDER BY a.node_order DESC"),
    [Q_WRITERS] = ROW " FROM x_edge e JOIN tb_nodes n ON" AT "AND n.node_order = e.src"
                      " WHERE e.graph_id = ?4 AND e.dst = ?5 GROUP BY n.node_order"
                      " ORDER BY n.node_order",
    [Q_READERS] = ROW " FROM x_edge e JOIN tb_nodes n ON" AT "AND n.node_order = e.dst"
                      " WHERE e.graph_id = ?4 AND e.src = ?5 GROUP BY n.node_order"
                      " ORDER BY n.node_order",
    [Q_FINDINGS] = FINDINGS("message, args, ranks, certainty"),
    [Q_FINDINGS_UNSURE] = FINDINGS("message, args, NULL, NULL"),
    [Q_FINDINGS_OLD] = FINDINGS("NULL, NULL, NULL, NULL"),
    [Q_ROLLUP_SLOW] =
        "WITH RECURSIVE below(name) AS (SELECT ?4 UNION SELECT m.node_name FROM"
        " below JOIN tb_nodes m ON m.step = ?1 AND m.rank = ?2 AND"
        " m.data_source = ?3 AND m.up_node = below.name) " ROW " FROM below JOIN tb_nodes n ON" AT
        "AND n.node_name = below.name AND below.name <> ?4",
};

/* ---- pages ------------------------------------------------------------------- */

void graph_page_free(struct graph_page *p)
{
    ms_vec_free(&p->rows);
    ms_arena_free(p->arena);
    *p = (struct graph_page){.more = false};
}

enum ms_rc graph__page_start(struct graph_page *p, struct ms_err *err)
{
    ms_arena_free(p->arena);
    p->arena = ms_arena_new(GRAPH_ARENA_MAX);
    p->rows.n = 0;
    p->more = false;
    p->reached = -1;
    return p->arena != NULL ? MS_OK : ms_no_memory(err);
}

enum ms_rc graph__keep(struct graph_page *p, struct ms_str s, struct ms_str *out,
                       struct ms_err *err)
{
    *out = ms_arena_str(p->arena, s.p != NULL ? s : MS_STR(""));
    return out->p != NULL ? MS_OK : ms_arena_fail(p->arena, err);
}

/* Reads the partner, the last name of a link. A manual match may have made the link shorter than
 * the path. */
static enum ms_rc last_of_link(struct graph_page *p, struct ms_str link, struct ms_str *out,
                               struct ms_err *err)
{
    struct ms_jread r;
    struct ms_buf scratch = {.max = GRAPH_NAME_MAX};
    struct ms_str name = MS_STR(""), text;
    *out = name;
    ms_jread_init(&r, link.n != 0 ? link.p : "", link.n, 0);
    if (ms_jread_next(&r) != MS_J_ARR)
        return MS_OK;
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && ms_jread_next(&r) == MS_J_STR) {
        if (ms_jread_text(&r, &scratch, &text, NULL) == MS_OK)
            name = text;
        rc = name.n != 0 ? graph__keep(p, name, out, err) : MS_OK;
    }
    ms_buf_free(&scratch);
    return rc;
}

enum ms_rc graph__take_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
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
        row->rated = graph__band_of(&v->bands, ms_stmt_get_f64(st, 7));
    MS_TRY(graph__keep(p, ms_stmt_get_str(st, 4), &row->name, err));
    MS_TRY(graph__keep(p, ms_stmt_get_str(st, 5), &row->parent, err));
    MS_TRY(graph__keep(p, ms_stmt_get_str(st, 8), &row->overflow, err));
    MS_TRY(last_of_link(p, ms_stmt_get_str(st, 9), &row->partner, err));
    row->unmatched = v->about.dual && row->partner.n == 0;
    const struct graph_spot at = {row->step, row->rank, ms_stmt_get_i64(st, 12) != 0};
    row->suspect = !row->modified && graph__is_suspect(&v->suspects, at, row->name);
    row->state = row->suspect ? GRAPH_ERROR : row->rated;
    return MS_OK;
}

enum ms_rc graph__push_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
                           struct ms_err *err)
{
    struct graph_row row;
    MS_TRY(graph__take_row(v, st, p, &row, err));
    struct graph_row *slot = ms_vec_push(&p->rows);
    if (slot == NULL)
        return ms_no_memory(err);
    *slot = row;
    return MS_OK;
}

enum ms_rc graph__list_rows(struct graph_view *v, struct ms_stmt *st, uint32_t limit,
                            struct graph_page *p, struct ms_err *err)
{
    enum ms_rc rc = MS_OK;
    while (ms_stmt_next(st, &rc, err)) {
        if (p->rows.n >= limit) {
            p->more = true;
            break;
        }
        rc = graph__push_row(v, st, p, err);
    }
    ms_stmt_reset(st);
    return rc;
}

/* ---- statements -------------------------------------------------------------- */

enum ms_rc graph__statement(struct graph_view *v, enum query q, struct ms_stmt **st,
                            struct ms_err *err)
{
    if (v->st[q] == NULL)
        MS_TRY(ms_store_prepare(v->store, &v->st[q], sql[q], err));
    *st = v->st[q];
    return MS_OK;
}

enum ms_rc graph__statement_at(struct graph_view *v, enum query q, struct graph_spot at,
                               struct ms_stmt **st, struct ms_err *err)
{
    MS_TRY(graph__statement(v, q, st, err));
    ms_stmt_i64(*st, 1, at.step);
    ms_stmt_i64(*st, 2, at.rank);
    ms_stmt_str(*st, 3, at.golden ? MS_STR("Bench") : MS_STR("NPU"));
    return MS_OK;
}

struct ms_str graph__view_id(struct graph_view *v, struct graph_spot at, struct ms_str name)
{
    ms_buf_clear(&v->text);
    ms_buf_printf(&v->text, "%s_%lld_%lld", at.golden ? "Bench" : "NPU", (long long)at.step,
                  (long long)at.rank);
    if (name.n != 0)
        ms_buf_printf(&v->text, "_%.*s", MS_STR_ARG(name));
    return ms_buf_slice(&v->text);
}

/* ---- single nodes -------------------------------------------------------------- */

enum ms_rc graph__add_by_order(struct graph_view *v, struct graph_spot at, int64_t order,
                               struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    ms_assert(order >= 0);
    MS_TRY(graph__statement_at(v, Q_BY_ORDER, at, &st, err));
    ms_stmt_i64(st, 4, order);
    return graph__list_rows(v, st, (uint32_t)page->rows.n + 1, page, err);
}

enum ms_rc graph__not_there(struct graph_spot at, struct ms_str name, struct ms_err *err)
{
    return ms_fail(err, MS_E_NOTFOUND, "step %lld rank %lld has no node '%.*s'", (long long)at.step,
                   (long long)at.rank, MS_STR_ARG(name));
}

enum ms_rc graph_view_path(struct graph_view *v, struct graph_spot at, struct ms_str name,
                           struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(graph__page_start(page, err));
    MS_TRY(graph__statement_at(v, Q_BY_NAME, at, &st, err));
    while (name.n != 0) {
        size_t n = page->rows.n;
        ms_stmt_str(st, 4, name);
        MS_TRY(graph__list_rows(v, st, (uint32_t)n + 1, page, err));
        if (page->rows.n == n)
            return graph__not_there(at, name, err);
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

/* ---- which value of precision_index means which state -------------------------------- */

static const struct graph_bands usual = {
    .list = {{0, 0.3, GRAPH_PASS}, {0.3, 0.6, GRAPH_WARNING}, {0.6, 1, GRAPH_ERROR}},
    .n = 3,
    .usual = true};

/* Old files do not name levels, but always use these colours. */
static enum graph_state state_of(struct ms_str colour, struct ms_str level)
{
    if (ms_str_is(level, "pass") || (level.n == 0 && ms_str_is(colour, "#FFFCF3")))
        return GRAPH_PASS;
    if (ms_str_is(level, "error") || (level.n == 0 && ms_str_is(colour, "#FF704D")))
        return GRAPH_ERROR;
    return GRAPH_WARNING;
}

/* Reads [from, to]; anything else leaves *n below 2. */
static void read_range(struct ms_jread *r, double range[2], unsigned *n)
{
    enum ms_jtok tok = ms_jread_next(r);
    if (tok != MS_J_ARR) {
        ms_jread_skip(r, tok);
        return;
    }
    while ((tok = ms_jread_next(r)) > MS_J_END && tok != MS_J_ARR_END) {
        double v;
        if (tok == MS_J_NUM && *n < 2 && ms_jread_f64(r, &v))
            range[(*n)++] = v;
        else
            ms_jread_skip(r, tok);
    }
}

/* Reads the members of one colour, whose opening bracket was the last token. */
static void read_band(struct graph_bands *b, struct ms_jread *r, struct ms_str colour)
{
    double range[2] = {0, 0};
    unsigned n = 0;
    struct ms_str level = {"", 0};
    while (ms_jread_next(r) == MS_J_KEY) {
        if (ms_str_is(r->text, "value")) {
            read_range(r, range, &n);
            continue;
        }
        bool is_level = ms_str_is(r->text, "accuracy_level");
        enum ms_jtok tok = ms_jread_next(r);
        if (is_level && tok == MS_J_STR)
            level = r->text;
        else
            ms_jread_skip(r, tok);
    }
    if (n == 2 && b->n < GRAPH_BANDS)
        b->list[b->n++] = (struct graph_band){range[0], range[1], state_of(colour, level)};
}

static bool are_usual(const struct graph_bands *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        if (i >= usual.n || b->list[i].from != usual.list[i].from ||
            b->list[i].to != usual.list[i].to || b->list[i].state != usual.list[i].state)
            return false;
    }
    return b->n == usual.n;
}

void graph__bands_read(struct graph_bands *b, struct ms_str json)
{
    struct ms_jread r;
    *b = (struct graph_bands){.n = 0};
    ms_jread_init(&r, json.n != 0 ? json.p : "", json.n, 0);
    if (ms_jread_next(&r) == MS_J_OBJ) {
        while (ms_jread_next(&r) == MS_J_KEY) {
            struct ms_str colour = r.text;
            enum ms_jtok tok = ms_jread_next(&r);
            if (tok == MS_J_OBJ)
                read_band(b, &r, colour);
            else
                ms_jread_skip(&r, tok);
        }
    }
    if (b->n == 0)
        *b = usual;
    b->usual = are_usual(b);
}

enum graph_state graph__band_of(const struct graph_bands *b, double value)
{
    for (unsigned i = 0; i < b->n; i++) {
        const struct graph_band *band = &b->list[i];
        bool last = i + 1 == b->n || band->from == band->to;
        if (value >= band->from && (value < band->to || (last && value <= band->to)))
            return band->state;
    }
    return value == value ? GRAPH_ERROR : GRAPH_NONE; /* outside all bands */
}
