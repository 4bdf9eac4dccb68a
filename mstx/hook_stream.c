/* SPDX-License-Identifier: MIT
 *
 * hook_stream: streams of the device runtimes as the program makes and destroys them, so that
 * the recorder knows which handles are streams, and of what.  Command queues of OpenCL are made
 * with profiling, without which they tell no times; should that be refused, as the program
 * wanted them.
 */
#include "mstx/hook_ccl.h"

/* ---- OpenCL -------------------------------------------------------------------------------- */

enum {
    CL_FAILED = -5, /* out of resources */
    CL_PROPERTIES = 0x1093,
    CL_REFERENCES = 0x1092,
    CL_PROFILING = 2,
    CL_LIST = 16, /* properties of one queue that are understood */
};

static const char *const opencl[] = {"libOpenCL.so", NULL};

static void *keep_error(int32_t *error)
{
    if (error != NULL)
        *error = CL_FAILED;
    return NULL;
}

static void *told(void *queue)
{
    if (queue != NULL)
        mstx_stream_made(MSTX_DEVICE_OPENCL, queue, NULL);
    return queue;
}

HOOK_API void *clCreateCommandQueue(void *context, void *device, uint64_t properties,
                                    int32_t *error);
HOOK_API void *clCreateCommandQueue(void *context, void *device, uint64_t properties,
                                    int32_t *error)
{
    static hook_slot slot;
    void *(*real)(void *, void *, uint64_t, int32_t *);
    *(void **)(void *)&real = hook_real(&slot, "clCreateCommandQueue", opencl);
    if (real == NULL)
        return keep_error(error);
    void *queue = real(context, device, properties | CL_PROFILING, error);
    if (queue == NULL && (properties & CL_PROFILING) == 0)
        return real(context, device, properties, error);
    return told(queue);
}

/* A copy of the list of pairs with profiling in it; false: longer than is understood. */
static bool with_profiling(const uint64_t *list, uint64_t out[CL_LIST + 3])
{
    size_t n = 0;
    bool has = false;
    for (; list != NULL && list[n] != 0; n += 2) {
        if (n >= CL_LIST)
            return false;
        has |= list[n] == CL_PROPERTIES;
        out[n] = list[n];
        out[n + 1] = list[n] == CL_PROPERTIES ? list[n + 1] | CL_PROFILING : list[n + 1];
    }
    if (!has) {
        out[n++] = CL_PROPERTIES;
        out[n++] = CL_PROFILING;
    }
    out[n] = 0;
    return true;
}

HOOK_API void *clCreateCommandQueueWithProperties(void *context, void *device, const uint64_t *list,
                                                  int32_t *error);
HOOK_API void *clCreateCommandQueueWithProperties(void *context, void *device, const uint64_t *list,
                                                  int32_t *error)
{
    static hook_slot slot;
    uint64_t more[CL_LIST + 3];
    void *(*real)(void *, void *, const uint64_t *, int32_t *);
    *(void **)(void *)&real = hook_real(&slot, "clCreateCommandQueueWithProperties", opencl);
    if (real == NULL)
        return keep_error(error);
    void *queue = with_profiling(list, more) ? real(context, device, more, error) : NULL;
    return queue != NULL ? told(queue) : real(context, device, list, error);
}

/* The last reference goes: its marks are still waited for, their events live on their own. */
HOOK_API int32_t clReleaseCommandQueue(void *queue);
HOOK_API int32_t clReleaseCommandQueue(void *queue)
{
    static hook_slot slot, info_slot;
    int32_t (*real)(void *), (*info)(void *, uint32_t, size_t, void *, size_t *);
    uint32_t references = 0;
    *(void **)(void *)&real = hook_real(&slot, "clReleaseCommandQueue", opencl);
    *(void **)(void *)&info = hook_real(&info_slot, "clGetCommandQueueInfo", opencl);
    if (real == NULL)
        return CL_FAILED;
    if (info != NULL && queue != NULL &&
        info(queue, CL_REFERENCES, sizeof references, &references, NULL) == 0 && references == 1)
        mstx_stream_gone(queue);
    return real(queue);
}

/* ---- CUDA and Ascend -------------------------------------------------------------------------- */

