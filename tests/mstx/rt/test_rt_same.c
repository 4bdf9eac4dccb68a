/* SPDX-License-Identifier: MIT
 *
 * rt_same: it says what strcmp() says, wherever the text lies and however it differs.  The text
 * ends where a page begins that may not be touched, so reading one byte too many ends the test.
 */
#include "mstx/rt/same_text.h"

#include "tests/support/check.h"

#include <sys/mman.h>

enum { LONGEST = 70, ROOM = 8 };

static char *page_end; /* of one that may be read; the next may not */

static void make_pages(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_int_eq(mprotect(p + page, page, PROT_NONE), 0);
    page_end = p + page;
}

static void fill(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('a' + i % 26);
    p[n] = '\0';
}

/* As a text lies in strings.seg: something in front of it and behind it. */
static char stored_bytes[ROOM + LONGEST + 1 + ROOM];
static const char *store(size_t n)
{
    memset(stored_bytes, '#', sizeof stored_bytes);
    fill(stored_bytes + ROOM, n);
    return stored_bytes + ROOM;
}

static void agrees(size_t n, const char *text)
{
    const char *stored = store(n);
    ck_assert_msg(rt_same(stored, n, text) == (strcmp(stored, text) == 0), "%s of %zu: '%s'",
                  stored, n, text);
}

/* So many bytes before the end of the page. */
static char *place(size_t n, size_t before)
{
    char *text = page_end - before - n - 1;
    memset(page_end - before - n - 9, '!', n + 9 + before);
    fill(text, n);
    return text;
}

START_TEST(equal_texts_are_the_same_wherever_they_lie)
{
    make_pages();
    for (size_t n = 0; n <= LONGEST; n++)
        for (size_t before = 0; before < 16; before++)
            ck_assert(rt_same(store(n), n, place(n, before)));
}
END_TEST

START_TEST(one_byte_that_differs_is_seen)
{
    make_pages();
    for (size_t n = 1; n <= LONGEST; n++)
        for (size_t before = 0; before < 16; before++)
            for (size_t at = 0; at < n; at++) {
                char *text = place(n, before);
                text[at] ^= 0x20;
                ck_assert(!rt_same(store(n), n, text));
            }
}
END_TEST

START_TEST(a_shorter_and_a_longer_text_are_others)
{
    make_pages();
    for (size_t n = 0; n <= LONGEST - 9; n++)
        for (size_t other = 0; other < n + 9; other++)
            for (size_t before = 0; before < 8; before++)
                agrees(n, place(other, before));
}
END_TEST

START_TEST(what_stands_around_a_text_does_not_count)
{
    char text[32] = "########";
    const char two[32] = "!!!!!!!!xy\0!!!!!!!", one[32] = "!!!!!!!!x\0!!!!!!!!";
    for (size_t i = 0; i < 8; i++) {
        memcpy(text + 8 + i, "xy\0?????", 8);
        ck_assert(rt_same(two + ROOM, 2, text + 8 + i));
        ck_assert(!rt_same(one + ROOM, 1, text + 8 + i));
        text[8 + i] = '#';
    }
}
END_TEST

TEST_MAIN("rt same", equal_texts_are_the_same_wherever_they_lie, one_byte_that_differs_is_seen,
          a_shorter_and_a_longer_text_are_others, what_stands_around_a_text_does_not_count)
