/* SPDX-License-Identifier: MIT */
#include "probe/base/arena.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#include <stdalign.h>

enum { MIB = 1 << 20 };

START_TEST(blocks_are_aligned_apart_and_keep_their_bytes)
{
    struct ms_arena *a = ms_arena_new(16 * MIB);
    enum { BLOCKS = 3000 };
    static unsigned char *p[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        p[i] = ms_arena_alloc(a, i);
        ck_assert_ptr_nonnull(p[i]);
        ck_assert_uint_eq((uintptr_t)p[i] % alignof(max_align_t), 0);
        memset(p[i], (int)(i % 251), i);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t k = 0; k < i; k++) {
            if (p[i][k] != i % 251)
                ck_abort_msg("block %zu changed at %zu", i, k);
        }
    }
    ms_arena_free(a);
}
END_TEST

START_TEST(text_is_packed_and_the_next_block_aligned_again)
{
    struct ms_arena *a = ms_arena_new(MIB);
    char *x = ms_arena_text(a, 3);
    char *y = ms_arena_text(a, 3);
    ck_assert_ptr_eq(y, x + 3);
    double *d = ms_arena_alloc(a, sizeof *d);
    ck_assert_uint_eq((uintptr_t)d % alignof(max_align_t), 0);
    ms_arena_free(a);
}
END_TEST

START_TEST(calloc_gives_zeros_also_in_used_memory)
{
    for (int round = 0; round < 2; round++) {
        struct ms_arena *a = ms_arena_new(MIB);
        unsigned char *p = ms_arena_calloc(a, 100, 37);
        for (size_t i = 0; i < 3700; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xAA, 3700);
        ms_arena_free(a);
    }
}
END_TEST

START_TEST(a_copied_text_ends_in_nul_and_is_independent)
{
    struct ms_arena *a = ms_arena_new(MIB);
    char text[] = "name";
    struct ms_str s = ms_arena_str(a, ms_str_of(text));
    text[0] = 'x';
    ck_assert_str_eq(s.p, "name");
    ck_assert_uint_eq(s.n, 4);
    struct ms_str empty = ms_arena_str(a, MS_STR_NONE);
    ck_assert_ptr_nonnull(empty.p);
    ck_assert_str_eq(empty.p, "");
    ms_arena_free(a);
}
END_TEST

START_TEST(the_limit_is_reached_exactly_and_never_passed)
{
    struct ms_err e = {0};
    struct ms_arena *a = ms_arena_new(1000);
    ck_assert_ptr_nonnull(ms_arena_text(a, 600));
    ck_assert_ptr_null(ms_arena_text(a, 401));
    ck_assert_int_eq(ms_arena_fail(a, &e), MS_E_LIMIT);
    ck_says(e, "1000 bytes");
    ck_assert_ptr_nonnull(ms_arena_text(a, 400));
    ck_assert_uint_eq(ms_arena_used(a), 1000);
    ck_assert_ptr_null(ms_arena_text(a, 1));
    ck_assert_ptr_null(ms_arena_str(a, MS_STR("x")).p);
    ms_arena_free(a);
}
END_TEST

START_TEST(a_count_that_overflows_is_over_the_limit)
{
    struct ms_arena *a = ms_arena_new(SIZE_MAX);
    volatile size_t huge = SIZE_MAX / 8;
    ck_assert_ptr_null(ms_arena_calloc(a, huge, 16));
    ck_assert_int_eq(ms_arena_fail(a, NULL), MS_E_LIMIT);
    ms_arena_free(a);
}
END_TEST

START_TEST(a_small_arena_holds_little_and_freeing_gives_all_back)
{
    size_t live = ms_mem_live();
    struct ms_arena *a = ms_arena_new(MIB);
    ck_assert_ptr_nonnull(ms_arena_alloc(a, 10));
    ck_assert_uint_lt(ms_mem_live() - live, 5000);
    for (int i = 0; i < 1000; i++)
        ck_assert_ptr_nonnull(ms_arena_text(a, 1000));
    ms_arena_free(a);
    ck_assert_uint_eq(ms_mem_live(), live);
    ms_arena_free(NULL);
}
END_TEST

