/* SPDX-License-Identifier: MIT
 *
 * guard: access control for requests.
 *
 * A page of another site must not be able to make the visitor's browser query this server: the Host
 * of every request must be one of the server's (against DNS rebinding), an Origin must be the
 * server's own, and Sec-Fetch-Site, which browsers set and pages cannot, must not name another
 * site. One cross-site request is allowed: following a link to a file of the page, which is not
 * secret.
 *
 * All requests except for files of the page need the token, which only the page and the terminal
 * that started the server know; also on this machine, because a login node has other users.
 */
#ifndef WEB_SERVE_GUARD_H
#define WEB_SERVE_GUARD_H

#include "probe/base/str.h"
#include "web/api/metrics.h"

enum { WEB_TOKEN = 32 };

struct web_guard {
    uint16_t port;
    char host[256];         /* name or address of the socket */
    bool only_this_machine; /* bound to a loopback address */
    char token[WEB_TOKEN + 1];
};

struct web_asked {
    struct ms_str host, origin; /* headers; p is NULL if absent */
    struct ms_str site, mode;   /* Sec-Fetch-Site and Sec-Fetch-Mode */
    struct ms_str token;        /* from a header or the URI */
    bool page;                  /* the request is for a file of the page, not secret */
};

/* Creates a random token. MS_E_IO: the system has no randomness. */
enum ms_rc web_guard_token(struct web_guard *g, struct ms_err *err) MS_MUST_USE;
/* Tells whether an address is a loopback address. */
bool web_is_loopback(const char *host);
/* Returns NULL if the request is allowed, else the reason for the refusal. */
const char *web_guard_refuses(const struct web_guard *g, const struct web_asked *a);

/* ---- refusals -------------------------------------------------------------------------- */

/* Counts refusals. All are counted; only a few per second are logged, so that a flood of
 * requests cannot fill the disk. */
struct web_refusals {
    struct web_metrics *metrics;
    _Atomic int64_t second;
    _Atomic unsigned logged; /* logged in that second */
};

/* Counts a refusal and logs it with `what`, text from the request that is shortened and made
 * printable; "": nothing to add. */
void web_refusal(struct web_refusals *r, const char *why, struct ms_str what);

/* ---- URLs with the token ------------------------------------------------------------ */

enum { WEB_LINKS = 8, WEB_LINK_MAX = 400 };

/* Writes the URLs that open the page, the best first; at least one. For a server bound to all
 * addresses ("0.0.0.0", "::"), which a remote browser cannot open, these are the addresses of
 * the machine's networks, that of the default route first. */
unsigned web_links(const struct web_guard *g, char link[WEB_LINKS][WEB_LINK_MAX]);

#endif
