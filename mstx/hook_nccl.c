/* SPDX-License-Identifier: MIT
 *
 * hook_nccl: the public functions of NCCL, which are those of RCCL as well.
 *
 * A communicator has no public name.  All of its ranks hold the same unique id, so its hash is
 * the identity; children are the parent's identity with the number of the child, which all ranks
 * count alike.
 */
#include "mstx/hook_ccl.h"
#include "mstx/hook_plugin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { IN_PROGRESS = 7, SYSTEM_ERROR = 2, NO_COLOR = -1 };

/* As it is passed by value. */
typedef struct {
    char bytes[128];
} nccl_id;

static const char *const owners[] = {"libnccl.so", "librccl.so", "libtorch_cuda.so",
                                     "libtorch_hip.so", NULL};

static int missing(void)
{
    return SYSTEM_ERROR;
}

/* ---- words ------------------------------------------------------------------------------- */

static const uint8_t types[] = {MSTX_TYPE_INT8,   MSTX_TYPE_UINT8,   MSTX_TYPE_INT32,
                                MSTX_TYPE_UINT32, MSTX_TYPE_INT64,   MSTX_TYPE_UINT64,
                                MSTX_TYPE_FP16,   MSTX_TYPE_FP32,    MSTX_TYPE_FP64,
                                MSTX_TYPE_BFP16,  MSTX_TYPE_FP8E4M3, MSTX_TYPE_FP8E5M2};
static uint8_t type_of(int type)
{
    return (size_t)type < sizeof types ? types[type] : MSTX_TYPE_NA;
}

static uint8_t reduce_of(int op)
{
    static const uint8_t ops[] = {MSTX_REDUCE_SUM, MSTX_REDUCE_PROD, MSTX_REDUCE_MAX,
                                  MSTX_REDUCE_MIN, MSTX_REDUCE_AVG};
    return (size_t)op < sizeof ops ? ops[op] : op < 0 ? MSTX_REDUCE_NONE : MSTX_REDUCE_USER;
}

/* ---- communicators ------------------------------------------------------------------------- */

struct hook_family hook_nccl_family = {.name = "NCCL", .owners = owners};
static enum mstx_comm_lib kind(void);
static bool learn(void *comm, struct mstx_group_info *info, char name[128]);
static const struct hook_ccl_lib nccl = {
    .family = &hook_nccl_family, .device = MSTX_DEVICE_CUDA, .kind = kind, .learn = learn};

/* RCCL has the same functions, alone or inside of PyTorch. */
static enum mstx_comm_lib kind(void)
{
    static _Atomic uint8_t known[HOOK_COPIES]; /* OTHER: not yet */
    uint8_t lib = atomic_load_explicit(&known[hook_ccl_copy_now], memory_order_relaxed);
    if (HOOK_LIKELY(lib != MSTX_LIB_OTHER))
        return lib;
    int (*count)(void *, int *) = HOOK_CCL_FN(&nccl, ncclCommCount, (void *, int *));
    const char *file = hook_copy_file((void *)(uintptr_t)count);
    bool is_rccl = strncmp(file, "librccl", 7) == 0 || strncmp(file, "libtorch_hip", 12) == 0;
    lib = is_rccl ? MSTX_LIB_RCCL : MSTX_LIB_NCCL;
    if (count != NULL)
        atomic_store_explicit(&known[hook_ccl_copy_now], lib, memory_order_relaxed);
    return lib;
}

/* While a communicator that does not block is being made, these fail; asked again at the next. */
static bool learn_ranks(void *comm, int32_t *size, int32_t *rank)
{
    int (*count)(void *, int *) = HOOK_CCL_FN(&nccl, ncclCommCount, (void *, int *));
    int (*user)(void *, int *) = HOOK_CCL_FN(&nccl, ncclCommUserRank, (void *, int *));
    int n = -1, r = -1;
    if (count == NULL || user == NULL || count(comm, &n) != 0 || user(comm, &r) != 0)
        return false;
    *size = n;
    *rank = r;
    return true;
}

