/* SPDX-License-Identifier: MIT
 *
 * graph_search: finds nodes by a part of their name and by their state.
 *
 * With x_names and x_state neither depends on the size of rows; a database without them is scanned.
 *
 * Names of one side are searched by their shapes once the shapes are known:
 *
 *     layers.12.attn.softmax.3  ┐
 *     layers.13.attn.softmax.3  ┴► layers.#.attn.softmax.#      one number for each shape
 *
 * Names of a model differ mostly in numbers: half a million have some hundred shapes.
 * A word without digits is part of a name exactly when it is part of the name's shape,
 * so a search reads the shapes and then one small number for each node.
 */
#include "compare/graph/build/graph_schema.h"
#include "compare/graph/view/graph_rows.h"
#include "compare/graph/view/suspect_rows.h"

#include "probe/base/assert.h"
#include "probe/base/map.h"
#include "probe/base/mapsafe.h"
#include "probe/base/mem.h"

#include <ctype.h>

/* ---- names by their shapes --------------------------------------------------------- */

enum { SHAPES_MOST = UINT16_MAX, PAGES_EACH = 4, TEXT_MOST = 1 << 26 };

struct graph_shapes {
    struct graph_spot at;
    struct ms_map shapes;
    struct ms_arena *arena;
    MS_VEC(uint16_t) of; /* shape number by node_order */
    bool done, useless;  /* useless: too many shapes, or a page is missing */
    struct ms_buf text;
};

void graph__shapes_free(struct graph_shapes *s)
{
    if (s == NULL)
        return;
    ms_map_free(&s->shapes);
    ms_arena_free(s->arena);
    ms_vec_free(&s->of);
    ms_buf_free(&s->text);
    ms_free(s);
}

static enum ms_rc begin_shapes(struct graph_view *v, struct graph_spot at, struct ms_err *err)
{
    struct graph_shapes *s = ms_calloc(1, sizeof *s);
    if (s == NULL)
        return ms_no_memory(err);
    s->at = at;
    s->text.max = GRAPH_NAME_MAX;
    s->arena = ms_arena_new(TEXT_MOST);
    graph__shapes_free(v->shapes[at.golden]);
    v->shapes[at.golden] = s;
    return s->arena != NULL ? MS_OK : ms_no_memory(err);
}

static struct ms_str shape_of(struct graph_shapes *s, const char *p, const char *end)
{
    ms_buf_clear(&s->text);
    for (; p < end; p++) {
        bool digit = isdigit((unsigned char)*p) != 0;
        if (!digit || s->text.n == 0 || s->text.p[s->text.n - 1] != '#')
            ms_buf_putc(&s->text, digit ? '#' : *p);
    }
    return ms_buf_slice(&s->text);
}

static enum ms_rc add_names(struct graph_shapes *s, struct ms_str names, struct ms_err *err)
{
    const char *p = names.p, *end = p + names.n;
    while (p < end) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        const char *stop = line != NULL ? line : end;
        uint32_t shape = ms_map_put_copy(&s->shapes, shape_of(s, p, stop), s->arena, NULL);
        uint16_t *slot = ms_vec_push(&s->of);
        if (shape == MS_MAP_NONE || slot == NULL)
            return ms_no_memory(err);
        s->useless = s->shapes.keys.n > SHAPES_MOST;
        *slot = (uint16_t)shape;
        p = stop + 1;
    }
    return ms_buf_check(&s->text, err);
}

/* Reads the next pages of names. Each page begins where the previous one ends; if a page is
 * missing, the orders would be wrong, so shapes are not used. */
static enum ms_rc add_pages(struct graph_view *v, struct graph_shapes *s, struct ms_err *err)
{
    struct ms_stmt *st;
    bool more;
    enum ms_rc rc = MS_OK;
    MS_TRY(graph__statement(v, Q_NAMES_FROM, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, s->at, MS_STR("")));
    ms_stmt_i64(st, 2, (int64_t)s->of.n);
    for (int i = 0; (more = ms_stmt_next(st, &rc, err)); i++) {
        s->useless = s->useless || ms_stmt_get_i64(st, 0) != (int64_t)s->of.n;
        if (i == PAGES_EACH || s->useless)
            break;
        rc = add_names(s, ms_stmt_get_blob(st, 1), err);
    }
    ms_stmt_reset(st);
    s->done = (rc == MS_OK && !more) || s->useless;
    return rc;
}

enum ms_rc graph_view_ahead(struct graph_view *v, struct graph_spot at, bool *more,
                            struct ms_err *err)
{
    *more = false;
    if (!v->quick)
        return MS_OK;
    struct graph_shapes *s = v->shapes[at.golden];
    if (s == NULL || !graph_is_same_spot(s->at, at))
        MS_TRY(begin_shapes(v, at, err));
    s = v->shapes[at.golden];
    if (s->done)
        return MS_OK;
    enum ms_rc rc = add_pages(v, s, err);
    s->done = s->done || rc != MS_OK;
    s->useless = s->useless || rc != MS_OK;
    *more = !s->done;
    return rc;
}

static bool shapes_know(const struct graph_view *v, struct graph_spot at, struct ms_str word)
{
    const struct graph_shapes *s = v->shapes[at.golden];
    if (s == NULL || !s->done || s->useless || !graph_is_same_spot(s->at, at))
        return false;
    for (uint32_t i = 0; i < word.n; i++) {
        if (isdigit((unsigned char)word.p[i]) || word.p[i] == '#')
            return false;
    }
    return true;
}

