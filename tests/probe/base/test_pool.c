/* SPDX-License-Identifier: MIT */
#include "probe/base/pool.h"

#include "probe/base/cpu.h"
#include "probe/base/mem.h"

#include "tests/support/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

enum { ITEMS = 2000 };

struct ctx {
    unsigned char seen[ITEMS];
    uint64_t sum_of_worker[64];
    size_t fail_from;  /* items from here on fail */
    size_t fail_every; /* where the item is a multiple of this; 0: none does */
    atomic_size_t started;
};

static enum ms_rc visit(void *p, size_t item, unsigned worker, struct ms_err *err)
{
    struct ctx *c = p;
    atomic_fetch_add(&c->started, 1);
    c->seen[item]++;
    c->sum_of_worker[worker] += item;
    if (c->fail_every != 0 && item >= c->fail_from && item % c->fail_every == 0)
        return ms_fail(err, MS_E_FORMAT, "item %zu", item);
    return MS_OK;
}

static struct ms_err err;

static struct ms_pool *pool_of(unsigned threads)
{
    struct ms_pool *pool;
    ms_err_clear(&err);
    ck_ok(ms_pool_new(&pool, threads, &err), err);
    return pool;
}

static const unsigned thread_counts[] = {1, 2, 3, 8};

START_TEST(every_item_runs_once_and_workers_never_share_a_number)
{
    struct ms_pool *pool = pool_of(thread_counts[_i]);
    ck_assert_uint_eq(ms_pool_threads(pool), thread_counts[_i]);
    for (int round = 0; round < 20; round++) {
        struct ctx c = {0};
        uint64_t sum = 0;
        ck_ok(ms_pool_run(pool, ITEMS, visit, &c, &err), err);
        for (size_t i = 0; i < ITEMS; i++)
            ck_assert_uint_eq(c.seen[i], 1);
        for (unsigned w = 0; w < 64; w++)
            sum += c.sum_of_worker[w];
        ck_assert_uint_eq(sum, (uint64_t)ITEMS * (ITEMS - 1) / 2);
    }
    ms_pool_free(pool);
}
END_TEST

START_TEST(the_lowest_failure_counts_whatever_the_threads)
{
    struct ms_pool *pool = pool_of(thread_counts[_i]);
    for (int round = 0; round < 200; round++) {
        struct ctx c = {.fail_from = 40, .fail_every = 7};
        ms_err_clear(&err);
        ck_assert_int_eq(ms_pool_run(pool, ITEMS, visit, &c, &err), MS_E_FORMAT);
        ck_assert_str_eq(err.msg, "item 42");
        ck_assert_int_eq(err.rc, MS_E_FORMAT);
    }
    ms_pool_free(pool);
}
END_TEST

START_TEST(after_a_failure_at_once_nearly_nothing_starts)
{
    struct ms_pool *pool = pool_of(1);
    struct ctx c = {.fail_from = 5, .fail_every = 1};
    ck_assert_int_eq(ms_pool_run(pool, ITEMS, visit, &c, NULL), MS_E_FORMAT);
    ck_assert_uint_eq(atomic_load(&c.started), 6);
    ms_pool_free(pool);
}
END_TEST

START_TEST(a_pool_works_again_after_a_failure)
{
    struct ms_pool *pool = pool_of(3);
    struct ctx bad = {.fail_every = 1};
    struct ctx good = {0};
    ck_assert_int_eq(ms_pool_run(pool, ITEMS, visit, &bad, NULL), MS_E_FORMAT);
    ck_ok(ms_pool_run(pool, ITEMS, visit, &good, &err), err);
    ck_assert_uint_eq(atomic_load(&good.started), ITEMS);
    ms_pool_free(pool);
}
END_TEST

static enum ms_rc interrupted(void *p, size_t item, unsigned worker, struct ms_err *e)
{
    (void)p;
    (void)worker;
    (void)e;
    return item == 10 ? MS_E_INTERRUPTED : MS_OK;
}

