/* SPDX-License-Identifier: MIT
 *
 * from_csv: reads a plain table of what ranks did into run.db.
 *
 *     rank,lane,name,begin_ns,end_ns[,kind,step,peer,bytes]
 *
 * Columns may come in any order, and others are ignored.  A kind is range (the default), mark,
 * kernel, memory or comm; the latter three run on a stream of a device, and of comm the name is the
 * operation: AllReduce, Send.  A step lasts from the first of its rows to the last.
 */
#ifndef MSTX_FOREIGN_FROM_CSV_H
#define MSTX_FOREIGN_FROM_CSV_H

#include "mstx/foreign/trace_ranks.h"

/* Tells by its first line whether a text is such a table. */
bool mstx__is_csv_table(struct ms_str head);
/* Reads one table, whose ranks are processes of the run. */
enum ms_rc mstx__import_csv(const char *path, struct mstx_trace_ranks *all,
                            struct ms_err *err) MS_MUST_USE;

#endif
