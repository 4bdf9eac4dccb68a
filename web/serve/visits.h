/* SPDX-License-Identifier: MIT
 *
 * visits: who is connected, and since when a request has been awaited.  One that arrives too slowly is
 * ended however regularly its bytes come, and where many are connected those who never asked anything
 * make room: nobody holds a place for nothing.
 */
#ifndef WEB_SERVE_VISITS_H
#define WEB_SERVE_VISITS_H

#include "probe/base/err.h"

#include <stdbool.h>

struct web_visits;
struct web_visit;

struct web_visits_conf {
    int seconds;   /* for a request to arrive */
    unsigned many; /* connections from which on idle ones are ended */
    /* Told, in any thread, why how many connections were ended. */
    void (*on_end)(void *ctx, unsigned n, const char *why);
    void *ctx;
};

enum ms_rc web_visits_new(struct web_visits **v, const struct web_visits_conf *conf,
                          struct ms_err *err) MS_MUST_USE;
/* When nobody is connected any more. */
void web_visits_free(struct web_visits *v);

/* A connection; NULL when there is no memory to watch it. */
struct web_visit *web_visits_come(struct web_visits *v, int fd);
/* Before its descriptor is closed. */
void web_visits_go(struct web_visits *v, struct web_visit *visit);
/* A request is whole and is being answered; it was answered and the next is awaited. */
void web_visit_answers(struct web_visits *v, struct web_visit *visit, bool answers);

#endif
