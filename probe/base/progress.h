/* SPDX-License-Identifier: MIT
 *
 * progress: a line about long work, on a terminal, that overwrites itself.
 *
 *     struct ms_progress p = {.what = "reading"};
 *     ms_progress_show(&p, &(struct ms_pace){.share = 0.4, .amount = bytes, .unit = MS_PACE_BYTES});
 *     ...                          as often as is handy, also for several works one after the other
 *     ms_progress_end(&p);
 *
 * reading [############                  ]  40%, 1.2 GB/s, 3 s left
 *
 * Standard error shows the line, where that is a terminal; it appears when the work has taken a second, and
 * ten times a second at most. ms_progress_end removes it. One thread at a time.
 */
#ifndef PROBE_BASE_PROGRESS_H
#define PROBE_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum ms_pace_unit {
    MS_PACE_NONE,
    MS_PACE_BYTES,
    MS_PACE_ROWS,
    MS_PACE_FILES,
    MS_PACE_RANKS,
    MS_PACE_DUMPS,
    MS_PACE_LAYERS,
    MS_PACE_OPERATORS,
    MS_PACE_WEIGHTS
};

/* How far the work is. */
struct ms_pace {
    double share;    /* 0 ... 1; below 0: unknown, the amount is shown alone */
    uint64_t amount; /* done so far, in the unit; 0: unknown */
    enum ms_pace_unit unit;
};

/* State of the line; zeroed but for what, which may change when another work begins. */
struct ms_progress {
    const char *what; /* "reading" */
    const char *of;   /* the work that the line is about; own */
    int64_t start_ns, shown_ns;
    bool is_shown;
};

/* Tells whether fd is a terminal that handles control sequences: not a file or pipe, and not
 * TERM=dumb, which editors and logs set. */
bool ms_progress_ok(int fd);

void ms_progress_show(struct ms_progress *p, const struct ms_pace *pace);
/* Shows how many of all parts are done. Nothing is shown without a line, p NULL, so that a library can be
 * asked to be silent. */
void ms_progress_part(struct ms_progress *p, uint64_t done, uint64_t all, enum ms_pace_unit unit);
/* Removes the line, if there is one, so that other lines may follow; the work may go on. */
void ms_progress_end(struct ms_progress *p);

#endif
