/* SPDX-License-Identifier: MIT
 *
 * from_ascend_text: reads communication.json into a database with the profiler's tables, for ranks
 * whose profiler wrote no database.
 *
 *     communication.json ─► COMMUNICATION_OP, STRING_IDS, STEP_TIME ─► read as any other database
 *     profiler_metadata.json ─► META_DATA
 *
 * The file has the start and duration of each operation, by step; a step lasts from the end of the
 * previous step to the end of its last operation.
 */
#ifndef MSTX_FOREIGN_FROM_ASCEND_TEXT_H
#define MSTX_FOREIGN_FROM_ASCEND_TEXT_H

#include "probe/base/store.h"

/* Tells whether the directory has a communication.json. */
bool mstx__has_ascend_text(const char *dir);
/* Returns the path of communication.json in the directory. The caller frees it. */
char *mstx__ascend_text_path(const char *dir);
/* Opens a database in memory with the contents of the file. */
enum ms_rc mstx__ascend_text_open(struct ms_store **out, const char *dir,
                                  struct ms_err *err) MS_MUST_USE;

#endif
