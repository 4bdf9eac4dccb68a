/* SPDX-License-Identifier: MIT
 *
 * graph_seek: nodes by a part of their name and by their state.  x_names and x_state make both
 * independent of how large the rows are; a database without them is read through.
 */
#include "compare/graph_rows.h"
#include "compare/graph_schema.h"
#include "probe/base/mapsafe.h"
#include "probe/base/mem.h"

enum { SEARCH_PAGES = 8 };

/* ---- search -------------------------------------------------------------------- */

static enum ms_rc add_by_order(struct graph_view *v, struct graph_spot at, int64_t order,
                               struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(graph__statement_at(v, Q_BY_ORDER, at, &st, err));
    ms_stmt_i64(st, 4, order);
    return graph__list_rows(v, st, (uint32_t)page->rows.n + 1, page, err);
}

/* One page of names, a line each, of which the first is that of node `order`. */
static enum ms_rc search_names(struct graph_view *v, struct graph_spot at, struct ms_str names,
                               int64_t order, struct ms_str word, int64_t after, uint32_t limit,
                               struct graph_page *page, struct ms_err *err)
{
    const char *p = names.p, *end = p + names.n;
    while (p < end && !page->more) {
        const char *hit = memmem(p, (size_t)(end - p), word.p, word.n);
        if (hit == NULL)
            return MS_OK;
        for (const char *line; (line = memchr(p, '\n', (size_t)(hit - p))) != NULL; p = line + 1)
            order++;
        if (order > after && page->rows.n == limit)
            page->more = true;
        else if (order > after)
            MS_TRY(add_by_order(v, at, order, page, err));
        const char *next = memchr(hit, '\n', (size_t)(end - hit));
        p = next != NULL ? next + 1 : end;
        order++;
    }
    return MS_OK;
}

