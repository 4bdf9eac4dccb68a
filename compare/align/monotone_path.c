/* SPDX-License-Identifier: MIT
 *
 * monotone_path: matchings that keep the order of both sequences.
 *
 * The best monotone path through the grid of two sequences:
 *
 *              c-l        c            best[r][c]: of the first r rows and c columns
 *       r-k  best ──┐     │              from above: row r stays unmatched
 *                   └──► best ◄── left   from the left: column c stays unmatched
 *                         ▲              diagonal: they match, for a positive score
 *                       above
 *
 * Gaps cost nothing. Each row may have a window of columns. Windows must not move to
 * the left; a column right of a window has the score of the window's right end.
 *
 * The second algorithm finds the heaviest chain of links between two sequences: links
 * are processed by ascending a; best[b] is the heaviest chain that ends at or before
 * b, stored as a Fenwick tree of maxima. It takes O(n log n).
 */
#include "compare/align/monotone_path.h"
#include "probe/base/assert.h"
#include "probe/base/order.h"

#include <stdlib.h>
#include <string.h>

#define CHAIN_END UINT32_MAX /* no link */

/* STEP_MATCH + k - 1: a match of k rows; STEP_MATCH + 2 + l: of l > 1 columns */
enum { STEP_UP, STEP_LEFT, STEP_MATCH };

struct window {
    uint32_t lo, hi; /* in lengths of the column prefix */
};

static struct window window_of(const struct align__path *p, uint32_t r)
{
    if (p->lo == NULL)
        return (struct window){0, p->cols};
    return (struct window){p->lo[r - 1], p->hi[r - 1] + 1};
}

/* Returns the index of cell (r, c) in the flat arrays; c must lie in the window of r. */
static size_t cell_of(const struct align__path *p, const struct align__path_room *room, uint32_t r,
                      uint32_t c)
{
    return room->start.p[r - 1] + (c - window_of(p, r).lo);
}

/* Best scores of the first r rows. */
struct line {
    const float *best; /* by column prefix, from lo on; NULL: r is 0 */
    uint32_t lo, hi;
};

static struct line line_of(const struct align__path *p, const struct align__path_room *room,
                           uint32_t r)
{
    if (r == 0)
        return (struct line){.best = NULL};
    struct window w = window_of(p, r);
    return (struct line){room->best.p + room->start.p[r - 1], w.lo, w.hi};
}

static float best_at(const struct line *l, uint32_t c)
{
    if (l->best == NULL)
        return 0;
    if (c < l->lo)
        return -1; /* unreachable: a reachable prefix is worth at least 0 */
    return l->best[(c > l->hi ? l->hi : c) - l->lo];
}

struct cell {
    float best;
    uint8_t step;
};

/* Tries to match k rows with l columns that end at `at`; `before` is the best score in front of
 * them. */
static void try_match(const struct align__path *p, struct cell *cell, float before,
                      const uint32_t at[2], unsigned k, unsigned l)
{
    if (before < 0)
        return;
    float score = p->score(p->ctx, at[0] - 1, at[1] - 1, k, l);
    if (score > 0 && before + score > cell->best) {
        cell->best = before + score;
        cell->step = (uint8_t)(l == 1 ? STEP_MATCH + k - 1 : STEP_MATCH + 2 + l);
    }
}

static void try_merges(const struct align__path *p, const struct align__path_room *room,
                       struct cell *cell, const struct line *above, const uint32_t at[2])
{
    unsigned rows = p->reach[0][at[0] - 1], cols = p->reach[1][at[1] - 1];
    rows = rows < at[0] ? rows : at[0];
    cols = cols < at[1] ? cols : at[1];
    for (unsigned k = 2; k <= p->merge && (k <= rows || k <= cols); k++) {
        const struct line before = k <= rows ? line_of(p, room, at[0] - k) : *above;
        if (k <= rows)
            try_match(p, cell, best_at(&before, at[1] - 1), at, k, 1);
        if (k <= cols)
            try_match(p, cell, best_at(above, at[1] - k), at, 1, k);
    }
}

