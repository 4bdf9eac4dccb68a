/* SPDX-License-Identifier: MIT
 *
 * nccl_profiler: a profiler plugin of NCCL, for the times at which a collective's kernel ran on the
 * device, and for programs that contain NCCL statically, where a preload intercepts nothing.
 *
 * An operation becomes a range of the domain "nccl" on a stream of the communicator; from version 4
 * on the kernel reports its start and stop by the device's global timer, from the first channel to
 * the last, which become the device times of the range.  An operation that bypassed the hooks is
 * recorded as a communication call as well.
 *
 * The stop of an operation means that it was queued; its kernels stop later, on another thread, in
 * any order.  So an event has a reference count: itself and each channel.
 *
 * The relation of the timer to the host's clock is unknown.  The kernel runs between the queueing
 * of an operation and the report of its end, which bounds the difference from both sides; the upper
 * bound, by the fastest report, is used.
 */
#include "mstx/hook/ccl/nccl_profiler.h"
#include "mstx/hook/ccl/ccl.h"
#include "mstx/rt/hook_api.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { EVENTS = 8192, CONTEXTS = 256, NONE = 0 };

struct context {
    char name[96];
    struct mstx_group *group;
    uint64_t id, born; /* identity, 0: unknown; higher is newer */
    int ranks, rank;
    bool is_used, is_claimed, has_kernels;
};

struct event {
    _Atomic uint32_t users; /* reference count: itself and its channels; 0: free */
    uint8_t version;
    uint32_t type;
    struct context *context;
    struct event *parent; /* of a channel */
    uint64_t range, ticks, call;
    _Atomic uint64_t first, last; /* times of the device's timer */
};

static struct context contexts[CONTEXTS];
static struct event events[EVENTS];
static _Atomic uint32_t next_event;
static struct hook_lock plugin_lock;
static struct {
    _Atomic int64_t shift_ns; /* host time minus the timer: the minimum so far */
    _Atomic bool is_known;
} timer;

static int64_t host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- events ------------------------------------------------------------------------------- */

/* Takes a free event; NULL when all are in use: the operation is not recorded. */
static struct event *event_new(uint8_t version, uint32_t type)
{
    for (int i = 0; i < 64; i++) {
        struct event *e = &events[atomic_fetch_add(&next_event, 1) % EVENTS];
        uint32_t none = 0;
        if (!atomic_compare_exchange_strong(&e->users, &none, 1))
            continue;
        e->version = version;
        e->type = type;
        e->context = NULL;
        e->parent = NULL;
        e->range = e->ticks = e->call = 0;
        atomic_store(&e->first, UINT64_MAX);
        atomic_store(&e->last, 0);
        return e;
    }
    return NULL;
}

/* Updates the difference of the clocks: the minimum over all reports, since the fastest report
 * bounds the difference best. */
static void learn_shift(uint64_t stamp)
{
    int64_t shift = host_ns() - (int64_t)stamp, least = atomic_load(&timer.shift_ns);
    if (!atomic_exchange(&timer.is_known, true))
        atomic_store(&timer.shift_ns, shift);
    else
        while (shift < least && !atomic_compare_exchange_weak(&timer.shift_ns, &least, shift))
            continue;
}

/* Drops a reference. At the last one the kernel's times are as complete as they will be, and are
 * recorded. */
static void event_let_go(struct event *e)
{
    if (atomic_fetch_sub(&e->users, 1) != 1)
        return;
    uint64_t first = atomic_load(&e->first), last = atomic_load(&e->last);
    int64_t shift = atomic_load(&timer.shift_ns);
    if (e->parent != NULL) {
        event_let_go(e->parent);
        return;
    }
    if (e->range == 0 || e->type == PLUGIN_CE_COLL || !e->context->has_kernels)
        return;
    bool is_whole = first != UINT64_MAX && last >= first;
    mstx_device_time(e->range, e->ticks, 0, is_whole ? (int64_t)first + shift : 0);
    mstx_device_time(e->range, e->ticks, 1, is_whole ? (int64_t)last + shift : 0);
}

/* Returns p if p is one of our events. A parent may be an address of another process. */
static struct event *own_event(void *p)
{
    uintptr_t off = (uintptr_t)p - (uintptr_t)events;
    return off < sizeof events && off % sizeof events[0] == 0 ? p : NULL;
}

/* ---- operations ----------------------------------------------------------------------------- */

struct operation {
    const char *func, *datatype;
    size_t count;
    int peer;
};

