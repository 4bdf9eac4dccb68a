/* SPDX-License-Identifier: MIT
 *
 * suspect_rows: see the header.
 */
#include "compare/graph/view/suspect_rows.h"

#include "compare/graph/view/graph_rows.h"
#include "probe/base/order.h"

#include <stdlib.h>

/* ---- the list ---------------------------------------------------------------------- */

static int by_spot(struct graph_spot a, struct graph_spot b)
{
    if (a.step != b.step)
        return a.step < b.step ? -1 : 1;
    if (a.rank != b.rank)
        return a.rank < b.rank ? -1 : 1;
    return (int)a.golden - (int)b.golden;
}

static int by_name(const void *pa, const void *pb)
{
    const struct graph_suspect_row *a = pa, *b = pb;
    const int spots = by_spot(a->at, b->at);
    return spots != 0 ? spots : ms_str_cmp(a->name, b->name);
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
        ms_vec_sort(&v->suspects, by_name);
    graph_findings_free(&found);
    return rc;
}

void graph__suspects_free(graph_suspect_rows *list)
{
    for (size_t i = 0; i < list->n; i++)
        ms_vec_free(&list->p[i].above);
    ms_vec_free(list);
}

bool graph__is_suspect(const graph_suspect_rows *list, struct graph_spot at, struct ms_str name)
{
    const struct graph_suspect_row wanted = {.at = at, .name = name};
    return list->n != 0 && bsearch(&wanted, list->p, list->n, sizeof *list->p, by_name) != NULL;
}

/* Sets [*from, *to) to the suspects of a tree. */
static void range_of(const graph_suspect_rows *list, struct graph_spot at, size_t *from, size_t *to)
{
    size_t low = 0;
    for (size_t high = list->n; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (by_spot(list->p[middle].at, at) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*from = *to = low; *to < list->n && by_spot(list->p[*to].at, at) == 0;)
        ++*to;
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
    range_of(&v->suspects, at, &from, &to);
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
    range_of(&v->suspects, at, &from, &to);
    for (size_t i = from; i < to && rc == MS_OK; i++) {
        rc = read_row(v, &v->suspects.p[i], &page, err);
        const int64_t here = v->suspects.p[i].order;
        const bool is_ahead = backwards ? here < after : here > after;
        if (rc == MS_OK && page.rows.n != 0 && is_ahead && comes_first(here, *order, backwards))
            *order = here;
    }
    graph_page_free(&page);
    return rc;
}

enum ms_rc graph__suspects_have(struct graph_view *v, struct graph_spot at, int64_t order,
                                bool *yes, struct ms_err *err)
{
    int64_t nearest;
    MS_TRY(graph__suspects_nearest(v, at, order - 1, false, &nearest, err));
    *yes = nearest == order;
    return MS_OK;
}

enum ms_rc graph_view_suspect(struct graph_view *v, struct graph_spot at, struct graph_page *page,
                              struct ms_err *err)
{
    size_t from, to;
    int64_t first = -1, place = 0;
    range_of(&v->suspects, at, &from, &to);
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
