/* SPDX-License-Identifier: MIT
 *
 * slow: answers that take seconds, each in its own thread, so that other connections are not
 * delayed. The number of threads is limited.
 */
#ifndef WEB_SERVE_SLOW_H
#define WEB_SERVE_SLOW_H

#include "probe/base/err.h"

#include <stdbool.h>

struct web_slow;

enum ms_rc web_slow_new(struct web_slow **s, unsigned most, struct ms_err *err) MS_MUST_USE;
/* Ends the running answers, waits for them, and refuses new ones. */
void web_slow_end(struct web_slow *s);
/* Frees the object, after web_slow_end or when no answer was started; NULL is allowed. */
void web_slow_free(struct web_slow *s);

/* Runs work(arg), whose last call is web_slow_done, in a new thread. MS_E_INTERRUPTED: too many
 * are running, or the server is ending. */
enum ms_rc web_slow_begin(struct web_slow *s, void *(*work)(void *arg), void *arg,
                          struct ms_err *err) MS_MUST_USE;
/* Reports the end of a thread; its last call. */
void web_slow_done(struct web_slow *s);
/* Returns a descriptor that becomes readable when the answers have to end. */
int web_slow_ends(const struct web_slow *s);

#endif
