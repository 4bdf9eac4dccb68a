/* SPDX-License-Identifier: MIT
 *
 * prompt: the line that is typed behind ":", "/" or "\", with a cursor in it and the lines typed before.
 *
 *     Left Right Home End, Ctrl-A Ctrl-E     move the cursor
 *     Backspace Delete, Ctrl-W Ctrl-K Ctrl-U delete a letter; a word, the rest, all
 *     Up Down                                lines of this kind typed before
 */
#ifndef VIZ_TUI_PROMPT_H
#define VIZ_TUI_PROMPT_H

#include "viz/tui/cells.h"

#include "probe/base/str.h"

enum { TUI_LINE_MAX = 512, TUI_HISTORY_MAX = 32 };

struct tui_prompt {
    char kind; /* ':', '/' or '\\'; 0: nothing is typed */
    char line[TUI_LINE_MAX];
    size_t n, at; /* bytes; the cursor stands at a letter's beginning */
    struct {
        char kind, line[TUI_LINE_MAX];
    } before[TUI_HISTORY_MAX]; /* a ring */
    size_t typed;              /* lines that were kept so far */
    size_t back;               /* how far the line shown lies back in them; 0: the new one */
};

/* What a key did. */
enum tui_typed { TUI_SAME, TUI_CHANGED, TUI_DONE, TUI_CANCELLED };

void tui_prompt_begin(struct tui_prompt *p, char kind);
enum tui_typed tui_prompt_key(struct tui_prompt *p, int key);
/* Returns the line, also after TUI_DONE, until the next begins. */
struct ms_str tui_prompt_text(const struct tui_prompt *p);
void tui_prompt_draw(const struct tui_prompt *p, struct tui_cells *g);

#endif
