/* SPDX-License-Identifier: MIT
 *
 * A stand-in for libnccl.so.2 over streams of tests/standin/cuda.c.  As in the real library a
 * group is carried out at its end, and ncclBcast calls ncclBroadcast through its public name.
 */
#include "tests/standin/ccl.h"

#include <dlfcn.h>

#if !defined(STANDIN_VERSION)
#define STANDIN_VERSION 23007
#endif
enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, QUEUED_MAX = 4096 };

typedef struct {
    char bytes[128];
} ncclUniqueId;

#define NCCL(name, ...)                                                                            \
    STANDIN_API int name(__VA_ARGS__);                                                             \
    STANDIN_API int name(__VA_ARGS__)

/* ---- groups -------------------------------------------------------------------------- */

static __thread int depth;
static __thread struct queued {
    struct ccl_comm *comm;
    void *stream;
    int peer, sends; /* peer -1: a collective */
} queue[QUEUED_MAX];
static __thread int queued;

static int carry_out(const struct queued *q)
{
    int rc = q->peer < 0 ? ccl_collective(q->comm, q->stream)
                         : ccl_transfer(q->comm, q->peer, q->stream, q->sends);
    return rc == 0 ? 0 : SYSTEM_ERROR;
}

static int issue(void *comm, void *stream, int peer, int sends)
{
    const struct queued q = {comm, stream, peer, sends};
    if (!ccl_is_ours(comm))
        return INVALID_ARGUMENT;
    if (depth == 0)
        return carry_out(&q);
    if (queued < QUEUED_MAX)
        queue[queued++] = q;
    return 0;
}

NCCL(ncclGroupStart, void)
{
    depth++;
    return 0;
}
NCCL(ncclGroupEnd, void)
{
    int rc = 0;
    if (depth == 0)
        return INVALID_USAGE;
    if (--depth > 0)
        return 0;
    for (int i = 0; i < queued; i++)
        rc = carry_out(&queue[i]) != 0 ? SYSTEM_ERROR : rc;
    queued = 0;
    return rc;
}

/* ---- communicators ------------------------------------------------------------------------ */

NCCL(ncclGetVersion, int *version)
{
    *version = STANDIN_VERSION;
    return 0;
}
NCCL(ncclGetUniqueId, ncclUniqueId *id)
{
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "standin-nccl-%d-%lld", (int)getpid(),
             (long long)standin_now());
    return 0;
}
/* As the library tells a profiler that it found: the same number on all ranks. */
struct profiler {
    const char *name;
    int (*init)(void **, uint64_t, int *, const char *, int, int, int, void *);
};
static struct ccl_comm *comm_new(const char *name, int size, int rank)
{
    struct ccl_comm *c = ccl_new(name, size, rank);
    const struct profiler *p = dlsym(RTLD_DEFAULT, "ncclProfiler_v6");
    uint64_t id = 5381;
    void *context;
    int mask = 0;
    for (const char *at = name; *at != '\0'; at++)
        id = id * 33 + (unsigned char)*at;
    if (c != NULL && p != NULL && getenv("NCCL_PROFILER_PLUGIN") != NULL)
        p->init(&context, id, &mask, NULL, 1, size, rank, NULL);
    return c;
}

NCCL(ncclCommInitRank, void **comm, int size, ncclUniqueId id, int rank)
{
    *comm = comm_new(id.bytes, size, rank);
    return *comm != NULL ? 0 : INVALID_ARGUMENT;
}
NCCL(ncclCommInitRankConfig, void **comm, int size, ncclUniqueId id, int rank, void *config)
{
    (void)config;
    return ncclCommInitRank(comm, size, id, rank);
}
NCCL(ncclCommInitAll, void **comms, int n, const int *devices)
{
    ncclUniqueId id;
    (void)devices;
    ncclGetUniqueId(&id);
    for (int i = 0; i < n; i++) {
        int rc = ncclCommInitRank(&comms[i], n, id, i);
        if (rc != 0)
            return rc;
    }
    return 0;
}
/* The key is the new rank: enough for the tests. */
NCCL(ncclCommSplit, void *comm, int color, int key, void **newcomm, void *config)
{
    struct ccl_comm *c = comm;
    char name[200];
    (void)config;
    *newcomm = NULL;
    if (!ccl_is_ours(c))
        return INVALID_ARGUMENT;
    snprintf(name, sizeof name, "%.100s-%llu-%d", c->name, (unsigned long long)c->children++,
             color);
    if (color >= 0)
        *newcomm = comm_new(name, c->size, key);
    return 0;
}
/* Ranks that were there keep their number; those that join have the id alone. */
NCCL(ncclCommGetUniqueId, void *comm, ncclUniqueId *id)
{
    struct ccl_comm *c = comm;
    if (!ccl_is_ours(c))
        return INVALID_ARGUMENT;
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "%.100s-grown%llu", c->name,
             (unsigned long long)c->children);
    return 0;
}
NCCL(ncclCommGrow, void *comm, int size, const ncclUniqueId *id, int rank, void **newcomm,
     void *config)
{
    struct ccl_comm *c = comm;
    ncclUniqueId own;
    (void)config;
    if (c != NULL && ncclCommGetUniqueId(c, &own) != 0)
        return INVALID_ARGUMENT;
    if (c != NULL)
        c->children++;
    *newcomm = comm_new(c != NULL ? own.bytes : id->bytes, size, c != NULL ? c->rank : rank);
    return *newcomm != NULL ? 0 : INVALID_ARGUMENT;
}
NCCL(ncclCommFinalize, void *comm)
{
    return comm != NULL ? 0 : INVALID_ARGUMENT;
}
NCCL(ncclCommDestroy, void *comm)
{
    if (!ccl_is_ours(comm))
        return INVALID_ARGUMENT;
    ccl_free(comm);
    return 0;
}
NCCL(ncclCommAbort, void *comm)
{
    return ncclCommDestroy(comm);
}
NCCL(ncclCommCount, void *comm, int *n)
{
    *n = ((struct ccl_comm *)comm)->size;
    return 0;
}
NCCL(ncclCommUserRank, void *comm, int *rank)
{
    *rank = ((struct ccl_comm *)comm)->rank;
    return 0;
}
NCCL(ncclCommGetAsyncError, void *comm, int *error)
{
    *error = 0;
    return comm != NULL ? 0 : INVALID_ARGUMENT;
}
/* A struct by value that lies on the stack and more arguments than registers: what a hook that
 * passes calls on must not disturb.  The prototype is the tests'. */
