/* SPDX-License-Identifier: MIT
 *
 * page: lines of text that cover the screen, with scrolling and incremental filtering.
 */
#ifndef VIZ_TUI_PAGE_H
#define VIZ_TUI_PAGE_H

#include "viz/tui/cells.h"

#include "probe/base/arena.h"
#include "probe/base/vec.h"

struct tui_line {
    struct ms_str text;
    enum tui_token token;
};

struct tui_page {
    bool open;
    char title[128];
    MS_VEC(struct tui_line) lines;
    struct ms_arena *arena;
    size_t top, left;
    char filter[64];
    size_t filter_n;
    bool filtering;
};

/* Opens an empty page. */
enum ms_rc tui_page_open(struct tui_page *p, const char *title, struct ms_err *err) MS_MUST_USE;
void tui_page_close(struct tui_page *p);
enum ms_rc tui_page_add(struct tui_page *p, enum tui_token t, struct ms_str s,
                        struct ms_err *err) MS_MUST_USE;
enum ms_rc tui_page_addf(struct tui_page *p, enum tui_token t, struct ms_err *err, const char *fmt,
                         ...) MS_PRINTF(4, 5) MS_MUST_USE;
void tui_page_draw(struct tui_page *p, struct tui_cells *g);
/* Handles a key of the page, including the one that closes it. */
void tui_page_key(struct tui_page *p, int key, int rows);

#endif
