/* SPDX-License-Identifier: MIT
 *
 * term: the terminal, by way of ncurses.
 *
 * Only cells that changed since they were last shown are handed on, so a key costs
 * the bytes of what it changed.  However the program ends, by a signal or a crash
 * too, the terminal is given back as it was; only kill -9 leaves that to "reset".
 */
#ifndef VIZ_TUI_TERM_H
#define VIZ_TUI_TERM_H

#include "viz/tui/cells.h"
#include "viz/tui/key.h"

struct tui_term_conf {
    bool mouse, monochrome, ascii;
};

/* Take the terminal on standard input and output. */
enum ms_rc tui_term_open(const struct tui_term_conf *conf, struct ms_err *err) MS_MUST_USE;
void tui_term_close(void);
void tui_term_size(int *w, int *h);
/* Can it show letters beyond ASCII? */
bool tui_term_ascii(void);
enum ms_rc tui_term_show(const struct tui_cells *g, struct ms_err *err) MS_MUST_USE;
/* Send everything again the next time. */
void tui_term_forget(void);
/* The next key; TUI_KEY_TICK when none comes in timeout_ms (-1: wait for ever). */
int tui_term_key(int timeout_ms);
/* The signal that asked the program to end; 0: none has. */
int tui_term_stopped(void);
/* Hand text to the clipboard of the terminal (OSC 52). */
void tui_term_copy(struct ms_str text);

#endif
