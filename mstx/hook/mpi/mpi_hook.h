/* SPDX-License-Identifier: MIT
 *
 * mpi_hook: declarations shared by the files of an MPI hook.  They are compiled once for each
 * flavour of MPI, as handles are pointers in one and numbers in the other, into
 * libmstx_mpi_FLAVOUR.so.
 *
 *     program ──MPI_X──► mpi_calls.c   ┐ wrappers, made from mpi_calls.txt ──► next MPI_X
 *     Fortran ──mpi_x_──► mpi_fortran.c ┘ by mpi_wrappers.awk
 *                                │
 *                                ▼
 *         mpi_group.c, mpi_handles.c ──► rt/comm_range
 *
 * Rule for all files here: a handle that the program passes is looked up in our own tables and
 * never handed to MPI, because a query with a bad handle would raise an error that the program's
 * own call would not.
 *
 * mpi_have.h is made at build time: "#define HAVE_MPI_X ," for each prototype of this mpi.h.
 */
#ifndef MSTX_HOOK_MPI_MPI_HOOK_H
#define MSTX_HOOK_MPI_MPI_HOOK_H

#include "mstx/hook/real_function.h"
#include "mstx/rt/comm_range.h"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <mpi_have.h>

typedef uint64_t hook_handle;
#define HOOK_HANDLE(h) ((hook_handle)(uintptr_t)(h))
#define HOOK_NO_COMM   ((MPI_Comm)0)

extern const char *const hook_mpi_owners[];

/* ---- tables --------------------------------------------------------------------------------- */

/* A table from handles to numbers, read without a lock. The value 0 means "not found". */
enum { HOOK_TABLE = 1 << 14 };
struct hook_table {
    struct hook_lock lock;
    struct {
        _Atomic uint64_t key, value;
    } slot[HOOK_TABLE];
};
uint64_t hook_table_search(const struct hook_table *t, hook_handle h);
/* Makes a key of a handle: never 0 (free slot) or 1 (removed: a search continues). */
static inline uint64_t hook_table_key(hook_handle h)
{
    const uint64_t key = h * 0x9E3779B97F4A7C15u;
    return HOOK_LIKELY(key > 1) ? key : key + 2;
}
static inline size_t hook_table_place(uint64_t key)
{
    return key >> 50;
}
static_assert(HOOK_TABLE == 1 << 14, "places are 14 bits");
static inline uint64_t hook_table_get(const struct hook_table *t, hook_handle h)
{
    const uint64_t key = hook_table_key(h);
    const size_t at = hook_table_place(key);
    if (HOOK_LIKELY(atomic_load_explicit(&t->slot[at].key, memory_order_acquire) == key))
        return atomic_load_explicit(&t->slot[at].value, memory_order_relaxed);
    return hook_table_search(t, h);
}
/* Puts a value, replacing an earlier one; false: full. */
bool hook_table_put(struct hook_table *t, hook_handle h, uint64_t value);
/* Removes a handle; returns its value. */
uint64_t hook_table_take(struct hook_table *t, hook_handle h);

/* ---- communicators and windows ----------------------------------------------------------- */

struct hook_comm {
    struct mstx_group *group;
    int size;  /* of the local group */
    int peers; /* length of arrays in vector collectives: remote size for an intercommunicator */
    int rank;
    /* Offset of peers among the members: not 0 in an intercommunicator, whose peers are in the
     * remote group. */
    int others_at;
    int in, out; /* neighbours */
    bool is_inter;
    _Atomic uint32_t *sequences; /* counters of the group; NULL: none */
    struct hook_comm *next;
};

enum hook_kind { HOOK_COMM, HOOK_WINDOW };
extern struct hook_table hook_comms;
/* Registers the predefined communicators, once MPI is up. */
void hook_comm_start(void);
/* Finds a communicator or window without a lock; NULL: unknown. */
const struct hook_comm *hook_comm_find(hook_handle h, enum hook_kind kind);
static inline const struct hook_comm *hook_comm_of(MPI_Comm c)
{
    return hook_comm_find(HOOK_HANDLE(c), HOOK_COMM);
}
/* Registers a new communicator and computes its identity without communication. like: a
 * communicator with the same members, which is queried because the new one may not be ready. */
void hook_comm_made(MPI_Comm made, MPI_Comm parent, const char *how, int salt, MPI_Comm like);
/* Registers a window, whose calls are attributed to its communicator. */
void hook_window_made(MPI_Win w, MPI_Comm c);
/* Removes an entry before a free, since handles are reused at once; hook_comm_put_back restores it
 * when the free fails. */
