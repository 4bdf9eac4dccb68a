/* SPDX-License-Identifier: MIT
 *
 * guard: checks Host, Origin and token, and counts refusals.
 */
#define MS_LOG_DOMAIN "serve"
#include "web/serve/guard.h"

#include "probe/base/assert.h"
#include "probe/base/clock.h"
#include "probe/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

enum ms_rc web_guard_token(struct web_guard *g, struct ms_err *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char raw[WEB_TOKEN / 2];
    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return ms_fail_sys(err, "no random token");
    for (size_t i = 0; i < sizeof raw; i++) {
        g->token[2 * i] = digits[raw[i] >> 4];
        g->token[2 * i + 1] = digits[raw[i] & 15];
    }
    g->token[WEB_TOKEN] = '\0';
    ms_assert(strlen(g->token) == WEB_TOKEN);
    return MS_OK;
}

bool web_is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1) /* not a host name that begins with "127." */
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(host, "localhost") == 0;
}

/* Splits a Host header into its name and its port, which must be the server's if given. */
static bool split_host(struct ms_str header, uint16_t port, struct ms_str *name)
{
    int64_t colon = ms_str_rfind(header, ':');
    bool bracket = header.n != 0 && header.p[0] == '[';
    if (bracket && colon < ms_str_rfind(header, ']'))
        colon = -1;
    uint64_t v = 80;
    if (colon >= 0 && !ms_str_u64(ms_str_sub(header, (uint32_t)colon + 1, header.n), &v))
        return false;
    *name = colon >= 0 ? ms_str_sub(header, 0, (uint32_t)colon) : header;
    if (bracket && name->n > 2)
        *name = ms_str_sub(*name, 1, name->n - 1);
    return v == port;
}

static bool is_our_host(const struct web_guard *g, struct ms_str header)
{
    struct ms_str name;
    char z[256];
    if (!split_host(header, g->port, &name) || name.n >= sizeof z)
        return false;
    memcpy(z, name.p, name.n);
    z[name.n] = '\0';
    /* Bound to all addresses, any name is valid; the token protects the server. */
    bool any = strcmp(g->host, "0.0.0.0") == 0 || strcmp(g->host, "::") == 0;
    return any || strcmp(z, g->host) == 0 || (g->only_this_machine && web_is_loopback(z));
}

static bool is_our_origin(const struct web_guard *g, struct ms_str origin)
{
    if (!ms_str_starts(origin, MS_STR("http://")))
        return false;
    return is_our_host(g, ms_str_sub(origin, (uint32_t)strlen("http://"), origin.n));
}

/* Compares in constant time. */
static bool is_token(const struct web_guard *g, struct ms_str t)
{
    unsigned differs = t.n != WEB_TOKEN;
    for (uint32_t i = 0; i < t.n && i < WEB_TOKEN; i++)
        differs |= (unsigned char)t.p[i] ^ (unsigned char)g->token[i];
    return differs == 0;
}

/* Tells whether another site caused the request. "none" is a URL typed or chosen by the user;
 * programs other than browsers send no header. Another port of this machine, possibly another
 * user's server, counts as "same-site", which is refused. */
static bool is_of_other_site(const struct web_asked *a)
{
    const bool ours =
        a->site.p == NULL || ms_str_is(a->site, "same-origin") || ms_str_is(a->site, "none");
    const bool follows_link = a->page && ms_str_is(a->mode, "navigate");
    return !ours && !follows_link;
}

const char *web_guard_refuses(const struct web_guard *g, const struct web_asked *a)
{
    if (a->host.p == NULL || !is_our_host(g, a->host))
        return "the Host header does not name this server";
    if ((a->origin.p != NULL && !is_our_origin(g, a->origin)) || is_of_other_site(a))
        return "pages of other sites may not ask this server";
    if (a->page || is_token(g, a->token))
        return NULL;
    return a->token.n == 0
               ? "the token is missing: open the address that the server printed when it started"
               : "this is the token of another server: open the address that this one printed";
}

/* ---- refusals -------------------------------------------------------------------------- */

enum { LINES_A_SECOND = 5, SHOWN_MAX = 80 };

static bool may_say(struct web_refusals *r)
{
    int64_t second = ms_clock_ns() / 1000000000;
    if (atomic_exchange(&r->second, second) != second) {
        unsigned left = atomic_exchange(&r->said, 0);
        if (left > LINES_A_SECOND)
            ms_warn("%u more like these", left - LINES_A_SECOND);
    }
    return atomic_fetch_add(&r->said, 1) < LINES_A_SECOND;
}

/* Copies text, shortened and without characters that a terminal would interpret. */
static const char *printable(char *to, struct ms_str from)
{
    uint32_t n = from.n < SHOWN_MAX ? from.n : SHOWN_MAX;
    for (uint32_t i = 0; i < n; i++)
        to[i] = from.p[i] > ' ' && from.p[i] < 127 ? from.p[i] : '?';
    snprintf(to + n, 4, "%s", from.n > n ? "..." : "");
    return to;
}

void web_refusal(struct web_refusals *r, const char *why, struct ms_str what)
{
    char shown[SHOWN_MAX + 4];
    web_metrics_refused(r->metrics);
    if (may_say(r))
        ms_warn("refused: %s%s%s", why, what.n != 0 ? ": " : "", printable(shown, what));
}
