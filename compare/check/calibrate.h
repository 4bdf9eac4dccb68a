/* SPDX-License-Identifier: MIT
 *
 * calibrate: compares runs that should be equal.
 *
 * Their differences are noise, and each suspect among them is a false alarm. The noise is
 * written to a file that `compare --noise-floor` reads:
 *
 *     {"noise_floor": 1, "mode": "statistics", "runs": ["a", "b"],
 *      "places": [{"step": 0, "rank": 0, "rows": {"Torch.a.0.forward.output.0": 1.2e-07}}]}
 */
#ifndef COMPARE_CHECK_CALIBRATE_H
#define COMPARE_CHECK_CALIBRATE_H

#include "compare/compare.h"

#include "compare/write/out.h"
#include "probe/base/message.h"

struct cal_alarm {                /* a suspect although the runs are equal: a false alarm */
    struct ms_str target, golden; /* runs */
    struct ms_str node;
    struct ms_stored_message message;
    int rank, step;
};

struct calibration {
    const char *const *runs;
    size_t nruns, comparisons;
    uint64_t rows, equal;      /* rows that were measured; equal: those without a difference */
    uint64_t warnings, errors; /* rows, summed over all comparisons */
    double median, most, p99;  /* over the rows that differ; NaN: none does */
    struct ms_str most_row;
    enum probe_mode mode;
    MS_VEC(struct cal_alarm) alarms;
    size_t alarmed;      /* comparisons with an alarm */
    struct ms_map notes; /* problems of the runs' files, each once */
    struct ms_arena *arena;
};

/* Compares every run with every earlier one and writes the noise to path, unless path is NULL. pool
 * may be NULL. */
enum ms_rc calibrate(struct calibration *cal, const char *const *runs, size_t n, const char *path,
                     struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void calibration_free(struct calibration *cal);

#endif
