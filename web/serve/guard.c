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
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

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
    if (bracket)
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
        unsigned left = atomic_exchange(&r->logged, 0);
        if (left > LINES_A_SECOND)
            ms_warn("%u more like these", left - LINES_A_SECOND);
    }
    return atomic_fetch_add(&r->logged, 1) < LINES_A_SECOND;
}

/* Copies text, shortened and without characters that a terminal would interpret. */
static const char *make_printable(char *to, struct ms_str from)
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
        ms_warn("refused: %s%s%s", why, what.n != 0 ? ": " : "", make_printable(shown, what));
}

/* ---- URLs with the token ------------------------------------------------------------ */

struct links {
    const struct web_guard *guard;
    char (*link)[WEB_LINK_MAX];
    unsigned n;
};

static void add_link(struct links *l, const char *host)
{
    char text[WEB_LINK_MAX];
    const bool v6 = strchr(host, ':') != NULL;
    snprintf(text, sizeof text, "http://%s%s%s:%u/#token=%s", v6 ? "[" : "", host, v6 ? "]" : "",
             l->guard->port, l->guard->token);
    for (unsigned i = 0; i < l->n; i++) {
        if (strcmp(l->link[i], text) == 0)
            return;
    }
    if (l->n < WEB_LINKS)
        memcpy(l->link[l->n++], text, sizeof text);
}

/* Tells whether other machines can reach an address; loopback and link-local ones they cannot. */
static bool is_reachable(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) {
        const uint32_t v4 = ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr);
        return v4 >> 24 != 127 && v4 >> 16 != 0xA9FE;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
    return !IN6_IS_ADDR_LOOPBACK(v6) && !IN6_IS_ADDR_LINKLOCAL(v6);
}

static void add_address(struct links *l, const struct sockaddr *a)
{
    char host[INET6_ADDRSTRLEN];
    const void *from = a->sa_family == AF_INET
                           ? (const void *)&((const struct sockaddr_in *)a)->sin_addr
                           : (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr;
    if (is_reachable(a) && inet_ntop(a->sa_family, from, host, sizeof host) != NULL)
        add_link(l, host);
}

/* Adds the address from which packets leave for other networks. Connecting a datagram socket
 * sends no packet; the destinations are addresses reserved for documentation. */
static void add_default_route(struct links *l, int family)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } own;
    socklen_t n = sizeof own;
    const bool is_v4 = family == AF_INET;
    inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);
    inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
                is_v4 ? sizeof v4 : sizeof v6) == 0 &&
        getsockname(fd, &own.any, &n) == 0)
        add_address(l, &own.any);
    close(fd);
}

static void add_networks(struct links *l, int family)
{
    struct ifaddrs *list;
    add_default_route(l, family);
    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *a = list; a != NULL; a = a->ifa_next) {
        if (a->ifa_addr != NULL && a->ifa_addr->sa_family == family && (a->ifa_flags & IFF_UP) != 0)
            add_address(l, a->ifa_addr);
    }
    freeifaddrs(list);
}

unsigned web_links(const struct web_guard *g, char link[WEB_LINKS][WEB_LINK_MAX])
{
    struct links l = {.guard = g, .link = link};
    const bool every_v4 = strcmp(g->host, "0.0.0.0") == 0, every_v6 = strcmp(g->host, "::") == 0;
    if (every_v4 || every_v6)
        add_networks(&l, every_v4 ? AF_INET : AF_INET6);
    if (l.n == 0)
        add_link(&l, every_v4 ? "127.0.0.1" : every_v6 ? "::1" : g->host);
    return l.n;
}
