/* SPDX-License-Identifier: MIT
 *
 * hccl_app: one of several processes that communicate by HCCL, which it looks up by dlsym as torch_npu
 * does.  Exit status: how many calls did not return what they should.
 *   hccl_app rank|ring|mixed ID RANKS TIMES      RANK: which one this is
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F(name, ...) ((int (*)(__VA_ARGS__))look_up(#name))
#define P            void *
enum { FP32 = 4, SUM = 0, MUCH = 1 << 18 };

static void *hccl, *acl;
static int wrong;
static float out[MUCH], in[MUCH];

static void *look_up(const char *name)
{
    void *f = dlsym(name[0] == 'H' ? hccl : acl, name);
    if (f == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(2);
    }
    return f;
}

static void good(int rc)
{
    wrong += rc != 0;
}

static void compute(void *arg)
{
    (void)arg;
}

static void all_reduce(void *c, void *s)
{
    good(F(HcclAllReduce, P, P, uint64_t, int32_t, int32_t, P, P)(out, in, 8, FP32, SUM, c, s));
}

/* To the next rank and from the one before, a megabyte. */
static void pass_on(void *c, void *s, int rank, int n)
{
    const uint32_t next = (uint32_t)(rank + 1) % (uint32_t)n,
                   before = (uint32_t)(rank + n - 1) % (uint32_t)n;
    good(F(HcclSend, P, uint64_t, int32_t, uint32_t, P, P)(out, MUCH, FP32, next, c, s));
    good(F(HcclRecv, P, uint64_t, int32_t, uint32_t, P, P)(in, MUCH, FP32, before, c, s));
}

/* Another operation each time. */
static void one_of_many(void *c, void *s, long i)
{
    switch (i % 6) {
    case 0:
        all_reduce(c, s);
        break;
    case 1:
        good(F(HcclBroadcast, P, uint64_t, int32_t, uint32_t, P, P)(out, 8, FP32, 0, c, s));
        break;
    case 2:
        good(F(HcclAllGather, P, P, uint64_t, int32_t, P, P)(out, in, 8, FP32, c, s));
        break;
    case 3:
        good(F(HcclReduceScatter, P, P, uint64_t, int32_t, int32_t, P, P)(out, in, 8, FP32, SUM, c,
                                                                          s));
        break;
    case 4:
        good(F(HcclAlltoAll, P, uint64_t, int32_t, P, uint64_t, int32_t, P, P)(out, 8, FP32, in, 8,
                                                                               FP32, c, s));
        break;
    default:
        good(F(HcclBarrier, P, P)(c, s));
    }
}

static void work(const char *what, int rank, int n, long times, void *c, void *s)
{
    for (long i = 0; i < times; i++) {
        good(F(aclrtLaunchHostFunc, P, void (*)(void *), P)(s, compute, NULL));
        if (strcmp(what, "ring") == 0)
            pass_on(c, s, rank, n);
        if (strcmp(what, "mixed") == 0)
            one_of_many(c, s, i);
        else
            all_reduce(c, s);
        good(F(aclrtSynchronizeStream, P)(s));
    }
}

int main(int argc, char **argv)
{
    static char root[4108];
    void *c = NULL, *s = NULL;
    const char *own = getenv("RANK");
    hccl = dlopen("libhccl.so", RTLD_LAZY | RTLD_LOCAL);
    acl = dlopen("libascendcl.so", RTLD_LAZY | RTLD_LOCAL);
    if (argc < 5 || own == NULL || hccl == NULL || acl == NULL)
        return 2;
    const int rank = atoi(own), n = atoi(argv[3]);
    snprintf(root, sizeof root, "%s", argv[2]);
    good(F(aclrtSetDevice, int32_t)(rank));
    good(F(aclrtCreateStream, void **)(&s));
    good(F(HcclCommInitRootInfo, uint32_t, P, uint32_t, void **)((uint32_t)n, root, (uint32_t)rank,
                                                                 &c));
    work(argv[1], rank, n, strtol(argv[4], NULL, 10), c, s);
    good(F(HcclCommDestroy, P)(c));
    good(F(aclrtDestroyStream, P)(s));
    return wrong;
}
