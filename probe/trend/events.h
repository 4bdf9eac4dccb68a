/* SPDX-License-Identifier: MIT
 *
 * events: the csv files of a monitor as event files of TensorBoard.
 *
 *     DIR/TIME-rankN-ID/METRIC_A-B.csv ──► OUT/rankN/METRIC/events.out.tfevents.*
 *
 * A curve is "vpSTAGE:NAME[:microM]/OP", as in the official tool.
 */
#ifndef PROBE_TREND_EVENTS_H
#define PROBE_TREND_EVENTS_H

#include "probe/base/err.h"

struct probe_events_made {
    uint64_t files, read, failed, values;
};

/* Converts all files below dir. One that cannot be read is told to on_note and counted; the others are converted. */
enum ms_rc probe_events_convert(struct probe_events_made *made, const char *dir, const char *out,
                                void (*on_note)(void *ctx, const struct ms_err *why), void *ctx,
                                struct ms_err *err) MS_MUST_USE;

#endif
