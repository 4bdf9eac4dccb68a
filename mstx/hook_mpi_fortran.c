/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_fortran: calls with buffers in the bindings of Open MPI; see the header.
 */
#include "mstx/hook_mpi_fortran.h"

#if defined(OPEN_MPI)

#define WRAPPER(prefix, PREFIX, lower, UPPER, NAME, OP, SKIPS, K, PARAMS, ARGS, ...)               \
    CLASSIC(prefix, PREFIX, lower, UPPER, NAME, OP, SKIPS, K, PARAMS, ARGS, (F * ierr), (ierr),    \
            __VA_ARGS__)
#define ON_COMM(prefix, PREFIX, lower, UPPER, NAME, OP, C, ...)                                    \
    WRAPPER(prefix, PREFIX, lower, UPPER, NAME, OP, COUNTED(C, OP), ON(C), __VA_ARGS__)

static bool is_in_place(const void *b)
{
    static hook_slot slot;
    return b == hook_real(&slot, "mpi_fortran_in_place_", hook_mpi_owners);
}

/* ---- collectives ------------------------------------------------------------------------------ */

#define BUF(x)      void *x
#define RBUF(x)     void *x
#define CNT(x)      F *x
#define CNTS(x)     F *x
#define DSP(x)      F *x
#define ADSP(x)     MPI_Aint *x
#define TYP(x)      F *x
#define TYPS(x)     F *x
#define INT(x)      F *x
#define OPR(x)      F *x
#define COM(x)      F *x
#define V(x)        (*(x))
#define T(x)        type_of(*(x))
#define TS(x, i)    type_of((x)[i])
#define O(x)        op_of(x)
#define IN_PLACE(x) is_in_place(x)

#define COLL(...) COLL_FORMS(__VA_ARGS__)
#define COLL_FORMS(Name, name, NAME, OP, PARAMS, ARGS, C, ...)                                     \
    ON_COMM(mpi, MPI, name, NAME, "MPI_" #Name, OP, C, PARAMS, ARGS, __VA_ARGS__, hook_end(&x))    \
    ON_COMM(mpi, MPI, i##name, I##NAME, "MPI_I" #name, OP, C, (HOOK_BARE PARAMS, F * request),     \
            (HOOK_BARE ARGS, request), __VA_ARGS__;                                                \
            x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, request, 0))                                 \
    ON_COMM(mpix, MPIX, name##_init, NAME##_INIT, "MPIX_" #Name "_init", REQUEST, C,               \
            (HOOK_BARE PARAMS, F * info, F * request), (HOOK_BARE ARGS, info, request),            \
            struct mstx_comm_call *p = &later;                                                     \
            __VA_ARGS__; hook_prepare(&x, p, MSTX_COMM_##OP, "MPIX_" #Name "_init started"),       \
                         prepared(&x, rc, request, &later, 0))
static __thread struct mstx_comm_call later __attribute__((tls_model("initial-exec")));
#include "mstx/hook_mpi_table.h"

/* ---- between two ------------------------------------------------------------------------------ */

enum { STATUS = sizeof(MPI_Status) / sizeof(F) };

/* Who sent and how much is wanted, also by a program that does not ask. */
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

#define P2P_PARAMS        (void *b, F *n, F *t, F *peer, F *tag, F *c)
#define P2P_ARGS          (b, n, t, peer, tag, c)
#define P2P_DESC(IS_SEND) hook_transfer(&x, *n, type_of(*t), *peer, *tag, IS_SEND)
#define PREPARED(lower, UPPER, Name, OP, IS_SEND, FLAGS)                                           \
    ON_COMM(mpi, MPI, lower##_init, UPPER##_INIT, "MPI_" #Name "_init", REQUEST, c,                \
            (HOOK_BARE P2P_PARAMS, F * r), (HOOK_BARE P2P_ARGS, r), P2P_DESC(IS_SEND);             \
            hook_prepare(&x, &later, MSTX_COMM_##OP, "MPI_" #Name "_init started"),                \
            prepared(&x, rc, r, &later, FLAGS))
#define SEND(lower, UPPER, Name, Iname)                                                            \
    ON_COMM(mpi, MPI, lower, UPPER, "MPI_" #Name, SEND, c, P2P_PARAMS, P2P_ARGS, P2P_DESC(true),   \
            hook_end(&x))                                                                          \
    ON_COMM(mpi, MPI, i##lower, I##UPPER, "MPI_" #Iname, SEND, c, (HOOK_BARE P2P_PARAMS, F * r),   \
            (HOOK_BARE P2P_ARGS, r), P2P_DESC(true);                                               \
            x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, r, 0))                                       \
    PREPARED(lower, UPPER, Name, SEND, true, 0)
HOOK_SENDS(SEND)
ON_COMM(mpi, MPI, recv, RECV, "MPI_Recv", RECV, c, (HOOK_BARE P2P_PARAMS, F *s),
        (HOOK_BARE P2P_ARGS, s), P2P_DESC(false);
        s = seen(s), received(&x, rc, s))
ON_COMM(mpi, MPI, irecv, IRECV, "MPI_Irecv", RECV, c, (HOOK_BARE P2P_PARAMS, F *r),
        (HOOK_BARE P2P_ARGS, r), P2P_DESC(false);
        x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, r, HOOK_REQ_RECV))
