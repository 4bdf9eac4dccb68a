/* SPDX-License-Identifier: MIT
 *
 * tree_draw: rows of the graph, one side or both side by side.
 *
 *     ▾ E layers.7                 2E 1W  3.1%│ ▾ layers.7
 *
 * Fold mark, letter of the state, name, counts of states below, the worst figure.
 */
#include "viz/tui/tree_draw.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    DETAIL_ROWS = 5,
    DETAIL_FROM = 16,
    SPLIT_FROM = 70,
    FIGURE_W = 10,
    MATRIX_CELL = 4,
    NAMES_WHOLE = 60,
    NAME_LEAST = 20
};

/* ---- parts of a row ---------------------------------------------------------------- */

static void count_text(const struct graph_rollup *r, char *out, size_t n)
{
    const struct {
        int64_t count;
        char letter;
    } parts[] = {{r->error, 'E'}, {r->overflow, '!'}, {r->warning, 'W'}, {r->unmatched, '-'}};
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < n; i++) {
        if (parts[i].count != 0)
            used += (size_t)snprintf(out + used, n - used, "%s%" PRId64 "%c", used != 0 ? " " : "",
                                     parts[i].count, parts[i].letter);
    }
}

static enum tui_token worst_token(const struct graph_rollup *r)
{
    return r->error != 0       ? TUI_ERROR
           : r->overflow != 0  ? TUI_OVERFLOW
           : r->warning != 0   ? TUI_WARNING
           : r->unmatched != 0 ? TUI_UNMATCHED
                               : TUI_DIM;
}

static const char *figure_of(struct tui_tree *t, const struct graph_row *r, struct ms_err *err)
{
    struct tui_figure *f = &t->figure[((uintptr_t)r->name.p >> 3) % TUI_FIGURES];
    struct graph_page page = {.more = false};
    struct graph_detail d;
    if (f->name == r->name.p || r->state == GRAPH_NONE)
        return f->name == r->name.p ? f->text : "";
    f->text[0] = '\0';
    if (graph_view_node(t->v, tui_tree_spot(t, false), r->name, &page, &d, err) == MS_OK)
        tui_node_figure(d.input, d.output, f->text);
    f->name = r->name.p;
    graph_page_free(&page);
    return f->text;
}

static int put_fold(struct tui_cells *g, int y, int x, const struct viz_row *r)
{
    const struct graph_row *n = &r->pair.target;
    const struct graph_row *o = &r->pair.golden;
    bool has = n->has_children || o->has_children || r->kind == VIZ_ROW_RUN;
    x += 2 * (r->depth < 20 ? r->depth : 20);
    tui_char(g, y, x, TUI_DIM, !has ? ' ' : r->open ? 0x25be : 0x25b8);
    return x + 2;
}

static int put_run(struct tui_cells *g, int y, int x, const struct viz_row *r)
{
    return r->kind == VIZ_ROW_RUN ? tui_printf(g, y, x, 8, TUI_ACCENT, " ×%" PRIu32, r->run) : x;
}

/* Writes the whole name if it fits; otherwise a short one, as parent rows and details show the
 * rest. */
static int put_node(struct tui_cells *g, int y, int x, int w, enum tui_token t,
                    const struct graph_row *n)
{
    bool fits = w >= NAMES_WHOLE && tui_text_width(n->name) <= w;
    return tui_put_name(g, y, x, w, t, fits ? n->name : viz_node_short(n->name, n->parent));
}

/* Writes the role of a suspect behind its name; returns the right end of the room left for the
 * name. */
static int put_role(const struct tui_tree *t, struct tui_cells *g, int y, int x, int right,
                    const struct graph_row *n)
{
    const struct viz_finding *f = tui_tree_suspect(t, false, n->name);
    if (!n->suspect || f == NULL || (int)f->kind.n + NAME_LEAST > right - x)
        return right;
    tui_put(g, y, right - (int)f->kind.n, (int)f->kind.n, TUI_ERROR, f->kind);
    return right - (int)f->kind.n - 1;
}

static void put_target(struct tui_tree *t, struct tui_cells *g, int y, int w,
                       const struct viz_row *r, struct ms_err *err)
{
    const struct graph_row *n = &r->pair.target;
    char counts[64];
    int x = put_fold(g, y, 0, r), right = w;
    if (n->name.n == 0) {
        tui_puts(g, y, x, w - x, TUI_UNMATCHED, "-");
        return;
    }
    enum tui_token token = tui_state_token(n);
    const char *figure = w >= 40 ? figure_of(t, n, err) : "";
    count_text(&r->pair.below, counts, sizeof counts);
    tui_put_right(g, y, right, token, figure);
    right -= w >= 40 ? FIGURE_W : 0;
    tui_put_right(g, y, right, worst_token(&r->pair.below), counts);
    right -= (int)strlen(counts) + (counts[0] != '\0');
    right = put_role(t, g, y, x, right, n);
    tui_char(g, y, x, token, (uint32_t)(unsigned char)tui_state_letter(n));
    x = put_node(g, y, x + 2, right - x - 2 - (r->kind == VIZ_ROW_RUN ? 6 : 0), TUI_TEXT, n);
    put_run(g, y, x, r);
}

