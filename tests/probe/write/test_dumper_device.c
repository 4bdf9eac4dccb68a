/* SPDX-License-Identifier: MIT
 *
 * Tensors in the memory of devices: a dump of them is that of the same tensors in
 * the host's, and the program never waits for the device.
 */
#include "mstx/mstx_device.h"
#include "probe/base/mem.h"

#include "tests/support/dumper_fixture.h"
#include "tests/support/settle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- libraries, as a program has them loaded -------------------------- */

static void *library(const char *name)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    ck_assert_int_gt(n, 0);
    path[n] = '\0';
    *strrchr(path, '/') = '\0'; /* tests */
    snprintf(strrchr(path, '/'), 64, "/%s", name);
    void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    ck_assert_msg(lib != NULL, "%s", dlerror());
    return lib;
}

static void *function(void *lib, const char *name)
{
    void *found = dlsym(lib, name);
    ck_assert_msg(found != NULL, "no %s", name);
    return found;
}

static struct {
    void *(*new)(const char *name);
    int (*run)(void *stream, void (*fn)(void *), void *arg);
    int (*sync)(void *stream);
    void (*free)(void *stream);
} cpu;

static void *cpu_stream(void)
{
    void *lib = library("libmstx.so");
    *(void **)(void *)&cpu.new = function(lib, "mstx_cpu_stream_new");
    *(void **)(void *)&cpu.run = function(lib, "mstx_cpu_stream_run");
    *(void **)(void *)&cpu.sync = function(lib, "mstx_cpu_stream_sync");
    *(void **)(void *)&cpu.free = function(lib, "mstx_cpu_stream_free");
    return cpu.new("work");
}

static struct probe_stream *opened(enum probe_device device, void *handle)
{
    struct probe_stream *s;
    ck_ok(probe_stream_open(&s, device, handle, &err), err);
    return s;
}

/* Work that is not done before the gate is opened. */
static void wait_for_gate(void *arg)
{
    pthread_mutex_t *gate = arg;
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
}

/* ---- the same records from both memories ------------------------------ */

