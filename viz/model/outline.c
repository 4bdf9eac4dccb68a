/* SPDX-License-Identifier: MIT
 *
 * outline: folding and unfolding of the flat list.
 */
#include "viz/model/outline.h"

#include "probe/base/assert.h"
#include "probe/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_ROWS = 128, RUN_LEAST = 3 };
static const size_t TEXT_MAX = (size_t)4 << 30;
static const struct viz_pair_cursor TO_THE_END = {0, 0};

/* ---- the list --------------------------------------------------------------------- */

/* Makes room for n rows at position `at`; NULL when out of memory. */
static struct viz_row *insert_rows(struct viz_outline *t, size_t at, size_t n)
{
    if (!ms_vec_reserve(&t->rows, t->rows.n + n))
        return NULL;
    struct viz_row *p = t->rows.p + at;
    memmove(p + n, p, (t->rows.n - at) * sizeof *p);
    t->rows.n += n;
    return p;
}

static void remove_rows(struct viz_outline *t, size_t at, size_t n)
{
    struct viz_row *p = t->rows.p + at;
    memmove(p, p + n, (t->rows.n - at - n) * sizeof *p);
    t->rows.n -= n;
}

/* Returns the end of the rows below row i. */
static size_t end_of(const struct viz_outline *t, size_t i)
{
    size_t j = i + 1;
    while (j < t->rows.n && t->rows.p[j].depth > t->rows.p[i].depth)
        j++;
    return j;
}

static bool keep_row(struct viz_outline *t, struct graph_row *r)
{
    struct ms_str *text[] = {&r->name, &r->parent, &r->partner, &r->overflow};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        *text[i] = ms_arena_str(t->arena, text[i]->p != NULL ? *text[i] : MS_STR(""));
        if (text[i]->p == NULL)
            return false;
    }
    return true;
}

/* ---- pages ------------------------------------------------------------------------ */

/* Returns the number of nodes from row i of the page on that are shown as one row. */
static size_t run_at(const struct viz_outline *t, const struct viz_pairs *p, size_t i)
{
    size_t n = t->fold_runs ? viz_pairs_run(p, i) : 1;
    return n >= RUN_LEAST ? n : 1;
}

static enum ms_rc put_page(struct viz_outline *t, size_t at, uint16_t depth,
                           const struct viz_pairs *p, struct viz_pair_cursor until,
                           struct ms_err *err)
{
    size_t n = p->more ? 1 : 0, used = 0;
    for (size_t i = 0; i < p->rows.n; i += run_at(t, p, i))
        n++;
    struct viz_row *to = insert_rows(t, at, n);
    if (to == NULL)
        return ms_no_memory(err);
    memset(to, 0, n * sizeof *to);
    for (size_t i = 0; i < p->rows.n; used++) {
        size_t run = run_at(t, p, i);
        to[used] = (struct viz_row){.kind = run > 1 ? VIZ_ROW_RUN : VIZ_ROW_NODE,
                                    .depth = depth,
                                    .run = (uint32_t)run,
                                    .pair = p->rows.p[i]};
        if (!keep_row(t, &to[used].pair.target) || !keep_row(t, &to[used].pair.golden))
            return ms_arena_fail(t->arena, err);
        i += run;
    }
    if (p->more)
        to[used] = (struct viz_row){
            .kind = VIZ_ROW_MORE, .depth = depth, .run = 1, .cursor = p->next, .until = until};
    return MS_OK;
}

/* Returns the query for the children of a row; for those of the root when parent is NULL. */
static struct viz_pairs_of children_of(const struct viz_outline *t, const struct viz_row *parent)
{
    struct viz_pairs_of of = {t->step, t->rank, t->micro, MS_STR(""), MS_STR(""), TO_THE_END};
    if (parent == NULL)
        return of;
    of.target = parent->pair.target.name.n != 0 ? parent->pair.target.name : MS_STR_NONE;
    of.golden = parent->pair.golden.name.n != 0 ? parent->pair.golden.name : MS_STR_NONE;
    if (parent->pair.where == VIZ_MOVED)
        of.golden = MS_STR_NONE;
    return of;
}

