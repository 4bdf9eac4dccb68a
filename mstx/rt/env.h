/* SPDX-License-Identifier: MIT
 *
 * env: what `msprobe run` (or a person) asked for.
 */
#ifndef MSTX_RT_ENV_H
#define MSTX_RT_ENV_H

#include "mstx/rt/state.h"

void rt_read_env(struct rt_config *c);
/* Afterwards the path means the same file wherever the program changes its directory to. */
void rt_make_absolute(char path[RT_PATH]);

#endif
