/* SPDX-License-Identifier: MIT
 *
 * trace: the tool's own phases (read, align, measure, write) for --trace-self
 * and --stats: profile the profiler with its own viewer.
 */
#ifndef PROBE_BASE_TRACE_H
#define PROBE_BASE_TRACE_H

#include "probe/base/err.h"

#include <stdint.h>
#include <stdio.h>

/* A phase, on the stack of whoever runs it: struct ms_span s = ms_span_begin("read"); ...
 * ms_span_end(&s);   name is kept, so give a literal.  Thread-safe and cheap: two clock reads. */
struct ms_span {
    const char *name;
    int64_t start_ns, start_cpu_ns;
};
struct ms_span ms_span_begin(const char *name);
void ms_span_end(const struct ms_span *s);

/* Write all finished spans, the first 65536 of them, as Chrome trace events. */
enum ms_rc ms_trace_write(const char *path, struct ms_err *err) MS_MUST_USE;
/* One line per phase name: times run, wall and CPU ms; then memory live and peak. */
void ms_trace_summary(FILE *to);
/* Forget all finished spans and give their memory back. */
void ms_trace_reset(void);

#endif
