/* SPDX-License-Identifier: MIT
 *
 * tree_screen: the graph screen: cursor and keys.
 */
#include "viz/tui/app.h"
#include "viz/tui/tree_draw.h"
#include "viz/tui/tree_state.h"

#include "probe/base/clock.h"
#include "probe/base/csv.h"
#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

enum { UNFOLD_MOST = 100000 };

/* ---- opening ----------------------------------------------------------------------- */

static void close_tree(void *self)
{
    struct tui_tree *t = self;
    tui_tree_search_end(t);
    viz_outline_close(&t->rows);
    graph_page_free(&t->matrix);
    ms_buf_free(&t->tagged);
    ms_free(t);
}

static void *open_tree(struct tui_app *a, struct ms_err *err)
{
    struct tui_tree *t = ms_calloc(1, sizeof *t);
    if (t == NULL) {
        (void)ms_no_memory(err);
        return NULL;
    }
    t->v = a->reader.graph;
    t->about = graph_view_about(t->v);
    t->findings = &a->findings;
    t->path = a->reader.graph_path;
    t->detail = true;
    t->tagged.max = 1 << 16;
    int64_t step = t->about->steps.n != 0 ? t->about->steps.p[0] : 0;
    int64_t rank = t->about->ranks.n != 0 ? t->about->ranks.p[0] : 0;
    if (tui_tree_show(t, step, rank, err) == MS_OK)
        return t;
    close_tree(t);
    return NULL;
}

/* ---- sorting ----------------------------------------------------------------------- */

static enum ms_rc sort_rows(struct tui_app *a, struct tui_tree *t, int key, struct ms_err *err)
{
    static const char *const names[VIZ_SORTS] = {"order", "state", "number of errors", "name"};
    MS_TRY(tui_tree_unsort(t, err));
    if (key == 's')
        t->sort = (enum viz_sort)((t->sort + 1) % VIZ_SORTS);
    else
        t->upside_down = !t->upside_down;
    tui_say(a, "siblings sorted by %s%s", names[t->sort], t->upside_down ? ", last first" : "");
    return tui_tree_resort(t, err);
}

/* ---- jumps to nodes ------------------------------------------------------------------ */

static enum ms_rc go_to_place(struct tui_app *a, void *self, const struct viz_place *p,
                              struct ms_err *err)
{
    struct tui_tree *t = self;
    (void)a;
    int64_t step = p->step >= 0 ? p->step : t->step, rank = p->rank >= 0 ? p->rank : t->rank;
    if (step != t->step || rank != t->rank)
        MS_TRY(tui_tree_show(t, step, rank, err));
    if (p->query.n != 0) {
        MS_TRY(tui_tree_search(t, p->query, false, err));
        MS_TRY(tui_tree_hit(t, false, err));
    }
    return p->node.n != 0 ? tui_tree_reveal(t, p->golden, p->node, err) : MS_OK;
}

static enum ms_rc next_in(struct tui_app *a, struct tui_tree *t, unsigned want, int64_t from,
                          bool back, const char *what, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    enum ms_rc rc = graph_view_next(t->v, tui_tree_spot(t, false), want, from, back, &page, err);
    if (rc == MS_OK && page.rows.n == 0) {
        tui_say(a, "no %s %s here", what, back ? "before" : "behind");
    } else if (rc == MS_OK) {
        rc = tui_tree_reveal(t, false, page.rows.p[0].name, err);
    }
    graph_page_free(&page);
    return rc;
}

static enum ms_rc next_error(struct tui_app *a, struct tui_tree *t, bool back, struct ms_err *err)
{
    int64_t from;
    unsigned want = GRAPH_WANT_ERROR | GRAPH_WANT_OVERFLOW;
    if (!t->about->dual && !t->about->overflow)
        return ms_fail(err, MS_E_NOTFOUND, "one dump alone: nothing was compared here");
    MS_TRY(tui_tree_before(t, false, &from, err));
    if (back)
        from = from < 0 ? INT64_MAX : from + (tui_tree_row(t)->pair.target.has_children ? 1 : 0);
    return next_in(a, t, want, from, back, "error", err);
}

