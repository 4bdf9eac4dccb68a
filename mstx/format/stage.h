/* SPDX-License-Identifier: MIT
 *
 * stage: copies segment files from node-local storage to their run, and into a snapshot.  Used by
 * the recorder while the program runs, and by `msprobe run` for files that a killed program left
 * behind.
 */
#ifndef MSTX_FORMAT_STAGE_H
#define MSTX_FORMAT_STAGE_H

enum mstx_stage_what {
    MSTX_STAGE_FINISHED, /* move closed ring segments, leave the rest */
    MSTX_STAGE_ALL,      /* move everything */
    MSTX_STAGE_SNAPSHOT  /* copy everything, marked as a snapshot */
};

/* Copies *.seg of the open directory into the directory `to`, each under a temporary name first.
 * Only the used part of each file is copied; a segment that is reused meanwhile is copied again.
 * Returns 0, or the errno of the first failure; the other files are still tried. */
int mstx_stage_copy(int from_dir, const char *to, enum mstx_stage_what what);
/* Removes the stage directory and the file at the target that names it, after all segments were
 * copied. */
void mstx_stage_done(const char *stage, const char *target);
/* Moves the segments that a dead process left on the stage: follows target/staged, copies, removes.
 * Returns 0 also when there is nothing to do. */
int mstx_stage_recover(const char *target);
/* Makes a directory and its parents; 0 or an errno. */
int mstx_stage_mkdirs(const char *path);

#endif
