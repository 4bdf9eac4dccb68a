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

/* With the token. */
#define KNOWN(name, ...)                                                                           \
    ((struct web_asked){.host = MS_STR(name), .token = MS_STR(TOKEN), ##__VA_ARGS__})
#define ASKED(name, ...) ((struct web_asked){.host = MS_STR(name), __VA_ARGS__})

START_TEST(names_of_this_machine_pass)
{
    ck_assert(passes(&here, KNOWN("127.0.0.1:8421")));
    ck_assert(passes(&here, KNOWN("localhost:8421")));
    ck_assert(passes(&here, KNOWN("[::1]:8421")));
    ck_assert(passes(&v6, KNOWN("[::1]:8421")));
}
END_TEST

START_TEST(other_names_and_ports_do_not_pass)
{
    ck_assert(!passes(&here, KNOWN("evil.example:8421")));
    ck_assert(!passes(&here, KNOWN("127.0.0.1.evil.example:8421")));
    ck_assert(!passes(&here, KNOWN("127.evil.example:8421")));
    ck_assert(!passes(&here, KNOWN("localhost.evil.example:8421")));
    ck_assert(!passes(&here, KNOWN("127.0.0.1:80")));
    ck_assert(!passes(&here, KNOWN("127.0.0.1")));
    ck_assert(!passes(&here, KNOWN("127.0.0.1:8421x")));
    ck_assert(!passes(&here, KNOWN("")));
    ck_assert(!passes(&here, KNOWN("[")));
    ck_assert(!passes(&here, KNOWN("[]:8421")));
    ck_assert(!passes(&here, (struct web_asked){.page = true, .token = MS_STR(TOKEN)}));
}
END_TEST

START_TEST(only_our_own_pages_may_ask)
{
    ck_assert(passes(&here, KNOWN("localhost:8421", .origin = MS_STR("http://localhost:8421"))));
    ck_assert(!passes(&here, KNOWN("localhost:8421", .origin = MS_STR("http://evil.example"))));
    ck_assert(!passes(&here, KNOWN("localhost:8421", .origin = MS_STR("https://localhost:8421"))));
    ck_assert(!passes(&here, KNOWN("localhost:8421", .origin = MS_STR("http://localhost:1"))));
    ck_assert(!passes(&here, KNOWN("localhost:8421", .origin = MS_STR("null"))));
    ck_assert(!passes(&here, KNOWN("localhost:8421", .origin = MS_STR(""))));
}
END_TEST

START_TEST(everything_but_the_page_needs_the_token)
{
    const struct web_guard *const all[] = {&here, &v6, &open_to_all};
    for (size_t i = 0; i < 3; i++) {
        ck_assert(!passes(all[i], ASKED("localhost:8421", .token = MS_STR_NONE)));
        ck_assert(!passes(all[i], ASKED("localhost:8421", .token = MS_STR(""))));
        ck_assert(!passes(all[i], ASKED("localhost:8421", .token = MS_STR("0123"))));
        ck_assert(!passes(all[i], ASKED("localhost:8421", .token = MS_STR(TOKEN "0"))));
        ck_assert(!passes(all[i], ASKED("localhost:8421", .token = MS_STR("1" TOKEN))));
        ck_assert(passes(all[i], KNOWN("localhost:8421")));
        ck_assert(passes(all[i], ASKED("localhost:8421", .page = true)));
    }
}
END_TEST

/* Every digit counts, not the first ones alone. */
START_TEST(a_token_with_one_wrong_digit_is_another)
{
    char wrong[] = TOKEN;
    for (size_t i = 0; i < WEB_TOKEN; i++) {
        wrong[i] ^= 1;
        ck_assert(!passes(&here, ASKED("localhost:8421", .token = {wrong, WEB_TOKEN})));
        wrong[i] ^= 1;
    }
    ck_assert(passes(&here, ASKED("localhost:8421", .token = {wrong, WEB_TOKEN})));
}
END_TEST

START_TEST(why_a_token_is_refused_is_told)
{
    const char *none = web_guard_refuses(&here, &ASKED("localhost:8421"));
    const char *old = web_guard_refuses(&here, &ASKED("localhost:8421", .token = MS_STR("0123")));
    ck_assert_ptr_nonnull(strstr(none, "missing"));
    ck_assert_ptr_nonnull(strstr(old, "another server"));
}
END_TEST

START_TEST(requests_of_other_sites_are_refused)
{
    ck_assert(passes(&here, KNOWN("localhost:8421", .site = MS_STR("same-origin"))));
    ck_assert(passes(&here, KNOWN("localhost:8421", .site = MS_STR("none"))));
    /* another port of this host is the same site to a browser, and may be another user's */
    ck_assert(!passes(&here, KNOWN("localhost:8421", .site = MS_STR("same-site"))));
    ck_assert(!passes(&here, KNOWN("localhost:8421", .site = MS_STR("cross-site"))));
    ck_assert(!passes(
        &here, KNOWN("localhost:8421", .site = MS_STR("cross-site"), .mode = MS_STR("navigate"))));
    ck_assert(!passes(&here, KNOWN("localhost:8421", .site = MS_STR(""))));
}
END_TEST

START_TEST(a_link_on_another_site_opens_the_page)
{
    struct web_asked a = ASKED("localhost:8421", .page = true, .site = MS_STR("cross-site"),
                               .mode = MS_STR("navigate"));
    ck_assert(passes(&here, a));
    a.mode = MS_STR("no-cors");
    ck_assert(!passes(&here, a));
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
          only_our_own_pages_may_ask, everything_but_the_page_needs_the_token,
          a_token_with_one_wrong_digit_is_another, why_a_token_is_refused_is_told,
          requests_of_other_sites_are_refused, a_link_on_another_site_opens_the_page,
          addresses_of_this_machine_are_known, tokens_are_long_and_differ)
