/* SPDX-License-Identifier: MIT
 *
 * limits: keeps one visitor from holding up the others.
 *
 * Visits are the open connections, and how long each request has been arriving. A request that
 * arrives too slowly is ended even if its bytes keep coming, a visitor that neither sends nor reads is
 * ended, and when many connections are open, those that never sent a request are closed. Slow answers, which take seconds, run in threads of
 * their own, so that other connections are not delayed; the number of threads is limited.
 */
#ifndef WEB_SERVE_LIMITS_H
#define WEB_SERVE_LIMITS_H

#include "probe/base/err.h"

#include <stdbool.h>

/* ---- visits ------------------------------------------------------------------------- */

struct web_visits;
struct web_visit;

struct web_visits_conf {
    int seconds;      /* time limit for a request to arrive */
    int idle_seconds; /* time limit for a visitor to send or read anything */
    unsigned many;    /* number of connections from which on those that never asked are closed */
    /* Called, in any thread, with the number of connections closed and the reason. */
    void (*on_end)(void *ctx, unsigned n, const char *why);
    void *ctx;
};

enum ms_rc web_visits_new(struct web_visits **v, const struct web_visits_conf *conf,
                          struct ms_err *err) MS_MUST_USE;
/* Frees the list; all connections are closed. */
void web_visits_free(struct web_visits *v);

/* Registers a connection; NULL: out of memory, the connection is not watched. */
struct web_visit *web_visits_come(struct web_visits *v, int fd);
/* Unregisters a connection, before its descriptor is closed. */
void web_visits_go(struct web_visits *v, struct web_visit *visit);
/* Marks whether a complete request is being answered, or the next one is awaited. */
void web_visit_answers(struct web_visits *v, struct web_visit *visit, bool answers);

/* ---- slow answers ------------------------------------------------------------------- */

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
