/* SPDX-License-Identifier: MIT
 *
 * nccl: the public functions of NCCL, which are those of RCCL as well.
 *
 * A communicator has no public name.  All of its ranks hold the same unique id, so its hash is
 * the identity; the identity of a child is that of its parent with the number of the child, which
 * all ranks count alike.
 */
#include "mstx/hook/ccl/ccl.h"
#include "mstx/hook/ccl/nccl_profiler.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { IN_PROGRESS = 7, SYSTEM_ERROR = 2, NO_COLOR = -1 };

/* The unique id as it is passed by value. */
typedef struct {
    char bytes[128];
} nccl_id;

static int return_missing(void)
{
    return SYSTEM_ERROR;
}

/* ---- types and reductions ------------------------------------------------------------------- */

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

static enum mstx_comm_lib kind(void);
static bool learn(void *comm, struct mstx_group_info *info, char name[128]);
static const struct hook_ccl_lib nccl = {
    .family = &hook_nccl_family, .device = MSTX_DEVICE_CUDA, .kind = kind, .learn = learn};

/* Tells NCCL from RCCL, which has the same functions, alone or inside of PyTorch. */
static enum mstx_comm_lib kind(void)
{
    static _Atomic uint8_t known[HOOK_COPIES]; /* OTHER: not known yet */
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

/* Queries size and rank. These queries fail while a nonblocking communicator is being made and are
 * repeated at the next call. */
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

/* Describes a communicator whose creation was missed: an identity that is equal on all ranks is
 * known only to the profiler, if at all. */
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

/* Registers a communicator. The ranks that were in a grown communicator before and those that join
 * have nothing in common but the identity that NCCL passes to its profiler. */
static void announce_comm_as(int rc, void *const *comm, uint64_t uid, int size, int rank,
                             bool is_grown)
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

static void announce_comm(int rc, void *const *comm, uint64_t uid, int size, int rank)
{
    announce_comm_as(rc, comm, uid, size, rank, false);
}

static uint64_t id_hash(const nccl_id *id)
{
    return id != NULL ? mstx_group_hash(0, id->bytes, sizeof id->bytes) : 0;
}

/* Registers all communicators of one process: no other rank has to compute the same identity. */
static void announce_comms(int rc, void *const *comms, int n)
{
    static _Atomic uint32_t times;
    const uint32_t what[] = {(uint32_t)getpid(), atomic_fetch_add(&times, 1)};
    uint64_t uid = mstx_group_hash(0, what, sizeof what);
    for (int i = 0; i < n && comms != NULL; i++)
        announce_comm(rc, comms + i, uid, n, i);
}

static uint64_t child_uid(void *parent, int kind)
{
    struct hook_ccl_comm *p = hook_ccl_of(&nccl, parent);
    if (p == NULL)
        return 0;
    uint64_t uid = mstx_group_uid(p->group);
    const uint32_t what[] = {atomic_fetch_add(&p->children, 1), (uint32_t)kind};
    return mstx_group_hash(uid, what, sizeof what);
}

static void announce_child(int rc, void *const *comm, uint64_t uid, bool is_grown)
{
    int32_t size = -1, rank = -1;
    if ((rc == 0 || rc == IN_PROGRESS) && comm != NULL && *comm != NULL && uid != 0) {
        learn_ranks(*comm, &size, &rank);
        announce_comm_as(rc, comm, uid, size, rank, is_grown);
    }
}

static uint64_t sum_bytes(void *comm, const void *counts, int type)
{
    return hook_ccl_sum(&nccl, comm, counts) * mstx_comm_type_bytes(type_of(type));
}

/* ---- the functions, from nccl_calls.txt ------------------------------------------------------ */

#include <nccl_wrappers.inc>