static uint8_t op_of(const char *func)
{
    static const struct {
        const char *name;
        uint8_t op;
    } all[] = {{"AllReduce", MSTX_COMM_ALLREDUCE},
               {"Broadcast", MSTX_COMM_BROADCAST},
               {"Reduce", MSTX_COMM_REDUCE},
               {"AllGather", MSTX_COMM_ALLGATHER},
               {"ReduceScatter", MSTX_COMM_REDUCE_SCATTER},
               {"AlltoAll", MSTX_COMM_ALLTOALL},
               {"Gather", MSTX_COMM_GATHER},
               {"Scatter", MSTX_COMM_SCATTER},
               {"Send", MSTX_COMM_SEND},
               {"Recv", MSTX_COMM_RECV},
               {"SendRecv", MSTX_COMM_SENDRECV}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcasecmp(all[i].name, func) == 0)
            return all[i].op;
    }
    return MSTX_COMM_NONE;
}

/* Operations, by their numbers in the interface. */
static const struct {
    const char *name;
    uint8_t type;
} types[] = {{"ncclInt8", MSTX_TYPE_INT8},          {"ncclUint8", MSTX_TYPE_UINT8},
             {"ncclInt32", MSTX_TYPE_INT32},        {"ncclUint32", MSTX_TYPE_UINT32},
             {"ncclInt64", MSTX_TYPE_INT64},        {"ncclUint64", MSTX_TYPE_UINT64},
             {"ncclFloat16", MSTX_TYPE_FP16},       {"ncclFloat32", MSTX_TYPE_FP32},
             {"ncclFloat64", MSTX_TYPE_FP64},       {"ncclBfloat16", MSTX_TYPE_BFP16},
             {"ncclFloat8e4m3", MSTX_TYPE_FP8E4M3}, {"ncclFloat8e5m2", MSTX_TYPE_FP8E5M2}};
enum { TYPES = sizeof types / sizeof *types };

static const char *type_name(uint8_t number)
{
    return number < TYPES ? types[number].name : NULL;
}

static uint8_t type_of(const char *name)
{
    for (size_t i = 0; name != NULL && i < TYPES; i++) {
        if (strcasecmp(types[i].name, name) == 0)
            return types[i].type;
    }
    return MSTX_TYPE_NA;
}

/* Returns a name of an operation that is never freed. */
static const char *name_of(uint8_t op)
{
    return op != MSTX_COMM_NONE ? mstx_comm_op_text(op) : "Operation";
}

static void begin_operation(struct event *e, const struct operation *o)
{
    uint8_t op = op_of(o->func != NULL ? o->func : "");
    e->range = mstx_device_range("nccl", name_of(op), e->context, &e->ticks);
    if (hook_ccl_running(name_of(op)) != 0)
        return;
    const struct mstx_comm_call call = {.name = name_of(op),
                                        .group = e->context->group,
                                        .count = o->count,
                                        .peer = o->peer,
                                        .op = op,
                                        .dtype = type_of(o->datatype),
                                        .reduce = MSTX_REDUCE_NONE,
                                        .lib = MSTX_LIB_NCCL,
                                        .flags = MSTX_CF_ASYNC};
    e->call = mstx_comm_begin(&call);
}

/* Reads the description of a collective or transfer in the layout of this version. */
static struct operation read_operation(int version, bool is_coll, const void *descr)
{
    const struct plugin_descr_v1 *d = descr;
    const struct plugin_descr_v5 *five = descr;
    static const char *const funcs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                        "AllReduce", "SendRecv", "Send",      "Recv"};
    const size_t n = sizeof funcs / sizeof *funcs;
    switch (version) {
    case 1:
        return is_coll
                   ? (struct operation){d->coll1.func < n ? funcs[d->coll1.func] : NULL,
                                        type_name(d->coll1.datatype), d->coll1.count, d->coll1.root}
                   : (struct operation){d->p2p1.func < n ? funcs[d->p2p1.func] : NULL,
                                        type_name(d->p2p1.datatype), d->p2p1.count, d->p2p1.peer};
    case 2:
    case 3:
        return is_coll ? (struct operation){d->coll2.func, d->coll2.datatype, d->coll2.count,
                                            d->coll2.root}
                       : (struct operation){d->p2p2.func, d->p2p2.datatype, d->p2p2.count,
                                            d->p2p2.peer};
    case 4:
        return is_coll ? (struct operation){d->coll4.func, d->coll4.datatype, d->coll4.count,
                                            d->coll4.root}
                       : (struct operation){d->p2p4.func, d->p2p4.datatype, d->p2p4.count,
                                            d->p2p4.peer};
    default:
        return is_coll ? (struct operation){five->coll4.func, five->coll4.datatype,
                                            five->coll4.count, five->coll4.root}
                       : (struct operation){five->p2p4.func, five->p2p4.datatype, five->p2p4.count,
                                            five->p2p4.peer};
    }
}

