/* SPDX-License-Identifier: MIT
 *
 * report: the output of `msprobe compare`, as text and as JSON.
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

/* A row in the report. */
struct cmp_reported_row {
    char *row, *op, *golden_op, *text;
    double score;
};

/* Result of one pair of dumps. Fields added here must also be packed in spread.c. */
struct cmp_result {
    const struct cmp_couple *couple;
    struct ms_err err;      /* reason why the pair could not be compared */
    struct cmp_trail trail; /* with -da */
    struct cmp_summary sum;
    struct cmp_files files;
    struct cmp_partners partners;
    struct cmp_pair_list pairs; /* with --ext */
    struct cmp_reported_row first;
    unsigned nworst;
    struct cmp_reported_row worst[CMP_WORST];
    MS_VEC(char *) problems;
    uint64_t json_bytes, tensor_bytes;
    bool done;
};

struct cmp_report {
    MS_VEC(struct cmp_result *) list;
    const struct cmp_source *source; /* the suspects; NULL: not looked for */
    int64_t took_ns;
};

/* Adds a result; NULL when out of memory. The couple must outlive the report. */
struct cmp_result *cmp_report_add(struct cmp_report *r, const struct cmp_couple *couple);
/* Copies everything that the report needs from c, which may be closed afterwards. */
enum ms_rc cmp_report_take(struct cmp_result *r, const struct cmp *c, struct ms_err *err);
/* For -da: cmp_report_count counts rows; cmp_report_blame sets the first operator that differs. */
enum ms_rc cmp_report_count(struct cmp_result *r, const struct cmp *c, struct ms_err *err);
enum ms_rc cmp_report_blame(struct cmp_result *r, const struct cmp *c, size_t group,
                            struct ms_err *err);
/* Converts a result to bytes and back, without its couple; unpack fills a new result. */
void cmp_report_pack(const struct cmp_result *r, struct ms_buf *packed);
enum ms_rc cmp_report_unpack(struct cmp_result *r, struct ms_str packed,
                             struct ms_err *err) MS_MUST_USE;
/* Prints the report for people. Of more than `most` pairs of dumps, 0: any number, those that are
 * alike are told together. */
void cmp_report_text(const struct cmp_report *r, size_t most);
enum ms_rc cmp_report_json(const struct cmp_report *r, struct ms_err *err) MS_MUST_USE;
/* Tells whether any row has a verdict other than pass. */
bool cmp_report_differs(const struct cmp_report *r);
/* Tells whether any row has a partner on the other side. */
bool cmp_report_compared(const struct cmp_report *r);
/* Tells whether the system refused to read or write a file of any pair. */
bool cmp_report_broke(const struct cmp_report *r);
void cmp_report_free(struct cmp_report *r);

/* Write the sentence of a message to standard output or as a JSON value. */
void cmp_report_message_text(struct ms_stored_message message);
void cmp_report_message_json(struct ms_jwrite *w, struct ms_stored_message message);

/* Prints the counts and paths of tables that do not come from dump.json. */
enum ms_rc cmp_sheet_print(const struct cmp_sheet_sum *sum, const struct cmp_files *files,
                           bool json, struct ms_err *err) MS_MUST_USE;

#endif