static enum ms_rc fetch_rows(struct viz_outline *t, size_t at, uint16_t depth,
                             const struct viz_row *parent, struct viz_pair_cursor after,
                             struct viz_pair_cursor until, struct ms_err *err)
{
    struct viz_pairs page = {.more = false};
    struct viz_pairs_of of = children_of(t, parent);
    of.until = until;
    enum ms_rc rc = viz_pairs_read(&page, t->v, &of, after, PAGE_ROWS, err);
    if (rc == MS_OK)
        rc = put_page(t, at, depth, &page, until, err);
    viz_pairs_free(&page);
    return rc;
}

enum ms_rc viz_outline_open(struct viz_outline *t, struct graph_view *v, int64_t step, int64_t rank,
                            struct ms_err *err)
{
    *t = (struct viz_outline){.v = v,
                              .step = step,
                              .rank = rank,
                              .micro = -1,
                              .fold_runs = true,
                              .arena = ms_arena_new(TEXT_MAX)};
    enum ms_rc rc = t->arena != NULL ? MS_OK : ms_no_memory(err);
    if (rc == MS_OK)
        rc = fetch_rows(t, 0, 0, NULL, VIZ_PAIRS_FIRST, TO_THE_END, err);
    if (rc == MS_OK && t->rows.n == 1)
        rc = viz_outline_unfold(t, 0, err);
    if (rc != MS_OK)
        viz_outline_close(t);
    return rc;
}

void viz_outline_close(struct viz_outline *t)
{
    ms_vec_free(&t->rows);
    ms_arena_free(t->arena);
    t->arena = NULL;
}

/* ---- folding ---------------------------------------------------------------------- */

size_t viz_outline_parent(const struct viz_outline *t, size_t i)
{
    size_t j = i;
    while (j > 0 && t->rows.p[j].depth >= t->rows.p[i].depth)
        j--;
    return t->rows.p[j].depth < t->rows.p[i].depth ? j : i;
}

static const struct viz_row *parent_row(const struct viz_outline *t, size_t i)
{
    size_t up = viz_outline_parent(t, i);
    return up != i ? &t->rows.p[up] : NULL;
}

/* Replaces the row by the page that begins there. */
static enum ms_rc unfold_more(struct viz_outline *t, size_t i, struct ms_err *err)
{
    struct viz_row more = t->rows.p[i];
    const struct viz_row *up = parent_row(t, i);
    struct viz_row parent = up != NULL ? *up : more;
    MS_TRY(fetch_rows(t, i + 1, more.depth, up != NULL ? &parent : NULL, more.cursor, more.until,
                      err));
    remove_rows(t, i, 1);
    return MS_OK;
}

/* Replaces the row by its nodes. */
static enum ms_rc unfold_run(struct viz_outline *t, size_t i, struct ms_err *err)
{
    struct viz_row run = t->rows.p[i];
    const struct viz_row *up = parent_row(t, i);
    struct viz_row parent = up != NULL ? *up : run;
    struct viz_pairs page = {.more = false};
    struct viz_pairs_of of = children_of(t, up != NULL ? &parent : NULL);
    bool has_golden = run.pair.golden.name.n != 0;
    struct viz_pair_cursor before = {run.pair.target.order - 1,
                                     has_golden ? run.pair.golden.order - 1 : INT64_MAX};
    MS_TRY(viz_pairs_read(&page, t->v, &of, before, run.run, err));
    page.rows.n = page.rows.n < run.run ? page.rows.n : run.run;
    page.more = false;
    t->fold_runs = false;
    enum ms_rc rc = put_page(t, i + 1, run.depth, &page, TO_THE_END, err);
    t->fold_runs = true;
    viz_pairs_free(&page);
    if (rc == MS_OK)
        remove_rows(t, i, 1);
    return rc;
}

static bool has_children(const struct viz_row *r)
{
    return r->pair.target.has_children || r->pair.golden.has_children;
}

