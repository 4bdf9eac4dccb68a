/* SPDX-License-Identifier: MIT
 *
 * hook_hccl: the public functions of HCCL; operators lie in libhccl.so, since the open release
 * communicators in libhcomm.so.  The vendor's profiler leaves out HcclAllGatherV,
 * HcclReduceScatterV, HcclAlltoAllVC, HcclBarrier and everything about communicators; here all
 * are recorded.  The library tells a communicator's name, which is the same on all its ranks.
 */
#include "mstx/hook_ccl.h"

#include <string.h>

enum { INTERNAL = 4, SEND = 0 };

static const char *const owners[] = {"libhccl.so", "libhcomm.so", NULL};

/* One transfer of a batch, as the header lays it out. */
struct item {
    int32_t what; /* SEND or receive */
    void *buf;
    uint64_t count;
    int32_t type;
    uint32_t rank;
};

static int missing(void)
{
    return INTERNAL;
}
static const char *missing_text(void)
{
    return "HCCL is not there";
}

/* ---- words ------------------------------------------------------------------------------- */

/* The numbers of a capture are those of HCCL; what it does not know is not known. */
static uint8_t type_of(int32_t type)
{
    bool is_known = (type >= 0 && type <= 12) || (type >= 14 && type <= 17);
    return (uint8_t)(is_known ? type : MSTX_TYPE_NA);
}
static uint8_t reduce_of(int32_t op)
{
    return (uint8_t)(op >= 0 && op <= 3 ? op : MSTX_REDUCE_NONE);
}

/* ---- communicators ------------------------------------------------------------------------- */

struct hook_family hook_hccl_family = {.name = "HCCL", .owners = owners};
static enum mstx_comm_lib kind(void)
{
    return MSTX_LIB_HCCL;
}
static bool learn(void *comm, struct mstx_group_info *info, char name[128]);
static const struct hook_ccl_lib hccl = {
    .family = &hook_hccl_family, .device = MSTX_DEVICE_ACL, .kind = kind, .learn = learn};

static bool learn(void *comm, struct mstx_group_info *info, char name[128])
{
    int (*get_name)(void *, char *) = HOOK_CCL_FN(&hccl, HcclGetCommName, (void *, char *));
    int (*get_size)(void *, uint32_t *) = HOOK_CCL_FN(&hccl, HcclGetRankSize, (void *, uint32_t *));
    int (*get_rank)(void *, uint32_t *) = HOOK_CCL_FN(&hccl, HcclGetRankId, (void *, uint32_t *));
    uint32_t size = 0, rank = 0;
    if (get_name == NULL || get_size == NULL || get_rank == NULL || get_name(comm, name) != 0 ||
        get_size(comm, &size) != 0 || get_rank(comm, &rank) != 0)
        return false;
    info->uid = mstx_group_hash(0, name, strnlen(name, 128));
    info->size = (int32_t)size;
    info->rank = (int32_t)rank;
    return true;
}

static void made(int rc, void *const *comm)
{
    char name[128] = "";
    struct mstx_group_info info = {.name = name};
    if (rc == 0 && comm != NULL && *comm != NULL && learn(*comm, &info, name))
        hook_ccl_made(&hccl, *comm, &info);
}

static void made_all(int rc, void *const *comms, uint32_t n)
{
    for (uint32_t i = 0; i < n && comms != NULL; i++)
        made(rc, comms + i);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(uint64_t count, int32_t type)
{
    return count * mstx_comm_type_bytes(type_of(type));
}

/* What this rank sends by a matrix of counts, row by sender; by column: what it receives. */
static uint64_t matrix_bytes(const void *matrix, void *comm, int32_t type, bool by_column)
{
    const struct hook_ccl_comm *c = hook_ccl_of(&hccl, comm);
    const uint64_t *m = matrix;
    uint64_t sum = 0;
    if (c == NULL || m == NULL || c->size <= 0 || c->rank < 0)
        return 0;
    size_t n = (size_t)c->size, rank = (size_t)c->rank;
    for (size_t i = 0; i < n; i++)
        sum += by_column ? m[i * n + rank] : m[rank * n + i];
    return bytes_of(sum, type);
}

static uint64_t items_bytes(const struct item *it, uint32_t n, bool sends)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n && it != NULL; i++) {
        if ((it[i].what == SEND) == sends)
            sum += bytes_of(it[i].count, it[i].type);
    }
    return sum;
}

/* ---- operations: name, op, parameters, arguments, facts ------------------------------------- */

