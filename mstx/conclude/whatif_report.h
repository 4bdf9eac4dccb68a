/* SPDX-License-Identifier: MIT
 *
 * whatif_report: the what-if analysis of a run, as text for people and as JSON for programs.
 */
#ifndef MSTX_CONCLUDE_WHATIF_REPORT_H
#define MSTX_CONCLUDE_WHATIF_REPORT_H

#include "mstx/rundb/run_query.h"

#include "probe/base/jwrite.h"
#include "probe/base/progress.h"

/* A change of durations: the excess of operations removed, or durations scaled. */
enum mstx_without_kind { MSTX_WITHOUT_RANK, MSTX_WITHOUT_OP, MSTX_WITHOUT_LINK, MSTX_SCALE };
struct mstx_without {
    enum mstx_without_kind kind;
    int32_t rank, dst; /* for a link: from rank to dst */
    char op[64];       /* name of operations; for MSTX_SCALE also "compute" and "comm" */
    double factor;     /* for MSTX_SCALE */
};
/* Reads "rank:3", "op:NAME" or "link:2-1". */
enum ms_rc mstx_without_parse(struct mstx_without *w, struct ms_str text,
                              struct ms_err *err) MS_MUST_USE;
/* Reads "compute=0.9". */
enum ms_rc mstx_scale_parse(struct mstx_without *w, struct ms_str text,
                            struct ms_err *err) MS_MUST_USE;

struct mstx_whatif_how {
    const struct mstx_without *without;
    size_t count;
    bool is_generic;         /* use the generic graph even when the types of operations are known */
    size_t most;             /* greatest number of rows in a table; 0: all */
    struct ms_progress *bar; /* shows how far the analysis is; NULL: nothing does */
};

struct mstx_whatif_run;
/* Analyses the operations of an open run. */
enum ms_rc mstx_whatif_open(struct mstx_whatif_run **out, struct mstx_tl *tl,
                            const struct mstx_whatif_how *how, struct ms_err *err) MS_MUST_USE;
void mstx_whatif_close(struct mstx_whatif_run *r);
enum ms_rc mstx_whatif_text(struct mstx_whatif_run *r, const char *path, struct ms_buf *out,
                            struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx_whatif_json(struct mstx_whatif_run *r, struct ms_jwrite *out,
                            struct ms_err *err) MS_MUST_USE;
/* Writes the ideal timeline as a Chrome trace. */
enum ms_rc mstx_whatif_ideal(struct mstx_whatif_run *r, const char *file,
                             struct ms_err *err) MS_MUST_USE;

#endif
