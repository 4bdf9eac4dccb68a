/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_comm: begin and end of MPI, and whatever makes or frees communicators, windows and
 * types.
 */
#define MSTX_NO_IMPL
#include "mstx/hook_mpi.h"
#include "mstx/mstx.h"

#include <stdarg.h>

/* ---- begin and end ----------------------------------------------------------------------------- */

static void begun_all(int rc)
{
    if (rc != MPI_SUCCESS)
        return;
    hook_mpi_start();
    hook_clock_start(hook_world());
}

HOOK_API int MPI_Init(int *argc, char ***argv)
{
    HOOK_BODY(MPI_Init, LIFE, NULL, (void)0, real(argc, argv), begun_all(rc); hook_end(&x));
}

HOOK_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    HOOK_BODY(MPI_Init_thread, LIFE, NULL, (void)0, real(argc, argv, required, provided),
              begun_all(rc);
              hook_end(&x));
}

HOOK_API int MPI_Finalize(void)
{
    if (hook_depth++ == 0)
        hook_clock_stop();
    hook_depth--;
    HOOK_BODY(MPI_Finalize, LIFE, NULL, (void)0, real(), hook_end(&x));
}

HOOK_API int MPI_Abort(MPI_Comm c, int code)
{
    HOOK_BODY(MPI_Abort, LIFE, hook_comm_of(c), (void)0, real(c, code), hook_end(&x));
}

#define PLAIN(NAME, OP, PARAMS, ARGS)                                                              \
    HOOK_IF(                                                                                       \
        NAME,                                                                                      \
        HOOK_API int NAME PARAMS { HOOK_BODY(NAME, OP, NULL, (void)0, real ARGS, hook_end(&x)); })
PLAIN(MPI_Session_init, LIFE, (MPI_Info info, MPI_Errhandler e, MPI_Session *s), (info, e, s))
PLAIN(MPI_Session_finalize, LIFE, (MPI_Session * s), (s))

/* 0 stops recording, 1 goes on; MPI itself gives the levels no meaning. */
HOOK_API int MPI_Pcontrol(const int level, ...)
{
    int (*real)(const int, ...) = HOOK_MPI(PMPI_Pcontrol);
    if (level == 0)
        mstx_record_pause();
    else if (level == 1)
        mstx_record_resume();
    return real != NULL ? real(level) : MPI_SUCCESS;
}

/* ---- communicators --------------------------------------------------------------------------------- */

#define MADE(made, parent, how, salt, like)                                                        \
    if (rc == MPI_SUCCESS)                                                                         \
        hook_comm_made(made, parent, how, salt, like);                                             \
    hook_end(&x)
#define CREATE(NAME, PARAMS, ARGS, HOW, SALT)                                                      \
    HOOK_IF(                                                                                       \
        NAME, HOOK_API int NAME PARAMS {                                                           \
            HOOK_BODY(NAME, COMMUNICATOR, hook_comm_of(c), (void)0, real ARGS,                     \
                      MADE(*made, c, HOW, SALT, *made));                                           \
        })
/* clang-format off */
CREATE(MPI_Comm_dup, (MPI_Comm c, MPI_Comm *made), (c, made), "dup", 0)
CREATE(MPI_Comm_dup_with_info, (MPI_Comm c, MPI_Info i, MPI_Comm *made), (c, i, made), "dup", 0)
CREATE(MPI_Comm_create, (MPI_Comm c, MPI_Group g, MPI_Comm *made), (c, g, made), "create", 0)
CREATE(MPI_Comm_create_group, (MPI_Comm c, MPI_Group g, int tag, MPI_Comm *made), (c, g, tag, made), "create_group", tag)
CREATE(MPI_Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *made), (c, color, key, made), "split", 0)
CREATE(MPI_Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info i, MPI_Comm *made), (c, type, key, i, made), "split_type", 0)
CREATE(MPI_Cart_create, (MPI_Comm c, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made), (c, n, dims, periods, reorder, made), "cart", 0)
CREATE(MPI_Cart_sub, (MPI_Comm c, const int remain[], MPI_Comm *made), (c, remain, made), "cart_sub", 0)
CREATE(MPI_Graph_create, (MPI_Comm c, int n, const int index[], const int edges[], int reorder, MPI_Comm *made), (c, n, index, edges, reorder, made), "graph", 0)
CREATE(MPI_Dist_graph_create, (MPI_Comm c, int n, const int s[], const int d[], const int to[], const int w[], MPI_Info i, int reorder, MPI_Comm *made), (c, n, s, d, to, w, i, reorder, made), "dist_graph", 0)
CREATE(MPI_Dist_graph_create_adjacent, (MPI_Comm c, int in, const int s[], const int sw[], int out, const int d[], const int dw[], MPI_Info i, int reorder, MPI_Comm *made), (c, in, s, sw, out, d, dw, i, reorder, made), "dist_graph", 0)
CREATE(MPI_Intercomm_create, (MPI_Comm c, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm *made), (c, leader, peer, remote, tag, made), "intercomm", 0)
CREATE(MPI_Intercomm_merge, (MPI_Comm c, int high, MPI_Comm *made), (c, high, made), "merge", 0)
CREATE(MPI_Comm_spawn, (const char *cmd, char *argv[], int n, MPI_Info i, int root, MPI_Comm c, MPI_Comm *made, int err[]), (cmd, argv, n, i, root, c, made, err), "spawn", 0)
CREATE(MPI_Comm_spawn_multiple, (int k, char *cmds[], char **argvs[], const int n[], const MPI_Info i[], int root, MPI_Comm c, MPI_Comm *made, int err[]), (k, cmds, argvs, n, i, root, c, made, err), "spawn", 0)
CREATE(MPI_Comm_accept, (const char *port, MPI_Info i, int root, MPI_Comm c, MPI_Comm *made), (port, i, root, c, made), "accept", 0)
CREATE(MPI_Comm_connect, (const char *port, MPI_Info i, int root, MPI_Comm c, MPI_Comm *made), (port, i, root, c, made), "connect", 0)
CREATE(MPIX_Comm_shrink, (MPI_Comm c, MPI_Comm *made), (c, made), "shrink", 0)
/* clang-format on */

