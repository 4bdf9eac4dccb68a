/* SPDX-License-Identifier: MIT
 *
 * tl_flight: dumps of PyTorch's Flight Recorder.
 */
#ifndef MSTX_TL_FLIGHT_H
#define MSTX_TL_FLIGHT_H

#include "mstx/tl_write.h"

/* Looks into the beginning alone. */
bool mstx__is_flight_file(const char *path);
/* How many lie in a directory. */
size_t mstx__count_flight_files(const char *dir);
/* One file, or all of a directory: the rank is the number at the end of a name. */
enum ms_rc mstx__import_flight(const char *path, struct mstx_writer *w,
                               struct mstx_import_result *result, struct ms_err *err) MS_MUST_USE;

#endif
