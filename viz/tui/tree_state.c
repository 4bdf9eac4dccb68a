/* SPDX-License-Identifier: MIT
 *
 * tree_state: rows, cursor and search of the graph screen, and movement of the cursor.
 */
#include "viz/tui/tree_state.h"

#include <inttypes.h>
#include <string.h>

/* ---- the node under the cursor ------------------------------------------------------- */

const struct viz_row *tui_tree_row(const struct tui_tree *t)
{
    const struct viz_row *r = t->at < t->rows.rows.n ? &t->rows.rows.p[t->at] : NULL;
    return r != NULL && r->kind != VIZ_ROW_MORE ? r : NULL;
}

const struct graph_row *tui_tree_node(const struct tui_tree *t)
{
    const struct viz_row *r = tui_tree_row(t);
    if (r == NULL)
        return NULL;
    const struct graph_row *n = t->golden ? &r->pair.golden : &r->pair.target;
    return n->name.n != 0 ? n : NULL;
}

enum ms_rc tui_tree_need_node(const struct tui_tree *t, const struct graph_row **n,
                              struct ms_err *err)
{
    *n = tui_tree_node(t);
    return *n != NULL ? MS_OK
                      : ms_fail(err, MS_E_NOTFOUND, "there is no node on this side of the row");
}

bool tui_tree_is_suspect(const struct tui_tree *t, const struct viz_finding *f)
{
    return f->place.screen == VIZ_GRAPH && f->place.node.n != 0 && f->place.rank == t->rank &&
           f->place.step == t->step;
}

const struct viz_finding *tui_tree_suspect(const struct tui_tree *t, bool golden,
                                           struct ms_str name)
{
    for (size_t i = 0; i < t->findings->list.n && t->about->dual; i++) {
        const struct viz_finding *f = &t->findings->list.p[i];
        bool role = !ms_str_eq(f->kind, MS_STR("divergence"));
        if (role && tui_tree_is_suspect(t, f) && f->place.golden == golden &&
            ms_str_eq(f->place.node, name))
            return f;
    }
    return NULL;
}

/* ---- step and rank ------------------------------------------------------------------- */

void tui_tree_search_end(struct tui_tree *t)
{
    viz_terms_free(t->terms);
    graph_page_free(&t->found);
    t->terms = NULL;
    t->found = (struct graph_page){.more = false};
    t->more = t->listing = false;
    t->reached = -1;
    t->list_at = t->list_top = t->want = 0;
    t->seek.on = false;
    t->order = TUI_BY_ORDER;
}

static bool is_sorted(const struct tui_tree *t)
{
    return t->sort != VIZ_SORT_ORDER || t->upside_down;
}

enum ms_rc tui_tree_unsort(struct tui_tree *t, struct ms_err *err)
{
    return is_sorted(t) ? viz_arrange_back(&t->rows, &t->at, err) : MS_OK;
}

enum ms_rc tui_tree_resort(struct tui_tree *t, struct ms_err *err)
{
    return is_sorted(t) ? viz_arrange(&t->rows, t->sort, t->upside_down, &t->at, err) : MS_OK;
}

void tui_tree_forget(struct tui_tree *t)
{
    memset(t->figure, 0, sizeof t->figure);
    t->matrix_of = MS_STR_NONE;
    t->matrix.rows.n = 0;
}

static bool lists(const int64_t *p, size_t n, int64_t v)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == v)
            return true;
    }
    return false;
}

enum ms_rc tui_tree_show(struct tui_tree *t, int64_t step, int64_t rank, struct ms_err *err)
{
    struct viz_outline fresh;
    if (!lists(t->about->steps.p, t->about->steps.n, step))
        return ms_fail(err, MS_E_NOTFOUND, "step %" PRId64 " is not in this graph", step);
    if (!lists(t->about->ranks.p, t->about->ranks.n, rank))
        return ms_fail(err, MS_E_NOTFOUND, "rank %" PRId64 " is not in this graph", rank);
    MS_TRY(viz_outline_open(&fresh, t->v, step, rank, err));
    viz_outline_close(&t->rows);
    t->rows = fresh;
    t->step = step;
    t->rank = rank;
    t->at = t->top = 0;
    MS_TRY(tui_tree_resort(t, err));
    tui_tree_forget(t);
    tui_tree_search_end(t);
    return MS_OK;
}

/* ---- jumps to nodes ------------------------------------------------------------------ */

enum ms_rc tui_tree_reveal(struct tui_tree *t, bool golden, struct ms_str name, struct ms_err *err)
{
    MS_TRY(tui_tree_unsort(t, err));
    enum ms_rc rc = viz_outline_reveal(&t->rows, golden, name, &t->at, err);
    MS_TRY(tui_tree_resort(t, rc == MS_OK ? err : NULL));
    MS_TRY(rc);
    t->golden = golden;
    if (t->layout == TUI_MATRIX)
        t->layout = TUI_SPLIT;
    return MS_OK;
}

/* Computes where a forward search starts. A module ends after all its descendants but is
 * displayed before them, so from a module the search starts at its first descendant. */
enum ms_rc tui_tree_before(struct tui_tree *t, bool golden, int64_t *order, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    const struct viz_row *r = tui_tree_row(t);
    const struct graph_row *n = r == NULL ? NULL : golden ? &r->pair.golden : &r->pair.target;
    enum ms_rc rc = MS_OK;
    *order = n != NULL && n->name.n != 0 ? n->order : -1;
    bool within = *order >= 0 && n->has_children;
    struct ms_str name = within ? n->name : MS_STR_NONE;
    struct ms_buf parent = {.max = 1 << 20};
    while (rc == MS_OK && within) {
        ms_buf_clear(&parent);
        ms_buf_str(&parent, name);
        rc = graph_view_children(t->v, tui_tree_spot(t, golden), ms_buf_slice(&parent), -1, -1, 1,
                                 &page, err);
        if (rc != MS_OK || page.rows.n == 0)
            break;
        name = page.rows.p[0].name;
        within = page.rows.p[0].has_children;
        *order = page.rows.p[0].order - 1;
    }
    ms_buf_free(&parent);
    graph_page_free(&page);
    return rc;
}