static const char bytes[2048] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 1};
static const uint64_t rows[2] = {3, 4}, wide[2] = {9, 2}, none[2] = {0, 4}, single[1] = {1};
static const struct probe_tensor_desc kinds[] = {
    {bytes, "float32", rows, NULL, 2, true, NULL, 0},
    {bytes, "float64", rows, NULL, 2, false, NULL, 8},
    {bytes, "float16", rows, wide, 2, false, NULL, 2},
    {bytes, "bfloat16", rows, NULL, 2, false, NULL, 0},
    {bytes, "float8_e4m3fn", rows, NULL, 2, false, NULL, 0},
    {bytes, "bool", rows, NULL, 2, false, NULL, 16},
    {bytes, "int64", rows, wide, 2, false, NULL, 0},
    {bytes, "uint8", rows, NULL, 2, false, NULL, 0},
    {bytes, "complex64", rows, NULL, 2, false, NULL, 0},
    {bytes, "float32", none, NULL, 2, false, NULL, 0},
    {bytes, "float32", NULL, NULL, 0, true, NULL, 4},
    {bytes, "int32", single, NULL, 1, false, NULL, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* With offset already in the address for the host. */
static void describe(struct probe_tensor_desc t[KINDS], struct probe_stream *s, const void *data)
{
    for (int i = 0; i < KINDS; i++) {
        t[i] = kinds[i];
        t[i].stream = s;
        t[i].data = s != NULL ? data : bytes + kinds[i].offset;
        t[i].offset = s != NULL ? kinds[i].offset : 0;
    }
}

static void dump_all(struct probe_settings s, struct probe_tensor_desc t[KINDS])
{
    struct probe_dumper *d = open_with(s);
    struct probe_value v[KINDS];
    for (int i = 0; i < KINDS; i++)
        v[i] = (struct probe_value){.kind = PROBE_TENSOR, .tensor = &t[i]};
    struct probe_value nested = {.kind = PROBE_LIST, .items = v, .n = 3};
    struct probe_value named = v[3];
    named.key = "weight";
    probe_dumper_start(d);
    struct probe_call *m = probe_module_enter(d, "fc", "Linear");
    probe_call_input(m, &nested);
    op(d, "first");
    probe_op(d, "Functional", "all", v, KINDS, v, KINDS);
    op(d, "between");
    probe_call_drop(probe_op_enter(d, "Functional", "dropped"));
    struct probe_call *dropped = probe_op_enter(d, "Functional", "dropped");
    probe_call_input(dropped, &v[0]);
    probe_call_drop(dropped);
    probe_call_output(m, &v[1]);
    probe_call_parameter(m, &named);
    probe_call_exit(m);
    probe_parameters_grad(d, "fc", "Linear", &named, 1);
    probe_save(d, "loss", &nested);
    probe_dumper_stop(d);
    probe_dumper_step(d);
    close_dumper(d);
}

/* Everything in the scratch directory, as text that can be compared.  A dropped call leaves the files
 * that it has already made. */
static char *digest(void)
{
    char command[300];
    char *text = calloc(1, 1 << 16);
    snprintf(command, sizeof command,
             "cd '%s' && find . -type f ! -name '*.dropped.*' | LC_ALL=C sort | xargs cksum", dir);
    FILE *f = popen(command, "r");
    ck_assert(f != NULL && text != NULL);
    text[fread(text, 1, (1 << 16) - 1, f)] = '\0';
    pclose(f);
    return text;
}

static const struct probe_settings tasks[] = {
    {.task = PROBE_TASK_STATISTICS},
    {.task = PROBE_TASK_STATISTICS, .all_numbers = true, .high_precision = true},
    {.task = PROBE_TASK_STATISTICS, .summary = PROBE_SUMMARY_MD5},
    {.task = PROBE_TASK_STATISTICS, .summary = PROBE_SUMMARY_XOR},
    {.task = PROBE_TASK_STATISTICS, .framework = PROBE_FW_MINDSPORE},
    {.task = PROBE_TASK_TENSOR},
    {.task = PROBE_TASK_TENSOR, .level = PROBE_LEVEL_DEBUG},
    {.task = PROBE_TASK_NAN_CHECK, .level = PROBE_LEVEL_L1},
    {.task = PROBE_TASK_OVERFLOW_CHECK, .overflow_nums = 1},
    {.task = PROBE_TASK_STRUCTURE},
    {.task = PROBE_TASK_TENSOR,
     .slice = (const struct probe_slice[]){{.dim = 1, .begin = 1, .end = 3, .has_end = true}},
     .nslices = 1},
    {.task = PROBE_TASK_TENSOR, .memory_max = 1},
};

/* The first line of a that is not one of b. */
static void lines_are_equal(const char *a, const char *b)
{
    while (*a != '\0' && strcspn(a, "\n") == strcspn(b, "\n") &&
           strncmp(a, b, strcspn(a, "\n")) == 0) {
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    ck_assert_msg(*a == *b, "expected %.*s, found %.*s", (int)strcspn(a, "\n"), a,
                  (int)strcspn(b, "\n"), b);
}

static char *dumped_with(struct probe_settings with, struct probe_stream *s, const void *data)
{
    struct probe_tensor_desc t[KINDS];
    char path[100], command[120];
    snprintf(path, sizeof path, "%s/dumped", dir); /* the same for both, as dump.json tells it */
    with.dump_path = path;
    with.rank_known = true;
    with.no_extra = true; /* stacks tell which of two places called */
    with.risk = PROBE_RISK_ALL;
    describe(t, s, data);
    dump_all(with, t);
    char *text = digest();
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    ck_assert_int_eq(system(command), 0);
    return text;
}

static void both_are_equal(struct probe_stream *s, const void *data)
{
    begin();
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        char *host = dumped_with(tasks[i], NULL, NULL);
        char *device = dumped_with(tasks[i], s, data);
        ck_assert_msg(strstr(host, "step0") != NULL, "task %zu: %s", i, host);
        lines_are_equal(host, device);
        free(host);
        free(device);
    }
    scratch_remove(dir);
}

START_TEST(a_processors_stream_is_dumped_as_the_host_is)
{
    void *handle = cpu_stream();
    struct probe_stream *s = opened(PROBE_DEVICE_CPU, handle);
    both_are_equal(s, bytes);
    probe_stream_close(s);
    cpu.free(handle);
}
END_TEST

/* A stand-in for CUDA, whose memory is the host's and whose streams are threads. */
START_TEST(a_stream_of_cuda_is_dumped_as_the_host_is)
{
    void *lib = library("tests/standin/libcuda.so.1");
    int (*init)(unsigned);
    int (*stream_new)(void **, unsigned);
    int (*stream_free)(void *);
    void *handle;
    *(void **)(void *)&init = function(lib, "cuInit");
    *(void **)(void *)&stream_new = function(lib, "cuStreamCreate");
    *(void **)(void *)&stream_free = function(lib, "cuStreamDestroy_v2");
    struct probe_stream *s;
    ck_assert_int_eq(probe_stream_open(&s, PROBE_DEVICE_CUDA, &handle, &err), MS_E_ARG);
    has(err.msg, "no context is current");
    ms_err_clear(&err);
    ck_assert_int_eq(init(0), 0);
    ck_assert_int_eq(stream_new(&handle, 1), 0);
    s = opened(PROBE_DEVICE_CUDA, handle);
    both_are_equal(s, bytes);
    probe_stream_close(s);
    stream_free(handle);
}
END_TEST

START_TEST(a_stream_of_ascend_is_dumped_as_the_host_is)
{
    void *lib = library("tests/standin/libascendcl.so");
    int (*set_device)(int32_t);
    int (*stream_new)(void **);
    int (*stream_free)(void *);
    void *handle;
    *(void **)(void *)&set_device = function(lib, "aclrtSetDevice");
    *(void **)(void *)&stream_new = function(lib, "aclrtCreateStream");
    *(void **)(void *)&stream_free = function(lib, "aclrtDestroyStream");
    ck_assert_int_eq(set_device(1), 0);
    ck_assert_int_eq(stream_new(&handle), 0);
    struct probe_stream *s = opened(PROBE_DEVICE_ACL, handle);
    both_are_equal(s, bytes);
    probe_stream_close(s);
    stream_free(handle);
}
END_TEST

/* ---- OpenCL ----------------------------------------------------------- */

typedef void *object;
static struct {
    int (*platforms)(unsigned, object *, unsigned *);
    int (*devices)(object, uint64_t, unsigned, object *, unsigned *);
    object (*context_new)(const void *, unsigned, const object *, void *, void *, int *);
    object (*queue_new)(object, object, uint64_t, int *);
    object (*buffer_new)(object, uint64_t, size_t, void *, int *);
    int (*fill)(object, object, const void *, size_t, size_t, size_t, unsigned, const object *,
                object *);
    int (*finish)(object);
    int (*release_buffer)(object);
    int (*release_queue)(object);
    int (*release_context)(object);
    object context, device;
} cl;

/* false: there is no device. */
static bool open_opencl(void)
{
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL);
    object platform;
    int rc;
    if (lib == NULL)
        return false;
    *(void **)(void *)&cl.platforms = function(lib, "clGetPlatformIDs");
    *(void **)(void *)&cl.devices = function(lib, "clGetDeviceIDs");
    *(void **)(void *)&cl.context_new = function(lib, "clCreateContext");
    *(void **)(void *)&cl.queue_new = function(lib, "clCreateCommandQueue");
    *(void **)(void *)&cl.buffer_new = function(lib, "clCreateBuffer");
    *(void **)(void *)&cl.fill = function(lib, "clEnqueueFillBuffer");
    *(void **)(void *)&cl.finish = function(lib, "clFinish");
    *(void **)(void *)&cl.release_buffer = function(lib, "clReleaseMemObject");
    *(void **)(void *)&cl.release_queue = function(lib, "clReleaseCommandQueue");
    *(void **)(void *)&cl.release_context = function(lib, "clReleaseContext");
    if (cl.platforms(1, &platform, NULL) != 0 ||
        cl.devices(platform, 0xFFFFFFFF, 1, &cl.device, NULL) != 0)
        return false;
    cl.context = cl.context_new(NULL, 1, &cl.device, NULL, NULL, &rc);
    return cl.context != NULL;
}

START_TEST(a_queue_of_opencl_is_dumped_as_the_host_is)
{
    enum { OUT_OF_ORDER = 1, COPY_HOST_POINTER = 1 << 5 };
    int rc;
    if (!open_opencl()) {
        printf("skip OpenCL: no device\n");
        return;
    }
    for (uint64_t bits = 0; bits <= OUT_OF_ORDER; bits++) {
        object queue = cl.queue_new(cl.context, cl.device, bits, &rc);
        object buffer = cl.buffer_new(cl.context, 1 | COPY_HOST_POINTER, sizeof bytes,
                                      (void *)(uintptr_t)bytes, &rc);
        ck_assert(queue != NULL && buffer != NULL);
        struct probe_stream *s = opened(PROBE_DEVICE_OPENCL, queue);
        both_are_equal(s, buffer);
        probe_stream_close(s);
        cl.release_buffer(buffer);
        cl.release_queue(queue);
    }
    cl.release_context(cl.context);
}
END_TEST

START_TEST(opencl_work_that_is_queued_before_is_seen_and_what_comes_after_is_not)
{
    enum { N = 1 << 20 };
    int rc;
    if (!open_opencl()) {
        printf("skip OpenCL: no device\n");
        return;
    }
    begin();
    object queue = cl.queue_new(cl.context, cl.device, 1, &rc); /* out of order */
    object buffer = cl.buffer_new(cl.context, 1, N * sizeof(float), NULL, &rc);
    struct probe_stream *s = opened(PROBE_DEVICE_OPENCL, queue);
    struct probe_tensor_desc t = {
        .data = buffer, .dtype = "float32", .stream = s, .ndim = 1, .shape = &(uint64_t){N}};
    struct probe_value v = {.kind = PROBE_TENSOR, .tensor = &t};
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    for (int i = 1; i <= 5; i++) {
        float value = (float)i;
        cl.fill(queue, buffer, &value, sizeof value, 0, N * sizeof(float), 0, NULL, NULL);
        probe_op(d, "Functional", "fill", NULL, 0, &v, 1);
    }
    close_dumper(d);
    cl.finish(queue);
    const char *at = text_of(STEP0 "dump.json");
    for (int i = 1; i <= 5; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "\"Max\": %d.0,\n     \"Min\": %d.0,", i, i);
        ck_assert_msg((at = strstr(at, expected)) != NULL, "no %s", expected);
    }
    probe_stream_close(s);
    cl.release_buffer(buffer);
    cl.release_queue(queue);
    cl.release_context(cl.context);
    scratch_remove(dir);
}
END_TEST

