/* SPDX-License-Identifier: MIT
 *
 * trace_item: one event of a Chrome trace, read from its JSON.
 *
 * Most members of args are attributes of the user and kept as they are.  The exceptions are what
 * to_chrome.c writes (domain, kind, unfinished, ending thread) and what PyTorch's profiler says of
 * launches, streams, memory and collectives, which are read as well as kept.
 */
#ifndef MSTX_FOREIGN_TRACE_ITEM_H
#define MSTX_FOREIGN_TRACE_ITEM_H

#include "probe/base/arena.h"
#include "probe/base/jread.h"
#include "probe/base/str.h"

/* Greater times are rejected: the sum of two valid times fits, and so does the end of a chunk. */
#define MSTX_TRACE_TIME_MOST (((int64_t)1 << 61) - 1)

/* What args say of a collective. Texts are empty and numbers -1 where args lack them. */
struct mstx_trace_comm {
    struct ms_str op, type, group, group_text, ranks;
    int64_t sent, received; /* elements */
    int64_t size, source, target;
};

/* What args of PyTorch's allocator say: bytes in use and bytes held, the device they lie on, -1 for the
 * host, and its type as PyTorch numbers them (0: CPU, 1: CUDA); -1 where args lack them. Then the
 * address, and the bytes taken (> 0) or given back (< 0) there, 0 where args lack them. */
struct mstx_trace_memory {
    int64_t allocated, reserved, device, device_type, address, bytes;
};

struct mstx_text_run;

/* Texts are slices of the file, or live in the arena; args lives until the next event is read. */
struct mstx_trace_item {
    struct ms_str name, phase, category, args, id;
    uint32_t args_form; /* not 0: args are no text but this form of the writer with these runs */
    const struct mstx_text_run *args_runs;
    struct ms_str pid, tid;
    int64_t ts, dur;
    bool has_ts;
    struct ms_str label; /* args.name of metadata */
    struct ms_str domain,
        type;             /* args.domain, args.event_type: as to_chrome.c and Ascend write them */
    int64_t end_tid;      /* args.end_tid: as to_chrome.c writes it */
    bool is_unfinished;   /* args.unfinished: as to_chrome.c writes it */
    struct ms_str number; /* the first in args, as it is written */
    int64_t correlation, device, stream; /* -1: none */
    struct mstx_trace_comm comm;
    struct mstx_trace_memory memory;
};

struct mstx_trace_json {
    struct ms_jread j;
    struct ms_arena *arena;
    struct ms_buf args; /* of the current event */
    bool no_memory;
};

/* Reads an event, whose opening brace has been read.  Returns false at an error of the JSON. */
bool mstx__trace_item_read(struct mstx_trace_json *r, struct mstx_trace_item *it);
/* What follows is shared with trace_item_fast. */
void mstx__trace_item_init(struct mstx_trace_item *it);
enum mstx_trace_member {
    MSTX_MEMBER_PLAIN, /* an attribute like others */
    MSTX_MEMBER_TAKEN, /* an attribute that the item has as well */
    MSTX_MEMBER_OWN    /* written by to_chrome.c, or a label: the caller must look at it */
};
/* Takes a member of args whose value is a text, a number or another value (MS_J_NULL). */
enum mstx_trace_member mstx__trace_item_member(struct mstx_trace_item *it, struct ms_str key,
                                               struct ms_str value, enum ms_jtok kind);
/* Tells what such a member is, and where in the item it has its place. */
enum mstx_trace_member mstx__trace_item_place(struct ms_str key, enum ms_jtok kind, size_t *at);
/* Returns the current string without escapes, copied into the arena. */
struct ms_str mstx__trace_string(struct mstx_trace_json *r);

#endif
