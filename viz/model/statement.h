/* SPDX-License-Identifier: MIT
 *
 * statement: an SQL statement that somebody typed, in a process of its own.
 *
 * SQLite looks at the time between two of its steps, and one step may be a function that works for
 * minutes.  A process can be killed wherever it is, and has memory of its own that ends.
 */
#ifndef VIZ_MODEL_STATEMENT_H
#define VIZ_MODEL_STATEMENT_H

#include "probe/base/str.h"

struct viz_statement {
    const char *db;    /* of a timeline or a graph */
    struct ms_str sql; /* one SELECT */
    unsigned rows;     /* at most this many */
    unsigned seconds;  /* after which it is killed */
    /* Descriptors that end it early, or -1: the connection of who asked has gone, something can be read. */
    int until_gone, until_readable;
};

/* Appends {"columns": [...], "rows": [[...], ...], "more": whether there are more rows} to out, whose max
 * bounds the answer.  MS_E_ARG: what is wrong with the statement; MS_E_INTERRUPTED: it was killed. */
enum ms_rc viz_statement_run(const struct viz_statement *q, struct ms_buf *out,
                             struct ms_err *err) MS_MUST_USE;

#endif
