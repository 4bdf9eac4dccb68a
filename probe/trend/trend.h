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
    const char *data;           /* input directory */
    const char *db;             /* output directory, made when missing */
    enum probe_trend_from from; /* AUTO: the kinds that exist */
    const char *mapping;        /* JSON object of parts of names and their replacements, or NULL */
    bool micro_step;            /* each micro step counts as a step */
    bool tolerant;              /* as PROBE_OPEN_TOLERANT */
    /* Receives remarks for the user; why.rc is MS_OK when nothing failed. May be NULL. */
    void (*on_note)(void *ctx, const struct ms_err *why);
    void *ctx;
};

/* Result of writing one database. */
struct probe_trend_file {
    struct ms_buf path; /* empty: none was written */
    uint64_t inputs;    /* dumps or CSV files that were read */
    uint64_t failed;    /* dumps or CSV files that could not be read */
    uint64_t rows;      /* rows given; the first of several with one key is stored */
    uint64_t targets;
};
struct probe_trended {
    struct probe_trend_file dump, monitor;
};

/* Converts a directory. An input that cannot be read is reported through on_note and the others are
 * converted; a database appears complete or not at all. MS_E_NOTFOUND when there is nothing to
 * convert. */
enum ms_rc probe_trend_convert(struct probe_trended *out, const struct probe_trend_conf *conf,
                               struct ms_pool *pool, struct ms_err *err) MS_MUST_USE;
void probe_trended_free(struct probe_trended *out);

/* Tells whether a folder's name is that of a rank of a training monitor, such as
 * "Aug14_10-21-07-rank3-1a2b". */
bool probe__is_rank_dir(struct ms_str name, int64_t *rank);

#endif
