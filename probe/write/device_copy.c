/* SPDX-License-Identifier: MIT
 *
 * device_copy: queues a copy on a device and polls for its end, with functions found at run time in
 * the libraries that the process has loaded.
 *
 * Copies are queued on the stream itself, not on a second stream: later work of the program has to
 * wait for the copy in both cases, as it may write to the same memory.
 */
#include "probe/write/device_copy.h"

#include "probe/base/mem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Functions of the same form in CUDA and ACL. */
struct alike {
    int (*context_get)(void **context);
    int (*context_set)(void *context);
    int (*room_new)(void **p, size_t n);
    int (*room_free)(void *p);
    int (*event_free)(void *event);
};

struct device {
    const char *name;
    const char *const *files; /* names of the library, NULL-terminated */
    bool (*load)(void *lib);  /* finds the library's functions */
    bool (*open)(struct probe_stream *s);
    /* Allocates page-locked memory where the device can use it. */
    void *(*room_new)(const struct probe_stream *s, size_t n);
    void (*room_free)(const struct probe_stream *s, void *p);
    bool (*begin)(struct probe__copy *c, const char *from, uint64_t offset, size_t n);
    enum probe__arrival (*ask)(struct probe__copy *c);
    void (*forget)(struct probe__copy *c); /* releases the event */
    const struct alike *alike;             /* NULL: a device without contexts */
};

struct probe_stream {
    const struct device *device;
    void *handle;
    void *context;
    bool is_out_of_order;
    atomic_uint users; /* one for the program, one for each copy that uses its memory */
};

/* A function to look up in a library, and the pointer to set. */
struct symbol {
    const char *name;
    void *to;
};

static bool find_all(void *lib, const struct symbol *symbols, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *found = dlsym(lib, symbols[i].name);
        if (found == NULL)
            return false;
        memcpy(symbols[i].to, &found, sizeof found);
    }
    return true;
}
#define FIND_ALL(lib, symbols) find_all((lib), (symbols), sizeof(symbols) / sizeof *(symbols))

static void *plain_room(const struct probe_stream *s, size_t n)
{
    (void)s;
    return ms_alloc(n);
}
static void plain_free(const struct probe_stream *s, void *p)
{
    (void)s;
    ms_free(p);
}
static bool any_stream(struct probe_stream *s)
{
    (void)s;
    return true;
}

/* ---- the processor ---------------------------------------------------- */

static int (*cpu_run)(void *stream, void (*fn)(void *), void *arg);

static bool cpu_load(void *lib)
{
    const struct symbol symbols[] = {{"mstx_cpu_stream_run", &cpu_run}};
    return FIND_ALL(lib, symbols);
}
static void cpu_copy(void *arg)
{
    struct probe__copy *c = arg;
    memcpy(c->host, c->from, c->bytes);
    atomic_store_explicit(&c->is_done, true, memory_order_release);
}
static bool cpu_begin(struct probe__copy *c, const char *from, uint64_t offset, size_t n)
{
    c->from = from + offset;
    c->bytes = n;
    atomic_store(&c->is_done, false);
    return cpu_run(c->stream->handle, cpu_copy, c) == 0;
}
static enum probe__arrival cpu_ask(struct probe__copy *c)
{
    return atomic_load_explicit(&c->is_done, memory_order_acquire) ? PROBE__ARRIVED
                                                                   : PROBE__UNDER_WAY;
}
static void cpu_forget(struct probe__copy *c)
{
    (void)c;
}

/* ---- OpenCL ----------------------------------------------------------- */

enum { CL_QUEUE_PROPERTIES = 0x1093, CL_OUT_OF_ORDER = 1, CL_EVENT_STATUS = 0x11D3 };

static struct {
    int32_t (*queue_info)(void *queue, uint32_t what, size_t n, void *to, size_t *size);
    int32_t (*read)(void *queue, void *memory, uint32_t wait, size_t offset, size_t n, void *to,
                    uint32_t nwait, void *const *waits, void **event);
    int32_t (*barrier)(void *queue, uint32_t nwait, void *const *waits, void **event);
    int32_t (*event_info)(void *event, uint32_t what, size_t n, void *to, size_t *size);
    int32_t (*release)(void *event);
    int32_t (*flush)(void *queue);
} cl;

