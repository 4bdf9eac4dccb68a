/* SPDX-License-Identifier: MIT
 *
 * One segment file: how many records it gives, what is said of one that is cut off, and a flight
 * recorder that is still writing.
 */
#include "mstx/read/segment.h"
#include "probe/base/mem.h"
#include "tests/support/check.h"
#include "tests/support/make_capture.h"

#include <fcntl.h>
#include <unistd.h>

static struct ms_err err;
static char dir[64], run[80], ring[400], texts[400];
static struct mstx_segment seg;
static unsigned told;
static char last_told[512];
static size_t live;

static void hear(void *ctx, const char *file, struct ms_err *e)
{
    (void)ctx;
    told++;
    snprintf(last_told, sizeof last_told, "%s: %s", file, e->msg);
}
static const struct mstx_problems problems = {.fn = hear};

static void set_up(void)
{
    ms_err_clear(&err);
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    told = 0;
    live = ms_mem_live();
}

static void tear_down(void)
{
    mstx__segment_close(&seg);
    ck_assert_uint_eq(ms_mem_live(), live);
    scratch_remove(dir);
}

/* A ring of so many marks, and texts of two entries. */
static void make_capture(unsigned marks)
{
    struct maker m;
    maker_begin(&m, run, 0, 77);
    const uint32_t one = maker_text(&m, "one");
    maker_text(&m, "another");
    maker_ring(&m, 1, 1, 77);
    for (unsigned i = 0; i < marks; i++)
        maker_mark(&m, i + 1, one, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct ms_dir list;
    ck_ok(ms_dir_list(&list, m.dir, &err), err);
    ck_assert_uint_eq(list.names.n, 2);
    for (size_t i = 0; i < 2; i++) {
        const char *name = list.names.p[i].p;
        snprintf(strcmp(name, MSTX_STRINGS) == 0 ? texts : ring, sizeof ring, "%s/%s", m.dir, name);
    }
    ms_dir_free(&list);
}

/* Changes bytes of a file. */
static void patch(const char *path, size_t at, const void *p, size_t n)
{
    const int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, p, n, (off_t)at), (ssize_t)n);
    close(fd);
}
#define PATCH(path, field, type, v)                                                                \
    patch(path, offsetof(struct mstx_seg, field), &(type){v}, sizeof(type))

static void open_ring(void)
{
    mstx__segment_close(&seg);
    told = 0;
    ck_ok(mstx__segment_open(&seg, ring, MSTX_KIND_RING, &problems, &err), err);
}

/* Opens the ring and says how many records it has, and how often something was told. */
static void expect(uint64_t records, unsigned tellings)
{
    open_ring();
    ck_assert_uint_eq(seg.n, records);
    ck_assert_msg(told == tellings, "told %u times, last %s", told, last_told);
    for (uint64_t i = 0; i < seg.n; i++)
        ck_assert_uint_eq(seg.rec[i].ticks, TICKS_0 + i + 1);
}

START_TEST(records_are_counted_by_the_head)
{
    make_capture(9);
    expect(9, 0);
    ck_assert_ptr_null(seg.copy);
    PATCH(ring, capacity, uint64_t, 20); /* more room than is used */
    expect(9, 0);
    PATCH(ring, head, uint64_t, 4);
    expect(4, 0);
    PATCH(ring, capacity, uint64_t, 4);
    expect(4, 0);
    PATCH(ring, head, uint64_t, 5); /* one behind the capacity */
    expect(4, 1);
    ck_assert_ptr_nonnull(strstr(last_told, "head is 5, behind the capacity of 4"));
}
END_TEST

START_TEST(a_file_that_is_cut_off_gives_its_whole_records)
{
    make_capture(9);
    const off_t whole = MSTX_SEG_HEADER + 9 * MSTX_REC_SIZE;
    for (int lost = 0; lost < 9; lost++) {
        ck_assert_int_eq(truncate(ring, whole - lost * MSTX_REC_SIZE), 0);
        expect((uint64_t)(9 - lost), lost != 0);
        if (lost != 0)
            continue;
        ck_assert_int_eq(truncate(ring, whole - 1), 0);
        expect(8, 1);
        ck_assert_ptr_nonnull(strstr(last_told, "cut off: holds 8 of 9 records"));
    }
    ck_assert_int_eq(truncate(ring, MSTX_SEG_HEADER), 0);
    expect(0, 1);
    ck_assert_int_eq(truncate(ring, MSTX_SEG_HEADER - 1), 0);
    ms_err_clear(&err);
    mstx__segment_close(&seg);
    ck_assert_int_eq(mstx__segment_open(&seg, ring, MSTX_KIND_RING, &problems, &err), MS_E_FORMAT);
    ck_says(err, "too few for a header");
}
END_TEST

START_TEST(a_prepared_segment_has_no_records_yet)
{
    make_capture(9);
    PATCH(ring, part, uint64_t, 0);
    expect(0, 0);
}
END_TEST