PREPARED(recv, RECV, Recv, RECV, false, HOOK_REQ_RECV)

#define EXCHANGED(bytes)                                                                           \
    P2P_DESC(true);                                                                                \
    hook_exchange(&x, bytes, *from)
ON_COMM(mpi, MPI, sendrecv, SENDRECV, "MPI_Sendrecv", SENDRECV, c,
        (void *b, F *n, F *t, F *peer, F *tag, void *rb, F *rn, F *rt, F *from, F *rtag, F *c,
         F *s),
        (b, n, t, peer, tag, rb, rn, rt, from, rtag, c, s),
        EXCHANGED(hook_bytes(*rn, type_of(*rt)));
        s = seen(s), received(&x, rc, s))
ON_COMM(mpi, MPI, sendrecv_replace, SENDRECV_REPLACE, "MPI_Sendrecv_replace", SENDRECV, c,
        (void *b, F *n, F *t, F *peer, F *tag, F *from, F *rtag, F *c, F *s),
        (b, n, t, peer, tag, from, rtag, c, s), EXCHANGED(x.c.sent);
        x.c.flags |= MSTX_CF_IN_PLACE; s = seen(s), received(&x, rc, s))
#define MATCHED hook_matched(&x, *n, type_of(*t))
WRAPPER(mpi, MPI, mrecv, MRECV, "MPI_Mrecv", RECV, true, NULL, (void *b, F *n, F *t, F *m, F *s),
        (b, n, t, m, s), MATCHED;
        s = seen(s), received(&x, rc, s))
WRAPPER(mpi, MPI, imrecv, IMRECV, "MPI_Imrecv", RECV, true, NULL, (void *b, F *n, F *t, F *m, F *r),
        (b, n, t, m, r), MATCHED;
        x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, r, HOOK_REQ_RECV))

/* ---- one-sided --------------------------------------------------------------------------------- */

WRAPPER(mpi, MPI, win_create, WIN_CREATE, "MPI_Win_create", WINDOW, false, ON(c),
        (void *b, MPI_Aint *n, F *unit, F *i, F *c, F *made), (b, n, unit, i, c, made), (void)0,
        if (rc == MPI_SUCCESS) hook_window_made(win_of(made), comm_of(c));
        hook_end(&x))

#define ACCESS(lower, UPPER, Name, OP, PARAMS, ARGS, DESC)                                         \
    WRAPPER(mpi, MPI, lower, UPPER, "MPI_" #Name, OP, true, window(w), PARAMS, ARGS, DESC,         \
            hook_end(&x))
#define ACCESS_AND_REQUEST(lower, UPPER, Name, OP, PARAMS, ARGS, DESC)                             \
    ACCESS(lower, UPPER, Name, OP, PARAMS, ARGS, DESC)                                             \
    WRAPPER(mpi, MPI, r##lower, R##UPPER, "MPI_R" #lower, OP, true, window(w),                     \
            (HOOK_BARE PARAMS, F * r), (HOOK_BARE ARGS, r), DESC;                                  \
            x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, r, 0))
#define TARGET_PARAMS       (void *b, F *n, F *t, F *rank, MPI_Aint *at, F *tn, F *tt, F *w)
#define TARGET_ARGS         (b, n, t, rank, at, tn, tt, w)
#define TARGET(n, gives)    hook_access(&x, n, type_of(*t), *rank, gives)
#define REDUCED_AT(n, back) hook_accumulate(&x, n, type_of(*t), *rank, op_of(op), back)
ACCESS_AND_REQUEST(put, PUT, Put, PUT, TARGET_PARAMS, TARGET_ARGS, TARGET(*n, true))
ACCESS_AND_REQUEST(get, GET, Get, GET, TARGET_PARAMS, TARGET_ARGS, TARGET(*n, false))
ACCESS_AND_REQUEST(accumulate, ACCUMULATE, Accumulate, ACCUMULATE,
                   (void *b, F *n, F *t, F *rank, MPI_Aint *at, F *tn, F *tt, F *op, F *w),
                   (b, n, t, rank, at, tn, tt, op, w), REDUCED_AT(*n, 0))
ACCESS_AND_REQUEST(get_accumulate, GET_ACCUMULATE, Get_accumulate, ACCUMULATE,
                   (void *b, F *n, F *t, void *back, F *bn, F *bt, F *rank, MPI_Aint *at, F *tn,
                    F *tt, F *op, F *w),
                   (b, n, t, back, bn, bt, rank, at, tn, tt, op, w),
                   REDUCED_AT(*n, hook_bytes(*bn, type_of(*bt))))
ACCESS(fetch_and_op, FETCH_AND_OP, Fetch_and_op, ACCUMULATE,
       (void *b, void *back, F *t, F *rank, MPI_Aint *at, F *op, F *w),
       (b, back, t, rank, at, op, w), REDUCED_AT(1, hook_type_bytes(type_of(*t))))
ACCESS(compare_and_swap, COMPARE_AND_SWAP, Compare_and_swap, ACCUMULATE,
       (void *b, void *with, void *back, F *t, F *rank, MPI_Aint *at, F *w),
       (b, with, back, t, rank, at, w), TARGET(1, true);
       x.c.received = x.c.elem)

#else

/* A file must hold something. */
typedef int hook_mpi_fortran_is_not_needed;

#endif
