/* SPDX-License-Identifier: MIT
 *
 * tl_ascend_text: communication.json of a rank as the database that its profiler did not write.
 *
 *     communication.json ─► COMMUNICATION_OP, STRING_IDS, STEP_TIME ─► read as any other database
 *     profiler_metadata.json ─► META_DATA
 *
 * The file tells of each operation when it began and how long it lasted, by steps; a step lasts from the
 * end of the one before to that of its last operation.
 */
#ifndef MSTX_TL_ASCEND_TEXT_H
#define MSTX_TL_ASCEND_TEXT_H

#include "probe/base/store.h"

/* Is there such a file in the directory? */
bool mstx__has_ascend_text(const char *dir);
/* Its path, on the heap. */
char *mstx__ascend_text_path(const char *dir);
/* In memory alone. */
enum ms_rc mstx__ascend_text_open(struct ms_store **out, const char *dir,
                                  struct ms_err *err) MS_MUST_USE;

#endif
