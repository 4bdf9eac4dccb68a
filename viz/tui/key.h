/* SPDX-License-Identifier: MIT
 *
 * key: keys as numbers, and as words in scripts and hints.
 *
 * A key that writes a letter is its code point, Ctrl with a letter 1 to 26, the
 * others are below.  In a script keys stand one after the other, spaces included,
 * and what is in <> is named:
 *
 *     2jjj<Enter>/soft<Enter><C-l><Click:5,12>
 *
 * What the mouse does is a key too: which row and column are part of its number.
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
    TUI_KEY_RESIZE, /* the terminal has another size now */
    TUI_KEY_TICK,   /* nothing was pressed for a while */
    TUI_KEY_CLOSED, /* the terminal is gone */
};
#define TUI_CTRL(letter) ((letter)&0x1f)

enum tui_mouse { TUI_CLICK, TUI_DRAG, TUI_WHEEL_UP, TUI_WHEEL_DOWN };
enum { TUI_KEY_POINT = 1 << 26, TUI_POINT_BITS = 12 };
static inline int tui_key_point(enum tui_mouse what, int y, int x)
{
    const int most = (1 << TUI_POINT_BITS) - 1;
    return TUI_KEY_POINT | (int)what << 2 * TUI_POINT_BITS | (y & most) << TUI_POINT_BITS |
           (x & most);
}

/* The next key of a script: takes it off *text.  TUI_KEY_NONE at the end; an unknown name fails. */
enum ms_rc tui_key_read(struct ms_str *text, int *key, struct ms_err *err) MS_MUST_USE;

#endif
