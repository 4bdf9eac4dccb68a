/* SPDX-License-Identifier: MIT
 *
 * mpi_requests: from a request to the range that ends with it.
 *
 * Requests are found by the value of their handle.  Both flavours return one and the same handle
 * for all operations that complete immediately, so a handle may denote several requests: the oldest
 * is found first.
 */
#include "mstx/hook/mpi/mpi_hook.h"

struct hook_request {
    hook_handle handle;
    uint64_t id; /* id of the open range; 0: none */
    /* Description of the range of a start; NULL: an ordinary request. */
    struct mstx_comm_call *prepared;
    struct hook_request *next;
    unsigned flags;
};

enum { BUCKETS = 1 << 13 };

struct hook_req_pool hook_req_pool;
static struct bucket {
    struct hook_request *first;
    /* Where the next entry is appended; NULL: the bucket was never used. */
    struct hook_request **end;
} buckets[BUCKETS];

static struct bucket *bucket_of(hook_handle h)
{
    return &buckets[h * 0x9E3779B97F4A7C15u >> 51];
}
static_assert(BUCKETS == 1 << 13, "the hash gives 13 bits");

/* ---- entries, under the lock ------------------------------------------------------------------ */

/* Changes the count of tracked requests. Caller holds the lock. */
static void tracked(uint32_t more)
{
    const uint32_t n = atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed);
    atomic_store_explicit(&hook_req_pool.tracked, n + more, memory_order_relaxed);
}

static struct hook_request *entry_new(bool is_prepared)
{
    struct hook_request **list = is_prepared ? &hook_req_pool.free_prepared : &hook_req_pool.free;
    struct hook_request *r = *list;
    if (r != NULL) {
        *list = r->next;
        return r;
    }
    r = hook_keep(sizeof *r);
    if (r != NULL && is_prepared) {
        r->prepared = hook_keep(sizeof *r->prepared);
        r = r->prepared != NULL ? r : NULL;
    }
    return r;
}

static void entry_free(struct hook_request *r)
{
    struct hook_request **list =
        r->prepared != NULL ? &hook_req_pool.free_prepared : &hook_req_pool.free;
    r->next = *list;
    *list = r;
}

static struct hook_request **look_up(hook_handle h)
{
    struct hook_request **at = &bucket_of(h)->first;
    while (*at != NULL && (*at)->handle != h)
        at = &(*at)->next;
    return at;
}

/* Appends an entry to its bucket. NULL: no memory. */
static struct hook_request *entry_add(const struct hook_request *like)
{
    struct hook_request *r = entry_new(like->prepared != NULL);
    struct bucket *b = bucket_of(like->handle);
    if (r == NULL)
        return NULL;
    struct mstx_comm_call *prepared = r->prepared;
    *r = *like;
    r->prepared = prepared;
    if (prepared != NULL)
        *prepared = *like->prepared;
    *(b->end != NULL ? b->end : &b->first) = r;
    b->end = &r->next;
    tracked(1);
    return r;
}

static void entry_take(struct hook_request **at)
{
    struct hook_request *r = *at;
    struct bucket *b = bucket_of(r->handle);
    *at = r->next;
    if (b->end == &r->next)
        b->end = at;
    entry_free(r);
    tracked(~0u);
}

/* ---- life of a request -------------------------------------------------------------------------- */

HOOK_HOT static bool add(const struct hook_request *like)
{
    hook_lock(&hook_req_pool.lock);
    const bool is_kept = entry_add(like) != NULL;
    hook_unlock(&hook_req_pool.lock);
    return is_kept;
}

HOOK_HOT void hook_req_add(MPI_Request request, uint64_t id, unsigned flags)
{
    if (id != 0 &&
        !add(&(struct hook_request){.handle = HOOK_HANDLE(request), .id = id, .flags = flags}))
        mstx_comm_end(id);
}

void hook_req_prepare(MPI_Request request, const struct mstx_comm_call *c, unsigned flags)
{
    struct mstx_comm_call prepared = *c;
    add(&(struct hook_request){
        .handle = HOOK_HANDLE(request), .prepared = &prepared, .flags = flags});
}

void hook_req_start(hook_handle h)
{
    hook_lock(&hook_req_pool.lock);
    struct hook_request *r = *look_up(h);
    if (r != NULL && r->prepared != NULL && r->id == 0)
        r->id = mstx_comm_begin(r->prepared);
    hook_unlock(&hook_req_pool.lock);
}

/* Ends a receive. The other fields of the status of a cancelled one are left over from other
 * requests. */
static void received(uint64_t id, const MPI_Status *s, int others_at)
{
    if (hook_status_is_cancelled(s))
        mstx_comm_end_received(id, 0, -1, -1);
    else
        mstx_comm_end_received(id, hook_status_bytes(s),
                               s->MPI_SOURCE + (s->MPI_SOURCE >= 0 ? others_at : 0), s->MPI_TAG);
}

HOOK_HOT void hook_req_done(hook_handle h, const MPI_Status *status)
{
    if (atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed) == 0)
        return;
    struct hook_request was = {0};
    hook_lock(&hook_req_pool.lock);
    struct hook_request **at = look_up(h);
    if (*at != NULL) {
        was = **at;
        (*at)->id = 0; /* a prepared request only becomes inactive */
        if (was.prepared == NULL)
            entry_take(at);
    }
    hook_unlock(&hook_req_pool.lock);
    if (was.id != 0 && status != NULL && (was.flags & HOOK_REQ_RECV) != 0)
        received(was.id, status, (int)(was.flags >> HOOK_REQ_OTHERS));
    else
        mstx_comm_end(was.id);
}

void hook_req_gone(hook_handle h)
{
    uint64_t id = 0;
    hook_lock(&hook_req_pool.lock);
    struct hook_request **at = look_up(h);
    if (*at != NULL) {
        id = (*at)->id;
        entry_take(at);
    }
    hook_unlock(&hook_req_pool.lock);
    mstx_comm_end(id);
}

uint64_t hook_req_range(hook_handle h)
{
    hook_lock(&hook_req_pool.lock);
    const struct hook_request *r = *look_up(h);
    const uint64_t id = r != NULL ? r->id : 0;
    hook_unlock(&hook_req_pool.lock);
    return id;
}

static __thread struct {
    hook_handle *p;
    int room;
} many __attribute__((tls_model("initial-exec")));

HOOK_HOT void hook_before_room(struct hook_before *b, int n)
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

HOOK_HOT bool hook_req_is_null(MPI_Request r)
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
