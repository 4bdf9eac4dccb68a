/* SPDX-License-Identifier: MIT
 *
 * run_report: what a run's marks and ranges say, in findings and in figures: findings as run.db has them,
 * figures measured when a report is asked for.
 */
#ifndef MSTX_CONCLUDE_RUN_REPORT_H
#define MSTX_CONCLUDE_RUN_REPORT_H

#include "mstx/conclude/comm_measure.h"
#include "mstx/conclude/findings.h"
#include "mstx/conclude/name_totals.h"
#include "mstx/conclude/steps.h"
#include "mstx/conclude/time_use.h"

#include "probe/base/jwrite.h"

struct mstx_report {
    struct mstx_steps steps;
    mstx_findings findings; /* as run.db has them */
    mstx_name_rows names;   /* empty unless measured */
    mstx_comm_rows comms;   /* the same */
    struct mstx_use use;    /* the same; flops and peak are the caller's to set */
    struct mstx_clock_summary clocks;
    int64_t step_median_ns;
    int64_t cost_ns, costed_ns; /* of recording, and how long it went on; 0: not known */
};

/* Reads findings and steps; with_names measures names, communication and the use of time too. */
enum ms_rc mstx_report_read(struct mstx_tl *tl, bool with_names, struct mstx_report *r,
                            struct ms_err *err) MS_MUST_USE;
void mstx_report_free(struct mstx_report *r);
/* The report for people (at most `most` names and steps, 0: all) or, by the contract of `report
 * --format json`, for programs. */
void mstx_report_text(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      size_t most, struct ms_buf *out);
void mstx_report_prometheus(const struct mstx_report *r, struct ms_buf *out);
/* Writes where a viewer shows the evidence of a finding; nothing where its steps and rank say all. */
typedef void mstx_where_fn(const struct mstx_finding *f, struct ms_buf *out);
/* where may be NULL: no finding has one. */
void mstx_report_json(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      mstx_where_fn *where, struct ms_jwrite *w);

#endif
