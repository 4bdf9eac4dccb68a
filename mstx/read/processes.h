/* SPDX-License-Identifier: MIT
 *
 * processes: which process directories a run has, their segments in order, and how each process
 * ended.
 */
#ifndef MSTX_READ_PROCESSES_H
#define MSTX_READ_PROCESSES_H

#include "mstx/read/segment.h"

#include "mstx/read/dir_walk.h"
#include "probe/base/vec.h"

struct mstx_proc {
    char *dir;
    MS_VEC(struct mstx_segment) seg; /* by ring, then part */
    struct mstx_segment strings;
    bool has_strings;
};

/* All process directories below root, in natural order of their paths.  Snapshots are skipped,
 * because each of them is a run of its own. */
struct mstx_procs {
    MS_VEC(struct mstx_proc) list;
    struct mstx_dir_walk walk;
    const struct mstx_problems *to; /* while they are searched */
};
/* A directory below root that cannot be read is reported to `to`, which may be NULL, and left out. */
enum ms_rc mstx__procs_find(struct mstx_procs *p, const char *root, const struct mstx_problems *to,
                            struct ms_err *err) MS_MUST_USE;
void mstx__procs_free(struct mstx_procs *p);
/* Opens all segments of a process; segments that cannot be read are reported to `to` and left
 * out. */
enum ms_rc mstx__proc_open(struct mstx_proc *p, const struct mstx_problems *to,
                           struct ms_err *err) MS_MUST_USE;
void mstx__proc_close(struct mstx_proc *p);
/* Returns the state of the process at index `place`: "finished", "replaced" (by exec), "running",
 * "killed", or "not finished" when it cannot be seen from here. */
const char *mstx__process_state(const struct mstx_procs *all, size_t place,
                                const struct mstx_seg *head, bool is_closed);

#endif
