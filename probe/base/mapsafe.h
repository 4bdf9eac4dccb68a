/* SPDX-License-Identifier: MIT
 *
 * mapsafe: reading a mapped file that somebody makes shorter meanwhile.  Between begin and end this
 * thread reads zeros where the file has gone, instead of ending the program.
 */
#ifndef PROBE_BASE_MAPSAFE_H
#define PROBE_BASE_MAPSAFE_H

#include <stdbool.h>

/* Pairs may lie within each other. */
void ms_mapsafe_begin(void);
/* Did a file become shorter under our reading?  Then what was read is worth nothing. */
bool ms_mapsafe_end(void);

#endif
