/* SPDX-License-Identifier: MIT
 *
 * Records that wait for statistics: what stands in the place of each, and in which order they come.
 */
#include "probe/base/mem.h"
#include "probe/write/leaf_write.h"
#include "tests/support/check.h"

#include <inttypes.h>

static struct probe__late late;
static char taken[1 << 16];

static void take(void *ctx, struct ms_str record)
{
    unsigned *count = ctx;
    const size_t n = strlen(taken);
    ++*count;
    snprintf(taken + n, sizeof taken - n, "%.*s|", MS_STR_ARG(record));
}

/* The place of statistic `i` of tensor `n`, as leaf_write.c writes it. */
static void put_place(struct ms_buf *b, uint64_t n, unsigned i)
{
    char text[32];
    snprintf(text, sizeof text, "%c%0*" PRIx64, PROBE__LATER, PROBE__LATER_BYTES - 1, n << 4 | i);
    ms_buf_puts(b, text);
}

static void add(const char *text)
{
    ck_assert(probe__late_add(&late, ms_str_of(text)));
}

static unsigned release(const struct probe__figure *f, size_t n)
{
    unsigned count = 0;
    taken[0] = '\0';
    probe__late_release(&late, f, n, take, &count);
    ck_assert(!probe__late_any(&late));
    return count;
}

START_TEST(records_come_in_order_and_once)
{
    ck_assert(!probe__late_any(&late));
    add("one");
    add("");
    add("three");
    ck_assert(probe__late_any(&late));
    ck_assert_uint_eq(release(NULL, 0), 3);
    ck_assert_str_eq(taken, "one||three|");
    ck_assert_uint_eq(release(NULL, 0), 0);
    add("four");
    ck_assert_uint_eq(release(NULL, 0), 1);
    ck_assert_str_eq(taken, "four|");
    probe__late_free(&late);
}
END_TEST

START_TEST(each_kind_of_figure_is_JSON)
{
    const struct probe__figure f[PROBE_STATS] = {{.kind = PROBE_NUM_INT, .i = -7},
                                                 {.kind = PROBE_NUM_FLOAT, .v = 0.5},
                                                 {.kind = PROBE_NUM_BOOL, .v = 1},
                                                 {.kind = PROBE_NUM_NULL}};
    const struct probe__figure no[PROBE_STATS] = {{.kind = PROBE_NUM_BOOL, .v = 0}};
    struct ms_buf b = {.max = 1 << 12};
    ms_buf_puts(&b, "[");
    for (unsigned i = 0; i < PROBE_STATS; i++) {
        put_place(&b, 1, i);
        ms_buf_puts(&b, i + 1 < PROBE_STATS ? "," : "]");
    }
    for (int twice = 0; twice < 2; twice++)
        ck_assert(probe__late_add(&late, ms_buf_slice(&b)));
    ck_assert_uint_eq(release(f, PROBE_STATS), 2);
    ck_assert_str_eq(taken, "[-7,0.5,true,null]|[-7,0.5,true,null]|");
    ck_assert(probe__late_add(&late, ms_buf_slice(&b)));
    release(no, 1); /* of the others there are none */
    ck_assert_str_eq(taken, "[false,null,null,null]|");
    ms_buf_free(&b);
    probe__late_free(&late);
}
END_TEST

START_TEST(a_thousand_tensors_have_their_own_figures)
{
    enum { TENSORS = 1000 };
    static struct probe__figure f[TENSORS * PROBE_STATS];
    struct ms_buf b = {.max = 1 << 12};
    char wanted[64];
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        f[i] = (struct probe__figure){.kind = PROBE_NUM_INT, .i = (int64_t)i};
    for (uint64_t n = 1; n <= TENSORS; n++) {
        const unsigned i = (unsigned)(n % PROBE_STATS);
        ms_buf_clear(&b);
        put_place(&b, n, i);
        ms_buf_puts(&b, " of ");
        put_place(&b, n, 0);
        ck_assert(probe__late_add(&late, ms_buf_slice(&b)));
        ck_assert_uint_eq(release(f, sizeof f / sizeof *f), 1);
        snprintf(wanted, sizeof wanted, "%" PRIu64 " of %" PRIu64 "|", (n - 1) * PROBE_STATS + i,
                 (n - 1) * PROBE_STATS);
        ck_assert_str_eq(taken, wanted);
    }
    ms_buf_free(&b);
    probe__late_free(&late);
}
END_TEST

START_TEST(a_record_for_which_there_is_no_memory_leaves_the_others)
{
    const size_t live = ms_mem_live();
    add("one");
    static char large[1 << 16];
    memset(large, 'x', sizeof large - 1);
    for (uint64_t n = 1;; n++) {
        ms_mem_fail_at(n);
        const bool good = probe__late_add(&late, ms_str_of(large));
        const bool failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert(good != failed);
        if (good)
            break;
        ck_assert_uint_eq(late.ends.n, 1);
        ck_assert_uint_eq(late.text.n, 3);
    }
    add("last");
    release(NULL, 0);
    ck_assert(strncmp(taken, "one|", 4) == 0);
    probe__late_free(&late);
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

TEST_MAIN("late", records_come_in_order_and_once, each_kind_of_figure_is_JSON,
          a_thousand_tensors_have_their_own_figures,
          a_record_for_which_there_is_no_memory_leaves_the_others)
