/* SPDX-License-Identifier: MIT
 *
 * hook_mpi_calls: collectives in all their forms, made from hook_mpi_table.h.
 */
#include "mstx/hook_mpi.h"

#define COLL(...) COLL_FORMS(__VA_ARGS__)

#define BLOCKING(NAME, OP, PARAMS, ARGS, C, ...)                                                   \
    HOOK_IF(NAME, HOOK_LIGHT(NAME, true, HOOK_COUNT(C, OP), PARAMS, ARGS,                          \
                             HOOK_WATCHED(NAME, OP, hook_comm_of(C), __VA_ARGS__, real ARGS,       \
                                          hook_end(&x));))

#define NONBLOCKING(NAME, OP, PARAMS, ARGS, C, ...)                                                \
    HOOK_IF(NAME,                                                                                  \
            HOOK_LIGHT(NAME, true, HOOK_COUNT(C, OP), (HOOK_BARE PARAMS, MPI_Request * request),   \
                       (HOOK_BARE ARGS, request),                                                  \
                       HOOK_WATCHED(NAME, OP, hook_comm_of(C), __VA_ARGS__;                        \
                                    x.c.flags |= MSTX_CF_ASYNC, real(HOOK_BARE ARGS, request),     \
                                    hook_begun(&x, rc, request, 0));))

#define PERSISTENT(NAME, OP, PARAMS, ARGS, C, ...)                                                 \
    HOOK_IF(                                                                                       \
        NAME, HOOK_API int NAME(HOOK_BARE PARAMS, MPI_Info info, MPI_Request *request) {           \
            struct mstx_comm_call later;                                                           \
            HOOK_BODY(NAME, REQUEST, hook_comm_of(C), __VA_ARGS__;                                 \
                      hook_prepare(&x, &later, MSTX_COMM_##OP, #NAME " started"),                  \
                      real(HOOK_BARE ARGS, info, request),                                         \
                      hook_prepared(&x, rc, request, &later, 0));                                  \
        })

#define BUF(x)      const void *x
#define RBUF(x)     void *x
#define TYP(x)      MPI_Datatype x
#define TYPS(x)     const MPI_Datatype x[]
#define ADSP(x)     const MPI_Aint x[]
#define INT(x)      int x
#define OPR(x)      MPI_Op x
#define COM(x)      MPI_Comm x
#define V(x)        (x)
#define T(x)        (x)
#define TS(x, i)    (x)[i]
#define O(x)        (x)
#define IN_PLACE(x) ((x) == MPI_IN_PLACE)

/* ---- counts as int ------------------------------------------------------------------------- */

#define CNT(x)  int x
#define CNTS(x) const int x[]
#define DSP(x)  const int x[]
#define COLL_FORMS(Name, name, NAME, OP, PARAMS, ARGS, C, ...)                                     \
    BLOCKING(MPI_##Name, OP, PARAMS, ARGS, C, __VA_ARGS__)                                         \
    NONBLOCKING(MPI_I##name, OP, PARAMS, ARGS, C, __VA_ARGS__)                                     \
    PERSISTENT(MPI_##Name##_init, OP, PARAMS, ARGS, C, __VA_ARGS__)                                \
    PERSISTENT(MPIX_##Name##_init, OP, PARAMS, ARGS, C, __VA_ARGS__)
#include "mstx/hook_mpi_table.h"
#undef CNT
#undef CNTS
#undef DSP
#undef COLL_FORMS

/* ---- counts as MPI_Count --------------------------------------------------------------------- */

#define CNT(x)  MPI_Count x
#define CNTS(x) const MPI_Count x[]
#define DSP(x)  const MPI_Aint x[]
#define COLL_FORMS(Name, name, NAME, OP, PARAMS, ARGS, C, ...)                                     \
    BLOCKING(MPI_##Name##_c, OP, PARAMS, ARGS, C, __VA_ARGS__)                                     \
    NONBLOCKING(MPI_I##name##_c, OP, PARAMS, ARGS, C, __VA_ARGS__)                                 \
    PERSISTENT(MPI_##Name##_init_c, OP, PARAMS, ARGS, C, __VA_ARGS__)
#include "mstx/hook_mpi_table.h"
