/* SPDX-License-Identifier: MIT
 *
 * processes: which process directories a run has, their segments in order, and how each process
 * ended.
 */
#ifndef MSTX_READ_PROCESSES_H
#define MSTX_READ_PROCESSES_H

#include "mstx/format/capture.h"
#include "probe/base/io.h"
#include "probe/base/vec.h"

#include <stdbool.h>

/* Receives a problem with a file; the reader goes on with the other files.  Clears err. */
typedef void (*mstx_problem_fn)(void *ctx, const char *file, struct ms_err *err);
struct mstx_problems {
    mstx_problem_fn fn;
    void *ctx;
};
/* Reports a problem with a formatted text. */
void mstx__problem_text(const struct mstx_problems *to, const char *file, const char *fmt, ...)
    MS_PRINTF(3, 4);

struct mstx_segment {
    char *path;
    struct ms_file file;
    struct mstx_seg head; /* a copy, checked */
    const struct mstx_rec *rec;
    uint64_t n;            /* complete records at rec; in strings.seg bytes */
    struct mstx_rec *copy; /* of a live flight recorder, else NULL */
};

/* One entry of strings.seg; text is borrowed from the mapped file. */
struct mstx_entry {
    struct mstx_text head;
    struct ms_str text;
};
/* Reads the entry at offset *at, 0 for the first, and advances *at; returns false at the end or at
 * damage, which is reported to `to`. */
bool mstx__entry_next(const struct mstx_segment *s, uint64_t *at, struct mstx_entry *e,
                      const struct mstx_problems *to);

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
};
enum ms_rc mstx__procs_find(struct mstx_procs *p, const char *root, struct ms_err *err) MS_MUST_USE;
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
