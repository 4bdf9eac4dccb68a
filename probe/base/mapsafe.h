/* SPDX-License-Identifier: MIT
 *
 * mapsafe: survives the truncation of a mapped file by another process. Between begin and end, this
 * thread reads zeros in place of missing pages, instead of being killed by SIGBUS.
 */
#ifndef PROBE_BASE_MAPSAFE_H
#define PROBE_BASE_MAPSAFE_H

#include <stdbool.h>

/* Begins a guarded section; sections may be nested. */
void ms_mapsafe_begin(void);
/* Ends a guarded section. Returns true when a mapped file was truncated while it was read; the
 * bytes read are then invalid. */
bool ms_mapsafe_end(void);

#endif
