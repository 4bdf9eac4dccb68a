/* SPDX-License-Identifier: MIT
 *
 * Who may ask what: Host, Origin, token; and what is told of those who may not.
 */
#include "tests/support/check.h"

#include "probe/base/log.h"
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

/* A browser leaves the port out where it is 80. */
START_TEST(the_port_of_a_name_without_one_is_80)
{
    const struct web_guard at_80 = {80, "0.0.0.0", false, TOKEN};
    ck_assert(passes(&at_80, KNOWN("node7")));
    ck_assert(passes(&at_80, KNOWN("node7:80")));
    ck_assert(passes(&at_80, KNOWN("[fd00::80]")));
    ck_assert(!passes(&at_80, KNOWN("node7:81")));
    ck_assert(!passes(&at_80, KNOWN(":81")));
    ck_assert(!passes(&open_to_all, KNOWN("node7")));
}
END_TEST

START_TEST(a_name_as_long_as_there_is_room_for)
{
    char name[300];
    memset(name, 'n', sizeof name);
    const struct web_guard at_80 = {80, "0.0.0.0", false, TOKEN};
    for (uint32_t n = 254; n < 258; n++)
        ck_assert(passes(&at_80, (struct web_asked){.host = {name, n}, .page = true}) == (n < 256));
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

/* Each of the digits is drawn: among so many tokens every place has had most of the sixteen. */
START_TEST(every_digit_of_a_token_is_drawn)
{
    static const char digits[] = "0123456789abcdef";
    unsigned seen[WEB_TOKEN] = {0};
    struct {
        struct web_guard g;
        char behind[4];
    } at = {.behind = "its"};
    struct ms_err err = {0};
    for (int i = 0; i < 200; i++) {
        ck_ok(web_guard_token(&at.g, &err), err);
        ck_assert_uint_eq(strspn(at.g.token, digits), WEB_TOKEN);
        ck_assert_str_eq(at.behind, "its");
        for (int k = 0; k < WEB_TOKEN; k++)
            seen[k] |= 1u << (strchr(digits, at.g.token[k]) - digits);
    }
    for (int k = 0; k < WEB_TOKEN; k++)
        ck_assert_int_ge(__builtin_popcount(seen[k]), 12);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------- */

static char dir[64], path[80];

static void log_to_file(void)
{
    struct ms_err err = {0};
    snprintf(path, sizeof path, "%s/log", scratch_dir(dir));
    setenv("MSPROBE_LOG", path, 1);
    ck_ok(ms_log_from_env(&err), err);
    unsetenv("MSPROBE_LOG");
}

static const char *logged(void)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "rb");
    text[f != NULL ? fread(text, 1, sizeof text - 1, f) : 0] = '\0';
    if (f != NULL)
        fclose(f);
    return text;
}

static unsigned times(const char *text, const char *word)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += strlen(word))
        n++;
    return n;
}

/* What a request wrote is shown without what a terminal would obey, and cut. */
START_TEST(a_refusal_shows_what_was_asked)
{
    char longer[100];
    struct web_metrics metrics = {0};
    struct web_refusals r = {.metrics = &metrics};
    memset(longer, 'l', sizeof longer);
    longer[79] = 'Z';
    log_to_file();
    web_refusal(&r, "no", MS_STR("/a b\x1b[2J\x7f~!"));
    web_refusal(&r, "nothing", MS_STR(""));
    web_refusal(&r, "fits", (struct ms_str){longer, 80});
    web_refusal(&r, "is cut", (struct ms_str){longer, 81});
    const char *text = logged();
    ck_assert_ptr_nonnull(strstr(text, "refused: no: /a?b?[2J?~!\n"));
    ck_assert_ptr_nonnull(strstr(text, "refused: nothing\n"));
    ck_assert_ptr_nonnull(strstr(text, "lllZ\n"));
    ck_assert_ptr_nonnull(strstr(text, "lllZ...\n"));
    ck_assert_uint_eq(metrics.refused, 4);
    scratch_remove(dir);
}
END_TEST

/* Of a flood a few lines are written; how many more there were is told in the next second. */
START_TEST(a_flood_of_refusals_is_counted_and_not_written)
{
    struct web_metrics metrics = {0};
    struct web_refusals r = {.metrics = &metrics};
    log_to_file();
    for (int i = 0; i < 5; i++)
        web_refusal(&r, "first", MS_STR(""));
    const int64_t second = r.second;
    for (int i = 0; i < 100 && r.second == second; i++)
        web_refusal(&r, "flood", MS_STR(""));
    if (r.second == second) { /* else the machine was slower than the flood */
        const char *text = logged();
        ck_assert_uint_eq(times(text, "first"), 5);
        ck_assert_uint_eq(times(text, "flood"), 0);
        ck_assert_uint_eq(r.logged, 105);
        r.second = 0; /* as if a second had passed */
        web_refusal(&r, "later", MS_STR(""));
        ck_assert_ptr_nonnull(strstr(logged(), "100 more like these\n"));
        ck_assert_uint_eq(times(logged(), "later"), 1);
    }
    ck_assert_uint_ge(metrics.refused, 6);
    scratch_remove(dir);
}
END_TEST

START_TEST(no_more_than_a_few_leave_nothing_to_tell)
{
    struct web_metrics metrics = {0};
    struct web_refusals r = {.metrics = &metrics, .logged = 5};
    log_to_file();
    web_refusal(&r, "next", MS_STR(""));
    ck_assert_uint_eq(times(logged(), "more like these"), 0);
    ck_assert_uint_eq(times(logged(), "next"), 1);
    scratch_remove(dir);
}
END_TEST

/* Bound to one name, this name alone is the server's; bound to all addresses, each name is. */
START_TEST(a_server_of_one_name_has_no_other)
{
    const struct web_guard named = {8421, "node7", false, TOKEN};
    const struct web_guard all_v6 = {8421, "::", false, TOKEN};
    ck_assert(passes(&named, KNOWN("node7:8421")));
    ck_assert(!passes(&named, KNOWN("node8:8421")));
    ck_assert(!passes(&named, KNOWN("node70:8421")));
    ck_assert(!passes(&named, KNOWN("node:8421")));
    ck_assert(!passes(&named, KNOWN("127.0.0.1:8421")));
    ck_assert(passes(&all_v6, KNOWN("node7:8421")));
    ck_assert(passes(&all_v6, KNOWN("[fd00::7]:8421")));
    ck_assert(!passes(&all_v6, KNOWN("node7:8422")));
    ck_assert(!passes(&all_v6, (struct web_asked){.host = {"", 0}, .token = MS_STR(TOKEN)}));
}
END_TEST

TEST_MAIN("web_guard", names_of_this_machine_pass, other_names_and_ports_do_not_pass,
          the_port_of_a_name_without_one_is_80, a_name_as_long_as_there_is_room_for,
          only_our_own_pages_may_ask, everything_but_the_page_needs_the_token,
          a_token_with_one_wrong_digit_is_another, why_a_token_is_refused_is_told,
          requests_of_other_sites_are_refused, a_link_on_another_site_opens_the_page,
          addresses_of_this_machine_are_known, tokens_are_long_and_differ,
          every_digit_of_a_token_is_drawn, a_refusal_shows_what_was_asked,
          a_flood_of_refusals_is_counted_and_not_written, no_more_than_a_few_leave_nothing_to_tell,
          a_server_of_one_name_has_no_other)