struct hook_comm *hook_comm_take(hook_handle h, enum hook_kind kind);
void hook_comm_put_back(hook_handle h, enum hook_kind kind, struct hook_comm *k);
void hook_comm_drop(struct hook_comm *k, enum hook_kind kind);
void hook_comm_named(MPI_Comm c, const char *name);
/* Called after a free with the result rc of MPI. */
static inline void hook_comm_freed(int rc, hook_handle was, enum hook_kind kind,
                                   struct hook_comm *k)
{
    if (rc == MPI_SUCCESS)
        hook_comm_drop(k, kind);
    else
        hook_comm_put_back(was, kind, k);
}

/* ---- types and reductions ----------------------------------------------------------------- */

/* Registers the predefined types and reductions, once MPI is up. */
void hook_know_predefined(void);
/* Finds size and kind of a type that is predefined or was committed; an unknown one has size 0. */
void hook_type_find(MPI_Datatype t, uint32_t *bytes, uint8_t *dtype);
uint32_t hook_type_bytes(MPI_Datatype t);
void hook_type_made(MPI_Datatype t);
void hook_type_gone(hook_handle t);
uint8_t hook_op_find(MPI_Op op);

/* ---- requests ------------------------------------------------------------------------------- */

enum {
    HOOK_REQ_RECV = 1,
    HOOK_REQ_OTHERS = 8 /* the bits above hold others_at of its communicator */
};
/* Notes a begun operation: its range ends when the request completes. */
void hook_req_add(MPI_Request r, uint64_t id, unsigned flags);
/* Notes a prepared (persistent) operation: each start begins a range as described. */
void hook_req_prepare(MPI_Request r, const struct mstx_comm_call *c, unsigned flags);
void hook_req_start(hook_handle r);
/* Ends the range of a completed request; status may be NULL. */
void hook_req_done(hook_handle r, const MPI_Status *status);
/* Drops a request that was freed: the program does not wait for it any more. */
void hook_req_gone(hook_handle r);
bool hook_req_is_null(MPI_Request r);
/* Returns the range that ends with a request; 0: none. */
uint64_t hook_req_range(hook_handle r);
/* One lock for all requests: a request costs one locked instruction when it begins and one when it
 * completes. Locked instructions are slow just after a record was written, as they wait until the
 * record has reached the cache. */
extern struct hook_req_pool {
    _Alignas(64) struct hook_lock lock;
    _Atomic uint32_t tracked; /* requests in flight: 0 as long as nothing is recorded */
    struct hook_request *free;
    struct hook_request *free_prepared;
} hook_req_pool;

/* Copies of the handles before a call that overwrites them. The first few need no allocation. */
enum { HOOK_FEW = 64 };
struct hook_before {
    int n;
    hook_handle *h;
    hook_handle few[HOOK_FEW];
};
/* Makes room for n handles; without memory n becomes 0 and their ranges stay open. */
void hook_before_room(struct hook_before *b, int n);
/* ---- life --------------------------------------------------------------------------------------- */

/* Registers the predefined objects, once MPI is up. May be called more than once. */
void hook_mpi_start(void);
/* Called after MPI_Init: starts the hook and compares the clocks of the hosts. */
void hook_mpi_is_up(int rc);
/* Not 0 while calls are recorded; hook_mpi_not_known until MPI is up. */
extern const _Atomic uint8_t *_Atomic hook_mpi_live;
extern const _Atomic uint8_t hook_mpi_not_known;
/* Starts the hook if MPI is up already: some bindings initialize MPI without its hooked functions,
 * and a hook may be loaded late. */
void hook_mpi_catch_up(void);
static inline void hook_mpi_here(void)
{
    if (!HOOK_LIKELY(atomic_load_explicit(&hook_mpi_live, memory_order_relaxed) !=
                     &hook_mpi_not_known))
        hook_mpi_catch_up();
}
static inline bool hook_mpi_is_off(void)
{
    const _Atomic uint8_t *live = atomic_load_explicit(&hook_mpi_live, memory_order_relaxed);
    return atomic_load_explicit(live, memory_order_relaxed) == 0;
}
/* Returns the bytes received, whatever their type; 0 when unknown. */
uint64_t hook_status_bytes(const MPI_Status *s);
/* Tells whether a request was cancelled; the rest of its status is then undefined. */
bool hook_status_is_cancelled(const MPI_Status *s);
MPI_Datatype hook_byte_type(void);
MPI_Comm hook_world(void);
/* Compare the clocks of hosts, in MPI_Init and MPI_Finalize, which all ranks call. */
void hook_clock_start(MPI_Comm world);
void hook_clock_stop(void);

