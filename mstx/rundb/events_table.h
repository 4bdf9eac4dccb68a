/* SPDX-License-Identifier: MIT
 *
 * tl_sql: the packed events as a table "events" for SQL, row by row, beside the
 * tables that run.db has anyway.
 */
#ifndef MSTX_TL_SQL_H
#define MSTX_TL_SQL_H

#include "mstx/timeline.h"

/* Make the table known to queries on mstx_tl_store(tl). */
enum ms_rc mstx_tl_add_events(struct mstx_tl *tl, struct ms_err *err) MS_MUST_USE;

#endif
