/* SPDX-License-Identifier: MIT
 *
 * store_vtab: a table of SQL whose rows come from a program's own functions, functions of SQL that are
 * written in C, and the statistics that SQLite lacks.
 * Read-only; one scan is: open, start, row after row, close.
 */
#ifndef PROBE_BASE_STORE_VTAB_H
#define PROBE_BASE_STORE_VTAB_H

#include "probe/base/store.h"

/* What a query asks of a column that the table can use to skip rows.  SQLite checks every row again,
 * so a table may give more than was asked for. */
enum ms_bound_op { MS_BOUND_EQ, MS_BOUND_GE, MS_BOUND_LE };
struct ms_bound {
    int column;
    enum ms_bound_op op;
    int64_t value;
};

struct ms_value {
    enum { MS_VALUE_NULL, MS_VALUE_INT, MS_VALUE_REAL, MS_VALUE_TEXT } type;
    int64_t i;
    double f;
    struct ms_str s; /* copied by SQLite */
};

struct ms_table {
    const char *name;
    const char *columns; /* "track INTEGER, name TEXT, ..." */
    uint32_t usable;     /* bit for each column whose bounds are of use */
    enum ms_rc (*open)(void *ctx, void **cursor, struct ms_err *err);
    void (*close)(void *cursor);
    /* Begin a scan and go to its first row. */
    enum ms_rc (*start)(void *cursor, const struct ms_bound *bound, int n, struct ms_err *err);
    enum ms_rc (*next)(void *cursor, struct ms_err *err);
    bool (*at_end)(const void *cursor);
    enum ms_rc (*column)(void *cursor, int column, struct ms_value *out, struct ms_err *err);
};

/* Make the table known to the queries of this handle.  t and ctx must outlive it. */
enum ms_rc ms_store_add_table(struct ms_store *s, const struct ms_table *t, void *ctx,
                              struct ms_err *err) MS_MUST_USE;

/* ---- functions ------------------------------------------------------------------- */

/* Text of *out may lie in scratch; *out is NULL to begin with. */
enum { MS_FUNCTION_SCRATCH = 64 };
typedef void (*ms_function)(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                            struct ms_value *out);
/* Make it known to the queries of this handle; it must give the same for the same arguments. */
enum ms_rc ms_store_add_function(struct ms_store *s, const char *name, int args, ms_function fn,
                                 struct ms_err *err) MS_MUST_USE;

/* Aggregates quantile(x, q), linear between the two nearest values, stddev(x) of a sample and
 * stddev_pop(x) of all there is; NULLs do not count.  And round_even(x, places), which rounds the
 * scaled value to the nearest whole one, ties to even, as NumPy does. */
enum ms_rc ms_store_add_statistics(struct ms_store *s, struct ms_err *err) MS_MUST_USE;

#endif
