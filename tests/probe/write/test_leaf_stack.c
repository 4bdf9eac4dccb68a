/* SPDX-License-Identifier: MIT
 *
 * Leaves are written on the thread of a training: its stack may be small, and memory may be short.
 */
#include "probe/base/mem.h"
#include "probe/write/leaf_write.h"
#include "tests/support/check.h"

#include <limits.h>
#include <pthread.h>

/* A sanitizer widens the frames. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 1 << 20 };
#else
enum { STACK = 40 << 10 };
#endif

/* Every other element of a row: the elements are gathered. */
enum { COUNT = 5000 };
static uint64_t elements[2 * COUNT];
static char text[1 << 14];

static bool write_leaf(enum ms_dtype dtype, enum probe_summary summary)
{
    const struct probe__style style = {.summary = summary};
    const struct probe_tensor t = {.dtype = dtype,
                                   .ndim = 1,
                                   .shape = {COUNT},
                                   .stride = {2},
                                   .count = COUNT,
                                   .data = elements};
    struct ms_jwrite json;
    bool odd = false;
    ms_jwrite_init(&json, 0, 1 << 16);
    probe__leaf_begin(&json, &style, &t, &(struct probe__leaf_as){.requires_grad = true}, &odd);
    ms_jwrite_obj_end(&json);
    const bool ok = json.err.rc == MS_OK;
    if (ok)
        snprintf(text, sizeof text, "%.*s", (int)json.buf.n, json.buf.p);
    ms_jwrite_free(&json);
    return ok;
}

static void fill(void)
{
    for (uint64_t i = 0; i < 2 * COUNT; i++)
        elements[i] = (UINT64_C(1) << 60) + i;
}

static void *write_all(void *unused)
{
    (void)unused;
    for (int summary = 0; summary <= PROBE_SUMMARY_XOR; summary++)
        ck_assert(write_leaf(MS_DT_I64, (enum probe_summary)summary));
    ck_assert(write_leaf(MS_DT_F32, PROBE_SUMMARY_STATISTICS));
    return NULL;
}

START_TEST(a_small_stack_is_enough)
{
    pthread_attr_t attributes;
    pthread_t thread;
    /* Some systems give no thread less: 128 KiB on aarch64. */
    const size_t least = PTHREAD_STACK_MIN, stack = least > STACK ? least : STACK;
    fill();
    write_all(NULL); /* the processor and the tables are looked up here */
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, stack), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, write_all, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}
END_TEST

START_TEST(without_memory_pieces_are_smaller_and_the_values_the_same)
{
    char whole[sizeof text];
    unsigned written = 0;
    fill();
    for (int summary = 0; summary <= PROBE_SUMMARY_XOR; summary++) {
        ck_assert(write_leaf(MS_DT_I64, (enum probe_summary)summary));
        memcpy(whole, text, sizeof text);
        for (unsigned at = 1; at <= 4; at++) {
            ms_mem_fail_at(at);
            written += write_leaf(MS_DT_I64, (enum probe_summary)summary);
            ms_mem_fail_at(0);
            ck_assert_str_eq(text, whole);
            ck_assert_uint_eq(ms_mem_live(), 0);
        }
    }
    ck_assert_uint_ge(written, 2 * (PROBE_SUMMARY_XOR + 1)); /* the text itself needs memory */
}
END_TEST

TEST_MAIN("leaf_stack", a_small_stack_is_enough,
          without_memory_pieces_are_smaller_and_the_values_the_same)
