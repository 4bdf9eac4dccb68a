/* SPDX-License-Identifier: MIT
 *
 * device_copy: copies from device memory to host memory. A copy is queued on the stream that
 * produces the elements, behind that work, and polled from time to time; no thread blocks on the
 * stream.
 */
#ifndef PROBE_WRITE_DEVICE_COPY_H
#define PROBE_WRITE_DEVICE_COPY_H

#include "probe/dumper.h"

#include <stdatomic.h>

/* A host buffer for one copy at a time, and the event that marks its end. */
struct probe__copy {
    struct probe__copy *next;
    struct probe_stream *stream; /* the stream whose memory and event it uses */
    void *host;
    size_t room;
    void *event;
    const void *from; /* source, for streams of the processor; also the two below */
    size_t bytes;
    atomic_bool is_done;
    bool is_adrift; /* the device may still write here and will not signal the end: never free it */
};

enum probe__arrival { PROBE__ARRIVED, PROBE__UNDER_WAY, PROBE__LOST };

/* Allocates a copy; NULL: out of memory. Called on a thread of the program. */
struct probe__copy *probe__copy_new(struct probe_stream *s, size_t room);
/* Makes the buffer available again after the copy has arrived or was never begun. Any thread. */
void probe__copy_end(struct probe__copy *c);
void probe__copy_free(struct probe__copy *c);
/* Tells whether the buffer can be reused for a copy on stream s. */
bool probe__copy_suits(const struct probe__copy *c, const struct probe_stream *s);
/* Queues a copy of bytes `offset` to `offset + n` at `from`; false: the device refused. */
bool probe__copy_begin(struct probe__copy *c, struct probe_stream *s, const void *from,
                       uint64_t offset, size_t n) MS_MUST_USE;
/* Polls the state of the copy. Any thread. */
enum probe__arrival probe__copy_ask(struct probe__copy *c);

#endif