static bool cl_load(void *lib)
{
    const struct symbol symbols[] = {{"clGetCommandQueueInfo", &cl.queue_info},
                                     {"clEnqueueReadBuffer", &cl.read},
                                     {"clEnqueueBarrierWithWaitList", &cl.barrier},
                                     {"clGetEventInfo", &cl.event_info},
                                     {"clReleaseEvent", &cl.release},
                                     {"clFlush", &cl.flush}};
    return FIND_ALL(lib, symbols);
}
static bool cl_open(struct probe_stream *s)
{
    uint64_t bits = 0;
    if (cl.queue_info(s->handle, CL_QUEUE_PROPERTIES, sizeof bits, &bits, NULL) != 0)
        return false;
    s->is_out_of_order = (bits & CL_OUT_OF_ORDER) != 0;
    return true;
}
/* Starts the copy; on an out-of-order queue, between two barriers. */
static bool cl_begin(struct probe__copy *c, const char *from, uint64_t offset, size_t n)
{
    void *queue = c->stream->handle;
    void *memory = (void *)(uintptr_t)from;
    const bool is_loose = c->stream->is_out_of_order;
    if (is_loose && cl.barrier(queue, 0, NULL, NULL) != 0)
        return false;
    if (cl.read(queue, memory, 0, (size_t)offset, n, c->host, 0, NULL, &c->event) != 0)
        return false;
    if (is_loose)
        cl.barrier(queue, 0, NULL, NULL);
    cl.flush(queue);
    return true;
}
static enum probe__arrival cl_ask(struct probe__copy *c)
{
    int32_t status = 0;
    if (cl.event_info(c->event, CL_EVENT_STATUS, sizeof status, &status, NULL) != 0 || status < 0)
        return PROBE__LOST;
    return status == 0 ? PROBE__ARRIVED : PROBE__UNDER_WAY;
}
static void cl_forget(struct probe__copy *c)
{
    if (c->event != NULL)
        cl.release(c->event);
    c->event = NULL;
}

/* ---- devices with contexts -------------------------------------------- */

static bool context_open(struct probe_stream *s)
{
    return s->device->alike->context_get(&s->context) == 0 && s->context != NULL;
}
/* Makes the stream's context current and returns the previous one: the thread may be the
 * program's. */
static void *enter_stream(const struct probe_stream *s)
{
    void *before = NULL;
    s->device->alike->context_get(&before); /* ACL's call fails on a thread without a context */
    if (before != s->context)
        s->device->alike->context_set(s->context);
    return before;
}
static void restore_context(const struct probe_stream *s, void *before)
{
    if (before != s->context && before != NULL)
        s->device->alike->context_set(before);
}
static void *locked_room(const struct probe_stream *s, size_t n)
{
    void *p = NULL;
    return s->device->alike->room_new(&p, n) == 0 ? p : NULL;
}
static void locked_free(const struct probe_stream *s, void *p)
{
    void *before = enter_stream(s);
    s->device->alike->room_free(p);
    restore_context(s, before);
}
static void event_forget(struct probe__copy *c)
{
    void *before = enter_stream(c->stream);
    if (c->event != NULL)
        c->stream->device->alike->event_free(c->event);
    c->event = NULL;
    restore_context(c->stream, before);
}

/* ---- CUDA ------------------------------------------------------------- */

enum { CU_EVENT_WITHOUT_TIME = 2, CU_NOT_READY = 600 };

static struct {
    struct alike alike;
    int (*copy)(void *to, uint64_t from, size_t n, void *stream);
    int (*event_new)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_ask)(void *event);
    int (*is_capturing)(void *stream, int *status);
} cu;

