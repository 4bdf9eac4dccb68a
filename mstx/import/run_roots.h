/* SPDX-License-Identifier: MIT
 *
 * run_roots: whether a directory is one run. Processes are found a few levels below a directory, so that a run which
 * was collected from several hosts is found too; a folder in which people keep their runs is none.
 */
#ifndef MSTX_IMPORT_RUN_ROOTS_H
#define MSTX_IMPORT_RUN_ROOTS_H

#include "probe/base/err.h"

/* Fails with MS_E_UNSUPPORTED, and the directory to name instead, for a directory in which one run lies below, or
 * several. Ranks of one run may lie in several directories, NODE/rank_R/PROCESS, but no rank in two. */
enum ms_rc mstx__want_one_run(const char *dir, struct ms_err *err) MS_MUST_USE;

#endif
