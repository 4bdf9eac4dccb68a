/* SPDX-License-Identifier: MIT
 *
 * nvtx_sync: locks that a program implements itself and announces to NVTX.  Waiting for a lock is a
 * range on the waiting thread, holding a lock is a range that any thread may end:
 *
 *     AcquireStart ──► "wait NAME" ──► AcquireSuccess ──► "hold NAME" ──► Releasing
 *                                 └──► AcquireFailed
 */
#include "mstx/rt/nvtx/nvtx.h"

#include <stdio.h>
#include <string.h>

enum { LOCKS = 4096, TEXT_BYTES = 128 };

struct attr { /* 16 bytes */
    uint16_t version, size;
    int32_t message_type;
    const void *message;
};
static_assert(sizeof(struct attr) == 16, "attr");

static struct lock {
    _Atomic bool used;
    struct rt_domain *domain;
    char wait[TEXT_BYTES], hold[TEXT_BYTES];
    _Atomic uint32_t held; /* the open range, 0: none */
} user_locks[LOCKS];

/* The lock that this thread waits for; one at a time. */
static __thread struct {
    const struct lock *lock;
    uint32_t range;
} waiting __attribute__((tls_model("initial-exec")));

static struct lock *lock_of(const void *handle)
{
    uintptr_t off = (uintptr_t)handle - (uintptr_t)user_locks;
    if (off >= sizeof user_locks || off % sizeof user_locks[0] != 0)
        return NULL;
    return &user_locks[off / sizeof user_locks[0]];
}

static uint32_t start(const struct lock *l, const char *text)
{
    if (!nvtx_live(l->domain))
        return 0;
    const struct rt_event e = {.name = nvtx_text(text), .flags = MSTX_F_NVTX};
    return rt_range_start_event(l->domain, &e);
}

static void end(const struct lock *l, uint32_t range)
{
    const struct rt_event e = {.flags = MSTX_F_NVTX};
    if (range != 0)
        rt_range_end_event(l->domain, range, &e);
}

static void *lock_create(void *domain, const struct attr *given)
{
    struct rt_domain *d = rt_domain_of(domain);
    struct attr a = {0};
    char buf[TEXT_BYTES];
    if (d == NULL)
        return NULL;
    if (given != NULL)
        memcpy(&a, given, given->size < sizeof a ? given->size : sizeof a);
    if (given == NULL || given->size < sizeof a)
        a.message_type = 0; /* a partial pointer is not usable */
    const char *name = nvtx_message_text(a.message_type, a.message, buf, sizeof buf);
    name = name != NULL ? name : "lock";
    for (size_t i = 0; i < LOCKS; i++) {
        bool used = false;
        struct lock *l = &user_locks[i];
        if (!atomic_compare_exchange_strong(&l->used, &used, true))
            continue;
        l->domain = d;
        snprintf(l->wait, sizeof l->wait, "wait %s", name);
        snprintf(l->hold, sizeof l->hold, "hold %s", name);
        return l;
    }
    rt_say(RT_SAY_NVTX, 0, "more than %d NVTX locks; the rest is not recorded", LOCKS);
    return NULL;
}

static void stop_waiting(void)
{
    if (waiting.lock != NULL)
        end(waiting.lock, waiting.range);
    waiting.lock = NULL;
}

static void lock_destroy(const void *handle)
{
    struct lock *l = lock_of(handle);
    if (l == NULL)
        return;
    end(l, atomic_exchange(&l->held, 0));
    atomic_store(&l->used, false);
}

static void acquire_start(const void *handle)
{
    const struct lock *l = lock_of(handle);
    stop_waiting();
    if (l == NULL)
        return;
    waiting.range = start(l, l->wait);
    waiting.lock = l;
}

static void acquire_failed(const void *handle)
{
    if (lock_of(handle) == waiting.lock)
        stop_waiting();
}

/* Ends the wait and begins the range of the holder. A lock with several holders has a range for the
 * first of them. */
static void acquire_success(const void *handle)
{
    struct lock *l = lock_of(handle);
    if (l == NULL)
        return;
    if (l == waiting.lock)
        stop_waiting();
    uint32_t none = 0, range = atomic_load(&l->held) == 0 ? start(l, l->hold) : 0;
    if (range != 0 && !atomic_compare_exchange_strong(&l->held, &none, range))
        end(l, range);
}

static void releasing(const void *handle)
{
    struct lock *l = lock_of(handle);
    if (l != NULL)
        end(l, atomic_exchange(&l->held, 0));
}

#define F(f) (nvtx_fn) f
const nvtx_fn nvtx_sync_slots[NVTX_SYNC_SLOTS] = {NULL,
                                                  F(lock_create),
                                                  F(lock_destroy),
                                                  F(acquire_start),
                                                  F(acquire_failed),
                                                  F(acquire_success),
                                                  F(releasing)};
