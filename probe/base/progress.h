/* SPDX-License-Identifier: MIT
 *
 * progress: tells whether a progress line can be shown and overwritten.
 */
#ifndef PROBE_BASE_PROGRESS_H
#define PROBE_BASE_PROGRESS_H

#include <stdbool.h>

/* Tells whether fd is a terminal that handles control sequences: not a file or pipe, and not
 * TERM=dumb, which editors and logs set. */
bool ms_progress_ok(int fd);

#endif
