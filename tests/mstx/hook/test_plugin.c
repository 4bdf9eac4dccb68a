/* SPDX-License-Identifier: MIT
 *
 * Tests of the profiler plugin of NCCL: a child process loads it as NCCL does and plays the
 * events of each version, and the capture is read afterwards.  The layouts are written here once
 * more, from the description of the interface.
 */
#include "mstx/format/comm.h"
#include "tests/programs/run.h"

#include <dlfcn.h>

enum { COLL = 2, P2P = 4, PROXY_OP = 8, KERNEL = 64, CE_COLL = 4096, KERNEL_STOP = 22 };

struct old_table {
    const char *name;
    int (*init)(void **, int *);
    int (*start)(void *, void **, void *);
    int (*stop)(void *);
    int (*state)(void *, int, void *);
    int (*finalize)(void *);
};
struct v4_table {
    const char *name;
    int (*init)(void **, int *, const char *, uint64_t, int, int, int, void *);
    int (*start)(void *, void **, void *);
    int (*stop)(void *);
    int (*state)(void *, int, void *);
    int (*finalize)(void *);
};
struct v5_table {
    const char *name;
    int (*init)(void **, uint64_t, int *, const char *, int, int, int, void *);
    int (*start)(void *, void **, void *);
    int (*stop)(void *);
    int (*state)(void *, int, void *);
    int (*finalize)(void *);
};

struct coll1 {
    uint8_t type;
    void *parent;
    int rank;
    const char *name;
    uint64_t hash, seq;
    uint8_t func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    uint8_t datatype;
    uint32_t op;
    size_t traffic;
    uint8_t channels, warps, algo, proto;
    int is_collnet, is_nvls;
};
struct coll2 {
    uint8_t type;
    void *parent;
    int rank;
    const char *name;
    uint64_t hash, seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
};
struct coll4 {
    uint8_t type;
    void *parent;
    int rank;
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algo, *proto;
};
struct coll5 {
    uint64_t type;
    void *parent;
    int rank;
    uint64_t seq;
    const char *func;
    const void *send;
    void *recv;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algo, *proto;
    void *group;
};
struct p2p5 {
    uint64_t type;
    void *parent;
    int rank;
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *group;
};
struct kernel4 {
    uint8_t type;
    void *parent;
    int rank;
    struct { /* the body of an event is a union, aligned for its widest member */
        uint8_t channel;
        uint64_t timer;
    } body;
};
struct kernel5 {
    uint64_t type;
    void *parent;
    int rank;
    struct { /* the body of an event is a union, aligned for its widest member */
        uint8_t channel;
        uint64_t timer;
    } body;
};
struct proxy5 {
    uint64_t type;
    void *parent;
    int rank;
    struct {
        pid_t pid;
        uint8_t channel;
        int peer, steps, chunk, sends;
        int64_t align;
    } body;
};

/* The device's global timer: another origin than the host's clocks. */
static uint64_t timer(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec + 77000000000000u;
}

static void *lib;
static void *table(const char *name)
{
    if (lib == NULL)
        lib = dlopen(rt_built("libmstx_hook.so"), RTLD_NOW | RTLD_LOCAL);
    return lib != NULL ? dlsym(lib, name) : NULL;
}

/* ---- what the child plays --------------------------------------------------------------- */

static int play_old(void)
{
    struct old_table *one = table("ncclProfiler_v1"), *two = table("ncclProfiler_v2");
    void *context, *event;
    int mask = 0;
    struct coll1 a = {
        .type = COLL, .rank = 2, .name = "tp", .hash = 77, .func = 4, .count = 8, .datatype = 7};
    struct coll2 b = {
        .type = COLL, .hash = 78, .func = "AllGather", .count = 9, .datatype = "ncclFloat32"};
    if (one->init(&context, &mask) != 0 || (mask & COLL) == 0 || (mask & KERNEL) != 0)
        return 1;
    int bad = one->start(context, &event, &a) + one->stop(event) + one->finalize(context);
    two->init(&context, &mask);
    return bad + two->start(context, &event, &b) + two->stop(event) + two->finalize(context);
}

