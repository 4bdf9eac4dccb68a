/* SPDX-License-Identifier: MIT
 *
 * ccl_app: a program that communicates by NCCL, to which it is linked, or by HCCL, which it
 * looks up by dlsym as frameworks do.  It is also built as a module that tests/programs/loader.c
 * opens RTLD_LOCAL.  Exit status 0: every call returned what it should.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char bytes[128];
} nccl_id;
int cuInit(unsigned flags);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuLaunchHostFunc(void *stream, void (*fn)(void *), void *arg);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuDevicePrimaryCtxReset_v2(int device);
int ncclGetVersion(int *version);
int ncclGetUniqueId(nccl_id *id);
int ncclCommInitRank(void **comm, int n, nccl_id id, int rank);
int ncclCommInitAll(void **comms, int n, const int *devices);
int ncclCommSplit(void *comm, int color, int key, void **newcomm, void *config);
int ncclCommDestroy(void *comm);
int ncclCommAbort(void *comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclAllReduceConfig(const void *, void *, size_t, int, int, void *, void *, const void *);
int ncclAllToAllv(const void *, const size_t *, const size_t *, void *, const size_t *,
                  const size_t *, int, void *, void *);
int ncclReduceScatter(const void *, void *, size_t, int, int, void *, void *);
int ncclBroadcast(const void *, void *, size_t, int, int, void *, void *);
int ncclBcast(void *, size_t, int, int, void *, void *);
int ncclAllGather(const void *, void *, size_t, int, void *, void *);
int ncclSend(const void *, size_t, int, int, void *, void *);
int ncclRecv(void *, size_t, int, int, void *, void *);
int ncclPutSignal(const void *buf, size_t count, int type, int peer, void *window, size_t at,
                  int signal, nccl_id tag, double scale, void *comm, void *stream);
int ncclStandinFused(const void *, void *, size_t, int, int, void *, void *);
__attribute__((weak)) int ncclCommShrink(void *comm, int *without, int n, void **newcomm,
                                         void *config, int flags);
int ncclCommGetUniqueId(void *comm, nccl_id *id);
int ncclCommGrow(void *comm, int n, const nccl_id *id, int rank, void **newcomm, void *config);
__attribute__((visibility("default"))) int run(int argc, char **argv);

enum { FLOAT = 7, SUM = 0 };
static int wrong;
static void good(int rc)
{
    wrong += rc != 0;
}

static void *stream_new(void)
{
    void *s = NULL;
    good(cuInit(0));
    good(cuStreamCreate(&s, 1));
    return s;
}

static void *comm_new(const char *id, int n, int rank)
{
    nccl_id name = {{0}};
    void *c = NULL;
    snprintf(name.bytes, sizeof name.bytes, "%s-%d", id, n == 1 ? (int)getpid() : 0);
    good(ncclCommInitRank(&c, n, name, rank));
    return c;
}

/* ---- NCCL --------------------------------------------------------------------------------- */

static int do_all(long n)
{
    float a[8] = {0}, b[8];
    void *s = stream_new(), *c = comm_new("all", 1, 0), *child = NULL;
    for (long i = 0; i < n; i++)
        good(ncclAllReduce(a, b, 8, FLOAT, SUM, c, s));
    good(ncclBroadcast(a, b, 4, FLOAT, 0, c, s));
    good(ncclBcast(b, 4, FLOAT, 0, c, s));
    good(ncclAllGather(a, b, 2, FLOAT, c, s));
    good(ncclCommSplit(c, 0, 0, &child, NULL));
    good(ncclReduceScatter(a, b, 8, 1, 77, child, s)); /* a reduction of the user's */
    good(ncclAllReduce(a, b, 8, 99, SUM, c, s));       /* a type of the future */
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(child));
    good(ncclCommDestroy(c));
    good(cuStreamDestroy_v2(s));
    return wrong;
}

/* Calls of later versions, and of RCCL. */
static int do_newer(void)
{
    float a[8] = {0};
    const size_t counts[1] = {6}, displs[1] = {0};
    void *s = stream_new(), *c = comm_new("newer", 1, 0);
    good(ncclAllReduceConfig(a, a, 8, FLOAT, SUM, c, s, a));
    good(ncclAllToAllv(a, counts, displs, a, counts, displs, FLOAT, c, s));
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(c));
    return wrong;
}

/* One of two modules with a copy of NCCL each: calls must come to the module's own.  The second
 * uses and destroys a communicator of the first, whose copy alone can do that. */
