/* SPDX-License-Identifier: MIT
 *
 * align_path: the best monotone matching of two rows of things.
 *
 *              c-l        c            best[r][c]: of the first r rows and c columns
 *       r-k  best ──┐     │              from above: row r stays alone
 *                   └──► best ◄── left   from the left: column c stays alone
 *                         ▲              diagonal: they match, for a positive score
 *                       above
 *
 * Gaps cost nothing.  Each row may have a window of columns; windows must not move
 * to the left, and what is right of a window is worth as much as its right end.
 */
#include "compare/align_int.h"

enum { STEP_UP, STEP_LEFT, STEP_MATCH }; /* a match of k rows: +k-1, of l > 1 columns: +2+l */

struct window {
    uint32_t lo, hi; /* prefix lengths */
};

static struct window window_of(const struct align__path *p, uint32_t r)
{
    if (p->lo == NULL)
        return (struct window){0, p->cols};
    return (struct window){p->lo[r - 1], p->hi[r - 1] + 1};
}

/* Cell (r, c) in the flat arrays; c lies in the window. */
static size_t cell_of(const struct align__path *p, const struct align__path_room *room, uint32_t r,
                      uint32_t c)
{
    return room->start.p[r - 1] + (c - window_of(p, r).lo);
}

/* What is known of the first r rows. */
struct line {
    const float *best; /* of prefix lengths from lo on; NULL: r is 0 */
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
        return -1; /* no matching is worth less than 0 */
    return l->best[(c > l->hi ? l->hi : c) - l->lo];
}

struct cell {
    float best;
    uint8_t step;
};

/* Match k rows with l columns, of which `at` are the last; before: what came before them. */
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

static enum ms_rc trace(const struct align__path *p, struct align__path_room *room,
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
    return MS_OK;
}

enum ms_rc align__path_find(const struct align__path *p, struct align__path_room *room,
                            uint64_t *cells, struct ms_err *err)
{
    room->out.n = 0;
    if (p->rows == 0 || p->cols == 0)
        return MS_OK;
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
    return trace(p, room, err);
}

void align__path_room_free(struct align__path_room *room)
{
    ms_vec_free(&room->best);
    ms_vec_free(&room->step);
    ms_vec_free(&room->start);
    ms_vec_free(&room->out);
}