/* Jumps to the node of the first suspect, from there to the next one, cyclically. Without
 * suspects jumps to the first error in order of calls. */
static enum ms_rc first_divergence(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const struct graph_row *here = tui_tree_node(t);
    const struct viz_finding *first = NULL, *to = NULL;
    bool passed = false;
    for (size_t i = 0; i < a->findings.list.n && to == NULL; i++) {
        const struct viz_finding *f = &a->findings.list.p[i];
        if (!tui_tree_is_suspect(t, f))
            continue;
        first = first != NULL ? first : f;
        bool at = here != NULL && ms_str_eq(here->name, f->place.node);
        to = passed && !at ? f : NULL;
        passed = passed || at;
    }
    to = to != NULL ? to : first;
    if (to == NULL)
        return next_in(a, t, GRAPH_WANT_ERROR, -1, false, "error", err);
    tui_say(a, "%.*s", MS_STR_ARG(to->text));
    return tui_tree_reveal(t, to->place.golden, to->place.node, err);
}

/* Jumps to the partner, also if it is below another node. */
static enum ms_rc go_to_match(struct tui_tree *t, struct ms_err *err)
{
    const struct graph_row *n;
    MS_TRY(tui_tree_need_node(t, &n, err));
    if (n->partner.n == 0)
        return ms_fail(err, MS_E_NOTFOUND, "this node has no partner on the other side");
    return tui_tree_reveal(t, !t->golden, n->partner, err);
}

static enum ms_rc turn_rank(struct tui_tree *t, int by, bool steps, struct ms_err *err)
{
    const int64_t *p = steps ? t->about->steps.p : t->about->ranks.p;
    size_t n = steps ? t->about->steps.n : t->about->ranks.n, i = 0;
    struct ms_buf name = {.max = 1 << 16};
    const struct graph_row *node = tui_tree_node(t);
    bool golden = t->golden;
    while (i < n && p[i] != (steps ? t->step : t->rank))
        i++;
    if ((by < 0 && i == 0) || (by > 0 && i + 1 >= n))
        return ms_fail(err, MS_E_NOTFOUND, "this is the %s %s", by < 0 ? "first" : "last",
                       steps ? "step" : "rank");
    int64_t to = p[by > 0 ? i + 1 : i - 1];
    if (node != NULL)
        ms_buf_str(&name, node->name);
    enum ms_rc rc = tui_tree_show(t, steps ? to : t->step, steps ? t->rank : to, err);
    /* the same node there, if it exists */
    if (rc == MS_OK && name.n != 0)
        (void)tui_tree_reveal(t, golden, ms_buf_slice(&name), NULL);
    ms_buf_free(&name);
    return rc;
}

/* ---- folding ------------------------------------------------------------------------- */

static enum ms_rc fold_children(struct tui_tree *t)
{
    uint16_t depth = t->at < t->rows.rows.n ? t->rows.rows.p[t->at].depth : 0;
    for (size_t i = t->at + 1; i < t->rows.rows.n && t->rows.rows.p[i].depth > depth; i++)
        viz_outline_fold(&t->rows, i);
    return MS_OK;
}

/* Starts unfolding all rows below (e: only the children) in time slices: there may be very many. */
static void begin_unfolding(struct tui_tree *t, bool children)
{
    t->unfold.on = true;
    t->unfold.children = children;
    t->unfold.at = t->unfold.begin = t->at;
    t->unfold.depth = t->rows.rows.p[t->at].depth;
}

static bool is_below(const struct tui_tree *t, size_t i)
{
    return i < t->rows.rows.n &&
           (i == t->unfold.begin || t->rows.rows.p[i].depth > t->unfold.depth);
}

