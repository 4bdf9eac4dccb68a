/* SPDX-License-Identifier: MIT
 *
 * Tests of the hooks of NCCL and HCCL: a program that uses the stand-in libraries is run with
 * the hook library preloaded, and its capture is read afterwards.
 */
#include "mstx/format/comm.h"
#include "tests/programs/run.h"

#include <dlfcn.h>

/* Run it with the hooks in front; its exit status. */
static int hooked(const char *app, const char *a, const char *b, const char *c)
{
    char libs[2500];
    bool looks_up = strcmp(a, "hccl") == 0 || strcmp(a, "looked-up") == 0;
    snprintf(libs, sizeof libs, "%s%s%s%s", rt_before_preload(), rt_built("libmstx_hook.so"),
             looks_up ? ":" : "", looks_up ? rt_built("libmstx_dlsym.so") : "");
    unsetenv("MSTX_INJECTION_PATH");
    setenv("LD_PRELOAD", libs, 1);
    setenv("LD_LIBRARY_PATH", rt_built("tests/standin"), 1);
    /* events of devices that the stand-ins made stay with the recorder to the end */
    const char *watched = getenv("ASAN_OPTIONS");
    char unleaked[1024];
    snprintf(unleaked, sizeof unleaked, "%s%sdetect_leaks=0", watched != NULL ? watched : "",
             watched != NULL ? ":" : "");
    setenv("ASAN_OPTIONS", unleaked, 1);
    pid_t pid = rt_spawn(app, a, b, c);
    unsetenv("LD_PRELOAD");
    unsetenv("LD_LIBRARY_PATH");
    return rt_wait(pid);
}

/* A sanitizer must come first in a process, which a preload prevents. */
static bool can_preload(void)
{
    const bool can = rt_before_preload() != NULL;
    if (!can)
        printf("skip preload: a sanitizer must be first in a process\n");
    return can;
}

static const struct mstx_rec_comm *comm_of(const struct cap *c, const char *name, size_t nth)
{
    for (size_t i = 0; i + 1 < c->n; i++) {
        const struct mstx_rec *r = &c->rec[i].r;
        if (r->type == MSTX_REC_BEGIN && strcmp(cap_text(c, r->name), name) == 0 && nth-- == 0) {
            ck_assert_int_eq(c->rec[i + 1].r.type, MSTX_REC_COMM);
            return (const struct mstx_rec_comm *)(const void *)&c->rec[i + 1].r;
        }
    }
    ck_abort_msg("no call of %s", name);
    return NULL;
}

static const struct mstx_rec_comm_part *part_of(const struct cap *c, const char *name)
{
    const struct mstx_rec_comm *r = comm_of(c, name, 0);
    ck_assert(r->flags & MSTX_F_MORE);
    const struct cap_rec *next = (const struct cap_rec *)(const void *)r + 1;
    ck_assert_int_eq(next->r.type, MSTX_REC_COMM_PART);
    return (const struct mstx_rec_comm_part *)(const void *)&next->r;
}

static int64_t length_of(const struct cap *c, const char *name)
{
    const struct mstx_rec *b = &cap_find(c, MSTX_REC_BEGIN, name)->r;
    const struct mstx_rec *e = &cap_find(c, MSTX_REC_END, name)->r;
    ck_assert_uint_eq(b->id, e->id);
    return (int64_t)(e->ticks - b->ticks);
}

/* ---- coverage --------------------------------------------------------------------------- */