/* ---- nobody waits ----------------------------------------------------- */

static void write_twos(void *arg)
{
    for (int i = 0; i < 12; i++)
        ((float *)arg)[i] = 2;
}
static void write_threes(void *arg)
{
    for (int i = 0; i < 12; i++)
        ((float *)arg)[i] = 3;
}

START_TEST(the_program_goes_on_while_the_device_works_and_writes_to_the_memory_again)
{
    static float memory[12];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    begin();
    void *handle = cpu_stream();
    struct probe_stream *s = opened(PROBE_DEVICE_CPU, handle);
    struct probe_tensor_desc t = kinds[0];
    t.data = memory;
    t.stream = s;
    struct probe_value v = {.kind = PROBE_TENSOR, .tensor = &t};
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    pthread_mutex_lock(&gate);
    cpu.run(handle, wait_for_gate, &gate);
    cpu.run(handle, write_twos, memory);
    probe_op(d, "Functional", "twos", NULL, 0, &v, 1); /* came back though nothing is done yet */
    cpu.run(handle, write_threes, memory);
    op(d, "host");
    ck_assert(memory[0] == 0);
    pthread_mutex_unlock(&gate);
    close_dumper(d);
    cpu.sync(handle);
    ck_assert(memory[0] == 3);
    has(text_of(STEP0 "dump.json"), "\"Max\": 2.0,\n     \"Min\": 2.0,\n     \"Mean\": 2.0,");
    ck_assert_str_eq(records_of(STEP0 "dump.json"),
                     "Functional.twos.0.forward Functional.host.0.forward");
    probe_stream_close(s);
    cpu.free(handle);
    scratch_remove(dir);
}
END_TEST

