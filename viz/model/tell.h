/* SPDX-License-Identifier: MIT
 *
 * tell: what a viewer says on standard error while it opens what it will show.
 */
#ifndef VIZ_MODEL_TELL_H
#define VIZ_MODEL_TELL_H

/* ctx of both. */
struct viz_teller {
    const char *command;
};

/* A graph_progress_fn and a graph_note_fn; progress is for a terminal alone. */
void viz_tell_progress(void *ctx, int percent);
void viz_tell_note(void *ctx, const char *line);

#endif
