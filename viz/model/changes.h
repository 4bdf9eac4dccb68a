/* SPDX-License-Identifier: MIT
 *
 * changes: what a viewer changes by hand in a graph.
 *
 * The file that was opened stays as it is.  The first change makes a working copy in the session's
 * folder, where all readers look from then on; what is changed lasts when it is written, into a file
 * beside the one that was opened unless that itself is asked for.
 */
#ifndef VIZ_MODEL_CHANGES_H
#define VIZ_MODEL_CHANGES_H

#include "viz/model/session.h"

/* The working copy, made when there is none yet; the session owns the text.  Whoever changes it calls
 * viz_changes_made behind it. */
enum ms_rc viz_changes_begin(struct viz_session *s, const char **path,
                             struct ms_err *err) MS_MUST_USE;
void viz_changes_made(struct viz_session *s);
/* Changes since the last time that all was written. */
uint64_t viz_changes_count(const struct viz_session *s);
/* Writes the working copy.  to: a file; NULL is NAME.edited.vis.db beside the graph that was opened, and
 * over: that graph itself.  Tells in *where, with its max set, what was written. */
enum ms_rc viz_changes_write(struct viz_session *s, const char *to, bool over, struct ms_buf *where,
                             struct ms_err *err) MS_MUST_USE;

#endif
