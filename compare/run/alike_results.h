/* SPDX-License-Identifier: MIT
 *
 * alike_results: results of many ranks as groups, those that differ most first.
 */
#ifndef COMPARE_RUN_ALIKE_RESULTS_H
#define COMPARE_RUN_ALIKE_RESULTS_H

#include "compare/run/report.h"

/* Results of one folder with equally many rows, the same first marked row, a largest error of the
 * same size, and numbers of warnings and of errors that lie between the same powers of two. */
struct cmp_alike {
    const struct cmp_result **list; /* borrowed from the groups; by rank */
    size_t n;
    struct cmp_summary sum; /* of one, when all have equal counts; else of all together */
    bool is_equal;          /* all have equal counts */
    bool differs; /* they have a row that does not pass or has no partner, or errors beyond
                        rounding */
};
struct cmp_alike_groups {
    MS_VEC(struct cmp_alike) list; /* the worst first, those without a difference last */
    const struct cmp_result **results;
};

/* Sorts the finished results of a report into groups; false: out of memory. */
bool cmp_alike_find(struct cmp_alike_groups *groups, const struct cmp_report *r);
void cmp_alike_free(struct cmp_alike_groups *groups);

#endif
