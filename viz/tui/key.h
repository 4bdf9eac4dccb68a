/* SPDX-License-Identifier: MIT
 *
 * key: keys as numbers, and as words in scripts and hints.
 *
 * A character key is its code point, Ctrl with a letter is 1 to 26, the others are below. In a
 * script keys follow each other, spaces included, and a name in <> stands for a special key:
 *
 *     2jjj<Enter>/soft<Enter><C-l><Click:5,12>
 *
 * Mouse events are keys too: row and column are part of the number.
 */
#ifndef VIZ_TUI_KEY_H
#define VIZ_TUI_KEY_H

#include "probe/base/str.h"

enum tui_key {
    TUI_KEY_NONE = 0,
    TUI_KEY_TAB = 9,
    TUI_KEY_ENTER = 10,
    TUI_KEY_ESC = 27,
    TUI_KEY_BACKSPACE = 127,
    TUI_KEY_UP = 0x200000, /* above Unicode */
    TUI_KEY_DOWN,
    TUI_KEY_LEFT,
    TUI_KEY_RIGHT,
    TUI_KEY_HOME,
    TUI_KEY_END,
    TUI_KEY_PAGE_UP,
    TUI_KEY_PAGE_DOWN,
    TUI_KEY_BACKTAB,
    TUI_KEY_DELETE,
    TUI_KEY_F1,
    TUI_KEY_RESIZE, /* the terminal's size has changed */
    TUI_KEY_TICK,   /* no key was pressed for a while */
    TUI_KEY_CLOSED, /* the terminal is gone */
};
#define TUI_CTRL(letter) ((letter)&0x1f)

enum tui_mouse { TUI_CLICK, TUI_DRAG, TUI_WHEEL_UP, TUI_WHEEL_DOWN };
/* A key of text that was pasted has a bit more: it is for a line that is typed, and commands nothing. */
enum { TUI_KEY_POINT = 1 << 26, TUI_KEY_PASTED = 1 << 27, TUI_POINT_BITS = 12 };
static inline int tui_key_point(enum tui_mouse what, int y, int x)
{
    const int most = (1 << TUI_POINT_BITS) - 1;
    return TUI_KEY_POINT | (int)what << 2 * TUI_POINT_BITS | (y & most) << TUI_POINT_BITS |
           (x & most);
}

/* Removes and returns the next key of a script; TUI_KEY_NONE at the end; an unknown name fails. */
enum ms_rc tui_key_read(struct ms_str *text, int *key, struct ms_err *err) MS_MUST_USE;

#endif
