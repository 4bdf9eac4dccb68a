/* SPDX-License-Identifier: MIT
 *
 * hook_stream: streams of CUDA and Ascend as the program makes and destroys them, so that the
 * recorder knows which handles are streams, and of what.
 */
#include "mstx/hook_ccl.h"

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
