/* SPDX-License-Identifier: MIT
 *
 * mpi_fortran: hooks of the Fortran bindings that call the PMPI functions of C and so bypass the
 * hooks of C.  These are:
 *
 *                           Open MPI                     MPICH
 *     mpif.h, use mpi       all: mpi_x_                  none: MPI_X is called
 *     use mpi_f08           with a logical: mpi_x_f08_   without a buffer: mpi_x_f08_
 *                           others: ompi_x_f             with one: MPI_X is called
 *
 * In Open MPI mpi_x_ and ompi_x_f are one function under many names, and so is each of ours.
 * Handles are numbers in Fortran, in mpi_f08 a number in a structure; they are converted to those
 * of C only for look-ups, and the call itself gets its arguments unchanged.
 *
 * The wrappers are made at build time from mpi_calls.txt by mpi_wrappers.awk.
 */
#include "mstx/hook/mpi/mpi_hook.h"

#include <string.h>

#define F MPI_Fint

/* ---- handles ----------------------------------------------------------------------------------- */

#if defined(OPEN_MPI)
#define FORTRAN_C(what, f) HOOK_MPI(PMPI_##what##_f2c)(f)
#else
#define FORTRAN_C(what, f) PMPI_##what##_f2c(f)
#endif
static inline MPI_Comm comm_of(const F *c)
{
    return FORTRAN_C(Comm, *c);
}
static inline MPI_Datatype type_of(F t)
{
    return FORTRAN_C(Type, t);
}
#if defined(OPEN_MPI) /* MPICH's reductions have a buffer, so their bindings call MPI_X */
static inline MPI_Op op_of(const F *op)
{
    return FORTRAN_C(Op, *op);
}
#endif
static inline MPI_Win win_of(const F *w)
{
    return FORTRAN_C(Win, *w);
}
static inline MPI_Request request_of(F r)
{
    return FORTRAN_C(Request, r);
}
static inline const struct hook_comm *window(MPI_Win w)
{
    return hook_comm_find(HOOK_HANDLE(w), HOOK_WINDOW);
}
static inline void begun(const struct hook_call *x, int rc, const F *request, unsigned flags)
{
    const MPI_Request r = request_of(*request);
    hook_begun(x, rc, &r, flags);
}
static inline void prepared(const struct hook_call *x, int rc, const F *request,
                            const struct mstx_comm_call *later, unsigned flags)
{
    const MPI_Request r = request_of(*request);
    hook_prepared(x, rc, &r, later, flags);
}

#if defined(OPEN_MPI)
static const char *const hook_fortran_owners[] = {"libmpi_mpifh.so", "libmpi_usempif08.so", NULL};
#else
static const char *const hook_fortran_owners[] = {"libmpichfort.so", "libmpifort.so", NULL};
#endif

/* ---- statuses ---------------------------------------------------------------------------------- */

static bool is_ignored(const F *s)
{
    static const char *const names[] = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE",
                                        "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE"};
    static hook_slot slot[sizeof names / sizeof *names];
    static _Atomic bool is_known;
    if (!atomic_load(&is_known)) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            hook_real(&slot[i], names[i], hook_mpi_owners);
        atomic_store(&is_known, true);
    }
    bool found = s == NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const F *const *ignore = atomic_load_explicit(&slot[i], memory_order_relaxed);
        found |= ignore != NULL && s == *ignore;
    }
    return found;
}

/* Returns status number `at` in C; NULL: the program ignores statuses. */
static const MPI_Status *hook_fortran_status(const F *s, size_t at, MPI_Status *out)
{
    if (is_ignored(s))
        return NULL;
    memcpy(out, s + at * (sizeof *out / sizeof *s),
           sizeof *out); /* both bindings have C's layout */
    return out;
}

#if defined(OPEN_MPI)
static bool is_in_place(const void *b)
{
    static hook_slot slot;
    return b == hook_real(&slot, "mpi_fortran_in_place_", hook_mpi_owners);
}

