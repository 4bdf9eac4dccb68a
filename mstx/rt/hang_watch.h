/* SPDX-License-Identifier: MIT
 *
 * hang_watch: reports communication calls that do not return and device marks that never complete.
 */
#ifndef MSTX_RT_HANG_WATCH_H
#define MSTX_RT_HANG_WATCH_H

#include "mstx/rt/state.h"

/* Reports communication calls that do not return; called by the helper once a second. */
void rt_hang_look(void);
/* A mark on a stream that its device does not reach; reported by the poller. */
struct rt_hang_mark {
    uint64_t id, ticks; /* of the mark or range */
    uint32_t name;      /* its text */
    const char *stream;
};
void rt_hang_on_device(const struct rt_hang_mark *m);
/* Tells whether a duration in ticks exceeds the limit for hung calls. */
bool rt_hang_is_long(uint64_t ticks);

#endif
