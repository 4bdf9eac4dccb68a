/* SPDX-License-Identifier: MIT */
#include "probe/base/progress.h"

#include "probe/base/clock.h"
#include "probe/base/human.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 30, SECOND_NS = 1000000000, AGAIN_NS = SECOND_NS / 10 };
static const char marks[] = "##############################";
static const char *const units[] = {[MS_PACE_NONE] = "",          [MS_PACE_BYTES] = "",
                                    [MS_PACE_ROWS] = "rows",      [MS_PACE_FILES] = "files",
                                    [MS_PACE_RANKS] = "ranks",    [MS_PACE_DUMPS] = "dumps",
                                    [MS_PACE_LAYERS] = "layers",  [MS_PACE_OPERATORS] = "operators",
                                    [MS_PACE_WEIGHTS] = "weights"};

bool ms_progress_ok(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) != 0 && term != NULL && strcmp(term, "dumb") != 0;
}

static void print_rate(const struct ms_pace *pace, int64_t took_ns)
{
    char rate[MS_HUMAN_MAX];
    const double a_second = (double)pace->amount * SECOND_NS / (double)took_ns;
    if (pace->unit == MS_PACE_BYTES)
        fprintf(stderr, ", %s/s", ms_human_bytes(rate, (uint64_t)a_second));
    else if (pace->unit != MS_PACE_NONE)
        fprintf(stderr, ", %s %s/s", ms_human_factor(rate, a_second), units[pace->unit]);
}

static void print_amount(const struct ms_pace *pace)
{
    char amount[MS_HUMAN_MAX];
    if (pace->unit == MS_PACE_BYTES)
        fprintf(stderr, " %s", ms_human_bytes(amount, pace->amount));
    else if (pace->unit != MS_PACE_NONE)
        fprintf(stderr, " %s %s", ms_human_count(amount, pace->amount), units[pace->unit]);
}

static void print_line(const struct ms_progress *p, const struct ms_pace *pace, int64_t took_ns)
{
    char left[MS_HUMAN_MAX];
    int done = (int)(pace->share * WIDTH);
    fprintf(stderr, "\r%s", p->what);
    if (pace->share < 0)
        print_amount(pace);
    else
        fprintf(stderr, " [%.*s%*s] %3.0f%%", done, marks, WIDTH - done, "", pace->share * 100);
    if (pace->amount != 0)
        print_rate(pace, took_ns);
    if (pace->share > 0)
        fprintf(stderr, ", %s left",
                ms_human_time(left, (int64_t)((double)took_ns * (1 - pace->share) / pace->share)));
    fputs("\033[K", stderr);
    fflush(stderr);
}

void ms_progress_show(struct ms_progress *p, const struct ms_pace *pace)
{
    int64_t now = ms_clock_ns();
    if (p->of != p->what) {
        p->of = p->what;
        p->start_ns = now;
    }
    if (pace->share >= 1) {
        ms_progress_end(p);
        return;
    }
    if (now - p->start_ns < SECOND_NS || now - p->shown_ns < AGAIN_NS ||
        !ms_progress_ok(STDERR_FILENO))
        return;
    p->shown_ns = now;
    p->is_shown = true;
    print_line(p, pace, now - p->start_ns);
}

void ms_progress_part(struct ms_progress *p, uint64_t done, uint64_t all, enum ms_pace_unit unit)
{
    if (p != NULL)
        ms_progress_show(p,
                         &(struct ms_pace){all != 0 ? (double)done / (double)all : 1, done, unit});
}

void ms_progress_end(struct ms_progress *p)
{
    if (p->is_shown)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    p->is_shown = false;
}
