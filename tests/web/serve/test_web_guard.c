/* SPDX-License-Identifier: MIT
 *
 * Who may ask what: Host, Origin, token.
 */
#include "tests/support/check.h"

#include "web/serve/guard.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct web_guard here = {8421, "127.0.0.1", true, TOKEN};
static struct web_guard open_to_all = {8421, "0.0.0.0", false, TOKEN};
static struct web_guard v6 = {8421, "::1", true, TOKEN};

static bool passes(const struct web_guard *g, struct web_asked a)
{
    return web_guard_refuses(g, &a) == NULL;
}

#define ASKED(name, ...) ((struct web_asked){.host = MS_STR(name), __VA_ARGS__})

START_TEST(names_of_this_machine_pass)
{
    ck_assert(passes(&here, ASKED("127.0.0.1:8421")));
    ck_assert(passes(&here, ASKED("localhost:8421")));
    ck_assert(passes(&here, ASKED("[::1]:8421")));
    ck_assert(passes(&v6, ASKED("[::1]:8421")));
}
END_TEST

START_TEST(other_names_and_ports_do_not_pass)
{
    ck_assert(!passes(&here, ASKED("evil.example:8421")));
    ck_assert(!passes(&here, ASKED("127.0.0.1.evil.example:8421")));
    ck_assert(!passes(&here, ASKED("127.evil.example:8421")));
    ck_assert(!passes(&here, ASKED("localhost.evil.example:8421")));
    ck_assert(!passes(&here, ASKED("127.0.0.1:80")));
    ck_assert(!passes(&here, ASKED("127.0.0.1")));
    ck_assert(!passes(&here, ASKED("127.0.0.1:8421x")));
    ck_assert(!passes(&here, ASKED("")));
    ck_assert(!passes(&here, ASKED("[")));
    ck_assert(!passes(&here, ASKED("[]:8421")));
    ck_assert(!passes(&here, (struct web_asked){.writes = false}));
}
END_TEST

START_TEST(only_our_own_pages_may_ask)
{
    ck_assert(passes(&here, ASKED("localhost:8421", .origin = MS_STR("http://localhost:8421"))));
    ck_assert(!passes(&here, ASKED("localhost:8421", .origin = MS_STR("http://evil.example"))));
    ck_assert(!passes(&here, ASKED("localhost:8421", .origin = MS_STR("https://localhost:8421"))));
    ck_assert(!passes(&here, ASKED("localhost:8421", .origin = MS_STR("http://localhost:1"))));
    ck_assert(!passes(&here, ASKED("localhost:8421", .origin = MS_STR("null"))));
    ck_assert(!passes(&here, ASKED("localhost:8421", .origin = MS_STR(""))));
}
END_TEST

START_TEST(a_change_needs_the_token)
{
    ck_assert(!passes(&here, ASKED("localhost:8421", .writes = true)));
    ck_assert(!passes(&here, ASKED("localhost:8421", .writes = true, .token = MS_STR("0123"))));
    ck_assert(!passes(&here, ASKED("localhost:8421", .writes = true, .token = MS_STR(TOKEN "0"))));
    ck_assert(passes(&here, ASKED("localhost:8421", .writes = true, .token = MS_STR(TOKEN))));
}
END_TEST

START_TEST(open_to_the_network_reading_needs_the_token_as_well)
{
    ck_assert(!passes(&open_to_all, ASKED("node7:8421")));
    ck_assert(passes(&open_to_all, ASKED("node7:8421", .page = true)));
    ck_assert(passes(&open_to_all, ASKED("node7:8421", .token = MS_STR(TOKEN))));
}
END_TEST

START_TEST(addresses_of_this_machine_are_known)
{
    ck_assert(web_is_loopback("localhost"));
    ck_assert(web_is_loopback("127.3.2.1"));
    ck_assert(web_is_loopback("::1"));
    ck_assert(!web_is_loopback("0.0.0.0"));
    ck_assert(!web_is_loopback("10.0.0.1"));
    ck_assert(!web_is_loopback("127.evil.example"));
    ck_assert(!web_is_loopback("127.0.0.1.evil.example"));
}
END_TEST

START_TEST(tokens_are_long_and_differ)
{
    struct web_guard a, b;
    struct ms_err err = {0};
    ck_ok(web_guard_token(&a, &err), err);
    ck_ok(web_guard_token(&b, &err), err);
    ck_assert_uint_eq(strlen(a.token), WEB_TOKEN);
    ck_assert_str_ne(a.token, b.token);
}
END_TEST

TEST_MAIN("web_guard", names_of_this_machine_pass, other_names_and_ports_do_not_pass,
          only_our_own_pages_may_ask, a_change_needs_the_token,
          open_to_the_network_reading_needs_the_token_as_well, addresses_of_this_machine_are_known,
          tokens_are_long_and_differ)