static int play_v4(void)
{
    struct v4_table *four = table("ncclProfiler_v4");
    void *context, *event, *kernel;
    int mask = 0;
    struct coll4 a = {.type = COLL, .func = "Broadcast", .count = 5, .datatype = "ncclInt8"};
    struct kernel4 k = {.type = KERNEL};
    four->init(&context, &mask, "world", 42, 1, 8, 3, NULL);
    four->start(context, &event, &a);
    k.parent = event;
    k.body.timer = timer();
    four->start(context, &kernel, &k);
    four->stop(event);
    k.body.timer = timer();
    int bad = four->state(kernel, KERNEL_STOP, &k.body.timer);
    return bad + four->stop(kernel) + four->finalize(context) + (mask & KERNEL ? 0 : 1);
}

/* Two channels that stop in the other order and after the operation; an operation whose kernel's
 * stop is lost; parents of another process and kinds of the future. */
static int play_new(const char *version)
{
    struct v5_table *v = table(version);
    void *context, *event, *lost, *channel[2], *nothing = &context;
    int mask = 0;
    struct coll5 a = {.type = COLL, .func = "AllReduce", .count = 16, .datatype = "ncclBfloat16"};
    struct p2p5 p = {.type = P2P, .func = "Send", .count = 4, .datatype = "ncclInt32", .peer = 6};
    struct kernel5 k = {.type = KERNEL};
    struct proxy5 proxy = {.type = PROXY_OP, .parent = (void *)(uintptr_t)0x1230, .body.pid = 1};
    struct kernel5 foreign = {.type = KERNEL, .parent = (void *)(uintptr_t)0x1238, .body.timer = 1};
    struct coll5 future = {.type = 1u << 20};
    v->init(&context, 99, &mask, "dp", 1, 8, 3, NULL);
    v->start(context, &event, &a);
    k.parent = event;
    for (int i = 0; i < 2; i++) {
        k.body.timer = timer();
        v->start(context, &channel[i], &k);
    }
    v->stop(event);
    v->start(context, &lost, &p);
    v->stop(lost);
    int bad = v->start(context, &nothing, &proxy) + v->stop(nothing);
    bad += v->start(context, &nothing, &foreign) + v->stop(nothing);
    bad += v->start(context, &nothing, &future) + v->stop(nothing) + v->stop(&mask);
    usleep(3000);
    for (int i = 1; i >= 0; i--) {
        uint64_t stamp = timer();
        bad += v->state(channel[i], KERNEL_STOP, &stamp) + v->stop(channel[i]);
    }
    return bad + v->state(NULL, 0, NULL) + v->finalize(context);
}

/* A collective of the copy engines, which only the newest version knows. */
static int play_copy_engine(void)
{
    struct v5_table *v = table("ncclProfiler_v6");
    void *context, *event;
    int mask = 0;
    struct coll5 a = {.type = CE_COLL, .func = "AllGather", .count = 16, .datatype = "ncclFloat32"};
    v->init(&context, 99, &mask, "dp", 1, 8, 3, NULL);
    int bad = v->start(context, &event, &a) + (event == NULL) + v->stop(event);
    return bad + v->finalize(context) + (mask & CE_COLL ? 0 : 1);
}

static int play(int which)
{
    return which == 0   ? play_old()
           : which == 1 ? play_v4()
           : which == 2 ? play_new("ncclProfiler_v5")
           : which == 3 ? play_new("ncclProfiler_v6")
                        : play_copy_engine();
}

