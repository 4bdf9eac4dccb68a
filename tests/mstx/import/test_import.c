/* SPDX-License-Identifier: MIT
 *
 * Captures of known content become events: pairing, threads, clocks, memory,
 * counters, attributes; and captures that are damaged in every field.
 */
#include "mstx/conclude/run_ready.h"
#include "mstx/rundb/run_query.h"
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/base/store.h"
#include "probe/base/trace.h"
#include "tests/support/check.h"
#include "tests/support/make_capture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

static char dir[64], run[80];

static void begin(struct maker *m)
{
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    maker_begin(m, run, 0, 4242);
}

static struct mstx_tl *open_run(struct mstx_import_result *r)
{
    struct ms_err e = {0};
    struct mstx_tl *tl;
    char db[96];
    snprintf(db, sizeof db, "%s/run.db", run);
    ck_ok(mstx_import(run, db, r, &e), e);
    ck_ok(mstx_tl_open(&tl, db, &e), e);
    return tl;
}

static void end(struct mstx_tl *tl)
{
    mstx_tl_close(tl);
    scratch_remove(dir);
}

/* All events of a track. */
static mstx_events all_of(struct mstx_tl *tl, size_t track)
{
    mstx_events ev = {0};
    struct ms_err e = {0};
    ck_ok(mstx_tl_view(tl, track, INT64_MIN, INT64_MAX, 0, &ev, &e), e);
    return ev;
}

static void check_event(struct mstx_tl *tl, const struct mstx_event *e, const char *name,
                        int64_t start, int64_t stop, unsigned depth, unsigned flags)
{
    ck_assert_msg(ms_str_is(mstx_tl_text(tl, e->name), name), "name %.*s, expected %s",
                  MS_STR_ARG(mstx_tl_text(tl, e->name)), name);
    ck_assert_int_eq(e->start_ns - EPOCH_NS, start);
    ck_assert_int_eq(e->start_ns + e->dur_ns - EPOCH_NS, stop);
    ck_assert_uint_eq(e->depth, depth);
    ck_assert_uint_eq(e->flags, flags);
}

/* The text of the first problem that holds the words. */
static bool has_problem(struct mstx_tl *tl, const char *words)
{
    struct ms_stmt *st;
    struct ms_err e = {0};
    bool more, found = false;
    ck_ok(ms_store_prepare(mstx_tl_store(tl), &st,
                           "SELECT 1 FROM problems WHERE instr(text, ?) > 0", &e),
          e);
    ms_stmt_str(st, 1, ms_str_of(words));
    ck_ok(ms_stmt_step(st, &more, &e), e);
    found = more;
    ms_stmt_free(st);
    return found;
}

/* ---- pairing ---------------------------------------------------------------- */

