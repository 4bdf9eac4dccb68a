/* SPDX-License-Identifier: MIT
 *
 * ccl: see the header.  The table of communicators is read without a lock; entries are
 * never moved; a destroyed one leaves a tombstone, which a search skips and a new one may reuse.
 */
#include "mstx/hook/ccl/ccl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    COMMS = 4096,
    GROUP_MAX = 1024, /* operations of an open group whose ranges end with the group */
};
static void *const GONE = (void *)(uintptr_t)1;

static const char *const nccl_owners[] = {"libnccl.so", "librccl.so", "libtorch_cuda.so",
                                          "libtorch_hip.so", NULL};
static const char *const hccl_owners[] = {"libhccl.so", "libhcomm.so", NULL};
struct hook_family hook_nccl_family = {.name = "NCCL", .owners = nccl_owners};
struct hook_family hook_hccl_family = {.name = "HCCL", .owners = hccl_owners};

const _Atomic uint8_t *hook_ccl_live;
static struct hook_ccl_comm comms[COMMS];
static struct hook_lock comms_lock;

/* The open group of a thread, with its operations. */
static __thread struct {
    uint32_t depth, n, asked;
    uint64_t id[GROUP_MAX];
    const char *name[GROUP_MAX];
} * open_group __attribute__((tls_model("initial-exec")));
/* The operation in progress outside of a group. */
static __thread struct {
    uint64_t id;
    const char *name;
    void *stream; /* last announced to the recorder */
} mine __attribute__((tls_model("initial-exec")));

__thread unsigned hook_ccl_copy_now __attribute__((tls_model("initial-exec")));

/* For libmstx_dlsym.so: tells whether the hook calls the copy of the function that the program
 * looked up. */
HOOK_API int mstx_hook_reaches(const char *name, const void *function);
HOOK_API int mstx_hook_reaches(const char *name, const void *function)
{
    const struct hook_family *f = strncmp(name, "nccl", 4) == 0   ? &hook_nccl_family
                                  : strncmp(name, "Hccl", 4) == 0 ? &hook_hccl_family
                                                                  : NULL;
    return f == NULL || hook_copy_is_usual(f, name, function);
}

/* ---- communicators ----------------------------------------------------------------------- */

static size_t first_place(const void *handle)
{
    return (size_t)(((uintptr_t)handle * 0x9E3779B97F4A7C15u) >> 52);
}
_Static_assert(COMMS == 1 << 12, "the hash gives 12 bits");

struct hook_ccl_comm *hook_ccl_find(void *handle)
{
    size_t at = first_place(handle);
    if (handle == NULL)
        return NULL;
    for (int i = 0; i < COMMS; i++, at = (at + 1) % COMMS) {
        void *h = atomic_load_explicit(&comms[at].handle, memory_order_acquire);
        if (h == handle)
            return &comms[at];
        if (h == NULL)
            return NULL;
    }
    return NULL;
}

static struct hook_ccl_comm *free_place(const void *handle)
{
    size_t at = first_place(handle);
    for (int i = 0; i < COMMS; i++, at = (at + 1) % COMMS) {
        void *h = atomic_load(&comms[at].handle);
        if (h == NULL || h == GONE)
            return &comms[at];
    }
    return NULL;
}

void hook_ccl_made(const struct hook_ccl_lib *lib, void *handle, const struct mstx_group_info *info)
{
    if (handle == NULL || handle == GONE)
        return;
    hook_ccl_gone(handle); /* an old communicator with this handle was freed without a hook call */
    struct mstx_group *group = mstx_group_new(info);
    hook_lock(&comms_lock);
    struct hook_ccl_comm *c = free_place(handle);
    if (c != NULL) {
        c->group = group;
        c->size = info->size;
        c->rank = info->rank;
        c->copy = (uint8_t)hook_ccl_copy_now;
        c->lib = (uint8_t)lib->kind();
        snprintf(c->name, sizeof c->name, "%.63s", info->name);
        atomic_store(&c->children, 0);
        atomic_store_explicit(&c->handle, handle, memory_order_release);
    }
    hook_unlock(&comms_lock);
}

void hook_ccl_gone(void *handle)
{
    hook_lock(&comms_lock);
    struct hook_ccl_comm *c = hook_ccl_find(handle);
    if (c != NULL)
        atomic_store(&c->handle, GONE);
    hook_unlock(&comms_lock);
    if (c != NULL)
        mstx_group_end(c->group);
}

