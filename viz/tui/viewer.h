/* SPDX-License-Identifier: MIT
 *
 * viewer: the terminal viewer around its screens: first row, prompt, hints, keys and scripts.
 *
 *     row 0        open input, step, rank, names of the screens
 *     rows 1..     the screen
 *     last but one a message, or the state of the screen
 *     last         the prompt, or hints at keys
 */
#ifndef VIZ_TUI_VIEWER_H
#define VIZ_TUI_VIEWER_H

#include "viz/tui/app.h"

enum ms_rc tui_app_open(struct tui_app *a, struct viz_session *s, const char *live, bool ascii,
                        struct ms_err *err) MS_MUST_USE;
void tui_app_close(struct tui_app *a);
/* Draws everything into a->cells at the given size. */
enum ms_rc tui_app_draw(struct tui_app *a, int w, int h, struct ms_err *err) MS_MUST_USE;
/* Handles a key; an error becomes the message. */
void tui_app_key(struct tui_app *a, int key);
/* Continues the screen's background work; false when nothing is left to do. */
bool tui_app_work(struct tui_app *a);
/* Executes keys from a script, one line at a time, and draws after each; lines that begin with #
 * are ignored. */
enum ms_rc tui_app_script(struct tui_app *a, struct ms_str script, int w, int h,
                          struct ms_err *err) MS_MUST_USE;

#endif
