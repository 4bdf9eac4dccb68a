/* SPDX-License-Identifier: MIT
 *
 * hccl: the public functions of HCCL; operators are in libhccl.so, and since the open release
 * communicators are in libhcomm.so.  The vendor's profiler leaves out HcclAllGatherV,
 * HcclReduceScatterV, HcclAlltoAllVC, HcclBarrier and everything about communicators; here all are
 * recorded.  The library returns a communicator's name, which is the same on all its ranks.
 */
#include "mstx/hook/ccl/ccl.h"

#include <string.h>

enum { INTERNAL = 4, SEND = 0 };

/* A transfer of a batch, with the layout of HCCL's header. */
struct item {
    int32_t what; /* SEND or receive */
    void *buf;
    uint64_t count;
    int32_t type;
    uint32_t rank;
};

static int return_missing(void)
{
    return INTERNAL;
}
static const char *return_missing_text(void)
{
    return "HCCL is not there";
}

/* ---- types and reductions ------------------------------------------------------------------- */

/* Converts a type. Captures use the numbers of HCCL; other numbers become "unknown". */
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

static void announce_comm(int rc, void *const *comm)
{
    char name[128] = "";
    struct mstx_group_info info = {.name = name};
    if (rc == 0 && comm != NULL && *comm != NULL && learn(*comm, &info, name))
        hook_ccl_made(&hccl, *comm, &info);
}

static void announce_comms(int rc, void *const *comms, uint32_t n)
{
    for (uint32_t i = 0; i < n && comms != NULL; i++)
        announce_comm(rc, comms + i);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(uint64_t count, int32_t type)
{
    return count * mstx_comm_type_bytes(type_of(type));
}

/* Returns the bytes that this rank sends according to a matrix of counts, one row for each sender;
 * by column: the bytes that it receives. */
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

static uint64_t sum_bytes(void *comm, const void *counts, int32_t type)
{
    return bytes_of(hook_ccl_sum(&hccl, comm, counts), type);
}

/* Sets the bytes that this rank sends and receives, where a count does not determine them. */
static void set_bytes(struct mstx_comm_call *c, uint64_t sent, uint64_t received)
{
    c->has_part = true;
    c->peer2 = -1;
    c->sent = sent;
    c->received = received;
}

/* ---- the functions, from hccl_calls.txt ------------------------------------------------------ */

#include <hccl_wrappers.inc>

/* Notes at exit that HCCL was loaded but no call reached the hooks; HCCL has no profiler interface
 * as NCCL has. */
__attribute__((destructor)) static void say_past_hooks(void)
{
    if (!hook_copy_is_called(&hook_hccl_family) && mstx_comm_on() &&
        hook_find("HcclAllReduce", hook_hccl_family.owners) != NULL)
        mstx_comm_note(
            "HCCL was loaded and none of its calls came to the hooks: it was not used, or "
            "is linked -Bsymbolic, opened RTLD_DEEPBIND or looked up (try --hook_dlsym)");
}