START_TEST(marks_ranges_and_pushes_come_out_in_order)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a"), b = maker_text(&m, "b"), c = maker_text(&m, "c");
    maker_ring(&m, 1, 1, 4242);
    maker_begin_range(&m, 100, 1, a, 0);
    maker_push(&m, 200, 0, b);
    maker_mark(&m, 250, c, 0);
    maker_push(&m, 300, 1, c);
    maker_pop(&m, 400, 1, c, 300);
    maker_pop(&m, 500, 0, b, 200);
    maker_end_range(&m, 900, 1, a, 0, 100, 0);
    maker_begin_range(&m, 1000, 1, a, 0); /* the id is used again */
    maker_end_range(&m, 1100, 1, a, 0, 1000, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert_uint_eq(mstx_tl_track_count(tl), 1);
    mstx_events ev = all_of(tl, 0);
    ck_assert_uint_eq(ev.n, 5);
    check_event(tl, &ev.p[0], "a", 100, 900, 0, 0);
    check_event(tl, &ev.p[1], "b", 200, 500, 1, 0);
    check_event(tl, &ev.p[2], "c", 250, 250, 2, 0);
    check_event(tl, &ev.p[3], "c", 300, 400, 2, 0);
    check_event(tl, &ev.p[4], "a", 1000, 1100, 0, 0);
    ck_assert_uint_eq(ev.p[1].kind, MSTX_EV_PUSHPOP);
    ck_assert_uint_eq(ev.p[2].kind, MSTX_EV_MARK);
    ck_assert_uint_eq(r.unfinished + r.problems + r.dropped, 0);
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

START_TEST(a_range_ended_on_another_thread_stays_with_its_starter)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a"), b = maker_text(&m, "b");
    maker_ring(&m, 1, 1, 4242);
    maker_begin_range(&m, 100, 7, a, 0);
    maker_begin_range(&m, 600, 7, a, 0); /* the id came back after the end elsewhere */
    maker_end_range(&m, 700, 7, a, 0, 600, 0);
    maker_end_ring(&m);
    maker_ring(&m, 2, 1, 4243);
    maker_mark(&m, 300, b, 0);
    maker_end_range(&m, 500, 7, a, 0, 100, MSTX_F_OTHER_THREAD);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert_uint_eq(mstx_tl_track_count(tl), 2);
    mstx_events ev = all_of(tl, 0);
    ck_assert_uint_eq(ev.n, 2);
    check_event(tl, &ev.p[0], "a", 100, 500, 0, MSTX_EVF_OTHER_THREAD);
    ck_assert_uint_eq(ev.p[0].end_tid, 4243);
    check_event(tl, &ev.p[1], "a", 600, 700, 0, 0);
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

START_TEST(what_never_ended_is_kept_and_what_lost_its_start_is_whole)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a"), b = maker_text(&m, "b");
    maker_ring(&m, 1, 1, 4242);
    maker_end_range(&m, 200, 3, b, 0, 50, 0);
    maker_begin_range(&m, 100, 9, a, 0);
    maker_mark(&m, 900, b, 0);
    m.head.dropped = 17;
    m.head.state = 0;
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    mstx_events ev = all_of(tl, 0);
    ck_assert_uint_eq(ev.n, 3);
    check_event(tl, &ev.p[0], "b", 50, 200, 0, MSTX_EVF_START_LOST);
    check_event(tl, &ev.p[1], "a", 100, 900, 1, MSTX_EVF_UNFINISHED);
    ck_assert_uint_eq(r.unfinished, 1);
    ck_assert_uint_eq(r.dropped, 17);
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

START_TEST(thousands_of_open_ranges_find_their_ends)
{
    enum { N = 20000 };
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 1, 4242);
    for (uint64_t i = 0; i < N; i++)
        maker_begin_range(&m, 10 * i, i + 1, a, 0);
    for (uint64_t i = 0; i < N; i++)
        maker_end_range(&m, 10 * N + 10 * i, i + 1, a, 0, 10 * i, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    mstx_events ev = all_of(tl, 0);
    ck_assert_uint_eq(ev.n, N);
    ck_assert_uint_eq(r.unfinished, 0);
    for (size_t i = 0; i < N; i++)
        ck_assert_int_eq(ev.p[i].dur_ns, 10 * N);
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

/* ---- threads, domains, parts ------------------------------------------------ */

START_TEST(threads_and_domains_have_their_own_tracks)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a");
    uint16_t d = maker_domain(&m, "communication");
    maker_entry(&m, MSTX_THREAD, 0, 4243, "worker", 6);
    maker_ring(&m, 1, 1, 4242);
    maker_mark(&m, 1, a, 0);
    maker_mark(&m, 2, a, d);
    maker_rec(&m, MSTX_REC_THREAD, 3, 4243, 0, 0, 0, 0); /* the ring of an ended thread */
    maker_mark(&m, 4, a, 0);
    maker_end_ring(&m);
    maker_ring(&m, 1, 2, 4243);
    maker_mark(&m, 5, a, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert_uint_eq(mstx_tl_track_count(tl), 3);
    ck_assert(ms_str_is(mstx_tl_track(tl, 0)->domain, "default"));
    ck_assert(ms_str_is(mstx_tl_track(tl, 1)->domain, "communication"));
    ck_assert_uint_eq(mstx_tl_track(tl, 2)->tid, 4243);
    ck_assert(ms_str_is(mstx_tl_track(tl, 2)->name, "worker"));
    ck_assert_uint_eq(mstx_tl_track(tl, 2)->events, 2);
    end(tl);
}
END_TEST

START_TEST(two_ranks_of_a_host_share_one_clock)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 1, 4242);
    maker_mark(&m, 30000000000, a, 0);
    maker_end_ring(&m);
    maker_end(&m);
    maker_begin(&m, run, 1, 5000);
    a = maker_text(&m, "a");
    maker_ring(&m, 1, 1, 5000);
    m.head.first_calib.realtime_ns += 12345; /* the wall clock was set meanwhile */
    m.head.last_calib.realtime_ns += 999999;
    maker_mark(&m, 30000000001, a, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert_uint_eq(r.processes, 2);
    ck_assert_int_eq(mstx_tl_track(tl, 1)->start_ns - mstx_tl_track(tl, 0)->start_ns, 1);
    ck_assert_int_eq(mstx_tl_process(tl, 1)->rank, 1);
    end(tl);
}
END_TEST

START_TEST(a_missing_part_is_told)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 3, 4242);
    maker_mark(&m, 5, a, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert(has_problem(tl, "ring 1 has no part 1"));
    end(tl);
}
END_TEST

