/* SPDX-License-Identifier: MIT
 *
 * store_func: functions of SQL that are written in C, and the statistics that SQLite lacks.
 */
#ifndef PROBE_BASE_STORE_FUNC_H
#define PROBE_BASE_STORE_FUNC_H

#include "probe/base/store_vtab.h"

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