enum { STATUS = sizeof(MPI_Status) / sizeof(F) };

/* Returns the status to pass to MPI: one of ours when the program ignores it, so that source and
 * size are known. */
static F *seen(F *s)
{
    static __thread F own[STATUS] __attribute__((tls_model("initial-exec")));
    MPI_Status unused;
    return hook_fortran_status(s, 0, &unused) == NULL ? own : s;
}

static void received(const struct hook_call *x, int rc, const F *s)
{
    MPI_Status own;
    const MPI_Status *status =
        x->id != 0 && rc == MPI_SUCCESS ? hook_fortran_status(s, 0, &own) : NULL;
    if (status == NULL)
        hook_end(x);
    else
        mstx_comm_end_received(x->id, hook_status_bytes(status), hook_member(x, status->MPI_SOURCE),
                               status->MPI_TAG);
}
#endif

/* ---- completion ------------------------------------------------------------------------------- */

#define NO_STATUS NULL

/* Tells whether recording is off and no request is tracked: then a completion needs no work. */
static inline bool none_is_tracked(void)
{
    return atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed) == 0;
}

static void remember(struct hook_before *b, int n, const F *r)
{
    hook_before_room(b, hook_mpi_is_off() && none_is_tracked() ? 0 : n);
    for (int i = 0; i < b->n; i++)
        b->h[i] = HOOK_HANDLE(request_of(r[i]));
}

static void complete(const struct hook_before *b, int i, const F *s, size_t at)
{
    MPI_Status own;
    if (i >= 0 && i < b->n)
        hook_req_done(b->h[i], s != NULL ? hook_fortran_status(s, at, &own) : NULL);
}

static void complete_all(const struct hook_before *b, int rc, const F *r, const F *s)
{
    for (int i = 0; i < b->n; i++) {
        if (rc == MPI_SUCCESS || hook_req_is_null(request_of(r[i])))
            complete(b, i, rc == MPI_SUCCESS ? s : NULL, (size_t)i);
    }
}

/* Completes some requests. Indices of Fortran count from 1. */
static void complete_some(const struct hook_before *b, F n, const F *index, const F *s)
{
    for (F i = 0; n != MPI_UNDEFINED && i < n; i++)
        complete(b, index[i] - 1, s, (size_t)i);
}

/* ---- communicators ---------------------------------------------------------------------------- */

/* Names a communicator by the name that MPI stored, without trailing blanks. */
static void named(MPI_Comm c, const char *as_given)
{
    (void)as_given;
    char name[MPI_MAX_OBJECT_NAME] = "";
    int n = 0;
    int (*get_name)(MPI_Comm, char *, int *) = HOOK_MPI(PMPI_Comm_get_name);
    if (get_name(c, name, &n) == MPI_SUCCESS)
        hook_comm_named(c, name);
}
#if defined(MPICH)
/* Salt of a communicator by its tag, without trailing blanks, as in C. */
static int salt_of(const char *tag, size_t n)
{
    while (n > 0 && tag[n - 1] == ' ')
        n--;
    return (int)mstx_group_hash(0, tag, n);
}
#endif

#include <mpi_fortran.inc>

/* ---- recording on and off ----------------------------------------------------------------------- */

#if defined(OPEN_MPI)
HOOK_API void ompi_pcontrol_f(const F *level);
HOOK_API void ompi_pcontrol_f(const F *level)
{
    MPI_Pcontrol(*level);
}
#define NAME(name)                                                                                 \
    extern __typeof__(ompi_pcontrol_f) name                                                        \
        __attribute__((alias("ompi_pcontrol_f"), visibility("default")))
NAME(mpi_pcontrol);
NAME(mpi_pcontrol_);
NAME(mpi_pcontrol__);
NAME(MPI_PCONTROL);
#else
HOOK_API void mpi_pcontrol_f08_(const F *level);
HOOK_API void mpi_pcontrol_f08_(const F *level)
{
    MPI_Pcontrol(*level);
}
#endif