static void put_golden(struct tui_cells *g, int y, int left, const struct viz_row *r)
{
    const struct graph_row *n = &r->pair.golden;
    int x = put_fold(g, y, left, r);
    if (n->name.n == 0) {
        tui_puts(g, y, x, g->w - x, TUI_UNMATCHED, "-");
        return;
    }
    x = put_node(g, y, x, g->w - x - (r->pair.where == VIZ_MOVED ? 8 : 0),
                 r->pair.where == VIZ_ONLY_GOLDEN ? TUI_UNMATCHED : TUI_TEXT, n);
    x = put_run(g, y, x, r);
    if (r->pair.where == VIZ_MOVED)
        tui_puts(g, y, x + 1, g->w - x - 1, TUI_ACCENT, "moved");
}

/* ---- the rows ---------------------------------------------------------------------- */

static bool is_split(const struct tui_tree *t, const struct tui_cells *g)
{
    return t->about->dual && t->layout == TUI_SPLIT && g->w >= SPLIT_FROM;
}

static void put_row(struct tui_tree *t, struct tui_cells *g, int y, const struct viz_row *r,
                    struct ms_err *err)
{
    int w = is_split(t, g) ? g->w * 11 / 20 : g->w;
    if (r->kind == VIZ_ROW_MORE) {
        tui_puts(g, y, 2 * r->depth + 2, w, TUI_ACCENT, "… more (Enter)");
        return;
    }
    if (w == g->w && (t->golden || r->pair.target.name.n == 0)) {
        put_golden(g, y, 0, r);
        return;
    }
    put_target(t, g, y, w, r, err);
    if (w < g->w) {
        tui_char(g, y, w, TUI_DIM, 0x2502);
        put_golden(g, y, w + 1, r);
    }
}

/* Highlights the side that has the keyboard focus. */
static void mark_cursor(const struct tui_tree *t, struct tui_cells *g, int y)
{
    int w = is_split(t, g) ? g->w * 11 / 20 : g->w;
    bool right = w < g->w && t->golden;
    tui_mark(g, y, right ? w + 1 : 0, right ? g->w - w - 1 : w, TUI_REVERSE, TUI_TEXT);
}

static int detail_rows(const struct tui_tree *t, const struct tui_cells *g)
{
    return t->detail && g->h >= DETAIL_FROM ? DETAIL_ROWS : 0;
}

static void draw_heads(const struct tui_tree *t, struct tui_cells *g)
{
    int w = is_split(t, g) ? g->w * 11 / 20 : g->w;
    const char *left = t->about->dual && w == g->w && t->golden ? "golden" : "target";
    tui_puts(g, 1, 1, w, t->golden && w < g->w ? TUI_DIM : TUI_ACCENT,
             t->about->dual ? left : "graph");
    if (w < g->w) {
        tui_char(g, 1, w, TUI_DIM, 0x2502);
        tui_puts(g, 1, w + 2, g->w - w - 2, t->golden ? TUI_ACCENT : TUI_DIM, "golden");
    }
}

static void draw_rows(struct tui_tree *t, struct tui_cells *g, int rows, struct ms_err *err)
{
    t->at = t->rows.rows.n > 0 && t->at >= t->rows.rows.n ? t->rows.rows.n - 1 : t->at;
    t->top = tui_scroll(t->top, t->at, (size_t)rows);
    draw_heads(t, g);
    for (int i = 0; i < rows; i++) {
        size_t row = t->top + (size_t)i;
        if (row < t->rows.rows.n)
            put_row(t, g, 2 + i, &t->rows.rows.p[row], err);
        else if (is_split(t, g))
            tui_char(g, 2 + i, g->w * 11 / 20, TUI_DIM, 0x2502);
        if (row == t->at)
            mark_cursor(t, g, 2 + i);
    }
}

/* ---- list of hits ------------------------------------------------------------------- */