/* Segments that were not moved yet lie where this file says. */
START_TEST(a_file_that_names_the_staging_directory_and_cannot_be_read_is_told)
{
    struct maker m;
    struct mstx_import_result r;
    char path[300];
    begin(&m);
    maker_ring(&m, 1, 1, 4242);
    maker_mark(&m, 5, maker_text(&m, "a"), 0);
    maker_end_ring(&m);
    maker_end(&m);
    snprintf(path, sizeof path, "%s/" MSTX_STAGED, m.dir);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    struct mstx_tl *tl = open_run(&r);
    ck_assert(has_problem(tl, "/" MSTX_STAGED));
    end(tl);
}
END_TEST

START_TEST(a_flight_recorder_shows_its_window)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "a");
    maker_ring(&m, 1, 8, 4242);
    m.head.state |= MSTX_SEG_FLIGHT;
    m.head.flight_ns = 1000;
    for (uint64_t t = 1000; t <= 5000; t += 500)
        maker_mark(&m, t, a, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    mstx_events ev = all_of(tl, 0);
    ck_assert_uint_eq(ev.n, 3); /* 4000, 4500, 5000 */
    ck_assert_int_eq(ev.p[0].start_ns - EPOCH_NS, 4000);
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

/* ---- attributes, counters, memory ------------------------------------------- */

START_TEST(attributes_and_payloads_become_json)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t a = maker_text(&m, "ncclAllReduce");
    uint16_t d = maker_domain(&m, "NCCL");
    maker_entry(&m, MSTX_CATEGORY, d, 5, "io", 2);
    struct {
        struct mstx_schema s;
        struct mstx_schema_item item[3];
    } schema = {.s = {.type = 1, .count = 3, .size = 24}};
    schema.item[0] = (struct mstx_schema_item){18, 0, 0, 0, maker_text(&m, "comm")};
    schema.item[1] = (struct mstx_schema_item){22, 8, 0, 0, maker_text(&m, "bytes")};
    schema.item[2] = (struct mstx_schema_item){(1 << 24) + 24, 16, 0, 0, maker_text(&m, "op")};
    maker_entry(&m, MSTX_SCHEMA, d, (1 << 24) + 5, &schema, sizeof schema);
    struct {
        struct mstx_schema s;
        struct mstx_schema_item item[1];
    } op = {.s = {.count = 1, .size = 4}};
    op.item[0] = (struct mstx_schema_item){2, 0, 0, 0, maker_text(&m, "max")};
    maker_entry(&m, MSTX_ENUM, d, (1 << 24) + 24, &op, sizeof op);
    maker_ring(&m, 1, 1, 4242);
    maker_rec(&m, MSTX_REC_PUSH, 10, 0, a, d, 0, MSTX_F_MORE);
    struct mstx_rec_attr attr = {.payload = (uint64_t)-3,
                                 .category = 5,
                                 .argb = 0xFF336699,
                                 .payload_type = MSTX_PAYLOAD_I64,
                                 .type = MSTX_REC_ATTR,
                                 .flags = MSTX_F_MORE,
                                 .fields = 7};
    maker_raw(&m, &attr);
    struct mstx_rec_payload payload = {.schema = (1 << 24) + 5,
                                       .bytes = 24,
                                       .domain = d,
                                       .type = MSTX_REC_PAYLOAD,
                                       .flags = MSTX_F_MORE,
                                       .total = 24};
    maker_raw(&m, &payload);
    struct mstx_rec_data data = {.n = 24, .type = MSTX_REC_DATA};
    memcpy(data.bytes, (const uint64_t[]){77, 4096}, 16);
    memcpy(data.more, (const uint64_t[]){2}, 8);
    maker_raw(&m, &data);
    maker_rec(&m, MSTX_REC_POP, 20, 0, a, d, TICKS_0 + 10, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    mstx_events ev = all_of(tl, 0);
    ck_assert_uint_eq(ev.n, 1);
    struct ms_str args = mstx_tl_text(tl, ev.p[0].args);
    ck_assert_msg(ms_str_is(args, "{\"category\": \"io\", \"color\": \"#336699\", \"payload\": -3, "
                                  "\"comm\": 77, \"bytes\": 4096, \"op\": \"max\"}"),
                  "%.*s", MS_STR_ARG(args));
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

START_TEST(counters_keep_their_values_whole_and_real)
{
    struct maker m;
    struct mstx_import_result r;
    double real = 2.5;
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    begin(&m);
    uint32_t loss = maker_text(&m, "loss"), queue = maker_text(&m, "queue");
    maker_entry(&m, MSTX_COUNTER, 0, queue, "jobs", 4);
    maker_ring(&m, 1, 1, 4242);
    maker_rec(&m, MSTX_REC_COUNTER, 10, 0, loss, 0, bits, MSTX_F_REAL);
    maker_rec(&m, MSTX_REC_COUNTER, 20, 0, queue, 0, (uint64_t)-4, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert_uint_eq(mstx_tl_track_count(tl), 2);
    mstx_events ev = all_of(tl, 0);
    ck_assert_double_eq(mstx_event_value(&ev.p[0]), 2.5);
    ms_vec_free(&ev);
    ev = all_of(tl, 1);
    ck_assert_double_eq(mstx_event_value(&ev.p[0]), -4);
    ck_assert(ms_str_is(mstx_tl_track(tl, 1)->unit, "jobs"));
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

static void memory_rec(struct maker *m, uint8_t type, uint64_t t, uint64_t id, uint64_t heap,
                       uint64_t address, uint64_t size, uint32_t by_pointer)
{
    maker_rec(m, type, t, id, 1, 0, heap, MSTX_F_MORE);
    struct mstx_rec_mem mem = {.address = address,
                               .size = size,
                               .type = MSTX_REC_MEMORY,
                               .device = 1,
                               .by_pointer = by_pointer};
    maker_raw(m, &mem);
}

/* What is known of the blocks of a pool: address, size, begin and end. */
static void expect_blocks(struct mstx_tl *tl, const int64_t (*want)[4], size_t n)
{
    mstx_events ev = all_of(tl, 0);
    ck_assert_uint_eq(ev.n, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(ev.p[i].arg, (uint64_t)want[i][0]);
        ck_assert_uint_eq(ev.p[i].size, (uint64_t)want[i][1]);
        ck_assert_int_eq(ev.p[i].start_ns - EPOCH_NS, want[i][2]);
        ck_assert_int_eq(ev.p[i].start_ns + ev.p[i].dur_ns - EPOCH_NS, want[i][3]);
    }
    ms_vec_free(&ev);
}

START_TEST(memory_becomes_ranges_and_two_counters)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    maker_ring(&m, 1, 1, 4242);
    memory_rec(&m, MSTX_REC_HEAP, 10, 1, 0, 0x1000, 4096, 0);
    memory_rec(&m, MSTX_REC_REGION, 20, 2, 1, 0x1000, 100, 0);
    memory_rec(&m, MSTX_REC_REGION, 30, 3, 1, 0x1100, 50, 0);
    memory_rec(&m, MSTX_REC_REGION, 35, 4, 1, 0x1200, 7, 0);
    maker_rec(&m, MSTX_REC_REGION_END, 40, 2, 0, 0, 0, 0);
    memory_rec(&m, MSTX_REC_REGION_END, 50, 0, 0, 0x1100, 0, 1);
    maker_rec(&m, MSTX_REC_HEAP_END, 60, 1, 0, 0, 0, 0); /* takes region 4 with it */
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert_uint_eq(mstx_tl_track_count(tl), 3);
    expect_blocks(tl,
                  (const int64_t[][4]){{0x1000, 4096, 10, 60},
                                       {0x1000, 100, 20, 40},
                                       {0x1100, 50, 30, 50},
                                       {0x1200, 7, 35, 60}},
                  4);
    static const double used[] = {100, 150, 157, 57, 7, 0};
    mstx_events ev = all_of(tl, 1);
    ck_assert_uint_eq(ev.n, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(mstx_event_value(&ev.p[i]), used[i]);
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

START_TEST(regions_are_resized_named_and_swept)
{
    struct maker m;
    struct mstx_import_result r;
    begin(&m);
    uint32_t name = maker_text(&m, "weights");
    maker_ring(&m, 1, 1, 4242);
    memory_rec(&m, MSTX_REC_HEAP, 10, 1, 0, 0x1000, 4096, 0);
    memory_rec(&m, MSTX_REC_REGION, 20, 2, 1, 0x1000, 100, 0);
    memory_rec(&m, MSTX_REC_REGION, 25, 0, 0, 0x1000, 300, 1); /* the same, larger */
    memory_rec(&m, MSTX_REC_REGION, 26, 0, 0, 0x9999, 300, 1); /* nobody's */
    maker_rec(&m, MSTX_REC_BLOCK_NAME, 27, 2, name, 0, 0, 0);
    memory_rec(&m, MSTX_REC_REGION, 30, 3, 0, 0x5000, 50, 0); /* in no heap */
    maker_rec(&m, MSTX_REC_HEAP_END, 40, 1, 0, 0, 1, 0);      /* the heap stays */
    maker_rec(&m, MSTX_REC_HEAP_END, 45, 0, 0, 0, 1, 0);      /* what lies in none goes */
    memory_rec(&m, MSTX_REC_REGION, 50, 4, 1, 0x1000, 9, 0);
    maker_rec(&m, MSTX_REC_HEAP_END, 60, 1, 0, 0, 0, 0);
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    expect_blocks(tl,
                  (const int64_t[][4]){{0x1000, 4096, 10, 60},
                                       {0x1000, 100, 20, 25},
                                       {0x1000, 300, 25, 40},
                                       {0x5000, 50, 30, 45},
                                       {0x1000, 9, 50, 60}},
                  5);
    mstx_events ev = all_of(tl, 0);
    ck_assert(ms_str_is(mstx_tl_text(tl, ev.p[2].name), "weights"));
    ck_assert(ms_str_is(mstx_tl_text(tl, ev.p[4].name), "region"));
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

/* ---- damage ----------------------------------------------------------------- */

/* A good ring 2 beside the bad ring 1, so that the rest can go on. */
static void two_rings(struct maker *m)
{
    begin(m);
    uint32_t a = maker_text(m, "a");
    for (uint32_t ring = 1; ring <= 2; ring++) {
        maker_ring(m, ring, 1, 4241 + ring);
        for (uint64_t i = 0; i < 10; i++)
            maker_mark(m, 10 * i, a, 0);
        maker_end_ring(m);
    }
    maker_end(m);
}

static void patch(const struct maker *m, const char *name, long at, const void *p, size_t n)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", m->dir, name);
    FILE *f = fopen(path, "rb+");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(p, 1, n, f), n);
    fclose(f);
}

START_TEST(every_wrong_header_field_is_named_and_the_rest_goes_on)
{
    static const struct {
        size_t at, n;
        uint64_t value;
        const char *says;
    } cases[] = {
        {0, 1, 'X', "no segment file"},
        {8, 4, 0x04030201, "other byte order"},
        {12, 2, 9, "version 9."},
        {16, 4, 64, "header size is 64"},
        {20, 4, 48, "record size is 48"},
        {24, 4, 3, "kind is 3"},
        {44, 4, 0x80000000, "rank is -2147483648"},
        {56, 4, 77, "clock is 77"},
        {120, 8, UINT64_MAX, "capacity is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maker m;
        struct mstx_import_result r;
        two_rings(&m);
        patch(&m, "r0001.0001.seg", (long)cases[i].at, &cases[i].value, cases[i].n);
        struct mstx_tl *tl = open_run(&r);
        ck_assert_msg(has_problem(tl, cases[i].says), "case %zu: %s", i, cases[i].says);
        ck_assert_uint_eq(r.events, 10);
        end(tl);
    }
}
END_TEST

START_TEST(a_host_name_without_end_is_refused)
{
    struct maker m;
    struct mstx_import_result r;
    char host[64];
    memset(host, 'h', sizeof host);
    two_rings(&m);
    patch(&m, "r0001.0001.seg", 176, host, sizeof host);
    struct mstx_tl *tl = open_run(&r);
    ck_assert(has_problem(tl, "host name"));
    end(tl);
}
END_TEST

/* It may be about to have some; it may have lost them. */
START_TEST(a_process_without_segments_is_a_problem_once_it_is_calm)
{
    static const struct {
        time_t since; /* seconds since the folder was changed */
        bool is_problem;
    } cases[] = {
        {0, false}, {1000000, true}, {-20, false}, {-7200, true}}; /* of a server's clock */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maker m;
        struct mstx_import_result r;
        char empty[160], texts[320], link_name[192];
        const struct timespec changed[2] = {{.tv_sec = time(NULL) - cases[i].since},
                                            {.tv_sec = time(NULL) - cases[i].since}};
        two_rings(&m);
        snprintf(empty, sizeof empty, "%s/rank_0/host.7.00000007", run);
        ck_assert_int_eq(mkdir(empty, 0755), 0);
        snprintf(texts, sizeof texts, "%s/strings.seg", m.dir);
        snprintf(link_name, sizeof link_name, "%s/strings.seg", empty);
        ck_assert_int_eq(link(texts, link_name), 0);
        ck_assert_int_eq(utimensat(AT_FDCWD, empty, changed, 0), 0);
        struct mstx_tl *tl = open_run(&r);
        ck_assert_int_eq(has_problem(tl, "has no segments"), cases[i].is_problem);
        end(tl);
    }
}
END_TEST

START_TEST(a_head_behind_the_capacity_is_cut)
{
    struct maker m;
    struct mstx_import_result r;
    uint64_t head = 1000000;
    two_rings(&m);
    patch(&m, "r0001.0001.seg", 1024, &head, sizeof head);
    struct mstx_tl *tl = open_run(&r);
    ck_assert(has_problem(tl, "behind the capacity"));
    ck_assert_uint_eq(r.events, 20);
    end(tl);
}
END_TEST

START_TEST(a_file_cut_anywhere_gives_what_is_left)
{
    static const long sizes[] = {0, 1, 4095, 4096, 4097, 4127, 4128, 4200, 4400};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct maker m;
        struct mstx_import_result r;
        char path[320];
        two_rings(&m);
        snprintf(path, sizeof path, "%s/r0001.0001.seg", m.dir);
        ck_assert_int_eq(truncate(path, sizes[i]), 0);
        struct mstx_tl *tl = open_run(&r);
        uint64_t left = sizes[i] < 4096 ? 0 : (uint64_t)(sizes[i] - 4096) / 32;
        ck_assert_uint_eq(r.events, 10 + left);
        ck_assert(has_problem(tl, sizes[i] < 4096 ? "too few for a header" : "is cut off"));
        end(tl);
    }
}
END_TEST

START_TEST(damaged_texts_leave_numbers_for_names)
{
    struct maker m;
    struct mstx_import_result r;
    uint32_t size = 0xFFFFFFF0;
    two_rings(&m);
    patch(&m, MSTX_STRINGS, 4096, &size, sizeof size);
    struct mstx_tl *tl = open_run(&r);
    ck_assert(has_problem(tl, "text entry at byte 4096"));
    mstx_events ev = all_of(tl, 0);
    ck_assert(ms_str_is(mstx_tl_text(tl, ev.p[0].name), "(text 1)"));
    ms_vec_free(&ev);
    end(tl);
}
END_TEST

START_TEST(random_records_never_break_an_import)
{
    struct maker m;
    struct mstx_import_result r;
    uint64_t seed = 4711;
    begin(&m);
    maker_ring(&m, 1, 1, 4242);
    for (int i = 0; i < 30000; i++) {
        uint64_t rec[4];
        for (int k = 0; k < 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            rec[k] = seed ^ seed >> 29;
        }
        ((struct mstx_rec *)(void *)rec)->type = (uint8_t)(rec[0] % 70);
        maker_raw(&m, rec);
    }
    maker_end_ring(&m);
    maker_end(&m);
    struct mstx_tl *tl = open_run(&r);
    ck_assert_uint_gt(r.events, 0);
    end(tl);
}
END_TEST

START_TEST(a_directory_without_a_capture_says_how_to_make_one)
{
    struct ms_err e = {0};
    struct mstx_import_result r;
    scratch_dir(dir);
    ck_assert_int_eq(mstx_import(dir, "/nonexistent/run.db", &r, &e), MS_E_NOTFOUND);
    ck_says(e, "msprobe run");
    scratch_remove(dir);
}
END_TEST

START_TEST(a_capture_of_damaged_files_alone_names_the_first_reason)
{
    struct maker m;
    struct mstx_import_result r;
    struct ms_err e = {0};
    char db[96];
    uint16_t newer = 9;
    two_rings(&m);
    patch(&m, "r0001.0001.seg", 12, &newer, sizeof newer);
    patch(&m, "r0002.0001.seg", 12, &newer, sizeof newer);
    snprintf(db, sizeof db, "%s/run.db", run);
    ck_assert_int_eq(mstx_import(run, db, &r, &e), MS_E_NOTFOUND);
    ck_says(e, "r0001.0001.seg: is of format version 9.");
    ck_assert_int_ne(access(db, F_OK), 0);
    scratch_remove(dir);
}
END_TEST

START_TEST(memory_that_runs_out_is_reported_and_given_back)
{
    struct maker m;
    two_rings(&m);
    char db[96];
    snprintf(db, sizeof db, "%s/run.db", run);
    size_t live = 0;
    enum ms_rc rc = MS_E_NOMEM;
    for (uint64_t n = 1; rc != MS_OK && n < 20000; n += 1 + n / 40) {
        struct ms_err e = {0};
        struct mstx_import_result r;
        size_t before = ms_mem_live();
        ms_mem_fail_at(n);
        rc = mstx_import(run, db, &r, &e);
        ms_mem_fail_at(0);
        ms_trace_reset(); /* the log of phases grows with every try */
        if (rc != MS_OK)
            ck_assert_int_ne(e.rc, MS_OK);
        if (n > 200) { /* SQLite keeps what it made first */
            if (live == 0)
                live = ms_mem_live();
            ck_assert_uint_le(ms_mem_live(), (before > live ? before : live) + 4096);
        }
    }
    ck_assert_int_eq(rc, MS_OK);
    scratch_remove(dir);
}
END_TEST

/* ---- stale ------------------------------------------------------------------ */

START_TEST(a_database_is_stale_when_its_capture_grew)
{
    struct maker m;
    struct mstx_import_result r;
    char db[96];
    two_rings(&m);
    snprintf(db, sizeof db, "%s/run.db", run);
    ck_assert(mstx_db_is_stale(run, db));
    mstx_tl_close(open_run(&r));
    ck_assert(!mstx_db_is_stale(run, db));
    maker_ring(&m, 3, 1, 4250);
    maker_mark(&m, 1, 1, 0);
    maker_end_ring(&m);
    ck_assert(mstx_db_is_stale(run, db));
    scratch_remove(dir);
}
END_TEST

START_TEST(a_database_stays_current_when_its_run_is_moved)
{
    struct maker m;
    struct mstx_import_result r;
    char db[128], moved[96];
    two_rings(&m);
    mstx_tl_close(open_run(&r));
    snprintf(moved, sizeof moved, "%s-moved", run);
    snprintf(db, sizeof db, "%s/run.db", moved);
    ck_assert_int_eq(rename(run, moved), 0);
    ck_assert(!mstx_db_is_stale(moved, db));
    scratch_remove(dir);
}
END_TEST

/* A process whose marks have attributes and names that only its records tell, some of them those of
 * other processes too. */
static void make_attributed(struct maker *m, int32_t rank)
{
    maker_begin(m, run, rank, 5000 + (uint32_t)rank);
    const uint32_t a = maker_text(m, "a");
    const uint16_t d = maker_domain(m, "D");
    maker_ring(m, 1, 1, 5000 + (uint32_t)rank);
    for (unsigned k = 0; k < 40; k++) {
        struct mstx_rec_attr attr = {.payload = (uint64_t)(k * (unsigned)(rank % 3 + 1)),
                                     .payload_type = MSTX_PAYLOAD_I64,
                                     .type = MSTX_REC_ATTR,
                                     .fields = 7};
        maker_rec(m, MSTX_REC_PUSH, 10 + 20 * k, 0, k % 5 == 0 ? a + 100 + k : a, d, 0,
                  MSTX_F_MORE);
        maker_raw(m, &attr);
        maker_rec(m, MSTX_REC_POP, 20 + 20 * k, 0, a, d, TICKS_0 + 10 + 20 * k, 0);
    }
    maker_end_ring(m);
    maker_end(m);
}

static void import_by(unsigned threads, const char *name, struct ms_file *db)
{
    struct ms_err e = {0};
    struct mstx_import_result r;
    const struct mstx_import_how how = {.threads = threads};
    char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_ok(mstx_import_as(run, path, &how, &r, &e), e);
    ck_assert_uint_eq(r.processes, 9);
    ck_ok(ms_file_map(db, path, SIZE_MAX, &e), e);
}

START_TEST(threads_give_the_same_bytes)
{
    struct maker m;
    struct ms_file alone, shared;
    char damaged[160];
    scratch_dir(dir);
    snprintf(run, sizeof run, "%s/run", dir);
    for (int32_t rank = 0; rank < 9; rank++)
        make_attributed(&m, rank);
    snprintf(damaged, sizeof damaged, "%s/rank_4/h.4999.1", run);
    ck_assert_int_eq(mkdir(damaged, 0777), 0);
    import_by(1, "alone.db", &alone);
    ck_assert(memmem(alone.p, alone.n, "(text 1", 7) != NULL);
    for (unsigned threads = 2; threads < 20; threads += 3) {
        import_by(threads, "shared.db", &shared);
        ck_assert_uint_eq(shared.n, alone.n);
        ck_assert(memcmp(shared.p, alone.p, alone.n) == 0);
        ms_file_unmap(&shared);
    }
    ms_file_unmap(&alone);
    scratch_remove(dir);
}
END_TEST

TEST_MAIN("import", threads_give_the_same_bytes,
          a_process_without_segments_is_a_problem_once_it_is_calm,
          a_database_stays_current_when_its_run_is_moved, marks_ranges_and_pushes_come_out_in_order,
          a_range_ended_on_another_thread_stays_with_its_starter,
          what_never_ended_is_kept_and_what_lost_its_start_is_whole,
          thousands_of_open_ranges_find_their_ends, threads_and_domains_have_their_own_tracks,
          two_ranks_of_a_host_share_one_clock, a_missing_part_is_told,
          a_file_that_names_the_staging_directory_and_cannot_be_read_is_told,
          a_flight_recorder_shows_its_window, attributes_and_payloads_become_json,
          counters_keep_their_values_whole_and_real, memory_becomes_ranges_and_two_counters,
          regions_are_resized_named_and_swept,
          every_wrong_header_field_is_named_and_the_rest_goes_on,
          a_host_name_without_end_is_refused, a_head_behind_the_capacity_is_cut,
          a_file_cut_anywhere_gives_what_is_left, damaged_texts_leave_numbers_for_names,
          random_records_never_break_an_import, a_directory_without_a_capture_says_how_to_make_one,
          a_capture_of_damaged_files_alone_names_the_first_reason,
          memory_that_runs_out_is_reported_and_given_back,
          a_database_is_stale_when_its_capture_grew)