#if !defined(OWN_VERSION)
#define OWN_VERSION 23007
#endif
static int do_copies(void)
{
    float a[8] = {0};
    int version = 0;
    char handle[32];
    void *s = stream_new(), *c = comm_new(OWN_VERSION == 23007 ? "one" : "two", 1, 0), *child;
    good(ncclGetVersion(&version));
    wrong += version != OWN_VERSION;
    good(ncclCommSplit(c, 0, 0, &child, NULL));
    good(ncclGroupStart());
    good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, s));
    good(ncclAllReduce(a, a, 8, FLOAT, SUM, child, s));
    good(ncclGroupEnd());
    good(ncclBcast(a, 8, FLOAT, 0, c, s));
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(child));
    const char *given = getenv("GIVEN_COMM");
    if (given == NULL) {
        snprintf(handle, sizeof handle, "%llx", (unsigned long long)(uintptr_t)c);
        setenv("GIVEN_COMM", handle, 1);
        return wrong;
    }
    void *foreign = (void *)(uintptr_t)strtoull(given, NULL, 16);
    good(ncclAllReduce(a, a, 8, FLOAT, SUM, foreign, s));
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(foreign));
    good(ncclCommDestroy(c));
    return wrong;
}

/* A copy that is looked up while another is linked. */
static int do_looked_up(const char *file)
{
    void *other = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    int version = 0, own = 0;
    if (other == NULL)
        return 2;
    good(((int (*)(int *))(uintptr_t)dlsym(other, "ncclGetVersion"))(&version));
    good(ncclGetVersion(&own));
    return wrong + (version == own) + (own != OWN_VERSION);
}

static int do_group(void)
{
    float a[8] = {0};
    void *s = stream_new(), *c = comm_new("group", 1, 0);
    good(ncclGroupStart());
    good(ncclGroupStart());
    good(ncclSend(a, 8, FLOAT, 0, c, s));
    good(ncclRecv(a, 8, FLOAT, 0, c, s));
    good(ncclGroupEnd());
    usleep(20000); /* what a group holds ends with the outermost end, not with its own call */
    good(ncclGroupEnd());
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(c));
    return wrong;
}

static int do_errors(void)
{
    float a[8] = {0};
    void *s = stream_new();
    if (ncclAllReduce(a, a, 8, FLOAT, SUM, NULL, s) != 4 || ncclGroupEnd() != 5 ||
        ncclCommDestroy(NULL) != 4)
        return 1;
    for (int i = 0; i < 50; i++) { /* handles come back */
        void *c = comm_new("again", 1, 0);
        good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, s));
        good(cuStreamSynchronize(s));
        good(ncclCommDestroy(c));
    }
    nccl_id tag = {"tag"};
    good(ncclPutSignal(a, 11, FLOAT, 1, a, 13, 3, tag, 0.5, a, NULL));
    return wrong;
}

/* The library is older than the hooks, which have a function that it lacks: only they can be called, and
 * do nothing but fail.  It is newer as well, with a function that they do not know. */
static int do_unlike(void)
{
    float a[8] = {0};
    int was = 0;
    void *s = stream_new(), *c = comm_new("unlike", 1, 0), *less = &was;
    wrong += ncclCommShrink == NULL || ncclCommShrink(c, NULL, 0, &less, NULL, 0) != 2;
    wrong += less != &was;
    good(ncclStandinFused(a, a, 8, FLOAT, SUM, c, s));
    wrong += ncclStandinFused(a, a, 8, -1, SUM, c, s) != 4;
    good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, s));
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(c));
    return wrong;
}

/* Two ranks become three: the first has the id as well, the second nothing but the old communicator, and
 * the third, which joins, nothing but the id. */
static int do_grow(void)
{
    float a[8] = {0};
    nccl_id id = {{0}}, name = {{0}};
    void *s[3], *old[2], *c[3];
    snprintf(name.bytes, sizeof name.bytes, "grow-%d", (int)getpid());
    for (int r = 0; r < 2; r++)
        good(ncclCommInitRank(&old[r], 2, name, r));
    good(ncclCommGetUniqueId(old[0], &id));
    for (int r = 0; r < 3; r++) {
        s[r] = stream_new();
        good(ncclCommGrow(r < 2 ? old[r] : NULL, 3, r == 1 ? NULL : &id, r < 2 ? -1 : r, &c[r],
                          NULL));
    }
    for (int r = 0; r < 3; r++)
        good(ncclAllReduce(a, a, 8, FLOAT, SUM, c[r], s[r]));
    for (int r = 0; r < 3; r++)
        good(cuStreamSynchronize(s[r]));
    for (int r = 0; r < 3; r++)
        good(ncclCommDestroy(c[r]));
    good(ncclCommDestroy(old[0]) + ncclCommDestroy(old[1]));
    return wrong;
}

