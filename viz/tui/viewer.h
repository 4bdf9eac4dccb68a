/* SPDX-License-Identifier: MIT
 *
 * viewer: the terminal viewer around its screens: first row, prompt, hints, keys and scripts.
 *
 *     row 0        what is open, step, rank, names of the screens
 *     rows 1..     the screen
 *     last but one a message, or what the screen has to say of its state
 *     last         the prompt, or hints at keys
 */
#ifndef VIZ_TUI_VIEWER_H
#define VIZ_TUI_VIEWER_H

#include "viz/tui/app.h"

enum ms_rc tui_app_open(struct tui_app *a, struct viz_session *s, const char *live, bool ascii,
                        struct ms_err *err) MS_MUST_USE;
void tui_app_close(struct tui_app *a);
/* Draw all into a->cells of the given size. */
enum ms_rc tui_app_draw(struct tui_app *a, int w, int h, struct ms_err *err) MS_MUST_USE;
/* Handle a key; what goes wrong becomes the message. */
void tui_app_key(struct tui_app *a, int key);
/* Go on with what the screen has begun; false when there is nothing to do. */
bool tui_app_work(struct tui_app *a);
/* Keys from a script, a line at a time, drawn after each; lines that begin with # are passed over. */
enum ms_rc tui_app_script(struct tui_app *a, struct ms_str script, int w, int h,
                          struct ms_err *err) MS_MUST_USE;

#endif