static bool cu_load(void *lib)
{
    const struct symbol symbols[] = {{"cuCtxGetCurrent", &cu.alike.context_get},
                                     {"cuCtxSetCurrent", &cu.alike.context_set},
                                     {"cuMemAllocHost_v2", &cu.alike.room_new},
                                     {"cuMemFreeHost", &cu.alike.room_free},
                                     {"cuMemcpyDtoHAsync_v2", &cu.copy},
                                     {"cuEventCreate", &cu.event_new},
                                     {"cuEventDestroy_v2", &cu.alike.event_free},
                                     {"cuEventRecord", &cu.event_record},
                                     {"cuEventQuery", &cu.event_ask},
                                     {"cuStreamIsCapturing", &cu.is_capturing}};
    return FIND_ALL(lib, symbols);
}
/* Starts the copy. A stream being captured into a graph is refused: the copy would become a part
 * of the graph. */
static bool cu_begin(struct probe__copy *c, const char *from, uint64_t offset, size_t n)
{
    void *stream = c->stream->handle;
    int status = 0;
    if (cu.is_capturing(stream, &status) != 0 || status != 0)
        return false;
    if (cu.event_new(&c->event, CU_EVENT_WITHOUT_TIME) != 0 ||
        cu.copy(c->host, (uint64_t)(uintptr_t)from + offset, n, stream) != 0)
        return false;
    c->is_adrift = cu.event_record(c->event, stream) != 0;
    return !c->is_adrift;
}
static enum probe__arrival cu_ask(struct probe__copy *c)
{
    void *before = enter_stream(c->stream);
    int rc = cu.event_ask(c->event);
    restore_context(c->stream, before);
    return rc == 0 ? PROBE__ARRIVED : rc == CU_NOT_READY ? PROBE__UNDER_WAY : PROBE__LOST;
}

/* ---- Ascend ----------------------------------------------------------- */

enum { ACL_TO_HOST = 2, ACL_COMPLETE = 1 };

static struct {
    struct alike alike;
    int (*copy)(void *to, size_t room, const void *from, size_t n, int kind, void *stream);
    int (*event_new)(void **event);
    int (*event_record)(void *event, void *stream);
    int (*event_ask)(void *event, int *status);
} acl;

static bool acl_load(void *lib)
{
    const struct symbol symbols[] = {{"aclrtGetCurrentContext", &acl.alike.context_get},
                                     {"aclrtSetCurrentContext", &acl.alike.context_set},
                                     {"aclrtMallocHost", &acl.alike.room_new},
                                     {"aclrtFreeHost", &acl.alike.room_free},
                                     {"aclrtMemcpyAsync", &acl.copy},
                                     {"aclrtCreateEvent", &acl.event_new},
                                     {"aclrtDestroyEvent", &acl.alike.event_free},
                                     {"aclrtRecordEvent", &acl.event_record},
                                     {"aclrtQueryEventStatus", &acl.event_ask}};
    return FIND_ALL(lib, symbols);
}
static bool acl_begin(struct probe__copy *c, const char *from, uint64_t offset, size_t n)
{
    void *stream = c->stream->handle;
    if (acl.event_new(&c->event) != 0 ||
        acl.copy(c->host, c->room, from + offset, n, ACL_TO_HOST, stream) != 0)
        return false;
    c->is_adrift = acl.event_record(c->event, stream) != 0;
    return !c->is_adrift;
}
static enum probe__arrival acl_ask(struct probe__copy *c)
{
    int status = 0;
    void *before = enter_stream(c->stream);
    int rc = acl.event_ask(c->event, &status);
    restore_context(c->stream, before);
    if (rc != 0)
        return PROBE__LOST;
    return status == ACL_COMPLETE ? PROBE__ARRIVED : PROBE__UNDER_WAY;
}

/* ---- streams ---------------------------------------------------------- */

