/* SPDX-License-Identifier: MIT
 *
 * judge_old: verdicts in the words of msprobe 1.x.
 */
#ifndef COMPARE_JUDGE_OLD_H
#define COMPARE_JUDGE_OLD_H

#include "compare/highlight.h"

struct cmp_old_verdict {
    struct ms_str
        result; /* "Yes", "No", "None", "Unmatched"; "Warning" or ""; "pass", "Different" */
    struct ms_str message;  /* Err_message */
    bool failed;            /* a row that the advisor looks for */
    enum cmp_colour colour; /* with cmp_conf.highlight */
};

enum ms_rc cmp__judge_old(const struct cmp *c, struct cmp_view *v, const struct cmp_row *row,
                          struct cmp_old_verdict *out, struct ms_err *err);

#endif