NCCL(ncclPutSignal, const void *buf, size_t count, int type, int peer, void *window, size_t at,
     int signal, ncclUniqueId tag, double scale, void *comm, void *stream)
{
    return buf != NULL && count == 11 && type == 7 && peer == 1 && window != NULL && at == 13 &&
                   signal == 3 && strcmp(tag.bytes, "tag") == 0 && scale == 0.5 && comm != NULL &&
                   stream == NULL
               ? 0
               : INVALID_ARGUMENT;
}

/* ---- operations ------------------------------------------------------------------------------ */

#define BUFFERS const void *send, void *recv, size_t count, int type
#define COLLECTIVE(name, ...)                                                                      \
    STANDIN_API int name(BUFFERS, __VA_ARGS__ void *comm, void *stream);                           \
    STANDIN_API int name(BUFFERS, __VA_ARGS__ void *comm, void *stream)                            \
    {                                                                                              \
        (void)send;                                                                                \
        (void)recv;                                                                                \
        (void)count;                                                                               \
        return type < 0 ? INVALID_ARGUMENT : issue(comm, stream, -1, 0);                           \
    }
#define CONFIGURED(name, ...)                                                                      \
    STANDIN_API int name(BUFFERS, __VA_ARGS__ void *comm, void *stream, const void *config);       \
    STANDIN_API int name(BUFFERS, __VA_ARGS__ void *comm, void *stream, const void *config)        \
    {                                                                                              \
        (void)send;                                                                                \
        (void)recv;                                                                                \
        (void)count;                                                                               \
        return type < 0 || config == NULL ? INVALID_ARGUMENT : issue(comm, stream, -1, 0);         \
    }
#define COMMA ,
COLLECTIVE(ncclAllReduce, int op __attribute__((unused)) COMMA)
CONFIGURED(ncclAllReduceConfig, int op __attribute__((unused)) COMMA)
COLLECTIVE(ncclReduce, int op __attribute__((unused)) COMMA int root __attribute__((unused)) COMMA)
COLLECTIVE(ncclBroadcast, int root __attribute__((unused)) COMMA)
COLLECTIVE(ncclAllGather, )
COLLECTIVE(ncclReduceScatter, int op __attribute__((unused)) COMMA)
COLLECTIVE(ncclAlltoAll, )
COLLECTIVE(ncclGather, int root __attribute__((unused)) COMMA)
COLLECTIVE(ncclScatter, int root __attribute__((unused)) COMMA)

STANDIN_API int ncclAllToAllv(const void *, const size_t *, const size_t *, void *, const size_t *,
                              const size_t *, int, void *, void *);
STANDIN_API int ncclAllToAllv(const void *send, const size_t *counts, const size_t *displs,
                              void *recv, const size_t *recv_counts, const size_t *recv_displs,
                              int type, void *comm, void *stream)
{
    (void)send;
    (void)recv;
    bool is_whole = counts != NULL && displs != NULL && recv_counts != NULL && recv_displs != NULL;
    return !is_whole || type < 0 ? INVALID_ARGUMENT : issue(comm, stream, -1, 0);
}
/* Of a version that nobody has seen. */
NCCL(ncclStandinFused, BUFFERS, int op, void *comm, void *stream)
{
    return ncclAllReduce(send, recv, count, type, op, comm, stream);
}
NCCL(ncclBcast, void *buf, size_t count, int type, int root, void *comm, void *stream)
{
    return ncclBroadcast(buf, buf, count, type, root, comm, stream);
}
NCCL(ncclSend, const void *buf, size_t count, int type, int peer, void *comm, void *stream)
{
    (void)buf;
    (void)count;
    (void)type;
    return issue(comm, stream, peer, 1);
}
NCCL(ncclRecv, void *buf, size_t count, int type, int peer, void *comm, void *stream)
{
    (void)buf;
    (void)count;
    (void)type;
    return issue(comm, stream, peer, 0);
}
