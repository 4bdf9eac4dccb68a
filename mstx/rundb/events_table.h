/* SPDX-License-Identifier: MIT
 *
 * events_table: the packed events as a table "events" for SQL, row by row, beside the
 * tables that run.db has anyway.
 */
#ifndef MSTX_RUNDB_EVENTS_TABLE_H
#define MSTX_RUNDB_EVENTS_TABLE_H

#include "mstx/rundb/run_query.h"

/* Make the table known to queries on mstx_tl_store(tl). */
enum ms_rc mstx_tl_add_events(struct mstx_tl *tl, struct ms_err *err) MS_MUST_USE;

#endif
