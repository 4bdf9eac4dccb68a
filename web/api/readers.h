/* SPDX-License-Identifier: MIT
 *
 * readers: a pool of database handles for requests.
 *
 * A handle serves one request at a time. When the run has grown, handles on the older state are
 * closed on their return.
 */
#ifndef WEB_API_READERS_H
#define WEB_API_READERS_H

#include "viz/model/session.h"

struct web_readers;

/* The session must outlive the readers, and only they refresh it from then on. */
enum ms_rc web_readers_new(struct web_readers **r, struct viz_session *session,
                           struct ms_err *err) MS_MUST_USE;
void web_readers_free(struct web_readers *r);

/* Takes a reader of the newest known state. */
enum ms_rc web_readers_take(struct web_readers *r, struct viz_reader **reader,
                            struct ms_err *err) MS_MUST_USE;
void web_readers_give(struct web_readers *r, struct viz_reader *reader);
/* Returns the version of the state that web_readers_take would read. */
uint64_t web_readers_state(const struct web_readers *r);
/* Checks whether the run has grown, at most once a second over all callers. */
void web_readers_refresh(struct web_readers *r);

#endif
