/* SPDX-License-Identifier: MIT
 *
 * recording: one schedule of the recorder: threads that mark, the helper, requests of `msprobe ctl`,
 * a disk that fills, a clock that jumps, a fork, and an end by exit or by SIGKILL; then the capture is
 * read, and each mark is in it or its loss is told.
 */
#ifndef TESTS_MSTX_SIMULATE_RECORDING_H
#define TESTS_MSTX_SIMULATE_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

/* dir: an empty directory, which is removed.  What is wrong, or NULL. */
const char *sim_recording(uint64_t seed, const char *dir);

/* Imports and reports what is left of a run that holds so many marks; what is wrong, or NULL. */
const char *sim_importing(const char *run, uint64_t marks);

/* One schedule of the writers of files: the file at a name is the old one or the new one, whole. */
const char *sim_writing(uint64_t seed, const char *dir);

#endif