enum { CUDA_FAILED = 999 /* unknown */, ACL_FAILED = 500000 /* internal error */ };

static const char *const driver[] = {"libcuda.so", NULL};
static const char *const runtime[] = {"libcudart.so", "libtorch_cuda.so", NULL};
static const char *const ascend[] = {"libascendcl.so", NULL};

static void made(int rc, enum mstx_device_kind kind, void *const *stream)
{
    if (rc == 0 && stream != NULL && *stream != NULL)
        mstx_stream_made(kind, *stream, NULL);
}

#define CUDA_MADE   made(rc, MSTX_DEVICE_CUDA, stream)
#define CUDA_RESET  mstx_device_reset(MSTX_DEVICE_CUDA, -1)
#define ACL_MADE    made(rc, MSTX_DEVICE_ACL, stream)
#define STREAM_GONE mstx_stream_gone(stream)

/* function, where it lies, error without it, parameters, arguments, before and after the call */
#define STREAM_CALLS(X)                                                                            \
    X(cuStreamCreate, driver, CUDA_FAILED, (void **stream, unsigned flags), (stream, flags), ,     \
      CUDA_MADE)                                                                                   \
    X(cuStreamCreateWithPriority, driver, CUDA_FAILED,                                             \
      (void **stream, unsigned flags, int priority), (stream, flags, priority), , CUDA_MADE)       \
    X(cuStreamDestroy_v2, driver, CUDA_FAILED, (void *stream), (stream), STREAM_GONE, )            \
    X(cuCtxDestroy_v2, driver, CUDA_FAILED, (void *context), (context), CUDA_RESET, )              \
    X(cuDevicePrimaryCtxReset_v2, driver, CUDA_FAILED, (int device), (device),                     \
      mstx_device_reset(MSTX_DEVICE_CUDA, device), )                                               \
    X(cudaStreamCreate, runtime, CUDA_FAILED, (void **stream), (stream), , CUDA_MADE)              \
    X(cudaStreamCreateWithFlags, runtime, CUDA_FAILED, (void **stream, unsigned flags),            \
      (stream, flags), , CUDA_MADE)                                                                \
    X(cudaStreamCreateWithPriority, runtime, CUDA_FAILED,                                          \
      (void **stream, unsigned flags, int priority), (stream, flags, priority), , CUDA_MADE)       \
    X(cudaStreamDestroy, runtime, CUDA_FAILED, (void *stream), (stream), STREAM_GONE, )            \
    X(cudaDeviceReset, runtime, CUDA_FAILED, (void), (), CUDA_RESET, )                             \
    X(aclrtCreateStream, ascend, ACL_FAILED, (void **stream), (stream), , ACL_MADE)                \
    X(aclrtCreateStreamWithConfig, ascend, ACL_FAILED,                                             \
      (void **stream, uint32_t priority, uint32_t flag), (stream, priority, flag), , ACL_MADE)     \
    X(aclrtDestroyStream, ascend, ACL_FAILED, (void *stream), (stream), STREAM_GONE, )             \
    X(aclrtDestroyStreamForce, ascend, ACL_FAILED, (void *stream), (stream), STREAM_GONE, )        \
    X(aclrtResetDevice, ascend, ACL_FAILED, (int32_t device), (device),                            \
      mstx_device_reset(MSTX_DEVICE_ACL, device), )                                                \
    X(aclrtResetDeviceForce, ascend, ACL_FAILED, (int32_t device), (device),                       \
      mstx_device_reset(MSTX_DEVICE_ACL, device), )

#define X(name, owners, otherwise, params, args, before, after)                                    \
    HOOK_API int name params;                                                                      \
    HOOK_API int name params                                                                       \
    {                                                                                              \
        static hook_slot slot;                                                                     \
        int(*real) params;                                                                         \
        *(void **)(void *)&real = hook_real(&slot, #name, owners);                                 \
        if (real == NULL)                                                                          \
            return otherwise;                                                                      \
        before;                                                                                    \
        int rc = real args;                                                                        \
        after;                                                                                     \
        return rc;                                                                                 \
    }
STREAM_CALLS(X)
#undef X
