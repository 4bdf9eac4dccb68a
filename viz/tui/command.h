/* SPDX-License-Identifier: MIT
 *
 * command: the commands after ":", and the page of keys.
 */
#ifndef VIZ_TUI_COMMAND_H
#define VIZ_TUI_COMMAND_H

#include "viz/tui/app.h"

/* Runs the command line typed after ":". */
enum ms_rc tui_command(struct tui_app *a, struct ms_str line, struct ms_err *err);
/* Opens the page that lists the keys of the screen and all commands. */
enum ms_rc tui_help(struct tui_app *a, struct ms_err *err);

#endif
