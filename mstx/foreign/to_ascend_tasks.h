/* SPDX-License-Identifier: MIT
 *
 * to_ascend_tasks: writes what a profiler's trace of another tool knows of a device to a database of
 * Ascend's profilers: its kernels and copies, the calls of the runtime that launched them, and the
 * operators of the framework around these calls.
 *
 *     cpu_op ────────────────► PYTORCH_API ◄──┐
 *       cuda_runtime, ... ───► CANN_API       ├ CONNECTION_IDS
 *     kernel, gpu_memcpy, ... ► TASK ◄────────┘
 *       computation ──────────► COMPUTE_TASK_INFO
 *       communication ────────► COMMUNICATION_OP
 */
#ifndef MSTX_FOREIGN_TO_ASCEND_TASKS_H
#define MSTX_FOREIGN_TO_ASCEND_TASKS_H

#include "mstx/foreign/to_ascend_comm.h"

/* Returns a globalTid: the process above the thread. Threads without a number are -1. */
static inline int64_t mstx__global_tid(int64_t pid, int64_t tid)
{
    return (int64_t)((uint64_t)pid << 32 | (uint64_t)tid);
}
/* Tells whether a process comes from a trace of PyTorch's profiler or from a table. */
bool mstx__process_is_profiled(const struct mstx_process *p);
/* Tells whether all processes of a rank, or of MSTX_ALL_RANKS, come from traces of PyTorch's
 * profiler or from tables. */
bool mstx__rank_is_profiled(const struct mstx_tl *tl, int32_t rank);
/* Tells whether an event of a thread belongs into the tables of the framework and the runtime, and is
 * no mark of the user. */
bool mstx__is_api(struct mstx_tl *tl, const struct mstx_event *e);
/* Tells whether an event is a call of a module of the model, and which. */
bool mstx__is_module(struct mstx_tl *tl, const struct mstx_event *e, struct ms_str *name);

/* Writes the tables of a rank that is profiled. COMMUNICATION_OP has the calls that the trace
 * describes; kernels of communication that it does not describe are added. Rows of TASK are
 * numbered from *tasks, which is raised. */
enum ms_rc mstx__ascend_tasks_write(struct mstx_tl *tl, const struct mstx_ascend_groups *groups,
                                    int32_t rank, struct ms_store *to,
                                    const struct mstx_own_texts *texts, int64_t *tasks,
                                    struct ms_err *err) MS_MUST_USE;

#endif
