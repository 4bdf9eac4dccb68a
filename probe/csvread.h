/* SPDX-License-Identifier: MIT
 *
 * csvread: rows of a CSV text, without copying what need not be copied.
 *
 *     struct probe_csv r;
 *     probe_csv_init(&r, file.p, file.n);
 *     while ((rc = probe_csv_next(&r, &more, &err)) == MS_OK && more)
 *         use(r.fields.p, r.fields.n);
 *     probe_csv_free(&r);
 *
 * Commas separate, quotes enclose, a doubled quote is one quote.  A line ends
 * with \n, \r\n or \r; empty lines and a byte order mark are passed over.
 */
#ifndef PROBE_CSVREAD_H
#define PROBE_CSVREAD_H

#include "probe/base/str.h"
#include "probe/base/vec.h"

enum { PROBE_CSV_COLUMNS = 1024 };

struct probe_csv {
    const char *at, *end;
    const char *start;
    uint32_t line;                /* of the current row, from 1 */
    MS_VEC(struct ms_str) fields; /* of the current row; valid until the next */
    uint32_t next_line;           /* internal, as are all below */
    struct ms_buf scratch;        /* fields that had doubled quotes */
};

void probe_csv_init(struct probe_csv *r, const char *p, size_t n);
void probe_csv_free(struct probe_csv *r);
/* The next row; *more is false behind the last.  A quote that is never closed, or text behind a
 * closing quote, is an error with its line. */
enum ms_rc probe_csv_next(struct probe_csv *r, bool *more, struct ms_err *err) MS_MUST_USE;

/* A number as Python's float() and pandas read it, spaces around it allowed; NaN for an empty field
 * and for what stands for a missing value.  false: it is no number. */
bool probe_csv_number(struct ms_str field, double *out);

#endif
