/* SPDX-License-Identifier: MIT
 *
 * api_graph: nodes of both sides, and changes of their matching.
 */
#include "compare/graph/view/graph_edit.h"
#include "viz/model/finding.h"
#include "viz/model/pairs.h"
#include "viz/model/terms.h"
#include "web/api/api.h"

#include <limits.h>

enum { ROWS_MAX = 2000, ROWS_USUAL = 200 };

static const char *const states[GRAPH_STATES] = {"none", "pass", "warning", "error"};

/* ---- parameters -------------------------------------------------------------------- */

enum ms_rc web_read_spot(const struct web_call *c, struct graph_spot *at, struct ms_err *err)
{
    const struct graph_about *a = graph_view_about(c->reader->graph);
    *at = (struct graph_spot){.step = a->steps.n != 0 ? a->steps.p[0] : 0,
                              .rank = a->ranks.n != 0 ? a->ranks.p[0] : 0};
    MS_TRY(web_query_int(c->query, "step", -1, INT64_MAX, &at->step, err));
    MS_TRY(web_query_int(c->query, "rank", -1, INT64_MAX, &at->rank, err));
    return web_query_flag(c->query, "golden", &at->golden, err);
}

static enum ms_rc read_limit(const struct web_call *c, uint32_t *limit, struct ms_err *err)
{
    int64_t v = ROWS_USUAL;
    MS_TRY(web_query_int(c->query, "limit", 1, ROWS_MAX, &v, err));
    *limit = (uint32_t)v;
    return MS_OK;
}

static enum ms_rc read_name(const struct web_call *c, const char *key, struct ms_str *name,
                            struct ms_err *err)
{
    *name = web_query_text(c->query, key);
    return name->n != 0 ? MS_OK : ms_fail(err, MS_E_ARG, "%s is missing", key);
}

/* ---- rows ------------------------------------------------------------------------- */

static const char *state_of(const struct graph_row *r)
{
    return r->unmatched && !r->suspect ? "unmatched" : states[r->state];
}

void web_put_name(struct ms_jwrite *w, struct ms_str name, struct ms_str parent)
{
    struct ms_str brief = viz_node_short(name, parent);
    ms_jwrite_ktext(w, "name", name);
    if (brief.n != name.n)
        ms_jwrite_ktext(w, "short", brief);
}

static void put_row(struct ms_jwrite *w, const struct graph_row *r)
{
    ms_jwrite_obj(w);
    web_put_name(w, r->name, r->parent);
    ms_jwrite_ki64(w, "order", r->order);
    ms_jwrite_ki64(w, "kind", r->kind);
    if (r->micro > 0)
        ms_jwrite_ki64(w, "micro", r->micro);
    ms_jwrite_kstr(w, "state", state_of(r));
    if (r->suspect)
        ms_jwrite_kbool(w, "suspect", true);
    if (r->partner.n != 0)
        ms_jwrite_ktext(w, "partner", r->partner);
    if (r->overflow.n != 0)
        ms_jwrite_ktext(w, "overflow", r->overflow);
    if (r->has_children)
        ms_jwrite_kbool(w, "children", true);
    if (r->modified)
        ms_jwrite_kbool(w, "modified", true);
    ms_jwrite_obj_end(w);
}

static void put_page(struct ms_jwrite *w, const struct graph_page *p)
{
    ms_jwrite_obj(w);
    ms_jwrite_key(w, MS_STR("rows"));
    ms_jwrite_arr(w);
    for (size_t i = 0; i < p->rows.n; i++)
        put_row(w, &p->rows.p[i]);
    ms_jwrite_arr_end(w);
    ms_jwrite_kbool(w, "more", p->more);
}

static void put_below(struct ms_jwrite *w, const struct graph_rollup *r)
{
    ms_jwrite_key(w, MS_STR("below"));
    ms_jwrite_arr(w);
    ms_jwrite_i64(w, r->error);
    ms_jwrite_i64(w, r->warning);
    ms_jwrite_i64(w, r->unmatched);
    ms_jwrite_i64(w, r->overflow);
    ms_jwrite_arr_end(w);
}

static bool has_below(const struct graph_rollup *r)
{
    return r->error + r->warning + r->unmatched + r->overflow != 0;
}

/* Writes a row; defaults are omitted: on both sides, no run, no states below. */
static void put_pair(struct ms_jwrite *w, const struct viz_pairs *p, size_t i, size_t run)
{
    const struct viz_pair *row = &p->rows.p[i];
    ms_jwrite_obj(w);
    if (row->where == VIZ_MOVED)
        ms_jwrite_kstr(w, "where", "moved");
    if (run > 1)
        ms_jwrite_ki64(w, "run", (int64_t)run);
    if (has_below(&row->below))
        put_below(w, &row->below);
    if (row->target.name.n != 0) {
        ms_jwrite_key(w, MS_STR("target"));
        put_row(w, &row->target);
    }
    if (row->golden.name.n != 0) {
        ms_jwrite_key(w, MS_STR("golden"));
        put_row(w, &row->golden);
    }
    ms_jwrite_obj_end(w);
}