/* A flight recorder reuses the file, so its records are copied. */
START_TEST(a_flight_recorder_that_writes_is_copied)
{
    static const struct {
        uint32_t state;
        bool copied;
    } states[] = {{MSTX_SEG_FLIGHT, true},
                  {MSTX_SEG_FLIGHT | MSTX_SEG_LAST, true},
                  {MSTX_SEG_FLIGHT | MSTX_SEG_CLOSED, false},
                  {MSTX_SEG_FLIGHT | MSTX_SEG_SNAPSHOT, false},
                  {0, false},
                  {MSTX_SEG_CLOSED, false}};
    make_capture(9);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        PATCH(ring, state, uint32_t, states[i].state);
        PATCH(ring, part, uint64_t, 3);
        expect(9, 0);
        ck_assert_msg((seg.copy != NULL) == states[i].copied, "state %zu", i);
        ck_assert(!states[i].copied || (const void *)seg.rec == (const void *)seg.copy);
        ck_assert_uint_eq(seg.head.part, 3);
    }
}
END_TEST

START_TEST(texts_follow_each_other_up_to_the_head)
{
    make_capture(1);
    uint64_t at = 0;
    struct mstx_entry e;
    ck_ok(mstx__segment_open(&seg, texts, MSTX_KIND_STRINGS, &problems, &err), err);
    ck_assert(mstx__entry_next(&seg, &at, &e, &problems));
    ck_assert(ms_str_is(e.text, "one"));
    const uint64_t second = at;
    ck_assert(mstx__entry_next(&seg, &at, &e, &problems));
    ck_assert(ms_str_is(e.text, "another"));
    ck_assert_uint_eq(at, seg.n);
    ck_assert(!mstx__entry_next(&seg, &at, &e, &problems));
    ck_assert_uint_eq(told, 0);

    seg.n--; /* the last entry lacks a byte */
    at = second;
    ck_assert(!mstx__entry_next(&seg, &at, &e, &problems));
    ck_assert_uint_eq(told, 1);
    ck_assert_uint_eq(at, seg.n);                  /* nothing behind it is looked at */
    seg.n = second + sizeof(struct mstx_text) - 1; /* less than the head of an entry */
    at = second;
    ck_assert(!mstx__entry_next(&seg, &at, &e, &problems));
    ck_assert_uint_eq(told, 2);
}
END_TEST

static const struct {
    uint32_t size, len;
    bool fits;
} entries[] = {
    {sizeof(struct mstx_text) + 8, 7, true},     {sizeof(struct mstx_text) + 8, 8, false},
    {sizeof(struct mstx_text) + 8, 0, true},     {sizeof(struct mstx_text), 0, false},
    {sizeof(struct mstx_text) + 4, 1, false},    {sizeof(struct mstx_text) + 1, 0, false},
    {sizeof(struct mstx_text) + 4096, 1, false}, {0, 0, false},
};

START_TEST(an_entry_ends_within_its_size_and_the_file)
{
    make_capture(1);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        uint64_t at = 0;
        struct mstx_entry e;
        patch(texts, MSTX_SEG_HEADER + offsetof(struct mstx_text, size), &entries[i].size, 4);
        patch(texts, MSTX_SEG_HEADER + offsetof(struct mstx_text, len), &entries[i].len, 4);
        mstx__segment_close(&seg);
        told = 0;
        ck_ok(mstx__segment_open(&seg, texts, MSTX_KIND_STRINGS, &problems, &err), err);
        ck_assert_msg(mstx__entry_next(&seg, &at, &e, &problems) == entries[i].fits, "entry %zu",
                      i);
        ck_assert_uint_eq(told, !entries[i].fits);
        if (entries[i].fits)
            ck_assert_uint_eq(e.text.n, entries[i].len);
    }
}
END_TEST

START_TEST(a_problem_that_was_told_is_over)
{
    struct ms_err e = {0};
    ms_fail(&e, MS_E_IO, "a disk broke");
    mstx__problem(&problems, "here", &e);
    ck_assert_str_eq(last_told, "here: a disk broke");
    ck_assert_int_eq(e.rc, MS_OK);
    mstx__problem_text(&problems, "there", "%d of %s", 3, "them");
    ck_assert_str_eq(last_told, "there: 3 of them");
}
END_TEST

START_TEST(what_cannot_be_opened_leaves_nothing)
{
    make_capture(1);
    ck_assert_int_eq(mstx__segment_open(&seg, ring, MSTX_KIND_STRINGS, &problems, &err),
                     MS_E_FORMAT);
    ck_says(err, "kind is");
    ck_says(err, ring);
    ck_assert_ptr_null(seg.path);
    ms_err_clear(&err);
    ck_assert_int_ne(mstx__segment_open(&seg, run, MSTX_KIND_RING, &problems, &err), MS_OK);
    ck_assert_uint_eq(ms_mem_live(), live);
}
END_TEST

TEST_MAIN_AROUND(set_up, tear_down, "segment_file", records_are_counted_by_the_head,
                 a_file_that_is_cut_off_gives_its_whole_records,
                 a_prepared_segment_has_no_records_yet, a_flight_recorder_that_writes_is_copied,
                 texts_follow_each_other_up_to_the_head, an_entry_ends_within_its_size_and_the_file,
                 a_problem_that_was_told_is_over, what_cannot_be_opened_leaves_nothing)
