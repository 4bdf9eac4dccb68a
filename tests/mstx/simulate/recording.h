/* SPDX-License-Identifier: MIT
 *
 * recording: one schedule of the recorder: threads that mark, the helper, requests of `msprobe ctl`,
 * a disk that fills, a clock that jumps, a fork, and an end by exit or by SIGKILL; then the capture is
 * read, and each mark is in it or its loss is told.
 */
#ifndef TESTS_MSTX_SIMULATE_RECORDING_H
#define TESTS_MSTX_SIMULATE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* dir: an empty directory, which is removed.  What is wrong, or NULL. */
const char *sim_recording(uint64_t seed, const char *dir);

/* Imports and reports what is left of a run that holds so many marks; what is wrong, or NULL. */
const char *sim_importing(const char *run, uint64_t marks);

/* Writes the run of a run.db in the formats of an export, under faults; what is wrong, or NULL. */
const char *sim_reporting(const char *run, const char *db);
/* Reads copies of a run.db with a torn page; what is wrong, or NULL. */
const char *sim_torn_db(const char *run, const char *db);
/* Asks a run.db for reports and in SQL, under faults; what is wrong, or NULL. */
const char *sim_asking(const char *db);
/* One schedule of a table of a comparison. */
const char *sim_table(uint64_t seed, const char *dir);

/* Removes a folder with all that a schedule left in it, however deep. */
void sim_remove(const char *folder);

enum { SIM_FILE_MAX = 8 << 20 };
struct sim_file {
    size_t n;
    char p[SIM_FILE_MAX];
};
/* false: nothing is there, or more than is compared. */
bool sim_read_file(const char *path, struct sim_file *f);
bool sim_is_same(const struct sim_file *a, const struct sim_file *b);

/* Faults for a program without threads, until sim_end_faults; the caller sets sim.on. */
void sim_choose_faults(void);
void sim_end_faults(void);
/* Removes temporary files beside a file; returns how many there were. */
size_t sim_remove_left(const char *path);

/* One schedule of the writers of files: the file at a name is the old one or the new one, whole. */
const char *sim_writing(uint64_t seed, const char *dir);

#endif
