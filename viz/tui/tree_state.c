/* SPDX-License-Identifier: MIT
 *
 * tree_state: rows, cursor and search and matching of the graph screen, and movement of the cursor.
 */
#include "viz/tui/tree_state.h"

#include "compare/graph/view/graph_edit.h"
#include "probe/base/clock.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
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
    return f->place.screen == VIZ_GRAPH && f->place.node.n != 0 &&
           viz_finding_has_rank(f, t->rank) && f->place.step == t->step;
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

/* Drops cached details of nodes, which may have changed. */
static void tree_forget(struct tui_tree *t)
{
    memset(t->figure, 0, sizeof t->figure);
    t->matrix_of = MS_STR_NONE;
    t->matrix.rows.n = 0;
}

static bool is_listed(const int64_t *p, size_t n, int64_t v)
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
    if (!is_listed(t->about->steps.p, t->about->steps.n, step))
        return ms_fail(err, MS_E_NOTFOUND, "step %" PRId64 " is not in this graph", step);
    if (!is_listed(t->about->ranks.p, t->about->ranks.n, rank))
        return ms_fail(err, MS_E_NOTFOUND, "rank %" PRId64 " is not in this graph", rank);
    MS_TRY(viz_outline_open(&fresh, t->v, step, rank, err));
    viz_outline_close(&t->rows);
    t->rows = fresh;
    t->step = step;
    t->rank = rank;
    t->at = t->top = 0;
    MS_TRY(tui_tree_resort(t, err));
    tree_forget(t);
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

/* ---- searching and filtering -------------------------------------------------------- */

/* Hits are read in pages, in node_order, which is the order in which n and N visit them. Sorting
 * reads all hits up to a limit, which is displayed. */
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

static int weight_of(const struct graph_row *r)
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
    int c = weight_of(pa) - weight_of(pb);
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

/* ---- matching nodes by hand --------------------------------------------------------- */

/* Switches the screen to the working copy, which is the only file that changes are made in. */
static enum ms_rc work_on_copy(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const char *path;
    MS_TRY(viz_changes_begin(a->session, &path, err));
    if (t->path == path)
        return MS_OK;
    MS_TRY(graph_view_move(t->v, path, err));
    t->path = a->reader.graph_path = path;
    return MS_OK;
}

/* Reads the file again to show a change. */
static enum ms_rc apply_change(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    viz_changes_made(a->session);
    tree_forget(t);
    MS_TRY(tui_tree_unsort(t, err));
    enum ms_rc rc = viz_outline_reload(&t->rows, err);
    MS_TRY(tui_tree_resort(t, rc == MS_OK ? err : NULL));
    return rc;
}

static enum ms_rc unmatch_node(struct tui_app *a, struct tui_tree *t, struct ms_str target,
                               bool below, struct ms_err *err)
{
    uint64_t n = 1;
    struct graph_spot at = tui_tree_spot(t, false);
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(below ? graph_unmatch_below(t->path, at, target, &n, err)
                 : graph_unmatch(t->path, at, target, err));
    tui_say(a, "unmatched %" PRIu64 " pair%s; Z takes it back, :write keeps it", n,
            n == 1 ? "" : "s");
    return apply_change(a, t, err);
}

static enum ms_rc match(struct tui_app *a, struct tui_tree *t, bool below, struct ms_err *err)
{
    const struct viz_row *r = tui_tree_row(t);
    struct ms_str tagged = ms_buf_slice(&t->tagged), here = MS_STR("");
    uint64_t n = 1;
    if (r != NULL && t->tagged.n == 0 && r->pair.target.partner.n != 0)
        return unmatch_node(a, t, r->pair.target.name, below, err);
    if (r != NULL && t->tagged.n != 0)
        here = t->tagged_golden ? r->pair.target.name : r->pair.golden.name;
    if (here.n == 0)
        return ms_fail(err, MS_E_ARG,
                       "tag a node with Space, then press M on its match on the other side");
    struct ms_str target = t->tagged_golden ? here : tagged;
    struct ms_str golden = t->tagged_golden ? tagged : here;
    struct graph_spot at = tui_tree_spot(t, false);
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(below ? graph_match_below(t->path, at, target, golden, &n, err)
                 : graph_match(t->path, at, target, golden, err));
    ms_buf_clear(&t->tagged);
    tui_say(a, "matched %" PRIu64 " pair%s; Z takes it back, :write keeps it", n,
            n == 1 ? "" : "s");
    return apply_change(a, t, err);
}

