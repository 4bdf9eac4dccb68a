/* SPDX-License-Identifier: MIT
 *
 * export_flows: the arrows of a run: those of a foreign trace, and from each launch to its kernel.
 */
#ifndef MSTX_FOREIGN_EXPORT_FLOWS_H
#define MSTX_FOREIGN_EXPORT_FLOWS_H

#include "mstx/rundb/run_query.h"

#include "probe/base/vec.h"

struct mstx_flow {
    char name[32];
    uint32_t from_track, to_track; /* indices */
    int64_t from_ns, to_ns;
};
typedef MS_VEC(struct mstx_flow) mstx_flows;

/* Reads the flows; none when the run was made by an older version or comes from no trace.  The caller
 * frees the list. */
enum ms_rc mstx__flows_read(struct mstx_tl *tl, mstx_flows *flows, struct ms_err *err) MS_MUST_USE;

#endif
