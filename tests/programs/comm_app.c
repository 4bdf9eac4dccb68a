/* SPDX-License-Identifier: MIT
 *
 * comm_app: talks to the recorder as a communication hook does; test_rt_comm reads what it left.
 */
#define MSTX_NO_IMPL
#include "mstx/ms_tools_ext.h"
#include "mstx/mstx.h"
#include "mstx/rt/comm_range.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const int32_t world_ranks[] = {4, 5, 6};

static struct mstx_group *group(const char *name, uint64_t uid)
{
    return mstx_group_new(&(struct mstx_group_info){
        .uid = uid, .name = name, .size = 3, .rank = 1, .world = world_ranks});
}

static struct mstx_comm_call reduce(struct mstx_group *g)
{
    return (struct mstx_comm_call){.name = "MPI_Allreduce",
                                   .group = g,
                                   .count = 1024,
                                   .peer = -1,
                                   .op = MSTX_COMM_ALLREDUCE,
                                   .dtype = MSTX_TYPE_FP32,
                                   .reduce = MSTX_REDUCE_SUM,
                                   .lib = MSTX_LIB_MPI};
}

static void once(void)
{
    struct mstx_group *g = group("tp", 77);
    struct mstx_comm_call c = reduce(g);
    mstx_comm_end(mstx_comm_begin(&c));
    mstx_comm_end(mstx_comm_begin(&c));
    struct mstx_comm_call r = {.name = "MPI_Recv",
                               .group = g,
                               .count = 10,
                               .elem = 8,
                               .peer = -1,
                               .op = MSTX_COMM_RECV,
                               .dtype = MSTX_TYPE_FP64,
                               .lib = MSTX_LIB_MPI,
                               .flags = MSTX_CF_ANY,
                               .has_part = true,
                               .tag = 9,
                               .received = 80};
    mstx_comm_end_received(mstx_comm_begin(&r), 40, 2, 9);
    mstx_group_end(g);
    g = group("dp", 78); /* the same place, another communicator */
    c = reduce(g);
    mstx_comm_end(mstx_comm_begin(&c));
}

/* Calls that were not recorded still count. */
static void paused(void)
{
    struct mstx_group *g = group("tp", 77);
    struct mstx_comm_call c = reduce(g);
    mstx_comm_end(mstx_comm_begin(&c));
    mstx_record_pause();
    printf("%d\n", mstx_comm_on());
    mstx_comm_pass(g, MSTX_COMM_ALLREDUCE);
    mstx_comm_end(mstx_comm_begin(&c));
    mstx_record_resume();
    printf("%d\n", mstx_comm_on());
    mstx_comm_end(mstx_comm_begin(&c));
}

static void framework(void)
{
    struct mstx_group *g = group("tp", 77);
    struct mstx_comm_call c = reduce(g);
    mstxDomainHandle_t d = mstxDomainCreateA(MSTX_COMM_DOMAIN);
    mstxRangeId own = mstxDomainRangeStartA(d, "all by myself", NULL);
    mstx_comm_end(mstx_comm_begin(&c)); /* is the framework's */
    mstxDomainRangeEnd(d, own);
    mstx_comm_end(mstx_comm_begin(&c));
}

static void tell(void *arg, const struct mstx_comm_open *open)
{
    (void)arg;
    printf("%s %s %u\n", open->name, open->group, open->rec.seq);
}

static void *end_it(void *arg)
{
    mstx_comm_end(*(uint64_t *)arg);
    return NULL;
}

static void open_calls(void)
{
    struct mstx_comm_call c = reduce(group("tp", 77));
    uint64_t a = mstx_comm_begin(&c), b = mstx_comm_begin(&c);
    mstx_comm_end(a);
    mstx_comm_each_open(tell, NULL);
    pthread_t t;
    pthread_create(&t, NULL, end_it, &b);
    pthread_join(t, NULL);
    mstx_comm_each_open(tell, NULL);
}

static void unknown(void)
{
    struct mstx_comm_call c = reduce(NULL);
    mstx_comm_end(mstx_comm_begin(&c));
    mstx_comm_end(0);
    mstx_group_end(NULL);
    mstx_group_update(NULL, NULL);
}

static void ask(struct mstx_group *g, bool found)
{
    struct mstx_comm_call c = {.name = "MPI_Iprobe",
                               .group = g,
                               .peer = -1,
                               .op = MSTX_COMM_PROBE,
                               .dtype = MSTX_TYPE_NA,
                               .reduce = MSTX_REDUCE_NONE,
                               .lib = MSTX_LIB_MPI};
    uint64_t id = mstx_comm_asks_again(&c) ? MSTX_COMM_AGAIN : mstx_comm_begin(&c);
    mstx_comm_asked(id, &c, found);
}

/* Asks for two things in turn, finds one, and asks once more. */
static void asks(void)
{
    struct mstx_group *g = group("tp", 77), *other = group("dp", 78);
    for (int i = 0; i < 3000; i++) {
        ask(g, false);
        ask(other, false);
    }
    ask(g, true);
    ask(g, false);
}

/* A send, a receive of what was posted, and a send whose tag has no room in COMM. */
static void transfers(void)
{
    struct mstx_comm_call c = {.name = "MPI_Send",
                               .group = group("tp", 77),
                               .count = 10,
                               .elem = 8,
                               .peer = 2,
                               .op = MSTX_COMM_SEND,
                               .dtype = MSTX_TYPE_FP64,
                               .reduce = MSTX_REDUCE_NONE,
                               .lib = MSTX_LIB_MPI,
                               .has_part = true,
                               .peer2 = -1,
                               .tag = UINT16_MAX - MSTX_TAG_CODE,
                               .sent = 80};
    mstx_comm_end(mstx_comm_begin(&c));
    c.tag++;
    mstx_comm_end(mstx_comm_begin(&c));
    c.name = "MPI_Recv";
    c.op = MSTX_COMM_RECV;
    c.tag = 0;
    c.received = c.sent;
    c.sent = 0;
    mstx_comm_end_received(mstx_comm_begin(&c), 80, 2, 0);
    mstx_comm_end_received(mstx_comm_begin(&c), 72, 2, 0);
}

/* A call that is open while the thread goes on into other segments. */
static void outlived(void)
{
    struct mstx_comm_call c = reduce(group("tp", 77));
    const uint64_t id = mstx_comm_begin(&c);
    for (int i = 0; i < 30000; i++)
        mstxMarkA("between", NULL);
    mstx_comm_end(id);
}

/* More than fits into a segment, with marks in between: 2 of 3 calls may join another. */
static void asks_much(void)
{
    struct mstx_group *g = group("tp", 77);
    for (int i = 0; i < 30000; i++) {
        ask(g, false);
        ask(g, false);
        ask(g, i % 2 == 0);
        mstxMarkA("between", NULL);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"once", once},       {"paused", paused},       {"framework", framework},
                 {"open", open_calls}, {"asks", asks},           {"asks-much", asks_much},
                 {"unknown", unknown}, {"transfers", transfers}, {"outlived", outlived}};
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    }
    return 0;
}