static void fill_row(const struct align__path *p, struct align__path_room *room, uint32_t r)
{
    const struct window w = window_of(p, r);
    const struct line above = line_of(p, room, r - 1);
    float *best = room->best.p + room->start.p[r - 1];
    uint8_t *step = room->step.p + room->start.p[r - 1];
    for (uint32_t c = w.lo; c <= w.hi; c++) {
        const uint32_t at[2] = {r, c};
        struct cell cell = {best_at(&above, c), STEP_UP};
        if (c > w.lo) {
            if (best[c - w.lo - 1] > cell.best)
                cell = (struct cell){best[c - w.lo - 1], STEP_LEFT};
            try_match(p, &cell, best_at(&above, c - 1), at, 1, 1);
            if (p->merge > 1)
                try_merges(p, room, &cell, &above, at);
        }
        best[c - w.lo] = cell.best > 0 ? cell.best : 0;
        step[c - w.lo] = cell.step;
    }
}

/* Tells whether all windows lie in the grid and none starts or ends left of the one above. */
__attribute__((unused)) static bool are_windows_ordered(const struct align__path *p)
{
    for (uint32_t r = 0; p->lo != NULL && r < p->rows; r++) {
        if (p->lo[r] > p->hi[r] || p->hi[r] >= p->cols ||
            (r != 0 && (p->lo[r] < p->lo[r - 1] || p->hi[r] < p->hi[r - 1])))
            return false;
    }
    return true;
}

/* Tells whether matches ascend without sharing a row or column. */
__attribute__((unused)) static bool are_matches_apart(const struct align__path *p,
                                                      const struct align__path_room *room)
{
    for (size_t i = 0; i < room->out.n; i++) {
        const struct align__match *m = &room->out.p[i];
        uint32_t rows = i != 0 ? m[-1].r + 1 : 0, cols = i != 0 ? m[-1].c + 1 : 0;
        if (m->r >= p->rows || m->c >= p->cols || m->r + 1 < rows + m->k || m->c + 1 < cols + m->l)
            return false;
    }
    return true;
}

static enum ms_rc trace_back(const struct align__path *p, struct align__path_room *room,
                             struct ms_err *err)
{
    uint32_t r = p->rows;
    uint32_t c = p->cols;
    room->out.n = 0;
    while (r > 0) {
        struct window w = window_of(p, r);
        c = c > w.hi ? w.hi : c;
        uint8_t step = room->step.p[cell_of(p, room, r, c)];
        if (step == STEP_UP) {
            r--;
        } else if (step == STEP_LEFT) {
            c--;
        } else {
            unsigned code = (unsigned)step - STEP_MATCH;
            uint8_t k = (uint8_t)(code < 4 ? code + 1 : 1);
            uint8_t l = (uint8_t)(code < 4 ? 1 : code - 2);
            struct align__match *m = ms_vec_push(&room->out);
            if (m == NULL)
                return ms_no_memory(err);
            *m = (struct align__match){r - 1, c - 1, k, l};
            r -= k;
            c -= l;
        }
    }
    for (size_t i = 0, j = room->out.n; i + 1 < j; i++) {
        struct align__match t = room->out.p[i];
        room->out.p[i] = room->out.p[--j];
        room->out.p[j] = t;
    }
    ms_assert(are_matches_apart(p, room));
    return MS_OK;
}

uint32_t align__path_reach(uint32_t rows, uint32_t most)
{
    enum { CELLS = 1 << 21, LEAST = 32 };
    uint32_t reach = rows != 0 ? CELLS / rows : most;
    return reach > most ? most : reach < LEAST ? LEAST : reach;
}

enum ms_rc align__path_find(const struct align__path *p, struct align__path_room *room,
                            uint64_t *cells, struct ms_err *err)
{
    room->out.n = 0;
    if (p->rows == 0 || p->cols == 0)
        return MS_OK;
    ms_assert(p->merge == 1 || (p->reach[0] != NULL && p->reach[1] != NULL));
    ms_assert(are_windows_ordered(p));
    if (!ms_vec_reserve(&room->start, p->rows))
        return ms_no_memory(err);
    size_t total = 0;
    for (uint32_t r = 1; r <= p->rows; r++) {
        struct window w = window_of(p, r);
        room->start.p[r - 1] = total;
        total += w.hi - w.lo + 1;
    }
    if (!ms_vec_reserve(&room->best, total) || !ms_vec_reserve(&room->step, total))
        return ms_no_memory(err);
    for (uint32_t r = 1; r <= p->rows; r++)
        fill_row(p, room, r);
    *cells += total;
    return trace_back(p, room, err);
}

