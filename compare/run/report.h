/* SPDX-License-Identifier: MIT
 *
 * report: what `msprobe compare` says when it is done, as text and as JSON.
 */
#ifndef COMPARE_RUN_REPORT_H
#define COMPARE_RUN_REPORT_H

#include "compare/check/diff.h"
#include "compare/pair/ranks.h"
#include "compare/source/source.h"
#include "compare/write/out.h"
#include "compare/write/partners.h"
#include "compare/write/sheet.h"
#include "probe/base/jwrite.h"

/* One row as it is told about. */
struct cmp_told {
    char *row, *op, *golden_op, *text;
    double score;
};

/* Of one pair of dumps.  What is added here has to travel too: report_pack.c. */
struct cmp_result {
    const struct cmp_couple *couple;
    struct ms_err err;      /* why the pair could not be compared */
    struct cmp_trail trail; /* of -da */
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
/* A result as bytes, without its couple; unpack fills a new one. */
void cmp_report_pack(const struct cmp_result *r, struct ms_buf *packed);
enum ms_rc cmp_report_unpack(struct cmp_result *r, struct ms_str packed,
                             struct ms_err *err) MS_MUST_USE;
void cmp_report_text(const struct cmp_report *r);
enum ms_rc cmp_report_json(const struct cmp_report *r, struct ms_err *err) MS_MUST_USE;
/* Is any row anything but pass? */
bool cmp_report_differs(const struct cmp_report *r);
void cmp_report_free(struct cmp_report *r);

/* The sentence of a message, on standard output or as a value. */
void cmp_report_said_text(struct ms_said said);
void cmp_report_said_json(struct ms_jwrite *w, struct ms_said said);
/* The suspects alone; several: say of which rank they are. */
void cmp_report_suspects_text(const struct cmp_source *source, bool several, bool compared);
void cmp_report_suspects_json(struct ms_jwrite *w, const struct cmp_source *source);

/* Of tables without a dump.json: what was counted and the paths. */
enum ms_rc cmp_sheet_tell(const struct cmp_sheet_sum *sum, const struct cmp_files *files, bool json,
                          struct ms_err *err) MS_MUST_USE;

#endif