/* Before version 4 a communicator is described only by its operations; the descriptions of
 * collectives and transfers begin alike. */
static void learn_context(struct context *c, const struct plugin_descr_v1 *d)
{
    hook_lock(&plugin_lock);
    if (c->id == 0 && d->coll2.comm_hash != 0) {
        c->id = d->coll2.comm_hash;
        c->rank = d->rank;
        if (d->coll2.name != NULL && d->coll2.name[0] != '\0')
            snprintf(c->name, sizeof c->name, "%s", d->coll2.name);
        mstx_group_update(
            c->group,
            &(struct mstx_group_info){.uid = c->id, .name = c->name, .size = -1, .rank = d->rank});
    }
    hook_unlock(&plugin_lock);
}

static struct event *start_channel(int version, struct event *parent, uint64_t stamp)
{
    if (parent == NULL || version < 4)
        return NULL;
    struct event *e = event_new((uint8_t)version, PLUGIN_KERNEL);
    if (e == NULL)
        return NULL;
    atomic_fetch_add(&parent->users, 1);
    e->parent = parent;
    uint64_t first = atomic_load(&parent->first);
    while (stamp != 0 && stamp < first &&
           !atomic_compare_exchange_weak(&parent->first, &first, stamp))
        continue;
    return e;
}

/* ---- the functions of the interface ------------------------------------------------------------ */

/* Begins an event. NCCL calls the functions of the interface from several threads; all return
 * success, because a profiler must not end a training. */
static int start_event(int version, void *context, void **out, const void *descr)
{
    const struct plugin_descr_v1 *d = descr;
    const struct plugin_descr_v5 *five = descr;
    *out = NULL;
    if (context == NULL || descr == NULL)
        return 0;
    uint64_t type = version >= 5 ? five->type : d->type;
    void *parent = version >= 5 ? five->parent : d->parent;
    if (type == PLUGIN_KERNEL) {
        uint64_t stamp = version >= 5 ? five->kernel4.timer : d->kernel4.timer;
        *out = start_channel(version, own_event(parent), version >= 4 ? stamp : 0);
    } else if (type == PLUGIN_COLL || type == PLUGIN_P2P ||
               (type == PLUGIN_CE_COLL && version >= 6)) {
        struct event *e = event_new((uint8_t)version, (uint32_t)type);
        if (e == NULL)
            return 0;
        struct operation o = read_operation(version, type != PLUGIN_P2P, descr);
        e->context = context;
        if (version < 4)
            learn_context(context, d);
        begin_operation(e, &o);
        *out = e;
    }
    return 0;
}

static int stop_event(void *event)
{
    struct event *e = own_event(event);
    if (e == NULL)
        return 0;
    if (e->type != PLUGIN_KERNEL) {
        mstx_comm_end(e->call);
        mstx_device_range_end(e->range);
    }
    event_let_go(e);
    return 0;
}

static int record_state(void *event, int state, void *args)
{
    struct event *e = own_event(event);
    const union plugin_state_v4 *a = args;
    if (e == NULL || a == NULL || state != PLUGIN_KERNEL_STOP || e->version < 4 ||
        e->parent == NULL)
        return 0;
    uint64_t last = atomic_load(&e->parent->last);
    while (a->timer > last && !atomic_compare_exchange_weak(&e->parent->last, &last, a->timer))
        continue;
    if (a->timer != 0)
        learn_shift(a->timer);
    return 0;
}

static int finalize(void *context)
{
    struct context *c = context;
    if (c != NULL) {
        hook_lock(&plugin_lock);
        mstx_group_end(c->group);
        c->is_used = false;
        hook_unlock(&plugin_lock);
    }
    return 0;
}

/* Notes that NCCL runs in this process although no call reached the hooks. */
static void say_past_hooks(void)
{
    if (!hook_copy_is_called(&hook_nccl_family))
        mstx_comm_note("calls of NCCL do not come to the hooks (it is linked -Bsymbolic, opened "
                       "RTLD_DEEPBIND or looked up: try --hook_dlsym); what its profiler interface "
                       "tells is recorded");
}