void align__path_room_free(struct align__path_room *room)
{
    ms_vec_free(&room->best);
    ms_vec_free(&room->step);
    ms_vec_free(&room->start);
    ms_vec_free(&room->out);
}

struct chain {
    float *total;   /* by link: weight of the heaviest chain that ends with it */
    uint32_t *prev; /* by link: the link before it in that chain */
    uint32_t *tree; /* Fenwick tree over b: link that ends the heaviest chain */
    uint32_t size;
};

/* Sorts by a ascending, then by b descending, so that two links with the same a cannot follow each
 * other. */
static int by_place(const void *p, const void *q)
{
    const struct align__link *x = p;
    const struct align__link *y = q;
    return MS_ORDER(x->a, y->a, MS_ORDER(y->b, x->b, MS_ORDER(y->weight, x->weight, 0)));
}

static bool is_heavier(const struct chain *ch, uint32_t x, uint32_t y)
{
    return x != CHAIN_END && (y == CHAIN_END || ch->total[x] > ch->total[y]);
}

static uint32_t heaviest_before(const struct chain *ch, uint32_t b)
{
    uint32_t best = CHAIN_END;
    for (uint32_t i = b; i > 0; i &= i - 1) {
        if (is_heavier(ch, ch->tree[i - 1], best))
            best = ch->tree[i - 1];
    }
    return best;
}

static void enter_link(struct chain *ch, uint32_t b, uint32_t link)
{
    for (uint32_t i = b + 1; i <= ch->size; i += i & -i) {
        if (is_heavier(ch, link, ch->tree[i - 1]))
            ch->tree[i - 1] = link;
    }
}

/* Moves the chain that ends with `last` to the front of links, ascending; returns its length. */
static size_t gather_chain(struct align__link *links, const struct chain *ch, uint32_t last)
{
    size_t n = 0;
    for (uint32_t i = last; i != CHAIN_END; i = ch->prev[i])
        n++;
    size_t at = n;
    uint32_t *order = ch->tree; /* free by now, and long enough: all b of a chain differ */
    for (uint32_t i = last; i != CHAIN_END; i = ch->prev[i])
        order[--at] = i;
    for (size_t i = 0; i < n; i++)
        links[i] = links[order[i]];
    return n;
}

__attribute__((unused)) static bool is_increasing(const struct align__link *links, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (links[i - 1].a >= links[i].a || links[i - 1].b >= links[i].b)
            return false;
    }
    return true;
}

enum ms_rc align__keep_chain(struct align__link *links, size_t *n, struct ms_err *err)
{
    if (*n == 0)
        return MS_OK;
    qsort(links, *n, sizeof *links, by_place);
    struct chain ch = {.size = 0};
    for (size_t i = 0; i < *n; i++)
        ch.size = links[i].b >= ch.size ? links[i].b + 1 : ch.size;
    ch.total = ms_alloc(*n * sizeof *ch.total);
    ch.prev = ms_alloc(*n * sizeof *ch.prev);
    ch.tree = ms_alloc(((size_t)ch.size + 1) * sizeof *ch.tree);
    enum ms_rc rc = MS_OK;
    if (ch.total == NULL || ch.prev == NULL || ch.tree == NULL) {
        rc = ms_no_memory(err);
    } else {
        memset(ch.tree, 0xff, ((size_t)ch.size + 1) * sizeof *ch.tree);
        for (uint32_t i = 0; i < *n; i++) {
            ch.prev[i] = heaviest_before(&ch, links[i].b);
            ch.total[i] = links[i].weight + (ch.prev[i] != CHAIN_END ? ch.total[ch.prev[i]] : 0);
            enter_link(&ch, links[i].b, i);
        }
        *n = gather_chain(links, &ch, heaviest_before(&ch, ch.size));
        ms_assert(is_increasing(links, *n));
    }
    ms_free(ch.total);
    ms_free(ch.prev);
    ms_free(ch.tree);
    return rc;
}
