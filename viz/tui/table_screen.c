/* SPDX-License-Identifier: MIT
 *
 * table_screen: a table: one that a comparison wrote, statistics over steps, who owns the memory, or what takes
 * longer in one of two runs. Its first name stays at the left while the other columns move.
 */
#include "viz/tui/app.h"

#include "probe/base/csv.h"
#include "probe/base/mem.h"
#include "viz/model/sheet_made.h"

#include <stdio.h>

enum { CELL_LEAST = 4, CELL_MOST = 40, FIRST_ROW = 2, SIDE = 3, GAP = 2, TEXT_MAX = 16 << 20 };

struct table {
    struct viz_sheet *sheet, *made; /* made: ours to free; NULL: the session's */
    struct viz_sheet_asked asked;
    char words[TUI_LINE_MAX]; /* the text that rows have to hold */
    size_t at, top, total;
    int name, column, left; /* that stays; under the cursor; the first of the others */
};

/* The rows on the screen, as they were read. */
struct seen {
    struct ms_arena *arena;
    struct ms_str *cell;
    char *state;
    size_t n, columns;
};

static int columns_of(const struct table *t)
{
    return (int)viz_sheet_columns(t->sheet);
}

/* The first column that is called a name, such as "NPU Name"; else the first. */
static int find_name(const struct viz_sheet *s)
{
    for (size_t i = 0; i < viz_sheet_columns(s); i++) {
        if (ms_str_has_folded(viz_sheet_title(s, i), MS_STR("name")))
            return (int)i;
    }
    return 0;
}

static void *open_table(struct tui_app *a, struct ms_err *err)
{
    struct table *t = ms_calloc(1, sizeof *t);
    if (t == NULL) {
        (void)ms_no_memory(err);
        return NULL;
    }
    t->sheet = a->session->sheet;
    if (t->sheet == NULL && viz_sheet_of_trend(&t->made, a->reader.trend, err) != MS_OK) {
        ms_free(t);
        return NULL;
    }
    t->sheet = t->made != NULL ? t->made : t->sheet;
    t->asked = (struct viz_sheet_asked){.text = MS_STR(""), .column = -1};
    t->name = find_name(t->sheet);
    return t;
}

static void close_table(void *self)
{
    struct table *t = self;
    viz_sheet_free(t->made);
    ms_free(t);
}

/* ---- reading ------------------------------------------------------------------------------- */

static char letter_of(const char *state)
{
    return *state == 'e' ? 'E' : *state == 'w' ? 'W' : *state == 'p' ? '.' : ' ';
}

static enum ms_rc see_row(void *ctx, size_t i, const char *state, const struct ms_str *fields,
                          size_t n, struct ms_err *err)
{
    struct seen *s = ctx;
    (void)i;
    for (size_t k = 0; k < s->columns; k++) {
        struct ms_str *to = &s->cell[s->n * s->columns + k];
        *to = k < n ? ms_arena_str(s->arena, fields[k]) : MS_STR("");
        if (to->p == NULL)
            return ms_arena_fail(s->arena, err);
    }
    s->state[s->n++] = letter_of(state);
    return MS_OK;
}

/* Reads the rows from the top on; the reader of a table answers them from its last order. */
static enum ms_rc see_rows(struct table *t, size_t rows, struct seen *s, struct ms_err *err)
{
    *s = (struct seen){.arena = ms_arena_new(TEXT_MAX), .columns = viz_sheet_columns(t->sheet)};
    if (s->arena == NULL)
        return ms_no_memory(err);
    s->cell = ms_arena_alloc(s->arena, (rows * s->columns + 1) * sizeof *s->cell);
    s->state = ms_arena_alloc(s->arena, rows + 1);
    if (s->cell == NULL || s->state == NULL)
        return ms_arena_fail(s->arena, err);
    return viz_sheet_read(t->sheet, &t->asked, t->top, rows, &t->total, see_row, s, err);
}

/* ---- drawing ------------------------------------------------------------------------------- */

static struct ms_str cell_of(const struct seen *s, size_t row, int column)
{
    return s->cell[row * s->columns + (size_t)column];
}

/* The other side's name is mostly the same: a sign says so in little space. */
static bool repeats_name(const struct table *t, const struct seen *s, size_t row, int column)
{
    const struct ms_str cell = cell_of(s, row, column);
    return column != t->name && cell.n > 1 && ms_str_eq(cell, cell_of(s, row, t->name));
}

