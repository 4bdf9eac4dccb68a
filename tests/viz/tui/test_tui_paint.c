/* SPDX-License-Identifier: MIT
 *
 * What is painted: a terminal of our own understands the bytes, and must show after
 * many small changes what it shows after all is painted anew.
 */
#include "viz/tui/paint.h"

#include "tests/support/check.h"

enum { W = 60, H = 14, FRAMES = 1500 };

/* ---- a terminal ------------------------------------------------------------------------ */

struct look {
    uint32_t ch;
    int fg, bg;
    unsigned attrs;
};

struct screen {
    struct look cell[H][W];
    struct look pen;
    int y, x, top, end;
};

static struct look empty(const struct screen *s)
{
    return (struct look){' ', -1, s->pen.bg, 0};
}

static void reset(struct screen *s)
{
    memset(s, 0, sizeof *s);
    s->pen = (struct look){' ', -1, -1, 0};
    s->end = H;
    for (int i = 0; i < H * W; i++)
        s->cell[i / W][i % W] = empty(s);
}

static void scroll(struct screen *s, bool up)
{
    struct look(*row)[W] = s->cell;
    int n = s->end - s->top - 1;
    memmove(up ? row[s->top] : row[s->top + 1], up ? row[s->top + 1] : row[s->top],
            (size_t)n * sizeof *row);
    for (int x = 0; x < W; x++)
        row[up ? s->end - 1 : s->top][x] = empty(s);
}

static void put(struct screen *s, uint32_t ch)
{
    if (s->x >= W) /* not an assertion: each of these is written to a file */
        ck_abort_msg("a letter behind the last column of row %d", s->y);
    s->cell[s->y][s->x] = s->pen;
    s->cell[s->y][s->x++].ch = ch;
}

static void slide(struct screen *s, int n, bool in)
{
    struct look *row = s->cell[s->y];
    size_t kept = (size_t)(W - s->x - n) * sizeof *row;
    memmove(in ? row + s->x + n : row + s->x, in ? row + s->x : row + s->x + n, kept);
    /* tmux 3.3 empties the cells that have moved and no others, which are too few where more come in. */
    for (int i = 0; i < n && (!in || s->x + i < W - n); i++)
        row[in ? s->x + i : W - 1 - i] = empty(s);
}

static void one_rendition(struct screen *s, const int *v, int *i)
{
    int p = v[*i];
    static const unsigned flag[] = {[1] = TUI_BOLD, [4] = TUI_UNDERLINE, [7] = TUI_REVERSE};
    if (p == 0)
        s->pen = (struct look){' ', -1, -1, 0};
    else if (p == 1 || p == 4 || p == 7)
        s->pen.attrs |= flag[p];
    else if (p == 22 || p == 24 || p == 27)
        s->pen.attrs &= ~(p == 22 ? (unsigned)TUI_BOLD : flag[p - 20]);
    else if (p == 38 || p == 48) {
        *(p == 38 ? &s->pen.fg : &s->pen.bg) = v[*i + 2];
        *i += 2;
    } else if (p == 39 || p == 49)
        *(p == 39 ? &s->pen.fg : &s->pen.bg) = -1;
    else if (p >= 90)
        *(p < 100 ? &s->pen.fg : &s->pen.bg) = p % 10 + 8;
    else
        *(p < 40 ? &s->pen.fg : &s->pen.bg) = p % 10;
}

static void control(struct screen *s, char what, int *v, int n)
{
    switch (what) {
    case 'm':
        for (int i = 0; i < n; i++)
            one_rendition(s, v, &i);
        return;
    case 'H':
        s->y = v[0] > 0 ? v[0] - 1 : 0;
        s->x = n > 1 ? v[1] - 1 : 0;
        return;
    case 'C':
        s->x += v[0] > 0 ? v[0] : 1;
        return;
    case 'D':
        s->x -= v[0] > 0 ? v[0] : 1;
        return;
    case 'J':
        for (int i = 0; i < H * W; i++)
            s->cell[i / W][i % W] = empty(s);
        return;
    case 'K':
        for (int x = s->x; x < W; x++)
            s->cell[s->y][x] = empty(s);
        return;
    case 'P':
    case '@':
        slide(s, v[0], what == '@');
        return;
    case 'b':
        for (int i = 0; i < v[0]; i++)
            put(s, s->cell[s->y][s->x - 1].ch);
        return;
    case 'r':
        s->top = n > 1 ? v[0] - 1 : 0;
        s->end = n > 1 ? v[1] : H;
        s->y = s->x = 0;
        return;
    default:
        ck_abort_msg("an unknown sequence ends in '%c'", what);
    }
}

