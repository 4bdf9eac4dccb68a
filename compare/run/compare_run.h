/* SPDX-License-Identifier: MIT
 *
 * compare_run: a whole comparison of two runs, from the paths of both to the files of all
 * ranks and the report. Ranks are paired, spread over the processes of mpirun, and taken
 * through all stages; then the suspects of all ranks are found.
 */
#ifndef COMPARE_RUN_COMPARE_RUN_H
#define COMPARE_RUN_COMPARE_RUN_H

#include "compare/run/spread.h"
#include "probe/base/progress.h"
#include "probe/dump/find.h"

struct cmp_run_conf {
    struct cmp_conf cmp; /* noise_floor and its place are set for each rank */
    const char *target, *golden;
    const char *output;  /* directory */
    const char *noise;   /* a second run of the golden side, or a calibration; or NULL */
    const char *explain; /* explain only why this node has its partner; or NULL */
    bool explain_json;   /* as JSON, else as text */
    size_t most;         /* notes that are printed; 0: all */
    bool xlsx;
    bool diff;          /* find the first operator that differs over all ranks (-da), as JSON */
    bool write_mapping; /* write the alignment as mapping files */
    /* Writes advice beside a table; NULL: no advice. */
    enum ms_rc (*write_advice)(const struct cmp *c, const char *path, struct cmp_files *files,
                               struct ms_err *err);
    /* note: prints a remark; fail: prints why a rank failed when others succeeded. */
    void (*note)(const char *line);
    void (*fail)(const struct ms_err *err);
};

/* State and results of a run; the report refers to the other fields. */
struct cmp_run {
    struct cmp_run_conf conf;
    struct cmp_conf cmp; /* configuration of the current rank */
    struct ms_progress bar;
    struct cmp_ranks ranks;
    struct probe_places noise;
    bool calibrated; /* the noise floor is a calibration, not a run */
    struct ms_pool *pool;
    struct ms_par *par;
    struct cmp_spread spread;
    struct cmp_source *source;
    struct cmp_report report; /* complete in process 0 */
    char stamp[16];           /* time in the names of all files */
};

/* Writes the local time in the form used in file names. */
void cmp_run_stamp(char stamp[16]);
/* Compares with all processes of par, which outlives the run. The caller frees the run even after a
 * failure. */
enum ms_rc compare_run(struct cmp_run *run, const struct cmp_run_conf *conf, struct ms_par *par,
                       struct ms_err *err) MS_MUST_USE;
void compare_run_free(struct cmp_run *run);

#endif
