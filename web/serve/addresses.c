/* SPDX-License-Identifier: MIT
 *
 * addresses: finds the addresses of the machine and formats the URLs.
 */
#include "web/serve/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

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
