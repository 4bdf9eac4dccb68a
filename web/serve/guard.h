/* SPDX-License-Identifier: MIT
 *
 * guard: who may ask what.
 *
 * A page of another site must not be able to make the visitor's browser ask this server anything: the
 * Host of every request must be one of ours (which defeats rebinding of names), an Origin must be our
 * own, and Sec-Fetch-Site, which browsers set and pages cannot, must not name another site.  One
 * request of another site passes: following a link to a file of the page, which is no secret.
 *
 * All but the files of the page needs the token that only our page and the terminal that started the
 * server know; on this machine too, because a login node has other users.
 */
#ifndef WEB_SERVE_GUARD_H
#define WEB_SERVE_GUARD_H

#include "web/api/metrics.h"

#include "probe/base/str.h"

enum { WEB_TOKEN = 32 };

struct web_guard {
    uint16_t port;
    char host[256];         /* the name or address that was bound to */
    bool only_this_machine; /* bound to a loopback address */
    char token[WEB_TOKEN + 1];
};

struct web_asked {
    struct ms_str host, origin; /* headers; p is NULL when absent */
    struct ms_str site, mode;   /* Sec-Fetch-Site and Sec-Fetch-Mode */
    struct ms_str token;        /* from a header or the address */
    bool page;                  /* a file of the page, which is no secret */
};

/* A new random token.  MS_E_IO when the system has no randomness. */
enum ms_rc web_guard_token(struct web_guard *g, struct ms_err *err) MS_MUST_USE;
/* Is an address one of this machine alone? */
bool web_is_loopback(const char *host);
/* NULL: the request passes; else why it does not, in words. */
const char *web_guard_refuses(const struct web_guard *g, const struct web_asked *a);

/* ---- what was refused ------------------------------------------------------------------- */

/* Every refusal is counted; the log gets some of each second, so that a flood of requests cannot
 * fill the disk. */
struct web_refusals {
    struct web_metrics *metrics;
    _Atomic int64_t second;
    _Atomic unsigned said; /* in that second */
};

/* `what` comes from outside and is shortened to what is safe to print; "" says nothing. */
void web_refusal(struct web_refusals *r, const char *why, struct ms_str what);

#endif