/* The width of a text as far as a column shows it: a cell may hold a megabyte. */
static int shown_width(struct ms_str s)
{
    return tui_text_width(ms_str_sub(s, 0, tui_fit(s, CELL_MOST)));
}

static int width_of(const struct table *t, const struct seen *s, int column)
{
    int w = shown_width(viz_sheet_title(t->sheet, (size_t)column));
    for (size_t i = 0; i < s->n; i++) {
        const int cell = repeats_name(t, s, i, column) ? 1 : shown_width(cell_of(s, i, column));
        w = cell > w ? cell : w;
    }
    return w < CELL_LEAST ? CELL_LEAST : w > CELL_MOST ? CELL_MOST : w;
}

static bool is_number(struct ms_str s)
{
    double ignored;
    if (s.n != 0 && s.p[s.n - 1] == '%')
        s.n--;
    return s.n != 0 && ms_csv_number(s, &ignored);
}

/* Numbers end where their column ends. */
static void put_cell(struct tui_cells *g, int y, int x, int w, struct ms_str s)
{
    const bool is_right = s.n <= (uint32_t)w && is_number(s); /* a digit is a byte and a column */
    tui_put(g, y, is_right ? x + w - (int)s.n : x, w, TUI_TEXT, s);
}

static void draw_title(struct tui_cells *g, const struct table *t, int x, int w, int column)
{
    const bool is_sorted = t->asked.column == column;
    const int at = tui_put(g, 1, x, w, is_sorted ? TUI_ACCENT : TUI_DIM,
                           viz_sheet_title(t->sheet, (size_t)column));
    if (column == t->column)
        tui_mark(g, 1, x, at - x, TUI_REVERSE, TUI_TOKENS);
}

static void draw_column(struct tui_cells *g, const struct table *t, const struct seen *s, int x,
                        int w, int column)
{
    draw_title(g, t, x, w, column);
    for (size_t i = 0; i < s->n; i++) {
        const int y = FIRST_ROW + (int)i;
        if (column == t->name)
            tui_put_name(g, y, x, w, TUI_TEXT, cell_of(s, i, column));
        else if (repeats_name(t, s, i, column))
            tui_puts(g, y, x, w, TUI_DIM, "=");
        else
            put_cell(g, y, x, w, cell_of(s, i, column));
    }
}

/* Draws the column that stays, then the others from `left` on as far as they fit; returns the last that was drawn. */
static int draw_columns(struct tui_cells *g, const struct table *t, const struct seen *s)
{
    int last = t->name, w = width_of(t, s, t->name), x = SIDE + 1;
    w = t->name == 0 && columns_of(t) > 1 && w > g->w * 2 / 5 ? g->w * 2 / 5 : w;
    draw_column(g, t, s, x, w, t->name);
    x += w + GAP;
    for (int i = t->left; i < columns_of(t) && x < g->w - CELL_LEAST; i++) {
        if (i == t->name)
            continue;
        w = width_of(t, s, i);
        draw_column(g, t, s, x, w < g->w - x ? w : g->w - x, i);
        x += w + GAP;
        last = x - GAP <= g->w ? i : last;
    }
    return last;
}

static void draw_states(struct tui_cells *g, const struct seen *s)
{
    for (size_t i = 0; i < s->n; i++)
        tui_char(g, FIRST_ROW + (int)i, 1,
                 s->state[i] == 'E'   ? TUI_ERROR
                 : s->state[i] == 'W' ? TUI_WARNING
                                      : TUI_PASS,
                 (uint32_t)(unsigned char)s->state[i]);
}

/* The row below the table: which row, and what was asked for. */
static void draw_asked(struct tui_cells *g, const struct table *t)
{
    int x = tui_printf(g, g->h - 2, 1, g->w - 2, TUI_DIM, "%zu of %zu",
                       t->total > 0 ? t->at + 1 : 0, t->total);
    if (t->asked.column >= 0) {
        const struct ms_str title = viz_sheet_title(t->sheet, (size_t)t->asked.column);
        x = tui_printf(g, g->h - 2, x + 2, g->w - x - 3, TUI_INFO, "by %.*s, %s first",
                       MS_STR_ARG(title), t->asked.descending ? "largest" : "smallest");
    }
    if (t->asked.failing)
        x = tui_puts(g, g->h - 2, x + 2, g->w - x - 3, TUI_INFO, "errors and warnings");
    if (t->words[0] != '\0')
        tui_printf(g, g->h - 2, x + 2, g->w - x - 3, TUI_INFO, "/%s", t->words);
}

