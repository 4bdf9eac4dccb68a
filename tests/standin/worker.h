/* SPDX-License-Identifier: MIT
 *
 * worker: what the stand-in libraries are made of: streams over the cpu device of the recorder,
 * events that are stamped by its worker threads, and faults to order by environment variables.
 *
 *   STANDIN_DELAY_US     every operation takes that long on the device
 *   STANDIN_SLOW_RANK    "R:US": what else the device of rank R is given takes longer, so that it
 *                        comes late to operations; the rank is that of the environment's RANK
 *   STANDIN_SLOW_LINK    "A-B:US": transfers between these ranks take longer
 *   STANDIN_LOSS         every n-th call of a communication library fails
 *   STANDIN_DEADLOCK     "R:N": rank R does not come back from its N-th operation (from 0)
 *   STANDIN_DRIFT_PPM    the events' clock runs faster than the host's
 */
#ifndef STANDIN_WORKER_H
#define STANDIN_WORKER_H

#include "mstx/mstx_device.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STANDIN_API __attribute__((visibility("default")))

struct standin_stream {
    void *cpu;
    atomic_int is_capturing;
    unsigned number;
};

struct standin_event {
    _Atomic int64_t ns;  /* 0: not recorded yet */
    _Atomic int waiting; /* recordings that the worker has not come to */
};

static inline int64_t standin_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline long standin_number(const char *name)
{
    const char *v = getenv(name);
    return v != NULL ? strtol(v, NULL, 10) : 0;
}

/* "R:V" for this rank; -1 when it is for another, or not there. */
static inline long standin_for_rank(const char *name, int rank)
{
    const char *v = getenv(name), *colon = v != NULL ? strchr(v, ':') : NULL;
    return colon != NULL && strtol(v, NULL, 10) == rank ? strtol(colon + 1, NULL, 10) : -1;
}

static inline void standin_sleep_us(long us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    if (us > 0)
        nanosleep(&t, NULL);
}

static inline struct standin_stream *standin_stream_new(void)
{
    static _Atomic unsigned made;
    struct standin_stream *s = calloc(1, sizeof *s);
    s->cpu = mstx_cpu_stream_new("stand-in");
    s->number = atomic_fetch_add(&made, 1) + 1;
    return s;
}

static inline void standin_stream_free(struct standin_stream *s)
{
    mstx_cpu_stream_free(s->cpu);
    free(s);
}

static inline void standin_stamp(void *arg)
{
    struct standin_event *e = arg;
    static int64_t origin;
    static double drift;
    int64_t now = standin_now();
    if (origin == 0) {
        drift = (double)standin_number("STANDIN_DRIFT_PPM") / 1e6;
        origin = now;
    }
    atomic_store(&e->ns, now + (int64_t)((double)(now - origin) * drift));
    atomic_fetch_sub(&e->waiting, 1);
}

static inline int standin_record(struct standin_event *e, struct standin_stream *s)
{
    atomic_fetch_add(&e->waiting, 1);
    return mstx_cpu_stream_run(s->cpu, standin_stamp, e);
}

static inline int standin_elapsed(float *ms, struct standin_event *a, struct standin_event *b)
{
    if (atomic_load(&a->ns) == 0 || atomic_load(&b->ns) == 0)
        return -1;
    *ms = (float)((double)(atomic_load(&b->ns) - atomic_load(&a->ns)) / 1e6);
    return 0;
}

struct standin_copy {
    void *to;
    const void *from;
    size_t n;
};
static inline void standin_move(void *arg)
{
    struct standin_copy *c = arg;
    memcpy(c->to, c->from, c->n);
    free(c);
}
static inline int standin_copy(struct standin_stream *s, void *to, const void *from, size_t n)
{
    struct standin_copy *c = malloc(sizeof *c);
    *c = (struct standin_copy){to, from, n};
    return mstx_cpu_stream_run(s->cpu, standin_move, c);
}

static inline void standin_be_late(void *arg)
{
    const char *rank = getenv("RANK");
    (void)arg;
    standin_sleep_us(rank != NULL ? standin_for_rank("STANDIN_SLOW_RANK", atoi(rank)) : 0);
}

/* A piece of the program's own work on a stream. */
static inline int standin_work(struct standin_stream *s, void (*fn)(void *), void *arg)
{
    int rc = mstx_cpu_stream_run(s->cpu, standin_be_late, NULL);
    return rc != 0 ? rc : mstx_cpu_stream_run(s->cpu, fn, arg);
}

#endif