/* Writes the rows; the first row of a run has its length. */
static void put_pairs(struct ms_jwrite *w, const struct viz_pairs *p)
{
    for (size_t i = 0, run = 0; i < p->rows.n; i++) {
        bool first = run == 0;
        run = first ? viz_pairs_run(p, i) : run;
        put_pair(w, p, i, first ? run : 1);
        run--;
    }
}

/* ---- children ---------------------------------------------------------------------- */

/* Reads the parents. A side without a name is left out; without any name the root of both is
 * meant. */
static struct viz_pairs_of read_parents(const struct web_call *c, struct graph_spot at)
{
    struct viz_pairs_of of = {.step = at.step, .rank = at.rank, .micro = -1};
    of.target = web_query_text(c->query, "target");
    of.golden = web_query_text(c->query, "partner");
    if (of.target.p == NULL && of.golden.p == NULL)
        of.target = of.golden = MS_STR("");
    return of;
}

static void put_page_of_pairs(struct ms_jwrite *w, const struct viz_pairs *p)
{
    ms_jwrite_key(w, MS_STR("rows"));
    ms_jwrite_arr(w);
    put_pairs(w, p);
    ms_jwrite_arr_end(w);
    ms_jwrite_kbool(w, "more", p->more);
    ms_jwrite_ki64(w, "after", p->next.target);
    ms_jwrite_ki64(w, "after_golden", p->next.golden);
}

/* Writes the children of the only row of a page, which saves a request. */
static enum ms_rc put_only(struct web_call *c, const struct viz_pairs_of *of,
                           const struct viz_pair *row, uint32_t limit, struct ms_err *err)
{
    struct viz_pairs below = {.more = false};
    struct viz_pairs_of its = *of;
    its.target = row->target.name.n != 0 ? row->target.name : MS_STR_NONE;
    its.golden = row->golden.name.n != 0 ? row->golden.name : MS_STR_NONE;
    enum ms_rc rc = viz_pairs_read(&below, c->reader->graph, &its, VIZ_PAIRS_FIRST, limit, err);
    if (rc == MS_OK) {
        ms_jwrite_key(c->json, MS_STR("only"));
        ms_jwrite_obj(c->json);
        put_page_of_pairs(c->json, &below);
        ms_jwrite_obj_end(c->json);
    }
    viz_pairs_free(&below);
    return rc;
}

/* unfold=1: a single row comes with its children. */
enum ms_rc web_api_children(struct web_call *c, struct ms_err *err)
{
    bool unfold;
    struct viz_pairs page = {.more = false};
    struct viz_pair_cursor after = VIZ_PAIRS_FIRST;
    struct graph_spot at;
    uint32_t limit;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_limit(c, &limit, err));
    struct viz_pairs_of of = read_parents(c, at);
    MS_TRY(web_query_int(c->query, "micro", -1, INT64_MAX, &of.micro, err));
    MS_TRY(web_query_int(c->query, "after", -1, INT64_MAX, &after.target, err));
    MS_TRY(web_query_int(c->query, "after_golden", -1, INT64_MAX, &after.golden, err));
    MS_TRY(web_query_flag(c->query, "unfold", &unfold, err));
    enum ms_rc rc = viz_pairs_read(&page, c->reader->graph, &of, after, limit, err);
    if (rc == MS_OK) {
        ms_jwrite_obj(c->json);
        put_page_of_pairs(c->json, &page);
        if (unfold && page.rows.n == 1 && !page.more)
            rc = put_only(c, &of, &page.rows.p[0], limit, err);
        ms_jwrite_obj_end(c->json);
    }
    viz_pairs_free(&page);
    return rc;
}

/* ---- one node ----------------------------------------------------------------------- */

enum ms_rc web_api_path(struct web_call *c, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_spot at;
    struct ms_str name;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_name(c, "name", &name, err));
    enum ms_rc rc = graph_view_path(c->reader->graph, at, name, &page, err);
    if (rc == MS_OK) {
        put_page(c->json, &page);
        ms_jwrite_obj_end(c->json);
    }
    graph_page_free(&page);
    return rc;
}

/* Writes the reason for a node's match. */
static enum ms_rc put_fate(struct web_call *c, struct graph_spot at, struct ms_str name,
                           struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_fate fate;
    enum ms_rc rc = graph_view_fate(c->reader->graph, at, name, &page, &fate, err);
    if (rc == MS_OK) {
        ms_jwrite_ktext(c->json, "fate", fate.kind);
        ms_jwrite_ktext(c->json, "how", fate.how);
        ms_jwrite_ktext(c->json, "kin", fate.partner);
        ms_jwrite_kf64(c->json, "confidence", fate.confidence);
    }
    graph_page_free(&page);
    return rc;
}