/* Moves the columns until the one under the cursor is drawn. */
static void draw_with_cursor(struct tui_cells *g, struct table *t, const struct seen *s)
{
    t->left = t->column < t->left ? t->column : t->left;
    while (draw_columns(g, t, s) < t->column && t->left < t->column && t->column != t->name) {
        t->left++;
        for (int y = 1; y < g->h - 2; y++)
            tui_fill(g, y, 0, g->w, TUI_TEXT, ' ');
    }
}

static enum ms_rc draw_table(struct tui_app *a, void *self, struct ms_err *err)
{
    struct table *t = self;
    struct tui_cells *g = &a->cells;
    struct seen s;
    const size_t rows = tui_body_rows(a) > 2 ? (size_t)tui_body_rows(a) - 1 : 1;
    t->top = tui_scroll(t->top, t->at, rows);
    enum ms_rc rc = see_rows(t, rows, &s, err);
    if (rc == MS_OK) {
        draw_with_cursor(g, t, &s);
        draw_states(g, &s);
        if (s.n == 0)
            tui_puts(g, FIRST_ROW + 1, SIDE + 1, g->w, TUI_DIM, "No row is like that.");
        else
            tui_mark(g, FIRST_ROW + (int)(t->at - t->top), 0, g->w, TUI_REVERSE, TUI_TEXT);
        draw_asked(g, t);
    }
    ms_arena_free(s.arena);
    return rc;
}

/* ---- one row ------------------------------------------------------------------------------- */

enum use { USE_SHOW, USE_COPY, USE_SEEK };

struct whole {
    struct table *t;
    struct tui_app *a;
    enum use use;
};

static enum ms_rc seek_name(struct tui_app *a, struct ms_str name, struct ms_err *err)
{
    struct viz_place p = viz_place_of(VIZ_TIMELINE);
    p.query = name;
    return tui_go_place(a, &p, err);
}

static enum ms_rc put_whole(void *ctx, size_t i, const char *state, const struct ms_str *fields,
                            size_t n, struct ms_err *err)
{
    const struct whole *w = ctx;
    (void)i;
    (void)state;
    const struct ms_str name = (size_t)w->t->name < n ? fields[w->t->name] : MS_STR("");
    if (w->use == USE_SEEK)
        return seek_name(w->a, name, err);
    if (w->use == USE_COPY)
        tui_copy(w->a, name);
    for (size_t k = 0; w->use == USE_SHOW && k < n && k < viz_sheet_columns(w->t->sheet); k++)
        MS_TRY(tui_page_addf(&w->a->page, TUI_TEXT, err, "%-28.*s %.*s",
                             MS_STR_ARG(viz_sheet_title(w->t->sheet, k)), MS_STR_ARG(fields[k])));
    return MS_OK;
}

/* Shows all fields of the row as a page, copies its name, or goes to it in the timeline. */
static enum ms_rc use_row(struct tui_app *a, struct table *t, enum use use, struct ms_err *err)
{
    struct whole w = {t, a, use};
    if (t->at >= t->total)
        return MS_OK;
    if (use == USE_SHOW)
        MS_TRY(tui_page_open(&a->page, "row", err));
    else if (use == USE_COPY)
        tui_say(a, "copied the name");
    return viz_sheet_read(t->sheet, &t->asked, t->at, 1, &t->total, put_whole, &w, err);
}

/* ---- keys ---------------------------------------------------------------------------------- */

/* What is asked for has changed: its first row comes first. */
static void ask_anew(struct table *t)
{
    t->asked.text = ms_str_of(t->words);
    t->at = t->top = 0;
}

/* The largest first, then the smallest, then the order of the table. */
static void sort_next(struct table *t)
{
    if (t->asked.column != t->column)
        t->asked.column = t->column, t->asked.descending = true;
    else if (t->asked.descending)
        t->asked.descending = false;
    else
        t->asked.column = -1;
    ask_anew(t);
}

static void move_column(struct table *t, int by)
{
    const int to = t->column + by;
    t->column = to < 0 ? 0 : to >= columns_of(t) ? columns_of(t) - 1 : to;
}

