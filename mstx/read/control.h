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

/* Calls fn for the directory of every process of a run, sorted, until fn fails.  A run without
 * processes is no error.  rank -1 means all ranks. */
typedef enum ms_rc mstx_process_fn(void *arg, const char *path, struct ms_err *err);
enum ms_rc mstx_each_process(const char *run, int rank, mstx_process_fn *fn, void *arg,
                             struct ms_err *err) MS_MUST_USE;

/* Tells whether /proc of this host shows the process with this pid and start time. */
bool mstx_process_runs(uint32_t pid, uint64_t start_jiffies);

struct mstx_link;
/* Opens the control file of a process.  Returns MS_OK with *out NULL when there is none, as in a
 * copy of a capture. */
enum ms_rc mstx_link_open(struct mstx_link **out, const char *process_dir,
                          struct ms_err *err) MS_MUST_USE;
void mstx_link_close(struct mstx_link *l);
/* Returns false when the process has ended; true also for processes of other hosts, which cannot be
 * checked. */
bool mstx_link_alive(const struct mstx_link *l);
/* Sends a command and waits up to five seconds for the answer; returns MS_E_NOTFOUND when the
 * process ends meanwhile.  text may be NULL.  *reply receives the counters and the answer. */
enum ms_rc mstx_link_ask(struct mstx_link *l, enum mstx_command command, const char *text,
                         struct mstx_control *reply, struct ms_err *err) MS_MUST_USE;

#endif
