/* SPDX-License-Identifier: MIT
 *
 * A stand-in for libhccl.so over streams of tests/standin/acl.c, with every operator of the
 * header.
 */
#include "tests/standin/ccl.h"

enum { PARA = 1, INTERNAL = 4 };

typedef struct {
    char internal[4108];
} HcclRootInfo;
struct item {
    int32_t what;
    void *buf;
    uint64_t count;
    int32_t type;
    uint32_t rank;
};

#define HCCL(name, ...)                                                                            \
    STANDIN_API int name(__VA_ARGS__);                                                             \
    STANDIN_API int name(__VA_ARGS__)

HCCL(HcclGetRootInfo, HcclRootInfo *root)
{
    memset(root, 0, sizeof *root);
    snprintf(root->internal, 100, "standin-hccl-%d-%lld", (int)getpid(), (long long)standin_now());
    return 0;
}
HCCL(HcclCommInitRootInfo, uint32_t n, const HcclRootInfo *root, uint32_t rank, void **comm)
{
    *comm = ccl_new(root->internal, (int)n, (int)rank);
    return *comm != NULL ? 0 : PARA;
}
HCCL(HcclCommInitRootInfoConfig, uint32_t n, const HcclRootInfo *root, uint32_t rank,
     const void *config, void **comm)
{
    (void)config;
    return HcclCommInitRootInfo(n, root, rank, comm);
}
HCCL(HcclCommInitAll, uint32_t n, int32_t *devices, void **comms)
{
    HcclRootInfo root;
    (void)devices;
    HcclGetRootInfo(&root);
    for (uint32_t i = 0; i < n; i++) {
        if (HcclCommInitRootInfo(n, &root, i, &comms[i]) != 0)
            return PARA;
    }
    return 0;
}
HCCL(HcclCreateSubCommConfig, void **parent, uint32_t n, uint32_t *ranks, uint64_t id,
     uint32_t rank, void *config, void **comm)
{
    char name[200];
    (void)ranks;
    (void)config;
    snprintf(name, sizeof name, "%.100s-sub%llu", ((struct ccl_comm *)*parent)->name,
             (unsigned long long)id);
    *comm = ccl_new(name, (int)n, (int)rank);
    return *comm != NULL ? 0 : PARA;
}
HCCL(HcclCommDestroy, void *comm)
{
    if (comm == NULL)
        return PARA;
    ccl_free(comm);
    return 0;
}
HCCL(HcclGetRankSize, void *comm, uint32_t *n)
{
    *n = (uint32_t)((struct ccl_comm *)comm)->size;
    return 0;
}
HCCL(HcclGetRankId, void *comm, uint32_t *rank)
{
    *rank = (uint32_t)((struct ccl_comm *)comm)->rank;
    return 0;
}
HCCL(HcclGetCommName, void *comm, char *name)
{
    snprintf(name, 128, "%.127s", ((struct ccl_comm *)comm)->name);
    return 0;
}
STANDIN_API const char *HcclGetErrorString(int rc);
STANDIN_API const char *HcclGetErrorString(int rc)
{
    return rc == 0 ? "success" : "failure";
}

static int all(void *comm, void *stream)
{
    return comm == NULL ? PARA : ccl_collective(comm, stream) == 0 ? 0 : INTERNAL;
}
static int pair(void *comm, uint32_t peer, void *stream, int sends)
{
    return comm == NULL ? PARA : ccl_transfer(comm, (int)peer, stream, sends) == 0 ? 0 : INTERNAL;
}

#define N    __attribute__((unused))
#define TAIL void *comm, void *stream
#define OPERATION(name, ...)                                                                       \
    HCCL(name, __VA_ARGS__)                                                                        \
    {                                                                                              \
        return all(comm, stream);                                                                  \
    }
OPERATION(HcclAllReduce, void *send N, void *recv N, uint64_t count N, int32_t type N, int32_t op N,
          TAIL)
OPERATION(HcclBroadcast, void *buf N, uint64_t count N, int32_t type N, uint32_t root N, TAIL)
OPERATION(HcclReduceScatter, void *send N, void *recv N, uint64_t count N, int32_t type N,
          int32_t op N, TAIL)
OPERATION(HcclReduceScatterV, void *send N, const void *counts N, const void *displs N,
          void *recv N, uint64_t count N, int32_t type N, int32_t op N, TAIL)
OPERATION(HcclScatter, void *send N, void *recv N, uint64_t count N, int32_t type N,
          uint32_t root N, TAIL)
OPERATION(HcclAllGather, void *send N, void *recv N, uint64_t count N, int32_t type N, TAIL)
OPERATION(HcclAllGatherV, void *send N, uint64_t count N, void *recv N, const void *counts N,
          const void *displs N, int32_t type N, TAIL)
OPERATION(HcclReduce, void *send N, void *recv N, uint64_t count N, int32_t type N, int32_t op N,
          uint32_t root N, TAIL)
OPERATION(HcclAlltoAll, const void *send N, uint64_t count N, int32_t type N, const void *recv N,
          uint64_t recv_count N, int32_t recv_type N, TAIL)
OPERATION(HcclAlltoAllV, const void *send N, const void *counts N, const void *displs N,
          int32_t type N, const void *recv N, const void *recv_counts N, const void *recv_displs N,
          int32_t recv_type N, TAIL)
OPERATION(HcclAlltoAllVC, const void *send N, const void *matrix N, int32_t type N,
          const void *recv N, int32_t recv_type N, TAIL)
OPERATION(HcclBarrier, TAIL)

HCCL(HcclSend, void *buf N, uint64_t count N, int32_t type N, uint32_t peer, TAIL)
{
    return pair(comm, peer, stream, 1);
}
HCCL(HcclRecv, void *buf N, uint64_t count N, int32_t type N, uint32_t peer, TAIL)
{
    return pair(comm, peer, stream, 0);
}
HCCL(HcclBatchSendRecv, struct item *items, uint32_t n, TAIL)
{
    for (uint32_t i = 0; i < n; i++) {
        int rc = pair(comm, items[i].rank, stream, items[i].what == 0);
        if (rc != 0)
            return rc;
    }
    return 0;
}
