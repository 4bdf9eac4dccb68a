/* SPDX-License-Identifier: MIT
 *
 * compare_run: a whole comparison of two runs, from the paths of both to the files of
 * all ranks and the report.  Ranks are paired, spread over the processes of mpirun,
 * and taken through all stages; then the suspects of all ranks are found.
 */
#ifndef COMPARE_RUN_COMPARE_RUN_H
#define COMPARE_RUN_COMPARE_RUN_H

#include "compare/run/spread.h"
#include "probe/dump/find.h"

/* How far a long part of the work is: a line that is written over, on a terminal and for what takes
 * longer than a second. */
struct cmp_pace {
    int64_t start_ns, shown_ns;
    const char *what;
};

struct cmp_run_conf {
    struct cmp_conf cmp; /* noise_floor and its place are chosen for each rank */
    const char *target, *golden;
    const char *output;  /* directory */
    const char *noise;   /* a second run of the golden side, or a calibration; or NULL */
    const char *explain; /* say why this node is paired as it is, and nothing else; or NULL */
    bool xlsx;
    bool diff;          /* name the first operator that differs over all ranks, in JSON */
    bool write_mapping; /* the alignment, as mapping files */
    /* Writes advice beside a table; NULL: none is written. */
    enum ms_rc (*write_advice)(const struct cmp *c, const char *path, struct cmp_files *files,
                               struct ms_err *err);
    /* Says what is odd, and which rank could not be compared where others could. */
    void (*note)(const char *line);
    void (*fail)(const struct ms_err *err);
};

/* What came out; the report stands on the rest. */
struct cmp_run {
    struct cmp_run_conf conf;
    struct cmp_conf cmp; /* of the rank at hand */
    struct cmp_pace bar;
    struct cmp_ranks ranks;
    struct probe_places noise;
    bool calibrated; /* the noise is a calibration, not a run */
    struct ms_pool *pool;
    struct ms_par *par;
    struct cmp_spread spread;
    struct cmp_source *source;
    struct cmp_report report; /* complete in process 0 */
    char stamp[16];           /* in the names of all files */
};

/* The time of day as file names have it. */
void cmp_run_stamp(char stamp[16]);
/* Compares with all processes of par, which outlives the run.  Free the run whatever comes back. */
enum ms_rc compare_run(struct cmp_run *run, const struct cmp_run_conf *conf, struct ms_par *par,
                       struct ms_err *err) MS_MUST_USE;
void compare_run_free(struct cmp_run *run);

#endif