static enum ms_rc search_pages(struct graph_view *v, struct graph_spot at, struct ms_str word,
                               int64_t after, uint32_t limit, struct graph_page *page,
                               struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    enum ms_rc rc;
    MS_TRY(graph__statement(v, Q_NAMES, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, after < 0 ? 0 : after);
    for (int pages = 0; (rc = ms_stmt_step(st, &more, err)) == MS_OK && more && !page->more;
         pages++) {
        if (pages == SEARCH_PAGES) {
            page->more = true;
            page->reached = ms_stmt_get_i64(st, 0) - 1;
            break;
        }
        rc = search_names(v, at, ms_stmt_get_blob(st, 1), ms_stmt_get_i64(st, 0), word, after,
                          limit, page, err);
        if (rc != MS_OK)
            break;
    }
    ms_stmt_reset(st);
    return rc;
}

static enum ms_rc search_mapped(struct graph_view *v, struct graph_spot at, struct ms_str word,
                                int64_t after, uint32_t limit, struct graph_page *page,
                                struct ms_err *err)
{
    MS_TRY(ms_store_exec(v->store, "PRAGMA mmap_size = 1099511627776", err));
    enum ms_rc rc = search_pages(v, at, word, after, limit, page, err);
    enum ms_rc back = ms_store_exec(v->store, "PRAGMA mmap_size = 0", rc == MS_OK ? err : NULL);
    return rc == MS_OK ? back : rc;
}

/* Names lie on many pages: mapped they are searched in half the time of reading them.  Not for longer
 * than a few pages, since what is mapped counts as memory of ours. */
static enum ms_rc search_quick(struct graph_view *v, struct graph_spot at, struct ms_str word,
                               int64_t after, uint32_t limit, struct graph_page *page,
                               struct ms_err *err)
{
    struct ms_err why = {0};
    ms_mapsafe_begin();
    enum ms_rc rc = search_mapped(v, at, word, after, limit, page, &why);
    if (ms_mapsafe_end())
        return ms_fail(err, MS_E_IO, "the file of the graph became shorter while it was read");
    if (rc != MS_OK && err != NULL && err->rc == MS_OK)
        *err = why;
    return rc;
}

static enum ms_rc search_shapes(struct graph_view *v, struct graph_spot at, struct ms_str word,
                                int64_t after, uint32_t limit, struct graph_page *page,
                                struct ms_err *err)
{
    bool *meets = graph__shapes_meet(v->shapes[at.golden], word);
    enum ms_rc rc = meets != NULL ? MS_OK : ms_no_memory(err);
    while (rc == MS_OK && !page->more) {
        after = graph__shapes_next(v->shapes[at.golden], meets, after);
        if (after < 0)
            break;
        page->more = page->rows.n == limit;
        if (!page->more)
            rc = add_by_order(v, at, after, page, err);
    }
    ms_free(meets);
    return rc;
}

static enum ms_rc search_like(struct graph_view *v, struct graph_spot at, struct ms_str word,
                              int64_t after, uint32_t limit, struct graph_page *page,
                              struct ms_err *err)
{
    struct ms_stmt *st;
    MS_TRY(graph__statement_at(v, Q_SEARCH, at, &st, err));
    ms_buf_clear(&v->text);
    ms_buf_putc(&v->text, '%');
    for (uint32_t i = 0; i < word.n; i++) {
        if (word.p[i] == '%' || word.p[i] == '_' || word.p[i] == '\\')
            ms_buf_putc(&v->text, '\\');
        ms_buf_putc(&v->text, word.p[i]);
    }
    ms_buf_putc(&v->text, '%');
    MS_TRY(ms_buf_check(&v->text, err));
    ms_stmt_str(st, 4, ms_buf_slice(&v->text));
    ms_stmt_i64(st, 5, after);
    ms_stmt_i64(st, 6, (int64_t)limit + 1);
    return graph__list_rows(v, st, limit, page, err);
}

enum ms_rc graph_view_search(struct graph_view *v, struct graph_spot at, struct ms_str text,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err)
{
    struct ms_buf lower = {.max = GRAPH_NAME_MAX};
    MS_TRY(graph__page_start(page, err));
    for (uint32_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        ms_buf_putc(&lower, c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
    }
    enum ms_rc rc = ms_buf_check(&lower, err);
    struct ms_str word = ms_buf_slice(&lower);
    /* Names do not change, so x_names is right whatever was matched by hand. */
    if (rc == MS_OK && text.n != 0 && graph__shapes_know(v, at, word))
        rc = search_shapes(v, at, word, after, limit, page, err);
    else if (rc == MS_OK && v->quick && text.n != 0 && ms_str_find(text, '\n') < 0)
        rc = search_quick(v, at, word, after, limit, page, err);
    else if (rc == MS_OK)
        rc = search_like(v, at, word, after, limit, page, err);
    ms_buf_free(&lower);
    return rc;
}

/* ---- states -------------------------------------------------------------------- */

static bool is_wanted(const struct graph_row *row, unsigned want)
{
    return ((want & GRAPH_WANT_UNMATCHED) && row->unmatched) ||
           ((want & GRAPH_WANT_OVERFLOW) && row->overflow.n != 0) ||
           (row->state != GRAPH_NONE && (want & 1U << row->state));
}

/* The nearest node that has moved, or -1. */
static enum ms_rc nearest_moved(struct graph_view *v, struct graph_spot at, int64_t from,
                                bool backwards, int64_t *order, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *order = -1;
    if (!v->traced)
        return MS_OK;
    MS_TRY(graph__statement_at(v, backwards ? Q_MOVED_DOWN : Q_MOVED_UP, at, &st, err));
    ms_stmt_str(st, 4, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 5, from);
    enum ms_rc rc = ms_stmt_step(st, &more, err);
    if (rc == MS_OK && more)
        *order = ms_stmt_get_i64(st, 0);
    ms_stmt_reset(st);
    return rc;
}

/* Does the row stay?  *moved is the nearest node that has moved, looked up anew once it is passed;
 * INT64_MIN: not looked up yet. */
static enum ms_rc judge_row(struct graph_view *v, struct graph_spot at, unsigned want,
                            const struct graph_row *row, bool backwards, int64_t *moved,
                            bool *wanted, struct ms_err *err)
{
    *wanted = is_wanted(row, want);
    if (!(want & GRAPH_WANT_MOVED) || *moved == -1)
        return MS_OK;
    if (*moved == INT64_MIN || (backwards ? *moved > row->order : *moved < row->order))
        MS_TRY(nearest_moved(v, at, row->order + (backwards ? 1 : -1), backwards, moved, err));
    *wanted = *wanted || *moved == row->order;
    return MS_OK;
}

static enum ms_rc scan(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                       bool backwards, uint32_t limit, struct graph_page *page, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more, wanted = false;
    int64_t moved = INT64_MIN;
    enum ms_rc rc;
    MS_TRY(graph__statement_at(v, backwards ? Q_SCAN_DOWN : Q_SCAN_UP, at, &st, err));
    ms_stmt_i64(st, 4, from);
    while ((rc = ms_stmt_step(st, &more, err)) == MS_OK && more && !page->more) {
        rc = graph__push_row(v, st, page, err);
        if (rc == MS_OK)
            rc = judge_row(v, at, want, &page->rows.p[page->rows.n - 1], backwards, &moved, &wanted,
                           err);
        if (rc != MS_OK)
            break;
        if (!wanted)
            page->rows.n--;
        page->more = page->rows.n > limit;
    }
    page->rows.n -= page->more;
    ms_stmt_reset(st);
    return rc;
}

/* States that x_state holds, and what x_align does. */
static bool is_quick(const struct graph_view *v, unsigned want)
{
    const unsigned indexed =
        GRAPH_WANT_WARNING | GRAPH_WANT_ERROR | GRAPH_WANT_UNMATCHED | GRAPH_WANT_MOVED;
    return v->whole || (v->quick && (want & ~indexed) == 0) || want == GRAPH_WANT_MOVED;
}

/* The nearest node_order in a state, or -1. */
static enum ms_rc nearest_in(struct graph_view *v, struct graph_spot at, int state, int64_t from,
                             bool backwards, int64_t *order, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    *order = -1;
    MS_TRY(graph__statement(v, backwards ? Q_STATE_DOWN : Q_STATE_UP, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, state);
    ms_stmt_i64(st, 3, from);
    MS_TRY(ms_stmt_step(st, &more, err));
    if (more && !ms_stmt_is_null(st, 0))
        *order = ms_stmt_get_i64(st, 0);
    ms_stmt_reset(st);
    return MS_OK;
}

static enum ms_rc nearest(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                          bool backwards, int64_t *order, struct ms_err *err)
{
    static const struct {
        unsigned want;
        int state;
    } kinds[] = {{GRAPH_WANT_UNMATCHED, GRAPH_NONE},
                 {GRAPH_WANT_PASS, GRAPH_PASS},
                 {GRAPH_WANT_WARNING, GRAPH_WARNING},
                 {GRAPH_WANT_ERROR, GRAPH_ERROR},
                 {GRAPH_WANT_OVERFLOW, GRAPH_STATE_OVERFLOW}};
    const size_t states = sizeof kinds / sizeof *kinds;
    *order = -1;
    for (size_t i = 0; i <= states; i++) {
        int64_t here = -1;
        if (i < states && (want & kinds[i].want))
            MS_TRY(nearest_in(v, at, kinds[i].state, from, backwards, &here, err));
        if (i == states && (want & GRAPH_WANT_MOVED))
            MS_TRY(nearest_moved(v, at, from, backwards, &here, err));
        if (here >= 0 && (*order < 0 || (backwards ? here > *order : here < *order)))
            *order = here;
    }
    return MS_OK;
}

enum ms_rc graph_view_filter(struct graph_view *v, struct graph_spot at, unsigned want,
                             int64_t after, uint32_t limit, struct graph_page *page,
                             struct ms_err *err)
{
    MS_TRY(graph__page_start(page, err));
    if (!is_quick(v, want))
        return scan(v, at, want, after, false, limit, page, err);
    for (;;) {
        MS_TRY(nearest(v, at, want, after, false, &after, err));
        page->more = after >= 0 && page->rows.n == limit;
        if (after < 0 || page->more)
            return MS_OK;
        MS_TRY(add_by_order(v, at, after, page, err));
    }
}

enum ms_rc graph_view_next(struct graph_view *v, struct graph_spot at, unsigned want, int64_t from,
                           bool backwards, struct graph_page *page, struct ms_err *err)
{
    int64_t order;
    MS_TRY(graph__page_start(page, err));
    if (!is_quick(v, want)) {
        MS_TRY(scan(v, at, want, from, backwards, 1, page, err));
        page->more = false;
        return MS_OK;
    }
    MS_TRY(nearest(v, at, want, from, backwards, &order, err));
    return order >= 0 ? add_by_order(v, at, order, page, err) : MS_OK;
}
