/* SPDX-License-Identifier: MIT
 *
 * csv: reads the rows of a CSV text, copying only fields that need unescaping, and writes fields.
 *
 *     struct ms_csv r;
 *     ms_csv_init(&r, file.p, file.n);
 *     while ((rc = ms_csv_next(&r, &more, &err)) == MS_OK && more)
 *         use(r.fields.p, r.fields.n);
 *     ms_csv_free(&r);
 *
 * Commas separate fields, quotes enclose them, a doubled quote is one quote.  A line ends with
 * \n, \r\n or \r; empty lines and a byte order mark are skipped.
 */
#ifndef PROBE_BASE_CSV_H
#define PROBE_BASE_CSV_H

#include "probe/base/io.h"
#include "probe/base/str.h"
#include "probe/base/vec.h"

/* ---- reading ---------------------------------------------------------- */

enum { MS_CSV_COLUMNS = 1024 };

struct ms_csv {
    const char *at, *end;
    const char *start;
    uint32_t line;                /* of the current row, from 1 */
    MS_VEC(struct ms_str) fields; /* of the current row; valid until the next */
    uint32_t next_line;           /* internal, as are all below */
    struct ms_buf scratch;        /* fields that had doubled quotes */
};

void ms_csv_init(struct ms_csv *r, const char *p, size_t n);
void ms_csv_free(struct ms_csv *r);
/* Reads the next row; *more is false behind the last. A quote that is never closed, or text behind
 * a closing quote, is an error with its line. */
enum ms_rc ms_csv_next(struct ms_csv *r, bool *more, struct ms_err *err) MS_MUST_USE;

/* Parses a number as Python's float() and pandas do, with spaces around it allowed. An empty field
 * and the words for a missing value give NaN; false when the field is no number. */
bool ms_csv_number(struct ms_str field, double *out);

/* ---- writing ---------------------------------------------------------- */

/* The formula guard. A spreadsheet evaluates a field that begins like a formula. Text that the
 * program did not make itself (names in a dump, marks, operators) therefore gets an apostrophe in
 * front, which a spreadsheet takes for "this is text". A formula begins with = + - @ %, one of
 * their full-width forms, a tab or a carriage return, also behind a semicolon, which separates
 * columns in some locales. A number, or numbers joined by semicolons ("-0.5;0.25"), is no
 * formula. */
enum ms_csv_guard {
    MS_CSV_OWN,     /* made by the program: never guarded */
    MS_CSV_FOREIGN, /* comes from input: guarded */
};

/* Tells whether a spreadsheet could evaluate the text or a part of it behind a semicolon. */
bool ms_csv_is_formula(struct ms_str text);
/* Appends a field, in quotes where the text or the guard needs them. */
void ms_csv_put(struct ms_buf *out, struct ms_str text, enum ms_csv_guard guard);
/* Writes a field into a file, in quotes where the text or the guard needs them. */
void ms_csv_write(struct ms_out *out, struct ms_str text, enum ms_csv_guard guard);

#endif
