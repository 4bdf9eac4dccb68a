/* SPDX-License-Identifier: MIT
 *
 * trace_lanes: processes, lanes and flows of one Chrome trace, kept until its end and then written as
 * processes and tracks of a run.
 *
 * Times are those of the trace until lanes_write converts them: the base of the clock may stand behind
 * the events, and other traces may contradict it.
 */
#ifndef MSTX_FOREIGN_TRACE_LANES_H
#define MSTX_FOREIGN_TRACE_LANES_H

#include "mstx/foreign/trace_clock.h"
#include "mstx/foreign/trace_item.h"
#include "mstx/rundb/run_write.h"

#include "probe/base/map.h"

/* The process of a lane of a device, and of what the profiler says of itself: the traced one. */
#define MSTX_TRACE_HOST UINT32_MAX

struct mstx_trace_lane {
    uint32_t process; /* index, or MSTX_TRACE_HOST */
    enum mstx_track_kind kind;
    uint32_t tid, device;
    struct ms_str name, domain, unit;
    mstx_events ev;
    uint32_t track;      /* its id, once written; 0: it has no events */
    MS_VEC(size_t) open; /* B events without an E event so far */
};

struct mstx_trace_process {
    struct ms_str pid, name;
    uint32_t id;     /* once written; 0: it has no events */
    uint64_t events; /* when it is written */
};

/* An arrow from one place to another. */
struct mstx_trace_flow {
    uint32_t name;     /* text of the run */
    uint32_t from, to; /* lanes; UINT32_MAX: not seen */
    int64_t from_ns, to_ns;
};

/* A thread that was looked for: events of one thread stand together. */
enum { MSTX_TRACE_NEAR = 16 };
struct mstx_trace_near {
    struct ms_str pid, tid;
    uint32_t lane;
};

struct mstx_trace_lanes {
    struct mstx_writer *w;
    struct ms_arena *arena;
    struct ms_map lanes, processes, flows;
    MS_VEC(struct mstx_trace_lane) lane;
    MS_VEC(struct mstx_trace_process) process;
    MS_VEC(struct mstx_trace_flow) flow;
    MS_VEC(uint32_t) flow_of; /* the newest flow of each id */
    struct ms_buf key;
    struct mstx_trace_near near[MSTX_TRACE_NEAR];
    struct mstx_trace_time time;
    int64_t first_ns, last_ns; /* by the clock of the trace */
    bool has_first;
    bool is_crowded; /* threads or processes beyond 65,536 share a lane */
};

/* Finds or adds a process by its pid; NULL: out of memory, as below. */
struct mstx_trace_process *mstx__trace_lanes_process(struct mstx_trace_lanes *t, struct ms_str pid,
                                                     uint32_t *index);
/* Find or add the lane of a thread, of a counter, of a stream of a device in one of the domains of
 * device_work.h, or of the profiler itself.  *index is its number. */
struct mstx_trace_lane *mstx__trace_lanes_thread(struct mstx_trace_lanes *t,
                                                 const struct mstx_trace_item *it, uint32_t *index);
struct mstx_trace_lane *mstx__trace_lanes_counter(struct mstx_trace_lanes *t,
                                                  const struct mstx_trace_item *it,
                                                  uint32_t *index);
struct mstx_trace_lane *mstx__trace_lanes_stream(struct mstx_trace_lanes *t,
                                                 const struct mstx_trace_item *it,
                                                 const char *domain, uint32_t *index);
struct mstx_trace_lane *mstx__trace_lanes_tool(struct mstx_trace_lanes *t,
                                               const struct mstx_trace_item *it, uint32_t *index);

struct mstx_event *mstx__trace_lanes_add(struct mstx_trace_lanes *t, struct mstx_trace_lane *l,
                                         const struct mstx_trace_item *it,
                                         enum mstx_event_kind kind);
/* Ends an event, which the time of the end finishes or leaves open. */
void mstx__trace_lanes_close(struct mstx_trace_lanes *t, struct mstx_event *e, int64_t ts,
                             bool is_finished);
/* Takes the begin or end of a flow at a place of a lane. */
bool mstx__trace_lanes_flow(struct mstx_trace_lanes *t, const struct mstx_trace_item *it,
                            uint32_t lane, bool begins);

struct mstx_trace_about {
    int32_t rank;
    const char *tool;
    bool is_one; /* the trace is of one process; the others are only named, such as devices */
};
/* Writes processes, tracks and flows.  *host is the id of the traced process of a trace that is_one,
 * which lanes of devices belong to. */
enum ms_rc mstx__trace_lanes_write(struct mstx_trace_lanes *t, const struct mstx_trace_about *about,
                                   uint32_t *host, struct ms_err *err) MS_MUST_USE;
void mstx__trace_lanes_free(struct mstx_trace_lanes *t);

#endif