/* The new one is not ready yet: its members are those of the old. */
HOOK_API int MPI_Comm_idup(MPI_Comm c, MPI_Comm *made, MPI_Request *r)
{
    HOOK_BODY(MPI_Comm_idup, COMMUNICATOR, hook_comm_of(c), x.c.flags |= MSTX_CF_ASYNC,
              real(c, made, r), if (rc == MPI_SUCCESS) hook_comm_made(*made, c, "dup", 0, c);
              hook_begun(&x, rc, r, 0));
}
HOOK_IF(
    MPI_Comm_idup_with_info,
    HOOK_API int MPI_Comm_idup_with_info(MPI_Comm c, MPI_Info i, MPI_Comm *made, MPI_Request *r) {
        HOOK_BODY(MPI_Comm_idup_with_info, COMMUNICATOR, hook_comm_of(c),
                  x.c.flags |= MSTX_CF_ASYNC, real(c, i, made, r),
                  if (rc == MPI_SUCCESS) hook_comm_made(*made, c, "dup", 0, c);
                  hook_begun(&x, rc, r, 0));
    })

/* Without a parent the tag says which of several it is. */
__attribute__((unused)) static int salt_of(const char *tag) /* of MPI 4 */
{
    return tag == NULL ? 0 : (int)mstx_group_hash(0, tag, __builtin_strlen(tag));
}
#define ORPHAN(NAME, PARAMS, ARGS, HOW, SALT)                                                      \
    HOOK_IF(                                                                                       \
        NAME, HOOK_API int NAME PARAMS {                                                           \
            HOOK_BODY(NAME, COMMUNICATOR, NULL, (void)0, real ARGS,                                \
                      MADE(*made, HOOK_NO_COMM, HOW, SALT, *made));                                \
        })
/* clang-format off */
ORPHAN(MPI_Comm_create_from_group, (MPI_Group g, const char *tag, MPI_Info i, MPI_Errhandler e, MPI_Comm *made), (g, tag, i, e, made), "from_group", salt_of(tag))
ORPHAN(MPI_Intercomm_create_from_groups, (MPI_Group g, int l, MPI_Group rg, int rl, const char *tag, MPI_Info i, MPI_Errhandler e, MPI_Comm *made), (g, l, rg, rl, tag, i, e, made), "intercomm", salt_of(tag))
ORPHAN(MPI_Comm_join, (int fd, MPI_Comm *made), (fd, made), "join", 0)
ORPHAN(MPI_Comm_get_parent, (MPI_Comm *made), (made), "parent", 0)
/* clang-format on */

/* The handle is taken out before the call: another thread may be given it the moment it is free. */
#define FREE(NAME, TYPE, KIND)                                                                     \
    HOOK_IF(                                                                                       \
        NAME, HOOK_API int NAME(TYPE *h) {                                                         \
            const hook_handle was = h != NULL ? HOOK_HANDLE(*h) : 0;                               \
            struct hook_comm *k = hook_depth == 0 ? hook_comm_take(was, KIND) : NULL;              \
            HOOK_BODY(NAME, COMMUNICATOR, k, (void)0, real(h), hook_end(&x);                       \
                      if (rc == MPI_SUCCESS) hook_comm_drop(k, KIND);                              \
                      else hook_comm_put_back(was, KIND, k));                                      \
        })
