/* SPDX-License-Identifier: MIT
 *
 * mpi_calls: the functions of MPI in C, and begin and end of MPI.
 */
#define MSTX_NO_IMPL
#include "mstx/hook/mpi/mpi_hook.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

#include "mstx/mstx.h"

/* ---- begin and end ---------------------------------------------------------- */

/* For libmstx_dlsym.so: tells whether the hook calls the function that the program looked up. */
HOOK_API int mstx_hook_reaches(const char *name, const void *function);
HOOK_API int mstx_hook_reaches(const char *name, const void *function)
{
    Dl_info ours, theirs;
    const void *real = hook_find(name, hook_mpi_owners);
    return real != NULL && dladdr(real, &ours) != 0 && dladdr(function, &theirs) != 0 &&
           ours.dli_fbase == theirs.dli_fbase;
}

/* ---- descriptions -------------------------------------------------------------------------------- */

/* Initializes a description field by field: the other fields are unused as long as has_part is not
 * set. */
HOOK_HOT void hook_open(struct hook_call *x, struct hook_site *site, const char *name, unsigned op,
                        const struct hook_comm *k)
{
    x->id = 0;
    x->k = k;
    x->on = !hook_mpi_is_off();
    if (!HOOK_LIKELY(x->on)) {
        if (k != NULL)
            mstx_comm_pass(k->group, (enum mstx_comm_op)op);
        return;
    }
    struct mstx_comm_call *c = &x->c;
    c->name = name;
    c->known = &site->known;
    c->group = k != NULL ? k->group : NULL;
    c->count = 0;
    c->elem = 0;
    c->peer = -1;
    c->op = (uint8_t)op;
    c->dtype = MSTX_TYPE_NA;
    c->lib = MSTX_LIB_MPI;
    c->reduce = MSTX_REDUCE_NONE;
    c->flags = 0;
    c->has_part = false;
    c->stream = NULL;
    c->requests = NULL;
}

HOOK_HOT void hook_transfer(struct hook_call *x, int64_t n, MPI_Datatype t, int peer, int tag,
                            bool is_send)
{
    hook_one(x, n, t);
    hook_p2p(x, peer, tag, is_send);
}

/* ---- begin and end --------------------------------------------------------------------------------- */

const _Atomic uint8_t hook_mpi_not_known = 1;
const _Atomic uint8_t *_Atomic hook_mpi_live = &hook_mpi_not_known;
static struct hook_lock starting;
static bool has_started; /* protected by starting */

void hook_mpi_start(void)
{
    hook_lock(&starting);
    if (!has_started) {
        hook_know_predefined();
        hook_comm_start();
        mstx_comm_requests_by(hook_req_range);
        const _Atomic uint8_t *live = mstx_comm_live();
        if (live != NULL)
            atomic_store(&hook_mpi_live, live);
        has_started = true;
    }
    hook_unlock(&starting);
}

void hook_mpi_catch_up(void)
{
    int up = 0, down = 0;
    int (*initialized)(int *) = HOOK_MPI(PMPI_Initialized);
    int (*finalized)(int *) = HOOK_MPI(PMPI_Finalized);
    if (initialized != NULL && finalized != NULL && initialized(&up) == MPI_SUCCESS && up &&
        finalized(&down) == MPI_SUCCESS && !down)
        hook_mpi_start();
}

void hook_mpi_is_up(int rc)
{
    if (rc != MPI_SUCCESS)
        return;
    hook_mpi_start();
    hook_clock_start(hook_world());
}

/* Level 0 stops recording, 1 resumes; MPI itself gives the levels no meaning. */
HOOK_API int MPI_Pcontrol(const int level, ...)
{
    int (*real)(const int, ...) = HOOK_MPI(PMPI_Pcontrol);
    if (level == 0)
        mstx_record_pause();
    else if (level == 1)
        mstx_record_resume();
    return real != NULL ? real(level) : MPI_SUCCESS;
}

/* ---- wrappers --------------------------------------------------------------- */

#define NO_STATUS MPI_STATUS_IGNORE

static inline bool none_is_tracked(void)
{
    return atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed) == 0;
}

static inline const struct hook_comm *window(MPI_Win w)
{
    return hook_comm_find(HOOK_HANDLE(w), HOOK_WINDOW);
}
/* Ends a receive, with source, tag and size if the caller passes a status. */
static void received(const struct hook_call *x, int rc, const MPI_Status *status)
{
    if (x->id == 0 || rc != MPI_SUCCESS || status == MPI_STATUS_IGNORE)
        hook_end(x);
    else
        mstx_comm_end_received(x->id, hook_status_bytes(status), hook_member(x, status->MPI_SOURCE),
                               status->MPI_TAG);
}

static void remember(struct hook_before *b, int n, const MPI_Request *r)
{
    hook_before_room(b, r != NULL ? n : 0);
    for (int i = 0; i < b->n; i++)
        b->h[i] = HOOK_HANDLE(r[i]);
}

static void complete(const struct hook_before *b, int i, const MPI_Status *s, size_t at)
{
    if (i >= 0 && i < b->n)
        hook_req_done(b->h[i], s == MPI_STATUSES_IGNORE || s == MPI_STATUS_IGNORE ? NULL : s + at);
}

/* Completes all requests; when one of them failed, only those that are null now. */
static void complete_all(const struct hook_before *b, int rc, const MPI_Request *r,
                         const MPI_Status *s)
{
    for (int i = 0; i < b->n; i++) {
        if (rc == MPI_SUCCESS || hook_req_is_null(r[i]))
            complete(b, i, rc == MPI_SUCCESS ? s : MPI_STATUSES_IGNORE, (size_t)i);
    }
}

static void complete_some(const struct hook_before *b, int n, const int *index, const MPI_Status *s)
{
    for (int i = 0; n != MPI_UNDEFINED && i < n; i++)
        complete(b, index[i], s, (size_t)i);
}

static void named(MPI_Comm c, const char *name)
{
    hook_comm_named(c, name);
}

/* Salt of a communicator without a parent: the tag distinguishes several. */
__attribute__((unused)) static int salt_of(const char *tag, size_t n) /* of MPI 4 */
{
    return tag == NULL ? 0 : (int)mstx_group_hash(0, tag, n);
}

#include <mpi_wrappers.inc>
