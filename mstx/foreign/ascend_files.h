/* SPDX-License-Identifier: MIT
 *
 * ascend_files: finds the files that Ascend's profilers wrote below a directory, by rank.
 *
 *     NAME_TIME_ascend_pt/profiler_info_7.json
 *                         ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_7.db, analysis.db,
 *                                                communication.json, step_trace_time.csv
 *     PROF_N_TIME_ID/msprof_TIME.db, analyze/communication_analyzer.db, device_3/info.json.3
 *
 * The rank is in the name of a database, else in profiler_info_*.json beside the output directory,
 * else in info.json.
 */
#ifndef MSTX_FOREIGN_ASCEND_FILES_H
#define MSTX_FOREIGN_ASCEND_FILES_H

#include "mstx/read/dir_walk.h"
#include "probe/base/err.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

#include <stdint.h>

#define MSTX_ANALYSIS_DIR "cluster_analysis_output" /* results of msprof-analyze; never searched */

/* Files of one rank; a path that is missing is NULL. */
struct mstx_rank_files {
    int64_t rank;
    char *profiler; /* database of events */
    char *analysis; /* database with the profiler's analysis of communication */
    char *dir;      /* directory of both databases and of the JSON and CSV files */
};

struct mstx_ascend_files {
    MS_VEC(struct mstx_rank_files) ranks; /* in order of rank, each once */
    /* Called for each file that cannot be read; the search continues unless the function fails. */
    enum ms_rc (*note_problem)(void *ctx, const char *file, const char *text, struct ms_err *err);
    void *ctx;
    struct mstx_dir_walk walk;
};

/* Searches dir for the ranks of only, "0,3,4", or for all when only is NULL. The caller sets
 * note_problem and ctx; all else of found is zero. */
enum ms_rc mstx__ascend_files_find(struct mstx_ascend_files *found, const char *dir,
                                   const char *only, struct ms_err *err) MS_MUST_USE;
/* Adds the files of a rank; analysis may be NULL. */
enum ms_rc mstx__ascend_files_add(struct mstx_ascend_files *found, int64_t rank,
                                  const char *profiler, const char *analysis,
                                  struct ms_err *err) MS_MUST_USE;
/* Puts the ranks in order and keeps those of only, "0,3,4", or all when only is NULL, each once. */
enum ms_rc mstx__ascend_files_choose(struct mstx_ascend_files *found, const char *only,
                                     struct ms_err *err) MS_MUST_USE;
/* Tells whether a rank is among those that were chosen. */
bool mstx__ascend_files_has(const struct mstx_ascend_files *found, int64_t rank);
void mstx__ascend_files_free(struct mstx_ascend_files *found);

/* Reads communication.json and communication_matrix.json of one rank.
 *
 *     {STEP: {"p2p" | "collective": {"OPERATION@GROUP": {...}, ...}, ...}, ...} */

struct mstx_ascend_op {
    struct ms_str step, kind, op, group; /* op is the whole key, group the part after the last @ */
    struct ms_str text;                  /* JSON text of the object in the file */
};
typedef enum ms_rc (*mstx_ascend_op_fn)(void *ctx, const struct mstx_ascend_op *op,
                                        struct ms_err *err);
/* Calls fn for every operation except the sums, whose names begin with Total. */
enum ms_rc mstx__ascend_json_read(const char *p, size_t n, mstx_ascend_op_fn fn, void *ctx,
                                  struct ms_err *err) MS_MUST_USE;

#endif
