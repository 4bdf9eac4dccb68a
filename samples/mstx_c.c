/* SPDX-License-Identifier: MIT
 *
 * mstx_c: a training loop with marks.  Without a tool the marks cost nothing; with one:
 *
 *     msprobe run -o run build/samples/mstx_c
 *     msprobe report run
 */
#include "mstx/ms_tools_ext.h"

#include <stdio.h>
#include <time.h>

static void work(long us)
{
    struct timespec t = {.tv_nsec = us * 1000};
    nanosleep(&t, NULL);
}

int main(void)
{
    mstxDomainHandle_t io = mstxDomainCreateA("io");
    char name[32];
    for (int step = 0; step < 20; step++) {
        snprintf(name, sizeof name, "step %d", step);
        mstxRangeId whole = mstxRangeStartA(name, NULL);
        mstxRangeId load = mstxDomainRangeStartA(io, "load batch", NULL);
        work(500);
        mstxDomainRangeEnd(io, load);
        mstxRangeId forward = mstxRangeStartA("forward", NULL);
        work(step == 7 ? 5000 : 1000); /* the step to look at */
        mstxRangeEnd(forward);
        mstxRangeEnd(whole);
    }
    mstxMarkA("done", NULL);
    return 0;
}
