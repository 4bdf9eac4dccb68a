/* SPDX-License-Identifier: MIT
 *
 * visits: open connections, and how long each request has been arriving. A request that arrives too
 * slowly is ended even if its bytes keep coming, and when many connections are open, those that
 * never sent a request are closed.
 */
#ifndef WEB_SERVE_VISITS_H
#define WEB_SERVE_VISITS_H

#include "probe/base/err.h"

#include <stdbool.h>

struct web_visits;
struct web_visit;

struct web_visits_conf {
    int seconds;   /* time limit for a request to arrive */
    unsigned many; /* number of connections from which on idle ones are closed */
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

#endif