static void name_group(char name[128], uint64_t uid)
{
    snprintf(name, 128, "nccl-%016llx", (unsigned long long)uid);
}

/* One whose making was not seen: its identity over the ranks is known to the profiler at most. */
static bool learn(void *comm, struct mstx_group_info *info, char name[128])
{
    if (!learn_ranks(comm, &info->size, &info->rank))
        return false;
    const uint64_t what[] = {(uint64_t)(uintptr_t)comm, (uint64_t)getpid()};
    if (!hook_plugin_claim(info->size, info->rank, true, &info->uid))
        info->uid = mstx_group_hash(0, what, sizeof what);
    name_group(name, info->uid);
    return true;
}

/* Those that were there before and those that join a grown communicator have nothing in common but what
 * NCCL tells its profiler. */
static void made_so(int rc, void *const *comm, uint64_t uid, int size, int rank, bool is_grown)
{
    char name[128];
    uint64_t told = 0;
    if ((rc != 0 && rc != IN_PROGRESS) || comm == NULL || *comm == NULL)
        return;
    if (hook_plugin_claim(size, rank, false, &told) && is_grown)
        uid = told;
    name_group(name, uid);
    hook_ccl_made(&nccl, *comm,
                  &(struct mstx_group_info){.uid = uid, .name = name, .size = size, .rank = rank});
}

static void made(int rc, void *const *comm, uint64_t uid, int size, int rank)
{
    made_so(rc, comm, uid, size, rank, false);
}

static uint64_t id_hash(const nccl_id *id)
{
    return id != NULL ? mstx_group_hash(0, id->bytes, sizeof id->bytes) : 0;
}

/* All communicators of one process: no other rank needs to find the same identity. */
static void made_all(int rc, void *const *comms, int n)
{
    static _Atomic uint32_t times;
    const uint32_t what[] = {(uint32_t)getpid(), atomic_fetch_add(&times, 1)};
    uint64_t uid = mstx_group_hash(0, what, sizeof what);
    for (int i = 0; i < n && comms != NULL; i++)
        made(rc, comms + i, uid, n, i);
}

static uint64_t child_of(void *parent, int kind)
{
    struct hook_ccl_comm *p = hook_ccl_of(&nccl, parent);
    if (p == NULL)
        return 0;
    uint64_t uid = mstx_group_uid(p->group);
    const uint32_t what[] = {atomic_fetch_add(&p->children, 1), (uint32_t)kind};
    return mstx_group_hash(uid, what, sizeof what);
}

static void made_child(int rc, void *const *comm, uint64_t uid, bool is_grown)
{
    int32_t size = -1, rank = -1;
    if ((rc == 0 || rc == IN_PROGRESS) && comm != NULL && *comm != NULL && uid != 0) {
        learn_ranks(*comm, &size, &rank);
        made_so(rc, comm, uid, size, rank, is_grown);
    }
}

/* ---- operations: name, op, parameters, arguments, facts ------------------------------------- */

#define C_FRONT   const void *send, void *recv, size_t count, int type
#define C_ARGS    send, recv, count, type
#define C_TAIL    void *comm, void *stream
#define C_TYPED   c.count = count, c.dtype = type_of(type), c.stream = stream
#define C_REDUCE  c.reduce = reduce_of(op)
#define C_SUM(of) hook_ccl_sum(&nccl, comm, of) * mstx_comm_type_bytes(type_of(type))

/* Since 2.31 with a configuration of the call behind it. */
#define COLLECTIVE(X, fn, kind, params, args, facts)                                               \
    X(fn, kind, (HOOK_BARE params, C_TAIL), (HOOK_BARE args, comm, stream), facts)                 \
    X(fn##Config, kind, (HOOK_BARE params, C_TAIL, const void *config),                            \
      (HOOK_BARE args, comm, stream, config), facts)