static enum ms_rc table_key(struct tui_app *a, void *self, int key, bool *taken, struct ms_err *err)
{
    struct table *t = self;
    *taken = true;
    if (tui_move(key, &t->at, t->total, (size_t)tui_body_rows(a)))
        return MS_OK;
    if (key == TUI_KEY_LEFT || key == 'h' || key == TUI_KEY_BACKTAB)
        move_column(t, -1);
    else if (key == TUI_KEY_RIGHT || key == 'l' || key == TUI_KEY_TAB)
        move_column(t, 1);
    else if (key == 's')
        sort_next(t);
    else if (key == 'I' && t->asked.column >= 0) {
        t->asked.descending = !t->asked.descending;
        ask_anew(t);
    } else if (key == 'F') {
        t->asked.failing = !t->asked.failing;
        ask_anew(t);
    } else if (key == '/')
        tui_ask(a, '/');
    else if (key == TUI_KEY_ENTER || key == 'i')
        return use_row(a, t, USE_SHOW, err);
    else if (key == 'y' || key == 't')
        return use_row(a, t, key == 'y' ? USE_COPY : USE_SEEK, err);
    else
        *taken = false;
    return MS_OK;
}

static enum ms_rc table_line(struct tui_app *a, void *self, char kind, struct ms_str text,
                             bool done, struct ms_err *err)
{
    struct table *t = self;
    (void)a;
    (void)kind;
    (void)done;
    (void)err;
    snprintf(t->words, sizeof t->words, "%.*s", MS_STR_ARG(text));
    ask_anew(t);
    return MS_OK;
}

/* A finding about a curve names its metric, then the curve. */
static enum ms_rc go_to_row(struct tui_app *a, void *self, const struct viz_place *p,
                            struct ms_err *err)
{
    struct table *t = self;
    struct ms_str name = p->query, metric;
    (void)a;
    (void)err;
    if (!ms_str_split(&name, ' ', &metric) || name.n == 0)
        name = p->query;
    snprintf(t->words, sizeof t->words, "%.*s", MS_STR_ARG(name));
    ask_anew(t);
    return MS_OK;
}

static bool click(struct tui_app *a, void *self, int y, int x, bool drag)
{
    struct table *t = self;
    (void)a;
    (void)x;
    (void)drag;
    return tui_click_row(y, FIRST_ROW, t->top, t->total, &t->at);
}

/* ---- export -------------------------------------------------------------------------------- */

static enum ms_rc export_row(void *ctx, size_t i, const char *state, const struct ms_str *fields,
                             size_t n, struct ms_err *err)
{
    struct ms_buf *out = ctx;
    (void)i;
    (void)state;
    for (size_t k = 0; k < n; k++) {
        if (k != 0)
            ms_buf_putc(out, ',');
        ms_csv_put(out, fields[k], MS_CSV_FOREIGN);
    }
    ms_buf_putc(out, '\n');
    return ms_buf_check(out, err);
}

static enum ms_rc export_table(struct tui_app *a, void *self, struct ms_buf *out,
                               struct ms_err *err)
{
    struct table *t = self;
    size_t total;
    (void)a;
    for (int i = 0; i < columns_of(t); i++) {
        if (i != 0)
            ms_buf_putc(out, ',');
        ms_csv_put(out, viz_sheet_title(t->sheet, (size_t)i), MS_CSV_FOREIGN);
    }
    ms_buf_putc(out, '\n');
    return viz_sheet_read(t->sheet, &t->asked, 0, SIZE_MAX, &total, export_row, out, err);
}

static const struct tui_hint hints[] = {
    {"table", NULL, NULL},
    {"↑↓", "move", "move"},
    {"←→ Tab", "the column before, the next", "column"},
    {"s I", "sort by the column: largest, smallest, as it came; turn round", "sort"},
    {"F", "errors and warnings alone", "failing"},
    {"/", "rows that hold a text", "filter"},
    {"Enter i", "the whole row", "row"},
    {"t", "its name in the timeline", NULL},
    {"y", "copy the name", NULL},
    {NULL, NULL, NULL},
};

const struct tui_screen tui_table_screen = {
    .name = "Table",
    .hints = hints,
    .open = open_table,
    .close = close_table,
    .draw = draw_table,
    .key = table_key,
    .show_place = go_to_row,
    .click = click,
    .export = export_table,
    .line = table_line,
};
