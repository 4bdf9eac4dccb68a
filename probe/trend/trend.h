/* SPDX-License-Identifier: MIT
 *
 * trend: statistics of many steps in one SQLite database for the official trend
 * viewer.
 *
 *     dump root    step*, rank*, dump.json ──► dump_data.trend.db
 *     monitor root *-rank*-*, METRIC_A-B.csv ──► monitor_data.trend.db
 *
 * A row of the table trend_data is one tensor ("target") of one rank at one
 * step, with a column for each statistic.
 */
#ifndef PROBE_TREND_TREND_H
#define PROBE_TREND_TREND_H

#include "probe/base/pool.h"
#include "probe/base/str.h"

enum probe_trend_from { PROBE_TREND_AUTO, PROBE_TREND_DUMP, PROBE_TREND_MONITOR };

struct probe_trend_conf {
    const char *data;           /* the directory to read */
    const char *db;             /* the directory to write into, made when missing */
    enum probe_trend_from from; /* AUTO: whatever is there */
    const char *mapping;        /* JSON object: parts of names and what stands for them; or NULL */
    bool micro_step;            /* each micro step is a step of its own */
    bool tolerant;              /* as PROBE_OPEN_TOLERANT */
    /* What a person should know; why.rc is MS_OK for what is no failure.  May be NULL. */
    void (*on_note)(void *ctx, const struct ms_err *why);
    void *ctx;
};

/* What was written into one database. */
struct probe_trend_file {
    struct ms_buf path; /* empty: none was written */
    uint64_t inputs;    /* dumps or CSV files that were read */
    uint64_t failed;    /* and that could not be */
    uint64_t rows;      /* handed over; of several for one place the first stays */
    uint64_t targets;
};
struct probe_trended {
    struct probe_trend_file dump, monitor;
};

/* Convert.  An input that cannot be read is noted and the others are converted; a database appears
 * complete or not at all.  MS_E_NOTFOUND when there is nothing to convert. */
enum ms_rc probe_trend_convert(struct probe_trended *out, const struct probe_trend_conf *conf,
                               struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe_trended_free(struct probe_trended *out);

#endif
