/* SPDX-License-Identifier: MIT
 *
 * met_group: see the header.
 */
#include "mstx/foreign/met_group.h"

enum ms_rc mstx__met_group(struct mstx_comm_writer *comm, struct mstx_cluster *c,
                           const struct mstx_comm_known *g, uint32_t number, struct ms_err *err)
{
    bool is_new = false;
    MS_TRY(mstx__comm_writer_meet(comm, g, &is_new, err));
    MS_TRY(mstx__comm_writer_group(comm, number, g, err));
    if (is_new)
        mstx__cluster_group(c, mstx__comm_writer_id(comm, number), g->name, g->size, g->world,
                            g->listed);
    return MS_OK;
}
