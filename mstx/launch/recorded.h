/* SPDX-License-Identifier: MIT
 *
 * recorded: reports on stderr the contents of the directory of a run; standard output belongs to
 * the program.
 */
#ifndef MSTX_LAUNCH_RECORDED_H
#define MSTX_LAUNCH_RECORDED_H

#include "probe/base/err.h"

#include <stdbool.h>

/* Warns of processes of an earlier run in the directory. Called before the program starts. */
void mstx__show_earlier(const char *out);
/* Prints how much was recorded. Called after the program: copies segments from the stage to the
 * run first and removes an empty directory. */
enum ms_rc mstx__show_recorded(const char *out, bool has_dump, struct ms_err *err) MS_MUST_USE;

#endif