static int do_capture(void)
{
    float a[8] = {0};
    void *s = stream_new(), *c = comm_new("capture", 1, 0), *graph;
    good(cuStreamBeginCapture_v2(s, 0));
    good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, s));
    good(cuStreamEndCapture(s, &graph));
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(c));
    return wrong;
}

static int do_reset(void)
{
    float a[8] = {0};
    void *s = stream_new(), *c = comm_new("reset", 1, 0);
    good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, s));
    good(cuDevicePrimaryCtxReset_v2(0));
    good(cuStreamSynchronize(s));
    good(ncclCommDestroy(c));
    return wrong;
}

/* Streams are destroyed and communicators aborted with work pending; the next ones get the same handles. */
static int do_abandon(void)
{
    float a[8] = {0};
    for (int round = 0; round < 3; round++) {
        void *s = stream_new(), *c = comm_new("abandon", 1, 0);
        for (int i = 0; i < 4; i++)
            good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, s));
        good(cuStreamDestroy_v2(s));
        good(ncclCommAbort(c));
    }
    return wrong;
}

static void compute(void *arg)
{
    (void)arg;
}

/* To the next rank and from the one before, a megabyte. */
static void pass_on(void *comm, int rank, int n, void *stream)
{
    enum { MUCH = 1 << 18 };
    static float out[MUCH], in[MUCH];
    good(ncclSend(out, MUCH, FLOAT, (rank + 1) % n, comm, stream));
    good(ncclRecv(in, MUCH, FLOAT, (rank + n - 1) % n, comm, stream));
}

/* Another operation each time. */
static void one_of_many(float a[8], long i, void *c, void *s)
{
    switch (i % 4) {
    case 0:
        good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, s));
        break;
    case 1:
        good(ncclBroadcast(a, a, 8, FLOAT, 0, c, s));
        break;
    case 2:
        good(ncclAllGather(a, a, 2, FLOAT, c, s));
        break;
    default:
        good(ncclReduceScatter(a, a, 2, FLOAT, SUM, c, s));
    }
}

/* One of several processes. */
static int do_rank(const char *what, const char *id, int rank, int n, long times)
{
    float a[8] = {0};
    void *s = stream_new(), *c = comm_new(id, n, rank);
    for (long i = 0; i < times; i++) {
        good(cuLaunchHostFunc(s, compute, NULL));
        if (strcmp(what, "ring") == 0)
            pass_on(c, rank, n, s);
        one_of_many(a, strcmp(what, "mixed") == 0 ? i : 0, c, s);
        good(cuStreamSynchronize(s));
    }
    good(ncclCommDestroy(c));
    return wrong;
}

static void *sleeper(void *arg)
{
    pause();
    return arg;
}

/* CPU time of a call, in ns: printed. The stream is NULL, so no device is in it.  With a second
 * thread, because libc is faster in a process that has one alone, which a recorded one is not. */
static int do_cost(long n)
{
    pthread_t other;
    pthread_create(&other, NULL, sleeper, NULL);
    float a[8] = {0};
    struct timespec t0, t1;
    void *c = comm_new("cost", 1, 0);
    for (int i = 0; i < 1000; i++)
        good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, NULL));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
    for (long i = 0; i < n; i++)
        good(ncclAllReduce(a, a, 8, FLOAT, SUM, c, NULL));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t1);
    printf("%.1f\n",
           (double)((t1.tv_sec - t0.tv_sec) * 1000000000 + (t1.tv_nsec - t0.tv_nsec)) / (double)n);
    good(ncclCommDestroy(c));
    return wrong;
}

/* ---- HCCL ---------------------------------------------------------------------------------- */

static void *hccl, *acl;
#define F(lib, name, ...) ((int (*)(__VA_ARGS__))(uintptr_t)dlsym(lib, #name))
#define P                 const void *
#define U                 uint64_t
#define I                 int32_t
#define R                 uint32_t

