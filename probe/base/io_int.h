/* SPDX-License-Identifier: MIT
 *
 * io_int: what io.c stores about a file that io_write.c has begun.
 */
#ifndef PROBE_BASE_IO_INT_H
#define PROBE_BASE_IO_INT_H

#include "probe/base/io.h"

/* Stores the identity, size and time of the file at path until ms_tmp_forget(tmp). */
enum ms_rc ms_tmp__remember(const char *tmp, const char *path, struct ms_err *err) MS_MUST_USE;
/* Tells whether another process has written path since ms_tmp__remember. */
bool ms_tmp__was_written(const char *tmp, const char *path);

#endif