#define C_TAIL       void *comm, void *stream
#define C_TYPED      c.count = count, c.dtype = type_of(type), c.stream = stream
#define C_REDUCE     c.reduce = reduce_of(op)
#define C_PEER(rank) c.peer = (int32_t)(rank)
#define C_SUM(of, t) bytes_of(hook_ccl_sum(&hccl, comm, of), t)
#define C_PART(s, r) c.has_part = true, c.peer2 = -1, c.sent = (s), c.received = (r)

#define OPERATIONS(X)                                                                              \
    X(HcclAllReduce, ALLREDUCE,                                                                    \
      (void *send, void *recv, uint64_t count, int32_t type, int32_t op, C_TAIL),                  \
      (send, recv, count, type, op, comm, stream), (C_TYPED, C_REDUCE))                            \
    X(HcclBroadcast, BROADCAST, (void *buf, uint64_t count, int32_t type, uint32_t root, C_TAIL),  \
      (buf, count, type, root, comm, stream), (C_TYPED, C_PEER(root)))                             \
    X(HcclReduceScatter, REDUCE_SCATTER,                                                           \
      (void *send, void *recv, uint64_t count, int32_t type, int32_t op, C_TAIL),                  \
      (send, recv, count, type, op, comm, stream), (C_TYPED, C_REDUCE))                            \
    X(HcclReduceScatterV, REDUCE_SCATTER_V,                                                        \
      (void *send, const void *counts, const void *displs, void *recv, uint64_t count,             \
       int32_t type, int32_t op, C_TAIL),                                                          \
      (send, counts, displs, recv, count, type, op, comm, stream),                                 \
      (C_TYPED, C_REDUCE, C_PART(C_SUM(counts, type), bytes_of(count, type))))                     \
    X(HcclScatter, SCATTER,                                                                        \
      (void *send, void *recv, uint64_t count, int32_t type, uint32_t root, C_TAIL),               \
      (send, recv, count, type, root, comm, stream), (C_TYPED, C_PEER(root)))                      \
    X(HcclAllGather, ALLGATHER, (void *send, void *recv, uint64_t count, int32_t type, C_TAIL),    \
      (send, recv, count, type, comm, stream), (C_TYPED))                                          \
    X(HcclAllGatherV, ALLGATHER_V,                                                                 \
      (void *send, uint64_t count, void *recv, const void *counts, const void *displs,             \
       int32_t type, C_TAIL),                                                                      \
      (send, count, recv, counts, displs, type, comm, stream),                                     \
      (C_TYPED, C_PART(bytes_of(count, type), C_SUM(counts, type))))                               \
    X(HcclReduce, REDUCE,                                                                          \
      (void *send, void *recv, uint64_t count, int32_t type, int32_t op, uint32_t root, C_TAIL),   \
      (send, recv, count, type, op, root, comm, stream), (C_TYPED, C_REDUCE, C_PEER(root)))        \
    X(HcclAlltoAll, ALLTOALL,                                                                      \
      (const void *send, uint64_t count, int32_t type, const void *recv, uint64_t recv_count,      \
       int32_t recv_type, C_TAIL),                                                                 \
      (send, count, type, recv, recv_count, recv_type, comm, stream), (C_TYPED))                   \
    X(HcclAlltoAllV, ALLTOALL_V,                                                                   \
      (const void *send, const void *counts, const void *displs, int32_t type, const void *recv,   \
       const void *recv_counts, const void *recv_displs, int32_t recv_type, C_TAIL),               \
      (send, counts, displs, type, recv, recv_counts, recv_displs, recv_type, comm, stream),       \
      (c.dtype = type_of(type), c.stream = stream,                                                 \
       C_PART(C_SUM(counts, type), C_SUM(recv_counts, recv_type))))                                \
    X(HcclAlltoAllVC, ALLTOALL_V,                                                                  \
      (const void *send, const void *matrix, int32_t type, const void *recv, int32_t recv_type,    \
       C_TAIL),                                                                                    \
      (send, matrix, type, recv, recv_type, comm, stream),                                         \
      (c.dtype = type_of(type), c.stream = stream,                                                 \
       C_PART(matrix_bytes(matrix, comm, type, false),                                             \
              matrix_bytes(matrix, comm, recv_type, true))))                                       \
    X(HcclSend, SEND, (void *buf, uint64_t count, int32_t type, uint32_t peer, C_TAIL),            \
      (buf, count, type, peer, comm, stream), (C_TYPED, C_PEER(peer)))                             \
    X(HcclRecv, RECV, (void *buf, uint64_t count, int32_t type, uint32_t peer, C_TAIL),            \
      (buf, count, type, peer, comm, stream), (C_TYPED, C_PEER(peer)))                             \
    X(HcclBatchSendRecv, BATCH_SENDRECV, (struct item * items, uint32_t n, C_TAIL),                \
      (items, n, comm, stream),                                                                    \
      (c.count = n, c.stream = stream,                                                             \
       C_PART(items_bytes(items, n, true), items_bytes(items, n, false))))                         \
    X(HcclBarrier, BARRIER, (C_TAIL), (comm, stream), (c.stream = stream))

