/* SPDX-License-Identifier: MIT
 *
 * blame_side: computes one record of a dump again and compares what it recorded with that.
 */
#ifndef COMPARE_BLAME_BLAME_SIDE_H
#define COMPARE_BLAME_BLAME_SIDE_H

#include "compare/blame/blame.h"

/* One side while it is computed. */
struct blame_work {
    struct blame_record record, forward, backward; /* the same for a forward record */
    bool is_backward;
    bool is_composed; /* a backward record of a function that is made of several operators */
    struct tape tape;
    struct blame_operands in;
    struct blame_results seeds; /* gradients that came in */
    struct blame_results out;
    tape_id *exact; /* for each recorded result; TAPE_NONE: not computed */
};

/* Makes the tape of a side. blame_work_free is allowed after a failure. */
enum ms_rc blame_work_open(struct blame_work *s, const struct blame_record *record, size_t limit,
                           struct ms_err *err) MS_MUST_USE;
void blame_work_free(struct blame_work *s);
/* Reads the record, computes it and measures its results; reasons why not are in `to`. */
void blame_work_judge(struct blame_work *s, struct blame_side *to);
/* Copies a path of a row, shortened where it is longer. */
void blame_put_path(char *to, size_t cap, struct ms_str path);

#endif
