/* SPDX-License-Identifier: MIT
 *
 * cells_svg: the grid as a picture for reports and questions to others: dark, with the tokens' colours.
 *
 * A run of cells with one look is one text, stretched to its columns, so that the picture does not depend on
 * the font that is found.
 */
#include "viz/tui/cells.h"

#define CELL_W 8.4
#define CELL_H 18
#define BASE   13.5 /* from the top of a row to the feet of its letters */

static const char GROUND[] = "#15181e", INK[] = "#d8dce3";
static const char *const colours[TUI_TOKENS] = {[TUI_TEXT] = INK,
                                                [TUI_DIM] = "#767d89",
                                                [TUI_ACCENT] = "#5fb0ff",
                                                [TUI_ERROR] = "#ff6b68",
                                                [TUI_WARNING] = "#ffb224",
                                                [TUI_PASS] = "#58c983",
                                                [TUI_UNMATCHED] = "#b294ff",
                                                [TUI_INFO] = "#98a0ad",
                                                [TUI_OVERFLOW] = "#ff6b68",
                                                [TUI_COMPUTE] = "#4c7fe0",
                                                [TUI_COMM] = "#35b5b5",
                                                [TUI_COPY] = "#c9a227",
                                                [TUI_IDLE] = "#4a505b",
                                                [TUI_USER] = "#7f9cf5"};

static bool is_alike(const struct tui_cell *a, const struct tui_cell *b)
{
    return a->token == b->token && a->flags == b->flags;
}

static bool is_blank(const struct tui_cell *p, int n)
{
    for (int i = 0; i < n; i++) {
        if (p[i].ch != ' ' && p[i].ch != 0)
            return false;
    }
    return true;
}

static void put_letter(struct ms_buf *out, uint32_t ch)
{
    if (ch == '<')
        ms_buf_puts(out, "&lt;");
    else if (ch == '&')
        ms_buf_puts(out, "&amp;");
    else if (ch != 0)
        tui_put_utf8(out, ch);
}

/* Draws n cells that look alike. */
static void put_run(struct ms_buf *out, const struct tui_cell *p, int n, int y, int x)
{
    const bool is_turned = ((p->flags & TUI_REVERSE) != 0) != (p->token == TUI_OVERFLOW);
    const char *colour = colours[p->token];
    if (is_turned)
        ms_buf_printf(out, "<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'/>\n",
                      x * CELL_W, y * CELL_H, n * CELL_W, CELL_H, colour);
    if (is_blank(p, n))
        return;
    ms_buf_printf(out,
                  "<text x='%.1f' y='%.1f' textLength='%.1f' lengthAdjust='spacingAndGlyphs' "
                  "fill='%s'%s%s>",
                  x * CELL_W, y * CELL_H + BASE, n * CELL_W, is_turned ? GROUND : colour,
                  (p->flags & TUI_BOLD) != 0 ? " font-weight='bold'" : "",
                  (p->flags & TUI_UNDERLINE) != 0 ? " text-decoration='underline'" : "");
    for (int i = 0; i < n; i++)
        put_letter(out, p[i].ch);
    ms_buf_puts(out, "</text>\n");
}

static void put_row(struct ms_buf *out, const struct tui_cells *g, int y)
{
    const struct tui_cell *row = &g->p[(size_t)y * (size_t)g->w];
    for (int x = 0, n = 1; x < g->w; x += n) {
        n = 1;
        while (x + n < g->w && is_alike(&row[x], &row[x + n]))
            n++;
        put_run(out, &row[x], n, y, x);
    }
}

void tui_cells_svg(const struct tui_cells *g, struct ms_buf *out)
{
    const double w = g->w * CELL_W;
    ms_buf_printf(out,
                  "<svg xmlns='http://www.w3.org/2000/svg' width='%.1f' height='%d' "
                  "viewBox='0 0 %.1f %d'>\n"
                  "<style>text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
                  "white-space:pre}</style>\n<rect width='100%%' height='100%%' fill='%s'/>\n",
                  w, g->h * CELL_H, w, g->h * CELL_H, GROUND);
    for (int y = 0; y < g->h; y++)
        put_row(out, g, y);
    ms_buf_puts(out, "</svg>\n");
}