static void draw_list(struct tui_tree *t, struct tui_cells *g, int rows)
{
    t->list_at =
        t->found.rows.n > 0 && t->list_at >= t->found.rows.n ? t->found.rows.n - 1 : t->list_at;
    t->list_top = tui_scroll(t->list_top, t->list_at, (size_t)rows);
    tui_printf(g, 1, 1, g->w - 2, TUI_ACCENT, "%zu%s nodes meet the terms", t->found.rows.n,
               t->more ? "+" : "");
    for (int i = 0; i < rows; i++) {
        size_t at = t->list_top + (size_t)i;
        if (at >= t->found.rows.n)
            return;
        const struct graph_row *r = &t->found.rows.p[at];
        tui_char(g, 2 + i, 1, tui_state_token(r), (uint32_t)(unsigned char)tui_state_letter(r));
        tui_put_name(g, 2 + i, 3, g->w - 4, TUI_TEXT, r->name);
        if (at == t->list_at)
            tui_mark(g, 2 + i, 0, g->w, TUI_REVERSE, TUI_TEXT);
    }
}

/* ---- ranks and steps ---------------------------------------------------------------- */

static const struct graph_row *matrix_at(const struct tui_tree *t, int64_t step, int64_t rank)
{
    for (size_t i = 0; i < t->matrix.rows.n; i++) {
        const struct graph_row *r = &t->matrix.rows.p[i];
        if (r->step == step && r->rank == rank)
            return r;
    }
    return NULL;
}

static void draw_matrix_row(const struct tui_tree *t, struct tui_cells *g, int y, int64_t step)
{
    tui_printf(g, y, 1, 10, TUI_DIM, "step %" PRId64, step);
    for (size_t k = 0; k < t->about->ranks.n; k++) {
        int64_t rank = t->about->ranks.p[k];
        int x = 12 + MATRIX_CELL * (int)k;
        const struct graph_row *r = matrix_at(t, step, rank);
        char letter = r != NULL ? tui_state_letter(r) : ' ';
        tui_char(g, y, x + 2, r != NULL ? tui_state_token(r) : TUI_DIM,
                 r == NULL       ? 0xb7
                 : letter == ' ' ? 'o'
                                 : (uint32_t)(unsigned char)letter);
        if (step == t->step && rank == t->rank)
            tui_mark(g, y, x + 1, 3, TUI_REVERSE, TUI_TEXT);
    }
}

static enum ms_rc draw_matrix(struct tui_tree *t, struct tui_cells *g, int rows, struct ms_err *err)
{
    const struct graph_row *n = tui_tree_node(t);
    if (n == NULL) {
        tui_puts(g, 1, 1, g->w - 2, TUI_DIM, "no node is selected");
        return MS_OK;
    }
    if (!ms_str_eq(t->matrix_of, n->name) || t->matrix.rows.n == 0) {
        MS_TRY(graph_view_matrix(t->v, t->golden, n->name, &t->matrix, err));
        t->matrix_of = n->name;
    }
    tui_put_name(g, 1, 1, g->w - 2, TUI_ACCENT, n->name);
    for (size_t k = 0; k < t->about->ranks.n; k++) {
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, t->about->ranks.p[k]);
        tui_put_right(g, 2, 15 + MATRIX_CELL * (int)k, TUI_DIM, number);
    }
    tui_puts(g, 2, 1, 10, TUI_DIM, "rank");
    for (size_t i = 0; i < t->about->steps.n && (int)i + 1 < rows; i++)
        draw_matrix_row(t, g, 3 + (int)i, t->about->steps.p[i]);
    return MS_OK;
}

/* ---- details ------------------------------------------------------------------------ */

static enum ms_rc draw_fate(struct tui_tree *t, struct tui_cells *g, int y,
                            const struct graph_row *n, struct ms_err *err)
{
    struct graph_page page = {.more = false};
    struct graph_fate f;
    enum ms_rc rc = graph_view_fate(t->v, tui_tree_spot(t, t->golden), n->name, &page, &f, err);
    if (rc == MS_OK && f.partner.n != 0)
        tui_printf(g, y, 1, g->w - 2, TUI_DIM, "%.*s with %.*s (%.*s, %.0f %% sure)",
                   MS_STR_ARG(f.kind), MS_STR_ARG(f.partner), MS_STR_ARG(f.how),
                   f.confidence * 100);
    else if (rc == MS_OK)
        tui_printf(g, y, 1, g->w - 2, TUI_UNMATCHED, "%s",
                   t->golden ? "only in golden" : "only in target");
    graph_page_free(&page);
    return rc;
}

/* Writes the related nodes: those in place of a fused operator, or q, k and v of a merged one. */
static enum ms_rc draw_kin(struct tui_tree *t, struct tui_cells *g, int y,
                           const struct graph_row *n, struct ms_err *err)
{
    struct graph_kins k = {.page = {.more = false}};
    struct ms_buf text = {.max = 1 << 20};
    enum ms_rc rc = graph_view_kin(t->v, tui_tree_spot(t, t->golden), n->name, &k, err);
    for (size_t i = 0; rc == MS_OK && i < k.list.n; i++)
        ms_buf_printf(&text, "%s%.*s", i != 0 ? ", " : "", MS_STR_ARG(k.list.p[i].partner));
    if (rc == MS_OK && k.list.n != 0)
        tui_printf(g, y, 1, g->w - 2, TUI_DIM, "and %zu more of %s: %s", k.list.n,
                   t->golden ? "target" : "golden", ms_buf_z(&text));
    ms_buf_free(&text);
    graph_kins_free(&k);
    return rc;
}