bool hook_plugin_claim(int ranks, int rank, bool only, uint64_t *id)
{
    struct context *found = NULL;
    int n = 0;
    hook_lock(&plugin_lock);
    for (struct context *c = contexts; c < contexts + CONTEXTS; c++) {
        if (!c->is_used || c->is_claimed || c->id == 0 || c->ranks != ranks || c->rank != rank)
            continue;
        n++;
        found = found == NULL || c->born > found->born ? c : found;
    }
    if (found != NULL && (n == 1 || !only)) {
        found->is_claimed = true;
        *id = found->id;
    }
    hook_unlock(&plugin_lock);
    return found != NULL && (n == 1 || !only);
}

static int init(void **context, int *mask, bool has_kernels, const char *name, uint64_t id,
                int ranks, int rank)
{
    static uint64_t births;
    struct context *c = NULL;
    hook_lock(&plugin_lock);
    for (int i = 0; i < CONTEXTS && c == NULL; i++) {
        if (!contexts[i].is_used)
            c = &contexts[i];
    }
    if (c != NULL) {
        *c = (struct context){.id = id,
                              .born = ++births,
                              .ranks = ranks,
                              .rank = rank,
                              .is_used = true,
                              .has_kernels = has_kernels};
    }
    hook_unlock(&plugin_lock);
    *context = c;
    if (c == NULL)
        return 0;
    snprintf(c->name, sizeof c->name, "%s", name != NULL && *name != '\0' ? name : "nccl");
    c->group = mstx_group_new(
        &(struct mstx_group_info){.uid = id, .name = c->name, .size = ranks, .rank = rank});
    mstx_device_stream(c, c->name, 0, (uint32_t)(c - contexts));
    *mask = PLUGIN_COLL | PLUGIN_P2P | (has_kernels ? PLUGIN_KERNEL : 0);
    say_past_hooks();
    return 0;
}

/* ---- versions ------------------------------------------------------------------------------------ */

static int init_old(void **context, int *mask)
{
    return init(context, mask, false, NULL, 0, -1, -1);
}
static int init_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                   int rank, plugin_log *log)
{
    (void)nodes;
    (void)log;
    return init(context, mask, true, name, hash, ranks, rank);
}
static int init_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                   int rank, plugin_log *log)
{
    (void)nodes;
    (void)log;
    return init(context, mask, true, name, id, ranks, rank);
}
static int init_v6(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                   int rank, plugin_log *log)
{
    int rc = init_v5(context, id, mask, name, nodes, ranks, rank, log);
    *mask |= PLUGIN_CE_COLL;
    return rc;
}

static int start_v1(void *context, void **event, void *descr)
{
    return start_event(1, context, event, descr);
}
static int start_v2(void *context, void **event, void *descr)
{
    return start_event(2, context, event, descr);
}
static int start_v3(void *context, void **event, void *descr)
{
    return start_event(3, context, event, descr);
}
static int start_v4(void *context, void **event, void *descr)
{
    return start_event(4, context, event, descr);
}
static int start_v5(void *context, void **event, void *descr)
{
    return start_event(5, context, event, descr);
}
static int start_v6(void *context, void **event, void *descr)
{
    return start_event(6, context, event, descr);
}

/* Declared here, because NCCL looks them up by name. */
extern const struct plugin_v1 ncclProfiler_v1;
extern const struct plugin_v1 ncclProfiler_v2;
extern const struct plugin_v1 ncclProfiler_v3;
extern const struct plugin_v4 ncclProfiler_v4;
extern const struct plugin_v5 ncclProfiler_v5;
extern const struct plugin_v5 ncclProfiler_v6;

HOOK_API const struct plugin_v1 ncclProfiler_v1 = {"msprobe",  init_old,     start_v1,
                                                   stop_event, record_state, finalize};
HOOK_API const struct plugin_v1 ncclProfiler_v2 = {"msprobe",  init_old,     start_v2,
                                                   stop_event, record_state, finalize};
HOOK_API const struct plugin_v1 ncclProfiler_v3 = {"msprobe",  init_old,     start_v3,
                                                   stop_event, record_state, finalize};
HOOK_API const struct plugin_v4 ncclProfiler_v4 = {"msprobe",  init_v4,      start_v4,
                                                   stop_event, record_state, finalize};
HOOK_API const struct plugin_v5 ncclProfiler_v5 = {"msprobe",  init_v5,      start_v5,
                                                   stop_event, record_state, finalize};
HOOK_API const struct plugin_v5 ncclProfiler_v6 = {"msprobe",  init_v6,      start_v6,
                                                   stop_event, record_state, finalize};