static enum ms_rc continue_unfolding(struct tui_app *a, struct tui_tree *t, bool *more,
                                     struct ms_err *err)
{
    int64_t end = ms_clock_ns() + TUI_WORK_NS;
    size_t i = t->unfold.at;
    for (; is_below(t, i) && t->rows.rows.n < UNFOLD_MOST && ms_clock_ns() < end; i++) {
        int deep = t->rows.rows.p[i].depth - t->unfold.depth;
        if (t->rows.rows.p[i].kind == VIZ_ROW_NODE && (deep <= 1 || !t->unfold.children))
            MS_TRY(viz_outline_unfold(&t->rows, i, err));
    }
    t->unfold.at = i;
    *more = t->unfold.on = is_below(t, i) && t->rows.rows.n < UNFOLD_MOST;
    if (*more)
        tui_say(a, "unfolding, %zu rows; any key stops it", t->rows.rows.n);
    else if (t->rows.rows.n >= UNFOLD_MOST)
        tui_say(a, "stopped at %zu rows", t->rows.rows.n);
    else
        a->message[0] = '\0';
    return MS_OK;
}

static enum ms_rc fold_key(struct tui_tree *t, int key, bool *taken, struct ms_err *err)
{
    const struct viz_row *r = t->at < t->rows.rows.n ? &t->rows.rows.p[t->at] : NULL;
    *taken = true;
    if (r == NULL) {
        *taken = false;
    } else if (key == TUI_KEY_ENTER || key == 'l' || key == TUI_KEY_RIGHT) {
        if (r->open && key == TUI_KEY_ENTER)
            viz_outline_fold(&t->rows, t->at);
        else
            return viz_outline_unfold(&t->rows, t->at, err);
    } else if (key == 'h' || key == TUI_KEY_LEFT) {
        if (r->open)
            viz_outline_fold(&t->rows, t->at);
        else
            t->at = viz_outline_parent(&t->rows, t->at);
    } else if (key == 'c') {
        return fold_children(t);
    } else if (key == 'C') {
        viz_outline_fold(&t->rows, t->at);
    } else if (key == 'e') {
        begin_unfolding(t, true);
    } else if (key == 'E') {
        begin_unfolding(t, false);
    } else if (key == 'u') {
        t->at = viz_outline_parent(&t->rows, t->at);
    } else if (key == 'J' || key == 'K') {
        t->at = viz_outline_sibling(&t->rows, t->at, key == 'J' ? 1 : -1);
    } else {
        *taken = false;
    }
    return MS_OK;
}

/* ---- pages about one node -------------------------------------------------------------- */

struct details {
    struct graph_page page[2];
    struct graph_detail d[2];
    bool has[2]; /* target, golden */
};

static enum ms_rc read_details(struct tui_tree *t, struct details *x, struct ms_err *err)
{
    const struct viz_row *r = tui_tree_row(t);
    memset(x, 0, sizeof *x);
    for (int i = 0; r != NULL && i < 2; i++) {
        struct ms_str name = i == 0 ? r->pair.target.name : r->pair.golden.name;
        if (name.n == 0)
            continue;
        MS_TRY(graph_view_node(t->v, tui_tree_spot(t, i == 1), name, &x->page[i], &x->d[i], err));
        x->has[i] = true;
    }
    return x->has[0] || x->has[1] ? MS_OK : ms_fail(err, MS_E_NOTFOUND, "there is no node here");
}

static void free_details(struct details *x)
{
    graph_page_free(&x->page[0]);
    graph_page_free(&x->page[1]);
}

static enum ms_rc open_items(struct tui_app *a, struct tui_tree *t, bool stack, struct ms_err *err)
{
    struct details x;
    char title[120];
    enum ms_rc rc = read_details(t, &x, err);
    int side = x.has[t->golden] ? t->golden : !t->golden;
    if (rc == MS_OK) {
        snprintf(title, sizeof title, "%s of %.*s", stack ? "stack" : "items",
                 MS_STR_ARG(x.d[side].row.name));
        rc = tui_page_open(&a->page, title, err);
        a->page.is_stack = stack;
    }
    if (rc == MS_OK)
        rc = stack ? tui_node_stack(&a->page, &x.d[side], err)
                   : tui_node_items(&a->page, x.has[0] ? &x.d[0] : NULL, x.has[1] ? &x.d[1] : NULL,
                                    err);
    free_details(&x);
    return rc;
}

