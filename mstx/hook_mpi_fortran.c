/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_fortran: the Fortran bindings of Open MPI, which call the PMPI functions of C directly,
 * so that the hooks of C never see them.  (MPICH's call the MPI functions and need nothing here.)
 *
 * mpif.h and "use mpi" call mpi_x_, "use mpi_f08" calls ompi_x_f; both are one function under many
 * names, and so is each of these.  Handles are numbers in Fortran; they are turned into those of C
 * only to be looked up, and the call itself gets the arguments as they came.
 */
#include "mstx/hook_mpi.h"

#if defined(OPEN_MPI)

static const char *const owners[] = {"libmpi_mpifh.so", NULL};

#define F MPI_Fint

static MPI_Comm comm_of(const F *c)
{
    return HOOK_MPI(PMPI_Comm_f2c)(*c);
}
static MPI_Datatype type_of(F t)
{
    return HOOK_MPI(PMPI_Type_f2c)(t);
}
static MPI_Op op_of(const F *op)
{
    return HOOK_MPI(PMPI_Op_f2c)(*op);
}
static MPI_Request request_of(F r)
{
    return HOOK_MPI(PMPI_Request_f2c)(r);
}
static bool is_in_place(const void *b)
{
    static hook_slot slot;
    return b == hook_real(&slot, "mpi_fortran_in_place_", hook_mpi_owners);
}

/* One function, the names that compilers and bindings know it by. */
#define ALIAS(name, target)                                                                        \
    extern __typeof__(target) name __attribute__((alias(#target), visibility("default")));
#define NAMES(prefix, PREFIX, lower, UPPER)                                                        \
    ALIAS(prefix##_##lower, o##prefix##_##lower##_f)                                               \
    ALIAS(prefix##_##lower##_, o##prefix##_##lower##_f)                                            \
    ALIAS(prefix##_##lower##__, o##prefix##_##lower##_f)                                           \
    ALIAS(PREFIX##_##UPPER, o##prefix##_##lower##_f)

#define WRAPPER(prefix, PREFIX, lower, UPPER, NAME, OP, K, PARAMS, ARGS, DESC, AFTER)              \
    HOOK_API void o##prefix##_##lower##_f(HOOK_BARE PARAMS, F *ierr);                              \
    HOOK_API void o##prefix##_##lower##_f(HOOK_BARE PARAMS, F *ierr)                               \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        __typeof__(&o##prefix##_##lower##_f) real =                                                \
            (__typeof__(real))hook_real(&slot, #prefix "_" #lower "_", owners);                    \
        F own_error;                                                                               \
        ierr = ierr != NULL ? ierr : &own_error;                                                   \
        *ierr = MPI_ERR_INTERN;                                                                    \
        if (real == NULL)                                                                          \
            return;                                                                                \
        if (hook_depth != 0) {                                                                     \
            real(HOOK_BARE ARGS, ierr);                                                            \
            return;                                                                                \
        }                                                                                          \
        hook_depth++;                                                                              \
        hook_mpi_here();                                                                           \
        struct hook_call x;                                                                        \
        hook_open(&x, NAME, MSTX_COMM_##OP, K);                                                    \
        if (HOOK_LIKELY(x.on)) {                                                                   \
            DESC;                                                                                  \
        }                                                                                          \
        hook_begin(&x);                                                                            \
        real(HOOK_BARE ARGS, ierr);                                                                \
        const int rc = *ierr;                                                                      \
        (void)rc;                                                                                  \
        AFTER;                                                                                     \
        hook_depth--;                                                                              \
    }                                                                                              \
    NAMES(prefix, PREFIX, lower, UPPER)

static void begun(const struct hook_call *x, int rc, const F *request, unsigned flags)
{
    const MPI_Request r = request_of(*request);
    hook_begun(x, rc, &r, flags);
}
static void prepared(const struct hook_call *x, int rc, const F *request,
                     const struct mstx_comm_call *later, unsigned flags)
{
    const MPI_Request r = request_of(*request);
    hook_prepared(x, rc, &r, later, flags);
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
    WRAPPER(mpi, MPI, name, NAME, "MPI_" #Name, OP, hook_comm_of(comm_of(C)), PARAMS, ARGS,        \
            __VA_ARGS__, hook_end(&x))                                                             \
    WRAPPER(mpi, MPI, i##name, I##NAME, "MPI_I" #name, OP, hook_comm_of(comm_of(C)),               \
            (HOOK_BARE PARAMS, F * request), (HOOK_BARE ARGS, request), __VA_ARGS__;               \
            x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, request, 0))                                 \
    WRAPPER(mpix, MPIX, name##_init, NAME##_INIT, "MPIX_" #Name "_init", REQUEST,                  \
            hook_comm_of(comm_of(C)), (HOOK_BARE PARAMS, F * info, F * request),                   \
            (HOOK_BARE ARGS, info, request), struct mstx_comm_call *p = &later;                    \
            __VA_ARGS__; hook_prepare(&x, p, MSTX_COMM_##OP, "MPIX_" #Name "_init started"),       \
                         prepared(&x, rc, request, &later, 0))
static __thread struct mstx_comm_call later __attribute__((tls_model("initial-exec")));
#include "mstx/hook_mpi_table.h"

/* ---- between two ------------------------------------------------------------------------------ */

#define P2P_PARAMS (void *b, F *n, F *t, F *peer, F *tag, F *c)
#define P2P_ARGS   (b, n, t, peer, tag, c)
#define P2P_DESC(IS_SEND)                                                                          \
    hook_one(&x, *n, type_of(*t));                                                                 \
    hook_p2p(&x, *peer, *tag, IS_SEND)
#define ON(c) hook_comm_of(comm_of(c))
#define PREPARED(lower, UPPER, Name, OP, IS_SEND, FLAGS)                                           \
    WRAPPER(mpi, MPI, lower##_init, UPPER##_INIT, "MPI_" #Name "_init", REQUEST, ON(c),            \
            (HOOK_BARE P2P_PARAMS, F * r), (HOOK_BARE P2P_ARGS, r), P2P_DESC(IS_SEND);             \
            hook_prepare(&x, &later, MSTX_COMM_##OP, "MPI_" #Name "_init started"),                \
            prepared(&x, rc, r, &later, FLAGS))
#define SEND(lower, UPPER, Name)                                                                   \
    WRAPPER(mpi, MPI, lower, UPPER, "MPI_" #Name, SEND, ON(c), P2P_PARAMS, P2P_ARGS,               \
            P2P_DESC(true), hook_end(&x))                                                          \
    WRAPPER(mpi, MPI, i##lower, I##UPPER, "MPI_I" #lower, SEND, ON(c),                             \
            (HOOK_BARE P2P_PARAMS, F * r), (HOOK_BARE P2P_ARGS, r), P2P_DESC(true);                \
            x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, r, 0))                                       \
    PREPARED(lower, UPPER, Name, SEND, true, 0)
SEND(send, SEND, Send)
SEND(bsend, BSEND, Bsend)
SEND(ssend, SSEND, Ssend)
SEND(rsend, RSEND, Rsend)
WRAPPER(mpi, MPI, recv, RECV, "MPI_Recv", RECV, ON(c), (HOOK_BARE P2P_PARAMS, F *s),
        (HOOK_BARE P2P_ARGS, s), P2P_DESC(false), hook_end(&x))
WRAPPER(mpi, MPI, irecv, IRECV, "MPI_Irecv", RECV, ON(c), (HOOK_BARE P2P_PARAMS, F *r),
        (HOOK_BARE P2P_ARGS, r), P2P_DESC(false);
        x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, r, HOOK_REQ_RECV))
PREPARED(recv, RECV, Recv, RECV, false, HOOK_REQ_RECV)

#define EXCHANGED(bytes)                                                                           \
    P2P_DESC(true);                                                                                \
    x.c.received = bytes;                                                                          \
    x.c.peer2 = *from
WRAPPER(mpi, MPI, sendrecv, SENDRECV, "MPI_Sendrecv", SENDRECV, ON(c),
        (void *b, F *n, F *t, F *peer, F *tag, void *rb, F *rn, F *rt, F *from, F *rtag, F *c,
         F *s),
        (b, n, t, peer, tag, rb, rn, rt, from, rtag, c, s),
        EXCHANGED((uint64_t)*rn *hook_type_bytes(type_of(*rt))), hook_end(&x))
WRAPPER(mpi, MPI, sendrecv_replace, SENDRECV_REPLACE, "MPI_Sendrecv_replace", SENDRECV, ON(c),
        (void *b, F *n, F *t, F *peer, F *tag, F *from, F *rtag, F *c, F *s),
        (b, n, t, peer, tag, from, rtag, c, s), EXCHANGED(x.c.sent), hook_end(&x))
WRAPPER(mpi, MPI, probe, PROBE, "MPI_Probe", PROBE, ON(c), (F * peer, F *tag, F *c, F *s),
        (peer, tag, c, s), hook_p2p(&x, *peer, *tag, false), hook_end(&x))
WRAPPER(mpi, MPI, iprobe, IPROBE, "MPI_Iprobe", PROBE, ON(c),
        (F * peer, F *tag, F *c, F *flag, F *s), (peer, tag, c, flag, s),
        hook_p2p(&x, *peer, *tag, false), hook_end(&x))

/* ---- completion ------------------------------------------------------------------------------- */

static void remember(struct hook_before *b, int n, const F *r)
{
    hook_before_room(b, n);
    for (int i = 0; i < b->n; i++)
        b->h[i] = HOOK_HANDLE(request_of(r[i]));
}

static void complete(const struct hook_before *b, int i)
{
    if (i >= 0 && i < b->n)
        hook_req_done(b->h[i], NULL);
}

static void complete_all(const struct hook_before *b, int rc, const F *r)
{
    for (int i = 0; i < b->n; i++) {
        if (rc == MPI_SUCCESS || hook_req_is_null(request_of(r[i])))
            complete(b, i);
    }
}

/* Indices of Fortran count from 1. */
static void complete_some(const struct hook_before *b, F n, const F *index)
{
    for (F i = 0; n != MPI_UNDEFINED && i < n; i++)
        complete(b, index[i] - 1);
}

/* The handles must be known before the call, and when nothing is recorded too. */
#define COMPLETION(lower, UPPER, Name, OP, PARAMS, ARGS, COUNT, REQUESTS, DONE)                    \
    WRAPPER(mpi, MPI, lower, UPPER, "MPI_" #Name, OP, (remember(&was, COUNT, REQUESTS), NULL),     \
            PARAMS, ARGS, x.c.count = (uint64_t)was.n, DONE;                                       \
            hook_end(&x))
#define GOOD (rc == MPI_SUCCESS)
static __thread struct hook_before was __attribute__((tls_model("initial-exec")));
/* clang-format off */
COMPLETION(wait, WAIT, Wait, WAIT, (F *r, F *s), (r, s), 1, r, if (GOOD) complete(&was, 0))
COMPLETION(test, TEST, Test, TEST, (F *r, F *flag, F *s), (r, flag, s), 1, r, if (GOOD && *flag != 0) complete(&was, 0))
COMPLETION(waitall, WAITALL, Waitall, WAIT, (F *n, F *r, F *s), (n, r, s), *n, r, complete_all(&was, rc, r))
COMPLETION(testall, TESTALL, Testall, TEST, (F *n, F *r, F *flag, F *s), (n, r, flag, s), *n, r, if (!GOOD || *flag != 0) complete_all(&was, rc, r))
COMPLETION(waitany, WAITANY, Waitany, WAIT, (F *n, F *r, F *at, F *s), (n, r, at, s), *n, r, if (GOOD && *at != MPI_UNDEFINED) complete(&was, *at - 1))
COMPLETION(testany, TESTANY, Testany, TEST, (F *n, F *r, F *at, F *flag, F *s), (n, r, at, flag, s), *n, r, if (GOOD && *flag != 0 && *at != MPI_UNDEFINED) complete(&was, *at - 1))
COMPLETION(waitsome, WAITSOME, Waitsome, WAIT, (F *n, F *r, F *done, F *at, F *s), (n, r, done, at, s), *n, r, if (GOOD) complete_some(&was, *done, at))
COMPLETION(testsome, TESTSOME, Testsome, TEST, (F *n, F *r, F *done, F *at, F *s), (n, r, done, at, s), *n, r, if (GOOD) complete_some(&was, *done, at))
COMPLETION(request_free, REQUEST_FREE, Request_free, REQUEST, (F *r), (r), 1, r, if (GOOD && was.n != 0) hook_req_gone(was.h[0]))
COMPLETION(start, START, Start, REQUEST, (F *r), (r), 1, r, if (GOOD && was.n != 0) hook_req_start(was.h[0]))
COMPLETION(startall, STARTALL, Startall, REQUEST, (F *n, F *r), (n, r), *n, r, for (int i = 0; GOOD && i < was.n; i++) hook_req_start(was.h[i]))
/* clang-format on */

/* ---- begin, end, communicators, types ---------------------------------------------------------- */

#define MADE(new, parent, how, salt)                                                               \
    if (rc == MPI_SUCCESS) {                                                                       \
        const MPI_Comm made_comm = comm_of(new);                                                   \
        hook_comm_made(made_comm, comm_of(parent), how, salt, made_comm);                          \
    }                                                                                              \
    hook_end(&x)
#define CREATE(lower, UPPER, Name, PARAMS, ARGS, HOW, SALT)                                        \
    WRAPPER(mpi, MPI, lower, UPPER, "MPI_" #Name, COMMUNICATOR, ON(c), PARAMS, ARGS, (void)0,      \
            MADE(made, c, HOW, SALT))
/* clang-format off */
CREATE(comm_dup, COMM_DUP, Comm_dup, (F *c, F *made), (c, made), "dup", 0)
CREATE(comm_dup_with_info, COMM_DUP_WITH_INFO, Comm_dup_with_info, (F *c, F *i, F *made), (c, i, made), "dup", 0)
CREATE(comm_create, COMM_CREATE, Comm_create, (F *c, F *g, F *made), (c, g, made), "create", 0)
CREATE(comm_create_group, COMM_CREATE_GROUP, Comm_create_group, (F *c, F *g, F *tag, F *made), (c, g, tag, made), "create_group", *tag)
CREATE(comm_split, COMM_SPLIT, Comm_split, (F *c, F *color, F *key, F *made), (c, color, key, made), "split", 0)
CREATE(comm_split_type, COMM_SPLIT_TYPE, Comm_split_type, (F *c, F *type, F *key, F *i, F *made), (c, type, key, i, made), "split_type", 0)
CREATE(cart_create, CART_CREATE, Cart_create, (F *c, F *n, F *dims, F *periods, F *reorder, F *made), (c, n, dims, periods, reorder, made), "cart", 0)
CREATE(cart_sub, CART_SUB, Cart_sub, (F *c, F *keep, F *made), (c, keep, made), "cart_sub", 0)
CREATE(graph_create, GRAPH_CREATE, Graph_create, (F *c, F *n, F *index, F *edges, F *reorder, F *made), (c, n, index, edges, reorder, made), "graph", 0)
CREATE(dist_graph_create, DIST_GRAPH_CREATE, Dist_graph_create, (F *c, F *n, F *s, F *d, F *to, F *w, F *i, F *reorder, F *made), (c, n, s, d, to, w, i, reorder, made), "dist_graph", 0)
CREATE(dist_graph_create_adjacent, DIST_GRAPH_CREATE_ADJACENT, Dist_graph_create_adjacent, (F *c, F *in, F *s, F *sw, F *out, F *d, F *dw, F *i, F *reorder, F *made), (c, in, s, sw, out, d, dw, i, reorder, made), "dist_graph", 0)
CREATE(intercomm_create, INTERCOMM_CREATE, Intercomm_create, (F *c, F *leader, F *peer, F *remote, F *tag, F *made), (c, leader, peer, remote, tag, made), "intercomm", 0)
CREATE(intercomm_merge, INTERCOMM_MERGE, Intercomm_merge, (F *c, F *high, F *made), (c, high, made), "merge", 0)
/* clang-format on */

/* The handle is taken out before the call: another thread may be given it the moment it is free. */
static __thread struct {
    hook_handle h;
    struct hook_comm *k;
} going __attribute__((tls_model("initial-exec")));

static const struct hook_comm *take(const F *c)
{
    going.h = HOOK_HANDLE(comm_of(c));
    going.k = hook_comm_take(going.h, HOOK_COMM);
    return going.k;
}

static void gone(int rc)
{
    if (rc == MPI_SUCCESS)
        hook_comm_drop(going.k, HOOK_COMM);
    else
        hook_comm_put_back(going.h, HOOK_COMM, going.k);
}

WRAPPER(mpi, MPI, comm_free, COMM_FREE, "MPI_Comm_free", COMMUNICATOR, take(c), (F * c), (c),
        (void)0, hook_end(&x);
        gone(rc))
WRAPPER(mpi, MPI, comm_disconnect, COMM_DISCONNECT, "MPI_Comm_disconnect", COMMUNICATOR, take(c),
        (F * c), (c), (void)0, hook_end(&x);
        gone(rc))

static void up(int rc)
{
    if (rc != MPI_SUCCESS)
        return;
    hook_mpi_start();
    hook_clock_start(hook_world());
}
WRAPPER(mpi, MPI, init_thread, INIT_THREAD, "MPI_Init_thread", LIFE, NULL,
        (F * required, F *provided), (required, provided), (void)0, up(rc);
        hook_end(&x))
WRAPPER(mpi, MPI, abort, ABORT, "MPI_Abort", LIFE, ON(c), (F * c, F *code), (c, code), (void)0,
        hook_end(&x))

static void type_made(int rc, F t)
{
    if (rc == MPI_SUCCESS)
        hook_type_made(type_of(t));
}
WRAPPER(mpi, MPI, type_commit, TYPE_COMMIT, "MPI_Type_commit", NONE, NULL, (F * t), (t),
        x.on = false, type_made(rc, *t))
WRAPPER(mpi, MPI, type_dup, TYPE_DUP, "MPI_Type_dup", NONE, NULL, (F * t, F *made), (t, made),
        x.on = false, type_made(rc, *made))

/* ---- calls without an argument but the error ----------------------------------------------------- */

#define BARE(lower, UPPER, NAME, BEFORE, AFTER)                                                    \
    HOOK_API void ompi_##lower##_f(F *ierr);                                                       \
    HOOK_API void ompi_##lower##_f(F *ierr)                                                        \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        __typeof__(&ompi_##lower##_f) real =                                                       \
            (__typeof__(real))hook_real(&slot, "mpi_" #lower "_", owners);                         \
        F own_error;                                                                               \
        ierr = ierr != NULL ? ierr : &own_error;                                                   \
        *ierr = MPI_ERR_INTERN;                                                                    \
        if (real == NULL)                                                                          \
            return;                                                                                \
        hook_depth++;                                                                              \
        BEFORE;                                                                                    \
        struct hook_call x;                                                                        \
        hook_open(&x, NAME, MSTX_COMM_LIFE, NULL);                                                 \
        hook_begin(&x);                                                                            \
        real(ierr);                                                                                \
        AFTER;                                                                                     \
        hook_end(&x);                                                                              \
        hook_depth--;                                                                              \
    }                                                                                              \
    NAMES(mpi, MPI, lower, UPPER)
BARE(init, INIT, "MPI_Init", (void)0, up(*ierr))
BARE(finalize, FINALIZE, "MPI_Finalize", hook_clock_stop(), (void)0)

#else

/* A file must hold something. */
typedef int hook_mpi_fortran_is_not_needed;

#endif
