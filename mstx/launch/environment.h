/* SPDX-License-Identifier: MIT
 *
 * environment: sets the variables that load the recorder and its hooks into a program.
 */
#ifndef MSTX_LAUNCH_ENVIRONMENT_H
#define MSTX_LAUNCH_ENVIRONMENT_H

#include "mstx/launch/launch_program.h"

#include "probe/base/io.h"

/* Sets the variables in this process; its child inherits them. out: the directory of the run;
 * program: the bytes of the executable, empty when it cannot be read. */
enum ms_rc mstx__launch_environment(const struct mstx_launch *how, const char *out,
                                    struct ms_file program, struct ms_err *err) MS_MUST_USE;

#endif
