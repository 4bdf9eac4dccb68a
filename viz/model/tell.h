/* SPDX-License-Identifier: MIT
 *
 * tell: progress and notes on standard error while a viewer opens its input.
 */
#ifndef VIZ_MODEL_TELL_H
#define VIZ_MODEL_TELL_H

/* ctx of both functions. */
struct viz_teller {
    const char *command;
};

/* Callbacks of type graph_progress_fn and graph_note_fn; progress is printed only on a terminal. */
void viz_tell_progress(void *ctx, int percent);
void viz_tell_note(void *ctx, const char *line);

#endif