enum ms_rc viz_outline_unfold(struct viz_outline *t, size_t i, struct ms_err *err)
{
    ms_assert(i < t->rows.n);
    struct viz_row *r = &t->rows.p[i];
    if (r->kind == VIZ_ROW_MORE)
        return unfold_more(t, i, err);
    if (r->kind == VIZ_ROW_RUN)
        return unfold_run(t, i, err);
    if (r->open || !has_children(r))
        return MS_OK;
    struct viz_row parent = *r;
    MS_TRY(
        fetch_rows(t, i + 1, (uint16_t)(r->depth + 1), &parent, VIZ_PAIRS_FIRST, TO_THE_END, err));
    t->rows.p[i].open = true;
    return MS_OK;
}

void viz_outline_fold(struct viz_outline *t, size_t i)
{
    ms_assert(i < t->rows.n);
    if (!t->rows.p[i].open)
        return;
    remove_rows(t, i + 1, end_of(t, i) - i - 1);
    t->rows.p[i].open = false;
}

size_t viz_outline_sibling(const struct viz_outline *t, size_t i, int direction)
{
    uint16_t depth = t->rows.p[i].depth;
    if (direction > 0) {
        size_t j = end_of(t, i);
        return j < t->rows.n && t->rows.p[j].depth == depth ? j : i;
    }
    size_t j = i;
    while (j > 0 && t->rows.p[j - 1].depth > depth)
        j--;
    return j > 0 && t->rows.p[j - 1].depth == depth ? j - 1 : i;
}

/* ---- finding a node ----------------------------------------------------------------- */

static bool is_named(const struct viz_row *r, bool golden, struct ms_str name)
{
    return r->kind == VIZ_ROW_NODE &&
           ms_str_eq(golden ? r->pair.golden.name : r->pair.target.name, name);
}

static int64_t order_of(const struct viz_row *r, bool golden)
{
    return golden ? r->pair.golden.order : r->pair.target.order;
}

/* Tells whether a child is beyond the page that a row MORE stands for. */
static bool is_far(const struct viz_row *more, const struct graph_row *want)
{
    return want->order > more->cursor.target + 2 * PAGE_ROWS &&
           (more->until.target == 0 || want->order <= more->until.target);
}

/* Splits row MORE at i into one for the rows before a distant child, and one from the child on. */
static enum ms_rc split_more(struct viz_outline *t, size_t i, const struct graph_row *want,
                             bool *split, struct ms_err *err)
{
    const struct viz_row *up = parent_row(t, i);
    struct viz_pairs_of of = children_of(t, up);
    struct viz_pair_cursor begin;
    MS_TRY(viz_pairs_seek(t->v, &of, want, &begin, split, err));
    if (!*split)
        return MS_OK;
    struct viz_row *behind = insert_rows(t, i + 1, 1);
    if (behind == NULL)
        return ms_no_memory(err);
    *behind = t->rows.p[i];
    behind->cursor = begin;
    t->rows.p[i].until = begin;
    return MS_OK;
}

/* Finds the row of a node among the rows below row `parent` (SIZE_MAX: at the top); loads pages
 * and unfolds runs that may contain the node. */
static enum ms_rc find_child(struct viz_outline *t, size_t parent, bool golden,
                             const struct graph_row *want, size_t *row, struct ms_err *err)
{
    uint16_t depth = parent == SIZE_MAX ? 0 : (uint16_t)(t->rows.p[parent].depth + 1);
    for (size_t i = parent + 1; i < t->rows.n && t->rows.p[i].depth >= depth; i++) {
        struct viz_row *r = &t->rows.p[i];
        if (r->depth != depth)
            continue;
        if (is_named(r, golden, want->name)) {
            *row = i;
            return MS_OK;
        }
        bool next_is_later = i + 1 < t->rows.n && t->rows.p[i + 1].kind == VIZ_ROW_NODE &&
                             t->rows.p[i + 1].depth == depth &&
                             order_of(&t->rows.p[i + 1], golden) <= want->order;
        bool split = false, before = r->kind == VIZ_ROW_MORE && r->until.target != 0 && !golden &&
                                     want->order > r->until.target;
        if (r->kind == VIZ_ROW_MORE && !golden && is_far(r, want))
            MS_TRY(split_more(t, i, want, &split, err));
        if (split || before)
            continue;
        bool may_hold =
            r->kind == VIZ_ROW_MORE ||
            (r->kind == VIZ_ROW_RUN && order_of(r, golden) <= want->order && !next_is_later);
        if (may_hold) {
            MS_TRY(viz_outline_unfold(t, i, err));
            i--; /* the row was replaced */
        }
    }
    return ms_fail(err, MS_E_NOTFOUND, "%.*s is not in this tree", MS_STR_ARG(want->name));
}

