/* SPDX-License-Identifier: MIT
 *
 * clocks_drawn: drawn calibration points, measured offsets and collectives of several hosts: the
 * points that stay, the offsets and the times that follow from them are those on record.
 */
#include "mstx/read/host_clocks.h"
#include "probe/base/mem.h"
#include "tests/support/recorded.h"

#include <inttypes.h>

enum { CASES = 400, HOSTS = 4 };

static struct ms_err err;
static struct mstx_clocks clocks;
static struct mstx_meetings meetings;
static uint64_t state;
static const int64_t BASE = INT64_C(5000000000000), MS = 1000000;

#define below(n) recorded_below(&state, (n))

/* ---- one clock ------------------------------------------------------------------------ */

/* A segment of ring 0 or 1 with points near and far from each other, some of them damaged. */
static void draw_points(void)
{
    static struct mstx_rec rec[40];
    struct mstx_segment s = {.rec = rec};
    uint64_t t = 1000 + below(1000);
    const uint32_t hz = below(4); /* ticks per ns: 1, 2 or 3, or ticks that are ns */
    s.head.clock = hz == 3 ? MSTX_CLOCK_MONOTONIC : MSTX_CLOCK_TSC;
    s.head.tick_hz = below(2) == 0 ? 0 : (hz + 1) * UINT64_C(1000000000);
    s.head.ring = below(8) == 0;
    s.head.boot_id[0] = (uint8_t)below(2);
    for (s.n = 0; s.n < below(40); s.n++) {
        t += below(3) == 0 ? (uint64_t)MS * below(500) : (uint64_t)MS * 150 + below(99);
        const uint64_t mono = (uint64_t)BASE + t + below(50);
        rec[s.n] = (struct mstx_rec){.ticks = t * (hz % 3 + 1) + below(9),
                                     .id = below(20) == 0 ? below(2) * UINT64_MAX : mono,
                                     .arg = below(20) == 0 ? 0 : mono + 7000000,
                                     .name = below(60),
                                     .type = MSTX_REC_CALIB};
        if (below(6) == 0)
            rec[s.n] = (struct mstx_rec){.id = (uint64_t)((int64_t)below(2000) - 1000),
                                         .name = below(900),
                                         .arg = mono,
                                         .type = MSTX_REC_SYNC};
    }
    const struct mstx_calib first = {below(3) * 500, BASE + 500, BASE + 900, below(9)};
    s.head.first_calib = first;
    if (below(2) == 0)
        s.head.last_calib =
            (struct mstx_calib){t * (hz % 3 + 1) + 7, BASE + (int64_t)t + 99, BASE, 12};
    ck_ok(mstx__clock_add(&clocks, &s, &err), err);
}

static void put_clock(struct ms_buf *b, struct mstx_host_clock *c)
{
    const bool known = mstx__clock_fit(c);
    ms_buf_printf(b, "\nclock %u known %d offset %" PRId64, c->clock, known, c->offset_ns);
    for (size_t i = 0; i < c->knot.n; i++)
        ms_buf_printf(b, " %" PRIu64 ":%" PRId64 ":%" PRIu64, c->knot.p[i].ticks,
                      c->knot.p[i].mono_ns, c->knot.p[i].width);
    for (int i = 0; i < 30; i++) {
        const uint64_t ticks = i < 25   ? below(1 << 30) * UINT64_C(9)
                               : i < 28 ? UINT64_MAX - below(99)
                                        : below(9);
        ms_buf_printf(b, " %" PRId64, mstx__clock_ns(c, ticks));
        ms_buf_printf(b, "/%" PRId64, mstx__clock_steady(c, ticks));
    }
}

static void put_aparts(struct ms_buf *b, const struct mstx_host_clock *c)
{
    ms_buf_printf(b, "\nreference %" PRId64, c->reference_ns);
    for (size_t i = 0; i < c->apart.n; i++)
        ms_buf_printf(b, " %" PRId64 ":%" PRId64 "+-%" PRId64 "/%d", c->apart.p[i].at_ns,
                      c->apart.p[i].offset_ns, c->apart.p[i].uncertainty_ns, c->apart.p[i].method);
    for (int i = -5; i < 30; i++)
        ms_buf_printf(b, " %" PRId64, mstx__clock_shift(c, BASE + i * 77 * MS));
}

static void end_case(struct ms_buf *all, const char *what, unsigned seed, struct ms_buf *b)
{
    if (recorded_shows)
        printf("== %s %u%s\n", what, seed, ms_buf_z(b));
    ms_buf_printf(all, "%s %u: %08x\n", what, seed, ms_crc32(0, b->p, b->n));
    ms_buf_free(b);
    ms_vec_free(&meetings.list);
    mstx__clocks_free(&clocks);
    clocks = (struct mstx_clocks){0};
    meetings = (struct mstx_meetings){0};
}

