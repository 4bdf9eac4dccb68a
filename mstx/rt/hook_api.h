/* SPDX-License-Identifier: MIT
 *
 * hook_api: the recorder's door for hooks that learn device times on their own, as the profiler
 * of a communication library does: ranges on a stream that nobody queues events on.
 */
#ifndef MSTX_RT_HOOK_API_H
#define MSTX_RT_HOOK_API_H

#include <stdbool.h>
#include <stdint.h>

/* Tell a capture of a stream, in the ring of the process, which a flight recorder keeps.  The key of
 * such ranges is any number that no stream handle has. */
void mstx_device_stream(const void *key, const char *name, uint32_t device, uint32_t number);
/* Begin a range on it; *ticks: with the id, what its device times are joined by. 0: none. */
uint64_t mstx_device_range(const char *domain, const char *name, void *key, uint64_t *ticks);
void mstx_device_range_end(uint64_t id);
/* The device reached the start or the end at ns (CLOCK_MONOTONIC); 0: that was lost. At any time,
 * from any thread, also after the range was ended. */
void mstx_device_time(uint64_t id, uint64_t ticks, bool is_end, int64_t ns);

/* A command that the program puts into a stream and that tells by an event when it ran.  Begin before
 * the call; 0: it is not recorded. */
uint64_t mstx_stream_command(void *stream, const char *name, uint64_t *ticks);
/* The command is in the stream. The event is the recorder's from then on; false: it was not taken. */
bool mstx_stream_command_queued(void *stream, uint64_t id, uint64_t ticks, void *event);

#endif
