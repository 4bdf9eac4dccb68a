/* SPDX-License-Identifier: MIT
 *
 * A token is right as a whole or not at all.
 */
#include "tests/support/check.h"

#include "web/serve/guard.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static bool passes(const char *token, size_t n)
{
    const struct web_guard g = {
        .port = 8421, .host = "127.0.0.1", .only_this_machine = true, .token = TOKEN};
    const struct web_asked a = {.host = MS_STR("127.0.0.1:8421"), .token = {token, (uint32_t)n}};
    return web_guard_refuses(&g, &a) == NULL;
}

START_TEST(each_character_of_a_token_counts)
{
    char token[] = TOKEN;
    ck_assert(passes(token, WEB_TOKEN));
    for (size_t i = 0; i < WEB_TOKEN; i++) {
        for (int bit = 0; bit < 8; bit++) {
            token[i] ^= (char)(1 << bit);
            ck_assert_msg(!passes(token, WEB_TOKEN), "bit %d of character %zu", bit, i);
            token[i] ^= (char)(1 << bit);
        }
    }
}
END_TEST

START_TEST(a_prefix_and_a_longer_token_are_refused)
{
    for (size_t n = 0; n < WEB_TOKEN; n++)
        ck_assert(!passes(TOKEN, n));
    ck_assert(!passes(TOKEN "0", WEB_TOKEN + 1));
    ck_assert(!passes(NULL, 0));
}
END_TEST

TEST_MAIN("web_token", each_character_of_a_token_counts, a_prefix_and_a_longer_token_are_refused)
