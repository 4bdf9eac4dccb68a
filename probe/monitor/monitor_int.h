/* SPDX-License-Identifier: MIT
 *
 * monitor_int: interface that the files of the monitor share.
 */
#ifndef PROBE_MONITOR_MONITOR_INT_H
#define PROBE_MONITOR_MONITOR_INT_H

#include "probe/base/arena.h"
#include "probe/base/map.h"
#include "probe/base/vec.h"
#include "probe/monitor/monitor.h"

/* ---- csv (monitor_text) ------------------------------------------------ */

struct probe__mon_line {
    struct ms_str name;
    const struct probe_mon_row *row;
};

/* Appends lines as pandas writes a table of them: numbers are rounded column by column, and a column of whole
 * numbers alone has no points. */
void probe__mon_lines(struct ms_buf *out, const struct probe__mon_line *lines, size_t n,
                      const struct probe_monitor_settings *s, int64_t step);
void probe__mon_header(struct ms_buf *out, const struct probe_monitor_settings *s, bool with_micro);

/* ---- alarms (monitor_alert) -------------------------------------------- */

struct probe__mon_history {
    double mean[PROBE_MON_OPS]; /* weighted mean of the magnitudes; negative: none yet */
};

struct probe__mon_alert {
    const struct probe_monitor_settings *s;
    int64_t rank, pp_stage;
    struct ms_buf mates; /* JSON list */
    struct ms_buf path;  /* of anomaly.json; empty: none is written */
    struct ms_buf fresh; /* members of this step, JSON text */
    struct ms_map keys;  /* of this step's alarms */
    struct ms_arena *keys_arena;
    MS_VEC(struct ms_str) texts; /* of this step's alarms, by their keys */
    uint64_t size;               /* of the file up to its closing bracket */
    uint32_t count;
    bool is_begun;
};

enum ms_rc probe__mon_alert_open(struct probe__mon_alert *a, const struct probe_monitor_conf *conf,
                                 const struct probe_monitor_settings *s,
                                 struct ms_err *err) MS_MUST_USE;
void probe__mon_alert_free(struct probe__mon_alert *a);
/* Asks the rules about the figures of a series; suffix: what follows "/rankN/" in its tag. */
enum ms_rc probe__mon_alert_ask(struct probe__mon_alert *a, struct probe__mon_history *history,
                                struct ms_str name, const char *suffix,
                                const struct probe_mon_row *row, int64_t step, int64_t call,
                                struct ms_err *err) MS_MUST_USE;
enum ms_rc probe__mon_alert_write(struct probe__mon_alert *a, struct ms_err *err) MS_MUST_USE;

#endif
