/* SPDX-License-Identifier: MIT
 *
 * to_ascend: writes a run as databases of Ascend's profilers.
 */
#ifndef MSTX_FOREIGN_TO_ASCEND_H
#define MSTX_FOREIGN_TO_ASCEND_H

#include "mstx/foreign/to_ascend_comm.h"
#include "mstx/rundb/run_query.h"

/* Writes STRING_IDS, MSTX_EVENTS and the other tables that readers need.  A path that ends in .db
 * receives all ranks; any other path is a directory with one ascend_pytorch_profiler_RANK.db for
 * each rank. */
enum ms_rc mstx_export_ascend_db(struct mstx_tl *tl, const char *path,
                                 struct ms_err *err) MS_MUST_USE;
/* Makes the number by which these databases know a host. */
enum { MSTX_HOST_UID = 24 };
struct ms_str mstx__ascend_host_uid(struct ms_str name, char uid[MSTX_HOST_UID]);
/* Makes the database of one rank in memory, for queries. */
enum ms_rc mstx__ascend_rank_db(struct ms_store **out, struct mstx_tl *tl,
                                const struct mstx_ascend_groups *groups,
                                const struct mstx_ascend_how *how, struct ms_err *err) MS_MUST_USE;

#endif
