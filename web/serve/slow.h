/* SPDX-License-Identifier: MIT
 *
 * slow: answers that take seconds, each in a thread of its own beside those that serve connections, so
 * that they hold up nobody; a few at once.
 */
#ifndef WEB_SERVE_SLOW_H
#define WEB_SERVE_SLOW_H

#include "probe/base/err.h"

#include <stdbool.h>

struct web_slow;

enum ms_rc web_slow_new(struct web_slow **s, unsigned most, struct ms_err *err) MS_MUST_USE;
/* Ends what runs, waits for it, and refuses what comes from then on. */
void web_slow_end(struct web_slow *s);
/* When ended, or when nothing was ever begun; NULL is fine. */
void web_slow_free(struct web_slow *s);

/* Runs work(arg), whose last call is web_slow_done, in a new thread.  MS_E_INTERRUPTED: too many run
 * already, or all end. */
enum ms_rc web_slow_begin(struct web_slow *s, void *(*work)(void *arg), void *arg,
                          struct ms_err *err) MS_MUST_USE;
/* The last that a thread does. */
void web_slow_done(struct web_slow *s);
/* A descriptor that can be read once all is to end. */
int web_slow_ends(const struct web_slow *s);

#endif
