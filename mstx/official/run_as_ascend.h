/* SPDX-License-Identifier: MIT
 *
 * run_as_ascend: writes a run of msprobe as temporary databases of the profilers, for an analysis.
 */
#ifndef MSTX_OFFICIAL_RUN_AS_ASCEND_H
#define MSTX_OFFICIAL_RUN_AS_ASCEND_H

#include "probe/base/err.h"

/* Writes the databases of all ranks into a directory, which then is the input of a recipe. */
enum ms_rc mstx__write_run_as_ascend(const char *run, const char *dir,
                                     struct ms_err *err) MS_MUST_USE;

#endif
