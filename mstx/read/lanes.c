/* SPDX-License-Identifier: MIT
 *
 * lanes: see the header.
 */
#include "mstx/read/lanes.h"

#include "probe/base/mem.h"

#include <string.h>

enum ms_rc mstx__lanes_new(struct mstx_lanes *l, struct ms_err *err)
{
    *l = (struct mstx_lanes){0};
    l->table = ms_calloc(MSTX_OPEN_SLOTS, sizeof *l->table);
    l->cache = ms_calloc(1, sizeof *l->cache);
    if (l->table != NULL && l->cache != NULL)
        return MS_OK;
    mstx__lanes_free(l);
    return ms_no_memory(err);
}

void mstx__lanes_reset(struct mstx_lanes *l, struct mstx_texts *t)
{
    l->texts = t;
    memset(l->cache, 0, sizeof *l->cache);
    memset(l->table, 0, MSTX_OPEN_SLOTS * sizeof *l->table);
    l->lane.n = l->extra.n = l->comm.n = l->parts.n = l->thread.n = l->counter_of.n = 0;
    l->open.n = l->ends.n = l->memory.n = l->device.n = l->stream.n = 0;
    l->newest = l->records = l->dropped = l->unfinished = l->no_device = l->bad = 0;
    l->sockets = l->throttled = 0;
    l->no_memory = false;
}

void mstx__lanes_free(struct mstx_lanes *l)
{
    for (size_t i = 0; i < l->lanes_made; i++)
        ms_vec_free(&l->lane.p[i].ev);
    for (size_t i = 0; i < l->threads_made; i++)
        ms_vec_free(&l->thread.p[i].lane_of);
    ms_vec_free(&l->lane);
    ms_vec_free(&l->thread);
    ms_vec_free(&l->counter_of);
    ms_vec_free(&l->extra);
    ms_vec_free(&l->comm);
    ms_vec_free(&l->parts);
    ms_vec_free(&l->open);
    ms_vec_free(&l->ends);
    ms_vec_free(&l->memory);
    ms_vec_free(&l->device);
    ms_vec_free(&l->stream);
    ms_free(l->table);
    ms_free(l->cache);
    l->table = NULL;
    l->cache = NULL;
}

struct mstx_lane *mstx__lane_add(struct mstx_lanes *l, enum mstx_track_kind kind, uint32_t tid,
                                 uint32_t domain, uint32_t name, uint32_t *index)
{
    struct mstx_lane *lane = ms_vec_push(&l->lane);
    if (lane == NULL) {
        l->no_memory = true;
        return NULL;
    }
    struct mstx_lane made = {
        .kind = kind, .tid = tid, .domain = domain, .name = name, .is_sorted = true};
    if (l->lane.n <= l->lanes_made) { /* reuses the memory of a lane of an earlier process */
        made.ev.p = lane->ev.p;
        made.ev.cap = lane->ev.cap;
    } else {
        l->lanes_made = l->lane.n;
    }
    *lane = made;
    *index = (uint32_t)l->lane.n - 1;
    return lane;
}

int64_t mstx__lane_ns(const struct mstx_lane *lane, struct mstx_host_clock *c, uint64_t t)
{
    if (!lane->is_mono_ns)
        return mstx__clock_ns(c, t);
    const int64_t mono = mstx__lane_steady(lane, c, t);
    return mono + mstx__clock_shift(c, mono);
}
