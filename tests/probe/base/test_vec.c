/* SPDX-License-Identifier: MIT */
#include "probe/base/vec.h"

#include "tests/support/check.h"

START_TEST(items_stay_where_they_were_pushed)
{
    MS_VEC(uint32_t) v = {0};
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t *slot = ms_vec_push(&v);
        ck_assert_ptr_nonnull(slot);
        *slot = i * 7;
    }
    ck_assert_uint_eq(v.n, 100000);
    for (uint32_t i = 0; i < 100000; i++)
        ck_assert_uint_eq(v.p[i], i * 7);
    ms_vec_free(&v);
    ck_assert_ptr_null(v.p);
    ck_assert_uint_eq(v.n, 0);
}
END_TEST

START_TEST(growing_copies_each_item_a_bounded_number_of_times)
{
    MS_VEC(uint64_t) v = {0};
    uint64_t calls = ms_mem_calls();
    for (size_t i = 0; i < 1000000; i++)
        ck_assert_ptr_nonnull(ms_vec_push(&v));
    ck_assert_uint_lt(ms_mem_calls() - calls, 40);
    ck_assert_uint_le(v.cap, v.n + v.n / 2 + 8);
    ms_vec_free(&v);
}
END_TEST

START_TEST(reserved_room_is_used_without_allocating)
{
    MS_VEC(double) v = {0};
    ck_assert(ms_vec_reserve(&v, 500));
    uint64_t calls = ms_mem_calls();
    for (size_t i = 0; i < 500; i++)
        ck_assert_ptr_nonnull(ms_vec_push(&v));
    ck_assert(ms_vec_reserve(&v, 500));
    ck_assert_uint_eq(ms_mem_calls(), calls);
    ms_vec_free(&v);
}
END_TEST

START_TEST(a_number_of_items_that_overflows_is_refused)
{
    MS_VEC(uint64_t) v = {0};
    *ms_vec_push(&v) = 42;
    ck_assert(!ms_vec_reserve(&v, SIZE_MAX));
    ck_assert(!ms_vec_reserve(&v, SIZE_MAX / 8 + 1));
    ck_assert(!ms_vec_reserve(&v, SIZE_MAX / 16));
    ck_assert_uint_eq(v.n, 1);
    ck_assert_uint_eq(v.p[0], 42);
    ms_vec_free(&v);
}
END_TEST

START_TEST(without_memory_the_vector_is_unchanged)
{
    MS_VEC(int) v = {0};
    ms_mem_fail_at(1);
    ck_assert_ptr_null(ms_vec_push(&v));
    ms_mem_fail_at(0);
    ck_assert_ptr_null(v.p);
    for (int i = 0; i < 8; i++)
        *ms_vec_push(&v) = i;
    ck_assert_uint_eq(v.n, v.cap);
    ms_mem_fail_at(1);
    ck_assert_ptr_null(ms_vec_push(&v));
    ms_mem_fail_at(0);
    ck_assert_uint_eq(v.n, 8);
    ck_assert_int_eq(v.p[7], 7);
    ms_vec_free(&v);
}
END_TEST

START_TEST(trim_gives_the_rest_back_and_keeps_the_items)
{
    MS_VEC(int) v = {0};
    ck_assert(ms_vec_reserve(&v, 10000));
    for (int i = 0; i < 10; i++)
        *ms_vec_push(&v) = i;
    size_t live = ms_mem_live();
    ms_vec_trim(&v);
    ck_assert_uint_eq(v.cap, 10);
    ck_assert_uint_lt(ms_mem_live(), live - 39000);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(v.p[i], i);
    ms_vec_free(&v);
}
END_TEST

START_TEST(trim_of_an_emptied_vector_gives_all_back)
{
    MS_VEC(int) v = {0};
    size_t live = ms_mem_live();
    ck_assert(ms_vec_reserve(&v, 10000));
    ms_vec_trim(&v);
    ck_assert_uint_eq(ms_mem_live(), live);
    ck_assert_uint_eq(v.cap, 0);
    ms_vec_trim(&v);
    ck_assert_ptr_nonnull(ms_vec_push(&v));
    ms_vec_free(&v);
}
END_TEST

START_TEST(a_trim_without_memory_changes_nothing)
{
    MS_VEC(int) v = {0};
    *ms_vec_push(&v) = 5;
    size_t cap = v.cap;
    ms_mem_fail_at(1);
    ms_vec_trim(&v);
    ms_mem_fail_at(0);
    ck_assert_uint_eq(v.cap, cap);
    ck_assert_int_eq(v.p[0], 5);
    ms_vec_free(&v);
}
END_TEST

TEST_MAIN("vec", items_stay_where_they_were_pushed,
          growing_copies_each_item_a_bounded_number_of_times,
          reserved_room_is_used_without_allocating, a_number_of_items_that_overflows_is_refused,
          without_memory_the_vector_is_unchanged, trim_gives_the_rest_back_and_keeps_the_items,
          trim_of_an_emptied_vector_gives_all_back, a_trim_without_memory_changes_nothing)
