/* SPDX-License-Identifier: MIT
 *
 * events_table: the packed events as a virtual table "events", one row for each event, beside
 * the stored tables of run.db.
 */
#ifndef MSTX_RUNDB_EVENTS_TABLE_H
#define MSTX_RUNDB_EVENTS_TABLE_H

#include "mstx/rundb/run_query.h"

/* Registers the table for queries on mstx_tl_store(tl). */
enum ms_rc mstx_tl_add_events(struct mstx_tl *tl, struct ms_err *err) MS_MUST_USE;

#endif