FREE(MPI_Comm_free, MPI_Comm, HOOK_COMM)
FREE(MPI_Comm_disconnect, MPI_Comm, HOOK_COMM)
FREE(MPI_Win_free, MPI_Win, HOOK_WINDOW)

HOOK_API int MPI_Comm_set_name(MPI_Comm c, const char *name)
{
    HOOK_BODY(MPI_Comm_set_name, COMMUNICATOR, hook_comm_of(c), (void)0, real(c, name),
              hook_end(&x);
              if (rc == MPI_SUCCESS) hook_comm_named(c, name));
}

/* ---- windows ------------------------------------------------------------------------------------------- */

#define WINDOW(NAME, PARAMS, ARGS)                                                                 \
    HOOK_IF(                                                                                       \
        NAME, HOOK_API int NAME PARAMS {                                                           \
            HOOK_BODY(NAME, WINDOW, hook_comm_of(c), (void)0, real ARGS,                           \
                      if (rc == MPI_SUCCESS) hook_window_made(*made, c);                           \
                      hook_end(&x));                                                               \
        })
/* clang-format off */
WINDOW(MPI_Win_create, (void *b, MPI_Aint n, int unit, MPI_Info i, MPI_Comm c, MPI_Win *made), (b, n, unit, i, c, made))
WINDOW(MPI_Win_create_c, (void *b, MPI_Aint n, MPI_Aint unit, MPI_Info i, MPI_Comm c, MPI_Win *made), (b, n, unit, i, c, made))
WINDOW(MPI_Win_allocate, (MPI_Aint n, int unit, MPI_Info i, MPI_Comm c, void *b, MPI_Win *made), (n, unit, i, c, b, made))
WINDOW(MPI_Win_allocate_c, (MPI_Aint n, MPI_Aint unit, MPI_Info i, MPI_Comm c, void *b, MPI_Win *made), (n, unit, i, c, b, made))
WINDOW(MPI_Win_allocate_shared, (MPI_Aint n, int unit, MPI_Info i, MPI_Comm c, void *b, MPI_Win *made), (n, unit, i, c, b, made))
WINDOW(MPI_Win_allocate_shared_c, (MPI_Aint n, MPI_Aint unit, MPI_Info i, MPI_Comm c, void *b, MPI_Win *made), (n, unit, i, c, b, made))
WINDOW(MPI_Win_create_dynamic, (MPI_Info i, MPI_Comm c, MPI_Win *made), (i, c, made))
/* clang-format on */

/* ---- types: known from the moment they may be used ------------------------------------------------------ */

#define QUIET(NAME, PARAMS, ARGS, AFTER)                                                           \
    HOOK_API int NAME PARAMS                                                                       \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        __typeof__(&NAME) real = (__typeof__(&NAME))hook_real(&slot, #NAME, hook_mpi_owners);      \
        if (real == NULL)                                                                          \
            return MPI_ERR_INTERN;                                                                 \
        if (hook_depth != 0)                                                                       \
            return real ARGS;                                                                      \
        hook_depth++;                                                                              \
        int rc = real ARGS;                                                                        \
        AFTER;                                                                                     \
        hook_depth--;                                                                              \
        return rc;                                                                                 \
    }
/* clang-format off */
QUIET(MPI_Type_commit, (MPI_Datatype *t), (t), if (rc == MPI_SUCCESS) hook_type_made(*t))
QUIET(MPI_Type_dup, (MPI_Datatype t, MPI_Datatype *made), (t, made), if (rc == MPI_SUCCESS) hook_type_made(*made))
QUIET(MPI_Type_create_f90_integer, (int r, MPI_Datatype *made), (r, made), if (rc == MPI_SUCCESS) hook_type_made(*made))
QUIET(MPI_Type_create_f90_real, (int p, int r, MPI_Datatype *made), (p, r, made), if (rc == MPI_SUCCESS) hook_type_made(*made))
QUIET(MPI_Type_create_f90_complex, (int p, int r, MPI_Datatype *made), (p, r, made), if (rc == MPI_SUCCESS) hook_type_made(*made))
/* clang-format on */

HOOK_API int MPI_Type_free(MPI_Datatype *t)
{
    static hook_slot slot;
    const hook_handle was = t != NULL ? HOOK_HANDLE(*t) : 0;
    int (*real)(MPI_Datatype *) =
        (int (*)(MPI_Datatype *))hook_real(&slot, "MPI_Type_free", hook_mpi_owners);
    if (real == NULL)
        return MPI_ERR_INTERN;
    int rc = real(t);
    if (rc == MPI_SUCCESS && hook_depth == 0) {
        hook_depth++;
        hook_type_gone(was);
        hook_depth--;
    }
    return rc;
}
