/* SPDX-License-Identifier: MIT
 *
 * conclude: the last stage of an import: finds the steps and findings of a run in its tables and
 * stores them beside these.
 */
#ifndef MSTX_CONCLUDE_CONCLUDE_H
#define MSTX_CONCLUDE_CONCLUDE_H

#include "probe/base/err.h"

/* Fills the tables steps and findings of the run.db at `db`, before it gets its final name. */
enum ms_rc mstx__conclude(const char *db, struct ms_err *err) MS_MUST_USE;

#endif