static void sequence(struct screen *s, struct ms_str *in)
{
    int v[8] = {0}, n = 1;
    uint32_t i = 0;
    if (in->p[0] == 'M') {
        *in = ms_str_sub(*in, 1, in->n);
        scroll(s, false);
        return;
    }
    for (i = 1; in->p[i] < '@'; i++) {
        if (in->p[i] == ';')
            n++;
        else
            v[n - 1] = v[n - 1] * 10 + in->p[i] - '0';
    }
    control(s, in->p[i], v, n);
    *in = ms_str_sub(*in, i + 1, in->n);
}

static void feed(struct screen *s, struct ms_str in)
{
    while (in.n != 0) {
        char c = in.p[0];
        if (strchr("\033\r\n\t\b", c) == NULL) {
            put(s, tui_take(&in));
            continue;
        }
        in = ms_str_sub(in, 1, in.n);
        if (c == '\033')
            sequence(s, &in);
        else if (c == '\r')
            s->x = 0;
        else if (c == '\t')
            s->x = s->x / 8 * 8 + 8 < W ? s->x / 8 * 8 + 8 : W - 1;
        else if (c == '\b')
            s->x--;
        else if (s->y + 1 == s->end)
            scroll(s, true);
        else
            s->y++;
    }
}

/* What the eye sees: a block is a space of that colour, and one in reverse as well; letters of a space
 * have no colour. */
static struct look seen(struct look l)
{
    if (l.ch == 0x2588 && l.attrs == 0)
        return (struct look){0x2588, l.fg, -1, 0};
    if (l.ch == ' ' && l.attrs == TUI_REVERSE && l.bg < 0)
        return (struct look){0x2588, l.fg, -1, 0};
    if (l.ch == 0x2590 && l.attrs == TUI_REVERSE && l.bg < 0)
        return (struct look){0x258c, l.fg, -1, 0};
    if (l.ch == ' ' && l.attrs == 0 && l.bg >= 0)
        return (struct look){0x2588, l.bg, -1, 0};
    if (l.ch == ' ' && (l.attrs & (TUI_REVERSE | TUI_UNDERLINE)) == 0)
        return (struct look){' ', -1, l.bg, 0};
    return l;
}

static void expect_same(const struct screen *a, const struct screen *b, int frame)
{
    for (int i = 0; i < H * W; i++) {
        struct look x = seen(a->cell[i / W][i % W]), y = seen(b->cell[i / W][i % W]);
        if (x.ch != y.ch || x.fg != y.fg || x.bg != y.bg || x.attrs != y.attrs)
            ck_abort_msg("frame %d, row %d, column %d: %x %d %d %x, not %x %d %d %x", frame, i / W,
                         i % W, x.ch, x.fg, x.bg, x.attrs, y.ch, y.fg, y.bg, y.attrs);
    }
}

/* ---- pictures --------------------------------------------------------------------------- */

static uint32_t chance;
static int draw_lot(int n)
{
    chance = chance * 1664525u + 1013904223u;
    return (int)(chance >> 8) % n;
}

static void change_some(struct tui_cells *g)
{
    static const uint32_t letters[] = {' ', 'a', 'b', 0x2588, 0x258c, 0x2582, ' '};
    int y = draw_lot(H), x = draw_lot(W), n = draw_lot(W);
    uint32_t ch = letters[draw_lot(7)];
    tui_fill(g, y, x, n, (enum tui_token)draw_lot(TUI_TOKENS), ch);
    if (draw_lot(2) == 0)
        tui_mark(g, y, x, n / 2, TUI_REVERSE, TUI_TOKENS);
    if (draw_lot(5) == 0)
        tui_mark(g, y, x, n / 3, draw_lot(2) ? TUI_BOLD : TUI_UNDERLINE, TUI_TOKENS);
}

static void move_rows(struct tui_cells *g)
{
    size_t w = W * sizeof *g->p;
    if (draw_lot(2) == 0)
        memmove(g->p + 2 * W, g->p + 3 * W, w * (H - 4));
    else
        memmove(g->p + 4 * W, g->p + 2 * W, w * (H - 6));
}

