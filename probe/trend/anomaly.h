/* SPDX-License-Identifier: MIT
 *
 * anomaly: the alarms of all ranks of a monitored training, the earliest first.
 *
 *     DIR/rank0/anomaly.json, DIR/rank1/... ──► the first k by step, micro step, forward before backward before
 *     optimizer, stage of the pipeline, number of the call ──► anomaly_analyse.json
 *
 * Forward begins at the first stage of the pipeline, backward and optimizer at the last. Alarms that are equal in
 * all this keep the order of ranks and of their files; the official tool takes ranks as the system lists them.
 */
#ifndef PROBE_TREND_ANOMALY_H
#define PROBE_TREND_ANOMALY_H

#include "probe/base/str.h"

struct probe_anomaly {
    int64_t rank, step, micro_step, pp_stage, vpp_stage, call_id;
    struct ms_str tag, message;
    struct ms_str mates; /* JSON */
};

struct probe_anomalies;

/* Reads all alarms below dir. A file that cannot be read is told to on_note, and the others count; MS_E_NOTFOUND
 * when there is no file at all. */
enum ms_rc probe_anomalies_read(struct probe_anomalies **a, const char *dir,
                                void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                                struct ms_err *err) MS_MUST_USE;
void probe_anomalies_free(struct probe_anomalies *a);
/* Sorts and keeps the first `most` of the given steps; nsteps 0: of all. */
enum ms_rc probe_anomalies_choose(struct probe_anomalies *a, size_t most, const int64_t *steps,
                                  size_t nsteps, struct ms_err *err) MS_MUST_USE;
size_t probe_anomalies_count(const struct probe_anomalies *a);
const struct probe_anomaly *probe_anomalies_at(const struct probe_anomalies *a, size_t i);
/* Writes the chosen ones to a file as the official tool does. */
enum ms_rc probe_anomalies_write(const struct probe_anomalies *a, const char *path,
                                 struct ms_err *err) MS_MUST_USE;

#endif
