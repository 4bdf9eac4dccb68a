/* SPDX-License-Identifier: MIT
 *
 * editor: the line of a program that a stack names, in the user's editor.
 */
#ifndef VIZ_TUI_EDITOR_H
#define VIZ_TUI_EDITOR_H

#include "viz/tui/app.h"

/* Reads "File /path/model.py, line 12, in forward", also with the path in quotes; false: no such frame. */
bool tui_editor_read_frame(struct ms_str text, struct tui_spot *spot);
/* Chooses a frame of the page, of those that its filter shows: the first in a file that is here and is no
 * part of an installed package, else the first in a file that is here. MS_E_NOTFOUND: none is here. */
enum ms_rc tui_editor_choose(const struct tui_page *p, struct tui_spot *spot, struct ms_err *err);
/* Starts $VISUAL, $EDITOR or vi as "EDITOR +LINE PATH" and waits for its end. The terminal must be free. */
enum ms_rc tui_editor_run(const struct tui_spot *spot, struct ms_err *err);

#endif