static void move_cells(struct tui_cells *g)
{
    int by = 1 + draw_lot(W / 2);
    for (int y = 1; y < H; y++) {
        struct tui_cell *row = g->p + y * W + 5;
        size_t n = (size_t)(W - 5 - by) * sizeof *row;
        memmove(by % 2 ? row + by : row, by % 2 ? row : row + by, n);
    }
}

static void check_many(struct tui_paint_can can, uint32_t seed)
{
    struct tui_cells g = {0};
    struct tui_paint p = {.can = can};
    struct screen small, whole;
    struct ms_buf out = {.max = 1 << 20};
    chance = seed;
    reset(&small);
    ck_assert(tui_cells_size(&g, W, H));
    for (int i = 0; i < FRAMES; i++) {
        struct tui_paint fresh = {.can = can};
        for (int k = draw_lot(6); k >= 0; k--)
            change_some(&g);
        if (draw_lot(4) == 0)
            move_rows(&g);
        if (draw_lot(4) == 0)
            move_cells(&g);
        ms_buf_clear(&out);
        ck_assert(tui_paint_frame(&p, &g, &out));
        feed(&small, ms_buf_slice(&out));
        ms_buf_clear(&out);
        reset(&whole);
        ck_assert(tui_paint_frame(&fresh, &g, &out));
        feed(&whole, ms_buf_slice(&out));
        expect_same(&small, &whole, i);
        tui_paint_free(&fresh);
    }
    tui_paint_free(&p);
    tui_cells_free(&g);
    ms_buf_free(&out);
}

START_TEST(small_changes_show_what_painting_anew_does_in_256_colours)
{
    check_many((struct tui_paint_can){256, true, true, true, true, true}, 1);
}
END_TEST

START_TEST(and_in_eight_colours_without_orders_that_few_know)
{
    check_many((struct tui_paint_can){8, false, false, false, false, true}, 2);
}
END_TEST

START_TEST(and_without_colours)
{
    check_many((struct tui_paint_can){0, false, false, true, false, true}, 3);
}
END_TEST

/* ---- how much is sent ---------------------------------------------------------------------- */

static struct tui_cells g;
static struct tui_paint p;
static struct ms_buf out;

static void begin(void)
{
    g = (struct tui_cells){0};
    p = (struct tui_paint){.can = {256, true, true, true, true, true}};
    out = (struct ms_buf){.max = 1 << 20};
    ck_assert(tui_cells_size(&g, W, H));
}

static size_t sent(void)
{
    ms_buf_clear(&out);
    ck_assert(tui_paint_frame(&p, &g, &out));
    return out.n;
}

static void end(void)
{
    tui_paint_free(&p);
    tui_cells_free(&g);
    ms_buf_free(&out);
}

START_TEST(nothing_is_sent_when_nothing_has_changed)
{
    begin();
    tui_puts(&g, 3, 3, 20, TUI_ERROR, "something");
    ck_assert_uint_gt(sent(), 0);
    ck_assert_uint_eq(sent(), 0);
    tui_at(&g, 0, 0)->token = TUI_ERROR; /* nobody sees the colour of an empty cell */
    ck_assert_uint_eq(sent(), 0);
    end();
}
END_TEST

START_TEST(a_list_that_scrolls_is_moved_by_the_terminal)
{
    begin();
    for (int y = 0; y < H; y++)
        tui_printf(&g, y, 0, W, TUI_TEXT, "row %d of a list with a name of %d letters", y, y * y);
    sent();
    for (int y = 0; y < H; y++) {
        tui_fill(&g, y, 0, W, TUI_TEXT, ' ');
        tui_printf(&g, y, 0, W, TUI_TEXT, "row %d of a list with a name of %d letters", y + 1,
                   (y + 1) * (y + 1));
    }
    ck_assert_uint_lt(sent(), 80);
    end();
}
END_TEST

START_TEST(a_row_of_one_colour_costs_less_than_its_cells)
{
    begin();
    sent();
    tui_fill(&g, 5, 10, 40, TUI_COMM, ' ');
    tui_mark(&g, 5, 10, 40, TUI_REVERSE, TUI_TOKENS);
    ck_assert_uint_lt(sent(), 24);
    end();
}
END_TEST

TEST_MAIN("tui_paint", small_changes_show_what_painting_anew_does_in_256_colours,
          and_in_eight_colours_without_orders_that_few_know, and_without_colours,
          nothing_is_sent_when_nothing_has_changed, a_list_that_scrolls_is_moved_by_the_terminal,
          a_row_of_one_colour_costs_less_than_its_cells)
