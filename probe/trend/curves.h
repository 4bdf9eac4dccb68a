/* SPDX-License-Identifier: MIT
 *
 * curves: a trend database as curves: one statistic of one target of one rank, over steps.
 *
 *     trend_data (rank, step, target, metric, norm ...) ──► for each rank, target and metric: (step, value) ...
 *
 * NULL, and values beyond what the viewer draws (1e9), are gaps: NaN here.
 */
#ifndef PROBE_TREND_CURVES_H
#define PROBE_TREND_CURVES_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

struct probe_point {
    int64_t step;
    double value; /* NaN: a gap */
};

struct probe_curve {
    struct ms_str name, metric; /* of the target, "layers.0.fc.input"; "actv" */
    int64_t rank, stage, micro_step;
    uint32_t target;              /* in the order of the database */
    const struct probe_point *at; /* by step */
    size_t n;
};

struct probe_curves {
    struct ms_arena *arena;
    const char *stat; /* the statistic that the curves show: the norm where there is one */
    int64_t first_step, last_step, max_rank;
    MS_VEC(struct probe_curve) curves;
    MS_VEC(struct probe_point) points;
};

/* Reads a database, or the data from which one can be made: a monitor's folder or a dump's. */
enum ms_rc probe_curves_read(struct probe_curves *c, const char *path,
                             void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                             struct ms_err *err) MS_MUST_USE;
void probe_curves_free(struct probe_curves *c);

/* Place of a metric in a step: forward, backward, gradients, states, parameters. */
unsigned probe_metric_order(struct ms_str metric);
/* Tells whether the metric is a gradient of a parameter, of which there is one a step. */
bool probe_metric_is_gradient(struct ms_str metric);

#endif
