/* SPDX-License-Identifier: MIT
 *
 * summary: counts rows by verdict and collects the rows that a report names; filled by the
 * code that visits every row. Also the list of files that were written.
 */
#ifndef COMPARE_TABLE_SUMMARY_H
#define COMPARE_TABLE_SUMMARY_H

#include "compare/compare.h"

enum { CMP_WORST = 10 };

/* A place in the comparison: row `row` of group `group`. */
struct cmp_place {
    size_t group;
    uint32_t row;
    double score; /* relative error by which worst is sorted */
};

struct cmp_summary {
    uint64_t rows, level[CMP_LEVELS];
    uint64_t unmatched_target, unmatched_golden;
    bool has_first;
    struct cmp_place first; /* the first warning or error in execution order */
    unsigned nworst;
    struct cmp_place worst[CMP_WORST]; /* largest score first */
};
void cmp_summary_add(struct cmp_summary *s, const struct cmp *c, size_t group,
                     const struct cmp_view *v);
/* Adds the summary of the part that follows. */
void cmp_summary_join(struct cmp_summary *s, const struct cmp_summary *next);

/* Paths of the files that were written. */
struct cmp_files {
    MS_VEC(char *) list;
};
enum ms_rc cmp_files_add(struct cmp_files *f, struct ms_str path, struct ms_err *err) MS_MUST_USE;
void cmp_files_free(struct cmp_files *f);

#endif