/* Every prototype of the interfaces, written from their description. */
static const char *const prototypes[] = {"ncclAllReduce",
                                         "ncclReduce",
                                         "ncclBroadcast",
                                         "ncclBcast",
                                         "ncclAllGather",
                                         "ncclReduceScatter",
                                         "ncclAlltoAll",
                                         "ncclGather",
                                         "ncclScatter",
                                         "ncclSend",
                                         "ncclRecv",
                                         "ncclGroupStart",
                                         "ncclGroupEnd",
                                         "ncclGroupSimulateEnd",
                                         "ncclPutSignal",
                                         "ncclSignal",
                                         "ncclWaitSignal",
                                         "ncclGetVersion",
                                         "ncclGetUniqueId",
                                         "ncclCommInitRank",
                                         "ncclCommInitRankConfig",
                                         "ncclCommInitRankScalable",
                                         "ncclCommInitAll",
                                         "ncclCommSplit",
                                         "ncclCommShrink",
                                         "ncclCommGrow",
                                         "ncclCommGetUniqueId",
                                         "ncclCommRevoke",
                                         "ncclCommFinalize",
                                         "ncclCommDestroy",
                                         "ncclCommAbort",
                                         "ncclCommCount",
                                         "ncclCommUserRank",
                                         "ncclCommCuDevice",
                                         "ncclCommGetAsyncError",
                                         "ncclCommRegister",
                                         "ncclCommDeregister",
                                         "ncclCommWindowRegister",
                                         "ncclMemAlloc",
                                         "ncclMemFree",
                                         "ncclRedOpCreatePreMulSum",
                                         "ncclRedOpDestroy",
                                         "ncclAllToAll",
                                         "ncclAllToAllv", /* RCCL */
                                         "ncclAllReduceWithBias",
                                         "ncclAllReduceConfig", /* 2.31 */
                                         "ncclReduceConfig",
                                         "ncclBroadcastConfig",
                                         "ncclAllGatherConfig",
                                         "ncclReduceScatterConfig",
                                         "ncclAlltoAllConfig",
                                         "ncclGatherConfig",
                                         "ncclScatterConfig",
                                         "ncclCommSuspend",
                                         "ncclCommResume",
                                         "HcclAllReduce",
                                         "HcclBroadcast",
                                         "HcclReduceScatter",
                                         "HcclReduceScatterV",
                                         "HcclScatter",
                                         "HcclAllGather",
                                         "HcclAllGatherV",
                                         "HcclReduce",
                                         "HcclAlltoAll",
                                         "HcclAlltoAllV",
                                         "HcclAlltoAllVC",
                                         "HcclSend",
                                         "HcclRecv",
                                         "HcclBatchSendRecv",
                                         "HcclBarrier",
                                         "HcclGroupStart",
                                         "HcclGroupEnd",
                                         "HcclGetRootInfo",
                                         "HcclCommInitRootInfo",
                                         "HcclCommInitRootInfoConfig",
                                         "HcclCommInitClusterInfo",
                                         "HcclCommInitClusterInfoConfig",
                                         "HcclCommInitAll",
                                         "HcclCreateSubCommConfig",
                                         "HcclCommDestroy",
                                         "HcclCommSuspend",
                                         "HcclCommResume",
                                         "HcclGetRankSize",
                                         "HcclGetRankId",
                                         "HcclGetCommName",
                                         "HcclGetCommAsyncError",
                                         "HcclGetErrorString",
                                         "HcclSetConfig",
                                         "HcclGetConfig",
                                         "ncclProfiler_v1",
                                         "ncclProfiler_v2",
                                         "ncclProfiler_v3",
                                         "ncclProfiler_v4",
                                         "ncclProfiler_v5",
                                         "ncclProfiler_v6"};

START_TEST(every_prototype_has_its_hook)
{
    if (!can_preload())
        return;
    void *lib = dlopen(rt_built("libmstx_hook.so"), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib != NULL, "%s", dlerror());
    for (size_t i = 0; i < sizeof prototypes / sizeof *prototypes; i++)
        ck_assert_msg(dlsym(lib, prototypes[i]) != NULL, "no hook of %s", prototypes[i]);
}
END_TEST

START_TEST(without_the_library_a_call_returns_its_own_error)
{
    if (!can_preload())
        return;
    void *lib = dlopen(rt_built("libmstx_hook.so"), RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib != NULL, "%s", dlerror());
    int (*group)(void) = (int (*)(void))(uintptr_t)dlsym(lib, "ncclGroupStart");
    int (*barrier)(void *, void *) = (int (*)(void *, void *))(uintptr_t)dlsym(lib, "HcclBarrier");
    int (*passed)(int *) = (int (*)(int *))(uintptr_t)dlsym(lib, "ncclGetVersion");
    ck_assert_int_eq(group(), 2);
    ck_assert_int_eq(barrier(NULL, NULL), 4);
    ck_assert_int_eq(passed(NULL), 2);
}
END_TEST

