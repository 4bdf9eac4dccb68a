/* SPDX-License-Identifier: MIT
 *
 * env: the configuration, from environment variables set by `msprobe run` or by the user.
 */
#ifndef MSTX_RT_ENV_H
#define MSTX_RT_ENV_H

#include "mstx/rt/state.h"

void rt_read_env(struct rt_config *c);
/* Makes a path absolute, so that it stays valid when the program changes its directory. */
void rt_make_absolute(char path[RT_PATH]);

#endif
