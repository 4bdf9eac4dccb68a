/* SPDX-License-Identifier: MIT
 *
 * graph_rows: SQL statements, their rows, and the nodes that a search finds.
 */
#include "compare/graph/view/graph_rows.h"
#include "compare/graph/build/graph_schema.h"
#include "probe/base/assert.h"
#include "probe/base/jread.h"
#include "probe/base/map.h"
#include "probe/base/mapsafe.h"
#include "probe/base/mem.h"

#include <ctype.h>

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

static enum ms_rc push_row(const struct graph_view *v, struct ms_stmt *st, struct graph_page *p,
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
        rc = push_row(v, st, p, err);
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

/* Finds nodes by a part of their name and by their state. With x_names and
 * x_state neither depends on the size of rows; a database without them is scanned.
 *
 * Names of one side are searched by their shapes once the shapes are known:
 *
 *     layers.12.attn.softmax.3  ┐
 *     layers.13.attn.softmax.3  ┴► layers.#.attn.softmax.#      one number for each shape
 *
 * Names of a model differ mostly in numbers: half a million have some hundred shapes.
 * A word without digits is part of a name exactly when it is part of the name's shape,
 * so a search reads the shapes and then one small number for each node. */

/* ---- names by their shapes --------------------------------------------------------- */

enum { SHAPES_MOST = UINT16_MAX, PAGES_EACH = 4, TEXT_MOST = 1 << 26 };

struct graph_shapes {
    struct graph_spot at;
    struct ms_map shapes;
    struct ms_arena *arena;
    MS_VEC(uint16_t) of; /* shape number by node_order */
    bool done, useless;  /* useless: too many shapes, or a page is missing */
    struct ms_buf text;
};

void graph__shapes_free(struct graph_shapes *s)
{
    if (s == NULL)
        return;
    ms_map_free(&s->shapes);
    ms_arena_free(s->arena);
    ms_vec_free(&s->of);
    ms_buf_free(&s->text);
    ms_free(s);
}

static enum ms_rc begin_shapes(struct graph_view *v, struct graph_spot at, struct ms_err *err)
{
    struct graph_shapes *s = ms_calloc(1, sizeof *s);
    if (s == NULL)
        return ms_no_memory(err);
    s->at = at;
    s->text.max = GRAPH_NAME_MAX;
    s->arena = ms_arena_new(TEXT_MOST);
    graph__shapes_free(v->shapes[at.golden]);
    v->shapes[at.golden] = s;
    return s->arena != NULL ? MS_OK : ms_no_memory(err);
}

static struct ms_str shape_of(struct graph_shapes *s, const char *p, const char *end)
{
    ms_buf_clear(&s->text);
    for (; p < end; p++) {
        bool digit = isdigit((unsigned char)*p) != 0;
        if (!digit || s->text.n == 0 || s->text.p[s->text.n - 1] != '#')
            ms_buf_putc(&s->text, digit ? '#' : *p);
    }
    return ms_buf_slice(&s->text);
}

static enum ms_rc add_names(struct graph_shapes *s, struct ms_str names, struct ms_err *err)
{
    const char *p = names.p, *end = p + names.n;
    while (p < end) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const char *stop = line != NULL ? line : end;
        uint32_t shape = ms_map_put_copy(&s->shapes, shape_of(s, p, stop), s->arena, NULL);
        uint16_t *slot = ms_vec_push(&s->of);
        if (shape == MS_MAP_NONE || slot == NULL)
            return ms_no_memory(err);
        s->useless = s->shapes.keys.n > SHAPES_MOST;
        *slot = (uint16_t)shape;
        p = stop + 1;
    }
    return ms_buf_check(&s->text, err);
}

/* Reads the next pages of names. Each page begins where the previous one ends; if a page is
 * missing, the orders would be wrong, so shapes are not used. */
static enum ms_rc add_pages(struct graph_view *v, struct graph_shapes *s, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    enum ms_rc rc = MS_OK;
    MS_TRY(graph__statement(v, Q_NAMES_FROM, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, s->at, MS_STR("")));
    ms_stmt_i64(st, 2, (int64_t)s->of.n);
    for (int i = 0; (more = ms_stmt_next(st, &rc, err)); i++) {
        s->useless = s->useless || ms_stmt_get_i64(st, 0) != (int64_t)s->of.n;
        if (i == PAGES_EACH || s->useless)
            break;
        rc = add_names(s, ms_stmt_get_blob(st, 1), err);
    }
    ms_stmt_reset(st);
    s->done = (rc == MS_OK && !more) || s->useless;
    return rc;
}

enum ms_rc graph_view_ahead(struct graph_view *v, struct graph_spot at, bool *more,
                            struct ms_err *err)
{
    *more = false;
    if (!v->quick)
        return MS_OK;
    struct graph_shapes *s = v->shapes[at.golden];
    if (s == NULL || !graph_is_same_spot(s->at, at))
        MS_TRY(begin_shapes(v, at, err));
    s = v->shapes[at.golden];
    if (s->done)
        return MS_OK;
    enum ms_rc rc = add_pages(v, s, err);
    s->done = s->done || rc != MS_OK;
    s->useless = s->useless || rc != MS_OK;
    *more = !s->done;
    return rc;
}

