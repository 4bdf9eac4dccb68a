/* SPDX-License-Identifier: MIT
 *
 * calibrate: runs that ought to be equal, held against each other.
 *
 * What they differ in is noise, and what is named as a suspect among them is a false
 * alarm.  The noise is written as a file that `compare --noise-floor` reads:
 *
 *     {"noise_floor": 1, "mode": "statistics", "runs": ["a", "b"],
 *      "places": [{"step": 0, "rank": 0, "rows": {"Torch.a.0.forward.output.0": 1.2e-07}}]}
 */
#ifndef COMPARE_CHECK_CALIBRATE_H
#define COMPARE_CHECK_CALIBRATE_H

#include "compare/compare.h"

#include "compare/write/out.h"
#include "probe/base/message.h"

struct cal_alarm {                /* a suspect where there is nothing to find */
    struct ms_str target, golden; /* runs */
    struct ms_str node;
    struct ms_said said;
    int rank, step;
};

struct calibration {
    const char *const *runs;
    size_t nruns, comparisons;
    uint64_t rows, equal;      /* rows measured; equal: without any difference */
    uint64_t warnings, errors; /* rows, over all comparisons */
    double median, most, p99;  /* of the rows that differ; NaN: none does */
    struct ms_str most_row;
    enum probe_mode mode;
    MS_VEC(struct cal_alarm) alarms;
    size_t alarmed;      /* comparisons with an alarm */
    struct ms_map notes; /* what is wrong with a run's files, told once */
    struct ms_arena *arena;
};

/* Compare every run with every one before it and write the noise to path, unless that is NULL.
 * pool may be NULL. */
enum ms_rc calibrate(struct calibration *cal, const char *const *runs, size_t n, const char *path,
                     struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void calibration_free(struct calibration *cal);

#endif
