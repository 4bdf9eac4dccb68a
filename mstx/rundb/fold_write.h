/* SPDX-License-Identifier: MIT
 *
 * fold_write: makes a folded copy of a run.db: the same rows in a fraction of the bytes, since what
 * repeats over steps and ranks is stored once (fold_read.h).  Queries do not see the difference.
 */
#ifndef MSTX_RUNDB_FOLD_WRITE_H
#define MSTX_RUNDB_FOLD_WRITE_H

#include "probe/base/err.h"

#include <stdint.h>

/* How far a time may be from the one that was recorded: at most a tenth of a second. */
#define MSTX_FOLD_BOUND_MAX INT64_C(100000000)

/* Writes the copy of `db`, which is not folded, to `to`, which is new. bound_ns is by how much times may
 * differ, 0: not at all. */
enum ms_rc mstx__fold_database(const char *db, const char *to, int64_t bound_ns,
                               struct ms_err *err) MS_MUST_USE;

#endif
