/* SPDX-License-Identifier: MIT
 *
 * comm_group: communicators and the communication calls that are open, as comm_range writes them and
 * hang_watch reads them.
 */
#ifndef MSTX_RT_COMM_GROUP_H
#define MSTX_RT_COMM_GROUP_H

#include "mstx/rt/comm_range.h"
#include "mstx/rt/slot.h"

enum { RT_GROUP_NAME = 128 };

struct mstx_group {
    _Atomic uint32_t seq[MSTX_SEQUENCES];
    _Atomic uint32_t epoch; /* epoch of the capture that has its definition */
    uint32_t number;        /* id in captures; 0: ended */
    uint64_t uid;
    int32_t size, rank;
    uint32_t listed, room;
    int32_t *world;
    struct mstx_group *next; /* in the list of free groups */
    char name[RT_GROUP_NAME];
};

/* Writes the definition of a communicator into the current capture. */
void rt_group_define(struct mstx_group *g);
/* Makes the domain "communication" and with it rt_comm_domain. */
void rt_comm_prepare(void);

/* An open call, indexed by the slot of its range; pages that are never used take no memory. The
 * range of a framework has no name here: its text describes it. */
struct rt_open_call {
    struct mstx_rec_comm rec;
    const char *name;
    union {
        const struct mstx_group *group; /* of a call with a name */
        const uint64_t *requests;       /* of a WAIT with a name */
        /* Start of the wait of a thread for it, in ticks; 0: the start of the call. */
        uint64_t since;
    };
    uint32_t id, tid;
    uint32_t told; /* the id, once reported as hung */
};
static_assert(sizeof(struct rt_open_call) <= 64, "a cache line");
extern struct rt_open_call rt_open_calls[1 << RT_SLOT_BITS];

/* Notes that the program itself opened a range of the domain. */
void rt_comm_framework_start(uint32_t id, uint32_t tid);
/* Notes that the range was reported as hung. */
void rt_comm_set_reported(uint64_t id);
mstx_comm_request_fn *rt_comm_requests_by(void); /* NULL: no hook has registered one */

#endif
