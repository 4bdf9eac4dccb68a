/* SPDX-License-Identifier: MIT
 *
 * trend_int: interface that the files of the trend converter share.
 */
#ifndef PROBE_TREND_TREND_INT_H
#define PROBE_TREND_TREND_INT_H

#include "probe/base/map.h"
#include "probe/base/store.h"
#include "probe/dump/tree.h"
#include "probe/trend/trend.h"

/* ---- names (trend_db) ------------------------------------------------- */

/* The mapping file: each key found in a name is replaced by its value, in the order of the file. */
struct probe__renames {
    struct ms_arena *arena;
    MS_VEC(struct ms_str) from;
    MS_VEC(struct ms_str) to;
};
enum ms_rc probe__renames_read(struct probe__renames *m, const char *path,
                               struct ms_err *err) MS_MUST_USE;
void probe__renames_free(struct probe__renames *m);
/* Maps a name; a changed name is built in one of the two buffers. */
enum ms_rc probe__rename(const struct probe__renames *m, struct ms_str name, struct ms_buf buf[2],
                         struct ms_str *out, struct ms_err *err) MS_MUST_USE;
/* Appends s with every `from` replaced by `to`. */
void probe__put_replaced(struct ms_buf *out, struct ms_str s, struct ms_str from, struct ms_str to);

/* Receives one tag, a word by which the viewer filters targets. `name` is valid during the call
 * only. */
typedef enum ms_rc (*probe__tag_fn)(void *ctx, struct ms_str name, const char *category,
                                    struct ms_err *err);
typedef enum ms_rc (*probe__tags_fn)(struct ms_str target, probe__tag_fn fn, void *ctx,
                                     struct ms_err *err);
enum ms_rc probe__dump_tags(struct ms_str target, probe__tag_fn fn, void *ctx,
                            struct ms_err *err) MS_MUST_USE;
enum ms_rc probe__monitor_tags(struct ms_str target, probe__tag_fn fn, void *ctx,
                               struct ms_err *err) MS_MUST_USE;

/* ---- database (trend_db) ---------------------------------------------- */

enum { PROBE__STATS = 14, PROBE__METRICS = 9 };

struct probe__trend_target {
    struct ms_str name;
    uint32_t metrics; /* bits of the metrics that have this target */
};

struct probe__trend_db {
    struct ms_store *store;
    struct ms_stmt *insert_target, *insert_row;
    struct ms_arena *arena;
    struct ms_map keys;                         /* "stage|micro step|name" */
    MS_VEC(struct probe__trend_target) targets; /* id in the database: index + 1 */
    struct ms_buf key;
    const char *const *metrics;
    const char *const *stats;
    unsigned nmetrics, nstats;
    uint64_t rows;
};

/* Creates a database with these metrics and a column for each statistic; the two arrays must
 * outlive db. */
enum ms_rc probe__trend_db_open(struct probe__trend_db *db, const char *path,
                                const char *const *metrics, unsigned nmetrics,
                                const char *const *stats, unsigned nstats,
                                struct ms_err *err) MS_MUST_USE;
void probe__trend_db_free(struct probe__trend_db *db);
/* Returns the index of a target, which is added when new. */
enum ms_rc probe__trend_target(struct probe__trend_db *db, unsigned metric, struct ms_str name,
                               int64_t stage, int64_t micro_step, uint32_t *target,
                               struct ms_err *err) MS_MUST_USE;
/* Adds a row; the first of several with one key counts. Values are clamped, NaN becomes NULL. */
enum ms_rc probe__trend_row(struct probe__trend_db *db, int64_t rank, int64_t step, uint32_t target,
                            unsigned metric, const double *values, struct ms_err *err) MS_MUST_USE;

struct probe__trend_range {
    int64_t max_rank, min_step, max_step;
};
/* Writes the tags and the one row of global_stats, and commits. metric_stats[i] has a bit for each
 * statistic of metric i. rank_first: max_rank comes before the steps, which differs between the two
 * databases. */
enum ms_rc probe__trend_db_finish(struct probe__trend_db *db,
                                  const struct probe__trend_range *range, bool rank_first,
                                  const uint32_t *metric_stats, probe__tags_fn tags,
                                  struct ms_err *err) MS_MUST_USE;

/* ---- the two converters ----------------------------------------------- */

struct probe__trend_job {
    const struct probe_trend_conf *conf;
    struct probe__renames renames;
    struct ms_pool *pool;
};
void probe__trend_note(const struct probe__trend_job *j, const struct ms_err *why);
/* Convert one kind of data; MS_E_NOTFOUND when there is none. */
enum ms_rc probe__trend_dump(struct probe__trend_job *j, struct probe_trend_file *out,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc probe__trend_monitor(struct probe__trend_job *j, struct probe_trend_file *out,
                                struct ms_err *err) MS_MUST_USE;

/* ---- folders of a monitor (trend_monitor) ------------------------------- */

/* Tells whether a name is that of a file of a metric; the metrics are counted. */
bool probe__is_metric_file(struct ms_str name, unsigned *metric);
const char *probe__metric_name(unsigned metric);

#endif