static bool shapes_know(const struct graph_view *v, struct graph_spot at, struct ms_str word)
{
    const struct graph_shapes *s = v->shapes[at.golden];
    if (s == NULL || !s->done || s->useless || !graph_is_same_spot(s->at, at))
        return false;
    for (uint32_t i = 0; i < word.n; i++) {
        if (isdigit((unsigned char)word.p[i]) || word.p[i] == '#')
            return false;
    }
    return true;
}

static int64_t shapes_next(struct graph_shapes *s, const bool *meets, int64_t after)
{
    for (size_t i = after < 0 ? 0 : (size_t)after + 1; i < s->of.n; i++) {
        if (meets[s->of.p[i]])
            return (int64_t)i;
    }
    return -1;
}

static bool *shapes_meet(struct graph_shapes *s, struct ms_str word)
{
    bool *meets = ms_calloc(s->shapes.keys.n + 1, sizeof *meets);
    for (uint32_t i = 0; meets != NULL && i < s->shapes.keys.n; i++)
        meets[i] = ms_str_find_str(ms_map_key(&s->shapes, i), word) >= 0;
    return meets;
}

enum { SEARCH_PAGES = 8 };

/* ---- search -------------------------------------------------------------------- */

enum ms_rc graph__add_by_order(struct graph_view *v, struct graph_spot at, int64_t order,
                               struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    ms_assert(order >= 0);
    MS_TRY(graph__statement_at(v, Q_BY_ORDER, at, &st, err));
    ms_stmt_i64(st, 4, order);
    return graph__list_rows(v, st, (uint32_t)page->rows.n + 1, page, err);
}

/* Searches one page of names, one per line. The first line is the node with this order. */
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
            MS_TRY(graph__add_by_order(v, at, order, page, err));
        const char *next = memchr(hit, '\n', (size_t)(end - hit));
        p = next != NULL ? next + 1 : end;
        order++;
    }
    return MS_OK;
}