START_TEST(copies_keep_to_the_limit_and_a_warm_dumper_allocates_nothing)
{
    enum { STEPS = 4, OPS = 300, N = 1 << 14 };
    static float memory[N];
    uint64_t calls[STEPS];
    begin();
    void *handle = cpu_stream();
    struct probe_stream *s = opened(PROBE_DEVICE_CPU, handle);
    struct probe_tensor_desc t = {
        .data = memory, .dtype = "float32", .stream = s, .ndim = 1, .shape = &(uint64_t){N}};
    struct probe_value v = {.kind = PROBE_TENSOR, .tensor = &t};
    struct probe_settings with = everything();
    with.memory_max = 4 * sizeof memory;
    struct probe_dumper *d = open_with(with);
    volatile int steps = STEPS;
    for (int step = 0; step < steps; step++) {
        probe_dumper_start(d);
        uint64_t before = ms_mem_calls();
        for (int i = 0; i < OPS; i++)
            probe_op(d, "Functional", "wide", &v, 1, &v, 1);
        calls[step] = ms_mem_calls() - before;
        probe_dumper_stop(d);
        probe_dumper_step(d);
    }
    close_dumper(d);
    ck_assert_uint_gt(calls[0], 0);
    ck_assert_uint_le(calls[STEPS - 1], calls[0] / 4); /* how many wait at once is chance */
    probe_stream_close(s);
    cpu.free(handle);
    scratch_remove(dir);
}
END_TEST

