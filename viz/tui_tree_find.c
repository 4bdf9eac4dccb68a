/* SPDX-License-Identifier: MIT
 *
 * tui_tree_find: searching and filtering in the graph.
 *
 * Hits are asked for a page at a time, in their node_order, which is the order in
 * which n and N visit them.  Sorting needs all, up to a limit that it tells.
 */
#include "viz/tui_tree.h"

#include <stdlib.h>

enum { PAGE = 64, SORT_MOST = 20000, TURNS = 64 };

void tui_tree_search_end(struct tui_tree *t)
{
    viz_terms_free(t->terms);
    graph_page_free(&t->found);
    t->terms = NULL;
    t->found = (struct graph_page){.more = false};
    t->more = t->listing = false;
    t->reached = -1;
    t->list_at = t->list_top = 0;
    t->order = TUI_BY_ORDER;
}

static bool keep(struct graph_page *to, const struct graph_row *r)
{
    struct graph_row *slot = ms_vec_push(&to->rows);
    if (slot == NULL)
        return false;
    *slot = *r;
    struct ms_str *text[] = {&slot->name, &slot->parent, &slot->partner, &slot->overflow};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        *text[i] = ms_arena_str(to->arena, text[i]->p != NULL ? *text[i] : MS_STR(""));
        if (text[i]->p == NULL)
            return false;
    }
    return true;
}

/* At least so many hits, if there are: a search that its time limit ends is taken up again, but not
 * for ever at one key. */
enum ms_rc tui_tree_fill(struct tui_tree *t, size_t rows, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    enum ms_rc rc = MS_OK;
    for (int turn = 0; rc == MS_OK && t->more && t->found.rows.n < rows && turn < TURNS; turn++) {
        rc = viz_terms_search(t->terms, t->v, tui_tree_spot(t, t->golden), t->reached, PAGE, &page,
                              &t->reached, err);
        t->more = rc == MS_OK && page.more;
        for (size_t i = 0; rc == MS_OK && i < page.rows.n; i++) {
            if (!keep(&t->found, &page.rows.p[i]))
                rc = ms_no_memory(err);
        }
    }
    graph_page_free(&page);
    return rc;
}

/* The hit behind (or before) an order; NULL when there is none. */
static enum ms_rc hit_from(struct tui_tree *t, int64_t order, bool back,
                           const struct graph_row **hit, struct ms_err *err)
{
    *hit = NULL;
    for (size_t i = 0;; i++) {
        MS_TRY(tui_tree_fill(t, i + 1, err));
        if (i >= t->found.rows.n)
            return MS_OK;
        const struct graph_row *r = &t->found.rows.p[i];
        if (!back && r->order > order) {
            *hit = r;
            return MS_OK;
        }
        if (back && r->order >= order)
            return MS_OK;
        if (back)
            *hit = r;
    }
}

enum ms_rc tui_tree_hit(struct tui_app *a, struct tui_tree *t, bool back, struct ms_err *err)
{
    const struct graph_row *hit;
    int64_t from;
    if (t->terms == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "nothing was searched yet; / begins");
    MS_TRY(tui_tree_before(t, t->golden, &from, err));
    MS_TRY(hit_from(t, from, back, &hit, err));
    if (hit == NULL) {
        MS_TRY(hit_from(t, back ? INT64_MAX : -1, back, &hit, err));
        if (hit != NULL)
            tui_say(a, "went round the %s", back ? "start" : "end");
    }
    if (hit == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "no node meets these terms");
    return tui_tree_reveal(t, t->golden, hit->name, err);
}

enum ms_rc tui_tree_search(struct tui_tree *t, struct ms_str text, bool list, struct ms_err *err)
{
    struct viz_terms *terms;
    MS_TRY(viz_terms_new(&terms, text, err));
    tui_tree_search_end(t);
    t->terms = terms;
    t->found.arena = ms_arena_new((size_t)1 << 30);
    if (t->found.arena == NULL)
        return ms_no_memory(err);
    t->more = true;
    t->listing = list;
    return list ? tui_tree_fill(t, PAGE, err) : MS_OK;
}

/* ---- the list ---------------------------------------------------------------------- */

static int weight(const struct graph_row *r)
{
    static const char worst_first[] = "E!W- .";
    return (int)(strchr(worst_first, tui_state_letter(r)) - worst_first);
}

static int by_order(const void *pa, const void *pb)
{
    const struct graph_row *a = pa, *b = pb;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int by_state(const void *pa, const void *pb)
{
    int c = weight(pa) - weight(pb);
    return c != 0 ? c : by_order(pa, pb);
}

static int by_name(const void *pa, const void *pb)
{
    const struct graph_row *a = pa, *b = pb;
    return ms_str_cmp_natural(a->name, b->name);
}

void tui_tree_sort(struct tui_tree *t)
{
    static int (*const how[TUI_ORDERS])(const void *, const void *) = {by_order, by_state, by_name};
    size_t n = t->found.rows.n;
    if (n == 0)
        return;
    qsort(t->found.rows.p, n, sizeof *t->found.rows.p, how[t->order]);
    for (size_t i = 0; t->inverted && i < n / 2; i++) {
        struct graph_row x = t->found.rows.p[i];
        t->found.rows.p[i] = t->found.rows.p[n - 1 - i];
        t->found.rows.p[n - 1 - i] = x;
    }
}

static enum ms_rc sort_key(struct tui_app *a, struct tui_tree *t, int key, struct ms_err *err)
{
    static const char *const names[TUI_ORDERS] = {"order", "state", "name"};
    MS_TRY(tui_tree_fill(t, SORT_MOST, err));
    if (key == 's')
        t->order = (enum tui_order)((t->order + 1) % TUI_ORDERS);
    else
        t->inverted = !t->inverted;
    tui_tree_sort(t);
    tui_say(a, "sorted by %s%s%s", names[t->order], t->inverted ? ", last first" : "",
            t->more ? "; there are more than were sorted" : "");
    t->more = false;
    return MS_OK;
}

/* n and N go by order again. */
static void leave(struct tui_tree *t)
{
    t->listing = t->inverted = false;
    t->order = TUI_BY_ORDER;
    tui_tree_sort(t);
}

enum ms_rc tui_tree_list_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                             struct ms_err *err)
{
    size_t page = (size_t)tui_body_rows(a);
    *taken = true;
    if (key == 'G' || key == TUI_KEY_END)
        MS_TRY(tui_tree_fill(t, SORT_MOST, err));
    if (tui_move(key, &t->list_at, t->found.rows.n, page))
        return tui_tree_fill(t, t->list_at + 2 * page, err);
    if (key == 's' || key == 'I')
        return sort_key(a, t, key, err);
    if (key == 'q' || key == TUI_KEY_ESC || key == 'h' || key == TUI_KEY_LEFT) {
        leave(t);
    } else if (key == TUI_KEY_ENTER && t->list_at < t->found.rows.n) {
        struct ms_str name = t->found.rows.p[t->list_at].name;
        leave(t);
        return tui_tree_reveal(t, t->golden, name, err);
    } else {
        *taken = false;
    }
    return MS_OK;
}