static enum ms_rc undo(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(graph_undo(t->path, err));
    tui_say(a, "taken back");
    return apply_change(a, t, err);
}

static enum ms_rc tag_node(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const struct graph_row *n;
    MS_TRY(tui_tree_need_node(t, &n, err));
    ms_buf_clear(&t->tagged);
    ms_buf_str(&t->tagged, n->name);
    t->tagged_golden = t->golden;
    tui_say(a, "tagged; M on its match on the %s side matches the two, U untags",
            t->golden ? "target" : "golden");
    return ms_buf_check(&t->tagged, err);
}

static void untag_node(struct tui_app *a, struct tui_tree *t)
{
    tui_say(a, t->tagged.n != 0 ? "nothing is tagged any more" : "nothing was tagged");
    ms_buf_clear(&t->tagged);
}

/* ---- matches in a file ---------------------------------------------------------------- */

static enum ms_rc need_tree(const struct tui_app *a, struct tui_tree **t, struct ms_err *err)
{
    *t = a->at == TUI_TREE ? a->state[TUI_TREE] : NULL;
    return *t != NULL ? MS_OK : ms_fail(err, MS_E_UNSUPPORTED, "only the tree has matches");
}

enum ms_rc tui_tree_save_matches(struct tui_app *a, const char *text, struct ms_err *err)
{
    struct ms_buf path = {.max = PATH_MAX};
    struct tui_tree *t;
    uint64_t n;
    (void)text;
    MS_TRY(need_tree(a, &t, err));
    if (a->session->origin == NULL)
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "this graph goes away with the viewer; ':write FILE' keeps it");
    enum ms_rc rc =
        graph_save_matches(t->path, a->session->origin, tui_tree_spot(t, false), &path, &n, err);
    if (rc == MS_OK)
        tui_say(a, "wrote %" PRIu64 " pair%s to %s", n, n == 1 ? "" : "s", ms_buf_z(&path));
    ms_buf_free(&path);
    return rc;
}

enum ms_rc tui_tree_apply_matches(struct tui_app *a, const char *path, struct ms_err *err)
{
    struct tui_tree *t;
    uint64_t n;
    MS_TRY(need_tree(a, &t, err));
    MS_TRY(work_on_copy(a, t, err));
    MS_TRY(graph_match_saved(t->path, tui_tree_spot(t, false), path, &n, err));
    tui_say(a, "matched %" PRIu64 " pair%s; Z takes it back, :write keeps it", n,
            n == 1 ? "" : "s");
    return apply_change(a, t, err);
}

static enum ms_rc write_graph(struct tui_app *a, const char *to, bool over, struct ms_err *err)
{
    struct ms_buf where = {.max = PATH_MAX};
    enum ms_rc rc = viz_changes_write(a->session, to, over, &where, err);
    if (rc == MS_OK)
        tui_say(a, "wrote %s", ms_buf_z(&where));
    ms_buf_free(&where);
    return rc;
}

enum ms_rc tui_tree_write(struct tui_app *a, const char *path, struct ms_err *err)
{
    return write_graph(a, path != NULL && *path != '\0' ? path : NULL, false, err);
}

enum ms_rc tui_tree_write_over(struct tui_app *a, const char *text, struct ms_err *err)
{
    (void)text;
    return write_graph(a, NULL, true, err);
}

enum ms_rc tui_tree_match_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                              struct ms_err *err)
{
    *taken = true;
    switch (key) {
    case 'M':
    case 'B':
        return match(a, t, key == 'B', err);
    case 'Z':
        return undo(a, t, err);
    case 'U':
        untag_node(a, t);
        return MS_OK;
    case ' ':
        return tag_node(a, t, err);
    default:
        *taken = false;
        return MS_OK;
    }
}
