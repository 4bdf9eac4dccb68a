/* SPDX-License-Identifier: MIT
 *
 * stream_handles: announces the streams of CUDA and Ascend that the program makes and destroys, so
 * that the recorder knows which handles are streams, and of which kind.  stream_calls.txt lists the
 * functions.
 */
#include "mstx/hook/real_function.h"
#include "mstx/mstx_device.h"

enum { CUDA_FAILED = 999 /* unknown */, ACL_FAILED = 500000 /* internal error */ };

static const char *const driver[] = {"libcuda.so", NULL};
static const char *const runtime[] = {"libcudart.so", "libtorch_cuda.so", NULL};
static const char *const ascend[] = {"libascendcl.so", NULL};

static void announce_stream(int rc, enum mstx_device_kind kind, void *const *stream)
{
    if (rc == 0 && stream != NULL && *stream != NULL)
        mstx_stream_made(kind, *stream, NULL);
}

#include <stream_wrappers.inc>
