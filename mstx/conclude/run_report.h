/* SPDX-License-Identifier: MIT
 *
 * run_report: the report of a run: findings, as stored in run.db, and figures, which are measured
 * when a report is made.
 */
#ifndef MSTX_CONCLUDE_RUN_REPORT_H
#define MSTX_CONCLUDE_RUN_REPORT_H

#include "mstx/conclude/breakdown.h"
#include "mstx/conclude/comm_measure.h"
#include "mstx/conclude/findings.h"
#include "mstx/conclude/name_totals.h"
#include "mstx/conclude/steps.h"
#include "mstx/conclude/time_use.h"

#include "probe/base/jwrite.h"

struct mstx_report {
    struct mstx_steps steps;
    mstx_findings findings;   /* as stored in run.db */
    mstx_name_rows names;     /* empty unless measured */
    mstx_comm_rows comms;     /* empty unless measured */
    struct mstx_use use;      /* empty unless measured; the caller sets flops and peak */
    mstx_step_flops flops;    /* of each step; empty unless measured */
    mstx_findings advice;     /* empty unless measured */
    mstx_breakdown breakdown; /* shown where has_breakdown says that the caller measured it */
    bool has_breakdown;
    struct mstx_clock_summary clocks;
    int64_t step_median_ns;
    int64_t cost_ns, costed_ns; /* cost of recording, and duration of recording; 0: unknown */
};

/* Reads findings and steps; with_names also measures names, communication and the use of time. */
enum ms_rc mstx_report_read(struct mstx_tl *tl, bool with_names, struct mstx_report *r,
                            struct ms_err *err) MS_MUST_USE;
void mstx_report_free(struct mstx_report *r);
/* As many rows of each table as together fit one screen. */
#define MSTX_REPORT_SCREEN SIZE_MAX
/* Writes the report for people with at most `most` findings, steps, names and other rows of each
 * table; rows that are alike are one.  0: each row alone. */
void mstx_report_text(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      size_t most, struct ms_buf *out);
void mstx_report_prometheus(const struct mstx_report *r, struct ms_buf *out);
/* Writes the link at which a viewer shows a finding; nothing when steps and rank suffice. */
typedef void mstx_where_fn(const struct mstx_finding *f, struct ms_buf *out);
/* Writes the report of `report --format json`.  where may be NULL: findings then have no link. */
void mstx_report_json(struct mstx_tl *tl, const struct mstx_report *r, const char *path,
                      mstx_where_fn *where, struct ms_jwrite *w);

#endif