/* Writes the node's state in one line, for a suspect also the reason. */
static void draw_state(struct tui_tree *t, struct tui_cells *g, int y, const struct graph_row *n,
                       struct ms_err *err)
{
    static const char *const states[GRAPH_STATES] = {"not compared", "pass", "warning", "error"};
    const struct viz_finding *suspect = tui_tree_suspect(t, t->golden, n->name);
    const char *figure = t->golden ? "" : figure_of(t, n, err);
    char counts[64];
    count_text(&tui_tree_row(t)->pair.below, counts, sizeof counts);
    int x = tui_puts(g, y, 1, g->w - 2, tui_state_token(n), states[n->state]);
    x = tui_printf(g, y, x, g->w - x - 1, TUI_DIM, "%s%s%s%s%s%.*s%s",
                   figure[0] != '\0' ? ", worst figure " : "", figure,
                   counts[0] != '\0' ? ", below " : "", counts,
                   n->overflow.n != 0 ? ", overflow " : "", MS_STR_ARG(n->overflow),
                   !n->modified   ? ""
                   : n->unmatched ? ", parted by hand"
                                  : ", matched by hand");
    if (suspect != NULL)
        tui_printf(g, y, x, g->w - x - 1, TUI_ERROR, "; %.*s", MS_STR_ARG(suspect->text));
}

static enum ms_rc draw_detail(struct tui_tree *t, struct tui_cells *g, int y, struct ms_err *err)
{
    const struct graph_row *n = tui_tree_node(t);
    tui_fill(g, y, 0, g->w, TUI_DIM, 0x2500);
    if (n == NULL)
        return MS_OK;
    tui_put_name(g, y + 1, 1, g->w - 2, TUI_TEXT, n->name);
    tui_mark(g, y + 1, 1, g->w - 2, TUI_BOLD, TUI_TOKENS);
    draw_state(t, g, y + 2, n, err);
    if (t->about->dual)
        MS_TRY(draw_fate(t, g, y + 3, n, err));
    if (t->about->dual && t->tagged.n == 0)
        MS_TRY(draw_kin(t, g, y + 4, n, err));
    if (t->tagged.n != 0)
        tui_printf(g, y + 4, 1, g->w - 2, TUI_ACCENT, "tagged: %s", ms_buf_z(&t->tagged));
    return MS_OK;
}

int tui_tree_rows(const struct tui_tree *t, const struct tui_cells *g)
{
    return g->h - 4 - (t->listing ? 0 : detail_rows(t, g));
}

bool tui_tree_is_golden(const struct tui_tree *t, const struct tui_cells *g, int x)
{
    return is_split(t, g) ? x > g->w * 11 / 20 : t->golden;
}

void tui_tree_where(const struct tui_app *a, const void *self, char text[TUI_WHERE_MAX])
{
    const struct tui_tree *t = self;
    (void)a;
    if (t->about->ranks.n > 1)
        snprintf(text, TUI_WHERE_MAX, "step %" PRId64 "  rank %" PRId64 "/%zu", t->step, t->rank,
                 t->about->ranks.n);
    else
        snprintf(text, TUI_WHERE_MAX, "step %" PRId64 "  rank %" PRId64, t->step, t->rank);
}

enum ms_rc tui_tree_draw(struct tui_app *a, void *self, struct ms_err *err)
{
    struct tui_tree *t = self;
    struct tui_cells *g = &a->cells;
    int detail = detail_rows(t, g), rows = g->h - 4 - detail;
    if (t->listing)
        draw_list(t, g, rows + detail);
    else if (t->layout == TUI_MATRIX)
        MS_TRY(draw_matrix(t, g, rows, err));
    else
        draw_rows(t, g, rows, err);
    if (detail > 0 && !t->listing)
        MS_TRY(draw_detail(t, g, g->h - 2 - detail, err));
    char state[96], spot[TUI_WHERE_MAX];
    tui_tree_where(a, t, spot);
    snprintf(state, sizeof state, "%s%srow %zu of %zu", g->w < TUI_ROOMY_W ? spot : "",
             g->w < TUI_ROOMY_W ? "  " : "", t->listing ? t->list_at + 1 : t->at + 1,
             t->listing ? t->found.rows.n : t->rows.rows.n);
    tui_put_right(g, g->h - 2, g->w - 1, TUI_DIM, state);
    return MS_OK;
}