HOOK_COLD static struct hook_ccl_comm *learn(const struct hook_ccl_lib *lib, void *handle)
{
    char name[128] = "";
    struct mstx_group_info info = {.size = -1, .rank = -1};
    if (handle == NULL || !lib->learn(handle, &info, name))
        return NULL;
    info.name = name;
    hook_ccl_made(lib, handle, &info);
    return hook_ccl_find(handle);
}

struct hook_ccl_comm *hook_ccl_of(const struct hook_ccl_lib *lib, void *handle)
{
    struct hook_ccl_comm *c = hook_ccl_find(handle);
    return HOOK_LIKELY(c != NULL) ? c : learn(lib, handle);
}

uint64_t hook_ccl_sum(const struct hook_ccl_lib *lib, void *handle, const void *counts)
{
    const struct hook_ccl_comm *c = hook_ccl_of(lib, handle);
    const uint64_t *n = counts;
    uint64_t sum = 0;
    for (int32_t i = 0; c != NULL && n != NULL && i < c->size; i++)
        sum += n[i];
    return sum;
}

/* Updates size and rank, which were not available while the communicator was being made. */
HOOK_COLD static void learn_ranks(const struct hook_ccl_lib *lib, struct hook_ccl_comm *c)
{
    char name[128];
    struct mstx_group_info info = {.size = -1, .rank = -1};
    if (!lib->learn(atomic_load(&c->handle), &info, name))
        return;
    c->size = info.size;
    c->rank = info.rank;
    info.uid = mstx_group_uid(c->group);
    info.name = c->name;
    mstx_group_update(c->group, &info);
}

/* ---- one call ------------------------------------------------------------------------------- */

uint64_t hook_ccl_begin(const struct hook_ccl_lib *lib, void *comm, struct mstx_comm_call *c)
{
    struct hook_ccl_comm *k = hook_ccl_of(lib, comm);
    bool in_group = open_group != NULL && open_group->depth != 0;
    if (k != NULL && k->size < 0)
        learn_ranks(lib, k);
    c->lib = k != NULL ? k->lib : (uint8_t)lib->kind();
    c->group = k != NULL ? k->group : NULL;
    if (in_group)
        c->flags |= MSTX_CF_GROUPED;
    if (c->stream != NULL && c->stream != mine.stream) {
        /* A stream passed to this library is a stream of its device kind. */
        mine.stream = c->stream;
        mstx_stream_made(lib->device, c->stream, NULL);
    }
    uint64_t id = mstx_comm_begin(c);
    if (hook_ccl_live == NULL)
        hook_ccl_live = mstx_comm_live();
    mine.id = id;
    mine.name = c->name;
    if (!in_group || open_group->n == GROUP_MAX || c->op == MSTX_COMM_GROUP_CALL || id == 0)
        return id;
    open_group->name[open_group->n] = c->name;
    open_group->id[open_group->n++] = id;
    return 0; /* its range ends with the group */
}

void hook_ccl_end(uint64_t id)
{
    mine.id = 0;
    if (id != 0)
        mstx_comm_end(id);
}

void hook_ccl_count(const struct hook_ccl_lib *lib, const char *name, uint8_t op)
{
    if (hook_depth != 0 || !hook_ccl_on())
        return;
    hook_depth = 1;
    struct mstx_comm_call c = hook_ccl_plain(name, op);
    hook_ccl_end(hook_ccl_begin(lib, NULL, &c));
    hook_depth = 0;
}

void hook_ccl_group_start(void)
{
    if (open_group == NULL)
        open_group = hook_keep(sizeof *open_group);
    if (open_group != NULL)
        open_group->depth++;
}

void hook_ccl_group_end(void)
{
    if (open_group == NULL || open_group->depth == 0 || --open_group->depth != 0)
        return;
    for (uint32_t i = 0; i < open_group->n; i++)
        mstx_comm_end(open_group->id[i]);
    open_group->n = open_group->asked = 0;
}

static bool is_named(const char *function, const char *name)
{
    return strncmp(function, "nccl", 4) == 0 && strcasecmp(function + 4, name) == 0;
}

uint64_t hook_ccl_running(const char *name)
{
    for (uint32_t i = open_group != NULL ? open_group->asked : 0;
         open_group != NULL && i < open_group->n; i++) {
        if (is_named(open_group->name[i], name)) {
            open_group->asked = i + 1;
            return open_group->id[i];
        }
    }
    return mine.id != 0 && is_named(mine.name, name) ? mine.id : 0;
}
