/* SPDX-License-Identifier: MIT
 *
 * cluster_save: writes the results of the analysis of all ranks into run.db: packed joins, and the
 * tables rank_steps, links and conclusions.
 */
#ifndef MSTX_IMPORT_CLUSTER_SAVE_H
#define MSTX_IMPORT_CLUSTER_SAVE_H

#include "mstx/cluster/rows.h"
#include "mstx/rundb/packed_tables.h"

#include "probe/base/store.h"

/* Writes joins of consecutive ranges of places: begin, save for each range, finish; end frees. */
struct mstx_join_saver {
    struct mstx_packed_out out;
    size_t stretch; /* number of the blob that is being filled */
};
enum ms_rc mstx__joins_begin(struct mstx_join_saver *j, struct ms_store *s,
                             struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__joins_save(struct mstx_join_saver *j, const struct mstx_cluster *c,
                            struct ms_err *err) MS_MUST_USE;
enum ms_rc mstx__joins_finish(struct mstx_join_saver *j, struct ms_err *err) MS_MUST_USE;
void mstx__joins_end(struct mstx_join_saver *j);
/* Writes the joins of this process: all, or its part of them under mpirun. */
enum ms_rc mstx__cluster_save_joins(const struct mstx_cluster *c, struct ms_store *s,
                                    struct ms_err *err) MS_MUST_USE;
/* Writes rank_steps, links and conclusions. */
enum ms_rc mstx__cluster_save(const struct mstx_cluster *c, struct ms_store *s,
                              struct ms_err *err) MS_MUST_USE;
/* Writes joins and tables; does nothing after an earlier failure, which stays in the writer. */
struct mstx_writer;
enum ms_rc mstx__cluster_save_all(const struct mstx_cluster *c, struct mstx_writer *w,
                                  struct ms_err *err) MS_MUST_USE;

#endif