/* Writes further nodes of the other side that belong to the node. */
static enum ms_rc put_kin(struct web_call *c, struct graph_spot at, struct ms_str name,
                          struct ms_err *err)
{
    struct graph_kins k = {.page = {.more = false}};
    enum ms_rc rc = graph_view_kin(c->reader->graph, at, name, &k, err);
    ms_jwrite_key(c->json, MS_STR("also"));
    ms_jwrite_arr(c->json);
    for (size_t i = 0; rc == MS_OK && i < k.list.n; i++) {
        ms_jwrite_obj(c->json);
        ms_jwrite_ktext(c->json, "name", k.list.p[i].partner);
        ms_jwrite_ktext(c->json, "kind", k.list.p[i].kind);
        ms_jwrite_ktext(c->json, "how", k.list.p[i].how);
        ms_jwrite_kf64(c->json, "confidence", k.list.p[i].confidence);
        ms_jwrite_obj_end(c->json);
    }
    ms_jwrite_arr_end(c->json);
    graph_kins_free(&k);
    return rc;
}

enum ms_rc web_api_node(struct web_call *c, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_detail d;
    struct graph_rollup below = {0};
    struct graph_spot at;
    struct ms_str name;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_name(c, "name", &name, err));
    enum ms_rc rc = graph_view_node(c->reader->graph, at, name, &page, &d, err);
    if (rc == MS_OK)
        rc = graph_view_rollup(c->reader->graph, at, name, &below, err);
    if (rc == MS_OK) {
        struct ms_jwrite *w = c->json;
        ms_jwrite_obj(w);
        ms_jwrite_key(w, MS_STR("row"));
        put_row(w, &d.row);
        put_below(w, &below);
        ms_jwrite_ktext(w, "input", d.input);
        ms_jwrite_ktext(w, "output", d.output);
        ms_jwrite_ktext(w, "stack", d.stack);
        ms_jwrite_ktext(w, "links", d.links);
        ms_jwrite_ktext(w, "merged", d.merged);
        rc = put_fate(c, at, name, err);
        if (rc == MS_OK)
            rc = put_kin(c, at, name, err);
        ms_jwrite_obj_end(w);
    }
    graph_page_free(&page);
    return rc;
}

static void put_cell(struct ms_jwrite *w, const struct graph_row *r)
{
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "step", r->step);
    ms_jwrite_ki64(w, "rank", r->rank);
    ms_jwrite_kstr(w, "state", state_of(r));
    ms_jwrite_obj_end(w);
}

enum ms_rc web_api_matrix(struct web_call *c, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_spot at;
    struct ms_str name;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_name(c, "name", &name, err));
    enum ms_rc rc = graph_view_matrix(c->reader->graph, at.golden, name, &page, err);
    ms_jwrite_obj(c->json);
    ms_jwrite_key(c->json, MS_STR("rows"));
    ms_jwrite_arr(c->json);
    for (size_t i = 0; rc == MS_OK && i < page.rows.n; i++)
        put_cell(c->json, &page.rows.p[i]);
    ms_jwrite_arr_end(c->json);
    ms_jwrite_obj_end(c->json);
    graph_page_free(&page);
    return rc;
}

/* Answers the producers of a node's inputs, or (readers=1) the consumers of its outputs. */
enum ms_rc web_api_flow(struct web_call *c, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_spot at;
    struct ms_str name;
    bool readers;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_name(c, "name", &name, err));
    MS_TRY(web_query_flag(c->query, "readers", &readers, err));
    enum ms_rc rc = graph_view_flow(c->reader->graph, at, name, readers, &page, err);
    if (rc == MS_OK) {
        put_page(c->json, &page);
        ms_jwrite_obj_end(c->json);
    }
    graph_page_free(&page);
    return rc;
}

/* ---- searching ----------------------------------------------------------------------- */

enum ms_rc web_api_search(struct web_call *c, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct viz_terms *terms;
    struct graph_spot at;
    int64_t after = -1, reached = -1;
    uint32_t limit;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_limit(c, &limit, err));
    MS_TRY(web_query_int(c->query, "after", -1, INT64_MAX, &after, err));
    MS_TRY(viz_terms_new(&terms, web_query_text(c->query, "q"), err));
    enum ms_rc rc =
        viz_terms_search(terms, c->reader->graph, at, after, limit, &page, &reached, err);
    if (rc == MS_OK) {
        put_page(c->json, &page);
        ms_jwrite_ki64(c->json, "after", reached);
        ms_jwrite_obj_end(c->json);
    }
    viz_terms_free(terms);
    graph_page_free(&page);
    return rc;
}