#define OPERATIONS(X)                                                                              \
    COLLECTIVE(X, ncclAllReduce, ALLREDUCE, (C_FRONT, int op), (C_ARGS, op), (C_TYPED, C_REDUCE))  \
    COLLECTIVE(X, ncclReduce, REDUCE, (C_FRONT, int op, int root), (C_ARGS, op, root),             \
               (C_TYPED, C_REDUCE, c.peer = root))                                                 \
    COLLECTIVE(X, ncclBroadcast, BROADCAST, (C_FRONT, int root), (C_ARGS, root),                   \
               (C_TYPED, c.peer = root))                                                           \
    X(ncclBcast, BROADCAST, (void *recv, size_t count, int type, int root, C_TAIL),                \
      (recv, count, type, root, comm, stream),                                                     \
      (C_TYPED, c.peer = root, c.flags = MSTX_CF_IN_PLACE))                                        \
    COLLECTIVE(X, ncclAllGather, ALLGATHER, (C_FRONT), (C_ARGS), (C_TYPED))                        \
    COLLECTIVE(X, ncclReduceScatter, REDUCE_SCATTER, (C_FRONT, int op), (C_ARGS, op),              \
               (C_TYPED, C_REDUCE))                                                                \
    COLLECTIVE(X, ncclAlltoAll, ALLTOALL, (C_FRONT), (C_ARGS), (C_TYPED))                          \
    COLLECTIVE(X, ncclGather, GATHER, (C_FRONT, int root), (C_ARGS, root),                         \
               (C_TYPED, c.peer = root))                                                           \
    COLLECTIVE(X, ncclScatter, SCATTER, (C_FRONT, int root), (C_ARGS, root),                       \
               (C_TYPED, c.peer = root))                                                           \
    X(ncclSend, SEND, (const void *send, size_t count, int type, int peer, C_TAIL),                \
      (send, count, type, peer, comm, stream), (C_TYPED, c.peer = peer))                           \
    X(ncclRecv, RECV, (void *recv, size_t count, int type, int peer, C_TAIL),                      \
      (recv, count, type, peer, comm, stream), (C_TYPED, c.peer = peer))

/* What RCCL alone has. */
#define OPERATIONS_RCCL(X)                                                                         \
    X(ncclAllToAll, ALLTOALL, (C_FRONT, C_TAIL), (C_ARGS, comm, stream), (C_TYPED))                \
    X(ncclAllToAllv, ALLTOALL_V,                                                                   \
      (const void *send, const size_t *counts, const size_t *displs, void *recv,                   \
       const size_t *recv_counts, const size_t *recv_displs, int type, C_TAIL),                    \
      (send, counts, displs, recv, recv_counts, recv_displs, type, comm, stream),                  \
      (c.dtype = type_of(type), c.stream = stream, c.has_part = true, c.peer2 = -1,                \
       c.sent = C_SUM(counts), c.received = C_SUM(recv_counts)))                                   \
    X(ncclAllReduceWithBias, ALLREDUCE, (C_FRONT, int op, C_TAIL, const void *bias),               \
      (C_ARGS, op, comm, stream, bias), (C_TYPED, C_REDUCE))

#define X(fn, kind, params, args, facts)                                                           \
    HOOK_CALL(&nccl, SYSTEM_ERROR, fn, kind, comm, params, args, facts)
OPERATIONS(X)
OPERATIONS_RCCL(X)
#undef X

/* ---- communicators and groups --------------------------------------------------------------- */

