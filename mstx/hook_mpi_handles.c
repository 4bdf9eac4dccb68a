/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_handles: calls without buffers in the bindings of Fortran; see hook_mpi_fortran.h.
 */
#include "mstx/hook_mpi_fortran.h"

#include <string.h>

#if defined(OPEN_MPI)
const char *const hook_fortran_owners[] = {"libmpi_mpifh.so", "libmpi_usempif08.so", NULL};
#else
const char *const hook_fortran_owners[] = {"libmpichfort.so", "libmpifort.so", NULL};
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

const MPI_Status *hook_fortran_status(const F *s, size_t at, MPI_Status *out)
{
    if (is_ignored(s))
        return NULL;
    memcpy(out, s + at * (sizeof *out / sizeof *s),
           sizeof *out); /* both bindings have C's layout */
    return out;
}

/* ---- probes, and collectives that move nothing ---------------------------------------------------- */

/* clang-format off */
#define PROBE(lower, UPPER, Name, PARAMS, ARGS) \
    HANDLES(lower, UPPER, "MPI_" #Name, PROBE, true, ON(c), PARAMS, ARGS, ERROR_ONLY, hook_p2p(&x, *peer, *tag, false), hook_end(&x))
#define ASKED hook_asked(&x, rc != MPI_SUCCESS || *flag != 0)
#define IPROBE(lower, UPPER, Name, PARAMS, ARGS) \
    LOGICAL(lower, UPPER, "MPI_" #Name, PROBE, true, ON(c), PARAMS, ARGS, ERROR_ONLY, hook_p2p(&x, *peer, *tag, false); hook_ask(&x), ASKED)
PROBE(probe, PROBE, Probe, (F *peer, F *tag, F *c, F *s), (peer, tag, c, s))
PROBE(mprobe, MPROBE, Mprobe, (F *peer, F *tag, F *c, F *m, F *s), (peer, tag, c, m, s))
IPROBE(iprobe, IPROBE, Iprobe, (F *peer, F *tag, F *c, F *flag, F *s), (peer, tag, c, flag, s))
IPROBE(improbe, IMPROBE, Improbe, (F *peer, F *tag, F *c, F *flag, F *m, F *s), (peer, tag, c, flag, m, s))

#if defined(MPICH) /* those of Open MPI come with the other collectives */
HANDLES(barrier, BARRIER, "MPI_Barrier", BARRIER, COUNTED(c, BARRIER), ON(c), (F *c), (c), ERROR_ONLY, (void)0, hook_end(&x))
HANDLES(ibarrier, IBARRIER, "MPI_Ibarrier", BARRIER, COUNTED(c, BARRIER), ON(c), (F *c, F *r), (c, r), ERROR_ONLY, x.c.flags |= MSTX_CF_ASYNC, begun(&x, rc, r, 0))
static __thread struct mstx_comm_call later __attribute__((tls_model("initial-exec")));
HANDLES(barrier_init, BARRIER_INIT, "MPI_Barrier_init", REQUEST, true, ON(c), (F *c, F *i, F *r), (c, i, r), ERROR_ONLY,
        hook_prepare(&x, &later, MSTX_COMM_BARRIER, "MPI_Barrier_init started"), prepared(&x, rc, r, &later, 0))

/* Of MPI 4; without anything to describe but themselves. */
#define PLAIN(lower, UPPER, Name, OP, PARAMS, ARGS) \
    HANDLES(lower, UPPER, "MPI_" #Name, OP, true, NULL, PARAMS, ARGS, ERROR_ONLY, (void)0, hook_end(&x))
PLAIN(pready, PREADY, Pready, REQUEST, (F *part, F *r), (part, r))
PLAIN(pready_range, PREADY_RANGE, Pready_range, REQUEST, (F *low, F *high, F *r), (low, high, r))
PLAIN(pready_list, PREADY_LIST, Pready_list, REQUEST, (F *n, F *list, F *r), (n, list, r))
HANDLES(parrived, PARRIVED, "MPI_Parrived", TEST, true, NULL, (F *r, F *part, F *flag), (r, part, flag), ERROR_ONLY, hook_ask(&x), ASKED)
PLAIN(session_init, SESSION_INIT, Session_init, LIFE, (F *info, F *handler, F *made), (info, handler, made))
PLAIN(session_finalize, SESSION_FINALIZE, Session_finalize, LIFE, (F *s), (s))
#endif
/* clang-format on */

/* ---- completion ------------------------------------------------------------------------------- */

/* With recording off and nothing known there is nothing that could be done. */
static inline bool none_tracked(void)
{
    return atomic_load_explicit(&hook_req_pool.tracked, memory_order_relaxed) == 0;
}

static void remember(struct hook_before *b, int n, const F *r)
{
    hook_before_room(b, hook_mpi_is_off() && none_tracked() ? 0 : n);
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

/* Indices of Fortran count from 1. */
static void complete_some(const struct hook_before *b, F n, const F *index, const F *s)
{
    for (F i = 0; n != MPI_UNDEFINED && i < n; i++)
        complete(b, index[i] - 1, s, (size_t)i);
}

/* The handles must be known before the call, and when nothing is recorded too. */
#define COMPLETION_AS(KIND, lower, UPPER, Name, OP, PARAMS, ARGS, COUNT, REQUESTS, DESC, ...)      \
    KIND(lower, UPPER, "MPI_" #Name, OP, none_tracked(), (remember(&was, COUNT, REQUESTS), NULL),  \
         PARAMS, ARGS, ERROR_ONLY, x.c.count = (uint64_t)was.n;                                    \
         DESC, __VA_ARGS__)
#define COMPLETION(lower, UPPER, Name, OP, PARAMS, ARGS, COUNT, REQUESTS, DONE)                    \
    COMPLETION_AS(HANDLES, lower, UPPER, Name, OP, PARAMS, ARGS, COUNT, REQUESTS,                  \
                  HOOK_WAITS(OP, was), DONE;                                                       \
                  hook_end(&x))
#define TESTED(lower, UPPER, Name, PARAMS, ARGS, COUNT, REQUESTS, FOUND, DONE)                     \
    COMPLETION_AS(LOGICAL, lower, UPPER, Name, TEST, PARAMS, ARGS, COUNT, REQUESTS, hook_ask(&x),  \
                  hook_asked(&x, !GOOD || FOUND);                                                  \
                  DONE)
#define GOOD (rc == MPI_SUCCESS)
static __thread struct hook_before was __attribute__((tls_model("initial-exec")));
/* clang-format off */
COMPLETION(wait, WAIT, Wait, WAIT, (F *r, F *s), (r, s), 1, r, if (GOOD) complete(&was, 0, s, 0))
TESTED(test, TEST, Test, (F *r, F *flag, F *s), (r, flag, s), 1, r, *flag != 0, if (GOOD && *flag != 0) complete(&was, 0, s, 0))
COMPLETION(waitall, WAITALL, Waitall, WAIT, (F *n, F *r, F *s), (n, r, s), *n, r, complete_all(&was, rc, r, s))
TESTED(testall, TESTALL, Testall, (F *n, F *r, F *flag, F *s), (n, r, flag, s), *n, r, *flag != 0, if (!GOOD || *flag != 0) complete_all(&was, rc, r, s))
COMPLETION(waitany, WAITANY, Waitany, WAIT, (F *n, F *r, F *at, F *s), (n, r, at, s), *n, r, if (GOOD && *at != MPI_UNDEFINED) complete(&was, *at - 1, s, 0))
TESTED(testany, TESTANY, Testany, (F *n, F *r, F *at, F *flag, F *s), (n, r, at, flag, s), *n, r, *flag != 0, if (GOOD && *flag != 0 && *at != MPI_UNDEFINED) complete(&was, *at - 1, s, 0))
COMPLETION(waitsome, WAITSOME, Waitsome, WAIT, (F *n, F *r, F *done, F *at, F *s), (n, r, done, at, s), *n, r, if (GOOD) complete_some(&was, *done, at, s))
TESTED(testsome, TESTSOME, Testsome, (F *n, F *r, F *done, F *at, F *s), (n, r, done, at, s), *n, r, *done != 0, if (GOOD) complete_some(&was, *done, at, s))
COMPLETION(request_free, REQUEST_FREE, Request_free, REQUEST, (F *r), (r), 1, r, if (GOOD && was.n != 0) hook_req_gone(was.h[0]))
COMPLETION(start, START, Start, REQUEST, (F *r), (r), 1, r, if (GOOD && was.n != 0) hook_req_start(was.h[0]))
COMPLETION(startall, STARTALL, Startall, REQUEST, (F *n, F *r), (n, r), *n, r, for (int i = 0; GOOD && i < was.n; i++) hook_req_start(was.h[i]))
COMPLETION(cancel, CANCEL, Cancel, REQUEST, (F *r), (r), 1, r, (void)0)
TESTED(request_get_status, REQUEST_GET_STATUS, Request_get_status, (F *r, F *flag, F *s), (r, flag, s), 1, r, *flag != 0, (void)0)
/* clang-format on */

/* ---- communicators ------------------------------------------------------------------------------ */

#define MADE(new, parent, how, salt)                                                               \
    if (rc == MPI_SUCCESS)                                                                         \
        hook_comm_made(comm_of(new), parent, how, salt, comm_of(new));                             \
    hook_end(&x)
/* clang-format off */
#define CREATE_BY(KIND, lower, UPPER, Name, PARAMS, ARGS, HOW, SALT) \
    KIND(lower, UPPER, "MPI_" #Name, COMMUNICATOR, false, ON(c), PARAMS, ARGS, ERROR_ONLY, (void)0, MADE(made, comm_of(c), HOW, SALT))
#define CREATE(...)         CREATE_BY(HANDLES, __VA_ARGS__)
#define CREATE_LOGICAL(...) CREATE_BY(LOGICAL, __VA_ARGS__)
CREATE(comm_dup, COMM_DUP, Comm_dup, (F *c, F *made), (c, made), "dup", 0)
CREATE(comm_dup_with_info, COMM_DUP_WITH_INFO, Comm_dup_with_info, (F *c, F *i, F *made), (c, i, made), "dup", 0)
CREATE(comm_create, COMM_CREATE, Comm_create, (F *c, F *g, F *made), (c, g, made), "create", 0)
CREATE(comm_create_group, COMM_CREATE_GROUP, Comm_create_group, (F *c, F *g, F *tag, F *made), (c, g, tag, made), "create_group", *tag)
CREATE(comm_split, COMM_SPLIT, Comm_split, (F *c, F *color, F *key, F *made), (c, color, key, made), "split", 0)
CREATE(comm_split_type, COMM_SPLIT_TYPE, Comm_split_type, (F *c, F *type, F *key, F *i, F *made), (c, type, key, i, made), "split_type", 0)
CREATE_LOGICAL(cart_create, CART_CREATE, Cart_create, (F *c, F *n, F *dims, F *periods, F *reorder, F *made), (c, n, dims, periods, reorder, made), "cart", 0)
CREATE_LOGICAL(cart_sub, CART_SUB, Cart_sub, (F *c, F *keep, F *made), (c, keep, made), "cart_sub", 0)
CREATE_LOGICAL(graph_create, GRAPH_CREATE, Graph_create, (F *c, F *n, F *index, F *edges, F *reorder, F *made), (c, n, index, edges, reorder, made), "graph", 0)
CREATE_LOGICAL(dist_graph_create, DIST_GRAPH_CREATE, Dist_graph_create, (F *c, F *n, F *s, F *d, F *to, F *w, F *i, F *reorder, F *made), (c, n, s, d, to, w, i, reorder, made), "dist_graph", 0)
CREATE_LOGICAL(dist_graph_create_adjacent, DIST_GRAPH_CREATE_ADJACENT, Dist_graph_create_adjacent, (F *c, F *in, F *s, F *sw, F *out, F *d, F *dw, F *i, F *reorder, F *made), (c, in, s, sw, out, d, dw, i, reorder, made), "dist_graph", 0)
CREATE(intercomm_create, INTERCOMM_CREATE, Intercomm_create, (F *c, F *leader, F *peer, F *remote, F *tag, F *made), (c, leader, peer, remote, tag, made), "intercomm", 0)
CREATE_LOGICAL(intercomm_merge, INTERCOMM_MERGE, Intercomm_merge, (F *c, F *high, F *made), (c, high, made), "merge", 0)

/* With texts, whose lengths come last. */
#define ONE_TEXT  (F *ierr, size_t n1), (ierr, n1)
#define TWO_TEXTS (F *ierr, size_t n1, size_t n2), (ierr, n1, n2)
#define JOIN(lower, UPPER, Name, PARAMS, ARGS, TAIL, HOW) \
    HANDLES(lower, UPPER, "MPI_" #Name, COMMUNICATOR, false, ON(c), PARAMS, ARGS, TAIL, (void)0, MADE(made, comm_of(c), HOW, 0))
JOIN(comm_accept, COMM_ACCEPT, Comm_accept, (char *port, F *i, F *root, F *c, F *made), (port, i, root, c, made), ONE_TEXT, "accept")
JOIN(comm_connect, COMM_CONNECT, Comm_connect, (char *port, F *i, F *root, F *c, F *made), (port, i, root, c, made), ONE_TEXT, "connect")
JOIN(comm_spawn, COMM_SPAWN, Comm_spawn, (char *cmd, char *argv, F *n, F *i, F *root, F *c, F *made, F *err), (cmd, argv, n, i, root, c, made, err), TWO_TEXTS, "spawn")
JOIN(comm_spawn_multiple, COMM_SPAWN_MULTIPLE, Comm_spawn_multiple, (F *k, char *cmds, char *argvs, F *n, F *i, F *root, F *c, F *made, F *err), (k, cmds, argvs, n, i, root, c, made, err), TWO_TEXTS, "spawn")

#define ORPHAN(lower, UPPER, Name, PARAMS, ARGS, TAIL, HOW, SALT) \
    HANDLES(lower, UPPER, "MPI_" #Name, COMMUNICATOR, false, NULL, PARAMS, ARGS, TAIL, (void)0, MADE(made, HOOK_NO_COMM, HOW, SALT))
ORPHAN(comm_join, COMM_JOIN, Comm_join, (F *fd, F *made), (fd, made), ERROR_ONLY, "join", 0)
ORPHAN(comm_get_parent, COMM_GET_PARENT, Comm_get_parent, (F *made), (made), ERROR_ONLY, "parent", 0)

/* The new one is not ready yet: its members are those of the old. */
#define IDUP(lower, UPPER, Name, PARAMS, ARGS) \
    HANDLES(lower, UPPER, "MPI_" #Name, COMMUNICATOR, false, ON(c), PARAMS, ARGS, ERROR_ONLY, x.c.flags |= MSTX_CF_ASYNC, \
            if (rc == MPI_SUCCESS) hook_comm_made(comm_of(made), comm_of(c), "dup", 0, comm_of(c)); \
            begun(&x, rc, r, 0))
IDUP(comm_idup, COMM_IDUP, Comm_idup, (F *c, F *made, F *r), (c, made, r))

#if defined(MPICH)
IDUP(comm_idup_with_info, COMM_IDUP_WITH_INFO, Comm_idup_with_info, (F *c, F *i, F *made, F *r), (c, i, made, r))
/* The tag as C sees it, without blanks behind. */
static int salt_of(const char *tag, size_t n)
{
    while (n > 0 && tag[n - 1] == ' ')
        n--;
    return (int)mstx_group_hash(0, tag, n);
}
ORPHAN(comm_create_from_group, COMM_CREATE_FROM_GROUP, Comm_create_from_group, (F *g, char *tag, F *i, F *e, F *made), (g, tag, i, e, made), ONE_TEXT, "from_group", salt_of(tag, n1))
ORPHAN(intercomm_create_from_groups, INTERCOMM_CREATE_FROM_GROUPS, Intercomm_create_from_groups, (F *g, F *l, F *rg, F *rl, char *tag, F *i, F *e, F *made), (g, l, rg, rl, tag, i, e, made), ONE_TEXT, "intercomm", salt_of(tag, n1))
MODERN(mpix, comm_shrink, "MPIX_Comm_shrink", COMMUNICATOR, false, ON(c), (F *c, F *made), (c, made), ERROR_ONLY, (void)0, MADE(made, comm_of(c), "shrink", 0))
#endif
/* clang-format on */

/* MPI has cut the blanks off. */
static void named(const F *c)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int n = 0;
    int (*get_name)(MPI_Comm, char *, int *) = HOOK_MPI(PMPI_Comm_get_name);
    if (get_name(comm_of(c), name, &n) == MPI_SUCCESS)
        hook_comm_named(comm_of(c), name);
}
HANDLES(comm_set_name, COMM_SET_NAME, "MPI_Comm_set_name", COMMUNICATOR, false, ON(c),
        (F * c, char *name), (c, name), ONE_TEXT, (void)0, hook_end(&x);
        if (rc == MPI_SUCCESS) named(c))

/* The handle is taken out before the call: another thread may be given it the moment it is free. */
static __thread struct {
    hook_handle h;
    struct hook_comm *k;
    enum hook_kind kind;
} going __attribute__((tls_model("initial-exec")));

static const struct hook_comm *take(hook_handle h, enum hook_kind kind)
{
    going.h = h;
    going.k = hook_comm_take(h, kind);
    going.kind = kind;
    return going.k;
}

static void gone(int rc)
{
    if (rc == MPI_SUCCESS)
        hook_comm_drop(going.k, going.kind);
    else
        hook_comm_put_back(going.h, going.kind, going.k);
}

#define FREE(lower, UPPER, Name, HANDLE, KIND)                                                     \
    HANDLES(lower, UPPER, "MPI_" #Name, COMMUNICATOR, false, take(HOOK_HANDLE(HANDLE), KIND),      \
            (F * h), (h), ERROR_ONLY, (void)0, hook_end(&x);                                       \
            gone(rc))
FREE(comm_free, COMM_FREE, Comm_free, comm_of(h), HOOK_COMM)
FREE(comm_disconnect, COMM_DISCONNECT, Comm_disconnect, comm_of(h), HOOK_COMM)
FREE(win_free, WIN_FREE, Win_free, win_of(h), HOOK_WINDOW)

/* ---- windows ----------------------------------------------------------------------------------- */

/* clang-format off */
#define WINDOW(lower, UPPER, Name, PARAMS, ARGS) \
    HANDLES(lower, UPPER, "MPI_" #Name, WINDOW, false, ON(c), PARAMS, ARGS, ERROR_ONLY, (void)0, \
            if (rc == MPI_SUCCESS) hook_window_made(win_of(made), comm_of(c)); \
            hook_end(&x))
#define ALLOCATE(lower, UPPER, Name) \
    WINDOW(lower, UPPER, Name, (MPI_Aint *n, void *unit, F *i, F *c, void *b, F *made), (n, unit, i, c, b, made))
WINDOW(win_create_dynamic, WIN_CREATE_DYNAMIC, Win_create_dynamic, (F *i, F *c, F *made), (i, c, made))
ALLOCATE(win_allocate, WIN_ALLOCATE, Win_allocate)
ALLOCATE(win_allocate_shared, WIN_ALLOCATE_SHARED, Win_allocate_shared)
#if defined(OPEN_MPI)
ALLOCATE(win_allocate_cptr, WIN_ALLOCATE_CPTR, Win_allocate)
ALLOCATE(win_allocate_shared_cptr, WIN_ALLOCATE_SHARED_CPTR, Win_allocate_shared)
#endif

#define ON_WINDOW(lower, UPPER, Name, PARAMS, ARGS, DESC) \
    HANDLES(win_##lower, WIN_##UPPER, "MPI_Win_" #Name, WINDOW, true, window(w), PARAMS, ARGS, ERROR_ONLY, DESC, hook_end(&x))
ON_WINDOW(fence, FENCE, fence, (F *a, F *w), (a, w), (void)0)
ON_WINDOW(lock, LOCK, lock, (F *type, F *rank, F *a, F *w), (type, rank, a, w), x.c.peer = *rank)
ON_WINDOW(lock_all, LOCK_ALL, lock_all, (F *a, F *w), (a, w), (void)0)
ON_WINDOW(unlock, UNLOCK, unlock, (F *rank, F *w), (rank, w), x.c.peer = *rank)
ON_WINDOW(unlock_all, UNLOCK_ALL, unlock_all, (F *w), (w), (void)0)
ON_WINDOW(flush, FLUSH, flush, (F *rank, F *w), (rank, w), x.c.peer = *rank)
ON_WINDOW(flush_all, FLUSH_ALL, flush_all, (F *w), (w), (void)0)
ON_WINDOW(flush_local, FLUSH_LOCAL, flush_local, (F *rank, F *w), (rank, w), x.c.peer = *rank)
ON_WINDOW(flush_local_all, FLUSH_LOCAL_ALL, flush_local_all, (F *w), (w), (void)0)
ON_WINDOW(sync, SYNC, sync, (F *w), (w), (void)0)
ON_WINDOW(post, POST, post, (F *g, F *a, F *w), (g, a, w), (void)0)
ON_WINDOW(start, START, start, (F *g, F *a, F *w), (g, a, w), (void)0)
ON_WINDOW(complete, COMPLETE, complete, (F *w), (w), (void)0)
ON_WINDOW(wait, WAIT, wait, (F *w), (w), (void)0)
LOGICAL(win_test, WIN_TEST, "MPI_Win_test", WINDOW, true, window(w), (F *w, F *flag), (w, flag), ERROR_ONLY, hook_ask(&x), ASKED)
/* clang-format on */

/* ---- begin, end, types ------------------------------------------------------------------------- */

static void up(int rc)
{
    if (rc != MPI_SUCCESS)
        return;
    hook_mpi_start();
    hook_clock_start(hook_world());
}
HANDLES(init_thread, INIT_THREAD, "MPI_Init_thread", LIFE, false, NULL, (F * required, F *provided),
        (required, provided), ERROR_ONLY, (void)0, up(rc);
        hook_end(&x))
HANDLES(abort, ABORT, "MPI_Abort", LIFE, false, ON(c), (F * c, F *code), (c, code), ERROR_ONLY,
        (void)0, hook_end(&x))

static void type_made(int rc, F t)
{
    if (rc == MPI_SUCCESS)
        hook_type_made(type_of(t));
}
#define TYPE(lower, UPPER, PARAMS, ARGS, made)                                                     \
    HANDLES(type_##lower, TYPE_##UPPER, "", NONE, false, NULL, PARAMS, ARGS, ERROR_ONLY,           \
            x.on = false, type_made(rc, *(made)))
TYPE(commit, COMMIT, (F * t), (t), t)
TYPE(dup, DUP, (F * t, F *made), (t, made), made)
TYPE(create_f90_integer, CREATE_F90_INTEGER, (F * r, F *made), (r, made), made)
TYPE(create_f90_real, CREATE_F90_REAL, (F * p, F *r, F *made), (p, r, made), made)
TYPE(create_f90_complex, CREATE_F90_COMPLEX, (F * p, F *r, F *made), (p, r, made), made)

static __thread hook_handle type_going __attribute__((tls_model("initial-exec")));
HANDLES(type_free, TYPE_FREE, "", NONE, false, (type_going = HOOK_HANDLE(type_of(*t)), NULL),
        (F * t), (t), ERROR_ONLY, x.on = false, if (rc == MPI_SUCCESS) hook_type_gone(type_going))

/* ---- calls without an argument but the error ----------------------------------------------------- */

#define BARE(OURS, REAL, NAME, BEFORE, AFTER)                                                      \
    SUBROUTINE(OURS, REAL, false, (F * ierr), (ierr), BEFORE;                                      \
               hook_open(&x, site, NAME, MSTX_COMM_LIFE, NULL), AFTER; hook_end(&x))
#if defined(OPEN_MPI)
#define BARE_NAMES(lower, UPPER, ...)                                                              \
    BARE(ompi_##lower##_f, "mpi_" #lower "_", __VA_ARGS__)                                         \
    NAMES(mpi, MPI, lower, UPPER)
#define PCONTROL ompi_pcontrol_f
#else
#define BARE_NAMES(lower, UPPER, ...) BARE(mpi_##lower##_f08_, "mpi_" #lower "_f08_", __VA_ARGS__)
#define PCONTROL                      mpi_pcontrol_f08_
#endif
BARE_NAMES(init, INIT, "MPI_Init", (void)0, up(rc))
BARE_NAMES(finalize, FINALIZE, "MPI_Finalize", hook_clock_stop(), (void)0)

HOOK_API void PCONTROL(const F *level);
HOOK_API void PCONTROL(const F *level)
{
    MPI_Pcontrol(*level);
}
#if defined(OPEN_MPI)
#undef PCONTROL
NAMES(mpi, MPI, pcontrol, PCONTROL)
#endif
