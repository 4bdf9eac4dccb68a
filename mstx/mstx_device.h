/* SPDX-License-Identifier: MIT
 *
 * mstx_device: streams of devices.  A mark or range with a stream gets, beside its time on the
 * host, the time at which the device reached it, if the stream was announced to the recorder.  The
 * recorder never dereferences a handle that was not announced.
 *
 * `msprobe run` announces the streams of OpenCL, CUDA and Ascend programs.  A program with queues
 * of its own, or without `msprobe run`, announces its streams by the calls below.
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

/* Announces a stream; name may be NULL. The handle must stay valid until mstx_stream_gone. A second
 * announcement is harmless: the newer name counts. Returns 0, or an errno. */
int mstx_stream_made(enum mstx_device_kind kind, void *stream, const char *name);
/* To be called before a stream is destroyed. Marks in flight still get their device time; later
 * marks with this handle have none. */
void mstx_stream_gone(void *stream);
/* To be called before a device is reset, or all devices of the kind (-1): marks in flight lose
 * their device time. */
void mstx_device_reset(enum mstx_device_kind kind, int device);

/* Makes a CPU stream: a thread that runs the functions queued on it, in order. */
void *mstx_cpu_stream_new(const char *name);
/* Queues fn(arg); waits while 4096 functions are queued. Returns 0, or an errno. */
int mstx_cpu_stream_run(void *stream, void (*fn)(void *), void *arg);
/* Waits until all queued functions have run. */
int mstx_cpu_stream_sync(void *stream);
/* Switches capturing on or off. While on, functions are collected as by a graph capture: marks get
 * no device time. */
void mstx_cpu_stream_capture(void *stream, int on);
/* Runs all queued functions, then ends the thread. */
void mstx_cpu_stream_free(void *stream);

#ifdef __cplusplus
}
#endif
#endif