static enum ms_rc read_want(const struct web_call *c, unsigned *want, struct ms_err *err)
{
    static const struct {
        const char *name;
        unsigned bit;
    } wants[] = {{"pass", GRAPH_WANT_PASS},         {"warning", GRAPH_WANT_WARNING},
                 {"error", GRAPH_WANT_ERROR},       {"unmatched", GRAPH_WANT_UNMATCHED},
                 {"overflow", GRAPH_WANT_OVERFLOW}, {"moved", GRAPH_WANT_MOVED}};
    struct ms_str rest = web_query_text(c->query, "state"), part;
    *want = 0;
    while (rest.p != NULL && ms_str_split(&rest, ',', &part)) {
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof wants / sizeof *wants; i++)
            bit |= ms_str_is(part, wants[i].name) ? wants[i].bit : 0;
        if (bit == 0)
            return ms_fail(err, MS_E_ARG,
                           "state must be pass, warning, error, unmatched, overflow, moved");
        *want |= bit;
    }
    *want = *want != 0 ? *want : (unsigned)GRAPH_WANT_ERROR;
    return MS_OK;
}

/* Answers the next (back=1: previous) node in a state after an order; no row if none. */
enum ms_rc web_api_next(struct web_call *c, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_spot at;
    int64_t from = -1;
    unsigned want;
    bool back;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_want(c, &want, err));
    MS_TRY(web_query_int(c->query, "from", -1, INT64_MAX, &from, err));
    MS_TRY(web_query_flag(c->query, "back", &back, err));
    enum ms_rc rc = graph_view_next(c->reader->graph, at, want, from, back, &page, err);
    if (rc == MS_OK) {
        put_page(c->json, &page);
        ms_jwrite_obj_end(c->json);
    }
    graph_page_free(&page);
    return rc;
}

/* Answers the node at which the comparison first goes wrong; no row if none does. */
enum ms_rc web_api_first(struct web_call *c, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_spot at;
    MS_TRY(web_read_spot(c, &at, err));
    enum ms_rc rc = viz_first_divergence(c->reader->graph, at, &page, err);
    if (rc == MS_OK) {
        put_page(c->json, &page);
        ms_jwrite_obj_end(c->json);
    }
    graph_page_free(&page);
    return rc;
}

/* ---- changes ------------------------------------------------------------------------- */

static void put_done(struct web_call *c, uint64_t matched)
{
    struct ms_jwrite *w = c->json;
    viz_changes_made(c->session);
    ms_jwrite_obj(w);
    ms_jwrite_ki64(w, "matched", (int64_t)matched);
    ms_jwrite_obj_end(w);
}

enum ms_rc web_api_match(struct web_call *c, struct ms_err *err)
{
    struct graph_spot at;
    struct ms_str target, golden;
    uint64_t matched = 1;
    bool below;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_name(c, "target", &target, err));
    MS_TRY(read_name(c, "partner", &golden, err));
    MS_TRY(web_query_flag(c->query, "below", &below, err));
    const char *path;
    MS_TRY(viz_changes_begin(c->session, &path, err));
    MS_TRY(below ? graph_match_below(path, at, target, golden, &matched, err)
                 : graph_match(path, at, target, golden, err));
    put_done(c, matched);
    return MS_OK;
}

enum ms_rc web_api_unmatch(struct web_call *c, struct ms_err *err)
{
    struct graph_spot at;
    struct ms_str target;
    uint64_t parted = 1;
    bool below;
    MS_TRY(web_read_spot(c, &at, err));
    MS_TRY(read_name(c, "target", &target, err));
    MS_TRY(web_query_flag(c->query, "below", &below, err));
    const char *path;
    MS_TRY(viz_changes_begin(c->session, &path, err));
    MS_TRY(below ? graph_unmatch_below(path, at, target, &parted, err)
                 : graph_unmatch(path, at, target, err));
    put_done(c, parted);
    return MS_OK;
}

enum ms_rc web_api_undo(struct web_call *c, struct ms_err *err)
{
    const char *path;
    MS_TRY(viz_changes_begin(c->session, &path, err));
    MS_TRY(graph_undo(path, err));
    put_done(c, 0);
    return MS_OK;
}

/* over=1: writes to the opened file; otherwise to one beside it. No parameter names a file. */
enum ms_rc web_api_write(struct web_call *c, struct ms_err *err)
{
    struct ms_buf where = {.max = PATH_MAX};
    bool over;
    MS_TRY(web_query_flag(c->query, "over", &over, err));
    enum ms_rc rc = viz_changes_write(c->session, NULL, over, &where, err);
    if (rc == MS_OK) {
        ms_jwrite_obj(c->json);
        ms_jwrite_ktext(c->json, "path", ms_buf_slice(&where));
        ms_jwrite_obj_end(c->json);
    }
    ms_buf_free(&where);
    return rc;
}