/* name, op, communicator, parameters, arguments, what is done before and after the call */
#define MANAGEMENT(X)                                                                              \
    X(ncclCommInitRank, COMMUNICATOR, NULL, (void **comm, int n, nccl_id id, int rank),            \
      (comm, n, id, rank), , made(rc, comm, id_hash(&id), n, rank))                                \
    X(ncclCommInitRankConfig, COMMUNICATOR, NULL,                                                  \
      (void **comm, int n, nccl_id id, int rank, void *config), (comm, n, id, rank, config), ,     \
      made(rc, comm, id_hash(&id), n, rank))                                                       \
    X(ncclCommInitRankScalable, COMMUNICATOR, NULL,                                                \
      (void **comm, int n, int rank, int ids, nccl_id *id, void *config),                          \
      (comm, n, rank, ids, id, config), , made(rc, comm, id_hash(id), n, rank))                    \
    X(ncclCommInitAll, COMMUNICATOR, NULL, (void **comm, int n, const int *devices),               \
      (comm, n, devices), , made_all(rc, comm, n))                                                 \
    X(ncclCommSplit, COMMUNICATOR, comm,                                                           \
      (void *comm, int color, int key, void **newcomm, void *config),                              \
      (comm, color, key, newcomm, config), uint64_t uid = child_of(comm, color),                   \
      made_child(color == NO_COLOR ? -1 : rc, newcomm, uid, false))                                \
    X(ncclCommShrink, COMMUNICATOR, comm,                                                          \
      (void *comm, int *without, int n, void **newcomm, void *config, int flags),                  \
      (comm, without, n, newcomm, config, flags), uint64_t uid = child_of(comm, NO_COLOR),         \
      made_child(rc, newcomm, uid, false))                                                         \
    X(ncclCommGrow, COMMUNICATOR, comm,                                                            \
      (void *comm, int n, const nccl_id *id, int rank, void **newcomm, void *config),              \
      (comm, n, id, rank, newcomm, config),                                                        \
      uint64_t uid = comm != NULL ? child_of(comm, n) : id_hash(id),                               \
      made_child(rc, newcomm, uid, true))                                                          \
    X(ncclCommRevoke, COMMUNICATOR, comm, (void *comm, int flags), (comm, flags), , )              \
    X(ncclCommSuspend, COMMUNICATOR, comm, (void *comm, int flags), (comm, flags), , )             \
    X(ncclCommResume, COMMUNICATOR, comm, (void *comm), (comm), , )                                \
    X(ncclCommFinalize, COMMUNICATOR, comm, (void *comm), (comm), , )                              \
    X(ncclCommDestroy, COMMUNICATOR, comm, (void *comm), (comm), hook_ccl_gone(comm), )            \
    X(ncclCommAbort, COMMUNICATOR, comm, (void *comm), (comm), hook_ccl_gone(comm), )              \
    X(ncclGroupStart, GROUP_CALL, NULL, (void), (), , hook_ccl_group_start())                      \
    X(ncclGroupEnd, GROUP_CALL, NULL, (void), (), , hook_ccl_group_end())

#define X(fn, kind, handle, params, args, before, after)                                           \
    HOOK_MANAGE(&nccl, SYSTEM_ERROR, fn, kind, handle, params, args, before, after)
MANAGEMENT(X)
#undef X

/* Asked often, or without a meaning for time: passed on as they are. */
#define PASSED(X)                                                                                  \
    X(ncclGetVersion)                                                                              \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommGetUniqueId)                                                                         \
    X(ncclGroupSimulateEnd)                                                                        \
    X(ncclCommCount)                                                                               \
    X(ncclCommUserRank)                                                                            \
    X(ncclCommCuDevice)                                                                            \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommRegister)                                                                            \
    X(ncclCommDeregister)                                                                          \
    X(ncclCommWindowRegister)                                                                      \
    X(ncclCommWindowDeregister)                                                                    \
    X(ncclMemAlloc)                                                                                \
    X(ncclMemFree)                                                                                 \
    X(ncclRedOpCreatePreMulSum)                                                                    \
    X(ncclRedOpDestroy)

#define X(name) HOOK_PASS(&nccl, name, missing)
PASSED(X)
#undef X

/* One-sided: their parameters have changed from version to version. */
HOOK_COUNT(&nccl, ncclPutSignal, PUT, missing)
HOOK_COUNT(&nccl, ncclSignal, PUT, missing)
HOOK_COUNT(&nccl, ncclWaitSignal, WINDOW, missing)