enum ms_rc viz_outline_reveal(struct viz_outline *t, bool golden, struct ms_str name, size_t *row,
                              struct ms_err *err)
{
    struct graph_page path = {.more = false};
    struct graph_spot at = {t->step, t->rank, golden};
    size_t parent = SIZE_MAX;
    enum ms_rc rc = graph_view_path(t->v, at, name, &path, err);
    for (size_t i = 0; rc == MS_OK && i < path.rows.n; i++) {
        if (parent != SIZE_MAX)
            rc = viz_outline_unfold(t, parent, err);
        if (rc == MS_OK)
            rc = find_child(t, parent, golden, &path.rows.p[i], &parent, err);
    }
    graph_page_free(&path);
    *row = parent;
    return rc;
}

enum ms_rc viz_outline_reload(struct viz_outline *t, struct ms_err *err)
{
    struct viz_outline fresh;
    MS_TRY(viz_outline_open(&fresh, t->v, t->step, t->rank, err));
    enum ms_rc rc = MS_OK;
    for (size_t i = 0; i < t->rows.n && rc == MS_OK; i++) {
        const struct viz_row *r = &t->rows.p[i];
        bool golden = r->pair.target.name.n == 0;
        size_t at;
        if (r->kind != VIZ_ROW_NODE || !r->open)
            continue;
        rc = viz_outline_reveal(&fresh, golden, golden ? r->pair.golden.name : r->pair.target.name,
                                &at, err);
        if (rc == MS_OK)
            rc = viz_outline_unfold(&fresh, at, err);
        else if (rc == MS_E_NOTFOUND) {
            ms_err_clear(err);
            rc = MS_OK;
        }
    }
    if (rc != MS_OK) {
        viz_outline_close(&fresh);
        return rc;
    }
    viz_outline_close(t);
    *t = fresh;
    return MS_OK;
}

/* ---- siblings sorted ---------------------------------------------------------------- */

enum { DEEPEST = 500 }; /* deeper rows keep their order */

struct block { /* a row and all rows below it */
    size_t from, n;
    int64_t weight; /* sort key, ascending */
    struct ms_str name;
};

struct arranging {
    const struct viz_row *from; /* all rows in their current order */
    struct viz_row *to;
    size_t used;
    enum viz_sort sort;
    bool inverted;
};

/* ---- sort keys ------------------------------------------------------------------------ */

/* Returns the rank of the state in the order E ! W - . and not compared, as in all lists; a
 * closed node has the worst state of its descendants. */
static int64_t badness_of(const struct viz_row *r)
{
    const struct graph_row *n = r->pair.target.name.n != 0 ? &r->pair.target : &r->pair.golden;
    const struct graph_rollup *b = &r->pair.below;
    return n->state == GRAPH_ERROR || b->error != 0       ? 0
           : n->overflow.n != 0 || b->overflow != 0       ? 1
           : n->state == GRAPH_WARNING || b->warning != 0 ? 2
           : n->unmatched || b->unmatched != 0            ? 3
           : n->state == GRAPH_PASS                       ? 4
                                                          : 5;
}

static int64_t weight_of(const struct viz_row *r, enum viz_sort sort)
{
    switch (sort) {
    case VIZ_SORT_STATE:
        return badness_of(r);
    case VIZ_SORT_ERRORS:
        return -(r->pair.below.error + (r->pair.target.state == GRAPH_ERROR));
    default:
        return 0;
    }
}

