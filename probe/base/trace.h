/* SPDX-License-Identifier: MIT
 *
 * trace: times the tool's own phases (read, align, measure, write) for --trace-self and --stats, as
 * a trace that msprobe can show.
 */
#ifndef PROBE_BASE_TRACE_H
#define PROBE_BASE_TRACE_H

#include "probe/base/err.h"

#include <stdint.h>
#include <stdio.h>

/* A phase, on the stack of the code that runs it: struct ms_span s = ms_span_begin("read"); ...
 * ms_span_end(&s); The pointer `name` is kept, so it must be a literal. Thread-safe and cheap: two
 * clock reads. */
struct ms_span {
    const char *name;
    int64_t start_ns, start_cpu_ns;
};
struct ms_span ms_span_begin(const char *name);
void ms_span_end(const struct ms_span *s);

/* Writes the finished spans, at most the first 65536, as Chrome trace events. */
enum ms_rc ms_trace_write(const char *path, struct ms_err *err) MS_MUST_USE;
/* Prints one line per phase name with its number of runs, wall and CPU ms; then live and peak
 * memory. */
void ms_trace_summary(FILE *to);
/* Drops all finished spans and frees their memory. */
void ms_trace_reset(void);

#endif
