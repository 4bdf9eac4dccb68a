/* SPDX-License-Identifier: MIT
 *
 * term: the terminal, through ncurses.
 *
 * Only cells that changed since the last frame are sent, so a key costs only the bytes of its
 * changes. The terminal is restored however the program ends, also by a signal or a crash; only
 * after kill -9 the user has to run "reset".
 */
#ifndef VIZ_TUI_TERM_H
#define VIZ_TUI_TERM_H

#include "viz/tui/cells.h"
#include "viz/tui/key.h"

struct tui_term_conf {
    bool mouse, monochrome, ascii;
};

/* Takes over the terminal on standard input and output. */
enum ms_rc tui_term_open(const struct tui_term_conf *conf, struct ms_err *err) MS_MUST_USE;
void tui_term_close(void);
void tui_term_size(int *w, int *h);
/* Tells whether the terminal is limited to ASCII. */
bool tui_term_ascii(void);
enum ms_rc tui_term_show(const struct tui_cells *g, struct ms_err *err) MS_MUST_USE;
/* Gives the terminal to another program, and takes it back; between them nothing else is called here. */
void tui_term_lend(void);
void tui_term_regain(void);
/* Makes the next frame send every cell. */
void tui_term_forget(void);
/* Returns the next key; TUI_KEY_TICK after timeout_ms without one (-1: wait forever). */
int tui_term_key(int timeout_ms);
/* Returns the signal that asked the program to end; 0: none. */
int tui_term_stopped(void);
/* Copies text to the terminal's clipboard (OSC 52). */
void tui_term_copy(struct ms_str text);

#endif
