/* SPDX-License-Identifier: MIT
 *
 * hook_api: the interface of the recorder for hooks that get device times on their own, as the
 * profiler of a communication library does: ranges on a stream without events of the recorder.
 */
#ifndef MSTX_RT_HOOK_API_H
#define MSTX_RT_HOOK_API_H

#include <stdbool.h>
#include <stdint.h>

/* Writes a STREAM record into the ring of the process, which a flight recorder keeps. The key of
 * such a stream is any number that no stream handle has. */
void mstx_device_stream(const void *key, const char *name, uint32_t device, uint32_t number);
/* Begins a range on the stream; returns its id, or 0. *ticks: with the id, the key that joins
 * device times to the range. */
uint64_t mstx_device_range(const char *domain, const char *name, void *key, uint64_t *ticks);
void mstx_device_range_end(uint64_t id);
/* Records that the device reached the start or the end at ns (CLOCK_MONOTONIC); 0: that time is
 * lost. At any time, from any thread, also after the end of the range. */
void mstx_device_time(uint64_t id, uint64_t ticks, bool is_end, int64_t ns);

/* Begins a command that the program puts into a stream and whose event has its times. Called before
 * the command is queued; 0: it is not recorded. */
uint64_t mstx_stream_command(void *stream, const char *name, uint64_t *ticks);
/* Hands over the event of a queued command, which the recorder owns from then on; false: it was not
 * taken. */
bool mstx_stream_command_queued(void *stream, uint64_t id, uint64_t ticks, void *event);

/* Records that memory of the host was taken by an allocator of the process, or given back. stack: the
 * folded stack of the caller, a text that is never freed or changed (memory_names.h); NULL: not known.
 * Nothing is recorded before mstx_memory_begin, which is called once. */
void mstx_memory_begin(void);
void mstx_memory_taken(const void *address, uint64_t bytes, const char *stack);
void mstx_memory_given(const void *address);

#endif