/* A sanitizer must come first in a process: then this is skipped. */
static bool played(int which, struct cap *c)
{
    rt_setup();
    pid_t pid = fork();
    if (pid == 0)
        exit(table("ncclProfiler_v1") == NULL ? 99 : play(which));
    int status = rt_wait(pid);
    ck_assert_int_eq(status, 0);
    cap_load_one(c, rt_out);
    return true;
}

static void done(struct cap *c)
{
    cap_free(c);
    rt_done();
}

/* ---- what the capture holds ----------------------------------------------------------------- */

static const struct mstx_rec_comm *comm_of(const struct cap *c, const char *name)
{
    for (size_t i = 0; i + 1 < c->n; i++) {
        const struct mstx_rec *r = &c->rec[i].r;
        if (r->type == MSTX_REC_BEGIN && strcmp(cap_text(c, r->name), name) == 0 &&
            c->rec[i + 1].r.type == MSTX_REC_COMM)
            return (const struct mstx_rec_comm *)(const void *)&c->rec[i + 1].r;
    }
    ck_abort_msg("no call of %s", name);
    return NULL;
}

START_TEST(old_versions_give_operations_without_kernels)
{
    struct cap c;
    played(0, &c);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, "nccl", "AllReduce"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, "nccl", "AllGather"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "AllReduce"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 0);
    const struct mstx_rec_comm *r = comm_of(&c, "AllReduce");
    ck_assert_uint_eq(r->dtype, MSTX_TYPE_FP32);
    struct mstx_comm_group g = {.uid = 0};
    for (size_t i = 1; i <= c.ntexts; i++) {
        if (c.text[i]->kind == MSTX_GROUP && c.text[i]->key == r->group)
            memcpy(&g, c.text[i] + 1, sizeof g);
    }
    ck_assert_uint_eq(g.uid, 77); /* the same on all ranks, so that these meet */
    ck_assert_int_eq(g.rank, 2);
    done(&c);
}
END_TEST

START_TEST(version_4_tells_when_the_kernel_ran)
{
    struct cap c;
    played(1, &c);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, "nccl", "Broadcast"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 2);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_STREAM, NULL, "world"), 1);
    done(&c);
}
END_TEST

static void is_whole(const struct cap *c)
{
    const struct mstx_rec *first = NULL, *last = NULL;
    size_t lost = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct mstx_rec *r = &c->rec[i].r;
        if (r->type != MSTX_REC_DEVICE)
            continue;
        lost += (r->flags & MSTX_F_NO_DEVICE) != 0;
        if ((r->flags & MSTX_F_NO_DEVICE) == 0 && r->name == 0)
            first = r;
        else if ((r->flags & MSTX_F_NO_DEVICE) == 0)
            last = r;
    }
    ck_assert_uint_eq(lost, 2); /* the operation without a kernel */
    ck_assert(first != NULL && last != NULL && first->id == last->id);
    ck_assert_int_ge((int64_t)(last->arg - first->arg), 3000000);
    ck_assert_int_lt((int64_t)(last->arg - first->arg), 3000000000);
    /* the kernel's start lies behind the queueing of the operation, by the host's clock */
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, "nccl", "AllReduce"), 1);
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, "nccl", "Send"), 1);
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, NULL, NULL), 4);
}

START_TEST(version_5_joins_the_channels_of_an_operation)
{
    struct cap c;
    played(2, &c);
    is_whole(&c);
    done(&c);
}
END_TEST

START_TEST(version_6_does_as_well)
{
    struct cap c;
    played(3, &c);
    is_whole(&c);
    done(&c);
}
END_TEST

START_TEST(version_6_tells_of_copy_engines)
{
    struct cap c;
    played(4, &c);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, "nccl", "AllGather"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "AllGather"), 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 0);
    done(&c);
}
END_TEST

TEST_MAIN("plugin", old_versions_give_operations_without_kernels,
          version_4_tells_when_the_kernel_ran, version_5_joins_the_channels_of_an_operation,
          version_6_does_as_well, version_6_tells_of_copy_engines)