#define X(fn, kind, params, args, facts)                                                           \
    HOOK_CALL(&hccl, INTERNAL, fn, kind, comm, params, args, facts)
OPERATIONS(X)
#undef X

/* ---- communicators and groups --------------------------------------------------------------- */

/* name, op, communicator, parameters, arguments, what is done before and after the call */
#define MANAGEMENT(X)                                                                              \
    X(HcclCommInitRootInfo, COMMUNICATOR, NULL,                                                    \
      (uint32_t n, const void *root, uint32_t rank, void **comm), (n, root, rank, comm), ,         \
      made(rc, comm))                                                                              \
    X(HcclCommInitRootInfoConfig, COMMUNICATOR, NULL,                                              \
      (uint32_t n, const void *root, uint32_t rank, const void *config, void **comm),              \
      (n, root, rank, config, comm), , made(rc, comm))                                             \
    X(HcclCommInitClusterInfo, COMMUNICATOR, NULL, (const char *file, uint32_t rank, void **comm), \
      (file, rank, comm), , made(rc, comm))                                                        \
    X(HcclCommInitClusterInfoConfig, COMMUNICATOR, NULL,                                           \
      (const char *file, uint32_t rank, void *config, void **comm), (file, rank, config, comm), ,  \
      made(rc, comm))                                                                              \
    X(HcclCommInitAll, COMMUNICATOR, NULL, (uint32_t n, int32_t * devices, void **comms),          \
      (n, devices, comms), , made_all(rc, comms, n))                                               \
    X(HcclCreateSubCommConfig, COMMUNICATOR, (parent != NULL ? *parent : NULL),                    \
      (void **parent, uint32_t n, uint32_t *ranks, uint64_t id, uint32_t rank, void *config,       \
       void **comm),                                                                               \
      (parent, n, ranks, id, rank, config, comm), , made(rc, comm))                                \
    X(HcclCommDestroy, COMMUNICATOR, comm, (void *comm), (comm), hook_ccl_gone(comm), )            \
    X(HcclCommSuspend, COMMUNICATOR, comm, (void *comm), (comm), , )                               \
    X(HcclCommResume, COMMUNICATOR, comm, (void *comm), (comm), , )                                \
    X(HcclGroupStart, GROUP_CALL, NULL, (void), (), , hook_ccl_group_start())                      \
    X(HcclGroupEnd, GROUP_CALL, NULL, (void), (), , hook_ccl_group_end())

#define X(fn, kind, handle, params, args, before, after)                                           \
    HOOK_MANAGE(&hccl, INTERNAL, fn, kind, handle, params, args, before, after)
MANAGEMENT(X)
#undef X

/* Asked often, or without a meaning for time: passed on as they are. */
#define PASSED(X)                                                                                  \
    X(HcclGetRootInfo, missing)                                                                    \
    X(HcclGetRankSize, missing)                                                                    \
    X(HcclGetRankId, missing)                                                                      \
    X(HcclGetCommName, missing)                                                                    \
    X(HcclGetCommAsyncError, missing)                                                              \
    X(HcclGetErrorString, missing_text)                                                            \
    X(HcclSetConfig, missing)                                                                      \
    X(HcclGetConfig, missing)

#define X(name, otherwise) HOOK_PASS(&hccl, name, otherwise)
PASSED(X)
#undef X

/* HCCL has no other interface that would tell: at the end, a library that was there and silent. */
__attribute__((destructor)) static void say_past_hooks(void)
{
    if (!hook_copy_is_called(&hook_hccl_family) && mstx_comm_on() &&
        hook_find("HcclAllReduce", owners) != NULL)
        mstx_comm_note(
            "HCCL was loaded and none of its calls came to the hooks: it was not used, or "
            "is linked -Bsymbolic, opened RTLD_DEEPBIND or looked up (try --hook_dlsym)");
}