static int do_hccl(const char *id)
{
    static char root[4108];
    struct {
        I what;
        void *buf;
        U count;
        I type;
        R rank;
    } items[2] = {{0, root, 8, 4, 0}, {1, root, 8, 4, 0}};
    U counts[1] = {8}, displs[1] = {0};
    char name[128];
    void *c = NULL, *s = NULL, *sub = NULL, *b = root;
    hccl = dlopen("libhccl.so", RTLD_LAZY | RTLD_LOCAL);
    acl = dlopen("libascendcl.so", RTLD_LAZY | RTLD_LOCAL);
    if (hccl == NULL || acl == NULL)
        return 2;
    snprintf(root, sizeof root, "%s-%d", id, (int)getpid());
    /* what an older library lacks is not there, though the hooks have it: callers ask for it so */
    wrong += dlsym(hccl, "HcclCommSuspend") != NULL || dlsym(hccl, "HcclGroupStart") != NULL;
    good(F(acl, aclrtSetDevice, I)(3));
    good(F(acl, aclrtCreateStream, void **)(&s));
    good(F(hccl, HcclCommInitRootInfo, R, P, R, void **)(1, root, 0, &c));
    good(F(hccl, HcclGetCommName, void *, char *)(c, name));
    wrong += strcmp(name, root) != 0;
    good(F(hccl, HcclAllReduce, P, P, U, I, I, P, P)(b, b, 1048576, 4, 0, c, s));
    good(F(hccl, HcclBroadcast, P, U, I, R, P, P)(b, 8, 4, 0, c, s));
    good(F(hccl, HcclReduceScatter, P, P, U, I, I, P, P)(b, b, 8, 4, 2, c, s));
    good(F(hccl, HcclReduceScatterV, P, P, P, P, U, I, I, P, P)(b, counts, displs, b, 8, 4, 0, c,
                                                                s));
    good(F(hccl, HcclScatter, P, P, U, I, R, P, P)(b, b, 8, 4, 0, c, s));
    good(F(hccl, HcclAllGather, P, P, U, I, P, P)(b, b, 8, 4, c, s));
    good(F(hccl, HcclAllGatherV, P, U, P, P, P, I, P, P)(b, 8, b, counts, displs, 4, c, s));
    good(F(hccl, HcclReduce, P, P, U, I, I, R, P, P)(b, b, 8, 4, 0, 0, c, s));
    good(F(hccl, HcclAlltoAll, P, U, I, P, U, I, P, P)(b, 8, 4, b, 8, 4, c, s));
    good(F(hccl, HcclAlltoAllV, P, P, P, I, P, P, P, I, P, P)(b, counts, displs, 4, b, counts,
                                                              displs, 4, c, s));
    good(F(hccl, HcclAlltoAllVC, P, P, I, P, I, P, P)(b, counts, 4, b, 4, c, s));
    good(F(hccl, HcclSend, P, U, I, R, P, P)(b, 8, 4, 0, c, s));
    good(F(hccl, HcclRecv, P, U, I, R, P, P)(b, 8, 4, 0, c, s));
    good(F(hccl, HcclBatchSendRecv, P, R, P, P)(items, 2, c, s));
    good(F(hccl, HcclBarrier, P, P)(c, s));
    good(F(hccl, HcclCreateSubCommConfig, void **, R, P, U, R, P, void **)(&c, 1, counts, 5, 0,
                                                                           NULL, &sub));
    good(F(hccl, HcclAllReduce, P, P, U, I, I, P, P)(b, b, 8, 99, 99, sub, s));
    good(F(acl, aclrtSynchronizeStream, P)(s));
    good(F(hccl, HcclCommDestroy, P)(sub));
    good(F(hccl, HcclCommDestroy, P)(c));
    good(F(acl, aclrtDestroyStream, P)(s));
    return wrong;
}

int run(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
    if (strcmp(what, "all") == 0)
        return do_all(n);
    if (strcmp(what, "newer") == 0)
        return do_newer();
    if (strcmp(what, "copies") == 0)
        return do_copies();
    if (strcmp(what, "looked-up") == 0 && argc > 2)
        return do_looked_up(argv[2]);
    if (strcmp(what, "group") == 0)
        return do_group();
    if (strcmp(what, "errors") == 0)
        return do_errors();
    if (strcmp(what, "unlike") == 0)
        return do_unlike();
    if (strcmp(what, "grow") == 0)
        return do_grow();
    if (strcmp(what, "capture") == 0)
        return do_capture();
    if (strcmp(what, "reset") == 0)
        return do_reset();
    if (strcmp(what, "abandon") == 0)
        return do_abandon();
    if (strcmp(what, "cost") == 0)
        return do_cost(n);
    if (strcmp(what, "hccl") == 0)
        return do_hccl("hccl-standin");
    if (argc > 4)
        return do_rank(what, argv[2], atoi(getenv("RANK")), atoi(argv[3]),
                       strtol(argv[4], NULL, 10));
    return 2;
}

#if !defined(MODULE)
int main(int argc, char **argv)
{
    return run(argc, argv);
}
#endif
