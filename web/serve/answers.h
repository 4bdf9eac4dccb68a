/* SPDX-License-Identifier: MIT
 *
 * answers: replies that are kept until the run or the comparison changes.
 *
 * Many pages ask the same questions of one state: what the clusters of 10,000 ranks are takes more
 * than a second to compute, and its reply has 5 MB. A kept reply is shared by all connections that
 * are still sending it, so slow readers cost no copies.
 */
#ifndef WEB_SERVE_ANSWERS_H
#define WEB_SERVE_ANSWERS_H

#include "probe/base/str.h"

struct web_answers;

/* A reply with a count of its users. */
struct web_shared {
    size_t users, n;
    char bytes[];
};

/* Keeps at most so many bytes of replies and their questions. */
enum ms_rc web_answers_new(struct web_answers **a, size_t most, struct ms_err *err) MS_MUST_USE;
void web_answers_free(struct web_answers *a); /* NULL is allowed */

/* Returns the reply to a question (the URI after the host) of a state, for web_shared_drop; NULL if
 * none is kept. *asked identifies the moment, for web_answers_keep. */
struct web_shared *web_answers_find(struct web_answers *a, struct ms_str question, uint64_t state,
                                    uint64_t *asked);
/* Keeps a reply and returns it shared. Replies that began before the last web_answers_forget or
 * belong to an older state are not kept; NULL: it is too large or was not kept. */
struct web_shared *web_answers_keep(struct web_answers *a, struct ms_str question, uint64_t state,
                                    uint64_t asked, struct ms_str bytes);
/* Drops all replies, because what they describe was changed. */
void web_answers_forget(struct web_answers *a);

void web_shared_drop(struct web_shared *s);
/* The same with a pointer to its bytes. */
void web_shared_drop_bytes(void *bytes);

#endif
