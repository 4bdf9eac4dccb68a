/* SPDX-License-Identifier: MIT
 *
 * conclude: the last stage of an import: the steps and findings of a run, found in its tables and
 * stored beside them.
 */
#ifndef MSTX_CONCLUDE_CONCLUDE_H
#define MSTX_CONCLUDE_CONCLUDE_H

#include "probe/base/err.h"

/* Fills the tables steps and findings of the run.db at path, which is not published yet. */
enum ms_rc mstx__conclude(const char *db, struct ms_err *err) MS_MUST_USE;

#endif
