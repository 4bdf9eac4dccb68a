/* SPDX-License-Identifier: MIT
 *
 * mpi_calls: the functions of MPI in C.  The wrappers are made at build time from mpi_calls.txt by
 * mpi_wrappers.awk; this file has the functions that they need beside mpi_hook.h.
 */
#include "mstx/hook/mpi/mpi_hook.h"

#include <string.h>

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
