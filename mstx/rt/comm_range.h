/* SPDX-License-Identifier: MIT
 *
 * comm_range: the interface of the recorder for communication hooks: every hook, whatever library
 * it wraps, describes a call here and gets a range of the domain "communication".
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
/* Registers a communicator; begins the capture when one is configured. NULL: no memory. */
struct mstx_group *mstx_group_new(const struct mstx_group_info *info);
/* Ends a communicator; g must not be used afterwards. */
void mstx_group_end(struct mstx_group *g);
/* Sets a better name, or facts that were not known before. */
void mstx_group_update(struct mstx_group *g, const struct mstx_group_info *info);
uint64_t mstx_group_uid(const struct mstx_group *g);
const char *mstx_group_name(const struct mstx_group *g); /* "" without one */
/* Hash for uids: chained over all that identifies a communicator; the first seed is 0. */
uint64_t mstx_group_hash(uint64_t seed, const void *bytes, size_t n);

struct mstx_comm_call {
    const char *name;         /* of the function; a string that is never freed */
    _Atomic uint64_t *known;  /* cache for the text id of name; NULL: none */
    struct mstx_group *group; /* NULL: not known */
    uint64_t count;
    uint32_t elem; /* bytes; 0: of the type, or not known */
    int32_t peer;  /* -1: none */
    uint8_t op, dtype, lib, reduce;
    uint8_t flags; /* MSTX_CF_, MSTX_F_CAPTURED */
    bool has_part; /* the fields below are set */
    int32_t peer2, tag;
    uint64_t sent, received;
    void *stream;
    const uint64_t *requests; /* of a WAIT: `count` handles, valid while it is open; or NULL */
};

/* Tells whether communication calls are recorded. If not, a hook needs only mstx_comm_pass. */
bool mstx_comm_on(void);
/* Returns a byte that is not 0 while mstx_comm_on() is true, for hooks that test it without a
 * function call. NULL: no memory. */
const _Atomic uint8_t *mstx_comm_live(void);
/* Returns the MSTX_SEQUENCES counters of a communicator, by class of operation, as mstx_comm_pass
 * increments them. They are never freed. NULL: no group. */
_Atomic uint32_t *mstx_group_sequences(struct mstx_group *g);
/* Counts a call that is not recorded in the sequence of its communicator. */
void mstx_comm_pass(struct mstx_group *g, enum mstx_comm_op op);
/* Opens a range and returns its id; 0: not recorded. The call counts in the sequence either way. */
uint64_t mstx_comm_begin(const struct mstx_comm_call *c);
/* Ends a range, from any thread; id 0 is ignored. */
void mstx_comm_end(uint64_t id);
/* Ends the range of a receive with its actual size, source and tag (-1: not known). */
void mstx_comm_end_received(uint64_t id, uint64_t bytes, int32_t source, int32_t tag);
/* For a polling call (MPI_Test, MPI_Iprobe): returns true when the newest record of the thread is
 * the same poll, a moment ago and without success. Then mstx_comm_begin is not needed; otherwise
 * the call is begun as any other. */
bool mstx_comm_asks_again(const struct mstx_comm_call *c);
/* Ends a polling call, in place of mstx_comm_end and before any record that its result causes. The
 * id MSTX_COMM_AGAIN extends the range of the previous poll. */
#define MSTX_COMM_AGAIN UINT64_MAX
void mstx_comm_asked(uint64_t id, const struct mstx_comm_call *c, bool found);

/* For a range of the domain that a framework (torch.distributed) opened itself, with a text: sets
 * its sequence number in its class on its communicator; marks that the call only began the
 * operation, so that its range may stay open for long; marks that the calling thread waits for it
 * from now on. Other ids are ignored. */
void mstx_comm_framework_call(uint64_t id, uint32_t seq);
void mstx_comm_framework_async(uint64_t id);
void mstx_comm_framework_wait(uint64_t id);
/* Opens a range of a framework's wait for operations that it began before; mstx_comm_end ends it. */
uint64_t mstx_comm_framework_wait_begin(void);

/* Samples what the thread used of its host: at a border that a framework knows. */
void mstx_use_sample(void);

/* A communication range that is open now, for the detection of hangs in the helper thread. */
struct mstx_comm_open {
    uint64_t id, ticks; /* id and start time */
    struct mstx_rec_comm rec;
    const char *name; /* NULL: a framework opened it; its text holds op, group and size */
    uint32_t text, tid;
    bool is_told; /* reported already, by rt_comm_set_reported */
    uint64_t uid; /* of the group; 0: not known */
    int32_t size;
    int32_t peer; /* of a transfer, as a rank of the world; -1: not known */
    /* Of a WAIT: rec.count handles. Their memory may vanish at any time; read it through the
     * kernel. */
    const uint64_t *requests;
    char group[96];
};
typedef void mstx_comm_open_fn(void *arg, const struct mstx_comm_open *open);
void mstx_comm_each_open(mstx_comm_open_fn *fn, void *arg);

/* Callback of a hook, called by the helper thread: the id of the range that ends with a request; 0:
 * none. */
typedef uint64_t mstx_comm_request_fn(uint64_t handle);
void mstx_comm_requests_by(mstx_comm_request_fn *fn);

/* Writes a line about a hook into the capture and, unless quiet, to stderr; each text once. */
void mstx_comm_note(const char *text);

#endif
