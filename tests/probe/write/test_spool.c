/* SPDX-License-Identifier: MIT
 *
 * Tensors that wait in a ring for the disk: each file has its own bytes, however full the ring is
 * and wherever its end lies.
 */
#include "probe/base/mem.h"
#include "probe/write/spool.h"
#include "tests/support/check.h"

#include <pthread.h>

enum { RING = 8192, SIZE_MAX_BYTES = 7000 };

static struct ms_err err;
static char dir[64];
static struct probe__spool *spool;

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
}

static void tear_down(void)
{
    probe__spool_free(spool);
    spool = NULL;
    scratch_remove(dir);
}

/* Bytes that tell the number and the place. */
static void fill(uint8_t *p, uint64_t n, unsigned number)
{
    for (uint64_t i = 0; i < n; i++)
        p[i] = (uint8_t)(number * 31 + i * 7 + i / 251);
}

/* Puts the bytes of a number into the file of another. */
static bool put_as(unsigned file, unsigned number, uint64_t n)
{
    static _Thread_local uint8_t bytes[SIZE_MAX_BYTES];
    char name[32];
    struct probe_tensor t = {.contiguous = true};
    ck_ok(probe__tensor_set(&t, MS_DT_U8, &n, 1, &err), err);
    fill(bytes, n, number);
    t.data = bytes;
    snprintf(name, sizeof name, "%u.npy", file);
    return probe__spool_put(spool, dir, name, &t);
}

static bool put(unsigned number, uint64_t n)
{
    return put_as(number, number, n);
}

static void expect_in(unsigned file, unsigned number, uint64_t n)
{
    static uint8_t bytes[SIZE_MAX_BYTES];
    char path[128];
    struct probe_tensor t;
    struct ms_err e = {0};
    snprintf(path, sizeof path, "%s/%u.npy", dir, file);
    ck_ok(probe_tensor_open(&t, path, 1 << 20, &e), e);
    ck_assert_uint_eq(t.count, n);
    fill(bytes, n, number);
    ck_assert_msg(n == 0 || memcmp(t.data, bytes, n) == 0, "tensor %u of %d bytes", number, (int)n);
    probe_tensor_close(&t);
}

static void expect(unsigned number, uint64_t n)
{
    expect_in(number, number, n);
}

static void open_spool(size_t ring)
{
    ck_ok(probe__spool_new(&spool, ring, PROBE_FILE_NPY, &err), err);
}

/* Sizes that walk through all remainders, so that items end at, before and behind the end of the
 * ring. */
static uint64_t size_of(unsigned i)
{
    return i % 11 == 0 ? 0 : (i * 389) % SIZE_MAX_BYTES;
}

START_TEST(every_file_has_its_own_bytes)
{
    enum { TENSORS = 400 };
    open_spool(RING);
    for (unsigned i = 0; i < TENSORS; i++)
        ck_assert(put(i, size_of(i)));
    ck_ok(probe__spool_drain(spool, &err), err);
    for (unsigned i = 0; i < TENSORS; i++)
        expect(i, size_of(i));
}
END_TEST

START_TEST(what_is_larger_than_the_ring_is_written_at_once)
{
    open_spool(4096);
    for (unsigned i = 0; i < 20; i++)
        ck_assert(put(i, i % 2 == 0 ? SIZE_MAX_BYTES : 100));
    ck_ok(probe__spool_drain(spool, &err), err);
    for (unsigned i = 0; i < 20; i++)
        expect(i, i % 2 == 0 ? SIZE_MAX_BYTES : 100);
}
END_TEST

START_TEST(a_ring_is_used_again_after_each_drain)
{
    open_spool(RING);
    for (unsigned round = 0; round < 30; round++) {
        for (unsigned i = 0; i < 8; i++)
            ck_assert(put(round * 8 + i, size_of(round + i + 1)));
        ck_ok(probe__spool_drain(spool, &err), err);
        for (unsigned i = 0; i < 8; i++)
            expect(round * 8 + i, size_of(round + i + 1));
    }
}
END_TEST

static void *put_some(void *arg)
{
    const unsigned first = *(const unsigned *)arg;
    for (unsigned i = first; i < first + 100; i++)
        ck_assert(put(i, size_of(i)));
    return NULL;
}

START_TEST(threads_share_a_ring)
{
    pthread_t thread[4];
    unsigned first[4];
    open_spool(RING);
    for (unsigned i = 0; i < 4; i++) {
        first[i] = i * 100;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, put_some, &first[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    ck_ok(probe__spool_drain(spool, &err), err);
    for (unsigned i = 0; i < 400; i++)
        expect(i, size_of(i));
}
END_TEST

/* As when a graph runs backward twice: two writers of one file would overwrite each other. */
START_TEST(of_one_name_the_last_tensor_stays)
{
    enum { ROUNDS = 60, TENSORS = 24, FILES = 2 };
    open_spool(RING);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < TENSORS; i++)
            ck_assert(put_as(i % FILES, round + i, 1 + size_of(round + i)));
        ck_ok(probe__spool_drain(spool, &err), err);
        for (unsigned i = TENSORS - FILES; i < TENSORS; i++)
            expect_in(i % FILES, round + i, 1 + size_of(round + i));
    }
}
END_TEST

START_TEST(the_first_failure_is_told_at_the_drain_and_is_over_then)
{
    char no_folder[96];
    snprintf(no_folder, sizeof no_folder, "%s/file", dir);
    write_file(no_folder, "x", 1); /* where a folder is needed */
    open_spool(RING);
    struct probe_tensor t = {.contiguous = true};
    const uint64_t one = 1;
    ck_ok(probe__tensor_set(&t, MS_DT_U8, &one, 1, &err), err);
    t.data = "x";
    (void)probe__spool_put(spool, no_folder, "a.npy", &t);
    ck_assert_int_eq(probe__spool_drain(spool, &err), MS_E_IO);
    ck_says(err, no_folder);
    ms_err_clear(&err);
    ck_assert(put(1, 10));
    ck_ok(probe__spool_drain(spool, &err), err);
    expect(1, 10);
}
END_TEST

START_TEST(freeing_waits_for_all_files_and_gives_all_back)
{
    const size_t live = ms_mem_live();
    open_spool(RING);
    for (unsigned i = 0; i < 50; i++)
        ck_assert(put(i, size_of(i)));
    probe__spool_free(spool);
    spool = NULL;
    for (unsigned i = 0; i < 50; i++)
        expect(i, size_of(i));
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "spool", every_file_has_its_own_bytes,
                 what_is_larger_than_the_ring_is_written_at_once,
                 a_ring_is_used_again_after_each_drain, threads_share_a_ring,
                 of_one_name_the_last_tensor_stays,
                 the_first_failure_is_told_at_the_drain_and_is_over_then,
                 freeing_waits_for_all_files_and_gives_all_back)
