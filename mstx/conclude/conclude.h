/* SPDX-License-Identifier: MIT
 *
 * conclude: the last stage of an import: finds the steps and findings of a run in its tables and
 * stores them beside these.
 */
#ifndef MSTX_CONCLUDE_CONCLUDE_H
#define MSTX_CONCLUDE_CONCLUDE_H

#include "probe/base/err.h"

#include <stdint.h>

/* Seconds of `msprobe import --missing_after`: the default, as of `msprobe run --hang_timeout`, and
 * the most, a year. */
enum { MSTX_MISSING_AFTER_S = 300, MSTX_MISSING_AFTER_MOST_S = 31536000 };

/* Fills the tables steps and findings of the run.db at `db`, before it gets its final name.  A rank
 * that may still be running is missing from a collective once the others have waited for
 * missing_after_ns. */
enum ms_rc mstx__conclude(const char *db, int64_t missing_after_ns, struct ms_err *err) MS_MUST_USE;

#endif
