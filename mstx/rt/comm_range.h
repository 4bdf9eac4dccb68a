/* SPDX-License-Identifier: MIT
 *
 * comm_range: the recorder's door for communication hooks: every hook, whatever library it stands
 * in front of, describes a call here and gets a range of the domain "communication".
 *
 *     hook library ──► mstx_comm_begin(&op) ─► CALL + COMM ──┐
 *          │                                                 ├─► ring of the thread
 *          └──► the real call ──► mstx_comm_end(id) ─► CALL ─┘
 *
 * The functions are exported by libmstx.so; hook libraries are linked to it.  All of them may be
 * called from any thread and none blocks, allocates or calls the communication library.  While a
 * mark that the program itself made in that domain is open on the thread, begin records nothing,
 * so a call is never counted twice.
 */
#ifndef MSTX_RT_COMM_RANGE_H
#define MSTX_RT_COMM_RANGE_H

#include "mstx/format/comm.h"

#include <stdbool.h>

/* A communicator.  Handles of libraries are reused, so hooks map them to these. */
struct mstx_group;
struct mstx_group_info {
    uint64_t uid; /* the same on all ranks of the communicator */
    const char *name;
    int32_t size, rank;   /* -1: not known */
    const int32_t *world; /* the world rank of each of its ranks, or NULL */
};
/* Introduce a communicator; begins the capture when one is wanted.  NULL: no memory. */
struct mstx_group *mstx_group_new(const struct mstx_group_info *info);
/* It is gone; g must not be used again. */
void mstx_group_end(struct mstx_group *g);
/* A better name, or facts that were not known at first. */
void mstx_group_update(struct mstx_group *g, const struct mstx_group_info *info);
uint64_t mstx_group_uid(const struct mstx_group *g);
const char *mstx_group_name(const struct mstx_group *g); /* "" without one */
/* A hash for uids: chain it over what makes a communicator the one it is; seed 0 to begin. */
uint64_t mstx_group_hash(uint64_t seed, const void *bytes, size_t n);

struct mstx_comm_call {
    const char *name; /* of the function; a text that stays */
    _Atomic uint64_t
        *known; /* where the recorder keeps what it made of name; NULL: no such place */
    struct mstx_group *group; /* NULL: not known */
    uint64_t count;
    uint32_t elem; /* bytes; 0: of the type, or not known */
    int32_t peer;  /* -1: none */
    uint8_t op, dtype, lib, reduce;
    uint8_t flags; /* MSTX_CF_, MSTX_F_CAPTURED */
    bool has_part; /* the rest is set */
    int32_t peer2, tag;
    uint64_t sent, received;
    void *stream;
    const uint64_t *requests; /* of a WAIT: `count` handles, there while it is open; NULL: none */
};

/* Is anything recorded?  When not, calls need no description but mstx_comm_pass. */
bool mstx_comm_on(void);
/* Not 0 while mstx_comm_on; for hooks that look without a call. NULL: no memory. */
const _Atomic uint8_t *mstx_comm_live(void);
/* MSTX_SEQUENCES counters, by class: what mstx_comm_pass counts up; stays for ever. NULL: no group. */
_Atomic uint32_t *mstx_group_sequences(struct mstx_group *g);
/* A call that is not recorded still counts in the sequence of its communicator. */
void mstx_comm_pass(struct mstx_group *g, enum mstx_comm_op op);
/* Id of the range, 0: not recorded.  It counts in the sequence either way. */
uint64_t mstx_comm_begin(const struct mstx_comm_call *c);
/* By any thread; 0 is ignored. */
void mstx_comm_end(uint64_t id);
/* The same when it is known by then what arrived from whom (-1: not). */
void mstx_comm_end_received(uint64_t id, uint64_t bytes, int32_t source, int32_t tag);
/* A call that asks and does not wait (MPI_Test, MPI_Iprobe): true when the thread's newest record is the
 * same question, a moment ago and without success; then there is nothing to begin.  Else begin it as
 * any call. */
bool mstx_comm_asks_again(const struct mstx_comm_call *c);
/* Instead of mstx_comm_end, before anything that the answer brings about.  MSTX_COMM_AGAIN, not an
 * id: it makes the range of the question before longer. */
#define MSTX_COMM_AGAIN UINT64_MAX
void mstx_comm_asked(uint64_t id, const struct mstx_comm_call *c, bool found);

/* A framework (torch.distributed) opened a range of the domain itself, with a text: which of its class
 * on its communicator it is; that the call only began the operation, so its range may be open for long;
 * that the calling thread waits for it from now on.  What is no such range is ignored. */
void mstx_comm_framework_call(uint64_t id, uint32_t seq);
void mstx_comm_framework_async(uint64_t id);
void mstx_comm_framework_wait(uint64_t id);

/* Communication ranges that are open now, for whoever looks for hangs; from the helper thread. */
struct mstx_comm_open {
    uint64_t id, ticks; /* since when */
    struct mstx_rec_comm rec;
    const char *name; /* NULL: a framework opened it; op, group and size stand in the text */
    uint32_t text, tid;
    bool is_told; /* by rt_comm_told */
    uint64_t uid; /* of the group; 0: not known */
    int32_t size;
    int32_t peer;             /* of a transfer, as a rank of the world; -1: not known */
    const uint64_t *requests; /* of a WAIT, rec.count of them; read them as memory that may go */
    char group[96];
};
typedef void mstx_comm_open_fn(void *arg, const struct mstx_comm_open *open);
void mstx_comm_each_open(mstx_comm_open_fn *fn, void *arg);

/* A hook says which range ends with a request, 0: none; asked by the helper thread. */
typedef uint64_t mstx_comm_request_fn(uint64_t handle);
void mstx_comm_requests_by(mstx_comm_request_fn *fn);

/* Write one line about a hook into the capture and, unless quiet, on stderr; each text once. */
void mstx_comm_note(const char *text);

#endif
