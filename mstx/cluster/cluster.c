/* SPDX-License-Identifier: MIT
 *
 * cluster: see the header.
 */
#include "mstx/cluster/cluster.h"

#include "mstx/cluster/join.h"
#include "mstx/cluster/links.h"
#include "mstx/cluster/stragglers.h"

#include "probe/base/assert.h"

/* Adds the notes found while joining (mismatches, missing ranks) before all others. */
static void note_found(struct mstx_cluster *c)
{
    for (size_t i = 0; i < c->quarrel.n + c->missing.n; i++) {
        struct mstx_cl_note *slot = ms_vec_push(&c->note);
        c->no_memory |= slot == NULL;
        if (slot != NULL)
            *slot = i < c->quarrel.n ? c->quarrel.p[i] : c->missing.p[i - c->quarrel.n];
    }
}

void mstx__cluster_judge(struct mstx_cluster *c)
{
    ms_assert(!c->no_memory);
    note_found(c);
    if (!c->no_memory)
        mstx__cluster_links(c);
    if (!c->no_memory)
        mstx__cluster_stragglers(c);
}

enum ms_rc mstx__cluster_conclude(struct mstx_cluster *c, struct ms_err *err)
{
    if (!c->no_memory) {
        mstx__cluster_find_places(c);
        mstx__cluster_join(c);
    }
    if (!c->no_memory)
        mstx__cluster_paths(c);
    if (!c->no_memory)
        mstx__cluster_judge(c);
    return c->no_memory ? ms_no_memory(err) : MS_OK;
}
