/* SPDX-License-Identifier: MIT
 *
 * tree_find: searching and filtering in the graph.
 *
 * Hits are read in pages, in node_order, which is the order in which n and N visit them. Sorting
 * reads all hits up to a limit, which is displayed.
 */
#include "viz/tui/tree_find.h"

#include "probe/base/clock.h"

#include <stdlib.h>

enum { PAGE = 64, SORT_MOST = 20000 };

static bool keep_row(struct graph_page *to, const struct graph_row *r)
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

/* Reads hits until `rows` are there or the time slice ends. */
static enum ms_rc fill(struct tui_tree *t, size_t rows, int64_t end_ns, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    enum ms_rc rc = MS_OK;
    while (rc == MS_OK && t->more && t->found.rows.n < rows && ms_clock_ns() < end_ns) {
        rc = viz_terms_search(t->terms, t->v, tui_tree_spot(t, t->golden), t->reached, PAGE, &page,
                              &t->reached, err);
        t->more = rc == MS_OK && page.more;
        for (size_t i = 0; rc == MS_OK && i < page.rows.n; i++) {
            if (!keep_row(&t->found, &page.rows.p[i]))
                rc = ms_no_memory(err);
        }
    }
    graph_page_free(&page);
    return rc;
}

/* Finds the hit after (or before) an order; *done false: the time slice ended first. */
static enum ms_rc hit_from(struct tui_tree *t, int64_t order, bool back, int64_t end_ns,
                           const struct graph_row **hit, bool *done, struct ms_err *err)
{
    *hit = NULL;
    *done = true;
    for (size_t i = 0;; i++) {
        MS_TRY(fill(t, i + 1, end_ns, err));
        if (i >= t->found.rows.n) {
            *done = !t->more;
            return MS_OK;
        }
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

/* Continues the search of n or N for one time slice. */
static enum ms_rc seek(struct tui_app *a, struct tui_tree *t, int64_t end_ns, struct ms_err *err)
{
    const struct graph_row *hit;
    bool done;
    MS_TRY(hit_from(t, t->seek.from, t->seek.back, end_ns, &hit, &done, err));
    if (done && hit == NULL && !t->seek.round) {
        t->seek.round = true;
        t->seek.from = t->seek.back ? INT64_MAX : -1;
        MS_TRY(hit_from(t, t->seek.from, t->seek.back, end_ns, &hit, &done, err));
        if (hit != NULL)
            tui_say(a, "went round the %s", t->seek.back ? "start" : "end");
    }
    t->seek.on = !done;
    if (!done)
        return MS_OK;
    if (hit == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "no node meets these terms");
    return tui_tree_reveal(t, t->golden, hit->name, err);
}

enum ms_rc tui_tree_hit(struct tui_tree *t, bool back, struct ms_err *err)
{
    if (t->terms == NULL)
        return ms_fail(err, MS_E_NOTFOUND, "nothing was searched yet; / begins");
    MS_TRY(tui_tree_before(t, t->golden, &t->seek.from, err));
    t->seek.on = true;
    t->seek.back = back;
    t->seek.round = false;
    return MS_OK; /* the rest is background work, so that the input is echoed at once */
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
    viz_terms_limit(t->terms, TUI_WORK_NS);
    t->more = true;
    t->listing = list;
    t->want = list ? PAGE : 0;
    return MS_OK;
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

static void sort_list(struct tui_tree *t)
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

/* Changes the sort order; hits are read up to a limit first, as only loaded hits can be sorted. */
static void sort_key(struct tui_tree *t, int key)
{
    if (key == 's')
        t->order = (enum tui_order)((t->order + 1) % TUI_ORDERS);
    else
        t->inverted = !t->inverted;
    t->want = SORT_MOST;
    sort_list(t);
}

static void say_order(struct tui_app *a, const struct tui_tree *t)
{
    static const char *const names[TUI_ORDERS] = {"order", "state", "name"};
    tui_say(a, "sorted by %s%s%s", names[t->order], t->inverted ? ", last first" : "",
            !t->more                       ? ""
            : t->found.rows.n >= SORT_MOST ? "; there are more than were sorted"
                                           : "; still searching");
}

enum ms_rc tui_tree_search_work(struct tui_app *a, struct tui_tree *t, bool *more,
                                struct ms_err *err)
{
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    size_t before = t->found.rows.n;
    if (t->seek.on)
        MS_TRY(seek(a, t, end, err));
    if (t->listing)
        MS_TRY(fill(t, t->want, end, err));
    bool sorted = t->order != TUI_BY_ORDER || t->inverted;
    if (t->listing && sorted && (t->found.rows.n != before || t->want == SORT_MOST)) {
        sort_list(t);
        say_order(a, t);
    }
    if (t->to_end)
        t->list_at = t->found.rows.n != 0 ? t->found.rows.n - 1 : 0;
    *more = t->seek.on || (t->listing && t->more && t->found.rows.n < t->want);
    t->to_end = t->to_end && *more;
    return MS_OK;
}

/* Leaves the list; n and N use node_order again. */
static void leave_search(struct tui_tree *t)
{
    t->listing = t->inverted = false;
    t->order = TUI_BY_ORDER;
    sort_list(t);
}

enum ms_rc tui_tree_list_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                             struct ms_err *err)
{
    size_t page = (size_t)tui_body_rows(a);
    *taken = true;
    t->to_end = key == 'G' || key == TUI_KEY_END;
    if (tui_move(key, &t->list_at, t->found.rows.n, page)) {
        size_t want = t->to_end ? SORT_MOST : t->list_at + 2 * page;
        t->want = want > t->want ? want : t->want;
        return MS_OK;
    }
    if (key == 's' || key == 'I')
        sort_key(t, key);
    else if (key == 'q' || key == TUI_KEY_ESC || key == 'h' || key == TUI_KEY_LEFT) {
        leave_search(t);
    } else if (key == TUI_KEY_ENTER && t->list_at < t->found.rows.n) {
        struct ms_str name = t->found.rows.p[t->list_at].name;
        leave_search(t);
        return tui_tree_reveal(t, t->golden, name, err);
    } else {
        *taken = false;
    }
    return MS_OK;
}
