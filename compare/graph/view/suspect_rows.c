/* SPDX-License-Identifier: MIT
 *
 * suspect_rows: see the header.
 */
#include "compare/graph/view/suspect_rows.h"

#include "compare/graph/view/graph_rows.h"

#include <math.h>

/* ---- reading them ---------------------------------------------------------------------- */

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
                                   .score = ms_stmt_get_f64(st, 8),
                                   .certainty =
                                       ms_stmt_is_null(st, 12) ? NAN : ms_stmt_get_f64(st, 12)};
    struct ms_str *const texts[] = {&slot->target, &slot->golden,  &slot->role, &slot->why,
                                    &slot->text,   &slot->message, &slot->args, &slot->ranks};
    static const int column[] = {3, 4, 5, 6, 7, 9, 10, 11};
    for (size_t i = 0; i < sizeof column / sizeof *column; i++) {
        struct ms_str s = ms_stmt_get_str(st, column[i]);
        *texts[i] = ms_arena_str(f->arena, s.p != NULL ? s : MS_STR(""));
        if (texts[i]->p == NULL)
            return ms_arena_fail(f->arena, err);
    }
    return MS_OK;
}

bool graph_is_likely(const struct graph_finding *f)
{
    static const double least = 0.1;
    return f->place == 1 || isnan(f->certainty) || f->certainty >= least;
}

enum ms_rc graph_view_findings(struct graph_view *v, struct graph_findings *f, struct ms_err *err)
{
    struct ms_stmt *st;
    enum ms_rc rc = MS_OK;
    graph_findings_free(f);
    f->arena = ms_arena_new(GRAPH_ARENA_MAX);
    if (f->arena == NULL)
        return ms_no_memory(err);
    if (!v->traced)
        return MS_OK;
    if (graph__statement(v, Q_FINDINGS, &st, NULL) != MS_OK &&
        graph__statement(v, Q_FINDINGS_UNSURE, &st, NULL) != MS_OK)
        MS_TRY(graph__statement(v, Q_FINDINGS_OLD, &st, err));
    while (ms_stmt_next(st, &rc, err))
        rc = take_finding(st, f, err);
    ms_stmt_reset(st);
    return rc;
}

static enum ms_rc add(struct graph_view *v, const struct graph_finding *f, int64_t rank,
                      struct ms_err *err)
{
    const bool golden = f->target.n == 0;
    struct graph_suspect_row *to = ms_vec_push(&v->suspects);
    if (to == NULL)
        return ms_no_memory(err);
    *to = (struct graph_suspect_row){.at = {f->step, rank, golden}, .place = f->place};
    to->name = ms_arena_str(v->arena, golden ? f->golden : f->target);
    return to->name.p != NULL ? MS_OK : ms_arena_fail(v->arena, err);
}

static enum ms_rc add_ranks(struct graph_view *v, const struct graph_finding *f, struct ms_err *err)
{
    struct ms_str rest = f->ranks, part;
    int64_t rank;
    if (rest.n == 0)
        return add(v, f, f->rank, err);
    while (ms_str_split(&rest, ',', &part)) {
        if (ms_str_i64(part, &rank))
            MS_TRY(add(v, f, rank, err));
    }
    return MS_OK;
}

enum ms_rc graph__suspects_read(struct graph_view *v, struct ms_err *err)
{
    struct graph_findings found = {.arena = NULL};
    enum ms_rc rc = graph_view_findings(v, &found, err);
    for (size_t i = 0; rc == MS_OK && i < found.list.n; i++) {
        if (graph_is_likely(&found.list.p[i]))
            rc = add_ranks(v, &found.list.p[i], err);
    }
    if (rc == MS_OK)
        graph__suspects_sort(&v->suspects);
    graph_findings_free(&found);
    return rc;
}

/* ---- where they lie ----------------------------------------------------------------- */

static enum ms_rc keep_above(struct graph_view *v, struct graph_suspect_row *s,
                             const struct graph_page *path, struct ms_err *err)
{
    for (size_t i = 0; i + 1 < path->rows.n; i++) {
        struct ms_str *slot = ms_vec_push(&s->above);
        if (slot == NULL)
            return ms_no_memory(err);
        *slot = ms_arena_str(v->arena, path->rows.p[i].name);
        if (slot->p == NULL)
            return ms_arena_fail(v->arena, err);
    }
    s->order = path->rows.p[path->rows.n - 1].order;
    return MS_OK;
}

