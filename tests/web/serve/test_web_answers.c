/* SPDX-License-Identifier: MIT
 *
 * Replies that are kept: what is found again, what is not, and who frees it.
 */
#include "web/serve/answers.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static struct ms_err err;

static struct web_answers *new_answers(size_t most)
{
    struct web_answers *a;
    ck_ok(web_answers_new(&a, most, &err), err);
    return a;
}

/* Finds a question; the reply must be `text`, NULL: none is kept. */
static uint64_t expect(struct web_answers *a, const char *question, uint64_t state,
                       const char *text)
{
    uint64_t asked;
    struct web_shared *s = web_answers_find(a, ms_str_of(question), state, &asked);
    ck_assert_msg((s != NULL) == (text != NULL), "%s of state %d", question, (int)state);
    if (s != NULL) {
        ck_assert_uint_eq(s->n, strlen(text));
        ck_assert_mem_eq(s->bytes, text, s->n);
        web_shared_drop_bytes(s->bytes);
    }
    return asked;
}

static bool keep(struct web_answers *a, const char *question, uint64_t state, uint64_t asked,
                 const char *text)
{
    struct web_shared *s = web_answers_keep(a, ms_str_of(question), state, asked, ms_str_of(text));
    web_shared_drop(s);
    return s != NULL;
}

START_TEST(a_kept_reply_is_found_by_its_whole_question)
{
    struct web_answers *a = new_answers(1 << 16);
    const uint64_t asked = expect(a, "/api/step?n=1", 1, NULL);
    ck_assert(keep(a, "/api/step?n=1", 1, asked, "one"));
    ck_assert(keep(a, "/api/step?n=12", 1, asked, "twelve"));
    expect(a, "/api/step?n=1", 1, "one");
    expect(a, "/api/step?n=12", 1, "twelve");
    expect(a, "/api/step?n=", 1, NULL);
    web_answers_free(a);
}
END_TEST

START_TEST(a_newer_state_has_other_replies)
{
    struct web_answers *a = new_answers(1 << 16);
    const uint64_t before = expect(a, "/api/about", 1, NULL);
    ck_assert(keep(a, "/api/about", 1, before, "old"));
    const uint64_t asked = expect(a, "/api/about", 2, NULL);
    /* A thread that began in the older state neither finds nor keeps anything. */
    expect(a, "/api/about", 1, NULL);
    ck_assert(!keep(a, "/api/about", 1, before, "late"));
    ck_assert(!keep(a, "/api/about", 1, asked, "late"));
    ck_assert(keep(a, "/api/about", 2, asked, "new"));
    expect(a, "/api/about", 2, "new");
    web_answers_free(a);
}
END_TEST

START_TEST(a_change_drops_all_replies_and_those_under_way)
{
    struct web_answers *a = new_answers(1 << 16);
    const uint64_t asked = expect(a, "/api/findings", 1, NULL);
    ck_assert(keep(a, "/api/findings", 1, asked, "none"));
    web_answers_forget(a);
    ck_assert(!keep(a, "/api/findings", 1, asked, "computed before the change"));
    expect(a, "/api/findings", 1, NULL);
    web_answers_free(a);
}
END_TEST

START_TEST(the_reply_that_was_not_asked_for_longest_gives_way)
{
    char question[32];
    struct web_answers *a = new_answers(1 << 20);
    const uint64_t asked = expect(a, "q0", 1, NULL);
    for (int i = 0; i < 256; i++) {
        snprintf(question, sizeof question, "q%d", i);
        ck_assert(keep(a, question, 1, asked, question));
    }
    expect(a, "q0", 1, "q0");
    ck_assert(keep(a, "one more", 1, asked, "1"));
    expect(a, "q1", 1, NULL);
    expect(a, "q0", 1, "q0");
    expect(a, "q2", 1, "q2");
    expect(a, "q255", 1, "q255");
    web_answers_free(a);
}
END_TEST

START_TEST(bytes_are_bounded)
{
    char text[1001] = "", question[16];
    memset(text, 'x', 1000);
    struct web_answers *a = new_answers(5000);
    const uint64_t asked = expect(a, "q0", 1, NULL);
    for (int i = 0; i < 8; i++) {
        snprintf(question, sizeof question, "q%d", i);
        ck_assert(keep(a, question, 1, asked, text));
    }
    expect(a, "q7", 1, text);
    expect(a, "q4", 1, text);
    expect(a, "q3", 1, NULL);
    /* The same question again takes the place of its older reply. */
    for (int i = 0; i < 8; i++)
        ck_assert(keep(a, "q7", 1, asked, text));
    expect(a, "q4", 1, text);
    /* A reply of more than a quarter would drop too many others. */
    char large[1301] = "";
    memset(large, 'x', 1300);
    ck_assert(!keep(a, "large", 1, asked, large));
    expect(a, "q4", 1, text);
    web_answers_free(a);
}
END_TEST

START_TEST(a_reply_outlives_the_list)
{
    uint64_t asked;
    struct web_answers *a = new_answers(1 << 16);
    ck_assert_ptr_null(web_answers_find(a, MS_STR("q"), 1, &asked));
    struct web_shared *s = web_answers_keep(a, MS_STR("q"), 1, asked, MS_STR("still being sent"));
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(s->users, 2);
    web_answers_free(a);
    ck_assert_uint_eq(s->users, 1);
    ck_assert_mem_eq(s->bytes, "still being sent", s->n);
    web_shared_drop(s);
    web_shared_drop(NULL);
    web_answers_free(NULL);
}
END_TEST

TEST_MAIN("web_answers", a_kept_reply_is_found_by_its_whole_question,
          a_newer_state_has_other_replies, a_change_drops_all_replies_and_those_under_way,
          the_reply_that_was_not_asked_for_longest_gives_way, bytes_are_bounded,
          a_reply_outlives_the_list)
