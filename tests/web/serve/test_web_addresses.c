/* SPDX-License-Identifier: MIT
 *
 * Addresses that a server prints.
 */
#include "tests/support/check.h"

#include "web/serve/guard.h"

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

/* A machine without a network has its own address alone. */
START_TEST(every_address_is_none_that_can_be_opened)
{
    static const char *const all[] = {"0.0.0.0", "::"};
    for (int i = 0; i < 2; i++) {
        struct web_guard g = bound_to(all[i]);
        const unsigned n = web_links(&g, links);
        ck_assert_uint_ge(n, 1);
        for (unsigned k = 0; k < n; k++) {
            ck_assert_ptr_null(strstr(links[k], "//0.0.0.0:"));
            ck_assert_ptr_null(strstr(links[k], "//[::]:"));
            ck_assert(n == 1 || strstr(links[k], "//127.") == NULL);
            ck_assert_ptr_nonnull(strstr(links[k], ":8421/#token=" TOKEN));
        }
    }
}
END_TEST

TEST_MAIN("web_addresses", an_address_is_printed_as_it_was_given,
          every_address_is_none_that_can_be_opened)
