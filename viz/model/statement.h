/* SPDX-License-Identifier: MIT
 *
 * statement: runs an SQL statement typed by the user, in a child process.
 *
 * SQLite checks a time limit between two of its steps, and one step may be a function that runs for
 * minutes. A process can be killed at any point and has its own memory limit.
 */
#ifndef VIZ_MODEL_STATEMENT_H
#define VIZ_MODEL_STATEMENT_H

#include "probe/base/str.h"

struct viz_statement {
    const char *db;    /* database of a timeline or a graph */
    struct ms_str sql; /* one SELECT */
    unsigned rows;     /* maximum number of rows */
    unsigned seconds;  /* time limit, then the child is killed */
    /* Descriptors that end the statement early, or -1: the requester's connection closed; input
     * is readable. */
    int until_gone, until_readable;
};

/* Appends {"columns": [...], "rows": [[...], ...], "more": whether further rows exist} to out,
 * whose max bounds the answer. MS_E_ARG: an error in the statement; MS_E_INTERRUPTED: the child
 * was killed. */
enum ms_rc viz_statement_run(const struct viz_statement *q, struct ms_buf *out,
                             struct ms_err *err) MS_MUST_USE;

#endif
