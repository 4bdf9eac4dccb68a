/* SPDX-License-Identifier: MIT
 *
 * stage: copies of segment files: from node-local storage to where they belong, and into a
 * snapshot.  Used by the recorder while the program runs and by `msprobe run` for what a
 * killed program left behind.
 */
#ifndef MSTX_FORMAT_STAGE_H
#define MSTX_FORMAT_STAGE_H

enum mstx_stage_what {
    MSTX_STAGE_FINISHED, /* move closed ring segments, leave the rest */
    MSTX_STAGE_ALL,      /* move everything */
    MSTX_STAGE_SNAPSHOT  /* copy everything, marked as a snapshot */
};

/* Copy *.seg of the open directory into the directory `to`, each under a temporary name first.
 * Of each file only the used part is copied; a segment that is reused meanwhile is copied
 * again.  0, or the errno of the first failure; the other files are tried all the same. */
int mstx_stage_copy(int from_dir, const char *to, enum mstx_stage_what what);
/* All copied: remove the stage directory and the pointer at the target. */
void mstx_stage_done(const char *stage, const char *target);
/* Finish what a dead process left: follow target/staged, copy, remove. 0 also when there is
 * nothing to do. */
int mstx_stage_recover(const char *target);
/* Make a directory and its parents; 0 or an errno. */
int mstx_stage_mkdirs(const char *path);

#endif
