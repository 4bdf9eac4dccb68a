/* SPDX-License-Identifier: MIT
 *
 * from_ascend_text: makes of communication.json the database that the profiler of a rank did not write.
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

/* Is there a communication.json in the directory? */
bool mstx__has_ascend_text(const char *dir);
/* Path of that file. The caller frees the path. */
char *mstx__ascend_text_path(const char *dir);
/* Opens a database in memory with the contents of the file. */
enum ms_rc mstx__ascend_text_open(struct ms_store **out, const char *dir,
                                  struct ms_err *err) MS_MUST_USE;

#endif
