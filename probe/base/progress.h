/* SPDX-License-Identifier: MIT
 *
 * progress: where a line may be written over while something takes long.
 */
#ifndef PROBE_BASE_PROGRESS_H
#define PROBE_BASE_PROGRESS_H

#include <stdbool.h>

/* A terminal that obeys: not a file or a pipe, and no TERM=dumb, which editors and logs set. */
bool ms_progress_ok(int fd);

#endif