START_TEST(an_item_that_leaves_no_message_gets_one)
{
    struct ms_pool *pool = pool_of(2);
    ck_assert_int_eq(ms_pool_run(pool, ITEMS, interrupted, NULL, &err), MS_E_INTERRUPTED);
    ck_assert_str_eq(err.msg, "interrupted");
    ms_pool_free(pool);
}
END_TEST

START_TEST(an_earlier_failure_of_the_caller_is_kept)
{
    struct ctx c = {.fail_every = 1};
    ms_err_clear(&err);
    ms_fail(&err, MS_E_IO, "first");
    ck_assert_int_eq(ms_pool_run(NULL, 3, visit, &c, &err), MS_E_FORMAT);
    ck_assert_str_eq(err.msg, "first");
}
END_TEST

START_TEST(no_pool_and_no_items_are_fine)
{
    struct ctx c = {0};
    ms_err_clear(&err);
    ck_ok(ms_pool_run(NULL, ITEMS, visit, &c, &err), err);
    ck_assert_uint_eq(atomic_load(&c.started), ITEMS);
    ck_assert_uint_eq(ms_pool_threads(NULL), 1);
    struct ms_pool *pool = pool_of(4);
    ck_ok(ms_pool_run(pool, 0, visit, &c, &err), err);
    ck_assert_uint_eq(atomic_load(&c.started), ITEMS);
    ms_pool_free(pool);
    ms_pool_free(NULL);
}
END_TEST

START_TEST(zero_threads_means_one_per_processor_and_too_many_are_refused)
{
    struct ms_pool *pool = pool_of(0);
    ck_assert_uint_eq(ms_pool_threads(pool), ms_cpu_count());
    ms_pool_free(pool);
    ck_assert_int_eq(ms_pool_new(&pool, 5000, &err), MS_E_ARG);
    ck_assert_ptr_null(pool);
    ck_says(err, "at most 1024");
}
END_TEST

static enum ms_rc see_mask(void *p, size_t item, unsigned worker, struct ms_err *e)
{
    sigset_t set;
    (void)item;
    (void)e;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    bool as_meant = sigismember(&set, SIGTERM) == (worker != 0) && !sigismember(&set, SIGSEGV);
    atomic_fetch_add((atomic_int *)p, as_meant ? 0 : 1);
    return MS_OK;
}

START_TEST(workers_leave_signals_to_the_thread_that_made_them)
{
    atomic_int wrong = 0;
    struct ms_pool *pool = pool_of(4);
    ck_ok(ms_pool_run(pool, ITEMS, see_mask, &wrong, &err), err);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    ms_pool_free(pool);
}
END_TEST

START_TEST(running_out_of_memory_is_reported_and_nothing_is_kept)
{
    struct ms_pool *pool;
    size_t live = ms_mem_live();
    ms_err_clear(&err);
    ms_mem_fail_at(1);
    ck_assert_int_eq(ms_pool_new(&pool, 4, &err), MS_E_NOMEM);
    ms_mem_fail_at(0);
    ms_pool_free(pool_of(4));
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pool");
    const int counts = (int)(sizeof thread_counts / sizeof *thread_counts);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_item_runs_once_and_workers_never_share_a_number, 0, counts);
    tcase_add_loop_test(tc, the_lowest_failure_counts_whatever_the_threads, 0, counts);
    tcase_add_test(tc, after_a_failure_at_once_nearly_nothing_starts);
    tcase_add_test(tc, a_pool_works_again_after_a_failure);
    tcase_add_test(tc, an_item_that_leaves_no_message_gets_one);
    tcase_add_test(tc, an_earlier_failure_of_the_caller_is_kept);
    tcase_add_test(tc, no_pool_and_no_items_are_fine);
    tcase_add_test(tc, zero_threads_means_one_per_processor_and_too_many_are_refused);
    tcase_add_test(tc, workers_leave_signals_to_the_thread_that_made_them);
    tcase_add_test(tc, running_out_of_memory_is_reported_and_nothing_is_kept);
    return run_case("pool", tc);
}