/* ---- several hosts ---------------------------------------------------------------------- */

/* Clocks of hosts; some offsets are measured, more or less certain, and some wrong. */
static void draw_hosts(int64_t *offset, int64_t *ppm)
{
    for (uint32_t h = 0; h < HOSTS; h++) {
        struct mstx_host_clock *c = ms_vec_push(&clocks.host);
        ck_assert_ptr_nonnull(c);
        *c = (struct mstx_host_clock){.offset_ns = 1000 + (int64_t)h};
        c->boot_id[0] = (uint8_t)(below(9) == 0 ? 1 : h + 1);
        offset[h] = h == 0 ? 0 : ((int64_t)below(2000) - 1000) * MS;
        ppm[h] = h == 0 ? 0 : (int64_t)below(300) - 150;
        for (uint32_t i = below(3) == 0 && h != 0 ? below(12) : 0; i > 0; i--) {
            const int64_t at = (int64_t)below(3000) * MS;
            struct mstx_apart *p = ms_vec_push(&c->apart);
            ck_assert_ptr_nonnull(p);
            *p = (struct mstx_apart){BASE + at,
                                     offset[h] + at / 1000000 * ppm[h] + (int64_t)below(4000) -
                                         2000 + (below(7) == 0 ? 9 * MS : 0),
                                     1 + below(below(2) == 0 ? 9000 : 500), MSTX_APART_PINGS};
        }
    }
}

static void draw_meetings(const int64_t *offset, const int64_t *ppm)
{
    const int64_t apart = below(3) == 0 ? 3000 * MS : 20 * MS;
    for (uint32_t i = below(120); i > 0; i--) {
        const uint32_t group = below(3), first = below(HOSTS);
        const int64_t t = apart * i + (int64_t)below(1000);
        for (uint32_t k = 0; k < 2 + group; k++) {
            const uint32_t host = (first + k) % HOSTS;
            const int64_t here = t - offset[host] - t / 1000000 * ppm[host];
            const struct mstx_meeting m = {.uid = group,
                                           .seq = i,
                                           .host = host,
                                           .start = BASE + here - (int64_t)below(3000000),
                                           .end = BASE + here + (int64_t)below(40000),
                                           .op = MSTX_COMM_BARRIER};
            ck_assert(mstx__meeting_add(&meetings, &m));
        }
    }
}

START_TEST(drawn_points_of_clocks)
{
    struct ms_buf all = {.max = 1 << 20};
    for (unsigned seed = 0; seed < CASES; seed++) {
        struct ms_buf b = {.max = 1 << 20};
        state = seed;
        for (uint32_t i = 1 + below(3); i > 0; i--)
            draw_points();
        for (size_t i = 0; i < clocks.host.n; i++)
            put_clock(&b, &clocks.host.p[i]);
        mstx__clocks_align(&clocks, &clocks.host.p[0]);
        for (size_t i = 0; i < clocks.host.n; i++)
            put_aparts(&b, &clocks.host.p[i]);
        end_case(&all, "clocks", seed, &b);
    }
    recorded_check(&all, "clocks");
}
END_TEST

START_TEST(drawn_meetings_of_hosts)
{
    struct ms_buf all = {.max = 1 << 20};
    for (unsigned seed = 0; seed < CASES; seed++) {
        struct ms_buf b = {.max = 1 << 20};
        int64_t offset[HOSTS], ppm[HOSTS];
        state = seed;
        draw_hosts(offset, ppm);
        draw_meetings(offset, ppm);
        mstx__clocks_align(&clocks, &clocks.host.p[0]);
        ck_ok(mstx__meetings_align(&meetings, &clocks, 0, &err), err);
        for (size_t i = 0; i < clocks.host.n; i++)
            put_aparts(&b, &clocks.host.p[i]);
        end_case(&all, "meetings", seed, &b);
    }
    recorded_check(&all, "meetings");
}
END_TEST

/* Each operation, with and without a number of its ranks. */
START_TEST(which_calls_are_meetings)
{
    struct ms_buf all = {.max = 1 << 20};
    for (unsigned op = 0; op < 256; op++) {
        for (unsigned more = 0; more < 8; more++) {
            const struct mstx_rec_comm c = {.op = (uint8_t)op,
                                            .count = more & 1,
                                            .elem = more & 2 ? 4 : 0,
                                            .peer = more & 4 ? 1 : -1,
                                            .type = MSTX_REC_COMM};
            ms_buf_printf(&all, "%d", mstx__meeting_counts(&c));
        }
    }
    ms_buf_putc(&all, '\n');
    recorded_check(&all, "which_meetings");
}
END_TEST

RECORDED_MAIN("clocks_drawn", drawn_points_of_clocks, drawn_meetings_of_hosts,
              which_calls_are_meetings)