/* ---- NCCL --------------------------------------------------------------------------------- */

static void is_all_of_the_program(const struct cap *c)
{
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclAllReduce"), 4);
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclBcast"), 1);
    /* ncclBcast calls ncclBroadcast by its public name: that is no call of the program */
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclBroadcast"), 1);
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclCommInitRank"), 1);
    ck_assert_uint_eq(cap_count(c, MSTX_REC_BEGIN, NULL, NULL), 12);
    ck_assert_uint_eq(cap_count(c, MSTX_REC_END, NULL, NULL), 12);
    ck_assert_uint_eq(cap_count(c, MSTX_REC_DEVICE, NULL, NULL), 16);
}

START_TEST(a_linked_program_is_seen_whole)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "all", "3", NULL), 0);
    cap_load_one(&c, rt_out);
    is_all_of_the_program(&c);
    const struct mstx_rec_comm *r = comm_of(&c, "ncclAllReduce", 2);
    ck_assert_uint_eq(r->count, 8);
    ck_assert_uint_eq(r->elem, 4);
    ck_assert_uint_eq(r->seq, 2);
    ck_assert_int_eq(r->dtype, MSTX_TYPE_FP32);
    ck_assert_int_eq(r->reduce, MSTX_REDUCE_SUM);
    ck_assert_int_eq(r->lib, MSTX_LIB_NCCL);
    ck_assert_int_eq(comm_of(&c, "ncclBroadcast", 0)->peer, 0);
    /* a reduction of the user's, a type of the future, another communicator */
    ck_assert_int_eq(comm_of(&c, "ncclReduceScatter", 0)->reduce, MSTX_REDUCE_USER);
    ck_assert_uint_eq(comm_of(&c, "ncclReduceScatter", 0)->seq, 0);
    ck_assert_uint_ne(comm_of(&c, "ncclReduceScatter", 0)->group, r->group);
    ck_assert_int_eq(comm_of(&c, "ncclAllReduce", 3)->dtype, MSTX_TYPE_NA);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_library_opened_locally_is_seen_as_well)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    ck_assert_int_eq(
        hooked("tests/programs/loader", rt_built("tests/programs/ccl_mod.so"), "all", "3"), 0);
    cap_load_one(&c, rt_out);
    is_all_of_the_program(&c);
    cap_free(&c);
    rt_done();
}
END_TEST

/* One in a library, one inside of a module: each call comes to the copy that its caller reached
 * before, and a communicator stays with the copy that made it. */
static void two_copies(const char *first, const char *second)
{
    struct cap c;
    char modules[2500];
    rt_setup();
    snprintf(modules, sizeof modules, "%s:", rt_built(first));
    snprintf(modules + strlen(modules), sizeof modules - strlen(modules), "%s", rt_built(second));
    ck_assert_int_eq(hooked("tests/programs/loader", modules, "copies", NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclAllReduce"), 5);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclBcast"), 2);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclBroadcast"), 0);
    ck_assert_uint_eq(comm_of(&c, "ncclAllReduce", 4)->seq, 2);
    ck_assert_uint_eq(comm_of(&c, "ncclAllReduce", 4)->group,
                      comm_of(&c, "ncclAllReduce", 0)->group);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 2 * 7);
    cap_free(&c);
    rt_done();
}

START_TEST(of_two_copies_each_gets_its_own_calls)
{
    if (!can_preload())
        return;
    two_copies("tests/programs/ccl_mod.so", "tests/programs/ccl_static.so");
    two_copies("tests/programs/ccl_static.so", "tests/programs/ccl_mod.so");
}
END_TEST