static enum ms_rc locate(struct graph_view *v, struct graph_suspect_row *s, struct ms_err *err)
{
    struct graph_page path = {.more = false};
    if (s->located)
        return MS_OK;
    s->order = -1;
    s->above.n = 0;
    enum ms_rc rc = graph_view_path(v, s->at, s->name, &path, err);
    if (rc == MS_OK)
        rc = keep_above(v, s, &path, err);
    else if (rc == MS_E_NOTFOUND) /* a file of another tool names a node that it does not have */
        rc = MS_OK;
    s->located = rc == MS_OK;
    graph_page_free(&path);
    return rc;
}

static bool lies_below(const struct graph_suspect_row *s, struct ms_str name)
{
    for (size_t i = 0; i < s->above.n; i++) {
        if (ms_str_eq(s->above.p[i], name))
            return true;
    }
    return false;
}

/* ---- counting and searching ------------------------------------------------------------ */

/* Reads the row of a suspect as the only one of the page; without one, it is none any more: the tree
 * has no such node, or somebody has matched it anew. */
static enum ms_rc read_row(struct graph_view *v, struct graph_suspect_row *s,
                           struct graph_page *page, struct ms_err *err)
{
    MS_TRY(locate(v, s, err));
    MS_TRY(graph__page_start(page, err));
    if (s->order >= 0)
        MS_TRY(graph__add_by_order(v, s->at, s->order, page, err));
    page->rows.n = page->rows.n != 0 && page->rows.p[0].suspect ? 1 : 0;
    return MS_OK;
}

enum ms_rc graph__suspects_count(struct graph_view *v, struct graph_spot at, struct ms_str name,
                                 struct graph_rollup *r, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    size_t from, to;
    enum ms_rc rc = MS_OK;
    graph__suspects_of(&v->suspects, at, &from, &to);
    for (size_t i = from; i < to && rc == MS_OK; i++) {
        rc = locate(v, &v->suspects.p[i], err);
        if (rc != MS_OK || !lies_below(&v->suspects.p[i], name))
            continue;
        rc = read_row(v, &v->suspects.p[i], &page, err);
        if (rc != MS_OK || page.rows.n == 0)
            continue;
        r->error += page.rows.p[0].rated != GRAPH_ERROR;
        r->warning -= page.rows.p[0].rated == GRAPH_WARNING;
        r->worst = GRAPH_ERROR;
    }
    graph_page_free(&page);
    return rc;
}

/* Tells whether order a comes before b on the way; -1 is none. */
static bool comes_first(int64_t a, int64_t b, bool backwards)
{
    return b < 0 || (backwards ? a > b : a < b);
}

enum ms_rc graph__suspects_nearest(struct graph_view *v, struct graph_spot at, int64_t after,
                                   bool backwards, int64_t *order, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    size_t from, to;
    enum ms_rc rc = MS_OK;
    *order = -1;
    graph__suspects_of(&v->suspects, at, &from, &to);
    for (size_t i = from; i < to && rc == MS_OK; i++) {
        rc = locate(v, &v->suspects.p[i], err);
        const int64_t here = v->suspects.p[i].order;
        const bool is_ahead = backwards ? here < after : here > after;
        if (rc != MS_OK || !is_ahead || !comes_first(here, *order, backwards))
            continue;
        rc = read_row(v, &v->suspects.p[i], &page, err);
        *order = rc == MS_OK && page.rows.n != 0 ? here : *order;
    }
    graph_page_free(&page);
    return rc;
}

enum ms_rc graph__suspects_have(struct graph_view *v, struct graph_spot at, int64_t order,
                                bool *yes, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    size_t from, to;
    enum ms_rc rc = MS_OK;
    *yes = false;
    graph__suspects_of(&v->suspects, at, &from, &to);
    for (size_t i = from; i < to && rc == MS_OK && !*yes; i++) {
        rc = locate(v, &v->suspects.p[i], err);
        if (rc != MS_OK || v->suspects.p[i].order != order)
            continue;
        rc = read_row(v, &v->suspects.p[i], &page, err);
        *yes = rc == MS_OK && page.rows.n != 0;
    }
    graph_page_free(&page);
    return rc;
}

enum ms_rc graph_view_suspect(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                              struct ms_err *err)
{
    size_t from, to;
    int64_t first = -1, place = 0;
    graph__suspects_of(&v->suspects, at, &from, &to);
    for (size_t i = from; i < to; i++) {
        const struct graph_suspect_row *s = &v->suspects.p[i];
        MS_TRY(read_row(v, &v->suspects.p[i], page, err));
        if (page->rows.n == 0 || (first >= 0 && s->place > place))
            continue;
        first = s->order;
        place = s->place;
    }
    MS_TRY(graph__page_start(page, err));
    return first >= 0 ? graph__add_by_order(v, at, first, page, err) : MS_OK;
}
