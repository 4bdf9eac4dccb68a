/* SPDX-License-Identifier: MIT
 *
 * store_vtab: SQL tables whose rows come from C functions, SQL functions that are written in C, and
 * the statistics that SQLite lacks. Tables are read-only; a scan calls open, start, then next row
 * by row, and close.
 */
#ifndef PROBE_BASE_STORE_VTAB_H
#define PROBE_BASE_STORE_VTAB_H

#include "probe/base/store.h"

/* A condition of a query on a column, by which the table can skip rows. SQLite checks every row
 * again, so a table may return more rows than the condition selects. */
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
    uint32_t usable;     /* bit for each column whose bounds can skip rows */
    enum ms_rc (*open)(void *ctx, void **cursor, struct ms_err *err);
    void (*close)(void *cursor);
    /* Begins a scan and moves to its first row. */
    enum ms_rc (*start)(void *cursor, const struct ms_bound *bound, int n, struct ms_err *err);
    enum ms_rc (*next)(void *cursor, struct ms_err *err);
    bool (*at_end)(const void *cursor);
    enum ms_rc (*column)(void *cursor, int column, struct ms_value *out, struct ms_err *err);
};

/* Registers a table with this handle. t and ctx must outlive the handle. */
enum ms_rc ms_store_add_table(struct ms_store *s, const struct ms_table *t, void *ctx,
                              struct ms_err *err) MS_MUST_USE;

/* ---- functions ------------------------------------------------------------------- */

/* Computes *out, which is NULL at first, from the arguments. Text of *out may point into
 * scratch. */
enum { MS_FUNCTION_SCRATCH = 64 };
typedef void (*ms_function)(const struct ms_value *arg, char scratch[MS_FUNCTION_SCRATCH],
                            struct ms_value *out);
/* Registers a function with this handle; the result must depend only on the arguments. */
enum ms_rc ms_store_add_function(struct ms_store *s, const char *name, int args, ms_function fn,
                                 struct ms_err *err) MS_MUST_USE;

/* Adds the aggregates quantile(x, q), with linear interpolation between the two nearest values,
 * stddev(x) of a sample and stddev_pop(x) of a population; NULLs are ignored. Also adds
 * round_even(x, places), which rounds the scaled value to the nearest whole number, ties to even,
 * as NumPy does. */
enum ms_rc ms_store_add_statistics(struct ms_store *s, struct ms_err *err) MS_MUST_USE;

#endif