START_TEST(a_copy_that_is_looked_up_is_not_mistaken_for_another)
{
    char module[2500];
    if (!can_preload())
        return;
    rt_setup();
    snprintf(module, sizeof module, "%s", rt_built("tests/programs/ccl_static.so"));
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "looked-up", module, NULL), 0);
    rt_done();
}
END_TEST

START_TEST(calls_of_later_versions_and_of_rccl_are_recorded)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "newer", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    const struct mstx_rec_comm *r = comm_of(&c, "ncclAllReduceConfig", 0);
    ck_assert_int_eq(r->op, MSTX_COMM_ALLREDUCE);
    ck_assert_uint_eq(r->count, 8);
    ck_assert_int_eq(comm_of(&c, "ncclAllToAllv", 0)->op, MSTX_COMM_ALLTOALL_V);
    ck_assert_uint_eq(part_of(&c, "ncclAllToAllv")->sent, 24);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 4);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_library_may_lack_functions_and_have_unknown_ones)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "unlike", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    /* what an unknown function calls by public names is seen */
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclAllReduce"), 3);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclStandinFused"), 0);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclCommShrink"), 0);
    cap_free(&c);
    rt_done();
}
END_TEST

/* Who the communicator of the nth all-reduce is, on all ranks. */
static uint64_t comm_uid(const struct cap *c, size_t nth)
{
    uint32_t number = comm_of(c, "ncclAllReduce", nth)->group;
    struct mstx_comm_group g = {.uid = 0};
    for (size_t i = 1; i <= c->ntexts; i++) {
        if (c->text[i]->kind == MSTX_GROUP && c->text[i]->key == number)
            memcpy(&g, c->text[i] + 1, sizeof g);
    }
    ck_assert_uint_ne(g.uid, 0);
    return g.uid;
}

START_TEST(all_ranks_know_a_grown_communicator_alike)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    setenv("NCCL_PROFILER_PLUGIN", "libmstx_hook.so", 1);
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "grow", NULL, NULL), 0);
    unsetenv("NCCL_PROFILER_PLUGIN");
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclCommGrow"), 3);
    for (size_t r = 1; r < 3; r++)
        ck_assert_uint_eq(comm_uid(&c, r), comm_uid(&c, 0));
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_group_ends_its_operations)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    setenv("MSTX_CLOCK", "monotonic", 1);
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "group", NULL, NULL), 0);
    unsetenv("MSTX_CLOCK");
    cap_load_one(&c, rt_out);
    ck_assert_int_ge(length_of(&c, "ncclSend"), 20000000);
    ck_assert_int_ge(length_of(&c, "ncclRecv"), 20000000);
    ck_assert(comm_of(&c, "ncclSend", 0)->flags & MSTX_CF_GROUPED);
    ck_assert_uint_eq(comm_of(&c, "ncclRecv", 0)->seq, 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 4);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(errors_and_arguments_pass_untouched_and_handles_come_back)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "errors", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, NULL, "ncclAllReduce"), 51);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, "ncclPutSignal"), 1);
    for (size_t i = 1; i < 51; i++) /* each is the first of a communicator of its own */
        ck_assert_uint_eq(comm_of(&c, "ncclAllReduce", i)->seq, 0);
    ck_assert_uint_ne(comm_of(&c, "ncclAllReduce", 1)->group,
                      comm_of(&c, "ncclAllReduce", 2)->group);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_captured_call_says_so_and_has_no_device_time)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "capture", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    ck_assert(cap_find(&c, MSTX_REC_BEGIN, "ncclAllReduce")->r.flags & MSTX_F_CAPTURED);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 0);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(a_device_reset_loses_times_and_nothing_else)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    setenv("STANDIN_DELAY_US", "300000", 1);
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "reset", NULL, NULL), 0);
    unsetenv("STANDIN_DELAY_US");
    cap_load_one(&c, rt_out);
    size_t lost = 0;
    for (size_t i = 0; i < c.n; i++)
        lost += c.rec[i].r.type == MSTX_REC_DEVICE && (c.rec[i].r.flags & MSTX_F_NO_DEVICE) != 0;
    ck_assert_uint_ge(lost, 1);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 2);
    cap_free(&c);
    rt_done();
}
END_TEST

