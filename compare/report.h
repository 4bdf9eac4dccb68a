/* SPDX-License-Identifier: MIT
 *
 * report: what `msprobe compare` says when it is done, as text and as JSON.
 */
#ifndef COMPARE_REPORT_H
#define COMPARE_REPORT_H

#include "compare/out.h"
#include "compare/partners.h"
#include "compare/ranks.h"
#include "compare/source.h"
#include "probe/base/jwrite.h"

/* One row as it is told about. */
struct cmp_told {
    char *row, *op, *golden_op, *text;
    double score;
};

/* Of one pair of dumps. */
struct cmp_result {
    const struct cmp_couple *couple;
    struct cmp_summary sum;
    struct cmp_files files;
    struct cmp_partners partners;
    struct cmp_pair_list pairs; /* with --ext */
    struct cmp_told first;
    unsigned nworst;
    struct cmp_told worst[CMP_WORST];
    MS_VEC(char *) problems;
    uint64_t json_bytes, tensor_bytes;
    bool done;
};

struct cmp_report {
    MS_VEC(struct cmp_result *) list;
    const struct cmp_source *source; /* who introduces what differs; NULL: nobody asked */
    int64_t took_ns;
};

/* A new result, NULL when out of memory; the couple must outlive the report. */
struct cmp_result *cmp_report_add(struct cmp_report *r, const struct cmp_couple *couple);
/* Remember what the report will say of c, which may be closed then. */
enum ms_rc cmp_report_take(struct cmp_result *r, const struct cmp *c, struct ms_err *err);
/* For -da: count rows only, and later say that this op is the first to differ. */
enum ms_rc cmp_report_count(struct cmp_result *r, const struct cmp *c, struct ms_err *err);
enum ms_rc cmp_report_blame(struct cmp_result *r, const struct cmp *c, size_t group,
                            struct ms_err *err);
void cmp_report_text(const struct cmp_report *r);
void cmp_report_json(const struct cmp_report *r);
/* Is any row anything but pass? */
bool cmp_report_differs(const struct cmp_report *r);
void cmp_report_free(struct cmp_report *r);

/* The suspects alone; several: say of which rank they are. */
void cmp_report_suspects_text(const struct cmp_source *source, bool several);
void cmp_report_suspects_json(struct ms_jwrite *w, const struct cmp_source *source);

#endif
