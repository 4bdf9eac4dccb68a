/* SPDX-License-Identifier: MIT
 *
 * pace: how far a long part of the work is, at what rate, and how long it will take.
 */
#ifndef COMPARE_PACE_H
#define COMPARE_PACE_H

#include "compare/compare.h"

/* A line that is written over, on a terminal and for what takes longer than a second. */
struct cmp_pace {
    int64_t start_ns, shown_ns;
    const char *what;
};

/* A cmp_progress_fn; ctx is a struct cmp_pace, all zeros at first. */
void cmp_pace_show(void *ctx, const struct cmp_progress *p);

#endif
