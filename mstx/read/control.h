/* SPDX-License-Identifier: MIT
 *
 * control: the outside of a running capture: find its processes and ask them for things
 * through their control files (struct mstx_control).
 */
#ifndef MSTX_READ_CONTROL_H
#define MSTX_READ_CONTROL_H

#include "mstx/format/capture.h"
#include "probe/base/err.h"

#include <stdbool.h>

/* Call fn for the directory of every process of a run, sorted; stops at the first failure.
 * A run without any is no error.  rank -1: all ranks. */
typedef enum ms_rc mstx_process_fn(void *arg, const char *path, struct ms_err *err);
enum ms_rc mstx_each_process(const char *run, int rank, mstx_process_fn *fn, void *arg,
                             struct ms_err *err) MS_MUST_USE;

/* Is the process with this start time there?  Of this host and what its /proc shows. */
bool mstx_process_runs(uint32_t pid, uint64_t start_jiffies);

struct mstx_link;
/* *out NULL and MS_OK: the process has no control file (it is a copy). */
enum ms_rc mstx_link_open(struct mstx_link **out, const char *process_dir,
                          struct ms_err *err) MS_MUST_USE;
void mstx_link_close(struct mstx_link *l);
/* Does the process run on this host?  Of one on another host nothing is known: true. */
bool mstx_link_alive(const struct mstx_link *l);
/* Ask and wait for the answer, at most five seconds; MS_E_NOTFOUND when the process ends meanwhile.
 * text may be NULL.  The counters and the answer are then in *reply. */
enum ms_rc mstx_link_ask(struct mstx_link *l, enum mstx_command command, const char *text,
                         struct mstx_control *reply, struct ms_err *err) MS_MUST_USE;

#endif
