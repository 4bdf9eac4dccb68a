/* SPDX-License-Identifier: MIT
 *
 * jread: a text larger than its limits; a program of its own, since reading it takes seconds.
 */
#include "probe/base/jread.h"
#include "tests/support/check.h"

#include <sys/mman.h>

/* More than 4 GiB of text from a few pages that are mapped again and again, between two of
 * their own that hold the quotes. */
START_TEST(a_string_of_four_gibibytes_is_refused)
{
#if defined(__SANITIZE_THREAD__)
    /* It keeps a history of every byte that is read. */
    puts("skip a_string_of_four_gibibytes_is_refused: too much for ThreadSanitizer");
    return;
#endif
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t piece = (size_t)64 << 20;
    const size_t total = page + 65 * piece + page;
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(ftruncate(fileno(f), (off_t)piece), 0);
    char *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    for (size_t at = page; at < total - page; at += piece)
        ck_assert_ptr_ne(
            mmap(p + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(f), 0),
            MAP_FAILED);
    memset(p, 'x', page + piece);
    memset(p + total - page, 'x', page);
    p[0] = p[total - 1] = '"';
    struct ms_jread r;
    struct ms_err e = {0};
    ms_jread_init(&r, p, total, 0);
    ck_assert_int_eq(ms_jread_next(&r), MS_J_ERR);
    ck_assert_int_eq(ms_jread_fail(&r, &e), MS_E_LIMIT);
    ck_says(e, "4 GiB");
    munmap(p, total);
    fclose(f);
}
END_TEST

TEST_MAIN("jread_large", a_string_of_four_gibibytes_is_refused)
