/* SPDX-License-Identifier: MIT
 *
 * pace: the bar on standard error.
 */
#include "compare/pace.h"

#include "probe/base/clock.h"
#include "probe/base/human.h"

#include <stdio.h>

/* "1.2 GB/s, 3 s left" */
static void print_pace(const struct cmp_progress *p, int64_t took_ns)
{
    char left[MS_HUMAN_MAX], rate[MS_HUMAN_MAX];
    double seconds = (double)took_ns / 1e9;
    uint64_t pace = (uint64_t)((double)p->amount / seconds);
    if (p->is_bytes)
        fprintf(stderr, "%s/s, ", ms_human_bytes(rate, pace));
    else if (p->amount != 0)
        fprintf(stderr, "%s rows/s, ", ms_human_count(rate, pace));
    double rest = (double)took_ns * (1 - p->share) / p->share;
    fprintf(stderr, "%s left", ms_human_time(left, (int64_t)rest));
}

void cmp_pace_show(void *ctx, const struct cmp_progress *p)
{
    enum { WIDTH = 30, SECOND = 1000000000 };
    static const char marks[] = "##############################";
    struct cmp_pace *b = ctx;
    int64_t now = ms_clock_ns();
    if (b->what != p->what) {
        b->what = p->what;
        b->start_ns = now;
    }
    bool end = p->share >= 1;
    if (now - b->start_ns < SECOND || (now - b->shown_ns < SECOND / 10 && !end) || p->share <= 0)
        return;
    b->shown_ns = now;
    int done = (int)(p->share * WIDTH);
    fputs("\r", stderr);
    if (!end) {
        fprintf(stderr, "%s [%.*s%*s] %3.0f%%, ", p->what, done, marks, WIDTH - done, "",
                p->share * 100);
        print_pace(p, now - b->start_ns);
    }
    fputs("\033[K", stderr);
    fflush(stderr);
}
