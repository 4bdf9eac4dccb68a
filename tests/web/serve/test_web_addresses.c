/* SPDX-License-Identifier: MIT
 *
 * Addresses that a server prints.
 */
#include "tests/support/check.h"

#include "web/serve/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

static char links[WEB_LINKS][WEB_LINK_MAX];

static struct web_guard bound_to(const char *host)
{
    struct web_guard g = {.port = 8421, .token = TOKEN};
    snprintf(g.host, sizeof g.host, "%s", host);
    return g;
}

START_TEST(an_address_is_printed_as_it_was_given)
{
    struct web_guard v4 = bound_to("127.0.0.1"), v6 = bound_to("::1"), name = bound_to("node7");
    ck_assert_uint_eq(web_links(&v4, links), 1);
    ck_assert_str_eq(links[0], "http://127.0.0.1:8421/#token=" TOKEN);
    ck_assert_uint_eq(web_links(&v6, links), 1);
    ck_assert_str_eq(links[0], "http://[::1]:8421/#token=" TOKEN);
    ck_assert_uint_eq(web_links(&name, links), 1);
    ck_assert_str_eq(links[0], "http://node7:8421/#token=" TOKEN);
}
END_TEST

/* ---- the networks of a machine ------------------------------------------------------------ */

/* These stand in for the system's: the machine has the networks that a test gives it. */
enum { NETWORKS = 12 };
static struct machine {
    const char *route[2]; /* the address from which packets leave, by IPv4 and by IPv6 */
    struct network {
        const char *address;
        unsigned flags;
    } network[NETWORKS];
} machine;

static socklen_t fill(struct sockaddr_storage *to, const char *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
    const bool is_v6 = strchr(address, ':') != NULL;
    memset(to, 0, sizeof *to);
    to->ss_family = is_v6 ? AF_INET6 : AF_INET;
    ck_assert_int_eq(
        inet_pton(to->ss_family, address, is_v6 ? (void *)&v6->sin6_addr : &v4->sin_addr), 1);
    return is_v6 ? sizeof *v6 : sizeof *v4;
}

static const char *route_now;

int connect(int fd, const struct sockaddr *to, socklen_t n)
{
    const bool is_v6 = to->sa_family == AF_INET6;
    (void)fd;
    ck_assert_uint_eq(n, is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    route_now = machine.route[is_v6];
    errno = ENETUNREACH;
    return route_now != NULL ? 0 : -1;
}

int getsockname(int fd, struct sockaddr *restrict to, socklen_t *restrict n)
{
    struct sockaddr_storage own;
    (void)fd;
    const socklen_t size = fill(&own, route_now);
    ck_assert_uint_ge(*n, size);
    memcpy(to, &own, size);
    *n = size;
    return 0;
}

int getifaddrs(struct ifaddrs **list)
{
    static struct ifaddrs all[NETWORKS];
    static struct sockaddr_storage at[NETWORKS];
    *list = NULL;
    for (int i = NETWORKS - 1; i >= 0; i--) {
        const struct network *from = &machine.network[i];
        if (from->flags == 0)
            continue;
        all[i] = (struct ifaddrs){.ifa_next = *list, .ifa_flags = from->flags};
        if (from->address != NULL) {
            fill(&at[i], from->address);
            all[i].ifa_addr = (struct sockaddr *)&at[i];
        }
        *list = &all[i];
    }
    errno = ENOSYS;
    return *list != NULL ? 0 : -1;
}

void freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

/* The addresses that are printed of a server bound to all of them, the first with its scheme. */
static void expect(const char *bound, unsigned n, const char *const *hosts)
{
    struct web_guard g = bound_to(bound);
    ck_assert_uint_eq(web_links(&g, links), n);
    for (unsigned i = 0; i < n; i++) {
        char wanted[WEB_LINK_MAX];
        snprintf(wanted, sizeof wanted, "http://%s:8421/#token=" TOKEN, hosts[i]);
        ck_assert_str_eq(links[i], wanted);
    }
}
#define EXPECT(bound, ...)                                                                         \
    expect(bound, sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *),                    \
           (const char *const[]){__VA_ARGS__})

START_TEST(addresses_that_others_reach_are_printed_the_way_out_first)
{
    machine = (struct machine){{"10.0.0.7", "2001:db8::7"},
                               {{"127.0.0.1", IFF_UP | IFF_LOOPBACK},
                                {NULL, IFF_UP},
                                {"192.168.4.2", IFF_UP | IFF_BROADCAST},
                                {"169.254.3.3", IFF_UP},
                                {"169.253.3.3", IFF_UP},
                                {"192.168.4.2", IFF_UP}, /* once more */
                                {"10.0.0.7", IFF_UP},
                                {"10.9.9.9", IFF_BROADCAST}, /* down */
                                {"::1", IFF_UP | IFF_LOOPBACK},
                                {"fe80::7", IFF_UP},
                                {"fd00::4", IFF_UP}}};
    EXPECT("0.0.0.0", "10.0.0.7", "192.168.4.2", "169.253.3.3");
    EXPECT("::", "[2001:db8::7]", "[fd00::4]");
}
END_TEST

/* A machine without a network has its own address alone. */
START_TEST(without_a_network_the_own_address_is_printed)
{
    machine = (struct machine){{NULL, NULL}, {{"127.0.0.1", IFF_UP}, {"::1", IFF_UP}}};
    EXPECT("0.0.0.0", "127.0.0.1");
    EXPECT("::", "[::1]");
    machine = (struct machine){{"127.0.0.1", "::1"}, {{NULL, 0}}};
    EXPECT("0.0.0.0", "127.0.0.1");
    EXPECT("::", "[::1]");
}
END_TEST

START_TEST(no_more_addresses_than_there_is_room_for)
{
    static const char *const ten[] = {"10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4",
                                      "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9"};
    machine = (struct machine){.route = {"10.0.0.0"}};
    for (int i = 0; i < 10; i++)
        machine.network[i] = (struct network){ten[i], IFF_UP};
    expect("0.0.0.0", WEB_LINKS, ten);
}
END_TEST

TEST_MAIN("web_addresses", an_address_is_printed_as_it_was_given,
          addresses_that_others_reach_are_printed_the_way_out_first,
          without_a_network_the_own_address_is_printed, no_more_addresses_than_there_is_room_for)
