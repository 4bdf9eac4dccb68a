/* SPDX-License-Identifier: MIT
 *
 * changes: changes that the user makes to a graph in a viewer.
 *
 * The opened file stays unchanged. The first change creates a working copy in the session's folder,
 * which all readers use from then on. Changes are kept when the copy is written to a file beside
 * the opened one, or over the opened one on request.
 */
#ifndef VIZ_MODEL_CHANGES_H
#define VIZ_MODEL_CHANGES_H

#include "viz/model/session.h"

/* Returns the working copy, created when needed; the session owns the text. Call
 * viz_changes_made after each change. */
enum ms_rc viz_changes_begin(struct viz_session *s, const char **path,
                             struct ms_err *err) MS_MUST_USE;
void viz_changes_made(struct viz_session *s);
/* Number of changes since the last write. */
uint64_t viz_changes_count(const struct viz_session *s);
/* Writes the working copy. to: a file; NULL means NAME.edited.vis.db beside the opened graph,
 * and with `over` the opened graph itself. *where, with its max set, receives the path. */
enum ms_rc viz_changes_write(struct viz_session *s, const char *to, bool over, struct ms_buf *where,
                             struct ms_err *err) MS_MUST_USE;

#endif
