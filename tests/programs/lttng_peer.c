/* SPDX-License-Identifier: MIT
 *
 * lttng_peer: the cost of an LTTng-UST event with the string that bench_mstx marks, in CPU
 * nanoseconds, median of 31 batches; needs a session that records peer:mark.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/programs/lttng_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 10000, RUNS = 31 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    double ns[RUNS];
    for (int r = -2; r < RUNS; r++) {
        double a = cpu_ns();
        for (int i = 0; i < BATCH; i++)
            lttng_ust_tracepoint(peer, mark, "forward_step_block");
        if (r >= 0)
            ns[r] = (cpu_ns() - a) / BATCH;
        usleep(2000);
    }
    qsort(ns, RUNS, sizeof ns[0], by_value);
    printf("%.1f\n", ns[RUNS / 2]);
    return 0;
}