static const struct device devices[] = {
    [PROBE_DEVICE_CPU] = {"cpu", (const char *const[]){"libmstx.so.0", "libmstx.so", NULL},
                          cpu_load, any_stream, plain_room, plain_free, cpu_begin, cpu_ask,
                          cpu_forget, NULL},
    [PROBE_DEVICE_OPENCL] = {"opencl", (const char *const[]){"libOpenCL.so.1", NULL}, cl_load,
                             cl_open, plain_room, plain_free, cl_begin, cl_ask, cl_forget, NULL},
    [PROBE_DEVICE_CUDA] = {"cuda", (const char *const[]){"libcuda.so.1", NULL}, cu_load,
                           context_open, locked_room, locked_free, cu_begin, cu_ask, event_forget,
                           &cu.alike},
    [PROBE_DEVICE_ACL] = {"acl", (const char *const[]){"libascendcl.so", NULL}, acl_load,
                          context_open, locked_room, locked_free, acl_begin, acl_ask, event_forget,
                          &acl.alike},
};
static bool is_loaded[sizeof devices / sizeof *devices];
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

/* Finds the device's functions. A program with a stream has loaded the library already, or was
 * statically linked to it. */
static bool load(const struct device *d)
{
    for (size_t i = 0; d->files[i] != NULL; i++) {
        void *lib = dlopen(d->files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (lib != NULL && d->load(lib))
            return true;
    }
    return d->load(RTLD_DEFAULT);
}

enum ms_rc probe_stream_open(struct probe_stream **out, enum probe_device device, void *handle,
                             struct ms_err *err)
{
    *out = NULL;
    if ((unsigned)device >= sizeof devices / sizeof *devices)
        return ms_fail(err, MS_E_ARG, "no such kind of device: %d", (int)device);
    const struct device *d = &devices[device];
    pthread_mutex_lock(&load_lock);
    bool loaded = is_loaded[device] = is_loaded[device] || load(d);
    pthread_mutex_unlock(&load_lock);
    if (!loaded)
        return ms_fail(err, MS_E_NOTFOUND, "%s: this process has not loaded %s, or an old one",
                       d->name, d->files[0]);
    struct probe_stream *s = ms_calloc(1, sizeof *s);
    if (s == NULL)
        return ms_no_memory(err);
    *s = (struct probe_stream){.device = d, .handle = handle, .users = 1};
    if (!d->open(s)) {
        ms_free(s);
        return ms_fail(err, MS_E_ARG, "%s: no stream, or no context is current on this thread",
                       d->name);
    }
    *out = s;
    return MS_OK;
}

static void leave_stream(struct probe_stream *s)
{
    if (atomic_fetch_sub(&s->users, 1) == 1)
        ms_free(s);
}

void probe_stream_close(struct probe_stream *s)
{
    if (s != NULL)
        leave_stream(s);
}

/* ---- copies ----------------------------------------------------------- */

struct probe__copy *probe__copy_new(struct probe_stream *s, size_t room)
{
    struct probe__copy *c = ms_calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->room = room;
    c->host = s->device->room_new(s, room);
    if (c->host == NULL) {
        ms_free(c);
        return NULL;
    }
    c->stream = s;
    atomic_fetch_add(&s->users, 1);
    return c;
}

void probe__copy_end(struct probe__copy *c)
{
    c->stream->device->forget(c);
}

void probe__copy_free(struct probe__copy *c)
{
    const struct device *d = c->stream->device;
    d->forget(c);
    d->room_free(c->stream, c->host);
    leave_stream(c->stream);
    ms_free(c);
}

bool probe__copy_suits(const struct probe__copy *c, const struct probe_stream *s)
{
    return c->stream->device == s->device && c->stream->context == s->context;
}

bool probe__copy_begin(struct probe__copy *c, struct probe_stream *s, const void *from,
                       uint64_t offset, size_t n)
{
    if (c->stream != s) {
        atomic_fetch_add(&s->users, 1);
        leave_stream(c->stream);
        c->stream = s;
    }
    return s->device->begin(c, from, offset, n);
}

enum probe__arrival probe__copy_ask(struct probe__copy *c)
{
    return c->stream->device->ask(c);
}
