/* SPDX-License-Identifier: MIT
 *
 * tui_tree: the graph screen: where the cursor is and what keys do.
 */
#include "viz/tui_tree.h"

#include "probe/base/mem.h"

#include <inttypes.h>
#include <stdio.h>

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

/* ---- opening ----------------------------------------------------------------------- */

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

/* ---- going to nodes ------------------------------------------------------------------ */

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

static enum ms_rc go(struct tui_app *a, void *self, const struct viz_place *p, struct ms_err *err)
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

/* A module ends behind all that is in it, but stands before it: from there the first node within
 * comes next. */
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

static bool is_suspect(const struct tui_tree *t, const struct viz_finding *f)
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
        if (role && is_suspect(t, f) && f->place.golden == golden && ms_str_eq(f->place.node, name))
            return f;
    }
    return NULL;
}

/* The node that the first suspect names; from there the next one, and round.  Without suspects the
 * first error in order of calls. */
static enum ms_rc first_divergence(struct tui_app *a, struct tui_tree *t, struct ms_err *err)
{
    const struct graph_row *here = tui_tree_node(t);
    const struct viz_finding *first = NULL, *to = NULL;
    bool passed = false;
    for (size_t i = 0; i < a->findings.list.n && to == NULL; i++) {
        const struct viz_finding *f = &a->findings.list.p[i];
        if (!is_suspect(t, f))
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

/* The other side of the row, or where the partner has moved to. */
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
    /* The same node there, when it has one. */
    if (rc == MS_OK && name.n != 0)
        (void)tui_tree_reveal(t, golden, ms_buf_slice(&name), NULL);
    ms_buf_free(&name);
    return rc;
}

/* ---- pages over one node --------------------------------------------------------------- */

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
    }
    if (rc == MS_OK)
        rc = stack ? tui_node_stack(&a->page, &x.d[side], err)
                   : tui_node_items(&a->page, x.has[0] ? &x.d[0] : NULL, x.has[1] ? &x.d[1] : NULL,
                                    err);
    free_details(&x);
    return rc;
}

/* Nodes that wrote what this one reads, and that read what it wrote. */
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

/* All that asks for a look, worst first. */
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
        t->unfold.on = t->seek.on = false; /* who presses a key goes on with that */
    if (t->listing) {
        MS_TRY(tui_tree_list_key(a, t, key, taken, err));
        if (*taken)
            return MS_OK;
    } else if (tui_move(key, &t->at, t->rows.rows.n, (size_t)tui_body_rows(a))) {
        *taken = true;
        return MS_OK;
    } else {
        MS_TRY(tui_tree_unsort(t, err));
        enum ms_rc rc = tui_tree_fold_key(t, key, taken, err);
        MS_TRY(tui_tree_resort(t, rc == MS_OK ? err : NULL));
        if (rc != MS_OK || *taken)
            return rc;
    }
    MS_TRY(jump_key(a, t, key, taken, err));
    return *taken ? MS_OK : act_key(a, t, key, taken, err);
}

/* While one types, errors of half a word are not worth a message. */
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

/* Searches come by surprise: names are made ready for them while nothing else is to do. */
static enum ms_rc ahead(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct tui_tree *t = self;
    (void)a;
    return graph_view_ahead(t->v, tui_tree_spot(t, t->golden), more, err);
}

static enum ms_rc work(struct tui_app *a, void *self, bool *more, struct ms_err *err)
{
    struct tui_tree *t = self;
    if (!t->unfold.on)
        MS_TRY(tui_tree_search_work(a, t, more, err));
    if (!t->unfold.on && !*more)
        return ahead(a, t, more, err);
    if (!t->unfold.on)
        return MS_OK;
    MS_TRY(tui_tree_unsort(t, err));
    enum ms_rc rc = tui_tree_fold_work(a, t, more, err);
    MS_TRY(tui_tree_resort(t, rc == MS_OK ? err : NULL));
    return rc;
}

static bool click(struct tui_app *a, void *self, int y, int x, bool drag)
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
        tui_csv_text(out, r->pair.target.name);
        ms_buf_putc(out, ',');
        tui_csv_text(out, r->pair.golden.name);
        ms_buf_printf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", b->error,
                      b->warning, b->unmatched, b->overflow);
    }
    for (size_t i = 0; t->listing && i < t->found.rows.n; i++) {
        const struct graph_row *r = &t->found.rows.p[i];
        ms_buf_printf(out, ",%c,", tui_state_letter(r));
        tui_csv_text(out, t->golden ? r->partner : r->name);
        ms_buf_putc(out, ',');
        tui_csv_text(out, t->golden ? r->name : r->partner);
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
    {"F", "first divergence or suspect; again: the next suspect", "first"},
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
    {"S", "where in the program it was called", "stack"},
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
    .go = go,
    .work = work,
    .ahead = ahead,
    .click = click,
    .export = export_tree,
    .line = tree_line,
};
