/* SPDX-License-Identifier: MIT */
#include "probe/base/mem.h"

#include "tests/support/check.h"

#include <malloc.h>
#include <pthread.h>

START_TEST(live_bytes_follow_every_call)
{
    size_t before = ms_mem_live();
    char *p = ms_alloc(1000);
    ck_assert_uint_ge(ms_mem_live(), before + 1000);
    p = ms_realloc(p, 5000);
    ck_assert_uint_eq(ms_mem_live(), before + malloc_usable_size(p));
    p = ms_realloc(p, 10);
    ck_assert_uint_eq(ms_mem_live(), before + malloc_usable_size(p));
    ms_free(p);
    ck_assert_uint_eq(ms_mem_live(), before);
}
END_TEST

START_TEST(the_peak_remembers_the_most_and_starts_again_on_request)
{
    ms_mem_peak_reset();
    size_t before = ms_mem_live();
    ck_assert_uint_eq(ms_mem_peak(), before);
    ms_free(ms_alloc(1 << 20));
    ck_assert_uint_ge(ms_mem_peak(), before + (1 << 20));
    ms_mem_peak_reset();
    ck_assert_uint_eq(ms_mem_peak(), before);
}
END_TEST

START_TEST(realloc_keeps_the_contents)
{
    char *p = ms_realloc(NULL, 3);
    memcpy(p, "abc", 3);
    p = ms_realloc(p, 100000);
    ck_assert_mem_eq(p, "abc", 3);
    ms_free(p);
}
END_TEST

static void check_zeros(unsigned char *p)
{
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < 700; i++)
        ck_assert_uint_eq(p[i], 0);
    memset(p, 0xff, 700); /* what the next one may be made of */
    ms_free(p);
}

START_TEST(calloc_gives_zeros)
{
    check_zeros(ms_calloc(100, 7));
    check_zeros(ms_calloc_written(100, 7));
    check_zeros(ms_calloc_written(7, 100));
}
END_TEST

START_TEST(no_bytes_is_still_an_address_of_its_own)
{
    void *a = ms_alloc(0);
    void *b = ms_calloc(0, 0);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_ptr_ne(a, b);
    a = ms_realloc(a, 0);
    ck_assert_ptr_nonnull(a);
    ms_free(a);
    ms_free(b);
    ms_free(NULL);
}
END_TEST

START_TEST(a_size_that_cannot_be_had_fails_and_changes_nothing)
{
    /* volatile: the compiler would warn about what this test is for. */
    volatile size_t huge = SIZE_MAX / 2;
    char *p = ms_alloc(16);
    memcpy(p, "still here", 11);
    size_t live = ms_mem_live();
    ck_assert_ptr_null(ms_alloc(huge));
    ck_assert_ptr_null(ms_calloc(huge, 4));
    ck_assert_ptr_null(ms_calloc_written(huge, 1));
    ck_assert_ptr_null(ms_calloc_written(huge + 2, 2)); /* 2 bytes, were it to wrap */
    ck_assert_ptr_null(ms_realloc(p, huge));
    ck_assert_uint_eq(ms_mem_live(), live);
    ck_assert_str_eq(p, "still here");
    ms_free(p);
}
END_TEST

START_TEST(exactly_the_requested_allocation_fails)
{
    for (uint64_t n = 1; n <= 4; n++) {
        ms_mem_fail_at(n);
        void *p[4] = {ms_alloc(8), ms_calloc(1, 8), ms_realloc(NULL, 8), ms_alloc(8)};
        for (uint64_t i = 0; i < 4; i++) {
            ck_assert_int_eq(p[i] == NULL, i + 1 == n);
            ms_free(p[i]);
        }
        ck_assert(ms_mem_failed());
    }
    ms_mem_fail_at(0);
    ck_assert(!ms_mem_failed());
}
END_TEST

START_TEST(a_failed_realloc_leaves_the_block)
{
    char *p = ms_alloc(4);
    memcpy(p, "abc", 4);
    ms_mem_fail_at(1);
    ck_assert_ptr_null(ms_realloc(p, 1000));
    ms_mem_fail_at(0);
    ck_assert_str_eq(p, "abc");
    ms_free(p);
}
END_TEST

START_TEST(a_failure_that_is_switched_off_never_comes)
{
    ms_mem_fail_at(1);
    ms_mem_fail_at(0);
    void *p = ms_alloc(8);
    ck_assert_ptr_nonnull(p);
    ck_assert(!ms_mem_failed());
    ms_free(p);
}
END_TEST

START_TEST(calls_are_counted_once_each)
{
    uint64_t before = ms_mem_calls();
    void *p = ms_realloc(NULL, 8);
    p = ms_realloc(p, 16);
    ms_free(p);
    ms_free(ms_alloc(1));
    ms_free(ms_calloc(1, 1));
    ck_assert_uint_eq(ms_mem_calls(), before + 4);
}
END_TEST

START_TEST(size_arithmetic_reports_what_does_not_fit)
{
    static const struct {
        size_t a, b;
        bool mul, add;
    } table[] = {
        {0, SIZE_MAX, true, true},
        {1, SIZE_MAX, true, false},
        {2, SIZE_MAX / 2, true, true},
        {2, SIZE_MAX / 2 + 1, false, true},
        {(size_t)1 << 32, (size_t)1 << 32, false, true},
        {SIZE_MAX, SIZE_MAX, false, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t got;
        ck_assert_int_eq(ms_mul_size(table[i].a, table[i].b, &got), table[i].mul);
        ck_assert(!table[i].mul || got == table[i].a * table[i].b);
        ck_assert_int_eq(ms_add_size(table[i].a, table[i].b, &got), table[i].add);
        ck_assert(!table[i].add || got == table[i].a + table[i].b);
    }
}
END_TEST

static void *allocate_a_lot(void *unused)
{
    void *held[16] = {NULL};
    for (size_t i = 0; i < 4000; i++) {
        ms_free(held[i % 16]);
        held[i % 16] = ms_alloc(i % 700);
    }
    for (size_t i = 0; i < 16; i++)
        ms_free(held[i]);
    return unused;
}

START_TEST(figures_add_up_over_threads)
{
    size_t live = ms_mem_live();
    uint64_t calls = ms_mem_calls();
    pthread_t t[4];
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, allocate_a_lot, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(ms_mem_live(), live);
    ck_assert_uint_eq(ms_mem_calls(), calls + 4 * 4000);
    ck_assert_uint_ge(ms_mem_peak(), live);
}
END_TEST

TEST_MAIN("mem", live_bytes_follow_every_call,
          the_peak_remembers_the_most_and_starts_again_on_request, realloc_keeps_the_contents,
          calloc_gives_zeros, no_bytes_is_still_an_address_of_its_own,
          a_size_that_cannot_be_had_fails_and_changes_nothing,
          exactly_the_requested_allocation_fails, a_failed_realloc_leaves_the_block,
          a_failure_that_is_switched_off_never_comes, calls_are_counted_once_each,
          size_arithmetic_reports_what_does_not_fit, figures_add_up_over_threads)
