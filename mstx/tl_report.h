/* SPDX-License-Identifier: MIT
 *
 * tl_report: what a run's marks and ranges say, in figures and in findings.
 *
 * Steps and findings are kept in run.db, where the first screen of a viewer
 * takes them from; statistics of names are made when a report is asked for.
 */
#ifndef MSTX_TL_REPORT_H
#define MSTX_TL_REPORT_H

#include "mstx/timeline.h"
#include "mstx/tl_comm.h"
#include "mstx/tl_use.h"

#include "probe/base/jwrite.h"

/* ---- steps ------------------------------------------------------------------ */

struct mstx_step {
    uint32_t process; /* index */
    uint32_t number;  /* as its name says, else counted from 0 */
    uint32_t name;
    int64_t start_ns, end_ns;
};
/* How steps were found. */
enum mstx_step_source { MSTX_STEPS_NONE, MSTX_STEPS_RANGES, MSTX_STEPS_MARKS, MSTX_STEPS_PERIOD };
struct mstx_steps {
    MS_VEC(struct mstx_step) list; /* by process, then start */
    enum mstx_step_source source;  /* of the process with the most */
};

/* Steps of every process: ranges or marks called "step 7", "ProfilerStep#7", "iteration 7" and the
 * like; without these, what returns most regularly with the longest period. */
enum ms_rc mstx_steps_find(struct mstx_tl *tl, struct mstx_steps *steps,
                           struct ms_err *err) MS_MUST_USE;
void mstx_steps_free(struct mstx_steps *steps);
/* Is it a name of steps?  *number is the one in it, or -1. */
bool mstx_is_step_name(struct ms_str name, int64_t *number);

/* ---- names ------------------------------------------------------------------ */

/* All events of one name in one domain. Percentiles are exact up to 4096 events, then within 0.4 %.
 * share: of the run's time on the tracks where the name occurs. */
struct mstx_name_row {
    struct ms_str domain, name;
    uint64_t events, marks, unfinished;
    int64_t total_ns, mean_ns, p50_ns, p99_ns, max_ns;
    double share;
    uint32_t tracks;
};
typedef MS_VEC(struct mstx_name_row) mstx_name_rows;

/* A selection: tracks (indices) between two times. */
struct mstx_part {
    const uint32_t *tracks;
    size_t n;
    int64_t from, to;
};

/* Rows by falling total, then by falling count, then by name. Texts are borrowed from tl. */
enum ms_rc mstx_names_measure(struct mstx_tl *tl, mstx_name_rows *rows,
                              struct ms_err *err) MS_MUST_USE;
/* The same for a selection: durations count as far as they lie in it, and shares are of its time. */
enum ms_rc mstx_names_measure_part(struct mstx_tl *tl, const struct mstx_part *part,
                                   mstx_name_rows *rows, struct ms_err *err) MS_MUST_USE;

/* ---- findings --------------------------------------------------------------- */

enum mstx_severity { MSTX_INFO_FINDING, MSTX_WARNING_FINDING, MSTX_ERROR_FINDING };
struct mstx_finding {
    const char *kind;
    enum mstx_severity severity;
    int32_t rank;                  /* -1: none in particular */
    int64_t first_step, last_step; /* -1: none */
    double value;
    char text[240];
    char place[128]; /* where to look, as the viewers' links are; "": the steps and the rank tell */
    char evidence[160]; /* a query that shows the rows it was concluded from; "": none */
};

struct mstx_report {
    struct mstx_steps steps;
    MS_VEC(struct mstx_finding) findings; /* the worst first */
    mstx_name_rows names;                 /* empty unless measured */
    mstx_comm_rows comms;                 /* the same */
    struct mstx_use use;                  /* the same; flops and peak are the caller's to set */
    struct mstx_clock_summary clocks;
    int64_t step_median_ns;
    int64_t cost_ns, costed_ns; /* of recording, and how long it went on; 0: not known */
};

/* A new finding without text; NULL: no memory. */
struct mstx_finding *mstx__finding_add(struct mstx_report *r, const char *kind,
                                       enum mstx_severity severity, int32_t rank, double value);
/* "rank 3 (process 4242)", "train.py (process 4242)" or "process 4242", as people look for it. */
enum { MSTX_WHO_MAX = 96 };
void mstx__put_who(char out[MSTX_WHO_MAX], int32_t rank, int64_t pid, struct ms_str name);
/* Communication calls that do not return, and who has not come to them. */
enum ms_rc mstx__find_hangs(struct mstx_tl *tl, struct mstx_report *r,
                            struct ms_err *err) MS_MUST_USE;

const char *mstx_severity_text(enum mstx_severity s);
/* Find steps and findings; with_names measures names too. */
enum ms_rc mstx_report_make(struct mstx_tl *tl, bool with_names, struct mstx_report *r,
                            struct ms_err *err) MS_MUST_USE;
/* What explains the run best, about ranks that work together: the first line for people; or NULL. */
const struct mstx_finding *mstx_report_headline(const struct mstx_report *r);
void mstx_report_free(struct mstx_report *r);
/* Put steps and findings into the database at path. */
enum ms_rc mstx_report_save(const struct mstx_report *r, const char *db,
                            struct ms_err *err) MS_MUST_USE;
/* The report for people (at most `most` names and steps, 0: all) or, by the contract of `report
 * --format json`, for programs. */
void mstx_report_text(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      size_t most, struct ms_buf *out);
void mstx_report_prometheus(const struct mstx_report *r, struct ms_buf *out);
void mstx_report_json(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      struct ms_jwrite *w);

#endif