/* Opens a page with the producers of the node's inputs and the consumers of its outputs. */
static enum ms_rc open_flow(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const struct graph_row *n;
    MS_TRY(tui_tree_need_node(t, &n, err));
    MS_TRY(tui_page_open(&a->page, "inferred data flow", err));
    for (int readers = 0; readers < 2; readers++) {
        struct graph_page page = {.more = false};
        enum ms_rc rc =
            graph_view_flow(t->v, tui_tree_spot(t, t->golden), n->name, readers != 0, &page, err);
        if (rc == MS_OK)
            rc = tui_page_addf(&a->page, TUI_ACCENT, err, "%s",
                               readers != 0 ? "read by" : "reads from");
        for (size_t i = 0; rc == MS_OK && i < page.rows.n; i++)
            rc = tui_page_addf(&a->page, tui_state_token(&page.rows.p[i]), err, "  %c %.*s",
                               tui_state_letter(&page.rows.p[i]), MS_STR_ARG(page.rows.p[i].name));
        graph_page_free(&page);
        MS_TRY(rc);
    }
    return MS_OK;
}

static enum ms_rc go_to_link(struct tui_tree *t, int by, struct ms_err *err)
{
    struct details x;
    struct ms_buf scratch = {.max = 1 << 16};
    struct ms_str name;
    int64_t rank;
    enum ms_rc rc = read_details(t, &x, err);
    if (rc == MS_OK)
        rc = tui_node_link(&x.d[x.has[t->golden] ? t->golden : !t->golden], t->rank, by < 0, &rank,
                           &name, &scratch, err);
    if (rc == MS_OK)
        rc = tui_tree_show(t, t->step, rank, err);
    if (rc == MS_OK)
        rc = tui_tree_reveal(t, t->golden, name, err);
    ms_buf_free(&scratch);
    free_details(&x);
    return rc;
}

/* ---- keys ------------------------------------------------------------------------------ */

static enum ms_rc copy_name(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const struct graph_row *n;
    MS_TRY(tui_tree_need_node(t, &n, err));
    tui_copy(a, n->name);
    tui_say(a, "copied %.*s", MS_STR_ARG(n->name));
    return MS_OK;
}

/* Lists all nodes with a warning, error or no partner, worst first. */
static enum ms_rc list_troubles(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    bool taken;
    t->golden = false;
    MS_TRY(tui_tree_search(t, MS_STR("state:E!W-"), true, err));
    return tui_tree_list_key(a, t, 's', &taken, err);
}

static enum ms_rc jump_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                           struct ms_err *err)
{
    *taken = true;
    switch (key) {
    case '}':
    case '{':
        return next_error(a, t, key == '{', err);
    case 'F':
        return first_divergence(a, t, err);
    case 'm':
        return go_to_match(t, err);
    case 'n':
    case 'N':
        return tui_tree_hit(t, key == 'N', err);
    case 'r':
    case 'R':
        return turn_rank(t, key == 'r' ? 1 : -1, false, err);
    case 't':
    case 'T':
        return turn_rank(t, key == 't' ? 1 : -1, true, err);
    case ']':
    case '[':
        return go_to_link(t, key == ']' ? 1 : -1, err);
    case 'L':
        return list_troubles(a, t, err);
    case 's':
    case 'I':
        return sort_rows(a, t, key, err);
    default:
        *taken = false;
        return MS_OK;
    }
}