static enum ms_rc search_pages(struct graph_view *v, struct graph_spot at, struct ms_str word,
                               int64_t after, uint32_t limit, struct graph_page *page,
                               struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    MS_TRY(graph__statement(v, Q_NAMES, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, after < 0 ? 0 : after);
    for (int pages = 0; ms_stmt_next(st, &rc, err) && !page->more; pages++) {
        if (pages == SEARCH_PAGES) {
            page->more = true;
            page->reached = ms_stmt_get_i64(st, 0) - 1;
            break;
        }
        rc = search_names(v, at, ms_stmt_get_blob(st, 1), ms_stmt_get_i64(st, 0), word, after,
                          limit, page, err);
    }
    ms_stmt_reset(st);
    return rc;
}

static enum ms_rc search_mapped(struct graph_view *v, struct graph_spot at, struct ms_str word,
                                int64_t after, uint32_t limit, struct graph_page *page,
                                struct ms_err *err)
{
    MS_TRY(ms_store_exec(v->store, "PRAGMA mmap_size = 1099511627776", err));
    enum ms_rc rc = search_pages(v, at, word, after, limit, page, err);
    enum ms_rc back = ms_store_exec(v->store, "PRAGMA mmap_size = 0", rc == MS_OK ? err : NULL);
    return rc == MS_OK ? back : rc;
}

/* Searches names in the mapped file, which takes half the time of reading their many pages. The
 * mapping lasts only for a few pages, because mapped pages count as memory of this process. */
static enum ms_rc search_quick(struct graph_view *v, struct graph_spot at, struct ms_str word,
                               int64_t after, uint32_t limit, struct graph_page *page,
                               struct ms_err *err)
{
    struct ms_err why = {0};
    ms_mapsafe_begin();
    enum ms_rc rc = search_mapped(v, at, word, after, limit, page, &why);
    if (ms_mapsafe_end())
        return ms_fail(err, MS_E_IO, "the file of the graph became shorter while it was read");
    if (rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = why;
    return rc;
}

static enum ms_rc search_shapes(struct graph_view *v, struct graph_spot at, struct ms_str word,
                                int64_t after, uint32_t limit, struct graph_page *page,
                                struct ms_err *err)
{
    bool *meets = shapes_meet(v->shapes[at.golden], word);
    enum ms_rc rc = meets != NULL ? MS_OK : ms_no_memory(err);
    while (rc == MS_OK && !page->more) {
        after = shapes_next(v->shapes[at.golden], meets, after);
        if (after < 0)
            break;
        page->more = page->rows.n == limit;
        if (!page->more)
            rc = graph__add_by_order(v, at, after, page, err);
    }
    ms_free(meets);
    return rc;
}

static enum ms_rc search_like(struct graph_view *v, struct graph_spot at, struct ms_str word,
                              int64_t after, uint32_t limit, struct graph_page *page,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(graph__statement_at(v, Q_SEARCH, at, &st, err));
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
    return graph__list_rows(v, st, limit, page, err);
}

enum ms_rc graph_view_search(struct graph_view *v, struct graph_spot at, struct ms_str text,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err)
{
    struct ms_buf lower = {.max = GRAPH_NAME_MAX};
    MS_TRY(graph__page_start(page, err));
    for (uint32_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        ms_buf_putc(&lower, c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
    }
    enum ms_rc rc = ms_buf_check(&lower, err);
    struct ms_str word = ms_buf_slice(&lower);
    /* Names never change, so x_names is valid whatever was matched by hand. */
    if (rc == MS_OK && text.n != 0 && shapes_know(v, at, word))
        rc = search_shapes(v, at, word, after, limit, page, err);
    else if (rc == MS_OK && v->quick && text.n != 0 && ms_str_find(text, '\n') < 0)
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

/* Finds the nearest node that has moved; *order is -1 without one. */
static enum ms_rc nearest_moved(struct graph_view *v, struct graph_spot at, int64_t from,
                                bool backwards, int64_t *order, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *order = -1;
    if (!v->traced)
        return MS_OK;
    MS_TRY(graph__statement_at(v, backwards ? Q_MOVED_DOWN : Q_MOVED_UP, at, &st, err));
    ms_stmt_str(st, 4, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 5, from);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        *order = ms_stmt_get_i64(st, 0);
    ms_stmt_reset(st);
    return rc;
}

/* Decides whether a row is wanted. *moved caches the nearest moved node and is looked up again once
 * passed; INT64_MIN: not looked up yet. */
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
    bool wanted = false;
    int64_t moved = INT64_MIN;
    enum ms_rc rc = MS_OK;
    MS_TRY(graph__statement_at(v, backwards ? Q_SCAN_DOWN : Q_SCAN_UP, at, &st, err));
    ms_stmt_i64(st, 4, from);
    while (ms_stmt_next(st, &rc, err) && !page->more) {
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

/* Returns true when x_state and x_align suffice for all wanted states. */
static bool is_quick(const struct graph_view *v, unsigned want)
{
    const unsigned indexed =
        GRAPH_WANT_WARNING | GRAPH_WANT_ERROR | GRAPH_WANT_UNMATCHED | GRAPH_WANT_MOVED;
    return v->whole || (v->quick && (want & ~indexed) == 0) || want == GRAPH_WANT_MOVED;
}

/* Finds the nearest node that the table lists under a state; *order is -1 without one. */
static enum ms_rc nearest_listed(struct graph_view *v, struct graph_spot at, int state,
                                 int64_t from, bool backwards, int64_t *order, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *order = -1;
    MS_TRY(graph__statement(v, backwards ? Q_STATE_DOWN : Q_STATE_UP, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, state);
    ms_stmt_i64(st, 3, from);
    MS_TRY(ms_stmt_step(st, &more, err));
    if (more && !ms_stmt_is_null(st, 0))
        *order = ms_stmt_get_i64(st, 0);
    ms_stmt_reset(st);
    return MS_OK;
}

/* Finds the nearest node in a state: a suspect is an error, whatever state the table lists it under. */
static enum ms_rc nearest_in(struct graph_view *v, struct graph_spot at, int state, int64_t from,
                             bool backwards, int64_t *order, struct ms_err *err)
{
    int64_t suspect = -1;
    bool skip;
    *order = from;
    do {
        MS_TRY(nearest_listed(v, at, state, *order, backwards, order, err));
        skip = false;
        if (*order >= 0 && (state == GRAPH_PASS || state == GRAPH_WARNING))
            MS_TRY(graph__suspects_have(v, at, *order, &skip, err));
    } while (skip);
    if (state == GRAPH_ERROR)
        MS_TRY(graph__suspects_nearest(v, at, from, backwards, &suspect, err));
    if (suspect >= 0 && (*order < 0 || (backwards ? suspect > *order : suspect < *order)))
        *order = suspect;
    return MS_OK;
}

static enum ms_rc find_nearest(struct graph_view *v, struct graph_spot at, unsigned want,
                               int64_t from, bool backwards, int64_t *order, struct ms_err *err)
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
    MS_TRY(graph__page_start(page, err));
    if (!is_quick(v, want))
        return scan(v, at, want, after, false, limit, page, err);
    for (;;) {
        MS_TRY(find_nearest(v, at, want, after, false, &after, err));
        page->more = after >= 0 && page->rows.n == limit;
        if (after < 0 || page->more)
            return MS_OK;
        MS_TRY(graph__add_by_order(v, at, after, page, err));
    }
}

enum ms_rc graph_view_next(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                           bool backwards, struct graph_page *page, struct ms_err *err)
{
    int64_t order;
    MS_TRY(graph__page_start(page, err));
    if (!is_quick(v, want)) {
        MS_TRY(scan(v, at, want, from, backwards, 1, page, err));
        page->more = false;
        return MS_OK;
    }
    MS_TRY(find_nearest(v, at, want, from, backwards, &order, err));
    return order >= 0 ? graph__add_by_order(v, at, order, page, err) : MS_OK;
}
