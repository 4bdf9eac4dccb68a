/* SPDX-License-Identifier: MIT
 *
 * escape: keys out of the bytes that a terminal sends.
 *
 * A sequence is read whole, so one that means nothing here is no key, and neither are its letters: Alt with
 * a letter, the focus that comes or goes, an answer of the terminal. A sequence may come in pieces. An Esc
 * behind which nothing comes for TUI_ESCAPE_MS is the key Esc.
 *
 *     struct tui_escape e = {0};
 *     for each byte:                 key = tui_escape_byte(&e, byte);
 *     nothing for TUI_ESCAPE_MS:     key = tui_escape_end(&e);
 *
 * Read are the sequences of xterm, the Linux console, rxvt, tmux and kitty, the mouse in both of its
 * encodings, and pasted text, whose letters carry TUI_KEY_PASTED.
 */
#ifndef VIZ_TUI_ESCAPE_H
#define VIZ_TUI_ESCAPE_H

#include "viz/tui/key.h"

enum { TUI_ESCAPE_MS = 100, TUI_SEQUENCE_MAX = 48 };

enum tui_escape_state {
    TUI_ESCAPE_NONE,     /* outside of any sequence */
    TUI_ESCAPE_LETTER,   /* inside a letter of several bytes */
    TUI_ESCAPE_BEGUN,    /* behind Esc */
    TUI_ESCAPE_SEQUENCE, /* behind Esc [ */
    TUI_ESCAPE_SINGLE,   /* one byte ends it: behind Esc O or Esc [ [ */
    TUI_ESCAPE_STRING,   /* an answer of the terminal, up to BEL or Esc \ */
    TUI_ESCAPE_POINT,    /* three bytes of the mouse */
};

struct tui_escape { /* start with zeros */
    enum tui_escape_state state;
    unsigned char bytes[TUI_SEQUENCE_MAX];
    unsigned
        n; /* bytes of the sequence, or of the letter; those beyond the room are counted alone */
    unsigned before;          /* the byte that began a single */
    bool is_pasting, is_held; /* the mouse's button is down */
};

/* Returns the key that ends with this byte; TUI_KEY_NONE: none. */
int tui_escape_byte(struct tui_escape *e, unsigned char byte);
/* Tells whether a sequence has begun. */
static inline bool tui_escape_waits(const struct tui_escape *e)
{
    return e->state != TUI_ESCAPE_NONE;
}
/* Ends what has begun and returns its key: Esc where nothing came behind it. */
int tui_escape_end(struct tui_escape *e);

#endif
