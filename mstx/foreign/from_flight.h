/* SPDX-License-Identifier: MIT
 *
 * from_flight: reads dumps of PyTorch's Flight Recorder into run.db.
 */
#ifndef MSTX_FOREIGN_FROM_FLIGHT_H
#define MSTX_FOREIGN_FROM_FLIGHT_H

#include "mstx/import/import.h"
#include "mstx/rundb/run_write.h"
#include "probe/base/pickle.h"

/* Tells whether a file is a Flight Recorder dump, by its first bytes. */
bool mstx__is_flight_file(const char *path);
/* Returns the number of Flight Recorder dumps in a directory. */
size_t mstx__count_flight_files(const char *dir);
/* Reads one dump, or all dumps of a directory, into an open writer.  The rank is the number at the
 * end of the file name. */
enum ms_rc mstx__import_flight(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;

/* PyTorch's word for a type; "Byte" where it has none. */
const char *mstx__flight_type(uint8_t type);

/* A Flight Recorder dump, which is a pickle or JSON, as plain values.
 *
 * Nothing in a pickle is executed: the few functions that PyTorch's pickler names give lists a type
 * and return their argument; every other name is an error.  Memory is proportional to the size of
 * the input, whatever its bytes. */

/* Reads the bytes of a dump; values are in the arena, their texts in the arena or in bytes. */
enum ms_rc mstx_plain_read(struct ms_plain **out, struct ms_str bytes, struct ms_arena *a,
                           struct ms_err *err) MS_MUST_USE;

#endif