START_TEST(streams_and_communicators_may_go_with_work_pending)
{
    enum { CALLS = 12 };
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    setenv("STANDIN_DELAY_US", "20000", 1);
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "abandon", NULL, NULL), 0);
    unsetenv("STANDIN_DELAY_US");
    cap_load_one(&c, rt_out);
    size_t begun = 0, ended = 0;
    for (size_t i = 0; i < c.n; i++) {
        const struct mstx_rec *r = &c.rec[i].r;
        begun += r->type == MSTX_REC_COMM &&
                 ((const struct mstx_rec_comm *)r)->op == MSTX_COMM_ALLREDUCE;
        ended += r->type == MSTX_REC_DEVICE; /* with its time, or without and counted */
    }
    ck_assert_uint_eq(begun, CALLS);
    ck_assert_uint_eq(ended, 2 * CALLS);
    cap_free(&c);
    rt_done();
}
END_TEST

/* ---- HCCL ------------------------------------------------------------------------------------ */

START_TEST(a_program_that_looks_hccl_up_is_seen_with_the_dlsym_library)
{
    struct cap c;
    if (!can_preload())
        return;
    rt_setup();
    ck_assert_int_eq(hooked("tests/programs/ccl_app", "hccl", NULL, NULL), 0);
    cap_load_one(&c, rt_out);
    for (size_t i = 0; i < sizeof prototypes / sizeof *prototypes; i++) {
        static const char *const operators =
            " HcclAllReduce HcclBroadcast HcclReduceScatter HcclReduceScatterV HcclScatter"
            " HcclAllGather HcclAllGatherV HcclReduce HcclAlltoAll HcclAlltoAllV HcclAlltoAllVC"
            " HcclSend HcclRecv HcclBatchSendRecv HcclBarrier ";
        char word[64];
        snprintf(word, sizeof word, " %s ", prototypes[i]);
        if (strstr(operators, word) != NULL)
            ck_assert_uint_ge(cap_count(&c, MSTX_REC_BEGIN, MSTX_COMM_DOMAIN, prototypes[i]), 1);
    }
    ck_assert_uint_eq(comm_of(&c, "HcclAllReduce", 0)->count, 1048576);
    ck_assert_int_eq(comm_of(&c, "HcclReduceScatter", 0)->reduce, MSTX_REDUCE_MAX);
    ck_assert_int_eq(comm_of(&c, "HcclAllReduce", 1)->dtype, MSTX_TYPE_NA);
    ck_assert_uint_eq(part_of(&c, "HcclAlltoAllV")->sent, 32);
    ck_assert_uint_eq(part_of(&c, "HcclAlltoAllVC")->received, 32);
    ck_assert_uint_eq(part_of(&c, "HcclBatchSendRecv")->received, 32);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_DEVICE, NULL, NULL), 2 * 16);
    ck_assert_uint_eq(cap_count(&c, MSTX_REC_STREAM, NULL, NULL), 1);
    cap_free(&c);
    rt_done();
}
END_TEST

TEST_MAIN("ccl", every_prototype_has_its_hook, without_the_library_a_call_returns_its_own_error,
          a_linked_program_is_seen_whole, a_library_opened_locally_is_seen_as_well,
          of_two_copies_each_gets_its_own_calls,
          a_copy_that_is_looked_up_is_not_mistaken_for_another,
          calls_of_later_versions_and_of_rccl_are_recorded,
          a_library_may_lack_functions_and_have_unknown_ones,
          all_ranks_know_a_grown_communicator_alike, a_group_ends_its_operations,
          errors_and_arguments_pass_untouched_and_handles_come_back,
          a_captured_call_says_so_and_has_no_device_time,
          a_device_reset_loses_times_and_nothing_else,
          streams_and_communicators_may_go_with_work_pending,
          a_program_that_looks_hccl_up_is_seen_with_the_dlsym_library)
