/* SPDX-License-Identifier: MIT
 *
 * device_copy: copies from the memory of devices into that of the host.  One is
 * queued on the stream that makes the elements, behind that work, and asked
 * after from time to time; nobody waits for the stream.
 */
#ifndef PROBE_WRITE_DEVICE_COPY_H
#define PROBE_WRITE_DEVICE_COPY_H

#include "probe/dumper.h"

#include <stdatomic.h>

/* Room in the host for one copy at a time, and what tells its end. */
struct probe__copy {
    struct probe__copy *next;
    struct probe_stream *stream; /* whose memory and event it has */
    void *host;
    size_t room;
    void *event;
    const void *from; /* of the processor's streams, as the two below */
    size_t bytes;
    atomic_bool is_done;
    bool is_adrift; /* the device may write to it and will not say when it has: never free it */
};

enum probe__arrival { PROBE__ARRIVED, PROBE__UNDER_WAY, PROBE__LOST };

/* NULL: there is no memory.  On a thread of the program. */
struct probe__copy *probe__copy_new(struct probe_stream *s, size_t room);
/* The copy has arrived, or was not begun: the room may be that of the next.  Any thread. */
void probe__copy_end(struct probe__copy *c);
void probe__copy_free(struct probe__copy *c);
/* Could its room be that of a copy by this stream? */
bool probe__copy_suits(const struct probe__copy *c, const struct probe_stream *s);
/* Queue a copy of bytes `offset` to `offset + n` of what lies at `from`; false: the device refused. */
bool probe__copy_begin(struct probe__copy *c, struct probe_stream *s, const void *from,
                       uint64_t offset, size_t n) MS_MUST_USE;
/* Is it there?  Any thread. */
enum probe__arrival probe__copy_ask(struct probe__copy *c);

#endif
