/* SPDX-License-Identifier: MIT
 *
 * server: HTTP for the page, by libmicrohttpd; the only home of its header.
 *
 *     browser ─► server ─► guard ─► asset (files of the page)
 *                                └─► route ─► api_*.c ─► viz/model
 */
#ifndef WEB_SERVE_SERVER_H
#define WEB_SERVE_SERVER_H

#include "viz/model/session.h"
#include "web/serve/guard.h"

struct web_server;

struct web_server_conf {
    const char *host; /* to bind to: an address or "localhost" */
    uint16_t port;    /* 0: any free port */
    struct viz_session *session;
    const char *token; /* of a server before it, whose pages stay; NULL: a new one */
};

/* Listens and answers, in threads of its own, until stopped. The session must outlive the
 * server. */
enum ms_rc web_server_start(struct web_server **s, const struct web_server_conf *conf,
                            struct ms_err *err) MS_MUST_USE;
void web_server_stop(struct web_server *s);
/* Returns the port and the token in use. */
const struct web_guard *web_server_guard(const struct web_server *s);

#endif