/* Finds a function of MPI for the hook's own use; NULL: this MPI has none. */
#define HOOK_MPI(name)                                                                             \
    ({                                                                                             \
        static hook_slot own_slot;                                                                 \
        (__typeof__(&name))hook_real(&own_slot, #name, hook_mpi_owners);                           \
    })

/* ---- one call ----------------------------------------------------------------------------------- */

struct hook_call {
    struct mstx_comm_call c;
    const struct hook_comm *k;
    uint64_t id;
    bool on; /* the call has to be described */
};

/* Data that a wrapper keeps between calls, in one cache line: the real function, and the recorder's
 * text id of its name. */
struct hook_site {
    _Alignas(16) hook_slot real;
    _Atomic uint64_t known;
};

/* Common part of many wrappers, not inlined, so that its code is in the cache more often. */
void hook_open(struct hook_call *x, struct hook_site *site, const char *name, unsigned op,
               const struct hook_comm *k);
static inline void hook_begin(struct hook_call *x)
{
    if (HOOK_LIKELY(x->on))
        x->id = mstx_comm_begin(&x->c);
}
static inline void hook_end(const struct hook_call *x)
{
    mstx_comm_end(x->id);
}

/* hook_ask ends the description of a polling call, and hook_asked ends the call. */
static inline void hook_ask(struct hook_call *x)
{
    if (mstx_comm_asks_again(&x->c)) {
        x->on = false; /* no new range */
        x->id = MSTX_COMM_AGAIN;
    }
}
static inline void hook_asked(const struct hook_call *x, bool found)
{
    if (x->id != 0)
        mstx_comm_asked(x->id, &x->c, found);
}

/* Counts a call that is not recorded in the sequence of its communicator, since other ranks may
 * record it. */
void hook_pass_far(hook_handle comm, enum mstx_comm_class class);
static inline void hook_pass(hook_handle comm, enum mstx_comm_class class)
{
    const uint64_t key = hook_table_key(comm);
    const size_t at = hook_table_place(key);
    if (class >= MSTX_SEQUENCES || hook_depth != 0)
        return;
    if (!HOOK_LIKELY(atomic_load_explicit(&hook_comms.slot[at].key, memory_order_acquire) == key)) {
        hook_pass_far(comm, class);
        return;
    }
    const uint64_t v = atomic_load_explicit(&hook_comms.slot[at].value, memory_order_relaxed);
    _Atomic uint32_t *n = ((const struct hook_comm *)(uintptr_t)v)->sequences;
    if (HOOK_LIKELY(n != NULL))
        atomic_store_explicit(&n[class], atomic_load_explicit(&n[class], memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

/* Places wrappers side by side in the code, the watched part of each behind its light part, because
 * a program that computes between its calls evicts code from the cache. */
#define HOOK_BESIDE(name) __attribute__((section(".text." #name)))

static inline unsigned hook_req_flags(const struct hook_call *x, unsigned flags)
{
    return x->k != NULL ? flags | (unsigned)x->k->others_at << HOOK_REQ_OTHERS : flags;
}
/* Ends a call that only began an operation: its range ends with the request. */
static inline void hook_begun(const struct hook_call *x, int rc, const MPI_Request *r,
                              unsigned flags)
{
    if (rc == MPI_SUCCESS && !hook_req_is_null(*r))
        hook_req_add(*r, x->id, hook_req_flags(x, flags));
    else
        hook_end(x);
}

/* Describes a call that prepares a persistent operation: the call has a range of its own kind;
 * `later` describes the range of each start. */
static inline void hook_prepare(struct hook_call *x, struct mstx_comm_call *later, unsigned op,
                                const char *name)
{
    *later = x->c;
    later->op = (uint8_t)op;
    later->name = name;
    later->known = NULL; /* caches the name of the preparing call */
    later->flags |= MSTX_CF_ASYNC | MSTX_CF_PERSISTENT;
    x->c.has_part = false;
}
static inline void hook_prepared(const struct hook_call *x, int rc, const MPI_Request *r,
                                 const struct mstx_comm_call *later, unsigned flags)
{
    if (rc == MPI_SUCCESS && x->on)
        hook_req_prepare(*r, later, hook_req_flags(x, flags));
    hook_end(x);
}

/* ---- descriptions ------------------------------------------------------------------------------- */

static inline void hook_one(struct hook_call *x, int64_t n, MPI_Datatype t)
{
    x->c.count = n > 0 ? (uint64_t)n : 0;
    hook_type_find(t, &x->c.elem, &x->c.dtype);
}
/* Describes the sent data, or the received data if that is in place. */
static inline void hook_pair(struct hook_call *x, bool in_place, int64_t n, MPI_Datatype t,
                             int64_t other_n, MPI_Datatype other_t)
{
    if (in_place)
        x->c.flags |= MSTX_CF_IN_PLACE;
    hook_one(x, in_place ? other_n : n, in_place ? other_t : t);
}
static inline void hook_reduced(struct hook_call *x, MPI_Op op, bool in_place)
{
    x->c.reduce = hook_op_find(op);
    if (in_place)
        x->c.flags |= MSTX_CF_IN_PLACE;
}
static inline uint64_t hook_bytes(int64_t n, MPI_Datatype t)
{
    return n > 0 ? (uint64_t)n * hook_type_bytes(t) : 0;
}
static inline int64_t hook_nth(const void *counts, size_t width, int i)
{
    if (width == sizeof(int))
        return ((const int *)counts)[i];
    return (int64_t)((const MPI_Count *)counts)[i];
}
static inline uint64_t hook_sum(const void *counts, size_t width, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += (uint64_t)hook_nth(counts, width, i);
    return sum;
}
static inline void hook_moved(struct hook_call *x, uint64_t sent, uint64_t received)
{
    x->c.has_part = true;
    x->c.sent = sent;
    x->c.received = received;
    x->c.peer2 = -1;
    x->c.tag = -1;
}
/* Converts a root or peer to a member of the group; negative values keep their meaning. */
static inline int hook_member(const struct hook_call *x, int peer)
{
    return x->k != NULL && peer >= 0 ? peer + x->k->others_at : peer;
}
static inline void hook_p2p(struct hook_call *x, int peer, int tag, bool is_send)
{
    uint64_t bytes = x->c.count * x->c.elem;
    hook_moved(x, is_send ? bytes : 0, is_send ? 0 : bytes);
    x->c.peer = hook_member(x, peer);
    x->c.tag = tag;
    if (!is_send && peer == MPI_ANY_SOURCE) {
        x->c.peer = -1;
        x->c.flags |= MSTX_CF_ANY;
    }
}
static inline void hook_at_target(struct hook_call *x, int rank, bool gives)
{
    uint64_t bytes = x->c.count * x->c.elem;
    x->c.peer = rank;
    hook_moved(x, gives ? bytes : 0, gives ? 0 : bytes);
}
/* Describes a point-to-point call, in C and in Fortran. */
void hook_transfer(struct hook_call *x, int64_t n, MPI_Datatype t, int peer, int tag, bool is_send);
static inline void hook_matched(struct hook_call *x, int64_t n, MPI_Datatype t)
{
    hook_transfer(x, n, t, MPI_ANY_SOURCE, -1, false);
}
static inline void hook_exchange(struct hook_call *x, uint64_t received, int from)
{
    x->c.received = received;
    x->c.peer2 = hook_member(x, from);
    x->c.flags |= from == MPI_ANY_SOURCE ? MSTX_CF_ANY : 0;
}
/* Describes a one-sided call; `received` bytes come back from the target. */
static inline void hook_access(struct hook_call *x, int64_t n, MPI_Datatype t, int rank, bool gives)
{
    hook_one(x, n, t);
    hook_at_target(x, rank, gives);
}
static inline void hook_accumulate(struct hook_call *x, int64_t n, MPI_Datatype t, int rank,
                                   MPI_Op op, uint64_t received)
{
    hook_access(x, n, t, rank, true);
    x->c.received = received;
    x->c.reduce = hook_op_find(op);
}
static inline bool hook_is_root(const struct hook_call *x, int root)
{
    return x->k != NULL && (x->k->is_inter ? root == MPI_ROOT : x->k->rank == root);
}
static inline int hook_peers(const struct hook_call *x)
{
    return x->k != NULL ? x->k->peers : 0;
}

/* ---- descriptions of collectives ------------------------------------------------------------ */

static inline void hook_to_root(struct hook_call *x, int root)
{
    x->c.peer = hook_member(x, root);
}
/* Returns the count of this rank in an array with a count for each rank. */
static inline int64_t hook_own(const struct hook_call *x, const void *counts, size_t width)
{
    return x->k != NULL && !x->k->is_inter ? hook_nth(counts, width, x->k->rank) : 0;
}
/* Sets the received bytes: the sum of an array of n counts. */
static inline void hook_got(struct hook_call *x, const void *counts, size_t width, int n,
                            MPI_Datatype t)
{
    hook_moved(x, x->c.count * x->c.elem, hook_sum(counts, width, n) * hook_type_bytes(t));
}
/* Describes a call in which each rank has a type of its own, so that bytes are counted. */
static inline void hook_many_types(struct hook_call *x, bool in_place, uint64_t given,
                                   uint64_t taken)
{
    if (in_place)
        x->c.flags |= MSTX_CF_IN_PLACE;
    x->c.count = in_place ? taken : given;
    x->c.elem = 1;
    x->c.dtype = MSTX_TYPE_DERIVED;
    hook_moved(x, x->c.count, taken);
}
static inline int hook_in_degree(const struct hook_call *x)
{
    return x->k != NULL ? x->k->in : 0;
}
static inline int hook_out_degree(const struct hook_call *x)
{
    return x->k != NULL ? x->k->out : 0;
}

#endif