static enum ms_rc act_key(struct tui_app *a, struct tui_tree *t, int key, bool *taken,
                          struct ms_err *err)
{
    *taken = true;
    switch (key) {
    case 'i':
    case 'S':
        return open_items(a, t, key == 'S', err);
    case 'x':
        return open_flow(a, t, err);
    case 'y':
        return copy_name(a, t, err);
    case TUI_KEY_TAB:
    case TUI_KEY_BACKTAB:
        t->golden = t->about->dual && !t->golden;
        return MS_OK;
    case 'v':
        t->layout = (enum tui_layout)((t->layout + 1) % TUI_LAYOUTS);
        return MS_OK;
    case 'Q':
        t->detail = !t->detail;
        return MS_OK;
    case 'z':
        t->top = t->at > (size_t)tui_body_rows(a) / 2 ? t->at - (size_t)tui_body_rows(a) / 2 : 0;
        return MS_OK;
    case '/':
    case '\\':
    case 'f':
        t->origin = t->at;
        tui_ask(a, key == '/' ? '/' : '\\');
        return MS_OK;
    default:
        return tui_tree_match_key(a, t, key, taken, err);
    }
}

static enum ms_rc tree_key(struct tui_app *a, void *self, int key, bool *taken, struct ms_err *err)
{
    struct tui_tree *t = self;
    if (key != TUI_KEY_TICK)
        t->unfold.on = t->seek.on = false; /* a key cancels background work */
    if (t->listing) {
        MS_TRY(tui_tree_list_key(a, t, key, taken, err));
        if (*taken)
            return MS_OK;
    } else if (tui_move(key, &t->at, t->rows.rows.n, (size_t)tui_body_rows(a))) {
        *taken = true;
        return MS_OK;
    } else {
        MS_TRY(tui_tree_unsort(t, err));
        enum ms_rc rc = fold_key(t, key, taken, err);
        MS_TRY(tui_tree_resort(t, rc == MS_OK ? err : NULL));
        if (rc != MS_OK || *taken)
            return rc;
    }
    MS_TRY(jump_key(a, t, key, taken, err));
    return *taken ? MS_OK : act_key(a, t, key, taken, err);
}

/* Handles the line while it is typed; errors of an unfinished term are not shown. */
static enum ms_rc tree_line(struct tui_app *a, void *self, char kind, struct ms_str text, bool done,
                            struct ms_err *err)
{
    struct tui_tree *t = self;
    struct ms_err half = {0};
    (void)a;
    if (text.p == NULL || text.n == 0) {
        tui_tree_search_end(t);
        t->at = t->origin < t->rows.rows.n ? t->origin : t->at;
        return MS_OK;
    }
    if (tui_tree_search(t, text, kind == '\\', done ? err : &half) != MS_OK)
        return done && err != NULL ? err->rc : MS_OK;
    if (kind == '\\')
        return MS_OK;
    t->at = t->origin < t->rows.rows.n ? t->origin : t->at;
    enum ms_rc rc = tui_tree_hit(t, false, done ? err : &half);
    return done ? rc : MS_OK;
}

/* Prepares the names for a search in idle time, so that the first search is fast. */
static enum ms_rc prepare_names(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct tui_tree *t = self;
    (void)a;
    return graph_view_ahead(t->v, tui_tree_spot(t, t->golden), more, err);
}

static enum ms_rc continue_work(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct tui_tree *t = self;
    if (!t->unfold.on)
        MS_TRY(tui_tree_search_work(a, t, more, err));
    if (!t->unfold.on && !*more)
        return prepare_names(a, t, more, err);
    if (!t->unfold.on)
        return MS_OK;
    MS_TRY(tui_tree_unsort(t, err));
    enum ms_rc rc = continue_unfolding(a, t, more, err);
    MS_TRY(tui_tree_resort(t, rc == MS_OK ? err : NULL));
    return rc;
}

static bool choose_row(struct tui_app *a, void *self, int y, int x, bool drag)
{
    struct tui_tree *t = self;
    (void)drag;
    if (y < 2 || y >= 2 + tui_tree_rows(t, &a->cells))
        return false;
    if (t->listing)
        return tui_click_row(y, 2, t->list_top, t->found.rows.n, &t->list_at);
    bool golden = tui_tree_is_golden(t, &a->cells, x), same = golden == t->golden;
    t->golden = golden;
    return tui_click_row(y, 2, t->top, t->rows.rows.n, &t->at) && same;
}

