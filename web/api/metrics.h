/* SPDX-License-Identifier: MIT
 *
 * metrics: the answer of /metrics for Prometheus: the run and the server.
 */
#ifndef WEB_API_METRICS_H
#define WEB_API_METRICS_H

#include "viz/model/session.h"

#include <stdatomic.h>

/* Counters updated by many threads. */
struct web_metrics {
    _Atomic uint64_t answered, failed, refused, bytes, busy_ns;
    int64_t start_ns;
};

void web_metrics_init(struct web_metrics *m);
void web_metrics_count(struct web_metrics *m, bool ok, int64_t took_ns, size_t bytes);
void web_metrics_refused(struct web_metrics *m);
/* Writes the Prometheus text format, version 0.0.4. */
enum ms_rc web_metrics_write(struct web_metrics *m, const struct viz_reader *r, struct ms_buf *out,
                             struct ms_err *err) MS_MUST_USE;

#endif
