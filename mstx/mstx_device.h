/* SPDX-License-Identifier: MIT
 *
 * mstx_device: streams of devices.  A mark or range that is given a stream gets, beside its
 * time on the host, the time at which the device reached it.  The recorder must know the
 * stream for that: a handle it was not told of is never looked into.
 *
 * `msprobe run` tells it of the streams of OpenCL, CUDA and Ascend programs.  A program with
 * queues of its own, or one that runs without it, tells by the calls below.
 */
#ifndef MSTX_MSTX_DEVICE_H
#define MSTX_MSTX_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mstx_device_kind {
    MSTX_DEVICE_CPU = 0,    /* a stream made by mstx_cpu_stream_new */
    MSTX_DEVICE_OPENCL = 1, /* a cl_command_queue with profiling */
    MSTX_DEVICE_CUDA = 2,   /* a CUstream or cudaStream_t */
    MSTX_DEVICE_ACL = 3,    /* an aclrtStream */
    MSTX_DEVICE_KINDS
};

/* This handle is a stream from now on; name may be NULL.  The handle must stay valid until
 * mstx_stream_gone.  Telling twice is no harm: the newer name counts.  0, or an errno. */
int mstx_stream_made(enum mstx_device_kind kind, void *stream, const char *name);
/* Call it before the stream is destroyed.  Marks that the device has not reached yet are still
 * waited for; further ones with this handle have no device time. */
void mstx_stream_gone(void *stream);
/* Call it before a device is reset, or all of the kind (-1): what it has not reached is lost. */
void mstx_device_reset(enum mstx_device_kind kind, int device);

/* A stream of the processor: a thread that works off what it is given, in order. */
void *mstx_cpu_stream_new(const char *name);
/* Queue fn(arg); waits while 4096 pieces of work are queued. 0, or an errno. */
int mstx_cpu_stream_run(void *stream, void (*fn)(void *), void *arg);
/* Wait until all that was queued is done. */
int mstx_cpu_stream_sync(void *stream);
/* Between on and off, work is collected as by a graph capture: marks get no device time. */
void mstx_cpu_stream_capture(void *stream, int on);
/* Finish what is queued, then end the thread. */
void mstx_cpu_stream_free(void *stream);

#ifdef __cplusplus
}
#endif
#endif