static int compare(const void *pa, const void *pb)
{
    const struct block *a = pa, *b = pb;
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    int c = a->name.p != NULL && b->name.p != NULL ? ms_str_cmp_natural(a->name, b->name) : 0;
    return c != 0 ? c : a->from < b->from ? -1 : a->from > b->from;
}

static struct block block_of(const struct arranging *g, size_t i, size_t end)
{
    const struct viz_row *r = &g->from[i];
    struct block b = {i, 1, weight_of(r, g->sort), MS_STR_NONE};
    while (i + b.n < end && g->from[i + b.n].depth > r->depth)
        b.n++;
    if (g->sort == VIZ_SORT_NAME)
        b.name = r->pair.target.name.n != 0 ? r->pair.target.name : r->pair.golden.name;
    return b;
}

/* ---- sorting --------------------------------------------------------------------------- */

static enum ms_rc put_range(struct arranging *g, size_t from, size_t end, int deep,
                            struct ms_err *err);

static enum ms_rc put_block(struct arranging *g, const struct block *b, int deep,
                            struct ms_err *err)
{
    g->to[g->used++] = g->from[b->from];
    return put_range(g, b->from + 1, b->from + b->n, deep + 1, err);
}

static enum ms_rc put_sorted(struct arranging *g, struct block *p, size_t n, int deep,
                             struct ms_err *err)
{
    size_t last = n; /* rows MORE stay at the end */
    while (last > 0 && g->from[p[last - 1].from].kind == VIZ_ROW_MORE)
        last--;
    if (last > 1)
        qsort(p, last, sizeof *p, compare);
    for (size_t i = 0; i < n; i++) {
        size_t at = g->inverted && i < last ? last - 1 - i : i;
        MS_TRY(put_block(g, &p[at], deep, err));
    }
    return MS_OK;
}

static enum ms_rc put_range(struct arranging *g, size_t from, size_t end, int deep,
                            struct ms_err *err)
{
    MS_VEC(struct block) blocks = {0};
    enum ms_rc rc = MS_OK;
    for (size_t i = from; i < end && deep > DEEPEST; i++)
        g->to[g->used++] = g->from[i];
    for (size_t i = from; rc == MS_OK && i < end && deep <= DEEPEST;) {
        struct block *b = ms_vec_push(&blocks);
        if (b == NULL)
            rc = ms_no_memory(err);
        else {
            *b = block_of(g, i, end);
            i += b->n;
        }
    }
    if (rc == MS_OK)
        rc = put_sorted(g, blocks.p, blocks.n, deep, err);
    ms_vec_free(&blocks);
    return rc;
}

static void follow(const struct viz_outline *t, uint32_t natural, size_t *at)
{
    for (size_t i = 0; i < t->rows.n; i++) {
        if (t->rows.p[i].natural == natural)
            *at = i;
    }
}

enum ms_rc viz_arrange(struct viz_outline *t, enum viz_sort sort, bool inverted, size_t *at,
                       struct ms_err *err)
{
    size_t n = t->rows.n;
    struct viz_row *copy = ms_alloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return ms_no_memory(err);
    for (size_t i = 0; i < n; i++)
        t->rows.p[i].natural = (uint32_t)i;
    memcpy(copy, t->rows.p, n * sizeof *copy);
    struct arranging g = {copy, t->rows.p, 0, sort, inverted};
    enum ms_rc rc = put_range(&g, 0, n, 0, err);
    if (rc != MS_OK)
        memcpy(t->rows.p, copy, n * sizeof *copy);
    else
        follow(t, (uint32_t)*at, at);
    ms_free(copy);
    return rc;
}

enum ms_rc viz_arrange_back(struct viz_outline *t, size_t *at, struct ms_err *err)
{
    size_t n = t->rows.n;
    struct viz_row *copy = ms_alloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return ms_no_memory(err);
    uint32_t here = *at < n ? t->rows.p[*at].natural : 0;
    memcpy(copy, t->rows.p, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        t->rows.p[copy[i].natural] = copy[i];
    *at = here;
    ms_free(copy);
    return MS_OK;
}