static enum ms_rc export_tree(struct tui_app *a, void *self, struct ms_buf *out, struct ms_err *err)
{
    struct tui_tree *t = self;
    (void)a;
    (void)err;
    ms_buf_puts(out, "depth,state,target,golden,error,warning,unmatched,overflow\n");
    for (size_t i = 0; !t->listing && i < t->rows.rows.n; i++) {
        const struct viz_row *r = &t->rows.rows.p[i];
        const struct graph_rollup *b = &r->pair.below;
        if (r->kind == VIZ_ROW_MORE)
            continue;
        ms_buf_printf(out, "%u,%c,", r->depth, tui_state_letter(&r->pair.target));
        ms_csv_put(out, r->pair.target.name, MS_CSV_FOREIGN);
        ms_buf_putc(out, ',');
        ms_csv_put(out, r->pair.golden.name, MS_CSV_FOREIGN);
        ms_buf_printf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", b->error,
                      b->warning, b->unmatched, b->overflow);
    }
    for (size_t i = 0; t->listing && i < t->found.rows.n; i++) {
        const struct graph_row *r = &t->found.rows.p[i];
        ms_buf_printf(out, ",%c,", tui_state_letter(r));
        ms_csv_put(out, t->golden ? r->partner : r->name, MS_CSV_FOREIGN);
        ms_buf_putc(out, ',');
        ms_csv_put(out, t->golden ? r->name : r->partner, MS_CSV_FOREIGN);
        ms_buf_puts(out, ",,,,\n");
    }
    return MS_OK;
}

static const struct tui_hint hints[] = {
    {"moving", NULL, NULL},
    {"↑↓", "move", "move"},
    {"→ Enter", "open", "open"},
    {"← h", "fold, or to the parent", NULL},
    {"Tab", "the other side", "side"},
    {"/", "search as you type", "search"},
    {"}", "next error", "next error"},
    {"{", "previous error", NULL},
    {"F", "suspect 1; again: the next suspect", "suspect"},
    {"m", "to the matched node", "match"},
    {"c e / C E", "fold, unfold children / all below", NULL},
    {"u J K", "parent, next and previous sibling", NULL},
    {"z", "row to the middle", NULL},
    {"s I", "sort siblings: state, errors, name, order; turn it round", NULL},
    {"finding", NULL, NULL},
    {"n N", "next, previous hit", NULL},
    {"\\ f", "filter: words, state:EW class: shape: dtype: /expression/", NULL},
    {"L", "list what is wrong; there s sorts and I turns it round", NULL},
    {"one node", NULL, NULL},
    {"i", "its items with the figures of both sides", "items"},
    {"S", "where in the program it was called; there e opens the line in $EDITOR", "stack"},
    {"x", "where its inputs come from and outputs go to", NULL},
    {"] [", "communication partner on the next, previous rank", NULL},
    {"y", "copy the name", NULL},
    {"Q", "details on and off", NULL},
    {"ranks, steps, sides", NULL, NULL},
    {"r R", "next, previous rank", NULL},
    {"t T", "next, previous step", NULL},
    {"v", "both sides, one side, ranks by steps", NULL},
    {"Space", "tag a node of one side", NULL},
    {"U", "untag", NULL},
    {"M", "match it with this one of the other side, or unmatch", NULL},
    {"B", "the same with all below", NULL},
    {"Z", "take the last match back", NULL},
    {NULL, NULL, NULL},
};

const struct tui_screen tui_tree_screen = {
    .name = "Tree",
    .hints = hints,
    .open = open_tree,
    .close = close_tree,
    .draw = tui_tree_draw,
    .where = tui_tree_where,
    .key = tree_key,
    .show_place = go_to_place,
    .work = continue_work,
    .ahead = prepare_names,
    .click = choose_row,
    .export = export_tree,
    .line = tree_line,
};
