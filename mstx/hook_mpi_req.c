/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_req: from a request to the range that ends with it.
 *
 * Requests are found by the value of their handle.  Both flavours give one and the same handle to all
 * operations that were complete at once, so a handle may stand for several: the oldest goes first.
 */
#include "mstx/hook_mpi.h"

struct request {
    hook_handle handle;
    uint64_t id;                     /* of the range that is open; 0: none */
    struct mstx_comm_call *prepared; /* what a start begins; NULL: an ordinary request */
    struct request *next;
    unsigned flags;
};

enum { BUCKETS = 1 << 13 };
static struct bucket {
    struct hook_lock lock;
    struct request *first, *newest; /* newest: the last, where there is a first */
} buckets[BUCKETS];
_Atomic uint32_t hook_req_tracked;

static struct {
    struct hook_lock lock;
    struct request *free;
    struct request *free_prepared;
} pool;

static struct bucket *bucket_of(hook_handle h)
{
    return &buckets[h * 0x9E3779B97F4A7C15u >> 51];
}
static_assert(BUCKETS == 1 << 13, "the hash gives 13 bits");

/* ---- entries ----------------------------------------------------------------------------------- */

static struct request *entry_new(bool is_prepared)
{
    struct request **list = is_prepared ? &pool.free_prepared : &pool.free;
    hook_lock(&pool.lock);
    struct request *r = *list;
    if (r != NULL)
        *list = r->next;
    hook_unlock(&pool.lock);
    if (r != NULL)
        return r;
    r = hook_keep(sizeof *r);
    if (r != NULL && is_prepared) {
        r->prepared = hook_keep(sizeof *r->prepared);
        r = r->prepared != NULL ? r : NULL;
    }
    return r;
}

static void entry_free(struct request *r)
{
    struct request **list = r->prepared != NULL ? &pool.free_prepared : &pool.free;
    hook_lock(&pool.lock);
    r->next = *list;
    *list = r;
    hook_unlock(&pool.lock);
}

static void append(struct request *r)
{
    struct bucket *b = bucket_of(r->handle);
    hook_lock(&b->lock);
    r->next = NULL;
    *(b->first != NULL ? &b->newest->next : &b->first) = r;
    b->newest = r;
    hook_unlock(&b->lock);
    atomic_fetch_add_explicit(&hook_req_tracked, 1, memory_order_relaxed);
}

/* Caller holds the lock of the bucket, as for what follows. NULL: none; before: the one before it. */
static struct request *look_up(const struct bucket *b, hook_handle h, struct request **before)
{
    struct request *r = b->first;
    for (*before = NULL; r != NULL && r->handle != h; r = r->next)
        *before = r;
    return r;
}

static void unlink_it(struct bucket *b, struct request *r, struct request *before)
{
    *(before != NULL ? &before->next : &b->first) = r->next;
    if (b->newest == r)
        b->newest = before;
    atomic_fetch_sub_explicit(&hook_req_tracked, 1, memory_order_relaxed);
}

/* ---- life of a request -------------------------------------------------------------------------- */

void hook_req_add(MPI_Request request, uint64_t id, unsigned flags)
{
    if (id == 0)
        return;
    struct request *r = entry_new(false);
    if (r == NULL) {
        mstx_comm_end(id);
        return;
    }
    r->handle = HOOK_HANDLE(request);
    r->id = id;
    r->flags = flags;
    append(r);
}

void hook_req_prepare(MPI_Request request, const struct mstx_comm_call *c, unsigned flags)
{
    struct request *r = entry_new(true);
    if (r == NULL)
        return;
    r->handle = HOOK_HANDLE(request);
    r->id = 0;
    r->flags = flags;
    *r->prepared = *c;
    append(r);
}

void hook_req_start(hook_handle h)
{
    struct bucket *b = bucket_of(h);
    struct request *before;
    hook_lock(&b->lock);
    struct request *r = look_up(b, h, &before);
    if (r != NULL && r->prepared != NULL && r->id == 0)
        r->id = mstx_comm_begin(r->prepared);
    hook_unlock(&b->lock);
}

/* What MPI says of the rest of a cancelled one is left over from others. */
static void received(uint64_t id, const MPI_Status *s, int others_at)
{
    if (hook_status_is_cancelled(s))
        mstx_comm_end_received(id, 0, -1, -1);
    else
        mstx_comm_end_received(id, hook_status_bytes(s),
                               s->MPI_SOURCE + (s->MPI_SOURCE >= 0 ? others_at : 0), s->MPI_TAG);
}

void hook_req_done(hook_handle h, const MPI_Status *status)
{
    if (atomic_load_explicit(&hook_req_tracked, memory_order_relaxed) == 0)
        return;
    struct bucket *b = bucket_of(h);
    uint64_t id = 0;
    unsigned flags = 0;
    struct request *gone = NULL, *before;
    hook_lock(&b->lock);
    struct request *r = look_up(b, h, &before);
    if (r != NULL) {
        id = r->id;
        flags = r->flags;
        r->id = 0; /* a prepared one only becomes inactive */
        gone = r->prepared == NULL ? r : NULL;
    }
    if (gone != NULL)
        unlink_it(b, gone, before);
    hook_unlock(&b->lock);
    if (gone != NULL)
        entry_free(gone);
    if (id != 0 && status != NULL && (flags & HOOK_REQ_RECV) != 0)
        received(id, status, (int)(flags >> HOOK_REQ_OTHERS));
    else
        mstx_comm_end(id);
}

void hook_req_gone(hook_handle h)
{
    struct bucket *b = bucket_of(h);
    struct request *before;
    hook_lock(&b->lock);
    struct request *gone = look_up(b, h, &before);
    if (gone != NULL)
        unlink_it(b, gone, before);
    hook_unlock(&b->lock);
    if (gone == NULL)
        return;
    mstx_comm_end(gone->id);
    entry_free(gone);
}

static __thread struct {
    hook_handle *p;
    int room;
} many __attribute__((tls_model("initial-exec")));

void hook_before_room(struct hook_before *b, int n)
{
    b->n = n > 0 ? n : 0;
    b->h = b->few;
    if (b->n <= HOOK_FEW)
        return;
    if (b->n > many.room) {
        many.p = hook_keep((size_t)b->n * 2 * sizeof *many.p);
        many.room = many.p != NULL ? b->n * 2 : 0;
    }
    b->h = many.p;
    b->n = many.p != NULL ? b->n : 0;
}

bool hook_req_is_null(MPI_Request r)
{
#if defined(OPEN_MPI)
    static hook_slot null;
    void *p = atomic_load_explicit(&null, memory_order_relaxed);
    if (p == NULL) {
        p = hook_find_variable("ompi_request_null", hook_mpi_owners);
        atomic_store_explicit(&null, p, memory_order_relaxed);
    }
    return HOOK_HANDLE(r) == HOOK_HANDLE(p);
#else
    return r == MPI_REQUEST_NULL;
#endif
}
