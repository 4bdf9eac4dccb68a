/* SPDX-License-Identifier: MIT
 *
 * bench_memory: how long the answers take on ten million allocations: filling the model in the order of
 * the events, then peak, owners and growth.
 */
#include "mstx/memory/mem_kinds.h"
#include "mstx/memory/mem_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SITES = 2000, LIVE = 4096, STEPS = 100 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

int main(int argc, char **argv)
{
    const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
    struct mstx_mem_log *log;
    struct mstx_mem_space *s;
    struct mstx_mem_report report;
    uint32_t site[SITES];
    uint64_t state = 1;
    if (mstx__mem_log_new(&log, NULL) != MS_OK ||
        mstx__mem_space(log, 0, MS_STR("cuda:0"), &s, NULL) != MS_OK)
        return 1;
    for (int i = 0; i < SITES; i++) {
        char name[64];
        snprintf(name, sizeof name, "model.py:%d forward", i);
        const struct mstx_mem_site is = {.frame = mstx__mem_text(log, ms_str_of(name)),
                                         .phase = MSTX_PHASE_FORWARD};
        if (mstx__mem_site(log, &is, &site[i], NULL) != MS_OK)
            return 1;
    }
    const double begin = now();
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t slot = next(&state) % LIVE;
        if (i % (n / STEPS) == 0) {
            struct mstx_mem_step *step = ms_vec_push(&s->steps);
            if (step == NULL)
                return 1;
            *step = (struct mstx_mem_step){(int64_t)s->steps.n, (int64_t)i,
                                           (int64_t)(i + n / STEPS - 1)};
        }
        /* an allocation at a used address frees the block before it: two events */
        if (mstx__mem_alloc(s, (int64_t)i, slot << 9, 512 + next(&state) % 65536, site[i % SITES],
                            0, NULL) != MS_OK)
            return 1;
    }
    const double filled = now();
    if (mstx__mem_set_kinds(log, NULL) != MS_OK ||
        mstx__mem_report_make(&report, "", log, NULL) != MS_OK)
        return 1;
    const double done = now();
    printf(
        "%llu allocations: model %.2f s, answers %.2f s, together %.2f s of CPU time; peak %llu\n",
        (unsigned long long)n, filled - begin, done - filled, done - begin,
        (unsigned long long)report.answers.p[0].peak.bytes);
    mstx__mem_report_free(&report);
    mstx__mem_log_free(log);
    return 0;
}
