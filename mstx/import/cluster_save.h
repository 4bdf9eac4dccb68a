/* SPDX-License-Identifier: MIT
 *
 * cluster_save: what was concluded about all ranks, in run.db: joins, packed, and the tables
 * rank_steps, links and conclusions.
 */
#ifndef MSTX_IMPORT_CLUSTER_SAVE_H
#define MSTX_IMPORT_CLUSTER_SAVE_H

#include "mstx/cluster/rows.h"

#include "probe/base/store.h"

/* Writes the joins that are here: all, or our part of them. */
enum ms_rc mstx__cluster_save_joins(const struct mstx_cluster *c, struct ms_store *s,
                                    struct ms_err *err) MS_MUST_USE;
/* Writes rank_steps, links and conclusions. */
enum ms_rc mstx__cluster_save(const struct mstx_cluster *c, struct ms_store *s,
                              struct ms_err *err) MS_MUST_USE;
/* Both; an earlier failure stays in the writer. */
struct mstx_writer;
enum ms_rc mstx__cluster_save_all(const struct mstx_cluster *c, struct mstx_writer *w,
                                  struct ms_err *err) MS_MUST_USE;

#endif
