/* SPDX-License-Identifier: MIT
 *
 * Order of stores between the thread that marks and whoever reads its ring while it does: what lies
 * below the published head is whole. x86 keeps stores in order by itself; other processors keep only
 * what acquire and release ask for.
 */
#include "mstx/rt/ring.h"

#include "tests/support/check.h"

#include <pthread.h>
#include <sched.h>

enum { RECORDS = 4096, ROUNDS = 400 };

static struct mstx_rec records[RECORDS];
static struct mstx_seg segment;
static struct rt_ring ring;
static _Atomic uint32_t round_ready, round_read; /* of the writer, of the reader */

static uint64_t value_of(uint32_t round, uint32_t at)
{
    return ((uint64_t)round << 32 | at) * 0x9e3779b97f4a7c15;
}

/* The mark's own code reserves and publishes; what it writes between is the round's. */
static void write_round(uint32_t round)
{
    ring.pos = 0;
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint32_t at;
        if (!rt_reserve_near(&ring, 1, &at))
            return;
        struct mstx_rec *r = &ring.rec[at];
        r->ticks = value_of(round, at);
        r->id = ~r->ticks;
        r->name = round;
        r->arg = r->ticks ^ at;
        rt_publish(&ring);
    }
}

static void *write_all(void *unused)
{
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        while (atomic_load_explicit(&round_read, memory_order_acquire) != round - 1)
            sched_yield();
        segment.head = 0;
        atomic_store_explicit(&round_ready, round, memory_order_release);
        write_round(round);
    }
    return unused;
}

static bool is_whole(uint32_t round, uint32_t at)
{
    const struct mstx_rec r = *(const volatile struct mstx_rec *)&records[at];
    const uint64_t v = value_of(round, at);
    return r.ticks == v && r.id == ~v && r.name == round && r.arg == (v ^ at);
}

/* Returns how many records were below the head and not whole. */
static uint64_t read_round(uint32_t round, uint64_t *looks)
{
    uint64_t broken = 0;
    uint32_t head = 0;
    while (head < RECORDS) {
        const uint32_t now = __atomic_load_n(&segment.head, __ATOMIC_ACQUIRE);
        *looks += now != head;
        for (; head < now; head++)
            broken += !is_whole(round, head);
    }
    return broken;
}

START_TEST(what_is_published_is_whole)
{
    uint64_t broken = 0, looks = 0;
    pthread_t writer;
    ring.rec = records;
    ring.seg = &segment;
    ring.limit = RECORDS;
    ck_assert_int_eq(pthread_create(&writer, NULL, write_all, NULL), 0);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        while (atomic_load_explicit(&round_ready, memory_order_acquire) != round)
            sched_yield();
        broken += read_round(round, &looks);
        atomic_store_explicit(&round_read, round, memory_order_release);
    }
    pthread_join(writer, NULL);
    ck_assert_uint_eq(broken, 0);
    ck_assert_uint_ge(looks, ROUNDS);
}
END_TEST

/* The counter that a mark reads never goes back within a thread. */
START_TEST(the_clock_never_goes_back)
{
    rt_clock_choose(NULL);
    uint64_t last = rt_ticks();
    for (int i = 0; i < 1000000; i++) {
        const uint64_t now = rt_ticks();
        ck_assert_uint_ge(now, last);
        last = now;
    }
}
END_TEST

TEST_MAIN_WITHIN(60, "litmus", what_is_published_is_whole, the_clock_never_goes_back)