static int64_t shapes_next(struct graph_shapes *s, const bool *meets, int64_t after)
{
    for (size_t i = after < 0 ? 0 : (size_t)after + 1; i < s->of.n; i++) {
        if (meets[s->of.p[i]])
            return (int64_t)i;
    }
    return -1;
}

static bool *shapes_meet(struct graph_shapes *s, struct ms_str word)
{
    bool *meets = ms_calloc(s->shapes.keys.n + 1, sizeof *meets);
    for (uint32_t i = 0; meets != NULL && i < s->shapes.keys.n; i++)
        meets[i] = ms_str_find_str(ms_map_key(&s->shapes, i), word) >= 0;
    return meets;
}

enum { SEARCH_PAGES = 8 };

/* ---- search -------------------------------------------------------------------- */

/* Searches one page of names, one per line. The first line is the node with this order. */
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
            MS_TRY(graph__add_by_order(v, at, order, page, err));
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
    enum ms_rc rc = MS_OK;
    MS_TRY(graph__statement(v, Q_NAMES, &st, err));
    ms_stmt_str(st, 1, graph__view_id(v, at, MS_STR("")));
    ms_stmt_i64(st, 2, after < 0 ? 0 : after);
    for (int pages = 0; ms_stmt_next(st, &rc, err) && !page->more; pages++) {
        if (pages == SEARCH_PAGES) {
            page->more = true;
            page->reached = ms_stmt_get_i64(st, 0) - 1;
            break;
        }
        rc = search_names(v, at, ms_stmt_get_blob(st, 1), ms_stmt_get_i64(st, 0), word, after,
                          limit, page, err);
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

/* Searches names in the mapped file, which takes half the time of reading their many pages. The
 * mapping lasts only for a few pages, because mapped pages count as memory of this process. */
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
    bool *meets = shapes_meet(v->shapes[at.golden], word);
    enum ms_rc rc = meets != NULL ? MS_OK : ms_no_memory(err);
    while (rc == MS_OK && !page->more) {
        after = shapes_next(v->shapes[at.golden], meets, after);
        if (after < 0)
            break;
        page->more = page->rows.n == limit;
        if (!page->more)
            rc = graph__add_by_order(v, at, after, page, err);
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
    /* Names never change, so x_names is valid whatever was matched by hand. */
    if (rc == MS_OK && text.n != 0 && shapes_know(v, at, word))
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

/* Finds the nearest node that has moved; *order is -1 without one. */
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

/* Decides whether a row is wanted. *moved caches the nearest moved node and is looked up again once
 * passed; INT64_MIN: not looked up yet. */
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
    bool wanted = false;
    int64_t moved = INT64_MIN;
    enum ms_rc rc = MS_OK;
    MS_TRY(graph__statement_at(v, backwards ? Q_SCAN_DOWN : Q_SCAN_UP, at, &st, err));
    ms_stmt_i64(st, 4, from);
    while (ms_stmt_next(st, &rc, err) && !page->more) {
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

/* Returns true when x_state and x_align suffice for all wanted states. */
static bool is_quick(const struct graph_view *v, unsigned want)
{
    const unsigned indexed =
        GRAPH_WANT_WARNING | GRAPH_WANT_ERROR | GRAPH_WANT_UNMATCHED | GRAPH_WANT_MOVED;
    return v->whole || (v->quick && (want & ~indexed) == 0) || want == GRAPH_WANT_MOVED;
}

/* Finds the nearest node that the table lists under a state; *order is -1 without one. */
static enum ms_rc nearest_listed(struct graph_view *v, struct graph_spot at, int state,
                                 int64_t from, bool backwards, int64_t *order, struct ms_err *err)
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

/* Finds the nearest node in a state: a suspect is an error, whatever state the table lists it under. */
static enum ms_rc nearest_in(struct graph_view *v, struct graph_spot at, int state, int64_t from,
                             bool backwards, int64_t *order, struct ms_err *err)
{
    int64_t suspect = -1;
    bool skip;
    *order = from;
    do {
        MS_TRY(nearest_listed(v, at, state, *order, backwards, order, err));
        skip = false;
        if (*order >= 0 && (state == GRAPH_PASS || state == GRAPH_WARNING))
            MS_TRY(graph__suspects_have(v, at, *order, &skip, err));
    } while (skip);
    if (state == GRAPH_ERROR)
        MS_TRY(graph__suspects_nearest(v, at, from, backwards, &suspect, err));
    if (suspect >= 0 && (*order < 0 || (backwards ? suspect > *order : suspect < *order)))
        *order = suspect;
    return MS_OK;
}

static enum ms_rc find_nearest(struct graph_view *v, struct graph_spot at, unsigned want,
                               int64_t from, bool backwards, int64_t *order, struct ms_err *err)
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
        MS_TRY(find_nearest(v, at, want, after, false, &after, err));
        page->more = after >= 0 && page->rows.n == limit;
        if (after < 0 || page->more)
            return MS_OK;
        MS_TRY(graph__add_by_order(v, at, after, page, err));
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
    MS_TRY(find_nearest(v, at, want, from, backwards, &order, err));
    return order >= 0 ? graph__add_by_order(v, at, order, page, err) : MS_OK;
}
