/* SPDX-License-Identifier: MIT
 *
 * mem_read: what is read into the model of memory use.
 *
 * A path is one file or a folder; the files of a folder are those of the ranks of one job, or
 * several tables of one rank.
 *
 *     torch memory snapshot (.pickle, .pkl)     mem_from_snapshot
 *     trace of PyTorch's profiler               mem_from_trace
 *     raw memory timeline (.raw.json.gz)        mem_from_timeline
 *     MindSpore memory_block.csv                mem_from_tables
 *     Ascend operator_memory, memory_record     mem_from_tables
 *     Ascend database                           mem_from_ascend
 *     run of `msprobe run`                      mem_from_run
 */
#ifndef MSTX_MEMORY_MEM_READ_H
#define MSTX_MEMORY_MEM_READ_H

#include "mstx/memory/mem_log.h"

#include "probe/base/progress.h"

/* Reads everything at a path and sets the kinds of all blocks. bar shows how far it is; NULL: nothing does. */
enum ms_rc mstx__mem_read(struct mstx_mem_log **log, const char *path, struct ms_progress *bar,
                          struct ms_err *err) MS_MUST_USE;

/* Tells by its name and first bytes whether a file is a record of memory and of nothing else: a snapshot, a raw timeline, a table
 * of allocations. */
bool mstx__mem_is_record(const char *path);

/* The readers of one file each; rank is that which the name of the file says, or -1. */
enum ms_rc mstx__mem_from_snapshot(struct mstx_mem_log *log, const char *path, int32_t rank,
                                   struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__mem_from_trace(struct mstx_mem_log *log, const char *path, int32_t rank,
                                struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__mem_from_timeline(struct mstx_mem_log *log, const char *path, int32_t rank,
                                   struct ms_err *err) MS_MUST_USE;
/* Tables of MindSpore's memory tracker, and of Ascend's profiler: one allocation a row, or totals. */
enum ms_rc mstx__mem_from_mindspore(struct mstx_mem_log *log, const char *path, int32_t rank,
                                    struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__mem_from_operators(struct mstx_mem_log *log, const char *path, int32_t rank,
                                    struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__mem_from_records(struct mstx_mem_log *log, const char *path, int32_t rank,
                                  struct ms_err *err) MS_MUST_USE;
/* A database of Ascend's profilers. */
enum ms_rc mstx__mem_from_ascend(struct mstx_mem_log *log, const char *path, int32_t rank,
                                 struct ms_err *err) MS_MUST_USE;
/* A run, a directory or its run.db; processes have the ranks. */
enum ms_rc mstx__mem_from_run(struct mstx_mem_log *log, const char *path, int32_t rank,
                              struct ms_err *err) MS_MUST_USE;

#endif