START_TEST(few_calls_serve_many_blocks)
{
    struct ms_arena *a = ms_arena_new(64 * MIB);
    uint64_t calls = ms_mem_calls();
    for (int i = 0; i < 100000; i++)
        ck_assert_ptr_nonnull(ms_arena_alloc(a, 100));
    ck_assert_uint_lt(ms_mem_calls() - calls, 60);
    ms_arena_free(a);
}
END_TEST

START_TEST(out_of_memory_is_told_apart_from_the_limit_and_leaks_nothing)
{
    size_t live = ms_mem_live();
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        ms_mem_fail_at(n);
        struct ms_arena *a = ms_arena_new(MIB);
        for (int i = 0; a != NULL && i < 200; i++) {
            if (ms_arena_alloc(a, 1000) == NULL)
                ck_assert_int_eq(ms_arena_fail(a, NULL), MS_E_NOMEM);
        }
        failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(a == NULL || failed || ms_arena_used(a) >= 200 * 1000);
        ms_arena_free(a);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
    ck_assert_uint_gt(n, 4);
}
END_TEST

START_TEST(an_arena_goes_on_after_it_was_refused_memory)
{
    struct ms_arena *a = ms_arena_new(MIB);
    ms_mem_fail_at(1);
    ck_assert_ptr_null(ms_arena_alloc(a, 10000));
    ms_mem_fail_at(0);
    ck_assert_uint_eq(ms_arena_used(a), 0);
    ck_assert_ptr_nonnull(ms_arena_alloc(a, 10000));
    ms_arena_free(a);
}
END_TEST

START_TEST(a_block_larger_than_memory_is_refused_without_a_limit)
{
    struct ms_arena *a = ms_arena_new(SIZE_MAX);
    volatile size_t huge = SIZE_MAX;
    ck_assert_ptr_null(ms_arena_text(a, huge));
    huge = SIZE_MAX - 40;
    ck_assert_ptr_null(ms_arena_alloc(a, huge));
    ck_assert_int_eq(ms_arena_fail(a, NULL), MS_E_NOMEM);
    ck_assert_ptr_nonnull(ms_arena_alloc(a, 16));
    ms_arena_free(a);
}
END_TEST

START_TEST(the_limit_holds_for_what_alignment_costs_too)
{
    size_t live = ms_mem_live();
    struct ms_arena *a = ms_arena_new(MIB);
    while (ms_arena_alloc(a, 1) != NULL)
        ;
    ck_assert_int_eq(ms_arena_fail(a, NULL), MS_E_LIMIT);
    ck_assert_uint_le(ms_arena_used(a), MIB);
    ck_assert_uint_le(ms_mem_live() - live, MIB + 300 * 1024);
    ms_arena_free(a);
}
END_TEST

START_TEST(large_blocks_between_small_ones_waste_little)
{
    size_t live = ms_mem_live();
    struct ms_arena *a = ms_arena_new((size_t)256 * MIB);
    for (int i = 0; i < 100; i++) {
        ck_assert_ptr_nonnull(ms_arena_alloc(a, 300 * 1000));
        ck_assert_ptr_nonnull(ms_arena_alloc(a, 16));
    }
    /* A chunk, and what malloc rounds up. */
    size_t used = ms_arena_used(a);
    ck_assert_uint_le(ms_mem_live() - live, used + used / 50 + 256 * 1024);
    ms_arena_free(a);
}
END_TEST

TEST_MAIN("arena", blocks_are_aligned_apart_and_keep_their_bytes,
          text_is_packed_and_the_next_block_aligned_again, calloc_gives_zeros_also_in_used_memory,
          a_copied_text_ends_in_nul_and_is_independent,
          the_limit_is_reached_exactly_and_never_passed, a_count_that_overflows_is_over_the_limit,
          a_small_arena_holds_little_and_freeing_gives_all_back, few_calls_serve_many_blocks,
          out_of_memory_is_told_apart_from_the_limit_and_leaks_nothing,
          an_arena_goes_on_after_it_was_refused_memory,
          a_block_larger_than_memory_is_refused_without_a_limit,
          the_limit_holds_for_what_alignment_costs_too,
          large_blocks_between_small_ones_waste_little)