START_TEST(threads_with_streams_of_their_own)
{
    begin();
    struct probe_dumper *d = open_with(everything());
    probe_dumper_start(d);
    void *handle[2];
    struct probe_stream *s[2];
    for (int i = 0; i < 2; i++) {
        handle[i] = cpu_stream();
        s[i] = opened(PROBE_DEVICE_CPU, handle[i]);
    }
    for (int i = 0; i < 200; i++) {
        struct probe_tensor_desc t = kinds[0];
        t.stream = s[i % 2];
        struct probe_value v = {.kind = PROBE_TENSOR, .tensor = &t};
        probe_op(d, "Functional", "mixed", &v, 1, &x, 1);
    }
    probe_stream_close(s[0]); /* what is on its way arrives */
    probe_stream_close(s[1]);
    close_dumper(d);
    has(records_of(STEP0 "dump.json"), "Functional.mixed.198.forward Functional.mixed.199.forward");
    for (int i = 0; i < 2; i++)
        cpu.free(handle[i]);
    scratch_remove(dir);
}
END_TEST

/* ---- what is refused -------------------------------------------------- */

START_TEST(what_is_no_device_is_refused)
{
    struct probe_stream *s;
    ck_assert_int_eq(probe_stream_open(&s, (enum probe_device)9, &s, &err), MS_E_ARG);
    has(err.msg, "no such kind of device: 9");
    ms_err_clear(&err);
    ck_assert_int_eq(probe_stream_open(&s, PROBE_DEVICE_ACL, &s, &err), MS_E_NOTFOUND);
    has(err.msg, "acl: this process has not loaded libascendcl.so");
    probe_stream_close(NULL);
}
END_TEST

START_TEST(a_writer_takes_no_tensors_of_devices)
{
    begin();
    void *handle = cpu_stream();
    struct probe_tensor_desc t = kinds[0];
    struct probe_writer *w;
    t.stream = opened(PROBE_DEVICE_CPU, handle);
    ck_ok(probe_writer_open(&w, &(struct probe_conf){.dir = dir}, &err), err);
    probe_record_begin(w, "Functional.relu.0.forward");
    probe_section(w, PROBE_SEC_OUTPUT);
    probe_put_tensor(w, NULL, &t);
    probe_record_end(w);
    ck_assert_int_ne(probe_writer_close(w, &err), MS_OK);
    has(err.msg, "a tensor of a device");
    probe_stream_close(t.stream);
    cpu.free(handle);
    scratch_remove(dir);
}
END_TEST

/* The first is about a process that has loaded no device's library, which the others do, and none goes. */
TEST_MAIN("dumper_device", what_is_no_device_is_refused,
          a_processors_stream_is_dumped_as_the_host_is, a_stream_of_cuda_is_dumped_as_the_host_is,
          a_stream_of_ascend_is_dumped_as_the_host_is, a_queue_of_opencl_is_dumped_as_the_host_is,
          opencl_work_that_is_queued_before_is_seen_and_what_comes_after_is_not,
          the_program_goes_on_while_the_device_works_and_writes_to_the_memory_again,
          copies_keep_to_the_limit_and_a_warm_dumper_allocates_nothing,
          threads_with_streams_of_their_own, a_writer_takes_no_tensors_of_devices)
