/* SPDX-License-Identifier: MIT
 *
 * ccl: ranks that meet in shared memory, for the stand-ins of NCCL and HCCL.  A communicator is a
 * file named after its unique id; a collective is a count of arrivals per turn, waited for on
 * the stream as a real one is; a transfer is a turn of the pair of ranks.  No data is moved: the
 * hooks do not look at it.
 */
#ifndef STANDIN_CCL_H
#define STANDIN_CCL_H

#include "tests/standin/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { CCL_RANKS = 64, CCL_TURNS = 1024 };

struct ccl_shared {
    _Atomic uint64_t arrived[CCL_TURNS]; /* of all times this turn was used */
    _Atomic uint64_t sent[CCL_RANKS][CCL_RANKS], taken[CCL_RANKS][CCL_RANKS];
};

struct ccl_comm {
    struct ccl_shared *shared;
    int size, rank;
    uint64_t turn, children; /* issued by this rank */
    uint64_t to[CCL_RANKS], from[CCL_RANKS];
    char name[128];
    const void *copy; /* of the library that made it */
};

/* Two copies of a library know nothing of each other's communicators. */
static const char ccl_copy;
static inline bool ccl_is_ours(const struct ccl_comm *c)
{
    return c != NULL && c->copy == &ccl_copy;
}

/* All ranks that give the same name meet. */
static inline struct ccl_comm *ccl_new(const char *name, int size, int rank)
{
    char path[200];
    if (size < 1 || size > CCL_RANKS || rank < 0 || rank >= size)
        return NULL;
    snprintf(path, sizeof path, "/dev/shm/%.120s", name);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    struct ccl_comm *c = calloc(1, sizeof *c);
    if (fd < 0 || ftruncate(fd, sizeof(struct ccl_shared)) != 0)
        return NULL;
    c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    c->size = size;
    c->rank = rank;
    c->copy = &ccl_copy;
    snprintf(c->name, sizeof c->name, "%.120s", name);
    return c;
}

static inline void ccl_free(struct ccl_comm *c)
{
    char path[200];
    snprintf(path, sizeof path, "/dev/shm/%.120s", c->name);
    unlink(path);
    munmap(c->shared, sizeof *c->shared);
    free(c);
}

/* A piece of work on a stream. */
struct ccl_work {
    struct ccl_comm *comm;
    _Atomic uint64_t *counter; /* wait until it has come so far */
    uint64_t until;
    _Atomic uint64_t *mine; /* raised before waiting */
    long us;
};

static inline void ccl_meet(void *arg)
{
    struct ccl_work *w = arg;
    standin_sleep_us(w->us);
    atomic_fetch_add(w->mine, 1);
    while (atomic_load(w->counter) < w->until)
        standin_sleep_us(20);
    free(w);
}

/* Every n-th call fails; a rank may be ordered not to come back. */
static inline int ccl_fault(const struct ccl_comm *c)
{
    static _Atomic long calls;
    long n = atomic_fetch_add(&calls, 1), loss = standin_number("STANDIN_LOSS");
    while (standin_for_rank("STANDIN_DEADLOCK", c->rank) == n)
        pause();
    return loss > 0 && (n + 1) % loss == 0;
}

static inline int ccl_run(struct ccl_work work, void *stream)
{
    struct ccl_work *w = malloc(sizeof *w);
    *w = work;
    if (stream == NULL) {
        ccl_meet(w);
        return 0;
    }
    return mstx_cpu_stream_run(((struct standin_stream *)stream)->cpu, ccl_meet, w);
}

static inline int ccl_collective(struct ccl_comm *c, void *stream)
{
    if (!ccl_is_ours(c) || ccl_fault(c))
        return -1;
    uint64_t turn = c->turn++;
    _Atomic uint64_t *arrived = &c->shared->arrived[turn % CCL_TURNS];
    uint64_t until = (turn / CCL_TURNS + 1) * (uint64_t)c->size;
    return ccl_run(
        (struct ccl_work){c, arrived, until, arrived, standin_number("STANDIN_DELAY_US")}, stream);
}

static inline long ccl_link_us(int a, int b)
{
    const char *v = getenv("STANDIN_SLOW_LINK"), *dash = v != NULL ? strchr(v, '-') : NULL;
    const char *colon = v != NULL ? strchr(v, ':') : NULL;
    if (dash == NULL || colon == NULL)
        return 0;
    long x = strtol(v, NULL, 10), y = strtol(dash + 1, NULL, 10);
    return (x == a && y == b) || (x == b && y == a) ? strtol(colon + 1, NULL, 10) : 0;
}

static inline int ccl_transfer(struct ccl_comm *c, int peer, void *stream, int sends)
{
    if (!ccl_is_ours(c) || peer < 0 || peer >= c->size || ccl_fault(c))
        return -1;
    struct ccl_shared *s = c->shared;
    long us = standin_number("STANDIN_DELAY_US") + ccl_link_us(c->rank, peer);
    if (sends) /* it is buffered: nothing to wait for */
        return ccl_run((struct ccl_work){c, &s->sent[c->rank][peer], ++c->to[peer],
                                         &s->sent[c->rank][peer], us},
                       stream);
    return ccl_run((struct ccl_work){c, &s->sent[peer][c->rank], ++c->from[peer],
                                     &s->taken[peer][c->rank], us},
                   stream);
}

#endif
